"""The layout under review: its devices and nets under the names of the netlist, and the shapes of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, wraps
from math import sqrt
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import klayout.db as kdb

from layoutkit.circuit.orientation import carries_both_ways, is_off
from layoutkit.circuit.roles import find_roles, recognised
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.extract.extracted import Bodies
from layoutkit.parasitics.layout_circuit import layout_circuit, thinned
from layoutkit.review.currents import device_currents
from layoutkit.review.finding import Remark
from layoutkit.review.pass_devices import as_one

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.extract.extracted import DrawnFinger
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.parasitics.layout_circuit import Feeds
    from layoutkit.review.currents import DeviceCurrents
    from layoutkit.review.finding import Limit, Spot, Unjudged
    from layoutkit.technology import Technology

P = ParamSpec("P")
T = TypeVar("T")

_CROSSING_UM = 0.5  # from both edges of the metal to the ends of a wire that crosses the layout, at most [um]

HEADS_UM = 5.0
"""From the bars, plates or emitters of a device to the straps at their heads. [um]"""

SWITCHES = ("switching", "clocked", "switch")
"""How the mean currents begin of what switches, which takes far more in peaks."""

LEAST_V = 1e-6
"""What is lost in a wire, at least, to matter. [V]"""

MOST_CONTACTS = 300
"""Contacts of a terminal that are looked at; those with more are of pass devices of hundreds of fingers."""


def kept(function: Callable[Concatenate[Subject, P], T]) -> Callable[Concatenate[Subject, P], T]:
    """Keep the answers of a function for each subject; they are shared, not to be changed."""

    @wraps(function)
    def found(subject: Subject, /, *args: P.args, **named: P.kwargs) -> T:
        key = (function, args, *named.items())
        if key not in subject.answers:
            subject.answers[key] = function(subject, *args, **named)
        return cast("T", subject.answers[key])

    return found


@dataclass(frozen=True, eq=False)
class PlacedDevice:
    """One device of the layout.

    Attributes:
        names: The devices of the netlist that it is; several where they are in parallel or in series.
        device: The first of them; of a series with the nets at its ends.
        key: Its name in the layout's circuit.
        index: Its number among the extracted devices.
        fingers: Its channels, bars or plates.
        boxes: The box of each. [dbu]
    """

    names: tuple[str, ...]
    device: Device
    key: str
    index: int
    fingers: tuple[DrawnFinger, ...]
    boxes: tuple[kdb.Box, ...]

    @property
    def id(self) -> str:
        """Its name."""
        return self.names[0]

    @cached_property
    def box(self) -> kdb.Box:
        """The box around its channels, bars or plates. [dbu]"""
        return box_around(self.boxes)

    @cached_property
    def area(self) -> int:
        """Area of its channels, bars or plates. [dbu2]"""
        return sum(int(box.area()) for box in self.boxes)

    @cached_property
    def centre(self) -> tuple[float, float]:
        """Centre of their area. [dbu]"""
        x = sum(box.area() * (box.left + box.right) for box in self.boxes) / (2 * self.area)
        return x, sum(box.area() * (box.bottom + box.top) for box in self.boxes) / (2 * self.area)

    @property
    def ends(self) -> set[str]:
        """The nets that its channels, bars or plates join."""
        return {self.device.terminals[end] for end in self.device.kind.ends}

    @cached_property
    def islands(self) -> frozenset[int]:
        """Numbers of the diffusions that its channels are on."""
        return frozenset(finger.around.diffusion for finger in self.fingers if finger.around is not None)


class Subject:
    """A layout that LVS has matched with its netlist, ready to be reviewed.

    Args:
        result: The match.
        circuit: The netlist, in models of the technology.
        constraints: What the layout was asked for; None for nothing but what follows from the circuit.
        limits: The limits by name.

    Raises:
        LayoutkitError: If the layout does not match.
    """

    def __init__(
        self, result: LvsResult, circuit: Circuit, constraints: Constraints | None, limits: Mapping[str, Limit]
    ) -> None:
        self.answers: dict[Hashable, Any] = {}
        self.extraction = result.extraction
        self.technology: Technology = self.extraction.technology
        self.circuit, self.limits = circuit, limits
        self.asked = constraints
        self.found = layout_circuit(self.extraction, circuit, result)
        self.roles = find_roles(circuit)
        self.supplies = self.roles.supplies
        self.number = {name: number for number, name in self.found.nets.items()}
        self.cell: kdb.Cell = self.extraction.layout.cell(self.extraction.cell_name)
        self.bodies = Bodies(result.extraction)
        self.placed = self._placed(result)
        self.by_name = {name: placed for placed in self.placed for name in placed.names}
        self.by_key = {placed.key: placed for placed in self.placed}
        self.box, drawn = self.cell.bbox(), self.metal_box + box_around(placed.box for placed in self.placed)
        left, right, bottom, top = self.margins(drawn).values()
        if 2 * min(left, right) > 3 * drawn.width() or 2 * min(bottom, top) > 3 * drawn.height():
            self.box = drawn  # the boundary is made for more
        self.core = box_around(placed.box for placed in self.placed if placed.device.is_mos)
        self.unjudged: list[Unjudged] = []

    def _placed(self, result: LvsResult) -> tuple[PlacedDevice, ...]:
        keys = {index: name for name, (index, _) in self.found.sources.items()}
        owners = {part.id: device.id for device in self.circuit.devices for part in device.in_series}
        found: dict[tuple[str, ...], PlacedDevice] = {}
        for index, drawn in enumerate(self.extraction.devices):
            parts = [part for name in result.device_pairs.get(drawn.id, ()) for part in _parts(name, owners)]
            names = tuple(dict.fromkeys(owners[part] for part in parts))
            boxes = tuple(self.bodies.box(finger) for finger in drawn.fingers)
            if names in found:  # of several in series
                first = found[names]
                found[names] = replace(first, fingers=first.fingers + drawn.fingers, boxes=first.boxes + boxes)
            elif names:
                own = as_one([*map(self.circuit.device, names)], self.number)
                ids = tuple(device.id for device in own)
                found[names] = PlacedDevice(ids, own[0], keys[index], index, drawn.fingers, boxes)
        return tuple(found.values())

    @cached_property
    def constraints(self) -> Constraints:
        """What was asked for, else what follows from the circuit."""
        return self.structure if self.asked is None else self.asked

    @cached_property
    def structure(self) -> Constraints:
        """What follows from the circuit, whatever was asked for."""
        return suggest_constraints(recognised(self.circuit))

    @cached_property
    def currents(self) -> DeviceCurrents:
        """The direct currents of the devices."""
        stated, nets = ({}, {}) if self.asked is None else (self.asked.device_loads, self.asked.currents)
        return device_currents(self.circuit, self.roles, self.technology, stated, nets)

    def current(self, placed: PlacedDevice) -> float | None:
        """Return the current of a device, of all that are in parallel; None where it is not known. [A]"""
        known = [self.currents.devices[name].ampere for name in placed.names if name in self.currents.devices]
        return sum(known) if known else None

    def carries_little(self, devices: Iterable[PlacedDevice], ohm: float) -> bool:
        """Return whether the currents of devices, all known and none switching, lose under 1 uV in a resistance."""
        known = [self.currents.devices.get(name) for placed in devices for name in placed.names]
        steady = all(each is not None and not each.full and not each.how.startswith(SWITCHES) for each in known)
        return steady and ohm * sum(each.ampere for each in known if each is not None) < LEAST_V

    def is_full(self, placed: PlacedDevice) -> bool:
        """Return whether a device is a pass device or a switch, at full drive."""
        return any(self.currents.devices[n].full for n in placed.names if n in self.currents.devices)

    def drive(self, placed: PlacedDevice) -> float:
        """Return the current at full drive of a pass device or switch, whatever it carries; else 0. [A]"""
        return sum(self.currents.drive.get(name, 0.0) for name in placed.names)

    def is_idle(self, placed: PlacedDevice) -> bool:
        """Return whether a transistor is off for good, as dummies are, or a resistor or capacitor has one net."""
        device, tied = placed.device, len(placed.ends) == 1
        return (device.is_mos and is_off(device, self.supplies)) or (
            tied and (device.is_mos or device.type in {"resistor", "capacitor"})
        )

    def among(self, devices: Sequence[PlacedDevice], own: Iterable[PlacedDevice]) -> list[PlacedDevice]:
        """Return the devices in the convex hull around ``devices``, not above these, without idle ones and ``own``."""
        boxes = [box for placed in devices for box in placed.boxes]
        hull, below = hull_around(boxes), region_of(boxes)
        inside = (p for p in self.placed if p not in own and any(hull.inside(box.center()) for box in p.boxes))
        return [p for p in inside if not self.is_idle(p) and (below & region_of(p.boxes)).is_empty()]

    def devices(self, names: Iterable[str]) -> list[PlacedDevice]:
        """Return the devices of these names, each once, by place."""
        found = {id(each): each for each in (self.by_name.get(name) for name in names) if each is not None}
        return sorted(found.values(), key=lambda each: (each.box.left, each.box.bottom, each.index))

    def images(self, placed: PlacedDevice) -> list[PlacedDevice]:
        """Return the device that the circuit's symmetry makes the mirror image of a device, if there is one."""
        return self.devices(self.images_by_name[name] for name in placed.names if name in self.images_by_name)

    @cached_property
    def images_by_name(self) -> dict[str, str]:
        """Each device of a symmetric pair, mapped to its image."""
        pairs = [pair for group in self.structure.symmetry for pair in group.pairs]
        return {one: other for a, b in pairs for one, other in ((a, b), (b, a))}

    @cached_property
    def instance_of(self) -> dict[str, str]:
        """The instance of a subcircuit that each device is in."""
        return {name: each.path for each in self.circuit.subcircuits for name in each.devices}

    @cached_property
    def idle_boxes(self) -> list[kdb.Box]:
        """The channels of dummies: those that extraction leaves out, and those that are off for good."""
        boxes = [finger.around.box for finger in self.extraction.dummies if finger.around is not None]
        return boxes + [box for p in self.placed if p.device.is_mos and self.is_idle(p) for box in p.boxes]

    def idle_passives(self, kind: str) -> list[kdb.Box]:
        """Return the bars or plates of dummies: left out by extraction, or with one net at both ends."""
        found = [self.bodies.box(finger) for finger in self.extraction.dummies if finger.kind.name == kind]
        return found + [box for p in self.placed if p.device.type == kind and self.is_idle(p) for box in p.boxes]

    @kept
    def feeds(self, net: str) -> dict[tuple[PlacedDevice, str], Feeds]:
        """Return where the terminals of devices meet the wires of a net, by device and terminal of the netlist.

        Of many contacts, some stand for those beside them.
        """
        return {
            (self.by_key[key], terminal): thinned(each, MOST_CONTACTS)
            for (key, terminal), each in self.found.feeds.get(self.number[net], {}).items()
            if key in self.by_key
        }

    @kept
    def shapes(self, net: str, layer: str) -> kdb.Region:
        """Return the merged shapes of a net on a layer of the extraction; shared, not to be changed."""
        return self.extraction.merged(self.number[net], layer)

    @kept
    def metal(self, net: str) -> dict[str, kdb.Region]:
        """Return the shapes of a net on each conductor that it has shapes on."""
        found = {each.name: self.shapes(net, each.name) for each in self.technology.conductors}
        return {name: region for name, region in found.items() if not region.is_empty()}

    @cached_property
    def metal_layers(self) -> tuple[tuple[str, str], ...]:
        """The conductors and cuts: their names, and the layers that they are drawn on."""
        conductors, cuts = self.technology.conductors, self.technology.cuts
        return (*((each.name, each.layer) for each in conductors), *((each.name, each.layer) for each in cuts))

    @cached_property
    def stages(self) -> list[list[PlacedDevice]]:
        """The working transistors that are joined by nets of their channels which are no supplies."""
        import networkx as nx

        working = [placed for placed in self.placed if placed.device.is_mos and not self.is_idle(placed)]
        joined: nx.Graph[PlacedDevice | str] = nx.Graph()
        joined.add_nodes_from(working)
        joined.add_edges_from((placed, net) for placed in working for net in placed.ends if net not in self.supplies)
        stages = ([each for each in part if not isinstance(each, str)] for part in nx.connected_components(joined))
        return [sorted(stage, key=lambda placed: placed.index) for stage in stages]

    @cached_property
    def both_ways(self) -> frozenset[str]:
        """The transistors that carry current both ways."""
        return frozenset(carries_both_ways(self.circuit))

    @cached_property
    def inverted(self) -> frozenset[str]:
        """The nets that inverters drive."""
        return frozenset(str(g.properties["output"]) for g in self.roles.groups if g.type == "inverter")

    @cached_property
    def nets(self) -> list[str]:
        """The nets of the layout that the netlist has, in the order of the layout: names decide nothing."""
        return sorted((net for net in self.circuit.nets if net in self.number), key=self.number.__getitem__)

    def in_order(self, nets: Iterable[str]) -> list[str]:
        """Return nets in the order of the layout."""
        return sorted(nets, key=lambda net: (self.number.get(net, -1), net))

    @kept
    def layer(self, name: str) -> kdb.Region:
        """Return the merged shapes of a layer or role of the technology, of the whole cell."""
        index = self.cell.layout().find_layer(*self.technology.spec(name).gds)
        return kdb.Region() if index is None else kdb.Region(self.cell.begin_shapes_rec(index)).merged()

    def role(self, role: str) -> kdb.Region:
        """Return the merged shapes of a role; empty where the technology has none."""
        return kdb.Region() if self.technology.role(role) is None else self.layer(role)

    @cached_property
    def taps(self) -> kdb.Region:
        """All taps of wells and of the substrate."""
        found = kdb.Region()
        for net in self.nets:
            found += self.shapes(net, "n_tap") + self.shapes(net, "p_tap")
        return found.merged()

    @cached_property
    def labels(self) -> dict[str, list[tuple[str, kdb.Point, bool]]]:
        """Each port's labels: conductor, place, and whether a pin shape is under it."""
        dbu = self.extraction.layout.dbu
        found: dict[str, list[tuple[str, kdb.Point, bool]]] = {}
        conductors = {each.name for each in self.technology.conductors}
        for number, net in self.extraction.nets.items():
            name = self.found.nets[number]
            for label in net.labels:
                if label.conductor in conductors and name in self.circuit.ports:
                    point = kdb.Point(round(label.place.x / dbu), round(label.place.y / dbu))
                    found.setdefault(name, []).append((label.conductor, point, label.on_pin))
        return found

    @cached_property
    def net_images(self) -> dict[str, str]:
        """The nets of the layout that are images of each other in a symmetric structure."""
        pairs = [pair for group in self.structure.symmetry for pair in group.net_pairs]
        return {one: other for a, b in pairs for one, other in ((a, b), (b, a)) if other in self.number}

    @cached_property
    def metal_box(self) -> kdb.Box:
        """The box around all metal. [dbu]"""
        return box_around(self.layer(layer).bbox() for _, layer in self.metal_layers)

    def ends_of_crossings(self, net: str) -> list[tuple[str, kdb.Box]]:
        """Return both ends of the wires at labels of a port that cross the whole layout, for its neighbours. [dbu]"""
        found: list[tuple[str, kdb.Box]] = []
        near, edge = self.technology.to_dbu(HEADS_UM), self.metal_box.enlarged(-self.technology.to_dbu(_CROSSING_UM))
        labels = [point for _, point, _ in self.labels.get(net, ())]
        for name, region in self.metal(net).items() if labels else ():
            boxes = (piece.bbox() for piece in region.decompose_trapezoids_to_region().each())
            for box in (each for each in boxes if any(map(each.enlarged(near).contains, labels))):
                if box.left <= edge.left < edge.right <= box.right:
                    found += [(name, kdb.Box(x, box.bottom, x, box.top)) for x in (box.left, box.right)]
                elif box.bottom <= edge.bottom < edge.top <= box.top:
                    found += [(name, kdb.Box(box.left, y, box.right, y)) for y in (box.bottom, box.top)]
        return found

    def margins(self, box: kdb.Box) -> dict[str, int]:
        """Return how far a box is from each side of the layout. [dbu]"""
        cell = self.box
        gaps = (box.left - cell.left, cell.right - box.right, box.bottom - cell.bottom, cell.top - box.top)
        return dict(zip(("left", "right", "bottom", "top"), gaps, strict=True))

    def sides_of(self, box: kdb.Box) -> list[str]:
        """Return the sides of the layout, the one nearest to a box first."""
        gaps = self.margins(box)
        return sorted(gaps, key=lambda side: (gaps[side], side))

    def um(self, length: float) -> float:
        """Return a length in micrometres."""
        return float(length) * self.technology.dbu_um

    def finding(  # noqa: PLR0913 - the fields of a finding
        self,
        limit: str,
        measured: float,
        why: str,
        *,
        what_to_do: str = "",
        where: kdb.Box | None = None,
        devices: Sequence[PlacedDevice] = (),
        nets: Iterable[str] = (),
        must: bool = True,
        cause: str = "",
        difference: float = 0.0,
        places: Iterable[Spot] = (),
    ) -> list[Remark]:
        """Return the finding of a figure that is beyond its limit, else nothing.

        Args:
            limit: Name of the limit; the finding's id is its first part.
            measured: The figure.
            why: What is wrong.
            what_to_do: How it is mended, where that is not the cure of the limit.
            where: Its place; None for that of the devices. [dbu]
            devices: Devices concerned.
            nets: Nets concerned.
            must: Whether it can be severe.
            cause: That of ``Remark``.
            difference: The absolute difference, compared with the floor of the limit, in the unit of that.
            places: Where else it is so.
        """
        rule = self.limits[limit]
        beyond, floor = rule.beyond(measured), self.limits.get(rule.floor)
        large = floor is None or (floor.must is not None and difference >= floor.must)
        if beyond is not None and not (must and large) and beyond[0] == "must":
            beyond = None if rule.should is None else ("should", rule.should)
        if beyond is None:
            return []
        ordered = sorted(devices, key=lambda each: (each.box.left, each.box.bottom, each.index))
        names = tuple(name for each in ordered for name in each.names)
        kind, known = limit.split(".", maxsplit=1)[0], tuple(self.in_order({*nets}))
        place = box_around(each.box for each in devices) if where is None else where
        return [
            Remark(
                kind, beyond[0], place, names, known, measured, beyond[1], rule.unit,
                why, what_to_do or rule.cure, cause, tuple(places),
            )
        ]  # fmt: skip


