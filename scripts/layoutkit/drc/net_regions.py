"""Nets of a cell, for the rules that depend on them: spacing by nets and antenna ratios.

``layoutkit.extract.connectivity`` says what is connected; names and labels connect nothing.

For antenna rules, the nets are those while a layer is etched, before higher layers connect them::

    met2     ====              a layer charges the gates of the nets that it is connected to when it is etched
    via        |
    met1     ===== =====       each pair of neighbouring conductors is extracted once, with the cuts between them;
             |         |       the nets of the pairs below a layer are then joined, conductor by conductor
    poly   ====      ====
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.errors import TechnologyError
from layoutkit.extract.connectivity import Nets, electrical_layers, wiring

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.technology.technology import Technology


_ROLES = {"poly": "poly", "contact": "contact", "nwell": "nwell", "deep_nwell": "deep_nwell", "pwell": "p_body"}


class NetRegions:
    """The nets of one cell, in the working units of a check.

    Args:
        cell: The cell, with all below it.
        technology: What connects to what.
        magnification: From the layout's database units to the working units of the check.
    """

    def __init__(self, cell: kdb.Cell, technology: Technology, magnification: float) -> None:
        self._cell = cell
        self._technology = technology
        self._magnification = magnification
        self._of: dict[str, kdb.Region] = {}
        self.etched: dict[str, EtchedNets] = {}
        """Diodes of antenna rules to the nets as the cell is made."""

    @cached_property
    def _nets(self) -> Nets:
        electrical = electrical_layers(self._cell, self._technology)
        return Nets(self._magnified(electrical.conducting), electrical.joins, 1.0)

    @cached_property
    def metal(self) -> tuple[dict[str, kdb.Region], tuple[tuple[str, str], ...]]:
        """The conductors, cuts and capacitor plates, and which of them join."""
        metal = wiring(self._cell, self._technology)
        return self._magnified(metal.regions), metal.joins

    def _magnified(self, regions: dict[str, kdb.Region]) -> dict[str, kdb.Region]:
        if self._magnification == 1:
            return regions
        grown = kdb.ICplxTrans(self._magnification)
        return {name: region.transformed(grown).merged() for name, region in regions.items()}

    def of(self, region: kdb.Region, conductor: str) -> kdb.Region:
        """Return ``region`` with the net of each polygon as a property.

        Args:
            region: Merged polygons that lie in ``conductor``.
            conductor: Layer, role or alias that carries nets (a conductor, cut, contact, poly or well), or their union.

        Raises:
            TechnologyError: If ``conductor`` carries no nets or ``region`` leaves it.
        """
        carriers = [carrier(self._technology, part.strip()) for part in conductor.split("|")]
        names = [name for name in carriers if name is not None]
        if len(names) < len(carriers):
            raise TechnologyError(
                f"'{conductor}' carries no nets; name with net_of the conductor, cut, contact, poly or well that does"
            )
        found, conducting = kdb.Region(), kdb.Region()
        for name in names:
            if name not in self._of:
                nets = self._nets.regions[name].nets(self._nets.database, NET)
                nets.enable_properties()
                self._of[name] = nets
            conducting += self._nets.regions[name]
            found += _parts(self._of[name], region)
        if not (region - conducting).is_empty():
            raise TechnologyError(
                f"a rule about nets is about polygons within one conductor; these leave '{conductor}'"
            )
        found.enable_properties()
        return found


def polygons_as_nets(region: kdb.Region, whole: kdb.Region) -> kdb.Region:
    """Return ``region`` with the polygon of ``whole`` that holds it as its net, as a property; it lies in ``whole``."""
    nets = Nets({"whole": whole}, (), 1.0)
    polygons = nets.regions["whole"].nets(nets.database, NET)
    polygons.enable_properties()
    return _parts(polygons, region)


def _parts(nets: kdb.Region, region: kdb.Region) -> kdb.Region:
    """Return ``region`` with the properties of the polygons of ``nets`` in which it lies."""
    found = nets.and_(region, kdb.Region.NoPropertyConstraint)  # keeps the properties of the first
    found.enable_properties()
    return found


def carrier(technology: Technology, layer: str) -> str | None:
    """Return the name under which ``electrical_layers`` holds ``layer``, None where the layer carries no nets."""
    carriers = {technology.resolve(cut.layer): cut.name for cut in technology.cuts}
    carriers.update({technology.resolve(conductor.layer): conductor.name for conductor in technology.conductors})
    carriers.update({technology.roles[role]: name for role, name in _ROLES.items() if role in technology.roles})
    return carriers.get(technology.resolve(layer))


NET = "net"  # the name of the property that holds the net of a polygon
BASE = ("poly", "contact", "diode")


class Size(NamedTuple):
    """Area and perimeter of a net's shapes on a layer. [dbu2, dbu]"""

    area: int = 0
    perimeter: int = 0


