"""Whether drawn metal carries the currents of its nets: wires as wide as I/J, and max(2, I/Icut) cuts, everywhere.

The current of a net enters and leaves its metal at the contacts of sources and drains, each finger with its share of
its device's width, and at the port. The metal carries it if a flow exists that exceeds no wire's and no cut's limit (a
maximum flow over the mesh of the metal); where none exists, the minimum cut is the place that is too weak. A single
cut where two fit is a failure also where it carries the current.

Labels name the nets of a layout; the devices of the circuit say which way currents flow through them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.errors import counted, listed
from layoutkit.extract.connectivity import DrawnLayers, Nets, labelled_gates
from layoutkit.extract.metal_mesh import capacities, mesh_of, minimum_cut
from layoutkit.extract.single_cuts import WholeLayout, single_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.extract.metal_mesh import Mesh, MeshLink
    from layoutkit.rectangle import Rect
    from layoutkit.technology import Technology


INTO, OUT_OF, PORT = "into", "out of", "port"
LONGEST_CELL_UM = 5.0
"""Length of wire within which its width is not looked at. [um]"""
_NANO = 1_000_000  # flows are counted in whole nanoamperes; per milliampere


class NetLoad(NamedTuple):
    """What is known of the current of a net.

    Attributes:
        points: Conductor and point of metal of the net. [dbu]
        ports: Those of ``points`` at which the net leaves the layout.
        terminals: Device to whether its current flows ``into`` the net or ``out of`` it.
        current_ma: Largest direct current of the net; None if it is not stated. [mA]
        devices_ma: Device to its current, where it is stated. [mA]
        known_singles: Names and centres of single cuts that are reported elsewhere, with the reason. [dbu]
    """

    points: tuple[tuple[str, int, int], ...]
    ports: tuple[tuple[str, int, int], ...] = ()
    terminals: Mapping[str, str] = {}
    current_ma: float | None = None
    devices_ma: Mapping[str, float] = {}
    known_singles: frozenset[tuple[str, int, int]] = frozenset()


class End(NamedTuple):
    """A cell at which current enters or leaves metal, the current and what its contact carries; None: any. [mA]"""

    cell: int
    current: float | None
    limit: float | None


@dataclass(frozen=True)
class NetVerdict:
    """The judgement of one net: ``passed``, ``failed``, ``unchecked`` or ``unstated`` (no current is stated).

    ``carries_ma`` is what the metal can carry at its weakest place, which ``layer`` and ``box`` name; None if no limit
    is known. ``singles`` are the single cuts where two fit: names and boxes. [mA, um]
    """

    net: str
    verdict: str
    needed_ma: float | None = None
    carries_ma: float | None = None
    layer: str = ""
    box: tuple[float, ...] = ()
    needed: str = ""
    drawn: str = ""
    reason: str = ""
    unchecked: tuple[str, ...] = field(default=())
    singles: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @property
    def text(self) -> str:
        """A failure as a sentence."""
        current = "a current" if self.needed_ma is None else f"{self.needed_ma:g} mA"
        faults = []
        if self.singles:
            places = listed(f"{cut}{_at(box)}" for cut, box in self.singles)
            faults.append(f"it has a single cut where two fit: {places}")
        if (self.layer, self.box) not in self.singles:
            limit = "" if self.carries_ma is None else f", so that it carries {self.carries_ma:.3g} mA"
            faults.insert(
                0, f"its {self.layer}{_at(self.box)} is too weak: {self.drawn} drawn{limit}, {self.needed} needed"
            )
        return f"net {self.net} carries {current}, {'; '.join(faults)}"

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON data, without what is empty."""
        data = {**vars(self), "box": list(self.box), "unchecked": list(self.unchecked)}
        del data["singles"]  # part of the text
        data["text"] = self.text if self.verdict == "failed" else ""
        return {name: value for name, value in data.items() if value not in ("", None, [])}


def _at(box: tuple[float, ...]) -> str:
    return f" at ({', '.join(f'{side:g}' for side in box)}) um" if box else ""


