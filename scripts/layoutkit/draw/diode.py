"""Junction diodes, and taps as devices: equal rectangles of diffusion side by side, all in parallel.

::

    +---------------------------------+   tap ring: the other end of the diode, the substrate or a well
    |  +------+   +------+   +------+ |
    |  | #  # |   | #  # |   | #  # | |   diffusion with contacts, the first conductor over each
    | =|==x===|===|==x===|===|==x===|=|=  rail of the second conductor, joined to each by cuts
    |  | #  # |   | #  # |   | #  # | |
    |  +------+   +------+   +------+ |
    +-------------[ rail ]------------+

The longer side of each rectangle lies along the row, so that all of it is near the taps. Those of a Schottky diode are
diffusion without an implant; the taps of its well lie at the one distance that the process allows.

Taps are equal rectangles of diffusion of the well's own type, with the marker and text that name them::

    +-------------------------+   well, where the tap lies in one
    |  +------+   +------+    |
    |  | #  # |   | #  # |    |   diffusion with contacts, the first conductor over each
    | =|==x===|===|==x===|=   |   rail of the second conductor, joined to each by cuts
    |  +-text-+   +-text-+    |
    +-------------------------+
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.draw.capacitor import beside_wide
from layoutkit.draw.deep_well import DeepWellNets, in_deep_well
from layoutkit.draw.module import DrawnRectangles, rectangles_module
from layoutkit.draw.passive import EqualRectangles, nets_of, rectangle_on_grid, spec_of_kind
from layoutkit.draw.ring import TapRing, draw_tap_ring, draw_taps, module_covers, ring_sizes, row_covers
from layoutkit.draw.row import row_sizes
from layoutkit.draw.sketch import Sketch, spread_squares
from layoutkit.errors import GeometryError
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import DeviceSpec, Technology
    from layoutkit.technology.passive_sizes import PassiveSize


_MOST_CONTACTS = 60  # on a side of one rectangle
_MOST_CUTS = 24  # from one rectangle to the rail


@dataclass(frozen=True)
class Diode(EqualRectangles):
    """A diode: ``width`` is the longer side of a rectangle, ``p`` the net of the anode, ``n`` that of the cathode.

    Attributes:
        substrate: Net of the substrate, for a diode of a p well, which lies in a deep well.
    """

    substrate: str = "SUB"


def diode(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> Diode:
    """Return the diode ``device_id`` with its sides on the grid of ``tech``.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: ``diode``, a device of the technology, or its model.
        size: As in the netlist: both sides of one rectangle.
        nets: Terminal (p, n) to net; a terminal left out is called ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If a size is below or above what the process allows.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, "diode")
    longer, shorter = sorted((size.w_m, size.l_m), reverse=True)
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, replace(size, w_m=longer, l_m=shorter))
    return Diode(device_id, spec, width, length, m, *nets_of(device_id, nets), warnings)


def draw_diode(layout: kdb.Layout, tech: Technology, name: str, device: Diode, *, labels: bool = True) -> Module:
    """Draw the diode into the cell ``name`` and return its module; its rectangles are ``<id>_1``, ``<id>_2``, ...

    Raises:
        GeometryError: If part of a rectangle would lie too far from the taps, or its metal would be too wide.
        TechnologyError: If the technology lacks a dimension.
    """
    module = RectangleDrawing(tech, device, labels=labels).module(layout, name)
    return in_deep_well(tech, module, device.spec, DeepWellNets(device.n, device.substrate), labels=labels)


