"""The halves of a circuit, also those that no constraint names, and the axis on which they lie."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.constraints import SymmetryGroup
from layoutkit.circuit.symmetric_growth import Growth
from layoutkit.circuit.symmetry_graph import CONTROLS, SymmetryGraph
from layoutkit.review.subject import box_around

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Device
    from layoutkit.review.subject import PlacedDevice, Subject

    Pair = tuple[PlacedDevice, PlacedDevice]

_FEWEST_MOVED = 3  # pairs from which on equal steps are those of a whole half
FAR = 1000  # an axis that more devices miss by this much is not theirs [dbu]
_APART = 3000  # pairs about one centre that lie so much nearer to an axis are where they should be [dbu]
_TWO = 2
_BIPOLARS = frozenset({"npn", "pnp"})


def exchanged_nets(subject: Subject) -> SymmetryGroup:
    """Return the nets that may each be exchanged with one other, and the switches on them: of choppers and samplers.

    Nothing else is on these nets. The controls stay, and no switch joins a net with its image.
    """
    circuit = subject.circuit
    on: dict[str, dict[Hashable, Device]] = {}
    for net, ends in circuit.nets.items():
        devices = [circuit.device(end.device) for end in ends if end.terminal in {"d", "s"}]
        found: dict[Hashable, Device] = {}
        if net not in subject.supplies and subject.both_ways.issuperset(end.device for end in ends):
            found = {(d.model, d.terminals["g"], d.terminals["b"], d.w, d.l): d for d in devices}
        if 0 < len(ends) == len(found):  # else some are alike, or the net is a control
            on[net] = found
    images: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)  # with the switches that are exchanged
    for first, second in combinations(on, 2):
        exchanged = _exchange(on, first, second)
        if exchanged is not None:
            nets, devices_too = exchanged
            for one, other in nets.items():
                images[one].setdefault(other, devices_too)
    once = {net: next(iter(each.items())) for net, each in images.items() if len(each) == 1}
    pairs = {pair for _, devices_too in once.values() for pair in devices_too.items() if pair[0] < pair[1]}
    net_pairs = sorted((net, other) for net, (other, _) in once.items() if net < other)
    return SymmetryGroup(tuple(sorted(pairs)), (), tuple(net_pairs), "exchanged by switches")


def signal_halves(subject: Subject) -> Iterator[SymmetryGroup]:
    """Yield the halves that carry one signal, or a signal and its complement, and are in no structure of the circuit.

    Halves are what can be exchanged while the rest of the circuit stays the same, or what follows from a pair of
    bipolar transistors. Their currents meet, or one drives the other, as in a latch: two equal gates on two inputs
    need not be alike.
    """
    graph = SymmetryGraph(subject.circuit, subject.supplies)
    known = {name for group in subject.structure.symmetry for name in (*group.sides, *group.self_symmetric)}
    names, seen = [element.name for element in graph.elements], set[int]()
    for members in (each for each in graph.alike.values() if len(each) == _TWO and each[0] not in seen):
        growth = Growth(graph, frozenset(), exact=True)
        if growth.grow(*(names[index] for index in members)):
            seen.update(growth.sides)
            if growth.is_exchange and _are_one_circuit(graph, growth) and known.isdisjoint(_moved(names, growth)):
                yield _group(names, growth, "halves that can be exchanged")
    groups = (group.devices for group in subject.roles.groups if group.type == "differential_pair")
    for pair in (each for each in groups if len(each) == _TWO and subject.circuit.device(each[0]).type in _BIPOLARS):
        growth = Growth(graph, frozenset())
        if growth.grow(*pair) and known.isdisjoint(_moved(names, growth)) and seen.isdisjoint(growth.sides):
            yield _group(names, growth, "halves around a pair of bipolar transistors")


def _moved(names: list[str], growth: Growth) -> set[str]:
    return {names[index] for index in growth.sides}


def _group(names: list[str], growth: Growth, reason: str) -> SymmetryGroup:
    pairs = tuple((names[one], names[other]) for one, other in growth.pairs)
    return SymmetryGroup(pairs, (), tuple(growth.net_pairs), reason)


def _are_one_circuit(graph: SymmetryGraph, growth: Growth) -> bool:
    """Return whether transistors of both halves work on one signal: the halves drive each other, or currents meet.

    Currents of transistors with gates meet as well where logic selects one of two inputs.
    """
    moved = [graph.elements[index] for index in growth.sides]
    controls = {net for each in moved for role, net in each.ends if role in CONTROLS}
    if not any(growth.images.get(net, net) != net for net in controls):
        return False
    for left, _ in growth.net_pairs:
        if len({growth.sides.get(index) for index, _ in graph.on_net[left]} - {None}) > 1:
            return True
    return any(each.key[1] in _BIPOLARS for each in moved) and bool(growth.axis)


def _exchange(
    on: Mapping[str, Mapping[Hashable, Device]], first: str, second: str
) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return the nets and switches that are exchanged together with two nets; None if these cannot be."""
    images, devices, front = {first: second, second: first}, dict[str, str](), [(first, second)]
    for one, other in front:  # which grows
        if on[one].keys() != on[other].keys():
            return None
        for key, here in on[one].items():
            there = on[other][key]
            a, b = (next(net for net in (d.terminals["s"], d.terminals["d"]) if net != own)
                    for d, own in ((here, one), (there, other)))  # fmt: skip
            devices |= {here.id: there.id, there.id: here.id}
            if here is there or images.get(one) == a:
                return None
            if a not in images and b not in images and a != b and a in on and b in on:
                images |= {a: b, b: a}
                front.append((a, b))
            elif images.get(a, a) != b:
                return None
    return images, devices


