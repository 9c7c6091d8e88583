"""Isolate bodies from the substrate: put a deep n well below a drawn NMOS module and close it all around.

Where a ring of n well closes the deep n well (sky130A, sg13g2)::

      n well ring      hole = isolated p well     n well ring
    +-------------+                             +-------------+
    |   [n+ tap]  |  [p+ tap]  NMOS  [p+ tap]   |  [n+ tap]   |
    +-------------+                             +-------------+
         +-------------------------------------------+
         |               deep n well                 |
         +-------------------------------------------+

Where the deep n well reaches the surface (gf180mcuD), a p well is drawn in it, the n+ taps lie between the edges of the
two wells, and a ring of substrate taps lies around both::

    [p+ tap]  |   [n+ tap]   | [p+ tap] NMOS [p+ tap] |   [n+ tap]   |  [p+ tap]
              |              +-------- p well --------+              |
              +------------------- deep n well ----------------------+

The taps of the body are those of the module. The deep n well and its ring are one net, which has a pin of its own.
A module in an n well gets a deep n well of the same net around that well, with the substrate taps alone.

An isolated box is a p well of stated size in a deep n well, as a device of its three terminals::

    [p+ tap]   |  [n+ tap]  |   [p+ tap]    |  [n+ tap]  |   [p+ tap]
               +------------+               +------------+
               |   n well      isolated p well    n well |
               +-------- deep n well, as large as -------+
                          the card states

The n+ taps lie in a closed ring of n well on the edge of the box, which the marker covers as well, and a ring of
substrate taps lies around all boxes. The p well is empty but for its tap: transistors whose body is its net get wells
of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.fixed_cell import FixedCell
from layoutkit.draw.module import DrawnRectangles, Pin, rectangles_module
from layoutkit.draw.passive import rectangle_on_grid, spec_of_kind
from layoutkit.draw.ring import TapRing, draw_tap_ring, frame, opposite_device, ring_sizes
from layoutkit.draw.row import row_sizes
from layoutkit.draw.sketch import Sketch, spread_squares
from layoutkit.errors import GeometryError, UnsupportedOperationError
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import DeepWell, DeviceSpec, PassiveSpec, Technology
    from layoutkit.technology.passive_sizes import PassiveSize


KIND = "isolated_box"
_MOST_CONTACTS = 60


@dataclass(frozen=True)
class DeepWellNets:
    """The nets of a deep well.

    Attributes:
        well: Net of the deep n well and its ring; at least as positive as the body and the substrate at any time.
        substrate: Net of the substrate, for a ring of substrate taps around the deep well.
        ringed: Whether a ring of substrate taps is drawn where the process asks for none.
    """

    well: str
    substrate: str
    ringed: bool = False


def deep_well_of(tech: Technology, device: DeviceSpec) -> DeepWell:
    """Return how ``tech`` isolates the body of ``device``.

    Raises:
        UnsupportedOperationError: If it cannot; the message states which devices it can.
    """
    deep = tech.deep_well
    if deep is None:
        raise UnsupportedOperationError(
            f"{tech.name} has no deep well, so the body of {device.name} is the substrate or its own well; "
            "draw it without isolated"
        )
    if device.name not in deep.devices:
        raise UnsupportedOperationError(
            f"{tech.name} has deep wells for {', '.join(deep.devices)}, not for {device.name}; "
            "draw it without isolated" + (": its n well isolates it" if device.well else "")
        )
    return deep


def isolate(tech: Technology, module: Module, device: DeviceSpec, nets: DeepWellNets, *, labels: bool = True) -> Module:
    """Draw a deep well around ``module`` into its cell and return the module with it.

    Args:
        tech: Process.
        module: Devices in the substrate or an n well, with body taps; its cell gets the deep well and a new origin.
        device: Flavour of the transistors, or of those whose diffusion the devices are.
        nets: Nets of the deep well and the substrate.
        labels: Whether the new pins carry their nets' names.

    Raises:
        UnsupportedOperationError: If the process has no deep well for ``device``.
        GeometryError: If a module in the substrate has an n well of its own, such as a double ring.
        TechnologyError: If the technology lacks a dimension.
    """
    return _Drawing(tech, module, device, nets).module_with_well(labels=labels)


def needs_deep_well(tech: Technology, spec: PassiveSpec) -> bool:
    """Return whether a device is drawn together with its deep well: one of a p well, or a Schottky diode."""
    return spec.in_p_well or (spec.bare and tech.role("deep_nwell") in spec.covers)


def in_deep_well(tech: Technology, module: Module, spec: PassiveSpec, nets: DeepWellNets, *, labels: bool) -> Module:
    """Return the module of a device in the deep well that it needs; other modules as they are."""
    if not needs_deep_well(tech, spec) or spec.diffusion_of is None:
        return module
    deep = deep_well_of(tech, opposite_device(tech, spec.diffusion_of)) if spec.undrawn_well else None
    if deep is not None:  # its n well is the ring
        well = tech.region(module.cell, "nwell").bbox().enlarged(-deep.dim("ring_enclosure"))
        module.cell.shapes(tech.layer(module.layout, tech.roles["deep_nwell"])).insert(well)
        return module
    return isolate(tech, module, spec.diffusion_of, nets, labels=labels)


class _Drawing:
    """The deep well around one module, in the coordinates of the module."""

    def __init__(self, tech: Technology, module: Module, device: DeviceSpec, nets: DeepWellNets) -> None:
        self.tech = tech
        self.deep = deep_well_of(tech, device)
        self.module = module
        self.device = device
        self.nets = nets
        self.in_n_well = device.well is not None
        self.tapped = device if self.in_n_well else opposite_device(tech, device)  # its taps are those of an n well
        self.ring = ring_sizes(tech, self.tapped, row_sizes(tech, self.tapped))
        self.sketch = Sketch()
        if not self.in_n_well and not self._region("nwell").is_empty():
            raise GeometryError(
                f"module {module.name} has an n well, which cannot lie in a deep well; use ring full, open or none: "
                "the deep well has a ring of n+ taps of its own"
            )
        p_plus, diffusion = self._region(device.bulk_implant), self._region("active") + self._region("tap")
        self.p_diffusion = _area((diffusion & p_plus).bbox())
        self.n_diffusion = _area((diffusion - p_plus).bbox())
        self.body = self._body()
        self.taps = None if self.in_n_well else self._tap_ring()
        self.well = self._deep_well()

    def module_with_well(self, *, labels: bool) -> Module:
        """Draw everything and return the module."""
        tech, sketch, deep = self.tech, self.sketch, self.deep
        outer = self._outer()
        pins: list[tuple[str, Rectangle]] = []
        if self.in_n_well:
            pass  # the module has well and taps
        elif deep.body is None:
            for side in _frame(self.body, outer):
                sketch.box("nwell", side)
        else:
            sketch.box(deep.body, self.body)
        sketch.box("deep_nwell", self.well)
        if self.taps is not None:
            pins += draw_tap_ring(sketch, tech, self.tapped, TapRing(self.taps), self.nets.well)
        cover = self._cover(outer)
        for layer in self.device.covers:
            sketch.box(layer, cover)
        if deep.substrate_ring or self.nets.ringed:
            inner = self._substrate_ring(outer, cover)
            pins += draw_tap_ring(sketch, tech, self._plain(), TapRing(inner), self.nets.substrate)
        rail = tech.conductors[1]
        for net, area in pins:
            if rail.pin_layer:
                sketch.box(rail.pin_layer, area)
            if labels:
                sketch.text(rail.label_layer, net, (area.left + area.right) // 2, (area.bottom + area.top) // 2)
        return self._moved(pins)

    # ---- positions

    def _body(self) -> Rectangle:
        """Return the isolated p well: the hole of the ring, or the drawn p well; or the n well of the module."""
        deep, tech = self.deep, self.tech
        if self.in_n_well:
            return self._around(((self._bbox("nwell") or self._bbox(deep.body) or self._bbox("deep_nwell"), 0),))
        if deep.body is None:
            least = deep.dim("active_to_ring")
            beyond_n = max(tech.dim("active_to_well", self.device), least)
            beyond_p = max(tech.dim("tap_to_well", self.device), least)
        else:
            beyond_n, beyond_p = deep.dim("body_active_enclosure"), deep.dim("body_tap_enclosure")
        drawn = None if deep.body is None else self._bbox(deep.body)
        return self._around(((self.n_diffusion, beyond_n), (self.p_diffusion, beyond_p), (drawn, 0)))

    def _tap_ring(self) -> Rectangle:
        """Return the inner edge of the ring of n+ taps: clear of the body and of all that the module draws."""
        tech, ring, deep = self.tech, self.ring, self.deep
        from_body = tech.dim("well_tap_enclosure", self.tapped) if deep.body is None else deep.dim("body_to_tap")
        p_implant = self._bbox(self.device.bulk_implant)
        over = max(0, row_sizes(tech, self.tapped).rail - ring.width) // 2 + tech.grid
        needs = [
            (self.body, max(from_body, ring.implant if deep.body is None else 0)),
            (self.p_diffusion, max(ring.active_space, ring.implant + ring.implant_to_active)),
            (self.n_diffusion, ring.active_space),
            (self._bbox(self.device.implant), ring.implant + row_sizes(tech, self.device).implant_space),
            (p_implant, max(ring.implant, ring.implant_to_active, tech.dim("implant_to_active", self.device))),
            (self._bbox("poly"), ring.poly_space),
            (self._bbox(tech.conductors[0].layer), ring.strip_space),
            (self._bbox(tech.conductors[1].layer), tech.conductors[1].space + over),
        ]
        return self._around(needs)

    def _deep_well(self) -> Rectangle:
        deep, drawn = self.deep, self._bbox("deep_nwell")
        if drawn is not None:
            return drawn
        needs: list[tuple[Rectangle | None, int]]
        if deep.body is None:
            needs = [(self.body, deep.dim("beyond_hole"))]
            needs += [(each, deep.dim("active_enclosure")) for each in (self.n_diffusion, self.p_diffusion)]
        else:
            in_n_well = self._bbox("nwell") is not None  # else the module is a p well between n+ taps of its own
            own_taps = self._taps() if in_n_well or not self.in_n_well else self.p_diffusion
            needs = [(self.body, deep.dim("n_well_enclosure" if in_n_well else "body_enclosure"))]
            needs.append((own_taps, deep.dim("tap_enclosure")))
            needs += [(self.n_diffusion, deep.dim("p_active_enclosure"))] if in_n_well else []
        area = self._around(needs)
        lacks = (deep.dim("width") - (area.right - area.left), deep.dim("width") - (area.top - area.bottom))
        return area.enlarged(*(self.tech.snap_up(max(0, lack) / 2) for lack in lacks))

    def _outer(self) -> Rectangle:
        """Return the outer edge of the wells: of the ring of n well, or of the deep n well itself."""
        if self.deep.body is not None:
            return self.well
        beyond_taps = self.ring.width + max(self.tech.dim("well_tap_enclosure", self.tapped), self.ring.implant)
        width = self.tech.dim("well_width", self.tapped)
        return self._around(
            ((self.well, self.deep.dim("ring_enclosure")), (self.taps, beyond_taps), (self.body, width))
        )

    def _cover(self, outer: Rectangle) -> Rectangle:
        """Return the thick oxide: over the taps of the deep well and over all of its wells."""
        if not self.device.covers:
            return outer
        beyond = max(self.ring.implant, self.tech.dim("cover_enclosure", self.tapped))
        return self._around(((self._taps(), beyond), (outer, self.deep.dim("cover_enclosure"))))

    def _taps(self) -> Rectangle | None:
        """Return the outer edge of the ring of n+ taps; None where the module's own taps lie in its n well."""
        return None if self.taps is None else self.taps.enlarged(self.ring.width, self.ring.width)

    def _substrate_ring(self, outer: Rectangle, cover: Rectangle) -> Rectangle:
        """Return the inner edge of the ring of substrate taps."""
        tech, ring, plain = self.tech, self.ring, self._plain()
        implants = max(ring.implant + tech.dim("implant_to_active", plain), tech.dim("implant_tap_enclosure", plain))
        needs = [
            (self.well, self.deep.dim("to_taps")),
            (outer, tech.dim("tap_to_well", plain)),
            (self._taps(), max(ring.active_space, ring.strip_space, implants + ring.implant)),
            (self._bbox(tech.conductors[1].layer) if self.in_n_well else None, tech.conductors[1].space + ring.width),
        ]
        if self.device.covers:
            needs.append((cover, tech.dim("cover_to_others", self.device)))
        return self._around(needs)

    def _plain(self) -> DeviceSpec:
        """Return the NMOS whose taps are drawn outside: the default one, without thick oxide."""
        return self.tech.device("nmos")

    def _around(self, needs: Iterable[tuple[Rectangle | None, int]]) -> Rectangle:
        """Return the smallest box on the grid that keeps each distance around its area; absent areas need nothing."""
        areas = [area.enlarged(distance, distance) for area, distance in needs if area is not None]
        grid = self.tech.grid
        return Rectangle(
            min(area.left for area in areas) // grid * grid,
            min(area.bottom for area in areas) // grid * grid,
            self.tech.snap_up(max(area.right for area in areas)),
            self.tech.snap_up(max(area.top for area in areas)),
        )

    # ---- the module

    def _region(self, layer: str | None) -> kdb.Region:
        import klayout.db as kdb

        if layer is None:
            return kdb.Region()
        return self.tech.region(self.module.cell, layer).merged()

    def _bbox(self, layer: str | None) -> Rectangle | None:
        return _area(self._region(layer).bbox())

    def _moved(self, pins: list[tuple[str, Rectangle]]) -> Module:
        """Write the sketch into the module's cell, move its lower left corner to the origin, and describe it."""
        import klayout.db as kdb

        module, sketch = self.module, self.sketch
        sketch.write(module.cell, self.tech, 0, 0)
        extent = sketch.extent()
        move = kdb.Trans(0, False, -extent.left, -extent.bottom)
        module.cell.transform(move)
        rail = self.tech.conductors[1].name
        every = [*module.pins, *(Pin(net, rail, kdb.Box(*area)) for net, area in pins)]
        moved = [replace(pin, box=pin.box.transformed(move)) for pin in every]
        axis = module.symmetry_axis_x
        if axis is not None and (2 * axis != extent.left + extent.right or not sketch.is_mirror_image_of_itself()):
            axis = None
        middle = extent.bottom + extent.top == module.bbox.bottom + module.bbox.top
        return replace(
            module,
            pins=tuple(sorted(moved, key=lambda pin: (pin.box.bottom, pin.box.left, pin.net))),
            instances=tuple(
                replace(each, x=each.x - extent.left, y=each.y - extent.bottom) for each in module.instances
            ),
            symmetry_axis_x=None if axis is None else axis - extent.left,
            bbox=module.cell.bbox(),
            gates=tuple(replace(gate, box=gate.box.transformed(move)) for gate in module.gates),
            mirrored_in_y=module.mirrored_in_y and middle and sketch.is_mirror_image_of_itself(upside_down=True),
            keepouts=tuple(replace(each, box=each.box.transformed(move)) for each in module.keepouts),
        )