def region_of(boxes: Iterable[kdb.Box]) -> kdb.Region:
    """Return boxes as a region. [dbu]"""
    found = kdb.Region()
    for box in boxes:
        found.insert(box)
    return found


def box_around(boxes: Iterable[kdb.Box]) -> kdb.Box:
    """Return the box around boxes. [dbu]"""
    return sum(boxes, start=kdb.Box())


def hull_around(boxes: Iterable[kdb.Box]) -> kdb.Polygon:
    """Return the convex hull of boxes (monotone chain; Andrew, 1979). [dbu]"""
    places = sorted({(x, y) for box in boxes for x in (box.left, box.right) for y in (box.bottom, box.top)})
    chains: list[list[tuple[int, int]]] = []
    for line in (places, places[::-1]):
        chain: list[tuple[int, int]] = []
        for x, y in line:
            while len(chain) > 1 and _turn(*chain[-2], *chain[-1], x, y) <= 0:
                chain.pop()
            chain.append((x, y))
        chains.append(chain[:-1])
    return kdb.Polygon([kdb.Point(x, y) for chain in chains for x, y in chain])


def _turn(ax: int, ay: int, bx: int, by: int, cx: int, cy: int) -> int:
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def centre_of(devices: Sequence[PlacedDevice]) -> tuple[float, float]:
    """Return the centre of the area of devices. [dbu]"""
    area = sum(placed.area for placed in devices)
    x, y = (sum(placed.area * placed.centre[axis] for placed in devices) / area for axis in (0, 1))
    return x, y


