"""Check the current layout against design rules: the technology's own, a JSON or YAML rule file, or a foundry deck."""

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict, context: dict) -> dict:
    """Return the verdict, the violations with their locations, and what could not be checked."""
    import klayout.db as kdb

    from layoutkit.drc.check import Options, check_cell, select_rules
    from layoutkit.drc.rule_files import is_deck, with_rules_of
    from layoutkit.errors import GeometryError
    from layoutkit.layout.cells import choose_cell
    from layoutkit.tools.current_layout import CurrentLayout

    if "region" in params:
        left, bottom, right, top = params["region"]
        if left >= right or bottom >= top:
            raise GeometryError(
                f"region must be left < right and bottom < top, got {params['region']}",
                details={"param_name": "region", "provided_value": params["region"]},
            )
    current = CurrentLayout(params)
    process = current.technology()
    deck = "drc_rules_path" in params and is_deck(params["drc_rules_path"])
    if not deck:
        if "drc_rules_path" in params:
            process = with_rules_of(params["drc_rules_path"], process)
        select_rules(process, params.get("rule_ids"))
    rule_files = [params["drc_rules_path"]] if "drc_rules_path" in params else []
    for target in ("report_path", "image_path"):
        if target in params:
            current.check_target(params[target], *rule_files)
    layout = current.read()
    cell = choose_cell(layout, params.get("cell_name"))
    region = kdb.DBox(*params["region"]) if "region" in params else None
    options = Options(
        params.get("rule_ids"),
        params["max_violations"],
        region,
        params["mode"],
        waived_layers=params["waived_layers"],
        chosen_rules="drc_rules_path" in params,
    )
    report = _run_deck(layout, cell, params, options) if deck else check_cell(layout, cell, process, options)
    data = report.to_data()
    if "report_path" in params:
        report.write_lyrdb(params["report_path"], current.sources())
        data["report_path"] = params["report_path"]
    if "image_path" in params:
        _draw(cell, process, report, params, current.sources())
        data["image_path"] = params["image_path"]
    current.add_reports(*(params[name] for name in ("report_path", "image_path") if name in params))
    data["layout_sha256"] = current.sha256
    data["notes"] = [*data["notes"], *current.warnings]
    return data


def _run_deck(layout: object, cell: object, params: dict, options: object) -> object:
    from pathlib import Path

    from layoutkit.drc.foundry_deck import Deck, run_deck

    deck = Deck(Path(params["drc_rules_path"]), params.get("deck_variables", {}), params["timeout_s"])
    return run_deck(layout, cell, deck, options)


def _draw(cell: object, process: object, report: object, params: dict, sources: dict) -> None:
    from layoutkit.view.render import View, render, save

    region = tuple(params["region"]) if "region" in params else None
    save(render(cell, process, View(region=region), report.markers()), params["image_path"], sources)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "drc.run_check", execute, violates=lambda data: not data["passed"]))
