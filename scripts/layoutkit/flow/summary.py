"""The report of a build: faults and constraints as text, a page for the terminal, and figures, also after layout.

The figures of each matched group, and which modules are symmetric, are measured in the finished layout, with all wires.
The groups are those of the constraints; the circuit says which net each drain is on.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraints import Outcome
from layoutkit.circuit.replaced_devices import replaced_lines
from layoutkit.errors import LayoutkitError, counted
from layoutkit.flow.design import RECOGNITION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.extract.current_limits import NetVerdict
    from layoutkit.extract.strap_loss import FingerLoss
    from layoutkit.flow.design import Design
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.placing import PlacedModules, TriedPlacement
    from layoutkit.flow.routing_job import Routes
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.parasitics.parasitic_extraction import PexOptions
    from layoutkit.technology import Technology


SHOWN = 5
FEW = 2  # where the verdicts and findings must stay on the screen
OFFSET_STEP = 0.01
"""Step to which offsets are shown. [mV, %]"""


def matching_data(
    constraints: Constraints, circuit: Circuit, result: LvsResult, cell: kdb.Cell, straps: Sequence[FingerLoss]
) -> dict[str, Any]:
    """Return the figures of every matched group of transistors, as ``eval.compute_metrics`` gives them.

    Args:
        constraints: Hold the matched groups.
        circuit: What was laid out.
        result: Comparison of ``cell`` with the circuit; its extraction is measured.
        cell: The finished layout.
        straps: What the metal on sources and drains costs each finger of ``cell``.
    """
    from layoutkit.extract.matched_groups import MatchingReport, MeasuredGroup
    from layoutkit.flow.groups import cascodes_of

    report = MatchingReport(result.extraction, cell, straps)
    number_of = {name: number for number, name in result.nets.items()}
    for number, net in result.extraction.nets.items():
        if net.name in result.net_pairs:
            number_of[result.net_pairs[net.name]] = number
    groups: list[MeasuredGroup] = []
    unmeasured: list[dict[str, Any]] = []
    for wanted in constraints.matching:
        devices = [circuit.device(name) for name in wanted.devices]
        if len(devices) < 2 or not all(device.is_mos for device in devices):
            continue
        missing = [device.id for device in devices if device.id not in report.fingers]
        if missing:
            unmeasured.append({"devices": list(wanted.devices), "missing": missing})
            continue
        tops = cascodes_of(circuit, wanted.devices)
        for alike in ([d for d in devices if d.id not in tops], [d for d in devices if d.id in tops]):
            drains = {d.id: number_of[d.terminals["d"]] for d in alike if d.terminals["d"] in number_of}
            if alike:
                groups.append(MeasuredGroup(tuple(d.id for d in alike), drains=drains))
    return {"groups": report.measure(groups), "unmeasured": unmeasured}


def modules_data(placed: PlacedModules, technology: Technology, cell: kdb.Cell) -> list[dict[str, Any]]:
    """Return what was drawn for each group of devices as JSON data, its symmetry as measured in ``cell``. [um]"""
    return [_module(item, placed, technology, cell) for item in placed.drawn]


def _module(item: Drawn, placed: PlacedModules, technology: Technology, cell: kdb.Cell) -> dict[str, Any]:
    from layoutkit.extract.surroundings import mirror_image
    from layoutkit.flow.symmetric_modules import centroid_error

    channels: dict[kdb.Box, str] = {}
    idle: set[kdb.Box] = set()
    for gate in item.module.gates:
        box = placed.place_of(item.module, gate.box)
        if gate.device:
            channels[box] = gate.device
        else:
            idle.add(box)
    image = mirror_image(cell, technology, channels, idle)
    return {
        "name": item.module.name,
        "type": item.group.type,
        "devices": list(item.module.devices),
        "symmetric": image.symmetric,
        "asymmetries": [dict(each) for each in image.differences],
        "pattern": item.module.pattern,
        "centroid_error": technology.to_um(centroid_error(item.module, item.group)),
        **_dummies(item),
    }


def _dummies(item: Drawn) -> dict[str, Any]:
    """Return how many dummies each end of the rows has, and why; nothing for a block that is no matched group."""
    if item.dummies is None or len(item.module.devices) < 2:
        return {}
    return {"dummies": {"at_each_end": item.dummies.count, "reason": item.dummies.reason}}


def largest_offset(groups: Sequence[Mapping[str, Any]], unit: str = "") -> float | None:
    """Return the largest predicted offset or current error of matched groups, either way; None where none is predicted.

    Args:
        groups: Of the ``matching`` of a report.
        unit: ``mV`` for offsets, ``%`` for errors of mirrors, "" for both.
    """
    offsets = [each for group in groups for each in group["predicted_offsets"] if unit in ("", each["unit"])]
    return max((abs(each["value"]) for each in offsets if each["value"] is not None), default=None)


def lines_of_groups(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line for a terminal on each set of devices whose offset was predicted."""
    found = []
    for group in groups:
        unequal = [name.replace("_", " ") for name, equal in group["equal"].items() if not equal]
        rest = f"; differ in {', '.join(unequal)}" if unequal else ""
        for offset in group["predicted_offsets"]:
            left_out = [_left_out(text, offset) for text in offset["unchecked"]]
            unknown = f"; not modelled: {', '.join(left_out)}" if left_out else ""
            found.append(f"{' '.join(offset['devices'])}: {_predicted(offset)}{unknown}{rest}")
            rest = ""
    return found


