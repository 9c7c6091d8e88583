"""The report of a build as one HTML page: drawing, circuit, checks and figures. It loads nothing from elsewhere.

The page holds its data as JSON in which markup is escaped; its security policy allows only its own script and style,
by their digests. Without the script it shows the picture and all tables. Only what ``with_times`` fills in differs
between two builds of the same input.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.replaced_devices import in_words
from layoutkit.errors import counted
from layoutkit.templates import digest, rendered, safe_json
from layoutkit.view.report_inputs import findings_of, layers_not_listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.view.report_inputs import ReportInputs

    Report = Mapping[str, Any]


TIMES = "<!--times-->"
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
    sign, kind, verdict = _verdict(inputs)
    script, style = ((_FOLDER / f"report_page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    page = rendered(
        "report_page.html",
        cell=inputs.circuit["name"],
        technology=report["technology"],
        verdict=verdict,
        verdict_class=kind,
        verdict_sign=sign,
        titles=_TITLES,
        alt=_description(inputs),
        findings=findings,
        faults=len(inputs.faults),
        unchecked=False,
        counted=counted,
        picture=b64encode(inputs.picture).decode(),
        report=report,
        circuit=inputs.circuit,
        terminals=_terminals(inputs.circuit),
        command=inputs.command,
        options=inputs.options,
        versions=inputs.versions,
        digests=inputs.digests,
        sizes=_sizes,
        in_words=in_words,
        in_json=_in_json,
        layers_not_listed=layers_not_listed,
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
    return page.replace(TIMES, rendered("times.html", stages=stages).replace("\n", ""), 1)


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


def _footer(inputs: ReportInputs) -> str:
    words = [f"{name} {version}" for name, version in inputs.versions.items()]
    layout = inputs.digests.get("layout_sha256")
    return "; ".join([*words, *([f"layout_sha256={layout}"] if layout else ())])


_UNITS = {"w": ("um", 1e6), "l": ("um", 1e6), "r": ("ohm", 1.0), "c": ("fF", 1e15)}
_MOST_OF_AN_OPTION = 2000
"""Characters of an option that the page shows."""


def _terminals(circuit: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the terminals on each net, sorted by net."""
    found: dict[str, list[str]] = {}
    for device in circuit["devices"]:
        for terminal, net in device["terminals"].items():
            found.setdefault(net, []).append(f"{device['id']}.{terminal}")
    return dict(sorted(found.items()))


def _sizes(params: Mapping[str, float]) -> str:
    words = []
    for name, value in params.items():
        unit, factor = _UNITS.get(name, ("", 1.0))
        words.append(f"{name}={value * factor:.5g}{' ' + unit if unit else ''}")
    return ", ".join(words)


def _in_json(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_OF_AN_OPTION else f"{text[:_MOST_OF_AN_OPTION]}..."
