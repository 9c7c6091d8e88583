"""Check the current layout against design rules: the technology's own, or a JSON or YAML rule file."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the verdict, the violations with their locations, and what could not be checked."""
    import klayout.db as kdb

    from layoutkit import technology
    from layoutkit.cells import choose_cell
    from layoutkit.check.drc import check, select_rules
    from layoutkit.check.rule_files import with_rules_of
    from layoutkit.errors import GeometryError
    from layoutkit.files import check_target
    from layoutkit.workspace import current_layout

    if "region" in params:
        left, bottom, right, top = params["region"]
        if left >= right or bottom >= top:
            raise GeometryError(
                f"region must be left < right and bottom < top, got {params['region']}",
                details={"param_name": "region", "provided_value": params["region"]},
            )
    process = technology.load(params["technology"])
    if "drc_rules_path" in params:
        process = with_rules_of(params["drc_rules_path"], process)
    select_rules(process, params.get("rule_ids"))
    if "report_path" in params:
        check_target(params["report_path"])
    layout, _ = current_layout(params.get("layout_path"), params.get("workspace"))
    cell = choose_cell(layout, params.get("cell_name"))
    report = check(
        layout,
        cell,
        process,
        rule_ids=params.get("rule_ids"),
        max_violations=params["max_violations"],
        region=kdb.DBox(*params["region"]) if "region" in params else None,
    )
    data = report.to_data()
    if "report_path" in params:
        report.write_lyrdb(params["report_path"])
        data["report_path"] = params["report_path"]
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "drc.run_check", execute, violates=lambda data: not data["passed"]))
