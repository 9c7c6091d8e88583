"""The groups of devices of a layout that must match, with those that work with them.

Also the halves of its circuit, those too that no constraint names, and the axis on which they lie.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, combinations, product
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.constraints import SymmetryGroup
from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.circuit.symmetric_growth import Growth
from layoutkit.circuit.symmetry_graph import CONTROLS, SymmetryGraph
from layoutkit.review.subject import box_around, kept, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.circuit.circuit import RecognisedModule
    from layoutkit.review.subject import PlacedDevice, Subject

    Pair = tuple[PlacedDevice, PlacedDevice]

_STRICT = frozenset({"differential_pair", "current_mirror", "bipolar_array", "resistor_ratio", "capacitor_ratio"})
"""Groups whose offset or ratio a foreign device inside spoils."""
_PASSIVES = frozenset({"resistor_pair", "capacitor_pair", "resistor_ratio", "capacitor_ratio"})
_FEWEST_STAGES = 3
PAIR = MODULE_TYPES["differential_pair"].words
MIRROR = MODULE_TYPES["current_mirror"].words
CROSSED = MODULE_TYPES["cross_coupled_pair"].words
LOADS = MODULE_TYPES["load_pair"].words
CASCODES = MODULE_TYPES["cascode_pair"].words
_RATIO = MODULE_TYPES["resistor_ratio"].words
_UNORDERED = MODULE_TYPES["symmetric_pair"].words
NEARLY = 0.01  # of a width, by which a pair may differ as by a rounding
ON_ONE_GATE = "pair on one gate"
ON_ONE_RESISTOR = "pair on one resistor"
LOAD_DIODES = "load diodes"
_SPLIT = 3  # transistors of a pair of which one half is two
_FEWEST_PARTS = 2  # smallest ratio in a source of a current in proportion to the temperature [1]
_MOST_PARTS = 16  # so many times as wide as the narrowest of a ratio
_FEWEST_MOVED = 3  # pairs from which on equal steps are those of a whole half
FAR = 1000  # an axis that more devices miss by this much is not theirs [dbu]
_APART = 3000  # pairs about one centre that lie so much nearer to an axis are where they should be [dbu]
_TWO = 2
_BIPOLARS = frozenset({"npn", "pnp"})


@dataclass(frozen=True)
class MatchedDevices:
    """Devices of one role that must match.

    Attributes:
        words: The role in words.
        strict: Whether a foreign device among them spoils the circuit.
        devices: By place.
        relatives: The devices of the whole role, such as the cascodes of a mirror, and those that must match one of
            them in another role.
        spread: Whether each is in a stage or cell of its own, as the sources of a ring of starved stages are.
    """

    words: str
    strict: bool
    devices: tuple[PlacedDevice, ...]
    relatives: tuple[PlacedDevice, ...]
    spread: bool = False

    @property
    def is_ordered(self) -> bool:
        """Whether they are no switches or loads, whose ends may see other neighbours."""
        return self.words != _UNORDERED

    @property
    def is_even(self) -> bool:
        """Whether all are of one size but for roundings; a mirror of unlike sizes copies a bias: no offset."""
        sizes = [placed.area for placed in self.devices]
        return max(sizes) - min(sizes) <= NEARLY * max(sizes)

    @property
    def called(self) -> str:
        """The role and its devices, for a message."""
        return f"{self.words} {names_of(self.devices)}"

    @property
    def is_plural(self) -> bool:
        """Whether the role in words is a plural."""
        return self.words.startswith(
            ("the bars", "resistors", "capacitors", "equal", "bipolar", "diodes", "counter", "switches", LOAD_DIODES)
        )

    @property
    def has(self) -> str:
        """The verb that follows the role in words."""
        return "have" if self.is_plural else "has"


def _relatives(subject: Subject, members: Sequence[PlacedDevice]) -> list[PlacedDevice]:
    """Return the members of a role with their images, and the transistors of their type that work with them.

    These have a source with them and are on their gates or drains, or lie between the gates and drains of such ones.
    """
    found = {each.index: each for placed in members for each in (placed, *subject.images(placed))}
    for whole in (False, True):
        alike = {(p.device.type, p.device.terminals.get("s"), p.device.terminals.get("b")) for p in found.values()}
        inner = {
            net
            for placed in found.values()
            for terminal, net in placed.device.terminals.items()
            if terminal in {"d", "g"} and net not in subject.supplies
        }
        for placed in subject.placed:
            net = placed.device.terminals
            if placed.device.is_mos and (placed.device.type, net["s"], net["b"]) in alike:
                own = {net["d"], net["g"]}
                if own <= inner if whole else own & inner:
                    found[placed.index] = placed
    return list(found.values())


def _stages_of(subject: Subject, own: set[str]) -> set[str]:
    """Return the devices of the equal stages or cells that a mirror feeds, where it has one device or more in each."""
    arrays = [module.properties["stages"] for module in subject.roles.groups if module.type == "ring_stage"]
    cells: dict[str, list[Sequence[str]]] = {}
    for instance in subject.circuit.subcircuits:
        cells.setdefault(instance.cell, []).append(tuple(instance.devices))
    found: set[str] = set()
    for array in (*arrays, *cells.values()):
        if len(array) >= _FEWEST_STAGES and all(own & set(stage) for stage in array):
            found.update(name for stage in array for name in stage)
    return found


def _cascodes(module: RecognisedModule) -> tuple[str, ...]:
    """Return the cascodes of a mirror, which may be a row of their own."""
    return tuple(str(name) for name in module.properties.get("cascodes", ()))


def _raised(subject: Subject, module: RecognisedModule) -> Iterator[str]:
    """Yield the transistors of a mirror's gate and length with resistors to its rail: together they set a current."""
    circuit, gate = subject.circuit, module.properties.get("common_gate") if module.type == "current_mirror" else None
    first = circuit.device(module.devices[0])
    for end in circuit.nets.get(str(gate), ()):
        device = circuit.device(end.device)
        alike = (device.model, device.params.get("l")) == (first.model, first.params.get("l"))
        source = device.terminals.get("s", "")
        others = [circuit.device(each.device) for each in circuit.nets.get(source, ()) if each.device != end.device]
        if not alike or source in subject.supplies or any(each.is_mos for each in others):
            continue
        met, front = {source}, [source]
        while front:
            net = front.pop()
            ends = (circuit.device(each.device) for each in circuit.nets[net])
            near = {end for each in ends if each.type == "resistor" for end in each.terminals.values()} - met
            met |= near
            front += near - subject.supplies.nets
        if first.terminals["s"] in met:
            yield device.id