def judge_currents(
    cell: kdb.Cell, technology: Technology, loads: Mapping[str, NetLoad], *, singles: bool = True
) -> list[NetVerdict]:
    """Return the judgement of each net of ``loads``, sorted by name.

    Args:
        cell: The layout.
        technology: Its process.
        loads: Each net, mapped to its current and where it flows.
        singles: Whether single cuts where two fit are failures.
    """
    judge = _Judge(cell, technology, singles=singles)
    return [judge.verdict(name, loads[name]) for name in sorted(loads)]


class _Judge:
    def __init__(self, cell: kdb.Cell, technology: Technology, *, singles: bool) -> None:
        self.technology, self.singles = technology, singles
        layers = DrawnLayers(cell, technology).electrical()
        self.nets = Nets(layers.conducting, layers.joins, technology.dbu_um)
        self.channels = [(device, box) for device, boxes in labelled_gates(cell, technology).items() for box in boxes]
        self.places = kdb.Shapes()
        self.owners: dict[Rect, str] = {}
        self.widths: dict[str, int] = defaultdict(int)
        for device, box in self.channels:
            self.widths[device] += box.height()
            self.places.insert(box)
            self.owners[box.left, box.bottom, box.right, box.top] = device
        channels = kdb.Region()
        for _, box in self.channels:
            channels.insert(box)
        self.whole = WholeLayout(technology, layers.conducting, channels, cell.bbox())

    def verdict(self, name: str, load: NetLoad) -> NetVerdict:
        net = next((n for n in (self.nets.at(c, kdb.Point(x, y)) for c, x, y in load.points) if n is not None), None)
        if net is None:
            return NetVerdict(name, "unchecked", load.current_ma, reason="no metal of the net was found")
        needed = load.current_ma is not None or any(device in load.devices_ma for device in load.terminals)
        if not needed:
            return self._weakest(name, net)
        regions = self._metal(net)
        found = self._judged(name, net, load, regions)
        return self._with_singles(found, load, regions) if self.singles else found

    def _with_singles(self, found: NetVerdict, load: NetLoad, regions: Mapping[str, kdb.Region]) -> NetVerdict:
        """Return the verdict with the single cuts where two fit, which fail of themselves."""
        singles = tuple(
            (cut, self._sides_um(box))
            for cut, box, _, _ in single_places(self.whole, regions)
            if (cut, box.center().x, box.center().y) not in load.known_singles
        )
        if not singles or found.verdict == "failed":
            return replace(found, singles=singles)
        layer, box = singles[0]
        limit = next(cut.current_ma for cut in self.technology.cuts if cut.name == layer)
        found = replace(found, verdict="failed", carries_ma=limit, layer=layer, box=box, singles=singles)
        return replace(found, needed="2 cuts", drawn="1 cut")

    def _judged(self, name: str, net: kdb.Net, load: NetLoad, regions: Mapping[str, kdb.Region]) -> NetVerdict:
        taps = list(self._taps(net, load))
        step = self.technology.to_dbu(LONGEST_CELL_UM)
        mesh = mesh_of(self.technology, regions, [contact for _, contact, _, _ in taps], step)
        limits, unknown = capacities(self.technology, mesh)
        groups = self._groups(mesh, load, taps)
        if any(limit is None for _, _, _, limit in taps):
            unknown.add(self.technology.contact.name)
        unchecked = tuple(sorted(unknown))
        if all(limit is None for limit in limits):
            reason = f"technology {self.technology.name} states no current limit of what is drawn"
            return NetVerdict(name, "unchecked", load.current_ma, reason=reason, unchecked=unchecked)
        worst: NetVerdict | None = None
        pairs = [(INTO, OUT_OF), (PORT, OUT_OF), (INTO, PORT)]
        tried = [(groups[a], groups[b]) for a, b in pairs if groups[a] and groups[b]]
        if not tried:
            reason = (
                "no two places between which its current flows are known (sources and drains of transistors, ports)"
            )
            return NetVerdict(name, "unchecked", load.current_ma, reason=reason, unchecked=unchecked)
        needed = 0.0
        for sources, sinks in tried:
            amount = min(_total(sources, load), _total(sinks, load))
            needed = max(needed, amount)
            found = self._flow(name, mesh, limits, (sources, sinks), amount)
            if found is not None and (worst is None or (found.carries_ma or 0) < (worst.carries_ma or 0)):
                worst = found
        if worst is None:
            return NetVerdict(name, "passed", round(needed, 6), unchecked=unchecked)
        return NetVerdict(**{**vars(worst), "unchecked": unchecked})

    def _metal(self, net: kdb.Net) -> dict[str, kdb.Region]:
        names = [each.name for each in self.technology.conductors]
        names += [each.name for each in self.technology.cuts]
        return {name: self.nets.shapes(net, name).merged() for name in names}

    def _taps(self, net: kdb.Net, load: NetLoad) -> Iterator[tuple[str, Rect, float, float | None]]:
        """Yield device, contact, its share of the device's current, and the contact's limit [mA]."""
        contacts = kdb.Shapes()
        contacts.insert(self.nets.shapes(net, "contact").merged())
        for region, silicon in (("n_sd", "ndiff"), ("p_sd", "pdiff")):
            limit = self.technology.silicon[silicon].contact_ma if silicon in self.technology.silicon else None
            for piece in sorted(self.nets.shapes(net, region).merged().each(), key=str):
                near = kdb.Region([shape.polygon for shape in contacts.each_touching(piece.bbox())])
                inside = [polygon.bbox() for polygon in (near & kdb.Region(piece)).each()]
                touched: dict[str, float] = defaultdict(float)
                for shape in self.places.each_touching(piece.bbox()):
                    box = shape.box
                    device = self.owners[box.left, box.bottom, box.right, box.top]
                    if device in load.terminals and piece.touches(box):
                        touched[device] += box.height() / self.widths[device]
                for device, share in sorted(touched.items()):
                    for box in sorted(inside, key=str):
                        yield device, (box.left, box.bottom, box.right, box.top), share / len(inside), limit

    def _groups(
        self, mesh: Mesh, load: NetLoad, taps: Sequence[tuple[str, Rect, float, float | None]]
    ) -> dict[str, list[End]]:
        """Return the cells at which current enters and leaves the metal."""
        first = self.technology.conductors[0].name
        currents = self._currents(load)
        groups: dict[str, list[End]] = {INTO: [], OUT_OF: [], PORT: []}
        for device, box, share, limit in taps:
            role = load.terminals[device]
            cell = mesh.at(first, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
            if cell is None or not currents[device]:
                continue
            part = currents[device] * share
            groups[role].append(End(cell, part, part if limit is None else min(part, limit)))
        for conductor, x, y in load.ports:
            groups[PORT] += [End(cell, None, None) for cell in mesh.across(conductor, x, y)]
        return groups

    def _currents(self, load: NetLoad) -> dict[str, float]:
        """Return the current of each device of a net [mA].

        Where it is not stated, devices share by their widths what the net's current leaves on their side of the net.
        """
        known = dict.fromkeys((INTO, OUT_OF), 0.0)
        free = dict.fromkeys((INTO, OUT_OF), 0)
        for device, role in load.terminals.items():
            known[role] += load.devices_ma.get(device, 0.0)
            free[role] += 0 if device in load.devices_ma else self.widths.get(device, 0)
        whole = max(load.current_ma or 0.0, *known.values())
        return {
            device: load.devices_ma.get(
                device, max(0.0, whole - known[role]) * self.widths.get(device, 0) / (free[role] or 1)
            )
            for device, role in load.terminals.items()
        }

    def _flow(
        self,
        name: str,
        mesh: Mesh,
        limits: Sequence[float | None],
        ends: tuple[Sequence[End], Sequence[End]],
        amount: float,
    ) -> NetVerdict | None:
        """Return the failure if the metal cannot carry ``amount`` between two groups of cells, None if it can."""
        flow, crossed = largest_flow(mesh, limits, ends, amount)
        if flow >= amount * (1 - 1e-4):
            return None
        return self._failure(name, crossed, flow, amount)

    def _failure(self, name: str, crossed: Sequence[Any], flow: float, amount: float) -> NetVerdict:
        """Return the failure at the links of a minimum cut."""
        if not crossed:
            what, needed, drawn = self.technology.contact.name, f"contacts for {amount:g} mA", f"{flow:g} mA"
            return NetVerdict(name, "failed", round(amount, 6), round(flow, 6), what, (), needed, drawn)
        by_name: dict[str, list[Any]] = defaultdict(list)
        for link, limit in crossed:
            by_name[link.name].append((link, limit))
        layer = min(by_name, key=lambda each: (-len(by_name[each]), each))
        drawn_ma = sum(limit for _, limit in crossed)
        needed_ma = drawn_ma + amount - flow
        box = kdb.Box()
        for link, _ in by_name[layer]:
            box += kdb.Box(*link.box)
        um = self.technology.to_um
        cuts = {cut.name: cut for cut in self.technology.cuts}
        if layer in cuts:
            each = cuts[layer].current_ma or 1.0
            count = max(2, -int(-needed_ma / each // 1))
            needed, drawn = counted(count, "cut"), counted(len(by_name[layer]), "cut")
        else:
            width = sum(link.width for link, _ in by_name[layer])
            density = sum(limit for _, limit in by_name[layer]) / um(width)
            needed, drawn = f"{needed_ma / density:.3g} um", f"{um(width):.3g} um"
        place = self._sides_um(box)
        return NetVerdict(name, "failed", round(amount, 6), round(flow, 6), layer, place, needed, drawn)

    def _sides_um(self, box: kdb.Box) -> tuple[float, ...]:
        """Return left, bottom, right and top of a box. [um]"""
        return tuple(map(self.technology.to_um, (box.left, box.bottom, box.right, box.top)))

    def _weakest(self, name: str, net: kdb.Net) -> NetVerdict:
        """Return what the weakest wire or cut of a net carries: its narrowest wire, or a single cut."""
        weakest: tuple[float, str, kdb.Box] | None = None
        unknown: set[str] = set()
        regions = self._metal(net)
        for conductor in self.technology.conductors:
            region = regions[conductor.name]
            if region.is_empty():
                continue
            box, width = _narrowest(region)
            limit = conductor.current_ma(width * self.technology.dbu_um)
            if limit is None:
                unknown.add(conductor.name)
            elif weakest is None or limit < weakest[0]:
                weakest = (limit, conductor.name, box)
        for cut in self.technology.cuts:
            region = regions[cut.name]
            if region.is_empty():
                continue
            if cut.current_ma is None:
                unknown.add(cut.name)
                continue
            reach = -(-cut.spacing() // 2) + self.technology.grid
            drawn = kdb.Shapes()
            drawn.insert(region)
            for array in region.sized(reach).merged().each():
                count = sum(array.inside(shape.bbox().center()) for shape in drawn.each_touching(array.bbox()))
                limit = count * cut.current_ma
                if weakest is None or limit < weakest[0]:
                    weakest = (limit, cut.name, array.bbox().enlarged(-reach, -reach))
        unchecked = tuple(sorted(unknown))
        if weakest is None:
            reason = f"technology {self.technology.name} states no current limit of {', '.join(unchecked) or 'it'}"
            return NetVerdict(name, "unstated", reason=reason, unchecked=unchecked)
        limit, layer, box = weakest
        return NetVerdict(name, "unstated", None, round(limit, 6), layer, self._sides_um(box), unchecked=unchecked)


def largest_flow(
    mesh: Mesh, limits: Sequence[float | None], ends: tuple[Sequence[End], Sequence[End]], amount: float
) -> tuple[float, list[tuple[MeshLink, float]]]:
    """Return what a mesh carries from one group of cells to another, and the links that limit it. [mA]

    Args:
        mesh: The metal.
        limits: What each of its links carries; None for any current. [mA]
        ends: Where the current enters, and where it leaves.
        amount: The current; more is not looked for. [mA]
    """
    source, sink = len(mesh.cells), len(mesh.cells) + 1
    endless = int(2 * amount * _NANO) + 1
    edges = [
        (link.one, link.other, endless if limit is None else int(limit * _NANO))
        for link, limit in zip(mesh.links, limits, strict=True)
    ]
    for node, group in zip((source, sink), ends, strict=True):
        edges += [(node, end.cell, endless if end.limit is None else ceil(end.limit * _NANO)) for end in group]
    found, side = minimum_cut(sink + 1, edges, source, sink, ceil(amount * _NANO) + 1)
    crossed = [
        (link, limit)
        for link, limit in zip(mesh.links, limits, strict=True)
        if limit is not None and side[link.one] != side[link.other]
    ]
    return found / _NANO, crossed


def _narrowest(region: kdb.Region) -> tuple[kdb.Box, int]:
    """Return the narrowest part of merged metal, and its width. [dbu]"""
    polygons = list(region.each())
    start = min(min(polygon.bbox().width(), polygon.bbox().height()) for polygon in polygons)
    box = next(p.bbox() for p in polygons if min(p.bbox().width(), p.bbox().height()) == start)
    found = region.width_check(start, False, kdb.Region.Projection)
    if found.is_empty():
        return box, start
    pair = min(found.each(), key=lambda each: (each.distance(), str(each)))
    return pair.bbox(), pair.distance()


def _total(group: Sequence[End], load: NetLoad) -> float:
    """Return what a group of cells takes or gives. [mA]"""
    if any(end.current is None for end in group):
        return load.current_ma if load.current_ma is not None else float("inf")
    return sum(end.current for end in group if end.current is not None)


INWARDS = {("nmos", "s"), ("pmos", "d")}
"""Terminals from which current flows into their net; it flows from the net into the other source or drain."""


def roles_of(kind: str, terminals: Mapping[str, str]) -> dict[str, str]:
    """Return for each net of a device whether its current flows into the net or out of it; empty if not known."""
    if kind not in {"nmos", "pmos"}:
        return {net: "" for name, net in terminals.items() if name in {"p", "n"}}
    if terminals["d"] == terminals["s"]:
        return {}
    return {terminals[name]: INTO if (kind, name) in INWARDS else OUT_OF for name in ("d", "s")}


def label_places(cell: kdb.Cell, technology: Technology) -> dict[str, list[tuple[str, int, int]]]:
    """Return the conductors and places at which a cell's own labels name a net. [dbu]"""
    found: dict[str, list[tuple[str, int, int]]] = {}
    for conductor in technology.conductors:
        index = cell.layout().find_layer(*technology.spec(conductor.label_layer).gds)
        if index is not None:
            for shape in cell.shapes(index).each(kdb.Shapes.STexts):
                found.setdefault(shape.text_string, []).append((conductor.name, shape.text.x, shape.text.y))
    return {net: sorted(places) for net, places in found.items()}


def labelled_loads(
    cell: kdb.Cell, technology: Technology, devices: Iterable[Mapping[str, Any]], currents: Mapping[str, float]
) -> dict[str, NetLoad]:
    """Return what is known of nets that labels of a cell name.

    Args:
        cell: The layout.
        technology: Its process.
        devices: Those of the circuit, as its JSON data; they state which way a transistor's current flows.
        currents: Net to its largest direct current. [A]
    """
    labels = label_places(cell, technology)
    terminals: dict[str, dict[str, str]] = defaultdict(dict)
    for device in devices:
        if device.get("type") in {"nmos", "pmos"}:
            for net, role in roles_of(device["type"], device["terminals"]).items():
                terminals[net][device["id"]] = role
    return {
        net: NetLoad(tuple(labels.get(net, ())), tuple(labels.get(net, ())), terminals[net], current * 1e3)
        for net, current in currents.items()
    }