def _predicted(offset: Mapping[str, Any]) -> str:
    """Return an offset with the effects that it is the sum of; it is no zero, only smaller than what is shown."""
    value, unit = offset["value"], offset["unit"]
    if value is None:
        return "not predicted"
    counted = " and ".join(name for name, part in offset["contributions"].items() if part["counted"])
    size = f"{value:+.2f} {unit}" if abs(value) >= OFFSET_STEP / 2 else f"less than {OFFSET_STEP:g} {unit}"
    return f"{size} from {counted}"


def _left_out(unchecked: str, offset: Mapping[str, Any]) -> str:
    name = unchecked.partition(":")[0]
    return f"{name} ({offset['centroid_distance_um']:.3g} um between centroids)" if name == "distance" else name


def faults(report: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each fault of the layout that the finished stages found; none if it is clean."""
    judges = {"routing": _routing_faults, "currents": _current_faults, "drc": _drc_faults, "lvs": _lvs_faults}
    return [text for name, judge in judges.items() if name in report for text in judge(report[name])]


def _routing_faults(routing: Mapping[str, Any]) -> list[str]:
    failed = routing["failed"]
    if not failed:
        return []
    names = ", ".join(f"{entry['net']} ({entry['reason']})" for entry in failed[:SHOWN])
    return [f"{len(failed)} of {routing['total_nets']} nets could not be routed: {names}"]


def _current_faults(currents: Mapping[str, Any]) -> list[str]:
    weak = [entry["text"] for entry in currents["nets"] if entry["verdict"] == "failed"]
    if not weak:
        return []
    remedy = "give the modules there more room (row_gap), divide their devices into more fingers, or state less current"
    return [f"{counted(len(weak), 'net')} cannot carry the current: {'; '.join(weak[:SHOWN])} ({remedy})"]


def _drc_faults(drc: Mapping[str, Any]) -> list[str]:
    found = []
    warned = [entry for entry in drc.get("violations", []) if entry.get("severity") == "warning"]
    count = drc["total_violations"] - sum(entry["count"] for entry in warned)
    if count:
        errors = [entry for entry in drc.get("violations", []) if entry not in warned]
        rules = ", ".join(f"{entry['rule_id']} x{entry['count']}" for entry in errors[:SHOWN])
        found.append(f"DRC finds {counted(count, 'violation')}: {rules}")
    if drc["rules_unchecked"]:
        rules = ", ".join(entry["rule_id"] for entry in drc["rules_unchecked"][:SHOWN])
        found.append(f"{counted(len(drc['rules_unchecked']), 'design rule')} could not be checked: {rules}")
    if drc["layers_unchecked"]:
        found.append(f"no design rule judges what is drawn on {_layers(drc)}")
    if not drc["passed"] and not (drc["total_violations"] or drc["rules_unchecked"] or drc["layers_unchecked"]):
        found.append("DRC did not pass")
    return found


def _lvs_faults(lvs: Mapping[str, Any]) -> list[str]:
    found = []
    if lvs["layers_unchecked"]:
        found.append(f"LVS does not read what is drawn on {_layers(lvs)}")
    if not lvs["matched"] and (lvs["mismatches"] or lvs["complete"]):
        reasons = "; ".join(str(entry.get("message", entry)) for entry in lvs["mismatches"][:SHOWN])
        found.append(f"LVS does not match: {reasons or 'no reason given'}")
    if lvs["not_compared"]:
        boxes = ", ".join(f"{entry['instance']} ({entry['cell']})" for entry in lvs["not_compared"][:SHOWN])
        found.append(f"LVS is not complete: these black boxes were not compared: {boxes}")
    return found


def constraints_data(
    design: Design, tried: TriedPlacement, routes: Routes | None, verdicts: Sequence[NetVerdict] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Return whether each constraint of a design is obeyed, and a warning for each one of a file that is not.

    Args:
        design: Holds the constraints.
        tried: The placement.
        routes: The wires; None where routing is still to come.
        verdicts: Which nets of the finished layout carry their currents.
    """
    from layoutkit.flow.current_loads import with_verdicts
    from layoutkit.flow.hierarchy import outcomes_inside
    from layoutkit.flow.net_wishes import net_outcomes
    from layoutkit.flow.shared_cells import cell_outcomes

    outcomes = [*tried.placed.outcomes, *net_outcomes(design.constraints, tried.job, routes)]
    if design.cells:
        of_top = outcomes_inside(design.whole, outcomes, {})
        found = {each.path: each for each in (*cell_outcomes(design), *of_top)}
        reason = "each lies in a cell with an axis of its own, which is drawn once"
        for number, group in enumerate(design.whole.symmetry):
            for index, pair in enumerate(group.pairs):
                path = f"symmetry[{number}].pairs[{index}]"
                found.setdefault(path, Outcome(path, pair, obeyed=None, reason=reason))
        outcomes = list(found.values())
    outcomes += [
        Outcome(f"supplies.{kind}", nets, obeyed=True, reason=f"taken as {kind} in place of the nets that are found")
        for stated in design.whole.supplies
        for kind, nets in (("power", stated.power), ("ground", stated.ground))
        if nets is not None
    ]
    if routes is not None:
        outcomes = with_verdicts(outcomes, design.whole, design.circuit, verdicts)
    listed, ignored = outcomes_data(design.source, outcomes)
    return listed, [] if design.source == RECOGNITION else ignored


def outcomes_data(source: str, outcomes: Sequence[Outcome]) -> tuple[dict[str, Any], list[str]]:
    """Return outcomes as JSON data, and a warning for each constraint that is not obeyed.

    Args:
        source: Where the constraints come from.
        outcomes: What became of each of them.
    """
    ignored = [
        f"constraint {each.path} ({', '.join(each.names)}) is not obeyed: {each.reason}"
        for each in outcomes
        if each.obeyed is False
    ]
    data = {
        "source": source,
        "obeyed": sum(each.obeyed is True for each in outcomes),
        "not_obeyed": len(ignored),
        "outcomes": [each.to_json() for each in outcomes],
    }
    return data, ignored


def _layers(verdict: Mapping[str, Any]) -> str:
    known = verdict["layers_unchecked"]
    shown = [entry["name"] or entry["layer"] for entry in known[:SHOWN]]
    more = verdict.get("layers_unchecked_count", len(known)) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def next_steps(report: Mapping[str, Any]) -> list[str]:
    """Return what to do with the layout now, in sentences, the most urgent first."""
    left, found = report["remaining_stages"], faults(report)
    if left:
        return [f"Continue with from {left[0]} in the same workspace."]
    steps = ["Mend the faults that the error lists."] if found else []
    if "review" not in report:
        steps.append("Have it reviewed with review.check_layout.")
    elif report["review"]["findings"]:
        steps.append("Mend review.findings.")
    steps.append("Look at files.png or files.report.")
    return steps if found else [*steps, "Then sim.compare_post_layout and export.gds."]


def summary(report: Mapping[str, Any]) -> str:
    """Return the report as a page of one screen for a terminal: verdicts and findings first."""
    left, found, replaced = report["remaining_stages"], faults(report), report["replaced_devices"]
    clean = "clean, complete with replaced devices" if replaced else "clean"
    verdict = "NOT CLEAN" if found else f"not finished, {', '.join(left)} are left" if left else clean
    lines = ["", f"{report['circuit']['name']} in {report['technology']}: {verdict}"]
    lines += [f"  FAULT     {text}" for text in found]
    lines += [text(report) for name, text in _VERDICTS.items() if name in report]
    findings = report["review"]["findings"] if "review" in report else []
    lines += _few("finding", [f"{each['severity']}: {each['why']}: {each['what_to_do']}" for each in findings])
    lines += [text(report) for name, text in _FIGURES.items() if name in report]
    circuit = report["circuit"]
    lines.append(f"  circuit   {counted(circuit['device_count'], 'device')}, {counted(circuit['net_count'], 'net')}")
    lines += _few("module", [f"{each['name']}{_matching(each)}" for each in report.get("modules", ())], FEW)
    lines += _few("replaced", replaced_lines(replaced), FEW)
    lines += _few("matching", lines_of_groups(report["matching"]["groups"]), FEW) if "matching" in report else []
    lines += lines_after_layout(report["post_layout"]) if "post_layout" in report else []
    lines += _few("warning", report["warnings"], FEW)
    lines.append(f"  time      {sum(stage['duration_ms'] for stage in report['stages']) / 1000:.1f} s")
    if files := [report["files"][kind] for kind in ("gds", "png", "summary", "report") if kind in report["files"]]:
        lines.append(f"  files     {PurePath(files[0]).parent}: {', '.join(PurePath(each).name for each in files)}")
    return "\n".join(lines)


def _few(name: str, texts: Sequence[str], most: int = SHOWN) -> list[str]:
    """Return a line for each of the first texts, the last one with how many there are more."""
    shown = list(texts[:most])
    if len(texts) > most:
        shown[-1] += f", and {len(texts) - most} more"
    return [f"  {name:<9} {text}" for text in shown]


def _size_line(report: Mapping[str, Any]) -> str:
    """Return the size of the layout as drawn so far."""
    placed = report["placement"]
    area = f"{placed['width'] * placed['height']:.6g} um2, sides {placed['aspect']:g} : 1"
    fill = f"modules fill {100 * placed['utilisation']:.3g} %"
    return f"  size      {placed['width']:g} x {placed['height']:g} um, {area}, {fill}"


def _drc_line(report: Mapping[str, Any]) -> str:
    drc = report["drc"]
    unchecked = f", {len(drc['rules_unchecked'])} unchecked" if drc["rules_unchecked"] else ""
    violations = counted(drc["total_violations"], "violation")
    return f"  DRC       {violations}, {drc['rules_checked']} rules checked{unchecked}{_waived(drc)}"


def _waived(verdict: Mapping[str, Any]) -> str:
    """Return the layers that the user lets pass unread; the verdict says nothing about them."""
    waived = verdict.get("layers_waived")
    return f", without {', '.join(waived)}" if waived else ""


def _plan_line(report: Mapping[str, Any]) -> str:
    plan = report["constraints"]
    return f"  plan      {counted(plan['obeyed'], 'constraint')} obeyed, {plan['not_obeyed']} not ({plan['source']})"


def _lvs_line(report: Mapping[str, Any]) -> str:
    lvs = report["lvs"]
    verdict = "matched" if lvs["matched"] else f"{len(lvs['mismatches'])} mismatches"
    boxes = f", {len(lvs['not_compared'])} black boxes not compared" if lvs["not_compared"] else ""
    replaced = ", complete with replaced devices" if report["replaced_devices"] and lvs["complete"] else ""
    joined = ", grounds joined by the substrate" if lvs["verdict"].endswith("by the substrate") else ""
    return f"  LVS       {verdict}{replaced}{joined}{'' if lvs['complete'] else ', not complete'}{boxes}{_waived(lvs)}"


def _review_line(report: Mapping[str, Any]) -> str:
    review = report["review"]
    verdict = "an engineer would sign" if review["would_sign"] else "an engineer would not sign"
    left = f", {len(review['unjudged'])} unjudged" if review["unjudged"] else ""
    return f"  review    {verdict}: {review['must']} must, {review['should']} should be mended{left}"


_VERDICTS = {"drc": _drc_line, "lvs": _lvs_line, "review": _review_line}
_FIGURES = {
    "placement": _size_line,
    "routing": lambda report: f"  routing   {report['routing']['routed']} of {report['routing']['total_nets']} nets",
    "constraints": _plan_line,
}
"""What the page says about a part of the report, in order."""


def _matching(module: Mapping[str, Any]) -> str:
    if len(module["devices"]) == 1:
        return ""
    symmetric = "symmetric" if module["symmetric"] else "metal over it is not its own mirror image"
    return f" ({module['type'].replace('_', ' ')}, centroids {module['centroid_error']:g} um apart, {symmetric})"


def routing_data(routes: Routes, attempts: int, technology: Technology) -> dict[str, Any]:
    """Return what became of the nets as JSON data, with the length that wires cannot be shorter than. [um]"""
    routing = routes.result
    return {
        "total_nets": len(routing.nets),
        "routed": sum(net.success for net in routing.nets),
        "failed": [
            {
                "net": net.name,
                "reason": net.reason or "no reason given",
                "blocked_by": [each.to_json(technology.to_um) for each in net.blocked_by],
            }
            for net in routing.failed
        ],
        "total_wire_length": technology.to_um(routing.wire_length),
        "wire_length_bound": technology.to_um(routes.length_bound),
        "via_count": sum(net.via_count for net in routing.nets),
        "single_cuts": [
            {"net": net.name, **single.to_json(technology.to_um)} for net in routing.nets for single in net.single_cuts
        ],
        "mirrored": [each.to_json(technology) for each in routes.mirrored],
        "unequal_metal": [each.to_json(technology) for each in routes.unequal],
        "attempts": attempts,
    }


def post_layout_figures(
    layout: kdb.Layout,
    circuit: Circuit,
    technology: Technology,
    options: PexOptions,
    groups: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], str]:
    """Return ``{parasitics, simulation}`` as JSON data, and the layout's netlist with parasitics, empty without one.

    What cannot be extracted or simulated is ``unchecked`` with the reason; it does not end the build.

    Args:
        layout: The finished layout.
        circuit: Its circuit, with its modules.
        technology: Its process.
        options: How to extract.
        groups: The matched groups as measured, for the predicted offsets.
    """
    from layoutkit.parasitics.parasitic_extraction import extract_parasitics
    from layoutkit.simulate.post_layout import Request, compare_post_layout, offsets_apart

    try:
        found = extract_parasitics(layout, circuit, technology, options)
    except LayoutkitError as error:
        missing = {"unchecked": [error.message]}
        return {"parasitics": missing, "simulation": missing}, ""
    parasitics = {
        "nets": [{"net": net.net, "total_ff": round(net.total_fF, 4)} for net in found.nets],
        "pairs": [pair.to_json() for pair in found.pairs],
        "unchecked": list(found.unchecked),
    }
    try:
        compared = compare_post_layout(Request(circuit, technology, found.spice))
        simulation = {**compared, **offsets_apart(compared, groups)}
    except LayoutkitError as error:
        simulation = {"unchecked": [error.message]}
    return {"parasitics": parasitics, "simulation": simulation}, found.spice


def lines_after_layout(figures: Mapping[str, Any]) -> list[str]:
    """Return the figures as lines for a terminal."""
    told = [
        f"  after     {each['name']} {_amount(each, 'schematic')} -> {_amount(each, 'extracted')}{_percent(each)}"
        for corner in figures["simulation"].get("corners", ())
        for each in corner["measurements"]
    ]
    unchecked = [*figures["parasitics"].get("unchecked", ()), *figures["simulation"].get("unchecked", ())]
    return [*told, *(f"  unchecked {text}" for text in dict.fromkeys(unchecked))]


def _amount(measured: Mapping[str, Any], side: str) -> str:
    return f"{measured[side]:.4g} {measured['unit']}".rstrip() if side in measured else "not measured"


def _percent(measured: Mapping[str, Any]) -> str:
    return f" ({measured['change_percent']:+.1f} %)" if "change_percent" in measured else ""