def _trimmed(subject: Subject) -> list[set[str]]:
    """Return the ladders: resistors of one model and width in series, each with a switch across its ends."""
    import networkx as nx

    circuit = subject.circuit
    joined: nx.Graph[object] = nx.Graph()
    across = {frozenset((d.terminals["d"], d.terminals["s"])) for d in circuit.devices if d.is_mos}
    for device in (each for each in circuit.devices if each.type == "resistor"):
        ends = {device.terminals[end] for end in device.kind.ends}
        nets = [(net, device.model, device.params.get("w")) for net in ends - subject.supplies.nets]
        joined.add_edges_from((device.id, net) for net in nets if ends in across)
    parts = ({name for name in part if isinstance(name, str)} for part in nx.connected_components(joined))
    return [part for part in parts if len(part) >= _FEWEST_STAGES]


def matched_groups(subject: Subject) -> list[MatchedDevices]:
    """Return the groups of devices that must match, each set of devices once."""
    found: dict[frozenset[int], MatchedDevices] = {}
    ladders = _trimmed(subject)
    modules = [
        module
        for module in subject.roles.groups
        if MODULE_TYPES[module.type].matched or module.type in _PASSIVES
        if module.properties.get("matched", True) or module.type == "resistor_ratio"
    ]
    for module in modules:
        role, own = MODULE_TYPES[module.type], {*module.devices, *_raised(subject, module)}
        own.update(*(each for each in ladders if module.type == "resistor_ratio" and each & own))
        tops = [name for name in _cascodes(module) if name in own]
        partners = {*own, *_cascodes(module)}
        for other in modules:
            if own & {*other.devices, *_cascodes(other)}:
                partners.update(other.devices)
        partners |= {*module.properties.get("joined_by", ()), module.properties.get("closed_by", "")} - {""}  # switches
        stages = _stages_of(subject, own) if module.type == "current_mirror" else set()
        relatives = (*_relatives(subject, subject.devices(module.devices)), *subject.devices(partners | stages))
        for names in ([name for name in own if name not in tops], tops):
            by_kind: dict[tuple[str, str, str], list[PlacedDevice]] = {}
            for placed in subject.devices(names):
                body = placed.device.terminals.get("b", "") if placed.device.is_mos else ""
                kind = (placed.device.type, placed.device.model, body if body in subject.supplies else "")
                by_kind.setdefault(kind, []).append(placed)
            for devices in by_kind.values():
                if len(devices) > 1:
                    key = frozenset(placed.index for placed in devices)
                    own_ratio = module.properties.get("matched", True)  # else of sizes that the user made unlike
                    strict = module.type in _STRICT and own_ratio and "of" not in module.properties  # no cascodes
                    group = MatchedDevices(role.words, strict, tuple(devices), relatives, bool(stages))
                    if key not in found or (group.strict and not found[key].strict):
                        found[key] = group
    steps = [tuple(subject.devices(ladder)) for ladder in ladders]
    known = [{*group.devices} for group in found.values()]
    new = [MatchedDevices(_RATIO, True, each, each) for each in steps if not any(own.issuperset(each) for own in known)]
    for group in (*new, *_below(subject, list(found.values())), *_unrecognised(subject, list(found.values()))):
        found.setdefault(frozenset(placed.index for placed in group.devices), group)
    free = (set_by_logic(subject), without_current(subject))
    groups = [found[key] for key in sorted(found, key=sorted)]
    return [group for group in groups if not any(own.issuperset(p.id for p in group.devices) for own in free)]