class RectangleDrawing:
    """Draws equal rectangles of diffusion in a row; this class draws a diode in its ring of taps."""

    def __init__(self, tech: Technology, device: EqualRectangles, *, labels: bool) -> None:
        transistor = device.spec.diffusion_of
        if transistor is None:
            raise GeometryError(f"{device.spec.name} does not say of which transistor's diffusion it is made")
        self.tech = tech
        self.device = device
        self.labels = labels
        if device.spec.bare:  # its covers are the well
            own = {**transistor.dimensions, **device.spec.dimensions}
            transistor = replace(transistor, implant=None, well=None, dimensions=own)
        self.transistor: DeviceSpec = transistor
        self.sizes = row_sizes(tech, transistor)
        self.ring = ring_sizes(tech, transistor, self.sizes)
        self.sketch = Sketch()
        self.inset = max(self.sizes.active_side, self.sizes.active_end)
        self.to_taps = device.spec.dimensions.get("tap_space")
        deep = tech.deep_well  # each deep well lies in a ring of its own
        self.ringed = deep is not None and deep.substrate_ring and device.spec.well == tech.role("deep_nwell")
        self.edge = device.spec.dimensions.get("tap_enclosure", 0) if device.spec.well else 0
        self.width, self.length = device.width - 2 * self.edge, device.length - 2 * self.edge  # of the diffusion
        self.plate = self._plate_size()
        self.beside = max(self.ring.strip_space, beside_wide(tech, tech.conductors[0], min(self.plate)))
        pitch = device.width + self._gap()
        self.rectangles = [Rectangle(i * pitch, 0, i * pitch + device.width, device.length) for i in range(device.m)]
        self.junctions = [rectangle.enlarged(-self.edge, -self.edge) for rectangle in self.rectangles]
        self.plates = [self._plate(junction) for junction in self.junctions]
        self.rail = self._rail()
        self.inner = self._ring_inside()
        self._check()

    # ---- where things lie

    def _marker_reach(self) -> int:
        dimensions, markers = self.device.spec.dimensions, self.device.spec.markers
        return max((dimensions.get(f"{marker}_enclosure", 0) for marker in markers), default=0)

    def _plate_size(self) -> tuple[int, int]:
        """Return width and height of the first conductor over one rectangle: around contacts and cut, large enough."""
        sizes, grid, first = self.sizes, self.tech.grid, self.tech.conductors[0]
        beyond = max(sizes.strip_side, sizes.strip_end) - self.inset
        least = max(first.width, sizes.strip, sizes.cut + 2 * sizes.cut_strip_end)
        width, height = (max(side + 2 * beyond, least) for side in (self.width, self.length))
        if self.to_taps is not None:
            height = min(height, self.length + 2 * (self.to_taps - self.ring.strip_space))
        width = max(width, -(-sizes.strip_area // height))
        return tuple(-(-side // (2 * grid)) * 2 * grid for side in (width, height))  # type: ignore[return-value]

    def _gap(self) -> int:
        """Return the distance of two rectangles."""
        sizes, dimensions = self.sizes, self.device.spec.dimensions
        markers = (dimensions.get(f"{marker}_space", 0) for marker in self.device.spec.markers)
        between_plates = self.beside + max(0, self.plate[0] - self.width)
        gap = max(
            sizes.active_space,
            dimensions.get("body_space", 0),
            between_plates,
            2 * self._marker_reach() + max(markers, default=0),
            2 * dimensions.get("body_to_active", 0) + self.ring.width if self.ringed else 0,
        )
        return self.tech.snap_up(gap)

    def _plate(self, junction: Rectangle) -> Rectangle:
        width, height = self.plate
        left = self.tech.snap((junction.left + junction.right - width) / 2)
        bottom = self.tech.snap((junction.bottom + junction.top - height) / 2)
        return Rectangle(left, bottom, left + width, bottom + height)

    def _rail(self) -> Rectangle:
        """Return the rail over the middle of all rectangles, of the minimum area."""
        sizes, grid = self.sizes, self.tech.grid
        left, right = self.plates[0].left, self.plates[-1].right
        least = max(-(-sizes.rail_area // sizes.rail), sizes.cut + 2 * sizes.cut_rail_end)
        grow = max(0, -(-(least - (right - left)) // (2 * grid)) * grid)
        low = self.tech.snap((self.plates[0].bottom + self.plates[0].top - sizes.rail) / 2)
        return Rectangle(left - grow, low, right + grow, low + sizes.rail)

    def _ring_inside(self) -> Rectangle:
        """Return the inner edge of the tap ring: clear of diffusion, implants, markers and metal."""
        sizes, ring, tech = self.sizes, self.ring, self.tech
        row = self._row()
        beside = tech.snap_up(
            max(
                ring.active_space,
                sizes.implant + max(ring.implant, ring.implant_to_active),
                ring.implant + ring.implant_to_active,
                sizes.flavour + ring.implant,
                self._marker_reach() + ring.implant,
            )
        )
        # A drawn well reaches beyond the diffusion, and keeps its distance from the taps around it.
        beyond = self.edge + self.device.spec.dimensions.get("body_to_active", 0)
        beside = max(beside, tech.snap_up(beyond))
        around, metal = row.enlarged(beside, beside), self._metal().enlarged(self.beside, self.beside)
        over = max(0, (sizes.rail - ring.width + 1) // 2)
        bottom = min(around.bottom, metal.bottom, self.rail.bottom - sizes.rail_space - over)
        inner = Rectangle(
            min(around.left, metal.left), bottom, max(around.right, metal.right), max(around.top, metal.top)
        )
        if self.to_taps is not None:
            inner = inner._replace(bottom=row.bottom - self.to_taps, top=row.top + self.to_taps)
        left, bottom = (edge // tech.grid * tech.grid for edge in (inner.left, inner.bottom))
        right, top = (
            low + -(-(high - low) // (2 * tech.grid)) * 2 * tech.grid
            for low, high in ((left, inner.right), (bottom, inner.top))
        )
        return Rectangle(left, bottom, right, top)

    def _row(self) -> Rectangle:
        first, last = self.junctions[0], self.junctions[-1]
        return Rectangle(first.left, first.bottom, last.right, last.top)

    def _metal(self) -> Rectangle:
        first, last = self.plates[0], self.plates[-1]
        return Rectangle(first.left, first.bottom, last.right, last.top)

    def _check(self) -> None:
        tech, device, limit = self.tech, self.device, self.ring.max_distance
        far = (self.inner.top - self.inner.bottom) // 2
        widest = tech.conductors[0].max_width
        if far > limit and not device.spec.well:
            reason = (
                f"the middle would be {tech.to_um(far):g} um from the nearest tap, {tech.to_um(limit):g} um at most"
            )
        elif widest is not None and min(self.plate) > widest:
            reason = f"{tech.conductors[0].name} is at most {tech.to_um(widest):g} um wide"
        else:
            return
        raise GeometryError(
            f"{device.id} cannot be one rectangle of {tech.to_um(device.width):g} x {tech.to_um(device.length):g} um: "
            f"{reason}. Use more and smaller units (m)",
            details={"w_um": tech.to_um(device.width), "l_um": tech.to_um(device.length)},
        )

    # ---- what is drawn

    def module(self, layout: kdb.Layout, name: str) -> Module:
        """Draw it into the cell ``name`` and return its module."""
        sketch, tech, spec = self.sketch, self.tech, self.device.spec
        is_n = self.transistor.type == "nmos"
        inner_net, ring_net = (self.device.n, self.device.p) if is_n else (self.device.p, self.device.n)
        for junction, plate in zip(self.junctions, self.plates, strict=True):
            self._draw_junction(junction, plate)
            if spec.well:
                sketch.box(spec.well, junction.enlarged(self.edge, self.edge))
            for marker in spec.markers:
                reach = spec.dimensions.get(f"{marker}_enclosure", 0)
                sketch.box(marker, junction.enlarged(reach, reach))
        for row in self.junctions if self.ringed else [self._row()]:
            for layer, area in row_covers(row, self.sizes.implant, self.sizes, self.transistor):
                sketch.box(layer, area)
        sketch.box(tech.conductors[1].layer, self.rail)
        for left, right in pairwise(self.rectangles) if self.ringed else ():
            middle = tech.snap((left.right + right.left + self.ring.width) / 2)
            draw_taps(sketch, tech, self.transistor, TapRing(self.inner._replace(left=middle), ("left",)))
        pins = [(inner_net, self.rail), *draw_tap_ring(sketch, tech, self.transistor, TapRing(self.inner), ring_net)]
        for layer, area in module_covers(self.inner, self.ring, tech, self.transistor):
            if not (spec.in_p_well and layer == self.transistor.well):  # a deep well holds the ring
                sketch.box(layer, area)
        for layer in spec.covers:
            reach = self.ring.width + spec.dimensions.get(f"{layer}_enclosure", 0)
            sketch.box(layer, self.inner.enlarged(reach, reach))
        drawn = DrawnRectangles(self.device, self.rectangles, pins, self.labels)
        return rectangles_module(layout, self.tech, name, self.sketch, drawn)

    def _draw_junction(self, junction: Rectangle, plate: Rectangle) -> None:
        sizes, sketch, tech = self.sizes, self.sketch, self.tech
        sketch.box("active", junction)
        sketch.box(tech.conductors[0].layer, plate)
        space = max(sizes.contact_space, tech.contact.array_space)
        room = junction.enlarged(-self.inset, -self.inset)
        for contact in spread_squares(room, sizes.contact, space, tech.grid, _MOST_CONTACTS):
            sketch.box(tech.contact.layer, contact)
        middle = (self.rail.bottom + self.rail.top - sizes.cut) // 2
        ends = max(sizes.cut_strip_end, sizes.cut_rail_end)
        room = Rectangle(plate.left + ends, middle, plate.right - ends, middle + sizes.cut)
        for cut in spread_squares(room, sizes.cut, sizes.cut_space, tech.grid, _MOST_CUTS):
            sketch.box(tech.cuts[0].layer, cut)


@dataclass(frozen=True)
class Tap(EqualRectangles):
    """A tap: ``width`` is the longer side of a rectangle, ``p`` the net of its metal and of the well below it."""


def tap(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> Tap:
    """Return the tap ``device_id`` with its sides on the grid of ``tech``; the arguments are those of ``diode``.

    Raises:
        GeometryError: If a size is below or above what the process allows.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, "tap")
    longer, shorter = sorted((size.w_m, size.l_m), reverse=True)
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, replace(size, w_m=longer, l_m=shorter))
    return Tap(device_id, spec, width, length, m, *nets_of(device_id, nets), warnings)


def draw_tap(layout: kdb.Layout, tech: Technology, name: str, device: Tap, *, labels: bool = True) -> Module:
    """Draw the tap into the cell ``name`` and return its module; its rectangles are ``<id>_1``, ``<id>_2``, ...

    Raises:
        GeometryError: If the metal of a rectangle would be too wide.
        TechnologyError: If the technology lacks a dimension.
    """
    return _Drawing(tech, device, labels=labels).module(layout, name)


class _Drawing(RectangleDrawing):
    def _check(self) -> None:
        tech, device, widest = self.tech, self.device, self.tech.conductors[0].max_width
        if widest is not None and min(self.plate) > widest:
            raise GeometryError(
                f"{device.id} cannot be one rectangle of {tech.to_um(device.width):g} x {tech.to_um(device.length):g} "
                f"um: {tech.conductors[0].name} is at most {tech.to_um(widest):g} um wide. "
                "Use more and smaller units (m)"
            )

    def module(self, layout: kdb.Layout, name: str) -> Module:
        """Draw it into the cell ``name`` and return its module."""
        sketch, tech, spec, ring = self.sketch, self.tech, self.device.spec, self.ring
        row = self._row()
        for junction, plate in zip(self.junctions, self.plates, strict=True):
            self._draw_junction(junction, plate)
            for marker in spec.markers:
                sketch.box(marker, junction)
            if spec.ring_text:
                middle = (junction.left + junction.right) // 2
                sketch.text("device_text", spec.ring_text, middle, junction.bottom + tech.grid)
        if self.transistor.bulk_implant is not None:
            sketch.box(self.transistor.bulk_implant, row.enlarged(ring.implant, ring.implant))
        for layer, area in module_covers(row.enlarged(-ring.width, -ring.width), ring, tech, self.transistor):
            sketch.box(layer, area)
        sketch.box(tech.conductors[1].layer, self.rail)
        drawn = DrawnRectangles(self.device, self.junctions, [(self.device.p, self.rail)], self.labels)
        return rectangles_module(layout, tech, name, sketch, drawn)
