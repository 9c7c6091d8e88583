"""The drawn and derived layers of one cell as merged regions, flat or hierarchical, each computed when first used."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.errors import GeometryError
from layoutkit.technology.expressions import Named, Numbered, evaluate, parse, require

if TYPE_CHECKING:
    from layoutkit.drc.net_regions import NetRegions
    from layoutkit.technology.technology import LayerSpec, Technology

MAX_REFINEMENT = 1000  # a layout whose database unit needs a finer common unit than this is refused
MAX_REACH = 2**30  # working units; KLayout has 32 bits, and the distance of two points has to fit as well


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
        from layoutkit.drc.net_regions import NetRegions

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

    def _with_fill(self, name: str) -> kdb.Region:
        """Return the merged shapes of a layer and of the fill that counts as it."""
        spec = self.technology.spec(name)
        fill = [self.numbered(*self.technology.spec(part).gds) for part in joined_fill(spec, self.technology)]
        drawn = self.numbered(*spec.gds)
        fill = [region for region in fill if not region.is_empty()]
        if not fill:
            return drawn
        key = spec.name
        if key not in self._merged:
            self._merged[key] = sum(fill, drawn).merged()
        return self._merged[key]

    def named(self, name: str) -> kdb.Region:
        """Return the merged shapes of the layer, role, alias or derived layer ``name``.

        Raises:
            TechnologyError: If there is none of that name, or a derived layer is defined through itself.
        """
        if name in self._merged:
            return self._merged[name]
        derived = self.technology.derived.get(name)
        if derived is None:
            return self._with_fill(name)
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


def joined_fill(spec: LayerSpec, technology: Technology) -> tuple[str, ...]:
    """Return the layers of the same material that count as ``spec`` in every rule.

    Fill of diffusion and poly has other rules than transistors (it needs no tap nearby), so it has rules of its own.
    """
    wiring = {technology.resolve(conductor.layer) for conductor in technology.conductors}
    wiring |= {technology.resolve(cut.layer) for cut in technology.cuts}
    if spec.name in wiring:
        return spec.fill
    return tuple(name for name in spec.fill if technology.spec(name).purpose != "fill")