@kept
def without_current(subject: Subject) -> set[str]:
    """Return the resistances of no exact value: diodes in wells of their own on signals, resistors without current.

    Nothing but capacitors, gates and bodies is on one of the nets of such a resistor.
    """
    circuit, supplies = subject.circuit, subject.supplies
    nets = [(placed.id, placed.device.terminals) for placed in subject.placed if placed.device.is_mos]
    found = {name for name, n in nets if n["d"] == n["g"] and n["s"] == n["b"] and n["b"] not in supplies}
    for placed in (each for each in subject.placed if each.device.type == "resistor"):
        inner = (circuit.nets[net] for net in placed.ends if net not in circuit.ports and net not in supplies)
        for ends in ([(circuit.device(e.device), e.terminal) for e in all_ends] for all_ends in inner):
            others = [(device, end) for device, end in ends if device.id not in placed.names]
            if others and all(d.type == "capacitor" or (d.is_mos and end in {"g", "b"}) for d, end in others):
                found.add(placed.id)
    return found


def _unrecognised(subject: Subject, known: Sequence[MatchedDevices]) -> Iterator[MatchedDevices]:
    """Yield what works as a group but is none of the circuit's: pairs equal but for rounding, or on unlike sources.

    Also the diodes that load one pair, diodes on one supply, and bipolar transistors on one base, with currents of
    their own and sizes in a ratio.
    """
    alike: dict[tuple[object, ...], list[PlacedDevice]] = defaultdict(list)
    ratios: dict[tuple[object, ...], list[PlacedDevice]] = defaultdict(list)
    for placed in subject.placed:
        device, net = placed.device, placed.device.terminals
        if device.is_mos and not subject.is_idle(placed):
            alike[device.model, device.l, net["b"]].append(placed)
            if net["g"] == net["b"] in placed.ends and len(placed.ends) > 1:
                ratios["diodes in a ratio", device.model, device.l, net["g"]].append(placed)
        elif device.type in {"npn", "pnp"} and net["b"] not in subject.supplies and net["b"] != net["e"]:
            ratios["bipolar transistors in a ratio", device.model, net["b"]].append(placed)
    grouped = [{each.index for each in (*group.devices, *group.relatives)} for group in known]
    outputs = [{p.device.terminals.get("d") for p in group.devices} for group in known if group.words == PAIR]
    for pair in chain.from_iterable(combinations(devices, 2) for devices in alike.values()):
        words, gate = _works_as(subject, *pair), pair[0].device.terminals["g"]
        diodes = {net["d"] for net in (placed.device.terminals for placed in pair) if net["d"] == net["g"]}
        if len(diodes) == len(pair) and diodes in outputs and pair[0].area == pair[1].area:
            words = LOAD_DIODES
        if words == ON_ONE_GATE and sum(end.terminal == "g" for end in subject.circuit.nets[gate]) > len(pair):
            continue  # cascodes
        if words and not any(own.issuperset(placed.index for placed in pair) for own in grouped):
            yield MatchedDevices(words, True, pair, tuple(_relatives(subject, pair)))
    for devices in alike.values():
        yield from _unlike_sources(subject, devices, grouped)
        yield from _split_pairs(subject, devices)
    for key, own in ratios.items():
        base = own[0].device.terminals.get("g", "")
        ends = {end for placed in own for end in ({placed.device.terminals["e"]} if not base else placed.ends - {base})}
        sizes = [placed.area if placed.device.is_mos else len(placed.boxes) for placed in own]
        parts = [size / min(sizes) for size in sizes]
        whole = all(abs(part - round(part)) <= NEARLY and part <= _MOST_PARTS for part in parts)
        if whole and len(ends) == len(own) > 1 and not ends & subject.supplies.nets:
            yield MatchedDevices(str(key[0]), True, tuple(own), tuple(own))


