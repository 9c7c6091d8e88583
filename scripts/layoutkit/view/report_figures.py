"""The figures of a layout beside their bounds, as a section of a report page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.view.html_parts import Cell, buttons, net_button, section, table, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.view.report_inputs import ReportInputs

    Report = Mapping[str, Any]

USUAL_ASPECT = 2.0
LEAST_UTILISATION = 0.70
MOST_MISMATCH = 0.02


def figures_section(inputs: ReportInputs) -> str:
    """Return the figures of the layout beside their bounds, the mirrored nets and the wires."""
    report = inputs.report
    return section(
        "figures",
        "Figures and bounds",
        table("Figures", ("figure", "value", "bound", "kept"), figure_rows(inputs)),
        _mirrored(report),
        table(
            "Vias with a single cut",
            ("net", "via", "x [um]", "y [um]", "why"),
            [[net_button(e["net"]) if "net" in e else "", e["cut"], *e["position"], e["reason"]]
             for e in report.get("routing", {}).get("single_cuts", ())],
        ),
        table(
            "Metal",
            ("layer", "area [um2]", "length of wires [um]"),
            [[each["layer"], each["area"], each["length"]] for each in report.get("metrics", {}).get("wires", ())],
        ),
    )  # fmt: skip


def figure_rows(inputs: ReportInputs) -> list[list[Cell]]:
    """Return name, value, bound and whether it is kept of each figure."""
    report = inputs.report
    placement, routing = report.get("placement", {}), report.get("routing", {})
    sizes = report.get("metrics", {}).get("metrics", {})
    rows: list[list[Cell]] = []

    def add(name: str, value: Cell, bound: str = "", kept: bool | None = None) -> None:
        rows.append([name, value, bound, "" if kept is None else verdict(kept, "yes" if kept else "no")])

    if sizes:
        add("width x height [um]", f"{sizes['width']:g} x {sizes['height']:g}")
        add("area [um2]", sizes["total_area"])
    outline, aspect = inputs.options.get("outline"), inputs.options.get("aspect") or USUAL_ASPECT
    if outline:
        width, height = (float(each) for each in str(outline).split("x"))
        inside = sizes and sizes["width"] <= width + 1e-6 and sizes["height"] <= height + 1e-6
        add("outline [um]", f"{sizes.get('width')} x {sizes.get('height')}", f"at most {outline}", bool(inside))
    elif placement:
        add(
            "longer over shorter side", placement["aspect"], f"at most {aspect:g}", placement["aspect"] <= aspect + 1e-3
        )
    if placement:
        used = placement["utilisation"]
        many = len(inputs.circuit["devices"]) >= 8
        add(
            "module area over box",
            used,
            f"at least {LEAST_UTILISATION:g} (from 8 devices on)",
            used >= LEAST_UTILISATION if many else None,
        )
        outside = [each["port"] for each in placement["ports"] if not each["at_boundary"]]
        add("ports off the boundary", len(outside), "0", not outside)
    if routing:
        open_nets = routing["total_nets"] - routing["routed"]
        add("nets not routed", open_nets, "0", not open_nets)
        least = routing.get("wire_length_bound")
        add(
            "wire length [um]",
            routing.get("total_wire_length"),
            f"cannot be below {least:g}" if least is not None else "",
        )
        add("vias", routing.get("via_count"))
        single = routing.get("single_cuts", ())
        add("vias with a single cut", len(single), "0 where two fit", all(each["reason"] for each in single))
        mirrored = routing.get("mirrored", ())
        if mirrored:
            exact = sum(each["exact"] for each in mirrored)
            add("nets with exactly mirrored wires", f"{exact} of {len(mirrored)}", "all", exact == len(mirrored))
            found = [each.get("mismatch", {}).get("capacitance") for each in mirrored if len(each["nets"]) > 1]
            worst = max((value for value in found if value is not None), default=None)
            add(
                "largest mismatch of C of a pair [%]",
                "not measured" if worst is None else 100 * worst,
                f"at most {100 * MOST_MISMATCH:g}",
                None if worst is None else worst <= MOST_MISMATCH,
            )
    for name, text in (("drc", "design rule violations"), ("lvs", "LVS mismatches")):
        if name in report:
            count = report["drc"]["total_violations"] if name == "drc" else len(report["lvs"]["mismatches"])
            add(text, count, "0", not count)
    if report.get("modules"):
        symmetric = sum(module["symmetric"] for module in report["modules"])
        add("modules that are their own mirror image", f"{symmetric} of {len(report['modules'])}")
    return rows


def _mirrored(report: Report) -> str:
    def pair(values: Sequence[float] | None) -> str:
        return " / ".join(f"{value:g}" for value in values or ())

    rows = [
        [buttons(net_button(net) for net in each["nets"]), verdict(each["exact"], "yes" if each["exact"] else "no"),
         pair(each["wire_length"]), pair(each["via_count"]), pair(each.get("capacitance_ff")),
         100 * each["mismatch"]["capacitance"] if each.get("mismatch", {}).get("capacitance") is not None else None,
         each["wires_error"], each["mirror_error"], each.get("reason", "")]
        for each in report.get("routing", {}).get("mirrored", ())
    ]  # fmt: skip
    heads = (
        "nets",
        "wires exact",
        "length [um]",
        "vias",
        "C [fF]",
        "mismatch of C [%]",
        "error of wires",
        "with modules",
        "why not",
    )
    return table("Nets that should mirror each other or themselves", heads, rows)