class _Part:
    """Some neighbouring layers, extracted by themselves; its nets have numbers that no other part has."""

    def __init__(self, number: int, nets: Nets) -> None:
        self.number, self.nets = number, nets
        self._found: dict[str, list[tuple[Any, kdb.Polygon]]] = {}
        self._sizes: dict[str, dict[Any, Size]] = {}
        self._within: dict[tuple[str, str], list[tuple[Any, kdb.Polygon]]] = {}

    def polygons(self, layer: str) -> list[tuple[Any, kdb.Polygon]]:
        """Return the polygons of a layer with their nets; none where the part does not hold the layer."""
        if layer not in self.nets.regions:
            return []
        if layer not in self._found:
            region = self.nets.regions[layer].nets(self.nets.database, NET)  # large polygons come in pieces
            region.enable_properties()
            region.merge()
            self._found[layer] = [((self.number, str(each.property(NET))), each) for each in region.each()]
        return self._found[layer]

    def sizes(self, layer: str) -> dict[Any, Size]:
        """Return area and perimeter of each net's shapes on a layer."""
        if layer not in self._sizes:
            self._sizes[layer] = sizes_of(self.polygons(layer))
        return self._sizes[layer]

    def within(self, layer: str, name: str, region: kdb.Region) -> list[tuple[Any, kdb.Polygon]]:
        """Return the pieces of a region, of which there is one of that name, that lie in a layer, with their nets."""
        if (layer, name) not in self._within:
            nets = self.nets.regions[layer].nets(self.nets.database, NET)
            nets.enable_properties()
            merged = _parts(nets, region).merged()
            self._within[layer, name] = [((self.number, str(each.property(NET))), each) for each in merged.each()]
        return self._within[layer, name]


class Stage:
    """The nets when one layer is etched.

    Args:
        below: The nets when the conductor below was etched; None for the lowest conductor.
        part: Holds the layer and, with ``below``, the conductor below.
        shared: That conductor.
    """

    def __init__(self, below: Stage | None, part: _Part, shared: str) -> None:
        self.part = part
        self.base: _Part = part if below is None else below.base
        self._parent: dict[Any, Any] = {} if below is None else dict(below._parent)  # noqa: SLF001 (of its kind)
        if below is not None:
            at = {_place(polygon): net for net, polygon in below.part.polygons(shared)}
            for net, polygon in part.polygons(shared):
                self._parent[self.net(at[_place(polygon)])] = self.net(net)

    def net(self, net: Any) -> Any:
        """Return the net of this stage that a net of one of its parts belongs to."""
        parent = self._parent
        while net in parent and parent[net] != net:
            parent[net] = parent.get(parent[net], parent[net])
            net = parent[net]
        return net

    def gates(self, layer: str, name: str, region: kdb.Region) -> list[tuple[Any, kdb.Polygon]]:
        """Return the pieces of a region of gates, ``name``, that lie in a layer, poly or a plate, with their nets."""
        part = self.part if layer in self.part.nets.regions else self.base
        return part.within(layer, name, region) if layer in part.nets.regions else []

    def sizes(self, sizes: Mapping[Any, Size]) -> dict[Any, Size]:
        """Return what each net has, where ``sizes`` says what those of a part have."""
        found: dict[Any, Size] = defaultdict(Size)
        for net, size in sizes.items():
            own = self.net(net)
            found[own] = Size(found[own].area + size.area, found[own].perimeter + size.perimeter)
        return found


def sizes_of(polygons: Iterable[tuple[Any, kdb.Polygon]]) -> dict[Any, Size]:
    """Return what each net has of some polygons with their nets."""
    found: dict[Any, Size] = defaultdict(Size)
    for net, polygon in polygons:
        found[net] = Size(found[net].area + polygon.area(), found[net].perimeter + polygon.perimeter())
    return found


class EtchedNets:
    """The nets of a flat cell as it is made.

    Args:
        technology: The stack.
        regions: Conductors, cuts, plates and the cuts on them by name, ``poly``, ``contact``; ``diode`` if it counts.
        joins: Pairs of names whose touching shapes are one net.
        other: The nets with other diodes, whose extraction is shared; None where there are none yet.
    """

    def __init__(
        self,
        technology: Technology,
        regions: Mapping[str, kdb.Region],
        joins: Sequence[tuple[str, str]],
        other: EtchedNets | None = None,
    ) -> None:
        self.joins = joins
        self.regions = {name: region.merged() for name, region in regions.items()}
        self._conductors = [conductor.name for conductor in technology.conductors]
        self._cuts = [cut.name for cut in technology.cuts]
        self._plates = {name for name in regions if name not in {*self._conductors, *self._cuts, *BASE}}
        self._stages: dict[str, Stage] = {}
        self.shared: dict[frozenset[str], _Part] = {} if other is None else other.shared

    def stage(self, layer: str) -> Stage:
        """Return the nets when ``layer``, a conductor, a cut, ``poly`` or ``contact``, is etched."""
        if layer not in self._stages:
            self._stages[layer] = self._made(layer)
        return self._stages[layer]

    def _made(self, layer: str) -> Stage:
        if layer in {"poly", "contact"}:
            return Stage(None, self._part({"poly"} if layer == "poly" else {*BASE}), "")
        if layer in self._cuts:
            below = self._conductors[self._cuts.index(layer)]
            return Stage(self.stage(below), self._part({below, layer}), below)
        level = self._conductors.index(layer)
        if level == 0:
            return Stage(None, self._part({*BASE, layer}), "")
        below = self._conductors[level - 1]
        plates = {name for pair in self.joins if layer in pair for name in pair} & self._plates  # the cuts on them
        plates |= {name for pair in self.joins if plates & {*pair} for name in pair} & self._plates
        return Stage(self.stage(below), self._part({below, self._cuts[level - 1], layer, *plates}), below)

    def _part(self, names: set[str]) -> _Part:
        regions = {name: region for name, region in self.regions.items() if name in names}
        if "diode" in regions:
            return _Part(-1, Nets(regions, self.joins, 1.0))
        key = frozenset(regions)
        if key not in self.shared:
            self.shared[key] = _Part(len(self.shared), Nets(regions, self.joins, 1.0))
        return self.shared[key]


def _place(polygon: kdb.Polygon) -> tuple[int, ...]:
    """Return what tells a polygon from the others of its merged region: its first point, box and area."""
    first, box = next(iter(polygon.each_point_hull())), polygon.bbox()
    return first.x, first.y, box.left, box.bottom, box.right, box.top, polygon.area()
