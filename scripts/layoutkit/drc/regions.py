"""The drawn and derived layers of one cell as merged regions, and its nets for spacing by nets and antenna ratios.

``layoutkit.extract.connectivity`` says what is connected; names and labels connect nothing. For antenna rules, the nets
are those while a layer is etched, before higher layers connect them::

    met2     ====              a layer charges the gates of the nets that it is connected to when it is etched
    via        |
    met1     ===== =====       each pair of neighbouring conductors is extracted once, with the cuts between them;
             |         |       the nets of the pairs below a layer are then joined, conductor by conductor
    poly   ====      ====
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.errors import GeometryError, TechnologyError
from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.technology.expressions import Named, Numbered, evaluate, parse, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.technology.technology import LayerSpec, Technology

MAX_REFINEMENT = 1000  # a layout whose database unit needs a finer common unit than this is refused
MAX_REACH = 2**30  # working units; KLayout has 32 bits, and the distance of two points has to fit as well
_ROLES = {"poly": "poly", "contact": "contact", "nwell": "nwell", "deep_nwell": "deep_nwell", "pwell": "p_body"}


class LayerRegions:
    """Layers of ``cell`` with everything below it, by name, GDS number or expression.

    Lengths are in a working unit in which both the layout and the technology have whole numbers: usually the
    technology's database unit, a fraction of it where the layout's own unit is finer.

    Args:
        layout: The layout that owns ``cell``; kept, because a region reads from it.
        cell: The cell to look at.
        technology: Names, derived layers and database unit.
        hierarchical: Keep what repeats in its cells (KLayout's deep regions). Results are the same and read as flat.

    Raises:
        GeometryError: If the layout's database unit is no usable fraction of the technology's, or the cell reaches
            further than 32 bits hold in working units.
    """

    def __init__(
        self,
        layout: kdb.Layout,
        cell: kdb.Cell,
        technology: Technology,
        *,
        hierarchical: bool = False,
    ) -> None:
        ratio = Fraction(layout.dbu / technology.dbu_um).limit_denominator(MAX_REFINEMENT)
        if ratio <= 0 or abs(float(ratio) * technology.dbu_um - layout.dbu) > 1e-9 * layout.dbu:
            raise GeometryError(
                f"the layout's database unit of {layout.dbu:g} um does not fit the {technology.dbu_um:g} um of "
                f"technology {technology.name}; write the layout with {technology.dbu_um:g} um"
            )
        self._layout = layout
        self._cell = cell
        self.technology = technology
        self.refinement = ratio.denominator
        self._magnification = ratio.numerator
        self.unit_um = technology.dbu_um / self.refinement
        check_reach(cell, self._magnification, self.unit_um)
        self._merged: dict[str, kdb.Region] = {}
        self._drawn: dict[tuple[int, int], kdb.Region] = {}
        self._edges: dict[str, kdb.Edges] = {}
        self._store = kdb.DeepShapeStore() if hierarchical and ratio == 1 else None
        if self._store is not None:
            self._store.threads = 0  # in this thread: starting a worker for each operation takes 15 ms
        self._flat: LayerRegions | None = None

    @property
    def hierarchical(self) -> bool:
        """Whether regions keep the layout's hierarchy."""
        return self._store is not None

    def flat(self) -> LayerRegions:
        """Return the same layers flat, computed anew, so that their polygons are those of a flat check."""
        if not self.hierarchical:
            return self
        if self._flat is None:
            self._flat = LayerRegions(self._layout, self._cell, self.technology)
        return self._flat

    @cached_property
    def nets(self) -> NetRegions:
        """The nets of the cell."""
        return NetRegions(self._cell, self.technology, self._magnification)

    def extent(self) -> kdb.Box:
        """Return the box around everything drawn, in working units."""
        box = self._cell.bbox()
        return box if self._magnification == 1 else box.transformed(kdb.ICplxTrans(self._magnification))

    def region(self, expression: str) -> kdb.Region:
        """Return the merged region of ``expression``; shared, not to be changed."""
        if expression not in self._merged:
            self._merged[expression] = evaluate(parse(expression), self)
        return self._merged[expression]

    def edges(self, expression: str) -> kdb.Edges:
        """Return the edges of the merged region of ``expression``; shared, not to be changed."""
        if expression not in self._edges:
            self._edges[expression] = self.region(expression).edges()
        return self._edges[expression]

    def shown(self, expression: str) -> str:
        """Return ``expression`` as reports show it: a layer's name for its GDS number, else the expression."""
        tree = parse(expression)
        if not isinstance(tree, Numbered):
            return expression
        number = (tree.layer, tree.datatype)
        known = (spec.name for spec in self.technology.layers.values() if spec.gds == number)
        return next(known, f"{tree.layer}/{tree.datatype}")

    def drawn(self, expression: str) -> kdb.Region:
        """Return the shapes of a layer as they were drawn, unmerged, so that every vertex is there.

        What is derived was never drawn; of that the merged region is returned.
        """
        tree = parse(expression)
        if isinstance(tree, Numbered):
            return self._raw(tree.layer, tree.datatype)
        if isinstance(tree, Named) and tree.name not in self.technology.derived:
            spec = self.technology.spec(tree.name)
            fill = [self._raw(*self.technology.spec(part).gds) for part in joined_fill(spec, self.technology)]
            drawn = sum(fill, self._raw(*spec.gds))
            drawn.merged_semantics = False
            return drawn
        return self.region(expression)

    def named(self, name: str) -> kdb.Region:
        """Return the merged shapes of the layer, role, alias or derived layer ``name``.

        Raises:
            TechnologyError: If there is none of that name, or a derived layer is defined through itself.
        """
        if name in self._merged:
            return self._merged[name]
        derived = self.technology.derived.get(name)
        if derived is None:
            spec = self.technology.spec(name)
            fill = [self.numbered(*self.technology.spec(part).gds) for part in joined_fill(spec, self.technology)]
            drawn = self.numbered(*spec.gds)
            fill = [region for region in fill if not region.is_empty()]
            if not fill:
                return drawn
            if spec.name not in self._merged:
                self._merged[spec.name] = sum(fill, drawn).merged()
            return self._merged[spec.name]
        require(derived, self.technology, (name,))
        self._merged[name] = evaluate(parse(derived), self)
        return self._merged[name]

    def numbered(self, layer: int, datatype: int) -> kdb.Region:
        """Return the merged shapes of a GDS layer; an absent layer is empty."""
        key = f"{layer}/{datatype}"
        if key not in self._merged:
            self._merged[key] = self._raw(layer, datatype).merged()
        return self._merged[key]

    def own(self, name: str) -> kdb.Region:
        """Return the merged shapes of a layer, role or alias in the cell itself, without those of cells below it.

        Raises:
            TechnologyError: If there is none of that name.
        """
        key = f"own {name}"
        if key not in self._merged:
            index = self._layout.find_layer(*self.technology.spec(name).gds)
            shapes = self._cell.begin_shapes_rec(0 if index is None else index)
            shapes.max_depth = 0
            self._merged[key] = kdb.Region() if index is None else self._working(self._from(shapes)).merged()
        return self._merged[key]

    def length(self, length_um: float) -> int:
        """Return ``length_um`` in working units, rounded to the nearest."""
        return round(length_um / self.unit_um)

    def _raw(self, layer: int, datatype: int) -> kdb.Region:
        key = (layer, datatype)
        if key not in self._drawn:
            index = self._layout.find_layer(layer, datatype)
            region = kdb.Region() if index is None else self._from(self._cell.begin_shapes_rec(index))
            region.merged_semantics = False
            self._drawn[key] = self._working(region)
        return self._drawn[key]

    def _working(self, region: kdb.Region) -> kdb.Region:
        """Return ``region`` of the layout in working units, unmerged."""
        if self._magnification != 1:
            region = region.transformed(kdb.ICplxTrans(self._magnification, 0, False, 0, 0))
            region.merged_semantics = False
        return region

    def _from(self, shapes: kdb.RecursiveShapeIterator) -> kdb.Region:
        return kdb.Region(shapes) if self._store is None else kdb.Region(shapes, self._store)


def check_reach(cell: kdb.Cell, magnification: int, unit_um: float) -> None:
    """Refuse a cell whose coordinates do not fit into 32 bits once they are in working units.

    KLayout does not report an overflow: shapes land elsewhere, and a check of them finds nothing.

    Args:
        cell: The cell, with all below it.
        magnification: How many working units a database unit of its layout is.
        unit_um: The working unit. [um]

    Raises:
        GeometryError: If it does not fit; says how far the cell reaches and how far it may.
    """
    box = cell.bbox()
    reach = 0 if box.empty() else max(abs(side) for side in (box.left, box.bottom, box.right, box.top))
    if reach * magnification > MAX_REACH:
        raise GeometryError(
            f"cell {cell.name} reaches to {reach * cell.layout().dbu:g} um; in units of {unit_um:g} um, in which the "
            f"layout and the technology are whole numbers, {MAX_REACH * unit_um:g} um fit: move the cell to the "
            "origin, choose a smaller one, or write the layout in the technology's database unit",
            details={"cell_name": cell.name, "reach_um": reach * cell.layout().dbu, "unit_um": unit_um},
        )


@lru_cache(maxsize=4096)
def joined_fill(spec: LayerSpec, technology: Technology) -> tuple[str, ...]:
    """Return the layers of the same material that count as ``spec`` in every rule.

    Fill of diffusion and poly has other rules than transistors (it needs no tap nearby), so it has rules of its own.
    """
    wiring = {technology.resolve(conductor.layer) for conductor in technology.conductors}
    wiring |= {technology.resolve(cut.layer) for cut in technology.cuts}
    if spec.name in wiring:
        return spec.fill
    return tuple(name for name in spec.fill if technology.spec(name).purpose != "fill")


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
        electrical = DrawnLayers(self._cell, self._technology).electrical()
        return Nets(self._magnified(electrical.conducting), electrical.joins, 1.0)

    @cached_property
    def metal(self) -> tuple[dict[str, kdb.Region], tuple[tuple[str, str], ...]]:
        """The conductors, cuts and capacitor plates, and which of them join."""
        metal = DrawnLayers(self._cell, self._technology).wiring
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


@lru_cache(maxsize=4096)
def carrier(technology: Technology, layer: str) -> str | None:
    """Return the name under which ``DrawnLayers.electrical`` holds ``layer``, None where the layer carries no nets."""
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