class Axis(NamedTuple):
    """The axis on which the devices of a structure lie best.

    Attributes:
        upright: Whether it is vertical.
        place: Its x, or its y if it is not upright. [dbu]
        errors: By how far each device or pair misses it. [dbu]
    """

    upright: bool
    place: float
    errors: list[tuple[float, tuple[PlacedDevice, ...]]]


def axis_of(pairs: Sequence[Pair], alone: Sequence[PlacedDevice], *, upright: bool) -> Axis:
    """Return the axis of one direction on which most devices lie."""
    across, along = (0, 1) if upright else (1, 0)
    middles = [(a.centre[across] + b.centre[across]) / 2 for a, b in pairs]
    # One pair defines the axis; where several disagree, what stands alone decides as well.
    place = middles[0] if len(pairs) == 1 else median([*middles, *(placed.centre[across] for placed in alone)])
    errors: list[tuple[float, tuple[PlacedDevice, ...]]] = []
    for (a, b), middle in zip(pairs, middles, strict=True):
        sideways, along_it = abs(middle - place), abs(a.centre[along] - b.centre[along])
        mixed = are_mixed(a, b)
        error = sideways * (sideways > _APART) if mixed else max(sideways, along_it, _unlike(a, b))
        errors.append((error, (a, b)))
    errors += [(abs(placed.centre[across] - place), (placed,)) for placed in alone]
    return Axis(upright, place, errors)


def are_moved(pairs: Sequence[Pair], limit: float, dbu_um: float) -> bool:
    """Return whether one half is the other one, moved and not mirrored: then sources and drains lie alike, too."""
    halves = list(zip(*(sorted(pair, key=lambda placed: placed.centre) for pair in pairs), strict=True))
    steps = [(b.centre[0] - a.centre[0], b.centre[1] - a.centre[1]) for a, b in zip(*halves, strict=True)]
    spread = max(max(each) - min(each) for each in zip(*steps, strict=True))
    apart = [box_around(placed.box for placed in half) for half in halves]
    alike = spread * dbu_um <= limit and not any(_unlike(*pair) for pair in pairs)
    return len(pairs) >= _FEWEST_MOVED and alike and not apart[0].touches(apart[1])


def are_mixed(one: PlacedDevice, other: PlacedDevice) -> bool:
    """Return whether two devices lie about one centre, not an axis."""
    return min(len(one.boxes), len(other.boxes)) > 1 and one.box.overlaps(other.box)


def _unlike(one: PlacedDevice, other: PlacedDevice) -> int:
    """Return by how much the channels, bars or plates of two devices differ in their sides. [dbu]"""
    sizes = [sorted((box.width(), box.height()) for box in placed.boxes) for placed in (one, other)]
    if len(sizes[0]) != len(sizes[1]):
        return max(abs(one.box.width() - other.box.width()), abs(one.box.height() - other.box.height()), FAR + 1)
    return int(max(abs(a - b) for ends in zip(*sizes, strict=True) for a, b in zip(*ends, strict=True)))
