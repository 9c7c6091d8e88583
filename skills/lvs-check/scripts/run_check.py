"""Compare the current layout with the netlist it was made from."""

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict, context: dict) -> dict:
    """Return the verdict, the mismatches with their places, and what was compared."""
    from layoutkit.circuit import MapOptions, Target, join_taps, map_circuit, read_netlist, read_widths
    from layoutkit.extract.extractor import extract
    from layoutkit.layout.cells import choose_cell
    from layoutkit.layout.workspace import Workspace
    from layoutkit.lvs.compare import compare
    from layoutkit.lvs.lvs_files import write_extracted, write_report
    from layoutkit.tools.current_layout import CurrentLayout

    current = CurrentLayout(params)
    process = current.technology()
    netlist_path = params.get("netlist_path") or Workspace(params.get("workspace")).circuit_path
    for name in ("report_path", "extracted_path"):
        if name in params:
            current.check_target(params[name], netlist_path)
    circuit = read_netlist(
        netlist_path,
        top=params.get("top") or None,
        identify_modules=False,
        black_boxes=params.get("black_boxes", ()),
        parameters=params.get("parameters"),
    )
    if params["map_devices"]:
        options = MapOptions(width_per=params["width_per"])
        circuit = map_circuit(circuit, Target.from_technology(process), options).circuit
    else:
        circuit = join_taps(read_widths(circuit, params["width_per"]))
    layout = current.read()
    cell = choose_cell(layout, params.get("cell_name"))
    extraction = extract(layout, cell, process, waived_layers=params["waived_layers"])
    result = compare(extraction, circuit, tolerance=params["tolerance"])
    data = result.to_json()
    data["warnings"] = [*circuit.warnings, *data["warnings"]]
    data["layout_sha256"] = current.sha256
    data["files"] = {"layout": str(current.path), "netlist": str(netlist_path)}
    if "report_path" in params:
        write_report(result, params["report_path"], current.sources(circuit="netlist_path" not in params))
        data["files"]["report"] = params["report_path"]
    if "extracted_path" in params:
        write_extracted(result.extraction, params["extracted_path"], current.sources())
        data["files"]["extracted"] = params["extracted_path"]
    current.add_reports(*(params[name] for name in ("report_path", "extracted_path") if name in params))
    data["warnings"] += current.warnings
    return data


if __name__ == "__main__":
    raise SystemExit(
        main(__file__, "lvs.run_check", execute, violates=lambda data: not (data["matched"] and data["complete"]))
    )