def _below(subject: Subject, groups: Sequence[MatchedDevices]) -> Iterator[MatchedDevices]:
    """Yield the switches or diodes below the sources of a mirror, one below each: their voltages are part of its."""
    for group in (each for each in groups if each.strict and each.devices[0].device.is_mos and each.words != PAIR):
        sources = {placed.device.terminals["s"] for placed in group.devices}
        below = [p for p in subject.placed if p.device.is_mos and p.device.terminals["d"] in sources]
        alike = {(p.device.model, p.device.l, p.device.terminals["s"]) for p in below}
        own = sources - subject.supplies.nets
        if len(below) == len(own) == len(sources) >= _FEWEST_STAGES and len(alike) == 1:
            yield MatchedDevices("switches below a mirror", False, tuple(below), tuple(below))
        loop = [p for p in below if p.device.terminals["g"] == p.device.terminals["d"]] + [*group.devices]
        if len(loop) == 2 * len(own) == 2 * len(sources) and len({(p.device.l, p.area) for p in loop}) == 1:
            yield MatchedDevices("diodes in a loop with a mirror", True, tuple(loop), tuple(loop))


def _unlike_sources(
    subject: Subject, devices: Sequence[PlacedDevice], grouped: Sequence[set[int]]
) -> Iterator[MatchedDevices]:
    """Yield each diode at a rail with the transistor on its gate that has a source of its own, if in a whole ratio.

    Also with those on its source whose gate a resistor joins with it.
    """
    supplies, joined = subject.supplies, [each.ends for each in subject.placed if each.device.type == "resistor"]
    for diode in devices:
        gate = diode.device.terminals["d"]
        if diode.device.terminals["g"] != gate or diode.device.terminals["s"] not in supplies or gate in supplies:
            continue
        for placed in devices:
            net = placed.device.terminals
            if {gate, net["g"]} in joined and net["s"] == diode.device.terminals["s"]:
                yield MatchedDevices(ON_ONE_RESISTOR, True, (diode, placed), (diode, placed))
        on = [placed for placed in subject.placed if placed.device.terminals.get("g") == gate]
        held = {*supplies.nets, *(placed.device.terminals["d"] for placed in on)}  # drains of a stack on one gate
        raised = [placed for placed in devices if placed in on and placed.device.terminals["s"] not in held]
        if len(raised) != 1 or raised[0].device.terminals["d"] in supplies:
            continue  # cascodes, or a follower
        one, other = sorted((diode, *raised), key=lambda placed: placed.index)
        ratio = max(one.area, other.area) / min(one.area, other.area)
        whole = abs(ratio - round(ratio)) <= NEARLY and _FEWEST_PARTS <= round(ratio) <= _MOST_PARTS
        if whole and not any(own.issuperset((one.index, other.index)) for own in grouped):
            yield MatchedDevices(ON_ONE_GATE, True, (one, other), (one, other))


def _split_pairs(subject: Subject, devices: Sequence[PlacedDevice]) -> Iterator[MatchedDevices]:
    """Yield each pair above a tail of which one half is two transistors, as the sense of a common mode is."""
    above: dict[str, list[PlacedDevice]] = defaultdict(list)
    nets = (placed.device.terminals for placed in subject.placed if placed.device.is_mos)
    tails = {net["d"] for net in nets if net["s"] in subject.supplies and net["d"] != net["g"]}
    for placed in devices:
        above[placed.device.terminals["s"]].append(placed)
    for own in (own for net, own in above.items() if net in tails - subject.supplies.nets and len(own) == _SPLIT):
        gates, drains = ({placed.device.terminals[end] for placed in own} for end in ("g", "d"))
        if len(gates) == _SPLIT and len(drains) == _SPLIT - 1 and len({placed.area for placed in own}) == 1:
            yield MatchedDevices(PAIR, True, tuple(own), tuple(_relatives(subject, own)))