def turned(box: kdb.Box, *, upright: bool) -> kdb.Box:
    """Return a box with x and y exchanged if ``upright``, so that what is vertical is judged as what is horizontal."""
    return box.transformed(kdb.Trans.M45) if upright else box


def longer_side(box: kdb.Box) -> int:
    """Return the longer side of a box, 0 for none. [dbu]"""
    return 0 if box.empty() else max(box.width(), box.height())


def names_of(devices: Sequence[PlacedDevice]) -> str:
    """Return the names of devices for a message."""
    names = [placed.id for placed in devices]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def wire_length(polygon: kdb.Polygon) -> float:
    """Return the length of a wire from its area and outline: of a strip L long and W wide, L. [dbu]"""
    half = polygon.perimeter() / 2
    return float(half + sqrt(max(0.0, half * half - 4 * polygon.area()))) / 2


def gap_between(one: kdb.Box, other: kdb.Box) -> float:
    """Return the distance between two boxes, 0 where they touch. [dbu]"""
    x = max(0, one.left - other.right, other.left - one.right)
    y = max(0, one.bottom - other.top, other.bottom - one.top)
    return float((x * x + y * y) ** 0.5)


def _parts(name: str, known: Container[str]) -> list[str]:
    """Return the devices of the circuit that a device of LVS stands for: itself, or the parts of a folded stack."""
    return [name] if name in known else [part for part in name.split("+") if part in known]
