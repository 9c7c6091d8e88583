"""What nets ask of the router: by constraints (length, shields, separations, ...), and by the antenna rules.

Of constraints the module also says what became of them. The antenna rules limit how long the wires of a net may be on
each conductor, where only gates lie on the net: while a layer is etched, its metal collects charge, and a gate without
diffusion on its net has no way to drain it::

    port ==================== met3 =====.        the sidewalls of a thick conductor collect more than those of a
                                        |  via   thin one, so that a small gate bears a shorter wire there
                                      gate

                               .= met4 =.        with a hop, the long wire is not connected to the gate while it is
    port ============= met2 ===|        |        etched, and met4 is short
                                      gate

                      .= met5 =.          so does a hop above the plates of capacitors, whose metal is more than the
    plates ==== met4 =|        |= met4 =. gate may have
                                      gate
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from layoutkit.circuit.constraints import Outcome
from layoutkit.errors import TechnologyError, listed
from layoutkit.route.board import BESIDE
from layoutkit.route.routes import EqualLengths
from layoutkit.route.routing_stack import make_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.flow.design import Design
    from layoutkit.flow.routing_job import Routes, RoutingJob, WantedNet
    from layoutkit.route.routes import RoutedNet
    from layoutkit.technology import Conductor, Technology

    Decide = Callable[[str, tuple[str, ...], Mapping[str, str], str], Outcome]

SHIELDED = 0.8
"""Share of a net's wires from which it counts as shielded: at pins and crossings there is no room for a shield."""
WITHOUT_DETOUR = 0.8
"""Share of the allowed length that half the perimeter of a net's pins may reach, as wires are longer than that."""
WITHOUT_HOP = 0.5
"""That share for the conductor that allows most: pins, vias and further conductors count, too."""


def with_wishes(
    nets: Sequence[WantedNet], constraints: Constraints, design: Design | None = None
) -> tuple[WantedNet, ...]:
    """Return nets with what constraints state of their lengths, shields and neighbours.

    With a design, its inputs also keep apart from its outputs, as signals would couple from one to the other.
    """
    lengths = {net: f"net_lengths[{n}]" for n, group in enumerate(constraints.net_lengths) for net in group.nets}
    shields = {entry.net: entry.shield for entry in constraints.net_shields}
    apart: dict[str, set[str]] = {net.name: set(net.apart_from) for net in nets}
    groups = [({net}, set(entry.nets) - {net}) for entry in constraints.net_separations for net in entry.nets]
    if design is not None:
        groups += inputs_and_outputs(design)
    for ones, others in groups:
        for name in ones & apart.keys():
            apart[name] |= others & apart.keys()
    return tuple(
        replace(
            net,
            match_length=lengths.get(net.name, net.match_length),
            shield=shields.get(net.name, net.shield) if shields.get(net.name, net.shield) in apart else None,
            apart_from=tuple(sorted(apart[net.name])),
        )
        for net in nets
    )


def inputs_and_outputs(design: Design) -> list[tuple[set[str], set[str]]]:
    """Return the ports that only drive gates with those that sources or drains drive, and the other way round."""
    gates, driven = set[str](), set[str]()
    for device in design.circuit.devices:
        for terminal, net in device.terminals.items():
            (gates if device.is_mos and terminal == "g" else driven).add(net)
    ports = set(design.circuit.ports) - set(design.supplies)
    inputs, outputs = ports & gates - driven, ports & driven
    return [(inputs, outputs), (outputs, inputs)] if inputs and outputs else []


def equal_lengths(nets: Sequence[WantedNet]) -> tuple[EqualLengths, ...]:
    """Return the groups of nets that state the same word in ``match_length``."""
    groups: dict[str, list[str]] = {}
    for net in nets:
        if net.match_length:
            groups.setdefault(net.match_length, []).append(net.name)
    return tuple(EqualLengths(tuple(names)) for names in groups.values() if len(names) > 1)


