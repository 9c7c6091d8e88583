"""The report of a build as one HTML page: drawing, circuit, checks and figures. It loads nothing from elsewhere.

The page holds its data as JSON in which markup is escaped; its security policy allows only its own script and style, by
their digests. Without the script it shows the picture and all tables. Only what ``with_times`` fills in differs between
two builds of the same input.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from layoutkit.view.html_parts import digest, rendered, safe_json
from layoutkit.view.placed_findings import findings_of
from layoutkit.view.report_figures import figures_section
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
        TIMES,
        reproduction_section(inputs),
    ]
    shown = [name for name in _TITLES if name in {"layout", "times"} or any(f'id="{name}"' in s for s in sections)]
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
        counted=_count,
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


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _footer(inputs: ReportInputs) -> str:
    words = [f"{name} {version}" for name, version in inputs.versions.items()]
    layout = inputs.digests.get("layout_sha256")
    return "; ".join([*words, *([f"layout_sha256={layout}"] if layout else ())])
