"""What is wrong with constraints: names that the circuit does not have, and constraints that contradict one another.

Where constraints on places contradict one another, no placement can obey all of them, whatever the sizes. Every
constraint on places is a set of inequalities between the edges and middles of what is placed, such as "the right edge
of M1 is not beyond the left edge of M2". A cycle of inequalities that holds a strict one has no solution; the
constraints on the cycle contradict one another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.constraints import ENTRIES, MAX_NAME, MAX_SHOWN, OPPOSITE, ConstraintFault, raise_faults, short
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.supplies import supply_faults
from layoutkit.circuit.symmetry_graph import same_size
from layoutkit.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from layoutkit.circuit.circuit import Circuit, Device, StatedSupplies
    from layoutkit.circuit.constraints import (
        Constraints,
        MatchedGroup,
        NetShield,
        Outline,
        PortSide,
        SubstrateNets,
        SymmetryGroup,
    )

    Point = tuple[str, str, str]  # what is placed, the axis x or y, and its low edge, middle or high edge
    Step = tuple[Point, Point, bool, str]


MAX_HINTED = 50  # faults that suggest another name
_NAMED_IN = {
    **dict.fromkeys(("proximity", "alignment", "ordering", "abutment"), "devices"),
    **dict.fromkeys(("net_lengths", "net_separations"), "nets"),
    **dict.fromkeys(("net_priorities", "net_currents"), "net"),
    "device_currents": "device",
}
"""Sections in which only names are checked, each with the field that holds them."""
_IN_SEVERAL = frozenset({"proximity", "alignment", "ordering", "abutment", "net_separations"})
"""Sections in which a name may be in several entries."""


def check_constraints(constraints: Constraints, circuit: Circuit | None) -> None:
    """Check that constraints fit ``circuit``, where it is known, and do not contradict one another.

    Raises:
        LayoutkitError: If they do not; the details list every fault.
    """
    what = "contradict themselves" if circuit is None else f"do not fit circuit {circuit.name}"
    raise_faults(find_faults(constraints, circuit), f"the constraints {what}")


def find_faults(constraints: Constraints, circuit: Circuit | None) -> list[ConstraintFault]:
    """Return what is wrong with constraints for ``circuit``: what it lacks, and what contradicts itself.

    Without a circuit, every name counts as known, and only contradictions are found.
    """
    judge = _Judge(circuit, constraints)
    for name in ENTRIES:
        for index, entry in enumerate(getattr(constraints, name)):
            if name in _NAMED_IN:
                judge.names(name, f"{name}[{index}]", entry)
            else:
                getattr(judge, name)(f"{name}[{index}]", entry)
    judge.mirrored_ports(constraints)
    judge.currents(constraints)
    opposed = contradictions(constraints)
    return [*judge.faults, *(ConstraintFault(each.paths[-1], each.text, list(each.names)) for each in opposed)]


class _Judge:
    """Collects the faults of constraints, one constraint after the other."""

    def __init__(self, circuit: Circuit | None, constraints: Constraints) -> None:
        self._circuit = circuit
        self._depths = Counter(group for inner in constraints.axes_within.values() for group in inner)
        self._devices = {device.id: device for device in circuit.devices} if circuit else {}
        self._supplies = find_roles(circuit).supplies if circuit else None
        self._taken: dict[str, dict[str, str]] = defaultdict(dict)  # by section: each name and the path of its entry
        self._net_pairs: set[frozenset[str]] = set()  # of the groups judged so far
        self._found: dict[tuple[str, str], ConstraintFault] = {}
        self._looked_up = 0

    @property
    def faults(self) -> list[ConstraintFault]:
        """What is wrong, each reported once."""
        return list(self._found.values())

    def symmetry(self, path: str, group: SymmetryGroup) -> None:
        """Judge one symmetry group: a device is in another one, too, if one lies within a half of the other."""
        taken = self._taken[f"symmetry {self._depths[group]}"]
        for index, pair in enumerate(group.pairs):
            where = f"{path}.pairs[{index}]"
            devices = [self._device(where, name) for name in pair]
            self._alone(where, pair, taken)
            if None not in devices:
                self._alike(where, [device for device in devices if device is not None], "symmetric")
        for index, name in enumerate(group.self_symmetric):
            where = f"{path}.self_symmetric[{index}]"
            self._device(where, name)
            self._alone(where, [name], taken)
        for index, pair in enumerate(group.net_pairs):
            where = f"{path}.net_pairs[{index}]"
            known = [self._net(where, name) for name in pair]
            if frozenset(pair) not in self._net_pairs:  # two groups may share a pair, as two instances do
                self._alone(where, pair, self._taken["symmetry.net_pairs"])
            supply = next((name for name in pair if self._supplies and name in self._supplies.outer), None)
            if all(known) and supply is not None:
                self._report(where, f"the supply net {supply!r} mirrors no other net", pair)
        self._net_pairs.update(map(frozenset, group.net_pairs))

    def matching(self, path: str, group: MatchedGroup) -> None:
        """Judge one group of matched devices."""
        devices = [self._device(path, name) for name in group.devices]
        self._alone(path, group.devices, self._taken["matching"])
        known = [device for device in devices if device is not None]
        if len(known) < len(devices):
            return
        kinds = sorted({f"{device.type} {device.model}" for device in known})
        if len(kinds) > 1:
            self._report(path, f"devices of different kinds cannot be matched: {', '.join(kinds)}", list(group.devices))
            return
        letters = sorted({letter for letter in group.arrangement if letter.isupper()})
        wanted = [chr(ord("A") + place) for place in range(len(known))]
        if letters and letters != wanted:
            self._report(
                path,
                f"{group.arrangement} names its devices {', '.join(letters)}; {len(known)} devices are named "
                f"{', '.join(wanted)}, in their order",
                list(group.devices),
            )

    def names(self, section: str, path: str, entry: Any) -> None:
        """Check the names of devices or nets in one entry of a section of ``_NAMED_IN``."""
        found = getattr(entry, _NAMED_IN[section])
        names = (found,) if isinstance(found, str) else found
        known = [self._net(path, name) if "net" in _NAMED_IN[section] else self._device(path, name) for name in names]
        if "device" in _NAMED_IN[section] or all(known):
            self._alone(path, names, {} if section in _IN_SEVERAL else self._taken[section])

    def outline(self, path: str, entry: Outline) -> None:
        """Judge the outline: it must limit something."""
        if entry.width is None and entry.height is None and entry.aspect is None:
            self._report(path, "an outline needs a width, a height or an aspect", None)

    def net_shields(self, path: str, entry: NetShield) -> None:
        """Judge the shield of one net."""
        if self._net(path, entry.net) and self._net(path, entry.shield):
            self._alone(path, [entry.net], self._taken["net_shields"])
            if entry.net == entry.shield:
                self._report(path, f"{short(entry.net)!r} cannot shield itself", entry.net)

    def currents(self, constraints: Constraints) -> None:
        """Judge devices whose current only the port of a net can carry, which states less."""
        for device in filter(None, map(self._devices.get, constraints.device_loads if constraints.currents else ())):
            current = constraints.device_loads[device.id]
            stated_in = self._taken["net_currents"]
            for net in sorted({device.terminals[end] for end in _ends(device)} & constraints.currents.keys()):
                if current > constraints.currents[net] and self._only_its_port_drives(net, device):
                    self._report(
                        self._taken["device_currents"][device.id],
                        f"{device.id} carries {current:g} A, which no other device can drive, but its net "
                        f"{short(net)!r} is stated to carry {constraints.currents[net]:g} A in {stated_in[net]}",
                        device.id,
                    )

    def _only_its_port_drives(self, net: str, device: Device) -> bool:
        """Return whether all other devices on a net take current from it as one does, or all give it."""
        if self._circuit is None or net in self._circuit.black_box_nets:
            return False
        places = self._circuit.nets[net]
        ends = [(self._devices[each.device], each.terminal) for each in places if each.device != device.id]
        sides = {_takes(device, end) for end in _ends(device) if device.terminals[end] == net}
        sides |= {_takes(other, end) for other, end in ends if end in _ends(other)}
        return len(sides) == 1 and None not in sides

    def supplies(self, path: str, entry: StatedSupplies) -> None:
        """Judge the stated supplies."""
        for kind, fault, net in supply_faults(self._circuit, entry) if self._circuit else ():
            self._report(f"{path.partition('[')[0]}.{kind}", fault, net)

    def substrate_nets(self, path: str, entry: SubstrateNets) -> None:
        """Judge the grounds that meet in the substrate."""
        for name in entry.nets:
            self._net(f"{path.partition('[')[0]}.nets", name)

    def port_sides(self, path: str, entry: PortSide) -> None:
        """Judge the side of one port."""
        if not self._net(path, entry.port):
            return
        if self._circuit and entry.port not in self._circuit.ports:
            ports = ", ".join(self._circuit.ports[:MAX_SHOWN]) or "none"
            self._report(
                path, f"{short(entry.port)!r} is a net inside the circuit, no port; ports: {ports}", entry.port
            )
        self._alone(path, [entry.port], self._taken["port_sides"])

    def mirrored_ports(self, constraints: Constraints) -> None:
        """Judge ports whose nets mirror each other: they cannot both be on the left."""
        sides = constraints.sides
        for one, other in (pair for group in constraints.symmetry for pair in group.net_pairs):
            if one in sides and other in sides and sides[other] != OPPOSITE[sides[one]]:
                self._report(
                    self._taken["port_sides"][other],
                    f"{short(one)!r} ({sides[one]}) and {short(other)!r} ({sides[other]}) mirror each other about a "
                    f"vertical axis; {short(other)!r} can be at the side {OPPOSITE[sides[one]]} only",
                    other,
                )

    def _device(self, path: str, name: str) -> Device | None:
        device = self._devices.get(name)
        if device is None and self._circuit:
            self._report(path, f"the circuit has no device {short(name)!r}{self._nearest(name, self._devices)}", name)
        return device

    def _net(self, path: str, name: str) -> bool:
        if self._circuit is None or name in self._circuit.nets:
            return True
        self._report(path, f"the circuit has no net {short(name)!r}{self._nearest(name, self._circuit.nets)}", name)
        return False

    def _alone(self, path: str, names: Sequence[str], taken: dict[str, str]) -> None:
        """Record where names are listed; a name that is listed elsewhere, too, is a fault."""
        here = Counter(names)
        for name in names:
            other = taken.setdefault(name, path)
            if other != path or here[name] > 1:
                place = "listed twice here" if here[name] > 1 else f"already in {other}"
                self._report(path, f"{short(name)!r} is {place}", name)

    def _alike(self, path: str, devices: Sequence[Device], purpose: str) -> None:
        """Report devices that are not drawn alike."""
        first, *others = devices
        different = [device.id for device in others if not same_size(first, device)]
        if different:
            self._report(
                path,
                f"{first.id} and {', '.join(different)} differ in type, model or size and cannot be {purpose}",
                [device.id for device in devices],
            )

    def _report(self, path: str, message: str, value: Any) -> None:
        self._found.setdefault((path, message), ConstraintFault(path, message, value))

    def _nearest(self, name: str, known: Iterable[str]) -> str:
        """Return a hint at a similar name, for the first ``MAX_HINTED`` faults."""
        self._looked_up += 1
        if len(name) > MAX_NAME or self._looked_up > MAX_HINTED:
            return ""
        return did_you_mean(name, known, 0.5)


def _ends(device: Device) -> tuple[str, ...]:
    """Return the terminals through which a direct current may flow."""
    if device.is_mos:
        return ("d", "s")
    return () if device.type == "capacitor" else tuple(device.terminals)


def _takes(device: Device, end: str) -> bool | None:
    """Return whether a device takes current from the net at a drain or source; None if that is not known."""
    return (device.type == "nmos") == (end == "d") if device.is_mos else None


EDGES = {
    "left": ("x", "low"),
    "right": ("x", "high"),
    "center_x": ("x", "middle"),
    "bottom": ("y", "low"),
    "top": ("y", "high"),
    "center_y": ("y", "middle"),
}
"""Edge of an alignment to its axis and where on it."""
AXES = {"left_to_right": "x", "bottom_to_top": "y"}
"""Direction of an ordering to its axis."""
_TRIED = 50  # inequalities of a contradiction from which the shortest cycle is searched


class Contradiction(NamedTuple):
    """Constraints that no placement can obey together: their paths, and the names of what they place."""

    paths: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def text(self) -> str:
        """It in words."""
        return f"no placement of {', '.join(self.names)} obeys {' and '.join(self.paths)} together; change one of them"


def contradictions(constraints: Constraints, item_of: Callable[[str], str] | None = None) -> list[Contradiction]:
    """Return the sets of constraints on places that contradict one another.

    Args:
        constraints: Symmetric pairs, devices on an axis, alignment, ordering and abutment.
        item_of: What is placed for a device; None where that is not known yet. Then matched devices, which may be drawn
            in one module, mirror each other in it.
    """
    import networkx as nx

    steps = list(_inequalities(constraints, item_of))
    for item, axis in sorted({(item, axis) for low, high, _, _ in steps for item, axis, _ in (low, high)}):
        for before, after in (("low", "middle"), ("middle", "high")):
            steps.append(((item, axis, before), (item, axis, after), True, ""))
    order: nx.DiGraph[Point] = nx.DiGraph((low, high) for low, high, _, _ in steps)
    cycles = sorted((part for part in nx.strongly_connected_components(order) if len(part) > 1), key=min)
    numbers = {point: number for number, members in enumerate(cycles) for point in members}
    inside: list[list[Step]] = [[] for _ in cycles]
    for step in steps:
        number = numbers.get(step[0])
        if number is not None and number == numbers.get(step[1]):
            inside[number].append(step)
    found = [_shortest(each) for each in inside]
    return [each for each in found if each is not None]


def _inequalities(constraints: Constraints, item_of: Callable[[str], str] | None) -> Iterator[Step]:
    """Yield the inequalities of the constraints, each with the path of its constraint."""
    matched = {name: index for index, group in enumerate(constraints.matching) for name in group.devices}

    def items(names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(item_of(name) if item_of else name for name in names))

    def equal(one: Point, other: Point, path: str) -> Iterator[Step]:
        yield one, other, False, path
        yield other, one, False, path

    for number, group in enumerate(constraints.symmetry):
        middle = (f"axis of symmetry[{number}]", "x", "middle")
        for index, pair in enumerate(group.pairs):
            path, (left, right, *_) = f"symmetry[{number}].pairs[{index}]", (*items(pair), "")
            if not right or (item_of is None and pair[0] in matched and matched[pair[0]] == matched.get(pair[1])):
                continue
            yield (left, "x", "high"), middle, False, path
            yield middle, (right, "x", "low"), False, path
            for place in ("low", "middle", "high"):
                yield from equal((left, "y", place), (right, "y", place), path)
        for index, name in enumerate(group.self_symmetric):
            (item,) = items([name])
            yield from equal((item, "x", "middle"), middle, f"symmetry[{number}].self_symmetric[{index}]")
    for number, wanted in enumerate(constraints.alignment):
        axis, place = EDGES[wanted.edge]
        first, *others = items(wanted.devices)
        for item in others:
            yield from equal((first, axis, place), (item, axis, place), f"alignment[{number}]")
    for number, line in enumerate(constraints.ordering):
        names, axis = items(line.devices), AXES[line.direction]
        for before, after in pairwise(names):
            yield (before, axis, "high"), (after, axis, "low"), False, f"ordering[{number}]"
    for number, row in enumerate(constraints.abutment):
        names = items(row.devices)
        for left, right in pairwise(names):
            yield from equal((left, "x", "high"), (right, "x", "low"), f"abutment[{number}]")
            for one, other in ((left, right), (right, left)):
                yield (one, "y", "low"), (other, "y", "high"), True, f"abutment[{number}]"


def _shortest(steps: Sequence[Step]) -> Contradiction | None:
    """Return the cycle with a strict inequality that has the fewest constraints; None where no cycle has one."""
    import networkx as nx

    order: nx.DiGraph[Point] = nx.DiGraph()
    for low, high, _, why in steps:
        if not order.has_edge(low, high):
            order.add_edge(low, high, why=why)
    strict = sorted((step for step in steps if step[2]), key=lambda step: step[0])
    best: tuple[list[str], set[str]] | None = None
    for low, high, _, why in strict[:_TRIED]:
        back = nx.single_source_shortest_path(order, high)[low]
        reasons = (why, *(order.edges[step]["why"] for step in pairwise(back)))
        paths = list(dict.fromkeys(filter(None, reasons)))
        if best is None or len(paths) < len(best[0]):
            best = paths, {item for item, _, _ in back if not item.startswith("axis of ")}
    return None if best is None else Contradiction(tuple(sorted(best[0])), tuple(sorted(best[1])))