def net_loads(circuit: Circuit) -> dict[str, tuple[str, ...]]:
    """Return the kinds of terminals on each net, as lines with flavour, terminal, gate length and total width.

    Ends that a device may exchange, such as source and drain, are terminals of one kind.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for device in circuit.devices:
        length = f" l={device.params['l']:.4g}" if "l" in device.params else ""
        for terminal, net in device.terminals.items():
            end = "end" if device.kind.exchangeable and terminal in device.kind.ends else terminal
            found[net][f"{device.type} {device.model} {end}{length}"] += _size(device)
    return {net: tuple(f"{kind} {size}" for kind, size in sorted(kinds.items())) for net, kinds in found.items()}


def _size(device: Device) -> int:
    """Return the total width of all units [nm]; the number of units if they have no width."""
    width = device.params.get("w")
    return device.m if width is None else round(width * device.m * 1e9)


def net_outcomes(
    constraints: Constraints, job: RoutingJob, routes: Routes | None, *, all_nets: bool = True
) -> list[Outcome]:
    """Return what became of the constraints on nets.

    Args:
        constraints: What was to be obeyed.
        job: The nets that need wires.
        routes: Their routes; None where routing is still to come.
        all_nets: Whether ``job`` holds every net that needs wires; otherwise it decides nothing about other nets.
    """
    absent = "needs no wires" if all_nets else "is not in this request"
    wired = {net.name for net in job.nets}
    failed = {net.name: net.reason or "no way was found" for net in routes.result.failed} if routes else {}

    def outcome(path: str, nets: tuple[str, ...], broken: Mapping[str, str], how: str) -> Outcome:
        if not wired & set(nets):
            reason = "no wires are needed" if all_nets else f"{', '.join(nets)}: not in this request"
            return Outcome(path, nets, obeyed=all_nets or None, reason=reason)
        unrouted = [f"net {net} is not routed: {failed[net]}" for net in nets if net in failed]
        reasons = unrouted or list(dict.fromkeys(broken[net] for net in nets if net in broken))
        if routes is None and not reasons:
            return Outcome(path, nets, obeyed=None, reason="routing decides")
        return Outcome(path, nets, obeyed=not reasons, reason="; ".join(reasons) or how)

    measured = {net: each for each in (routes.mirrored if routes else ()) if len(each.nets) == 2 for net in each.nets}
    unmirrored = {net: each.text for net, each in measured.items() if not each.exact}
    overloaded = routes.overloaded if routes else {}
    found = []
    for number, group in enumerate(constraints.symmetry):
        for index, pair in enumerate(group.net_pairs):
            alone = [net for net in pair if net not in wired]
            broken = dict.fromkeys(pair, f"net {alone[0]} {absent}") if len(alone) == 1 else unmirrored
            path = f"symmetry[{number}].net_pairs[{index}]"
            how = measured[pair[0]].text if pair[0] in measured else "the wires are mirror images"
            found.append(outcome(path, pair, broken, how))
    for index, wanted in enumerate(constraints.net_priorities):
        found.append(outcome(f"net_priorities[{index}]", (wanted.net,), {}, f"routed with priority {wanted.priority}"))
    found += _wish_outcomes(constraints, job, routes, outcome)
    for index, load in enumerate(constraints.net_currents):
        path = f"net_currents[{index}]"
        rails = "rails of modules are not judged"
        entry = outcome(path, (load.net,), overloaded, f"wires and vias carry the current; {rails}")
        in_one_module = entry.obeyed and load.net not in wired
        found.append(replace(entry, obeyed=None, reason=f"{entry.reason}; {rails}") if in_one_module else entry)
    return found


def _wish_outcomes(constraints: Constraints, job: RoutingJob, routes: Routes | None, decide: Decide) -> list[Outcome]:
    """Return what became of equal lengths, shields and separations, with figures."""
    um = job.technology.to_um
    routed = {net.name: net for net in routes.result.nets if net.success} if routes else {}
    found = []
    for index, group in enumerate(constraints.net_lengths):
        lengths = {net: routed[net].wire_length for net in group.nets if net in routed}
        shown = listed(f"{net} {um(length):g} um" for net, length in lengths.items())
        longest, shortest = max(lengths.values(), default=0), min(lengths.values(), default=0)
        share = (longest - shortest) / longest if longest else 0.0
        text = f"{shown}: they differ by {share:.2%}, at most {group.tolerance:.2%} are wanted"
        broken = dict.fromkeys(group.nets, text) if share > group.tolerance else {}
        found.append(decide(f"net_lengths[{index}]", group.nets, broken, text))
    for index, entry in enumerate(constraints.net_shields):
        net = routed.get(entry.net)
        share = 1.0 if net is None or not net.wire_length else net.shielded / net.wire_length
        text = f"{share:.0%} of its wires have {entry.shield} at both sides"
        broken = {entry.net: f"{text}, at least {SHIELDED:.0%} are wanted"} if share < SHIELDED else {}
        found.append(decide(f"net_shields[{index}]", (entry.net,), broken, text))
    for index, entry_ in enumerate(constraints.net_separations):
        runs = [
            f"{one} and {other} {um(run):g} um"
            for number, one in enumerate(entry_.nets)
            for other in entry_.nets[:number]
            if one in routed and other in routed
            for run in [_parallel_run(job.technology, job.layers, routed[one], routed[other])]
            if run
        ]
        how = "their wires run side by side nowhere"
        broken = dict.fromkeys(entry_.nets, f"their wires run side by side: {', '.join(runs)}") if runs else {}
        found.append(decide(f"net_separations[{index}]", entry_.nets, broken, how))
    return found


def _parallel_run(technology: Technology, layers: Sequence[str], one: RoutedNet, other: RoutedNet) -> int:
    """Return the length along which wires of two nets on one conductor face each other within three tracks. [dbu]"""
    reach = BESIDE * make_stack(technology, layers, []).pitch()
    total = 0
    for layer in layers:
        first, second = _region(one, layer), _region(other, layer)
        pairs = first.separation_check(second, reach, False, type(first).Projection)
        total += sum(pair.first.length() for pair in pairs.each() if pair.first.length() > reach)
    return total


def _region(net: RoutedNet, layer: str) -> kdb.Region:
    import klayout.db as kdb

    return kdb.Region([kdb.Polygon(kdb.Box(*rect)) for at, rect in net.metal if at == layer]).merged()


def antenna_lengths(
    technology: Technology, circuit: Circuit, conductors: Sequence[Conductor], *, driven: bool = False
) -> dict[str, dict[str, int]]:
    """Return for each net with gates and no diffusion how long wires of least width may be on each conductor. [dbu]

    Only conductors with an antenna rule are listed. Resistors and plates of capacitors do not drain charge. With
    ``driven``, it is what the smallest gate bears on nets with diffusion, as long as that is not connected yet.
    """
    per_area = {conductor.name: _length_per_area(technology, conductor) for conductor in conductors}
    gates, drained = dict.fromkeys(circuit.nets, 0.0), set[str]()
    smallest: dict[str, float] = {}
    for device in circuit.devices:
        for terminal, net in device.terminals.items():
            if device.is_mos and terminal == "g":
                gates[net] += device.w * device.l * 1e12 * device.params.get("m", 1)
                smallest[net] = min(smallest.get(net, inf), device.w * device.l * 1e12)
            elif device.is_mos or terminal not in {"p", "n"} or device.type not in {"resistor", "capacitor"}:
                drained.add(net)
    um = 1 / technology.dbu_um
    return {
        net: {name: round(length * area * um) for name, length in per_area.items() if length is not None}
        for net, area in (smallest if driven else gates).items()
        if area and (net in drained) == driven
    }


def _length_per_area(technology: Technology, conductor: Conductor) -> float | None:
    """Return the length of a wire of least width that one um2 of gate bears [um], None where no rule says."""
    found = []
    for rule in technology.rules:
        if rule.kind == "antenna" and rule.value_um and _same_layer(technology, rule.options["layer"], conductor):
            sidewall = rule.options.get("measure") == "sidewall"
            charged = 2 * rule.options["thickness_um"] if sidewall else technology.to_um(conductor.width)
            found.append(rule.value_um / charged)
    return min(found, default=None)


def _same_layer(technology: Technology, name: str, conductor: Conductor) -> bool:
    try:
        return technology.conductor(name).name == conductor.name
    except TechnologyError:
        return False  # poly, or a cut


def hops_over_plates(technology: Technology, circuit: Circuit) -> dict[str, str]:
    """Return the conductor above the plates of capacitors, for each net whose plates alone charge its gates too much.

    Either plate may be on the net, as a layout may exchange them. A net is left out if it has plates on the uppermost
    conductor: nothing can connect these later.
    """
    levels = {conductor.name: level for level, conductor in enumerate(technology.conductors)}
    plates: dict[tuple[str, str], int] = {}
    for device in circuit.devices:
        spec = technology.passives.get(device.model)
        if spec is None or not {"bottom", "top"} <= spec.parts.keys():
            continue
        sides = round((device.w + device.l) * 1e6 / technology.dbu_um * device.m)  # half of the perimeter
        for net in {*device.terminals.values()}:
            for part in ("bottom", "top"):
                key = net, technology.conductor(spec.parts[part]).name
                plates[key] = plates.get(key, 0) + sides
    found: dict[str, int] = {}
    for net, lengths in antenna_lengths(technology, circuit, technology.conductors).items():
        charged = [
            levels[name] for name, longest in lengths.items() if plates.get((net, name), 0) > WITHOUT_DETOUR * longest
        ]
        if charged:
            found[net] = max(charged) + 1
    return {net: technology.conductors[level].name for net, level in found.items() if level < len(levels)}


def with_antenna_wishes(
    nets: Sequence[WantedNet],
    lengths: Mapping[str, Mapping[str, int]],
    layers: Sequence[str],
    driven: Mapping[str, Mapping[str, int]] | None = None,
    over_plates: Mapping[str, str] | None = None,
) -> tuple[WantedNet, ...]:
    """Return nets that avoid the conductors on which their wires would be longer than ``antenna_lengths`` allow.

    Where no conductor allows enough, wires leave each pin on one of ``layers`` that has two below and allows most: what
    is long lies below it, so that no gate is connected to it while it is etched.

    Args:
        nets: What to route.
        lengths: ``antenna_lengths``.
        layers: Conductors for the wires.
        driven: The same of nets with diffusion, which may be connected to a gate only after a long wire.
        over_plates: ``hops_over_plates``.
    """
    driven, over_plates = driven or {}, over_plates or {}
    found = []
    for net in nets:
        if net.name in over_plates:
            found.append(replace(net, hop_layer=over_plates[net.name]))
            continue
        allowed = lengths.get(net.name, driven.get(net.name, {}))
        boxes = [point.box for point in net.endpoints]
        across = max(box.right for box in boxes) - min(box.left for box in boxes)
        along = max(box.top for box in boxes) - min(box.bottom for box in boxes)
        longest = max(allowed.values(), default=0)
        bound = (WITHOUT_DETOUR if net.name in driven else WITHOUT_HOP) * longest
        if allowed and across + along > bound and len(layers) > 2:
            high = [name for name in layers[2:] if name in allowed] or [layers[-1]]
            found.append(replace(net, hop_layer=max(reversed(high), key=lambda name: allowed.get(name, 0))))
            continue
        short = {
            name
            for name, at_most in allowed.items()
            if net.name in lengths and at_most < longest and across + along > WITHOUT_DETOUR * at_most
        }
        found.append(replace(net, avoid_layers=tuple(sorted(short))))
    return tuple(found)
