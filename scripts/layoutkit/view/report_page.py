"""The report of a build as one HTML page: drawing, circuit, checks and figures. It loads nothing from elsewhere.

The page holds its data as JSON in which markup is escaped; its security policy allows only its own script and style,
by their digests. Without the script it shows the picture and all tables. Only what ``with_times`` fills in differs
between two builds of the same input.

One section holds the figures of the layout beside their bounds.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from layoutkit.errors import counted
from layoutkit.view.html_parts import Cell, buttons, digest, net_button, rendered, safe_json, section, table, verdict
from layoutkit.view.report_inputs import findings_of
from layoutkit.view.report_sections import (
    checks_section,
    circuit_section,
    constraints_section,
    matching_section,
    post_layout_section,
    recognition_section,
    reproduction_section,
    times_section,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.view.report_inputs import ReportInputs

    Report = Mapping[str, Any]


TIMES = Markup("<!--times-->")
_FOLDER = Path(__file__).parent
_TITLES = {
    "layout": "Layout",
    "circuit": "Circuit",
    "recognition": "Recognition",
    "constraints": "Constraints",
    "matching": "Matching",
    "checks": "Checks",
    "figures": "Figures",
    "times": "Times",
    "reproduce": "Reproduce",
}


def report_page(inputs: ReportInputs) -> str:
    """Return the page as HTML text, without the times of the stages: ``with_times`` adds them."""
    report = inputs.report
    findings = findings_of(report)
    sections = [
        circuit_section(inputs),
        recognition_section(inputs),
        constraints_section(inputs),
        matching_section(inputs),
        post_layout_section(inputs),
        checks_section(inputs),
        figures_section(inputs),
        TIMES if inputs.command else "",
        reproduction_section(inputs),
    ]
    always = {"layout", "times"} if inputs.command else {"layout"}
    shown = [name for name in _TITLES if name in always or any(f'id="{name}"' in s for s in sections)]
    sign, kind, verdict = _verdict(inputs)
    script, style = ((_FOLDER / f"report_page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    page = rendered(
        "report_page.html",
        cell=inputs.circuit["name"],
        technology=report["technology"],
        verdict=verdict,
        verdict_class=kind,
        verdict_sign=sign,
        links={name: _TITLES[name] for name in shown},
        tiles=_tiles(inputs),
        alt=_description(inputs),
        findings=findings,
        faults=len(inputs.faults),
        unchecked=False,
        counted=counted,
        picture=b64encode(inputs.picture).decode(),
        sections=[section for section in sections if section],
        footer=_footer(inputs),
        data=safe_json({**inputs.drawing, **inputs.nets, "findings": findings}),
        script=script,
        style=style,
        script_digest=digest(script),
        style_digest=digest(style),
    )
    return str(page)


def with_times(page: str, stages: Sequence[Mapping[str, Any]]) -> str:
    """Return the page with the times of the stages of this build, in one line of their own."""
    return str(page).replace(str(TIMES), times_section(stages), 1)


def _verdict(inputs: ReportInputs) -> tuple[str, str, str]:
    """Return sign, class and words of the verdict."""
    left = inputs.report.get("remaining_stages", ())
    if inputs.faults:
        return "✗", "bad", "not clean"
    if left:
        return "…", "warn", "not finished"
    if inputs.report.get("replaced_devices"):
        return "✓", "warn", "clean, complete with replaced devices"
    return "✓", "good", "clean"


def _description(inputs: ReportInputs) -> str:
    box, unit = inputs.drawing["box"], inputs.drawing["unit"]
    size = f"{(box[2] - box[0]) * unit:g} by {(box[3] - box[1]) * unit:g} micrometres"
    return f"Layout of {inputs.circuit['name']}, {size}, {len(inputs.circuit['devices'])} devices"


def _tiles(inputs: ReportInputs) -> list[tuple[str, str, str]]:
    """Return the main figures: name, value and a remark."""
    report = inputs.report
    sizes, placement = report.get("metrics", {}).get("metrics", {}), report.get("placement", {})
    found: list[tuple[str, str, str]] = []
    if sizes:
        size = f"{sizes['width']:g} \N{MULTIPLICATION SIGN} {sizes['height']:g}"
        found.append(("Size", size, f"µm; {sizes['total_area']:,.0f} µm²"))
    if placement:
        found.append(
            ("Modules over box", f"{100 * placement['utilisation']:.0f} %", f"sides {placement['aspect']:g} : 1")
        )
    devices = inputs.circuit["devices"]
    if devices:
        found.append(("Devices", str(len(devices)), f"{report['circuit']['net_count']} nets"))
    if "routing" in report:
        routing = report["routing"]
        found.append(("Nets routed", f"{routing['routed']} of {routing['total_nets']}", f"{routing['via_count']} vias"))
    if "drc" in report:
        drc = report["drc"]
        found.append(
            (
                "DRC violations",
                str(drc["total_violations"]),
                f"{drc['rules_checked']} rules, {len(drc['rules_unchecked'])} unchecked",
            )
        )
    if "lvs" in report:
        lvs = report["lvs"]
        found.append(
            (
                "LVS",
                "matched" if lvs["matched"] else f"{len(lvs['mismatches'])} mismatches",
                lvs["verdict"] if lvs["matched"] else "complete" if lvs["complete"] else "not complete",
            )
        )
    if "constraints" in report:
        plan = report["constraints"]
        found.append(("Constraints", f"{plan['obeyed']} obeyed", f"{plan['not_obeyed']} not"))
    return found


def _footer(inputs: ReportInputs) -> str:
    words = [f"{name} {version}" for name, version in inputs.versions.items()]
    layout = inputs.digests.get("layout_sha256")
    return "; ".join([*words, *([f"layout_sha256={layout}"] if layout else ())])


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
        width, height = (float(each) for each in str(outline).replace("um", "").replace("u", "").split("x"))
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
