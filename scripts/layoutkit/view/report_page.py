"""The report of a build as one HTML page: drawing, circuit, checks and figures. It loads nothing from elsewhere.

The page holds its data as JSON in which markup is escaped; its security policy allows only its own script and style,
by their digests. Without the script it shows the picture and all tables. Only what ``with_times`` fills in differs
between two builds of the same input.

It is made from the files of a build and from findings with their places.
Findings are what DRC, LVS and the other checks found, and notes that are no faults.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.replaced_devices import in_words
from layoutkit.errors import counted
from layoutkit.templates import rendered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
        data={**inputs.drawing, **inputs.nets, "findings": findings},
        script=script,
        style=style,
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


@dataclass(frozen=True)
class ReportInputs:
    """What a page shows.

    Attributes:
        report: Report of the build, as ``summary.json`` has it; parts of stages that were not run are missing.
        circuit: The circuit as JSON data, as ``circuit.json`` has it; without devices, none is listed.
        drawing: The layout, as ``view.drawing_data.drawing_data`` returns it.
        nets: Nets, devices and labels, as ``flow.drawn_nets.nets_data`` returns them; without them nothing is named.
        picture: PNG file for print and for readers without scripts.
        faults: One sentence for each fault; none if the layout is clean.
        command: Command that builds the layout again; empty for a layout that was only checked.
        options: Options of the build, by name.
        versions: Name and version of each program.
        digests: SHA-256 of layout, circuit and inputs, by name.
    """

    report: Mapping[str, Any]
    circuit: Mapping[str, Any]
    drawing: Mapping[str, Any]
    picture: bytes
    nets: Mapping[str, Any] = field(default_factory=lambda: {"nets": [], "devices": [], "labels": []})
    faults: Sequence[str] = ()
    command: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str | None] = field(default_factory=dict)


MOST = 500
_POINT_UM = 0.2


def findings_of(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return at most ``MOST`` findings, faults first.

    Each has ``rule`` (the id of a design rule, or what was found), ``text``, ``fault`` and, where it has a place,
    ``box``: left, bottom, right, top [um].
    """
    found = [
        *_of_drc(report.get("drc", {})),
        *_of_lvs(report.get("lvs", {})),
        *_of_routing(report.get("routing", {})),
        *_of_currents(report.get("currents", {})),
        *_of_review(report.get("review", {})),
        *_of_modules(report.get("modules", ())),
    ]
    return sorted(found, key=lambda each: not each["fault"])[:MOST]


def _finding(rule: str, text: str, box: object = None, *, fault: bool = True) -> dict[str, Any]:
    return {"rule": rule, "text": text, "fault": fault, **({"box": box} if box is not None else {})}


def _around(x: float | None, y: float | None) -> list[float] | None:
    """Return a small box around a place. [um]"""
    if x is None or y is None:
        return None
    half = _POINT_UM / 2
    return [round(value, 6) for value in (x - half, y - half, x + half, y + half)]


def _of_drc(drc: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for rule in drc.get("violations", ()):
        text, fault = rule["rule_description"], rule["severity"] == "error"
        for place in rule["locations"]:
            distance = f" ({place['distance']:g} um)" if place.get("distance") is not None else ""
            box = place.get("box") or _around(place["x"], place["y"])
            yield _finding(rule["rule_id"], f"{text}{distance}", box, fault=fault)
        if rule["count"] > len(rule["locations"]):
            missing = rule["count"] - len(rule["locations"])
            yield _finding(rule["rule_id"], f"{missing} more, see drc.lyrdb", fault=fault)
    for rule in drc.get("rules_unchecked", ()):
        yield _finding(rule["rule_id"], f"not checked: {rule['reason']}")
    for layer in drc.get("layers_unchecked", ()):
        yield _finding("layer", f"no rule judges {layer['name'] or layer['layer']}")
    if more := layers_not_listed(drc):
        yield _finding("layer", f"no rule judges {more} more layers")


def layers_not_listed(verdict: Mapping[str, Any]) -> int:
    """Return how many unchecked layers a verdict counts beyond those that it lists."""
    shown = len(verdict.get("layers_unchecked", ()))
    return int(verdict.get("layers_unchecked_count", shown)) - shown


def _of_lvs(lvs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in lvs.get("mismatches", ()):
        kind = f"LVS {each['kind'].replace('_', ' ')}"
        places = [_around(entry["x"], entry["y"]) for entry in each["layout"]]
        known = [box for box in places if box is not None]
        for box in known or places[:1] or (None,):
            yield _finding(kind, each["message"], box)
    for layer in lvs.get("layers_unchecked", ()):
        yield _finding("LVS layer", f"extraction does not read {layer['name'] or layer['layer']}")
    if more := layers_not_listed(lvs):
        yield _finding("LVS layer", f"extraction does not read {more} more layers")
    for black_box in lvs.get("not_compared", ()):
        yield _finding("LVS black box", f"{black_box['instance']} ({black_box['cell']}) was not compared")


def _of_routing(routing: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for net in routing.get("failed", ()):
        blocked = net.get("blocked_by", ())
        yield _finding(f"open {net['net']}", net["reason"], blocked[0]["box"] if blocked else None)
    for cut in routing.get("single_cuts", ()):
        text = f"{cut.get('net', '')}: {cut['reason']}"
        yield _finding(f"single {cut['cut']}", text, _around(*cut["position"]), fault=False)
    for each in routing.get("unequal_metal", ()):
        text = f"{each['net']} covers gates of {', '.join(each['devices'])} on {each['layer']}"
        yield _finding("unequal metal", text, each["box"], fault=False)


def _of_currents(currents: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for net in currents.get("nets", ()):
        if net["verdict"] == "failed":
            yield _finding(f"current {net['net']}", net.get("text", "its metal is too weak"), net.get("box"))


def _of_review(review: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in review.get("findings", ()):
        for one in (each, *each.get("places", ())):
            yield _finding(f"review {each['id']}", f"{each['severity']}: {one['why']}", one["place"], fault=False)


def _of_modules(modules: Any) -> Iterator[dict[str, Any]]:
    for module in modules:
        for each in () if module["symmetric"] else module["asymmetries"]:
            what = each.get("what") or f"{each['area_um2']:g} um2 of {each['layer']} have no mirror image"
            yield _finding("asymmetry", f"{module['name']}: {what}", _around(*each["place"]), fault=False)