def _works_as(subject: Subject, one: PlacedDevice, other: PlacedDevice) -> str:
    """Return the role in words of two transistors of one type, length and body; empty if they have none."""
    a, b, sizes = one.device.terminals, other.device.terminals, (one.device.w or 0.0, other.device.w or 0.0)
    apart, supplies = max(sizes) - min(sizes), subject.supplies.nets
    if apart > NEARLY * max(sizes):
        return ""
    if a["s"] == b["s"] and a["g"] != b["g"] and a["d"] != b["d"]:
        nearly = apart and a["s"] not in supplies and subject.both_ways.isdisjoint((one.id, other.id))
        return PAIR if nearly else ""
    diode = a["g"] == b["g"] and a["g"] in one.ends ^ other.ends
    return "" if not diode or one.ends & other.ends or (one.ends | other.ends) & supplies else ON_ONE_GATE


@kept
def set_by_logic(subject: Subject) -> set[str]:
    """Return the devices of latches and level shifters that a signal of logic and its complement set: no halves.

    Another stage, of transistors of both types, makes the complement. Latches of memories and samplers have switches.
    """
    ways = set[tuple[str, str]]()
    for stage in subject.stages:
        kinds = [[p for p in stage if p.device.type == kind] for kind in ("nmos", "pmos")]
        gates = set[str].intersection(*({p.device.terminals["g"] for p in own} for own in kinds))
        ways.update(product(gates, set[str].intersection(*(set[str]().union(*(p.ends for p in o)) for o in kinds))))
    of = {p: number for number, stage in enumerate(subject.stages) for p in stage}
    switched = {of.get(p) for p in subject.placed if p.id in subject.both_ways}
    found = set[str]()
    for group in subject.structure.symmetry:
        pairs = [(subject.by_name[a], subject.by_name[b]) for a, b in group.pairs if {a, b} <= subject.by_name.keys()]
        pairs = [pair for pair in pairs if pair[0].device.is_mos]
        nets = {(a, b): (a.device.terminals["g"], b.device.terminals["g"]) for a, b in pairs}
        latches = {of.get(a) for (a, b), (x, y) in nets.items() if x != y and x in b.ends and y in a.ends} - switched
        set_by = (a for (a, _), way in nets.items() if (way in ways) != (way[::-1] in ways))
        found.update((*group.sides, *group.self_symmetric) if any(of.get(a) in latches for a in set_by) else ())
    return found


def signal_halves(subject: Subject) -> Iterator[SymmetryGroup]:
    """Yield the halves that carry one signal, or a signal and its complement, and are in no structure of the circuit.

    Halves are what can be exchanged while the rest of the circuit stays the same, or what follows from a pair of
    bipolar transistors. Their currents meet, or one drives the other, as in a latch: two equal gates on two inputs
    need not be alike.
    """
    graph = SymmetryGraph(subject.circuit, subject.supplies)
    inner = [{*group.sides, *group.self_symmetric} for group in subject.structure.symmetry]
    names, seen = [element.name for element in graph.elements], set[int]()
    for members in (each for each in graph.alike.values() if len(each) == _TWO and each[0] not in seen):
        growth = Growth(graph, frozenset(), exact=True)
        if growth.grow(*(names[index] for index in members)):
            seen.update(growth.sides)
            sides = ({growth.sides.get(graph.number.get(name, -1)) for name in own} for own in inner)
            whole = all(len(side) == 1 for side in sides)  # what is symmetric in itself is in one half
            if growth.is_exchange and whole and _are_one_circuit(graph, growth):
                yield _group(names, growth, "halves that can be exchanged")
    known = set[str]().union(*inner)
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

    Currents of transistors with gates meet as well where logic selects one of two inputs. Bipolar halves on one bias or
    clock are of one circuit.
    """
    moved = [graph.elements[index] for index in growth.sides]
    controls = {net for each in moved for role, net in each.ends if role in CONTROLS}
    if not any(growth.images.get(net, net) != net for net in controls):
        return False
    for left, _ in growth.net_pairs:
        if len({growth.sides.get(index) for index, _ in graph.on_net[left]} - {None}) > 1:
            return True
    return any(each.key[1] in _BIPOLARS for each in moved) and bool(growth.axis or growth.shared)


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
    # One pair has one axis. Several pairs may have different ones; then devices without a partner count as well.
    places = middles if len(pairs) == 1 else [*middles, *(placed.centre[across] for placed in alone)]
    near = {here: [each for each in places if abs(each - here) <= FAR] for here in places}
    most = max(near, key=lambda here: (len(near[here]), -sum(abs(each - here) for each in places)))
    place = median(near[most])
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
