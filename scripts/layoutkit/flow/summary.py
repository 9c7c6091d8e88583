"""The report of a build: faults and constraints as text, a page for the terminal, and figures, also after layout."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraints import Outcome
from layoutkit.circuit.replaced_devices import replaced_lines
from layoutkit.errors import LayoutkitError, counted
from layoutkit.flow.design import RECOGNITION
from layoutkit.flow.measured_matching import lines as lines_of_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.extract.current_limits import NetVerdict
    from layoutkit.flow.design import Design
    from layoutkit.flow.placing import TriedPlacement
    from layoutkit.flow.routing_job import Routes
    from layoutkit.parasitics.parasitic_extraction import PexOptions
    from layoutkit.technology import Technology


SHOWN = 5
FEW = 2  # where the verdicts and findings must stay on the screen


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