def _frame(hole: Rectangle, outer: Rectangle) -> list[Rectangle]:
    """Return the closed ring between two boxes as its four sides."""
    return [
        Rectangle(outer.left, outer.bottom, outer.right, hole.bottom),
        Rectangle(outer.left, hole.top, outer.right, outer.top),
        Rectangle(outer.left, hole.bottom, hole.left, hole.top),
        Rectangle(hole.right, hole.bottom, outer.right, hole.top),
    ]


def _area(box: kdb.Box) -> Rectangle | None:
    return None if box.empty() else Rectangle(box.left, box.bottom, box.right, box.top)


def isolated_box(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> FixedCell:
    """Return the box ``device_id`` with its sides on the grid of ``tech``; the arguments are those of ``diode``.

    Raises:
        GeometryError: If a size is below what the taps in the box need.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, KIND)
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, size)
    given = nets or {}
    named = {terminal: given.get(terminal) or f"{device_id}_{terminal.upper()}" for terminal in spec.kind.terminals}
    return FixedCell(device_id, spec, width, length, m, named["p"], named["n"], warnings, named)


def draw_isolated_box(
    layout: kdb.Layout, tech: Technology, name: str, device: FixedCell, *, labels: bool = True
) -> Module:
    """Draw the boxes into the cell ``name`` and return its module; they are called ``<id>_1``, ``<id>_2``, ...

    Raises:
        TechnologyError: If the technology lacks a dimension.
        UnsupportedOperationError: If the process has no deep well.
    """
    return _BoxDrawing(tech, device).module(layout, name, labels=labels)


class _BoxDrawing:
    def __init__(self, tech: Technology, device: FixedCell) -> None:
        self.tech = tech
        self.device = device
        self.outside = tech.device("nmos")
        self.deep = deep_well_of(tech, self.outside)
        self.tapped = opposite_device(tech, self.outside)
        self.ring = ring_sizes(tech, self.tapped, row_sizes(tech, self.tapped))
        self.inner_ring = ring_sizes(tech, self.outside, row_sizes(tech, self.outside))
        self.edge = max(tech.dim("well_tap_enclosure", self.tapped), self.ring.implant)
        self.to_hole = max(
            2 * self.edge + self.ring.width, self.deep.dim("beyond_hole"), tech.dim("well_width", self.tapped)
        )
        self.sketch = Sketch()
        pitch = device.width + self.deep.dim("space")
        self.boxes = [Rectangle(x, 0, x + device.width, device.length) for x in range(0, device.m * pitch, pitch)]

    def module(self, layout: kdb.Layout, name: str, *, labels: bool) -> Module:
        pins = [pin for box in self.boxes for pin in self._box(box)]
        ring, deep = self.inner_ring, self.deep
        apart = max(deep.dim("to_taps"), self.tech.dim("tap_to_well", self.outside), ring.strip_space)
        around = Rectangle(0, 0, self.boxes[-1].right, self.device.length).enlarged(apart, apart)
        pins += draw_tap_ring(self.sketch, self.tech, self.outside, TapRing(around), self.device.nets["s"])
        drawn = DrawnRectangles(self.device, self.boxes, pins, labels, joined=self.device.m == 1)
        return rectangles_module(layout, self.tech, name, self.sketch, drawn)

    def _box(self, box: Rectangle) -> list[tuple[str, Rectangle]]:
        """Draw one box and return its pins."""
        sketch, tech, spec = self.sketch, self.tech, self.device.spec
        hole = box.enlarged(-self.to_hole, -self.to_hole)
        sketch.box(spec.well, box)
        for side in frame(hole, self.to_hole).values():
            for layer in ("nwell", *spec.markers):
                sketch.box(layer, side)
        sketch.text("device_text", spec.ring_text, (box.left + box.right) // 2, box.bottom + self.edge)
        taps = box.enlarged(-self.edge - self.ring.width, -self.edge - self.ring.width)
        pins = draw_tap_ring(sketch, tech, self.tapped, TapRing(taps), self.device.nets["n"])
        return [*pins, (self.device.nets["p"], self._inner_tap(box))]

    def _inner_tap(self, box: Rectangle) -> Rectangle:
        """Draw the tap of the p well across its middle, and return its rail."""
        sketch, tech, ring, sizes = self.sketch, self.tech, self.inner_ring, row_sizes(self.tech, self.outside)
        beside = max(
            self.to_hole + max(tech.dim("tap_to_well", self.outside), self.deep.dim("active_to_ring")),
            self.deep.dim("active_enclosure"),
            self.edge + self.ring.width + max(ring.active_space, ring.implant + self.ring.implant_to_active),
            self.edge + self.ring.width + ring.strip_space,
        )
        height = tech.snap(min(2 * ring.width, self.device.length - 2 * beside) / 2) * 2  # for the area of its implant
        low = tech.snap((box.bottom + box.top - height) / 2)
        tap = Rectangle(box.left + beside, low, box.right - beside, low + height)
        sketch.box("tap", tap)
        sketch.box(tech.conductors[0].layer, tap)
        sketch.box(tech.conductors[1].layer, tap)
        if self.outside.bulk_implant is not None:
            sketch.box(self.outside.bulk_implant, tap.enlarged(ring.implant, ring.implant))
        inside = tap.enlarged(-ring.contact_side, -ring.contact_side)
        for contact in spread_squares(inside, ring.contact, ring.contact_space, tech.grid, _MOST_CONTACTS):
            sketch.box(tech.contact.layer, contact)
        middle = low + (height - sizes.cut) // (2 * tech.grid) * tech.grid
        ends = max(sizes.cut_strip_end, sizes.cut_rail_end)
        for cut in spread_squares(
            Rectangle(tap.left + ends, middle, tap.right - ends, middle + sizes.cut),
            sizes.cut, sizes.cut_space, tech.grid, _MOST_CONTACTS,
        ):  # fmt: skip
            sketch.box(tech.cuts[0].layer, cut)
        return tap
