"""Join points of the current layout by wires and vias, around everything that is already drawn."""

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict, context: dict) -> dict:
    """Return the route of every net, or why it has none; successful nets are drawn into the workspace's layout."""
    from layoutkit.layout.cells import check_flat_size, choose_cell, fresh_cell, store_cell
    from layoutkit.layout.workspace import Workspace
    from layoutkit.layout.workspace_record import check_fits
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.route_in_layout import check_routes, report, route_in_layout
    from layoutkit.tools.routing_request import read_job

    workspace, name = Workspace(params.get("workspace")), params.get("cell_name")
    given = CurrentLayout(params) if "layout_path" in params else None
    process = workspace.technology(given.technology().path if given and given.workspace else params.get("technology"))
    job = read_job(process, params)
    source = given.read() if given else None
    if source is not None:
        check_fits(source, process, given.path)
    with workspace.update_layout(process.dbu_um, process) as layout:
        if source is not None:
            cell = store_cell(layout, choose_cell(source, name))
        elif layout.cells() == 0:
            cell = fresh_cell(layout, name or "TOP")
        else:
            cell = choose_cell(layout, name)
        check_flat_size(cell)
        routed = route_in_layout(layout, cell, job)
        drc = check_routes(layout, cell, process, routed.result)
        cell_name = cell.name
    saved = workspace.saved
    return {
        **report(job, routed.result),
        "drc": drc,
        "layout_path": str(workspace.layout_path),
        "layout_sha256": saved.sha256,
        "cell_name": cell_name,
        "technology": process.name,
        "warnings": [*job.warnings, *saved.warnings],
    }


def violates(data: dict) -> bool:
    """Return whether a net failed or the drawn routes break a rule."""
    return data["routing_stats"]["failed_count"] > 0 or not data["drc"]["passed"]


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.route_signal_nets_basic", execute, violates=violates))
