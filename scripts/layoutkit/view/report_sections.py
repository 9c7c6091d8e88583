"""The sections of a report page: circuit, constraints, matching, checks, times, how to reproduce the layout.

Each function takes the report of a build (``summary.json``) and returns HTML. What is not in the report is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from layoutkit.circuit.replaced_devices import in_words
from layoutkit.view.html_parts import (
    Cell,
    bullets,
    buttons,
    device_button,
    net_button,
    remark,
    section,
    table,
    verdict,
)
from layoutkit.view.report_inputs import layers_not_listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.view.report_inputs import ReportInputs

    Report = Mapping[str, Any]

SYMMETRIC = (
    "Symmetric: everything drawn, also the wires over the devices, is its own mirror image. The centroid error is that "
    "of the devices alone, so that it can be 0 where the wires are not symmetric."
)
_UNITS = {"w": ("um", 1e6), "l": ("um", 1e6), "r": ("ohm", 1.0), "c": ("fF", 1e15)}


def circuit_section(inputs: ReportInputs) -> str:
    """Return the devices and the nets."""
    report = inputs.report
    if not inputs.circuit["devices"]:
        return ""
    module_of = {name: module["name"] for module in report.get("modules", ()) for name in module["devices"]}
    rows = []
    nets: dict[str, list[str]] = {}
    for device in inputs.circuit["devices"]:
        for terminal, net in device["terminals"].items():
            nets.setdefault(net, []).append(f"{device['id']}.{terminal}")
        joined = ", ".join(f"{terminal}={net}" for terminal, net in device["terminals"].items())
        rows.append(
            [
                device_button(device["id"]),
                device["model"],
                _sizes(device["params"]),
                joined,
                module_of.get(device["id"]),
            ]
        )
    ports = {entry["port"]: entry for entry in report.get("placement", {}).get("ports", ())}
    mirrored = {net: entry for entry in report.get("routing", {}).get("mirrored", ()) for net in entry["nets"]}
    return section(
        "circuit",
        "Circuit",
        table(f"Devices of {inputs.circuit['name']}", ("device", "model", "size", "nets", "module"), rows),
        table(
            "Nets",
            ("net", "port", "terminals", "mirrored"),
            [
                [net_button(net), _port(ports.get(net)), ", ".join(pins), _mirrored_word(mirrored.get(net))]
                for net, pins in sorted(nets.items())
            ],
        ),
        _replaced(report),
        _modules(report),
    )


def _replaced(report: Report) -> str:
    """Return the devices that are others than the netlist names."""
    rows = [
        [
            buttons(device_button(name) for name in each["devices"]),
            in_words(each["before"]),
            in_words(each["after"]),
            each["reason"].replace("_", " "),
        ]
        for each in report.get("replaced_devices", ())
    ]
    heads = ("devices", "in the netlist", "drawn as", "why")
    return table("Replaced devices", heads, rows) if rows else ""


def _sizes(params: Mapping[str, float]) -> str:
    words = []
    for name, value in params.items():
        unit, factor = _UNITS.get(name, ("", 1.0))
        words.append(f"{name}={value * factor:.5g}{' ' + unit if unit else ''}")
    return ", ".join(words)


def _port(entry: Mapping[str, Any] | None) -> str:
    return "" if entry is None else f"{entry['direction']}, {entry['side']}, {entry['layer']}"


def _mirrored_word(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return ""
    return "wires exactly" if entry["exact"] else "not exactly"


def _modules(report: Report) -> str:
    rows = [
        [
            module["name"],
            module["type"].replace("_", " "),
            buttons(device_button(name) for name in module["devices"]),
            module["pattern"],
            verdict(module["symmetric"], "yes" if module["symmetric"] else "no"),
            module["centroid_error"],
        ]
        for module in report.get("modules", ())
    ]
    heads = ("module", "type", "devices", "pattern", "symmetric", "centroid error [um]")
    return table("Modules", heads, rows) + remark(SYMMETRIC) if rows else ""


def recognition_section(inputs: ReportInputs) -> str:
    """Return what was understood of the circuit: supplies and groups with their reasons, symmetry, near misses."""
    found = inputs.report.get("recognition")
    if found is None:
        return ""
    supplies = [[net_button(each["net"]), each["kind"], each["reason"]] for each in found["supplies"]]
    groups = [
        [each["id"], each["what"], buttons(device_button(name) for name in each["devices"])] for each in found["groups"]
    ]
    lists = {
        "Symmetry": found["symmetry"],
        "Groups that share devices": found["cut"],
        "Groups that reach across repeated cells": found["across_cells"],
        "Alike, and yet not matched": found["not_matched"],
        "Cells that the netlist does not define": found["undefined_cells"],
    }
    marked = {
        "source and drain exchanged in the netlist": found["drain_source_exchanged"],
        "carry current both ways": found["carry_both_ways"],
    }
    ends: list[list[Cell]] = [[head, buttons(map(device_button, names))] for head, names in marked.items() if names]
    note = Markup(
        '<p class="note">Found from structure; names are hints. To correct it, state <code>supplies</code>, '
        "<code>matching</code> or <code>symmetry</code> in the constraints.</p>"
    )
    return section(
        "recognition",
        "Recognition",
        note,
        table("Supplies", ("net", "taken for", "why"), supplies),
        table("Groups", ("group", "what", "devices"), groups),
        *(Markup("<h3>{}</h3>{}").format(head, bullets(lines)) for head, lines in lists.items() if lines),
        table("Drain and source", ("transistors", "devices"), ends) if ends else "",
    )


def constraints_section(inputs: ReportInputs) -> str:
    """Return every constraint with whether the layout obeys it, those that are not obeyed first."""
    data = inputs.report.get("constraints")
    if data is None:
        return ""
    outcomes = sorted(data["outcomes"], key=lambda each: (each["obeyed"] is True, each["obeyed"] is None))
    rows = [
        [verdict(each["obeyed"], {True: "obeyed", False: "not obeyed"}.get(each["obeyed"], "")), each["constraint"],
         ", ".join(each["names"]), each["reason"]]
        for each in outcomes
    ]  # fmt: skip
    text = Markup("<p>From {}: {} obeyed, {} not.</p>").format(data["source"], data["obeyed"], data["not_obeyed"])
    return section(
        "constraints", "Constraints", text, table("Constraints", ("obeyed", "constraint", "names", "why"), rows)
    )


def post_layout_section(inputs: ReportInputs) -> str:
    """Return the simulation before and after layout, the parasitics of nets and how unequal mirrored nets are."""
    figures = inputs.report.get("post_layout")
    if figures is None:
        return ""
    simulation, parasitics = figures["simulation"], figures["parasitics"]
    measured: list[list[Cell]] = [
        [corner["corner"], each["name"], each.get("schematic"), each.get("extracted"), each.get("change_percent"),
         each["unit"]]
        for corner in simulation.get("corners", ()) for each in corner["measurements"]
    ]  # fmt: skip
    nets: list[list[Cell]] = [[net_button(each["net"]), each["total_ff"]] for each in parasitics.get("nets", ())]
    pairs: list[list[Cell]] = [
        [buttons(net_button(net) for net in each["nets"]), each["c_mismatch_percent"], each["r_mismatch_percent"]]
        for each in parasitics.get("pairs", ())
    ]
    models = simulation.get("models", {}).get("source", "")
    generic = " The models are those of no real process." if models == "generic" else ""
    note = remark(f"One test bench on the netlist and on the extracted layout.{generic}")
    return section(
        "post-layout",
        "After layout",
        note,
        table("Simulation", ("corner", "measurement", "schematic", "layout", "change [%]", "unit"), measured),
        table("Capacitance", ("net", "total [fF]"), nets),
        table("Pairs of nets", ("nets", "mismatch of C [%]", "mismatch of R [%]"), pairs),
        bullets(dict.fromkeys([*simulation.get("unchecked", ()), *parasitics.get("unchecked", ())])),
    )


def matching_section(inputs: ReportInputs) -> str:
    """Return what differs between the devices of each matched group, and the offsets predicted from it."""
    matching = inputs.report.get("matching")
    if matching is None:
        return ""
    rows: list[list[Cell]] = []
    for group in matching["groups"]:
        unequal = [name.replace("_", " ") for name, equal in group["equal"].items() if not equal]
        centroid = max(abs(group["centroid_error_x_um"]), abs(group["centroid_error_y_um"]))
        for offset in group["predicted_offsets"] or [{}]:
            names = offset.get("devices", [device["id"] for device in group["devices"]])
            symmetric = verdict(group["symmetric"], "yes" if group["symmetric"] else "no")
            differ, unchecked = ", ".join(unequal) or "nothing", "; ".join(offset.get("unchecked", ()))
            devices = buttons(device_button(name) for name in names)
            rows += [[devices, *_offset_cells(offset), centroid, symmetric, differ, unchecked]]
    heads = (
        "devices", "predicted offset", "stress", "straps", "junctions", "random, 1 sigma", "centroid error [um]",
        "symmetric", "differ in", "not modelled",
    )  # fmt: skip
    unmeasured = [f"{', '.join(each['devices'])}: not found {each['missing']}" for each in matching["unmeasured"]]
    note = remark(
        "The sum of stress, straps and junctions as drawn, as far as they are modelled; a part in "
        "brackets is known and not counted. What the last column names is in no figure. Random mismatch comes on top. "
        + SYMMETRIC
    )
    return section("matching", "Matching", note, table("Matched groups", heads, rows), bullets(unmeasured))


def _offset_cells(offset: Mapping[str, Any]) -> list[Cell]:
    unit = offset.get("unit", "")
    parts = offset.get("contributions", {})
    cells: list[Cell] = [_signed(offset.get("value"), unit)]
    for name in ("stress", "strap", "junction"):
        part = parts.get(name, {})
        values = part.get("values") or []
        text = ", ".join(_signed(value, unit) for value in values)
        cells.append(f"({text})" if text and not part.get("counted") else text)
    sigma = offset.get("random_sigma") or {}
    value = sigma.get("value")
    cells.append("" if value is None else f"{value:.3g} {sigma.get('unit', '')}")
    return cells


def _signed(value: float | None, unit: str) -> str:
    return "not predicted" if value is None else f"{value + 0.0:+.3f} {unit}"


def checks_section(inputs: ReportInputs) -> str:
    """Return the verdicts of DRC, LVS, currents and routing, and what was not checked."""
    report = inputs.report
    parts = [_verdicts(report), Markup("<h3>Not checked</h3>"), _unchecked(report)]
    drc = report.get("drc")
    if drc is not None and drc["violations"]:
        parts.append(
            table(
                "Violated design rules",
                ("rule", "what it requires", "severity", "count"),
                [
                    [each["rule_id"], each["rule_description"], each["severity"], each["count"]]
                    for each in drc["violations"]
                ],
            )
        )
    lvs = report.get("lvs")
    if lvs is not None and lvs["mismatches"]:
        parts.append(
            table(
                "LVS mismatches",
                ("kind", "what differs", "likely cause"),
                [[each["kind"].replace("_", " "), each["message"], each["cause"]] for each in lvs["mismatches"]],
            )
        )
    parts += [_currents(report), _failed_nets(report)]
    if report.get("warnings"):
        parts += [Markup("<h3>Warnings</h3>"), bullets(report["warnings"])]
    return section("checks", "Checks", *parts)


def _verdicts(report: Report) -> str:
    rows: list[list[Cell]] = []
    if "drc" in report:
        drc = report["drc"]
        text = f"{drc['total_violations']} violations, {drc['rules_checked']} rules checked"
        rows.append(["design rules (DRC)", verdict(drc["passed"], "passed" if drc["passed"] else "not passed"), text])
    if "lvs" in report:
        lvs = report["lvs"]
        text = f"{len(lvs['mismatches'])} mismatches, {lvs['dummies']} dummies"
        rows.append(
            ["layout against netlist (LVS)", verdict(lvs["matched"], "matched" if lvs["matched"] else "differs"), text]
        )
        rows.append(
            [
                "whole layout and netlist compared",
                verdict(lvs["complete"], "yes" if lvs["complete"] else "no"),
                lvs["verdict"],
            ]
        )
    if "review" in report:
        review = report["review"]
        word = "would be signed" if review["would_sign"] else "would not be signed"
        text = f"{review['must']} must and {review['should']} should be mended"
        rows.append(["design review", verdict(review["would_sign"] or None, word), text])
    if "routing" in report:
        routing = report["routing"]
        whole = routing["routed"] == routing["total_nets"]
        rows.append(
            [
                "routing",
                verdict(whole, "all nets" if whole else "open"),
                f"{routing['routed']} of {routing['total_nets']} nets",
            ]
        )
    if "currents" in report:
        currents = report["currents"]
        stated = currents["passed"] + currents["failed"] + currents["unchecked"]
        good = None if not stated else not currents["failed"]
        word = "none stated" if not stated else "carried" if good else "too weak"
        rows.append(
            ["stated currents", verdict(good, word), f"{currents['passed']} passed, {currents['failed']} failed"]
        )
    return table("Verdicts", ("check", "verdict", "figures"), rows)


def _unchecked(report: Report) -> str:
    drc, lvs = report.get("drc", {}), report.get("lvs", {})
    found = [f"rule {each['rule_id']}: {each['reason']}" for each in drc.get("rules_unchecked", ())]
    for name, data, reader in (("DRC", drc, "judged by no rule"), ("LVS", lvs, "not read")):
        found += [
            f"{name}: layer {each['name'] or each['layer']} is {reader}" for each in data.get("layers_unchecked", ())
        ]
        if more := layers_not_listed(data):
            found.append(f"{name}: {more} more layers are {reader}")
        found += [f"{name}: layer {each} was waived" for each in data.get("layers_waived", ())]
    found += [f"black box {each['instance']} ({each['cell']}) was not compared" for each in lvs.get("not_compared", ())]
    currents = report.get("currents", {})
    found += [f"current of {e['net']}: {e['reason']}" for e in currents.get("nets", ()) if e["verdict"] == "unchecked"]
    if currents and all(each["verdict"] == "unstated" for each in currents.get("nets", ())):
        found.append("currents: no current of a net is stated; the table says what the metal carries")
    if "matching" in report:
        entries = {text.split(":")[0] for group in report["matching"]["groups"] for offset in group["predicted_offsets"]
                   for text in offset["unchecked"]}  # fmt: skip
        found += [f"matching: {name} of some groups is not modelled" for name in sorted(entries)]
        unmeasured = report["matching"]["unmeasured"]
        found += [f"matching of {', '.join(each['devices'])}: not found {each['missing']}" for each in unmeasured]
    found += [f"review, {each['id']}: {each['reason']}" for each in report.get("review", {}).get("unjudged", ())]
    found += [text for part in report.get("post_layout", {}).values() for text in part.get("unchecked", ())]
    found += [f"stage {name} was not run" for name in report.get("remaining_stages", ())]
    return bullets(found) or Markup(
        '<p class="good">Nothing: every rule was checked and every drawn layer was read.</p>'
    )


def _currents(report: Report) -> str:
    currents = report.get("currents")
    if currents is None:
        return ""
    rows = [
        [net_button(each["net"]), verdict({"passed": True, "failed": False}.get(each["verdict"]), each["verdict"]),
         each.get("needed_ma"), each.get("carries_ma"), each.get("layer", ""), ", ".join(each.get("unchecked", ()))]
        for each in currents["nets"]
    ]  # fmt: skip
    heads = ("net", "verdict", "needed [mA]", "carries [mA]", "weakest at", "no limit known for")
    note = remark(f"Limits from {currents['limits_from']}; {currents['temperature_c']} degC.")
    return table("Direct current that the metal carries", heads, rows) + note


def _failed_nets(report: Report) -> str:
    failed = report.get("routing", {}).get("failed", ())
    return (
        table("Nets that were not routed", ("net", "why"), [[net_button(e["net"]), e["reason"]] for e in failed])
        if failed
        else ""
    )


def times_section(stages: Sequence[Mapping[str, Any]]) -> str:
    """Return the time of each stage of a build; the only part of the page that differs between two equal builds."""
    longest = max((stage["duration_ms"] for stage in stages), default=0) or 1

    def bar(stage: Mapping[str, Any]) -> Markup:
        return Markup(
            '<svg class="time" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
            '<rect width="{:.1f}" height="8" rx="1"/></svg>'
        ).format(100 * stage["duration_ms"] / longest)

    rows = [[s["name"], s["duration_ms"], s.get("cpu_ms"), s.get("peak_mb"), bar(s)] for s in stages]
    total = ["all", sum(s["duration_ms"] for s in stages), sum(s.get("cpu_ms") or 0 for s in stages), None, ""]
    heads = ("stage", "time [ms]", "CPU [ms]", "memory at most [MB]", "")
    rows.append(total)
    return section("times", "Times", table("Stages of this build", heads, rows)).replace("\n", "")


def reproduction_section(inputs: ReportInputs) -> str:
    """Return the command, versions, options and digests with which the layout can be made again."""
    report = inputs.report
    if not inputs.command:
        return ""
    listed: list[list[Cell]] = [["technology", report["technology"]]]
    listed += [[name, value] for name, value in inputs.versions.items()]
    listed += [[name, Markup("<code>{}</code>").format(value)] for name, value in inputs.digests.items() if value]
    options: list[list[Cell]] = [
        [name, _escaped_value(value)] for name, value in inputs.options.items() if value not in (None, [], ())
    ]
    again = "The same input gives the same bytes: compare sha256sum workspace/layout.gds with the digest below."
    if report.get("placement", {}).get("earlier_places"):
        again = "It places anew, while this layout keeps the places of an earlier build, so that they differ."
    same = remark(f"This writes to the folder workspace of the folder in which it is run. {again}")
    return section(
        "reproduce",
        "How to reproduce",
        same,
        Markup("<pre>{}</pre>").format(inputs.command),
        table("Versions and digests (SHA-256)", ("what", "value"), listed),
        table("Options of the build", ("option", "value"), options),
    )


def _escaped_value(value: Any) -> str:
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 2000 else f"{text[:2000]}..."
