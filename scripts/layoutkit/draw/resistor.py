"""Resistors: equal bars side by side, in series and parallel, of one resistor or of several that match.

::

      ===== p        ===== n     rails (second conductor), one per net
        |   +--link--+   |
       [#] [#]      [#] [#]      heads: poly with contacts, or taps of a well
        |   |        |   |
        |   |  core  |   |       bars (poly): the core layer on them makes them resistive
        |   |        |   |
       [#] [#]      [#] [#]
        +-link-+     +-link-+
    ============================ tap ring of the substrate, or of a well of their own, which is the bulk

Dummies are bars at the ends whose heads run on to the ring. Resistors of metal have neither.

Metal resistors: bars of one conductor below its marker, between heads on which wires arrive.

::

    ============= n        a strap for each terminal of a resistor of several strings
     |         |
    [n] [a a] [n] [a a]    heads: as wide as a cut needs; those of neighbours on one net are one
     |   | |   |   | |     necks: wires stay clear of the cores
     |   # #   |   # #     cores: the marker on the metal, which LVS reads as the resistor
     |   | |   |   | |
    [n   n][p][n   n][p]   a string of an even number of bars ends below: a column without a core leads up from there
            |        |
           ==========  p

Terminals on a conductor that carries no wires lead by cuts to the next one that does.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.capacitor import beside_wide, wide_space
from layoutkit.draw.deep_well import DeepWellNets, in_deep_well
from layoutkit.draw.module import DrawnDummy, Gate, Instance, Keepout, Module, Pin
from layoutkit.draw.resistor_bank import BankPlan, Bar, ResistorSpec, node
from layoutkit.draw.ring import TapRing, draw_tap_ring, module_covers, ring_sizes
from layoutkit.draw.sketch import Sketch, spread_squares
from layoutkit.errors import GeometryError
from layoutkit.layout.cells import fresh_cell
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.passive import Resistor
    from layoutkit.technology import Conductor, Cut, Technology


__all__ = ["ResistorSpec", "draw_resistors"]


def draw_resistors(layout: kdb.Layout, tech: Technology, spec: ResistorSpec) -> Module:
    """Draw the bank and return its module; units are called ``<id>_1``, ``<id>_2`` in the order of their current.

    Raises:
        GeometryError: If the resistors differ in flavour or bar, or there are dummies without a ring.
        TechnologyError: If the process lacks a dimension.
    """
    _check(tech, spec)
    if spec.resistors[0].spec.conductor:
        return _MetalDrawing(MetalPlan(tech, replace(spec, ring=False))).module(layout)
    module = _BankDrawing(BankPlan(tech, spec)).module(layout)
    nets = DeepWellNets(spec.bulk_net, spec.substrate)
    return in_deep_well(tech, module, spec.resistors[0].spec, nets, labels=spec.labels)


def _check(tech: Technology, spec: ResistorSpec) -> None:
    if not spec.resistors:
        raise GeometryError(f"module {spec.name} needs at least one resistor")
    if spec.dummies and not (spec.ring or spec.resistors[0].spec.conductor):
        raise GeometryError("dummy bars are tied to the substrate ring; draw it, or leave out the dummies")
    if not spec.ring and spec.resistors[0].spec.diffusion_of is not None:
        raise GeometryError(f"{spec.resistors[0].spec.name} lies between taps of its substrate or well; draw the ring")
    if len(spec.guards) > 2 * spec.dummies:
        raise GeometryError(f"module {spec.name} has {2 * spec.dummies} dummy bars for {len(spec.guards)} resistors")
    for what, values in (
        ("flavour", {r.spec.name for r in spec.resistors}),
        ("width", {tech.to_um(r.width) for r in spec.resistors}),
        ("segment length", {tech.to_um(r.length) for r in spec.resistors}),
    ):
        if len(values) > 1:
            raise GeometryError(f"resistors of one bank have one {what}, got {sorted(values)}")


class _Drawing:
    """What resistors of any material have in common: their sketch, pins on ``rail``, and module."""

    def __init__(self, plan: BankPlan | MetalPlan, rail: Conductor) -> None:
        self.tech, self.spec, self.flavour = plan.tech, plan.spec, plan.flavour
        self.bars, self.width, self.length = plan.bars, plan.sizes.width, plan.sizes.length
        self.rail = rail
        self.sketch = Sketch()
        self.pins: list[tuple[str, Rectangle]] = []

    def _draw_texts(self) -> None:
        rail = self.rail
        for net, area in self.pins:
            if rail.pin_layer:
                self.sketch.box(rail.pin_layer, area)
            if self.spec.labels:
                x, y = (area.left + area.right) // 2, (area.bottom + area.top) // 2
                self.sketch.text(rail.label_layer, net, x, y)
        layer = self.tech.role("device_text")
        for bar in self.bars:
            name = bar.resistor.id if bar.resistor else bar.unit
            if layer and name:
                self.sketch.text(layer, name, bar.left + self.width // 2, self.length // 2)

    def _described(self, layout: kdb.Layout) -> Module:
        extent = self.sketch.extent()
        cell = fresh_cell(layout, self.spec.name)
        moved = self.sketch.write_at_origin(cell, self.tech)
        gates, instances = [], []
        for _, group in groupby(self.bars, lambda bar: bar.unit or bar.left):
            bar, *others = group
            box = moved(Rectangle(bar.left, 0, (others or [bar])[-1].left + self.width, self.length))
            gates.append(Gate(bar.resistor.id if bar.resistor else bar.unit, bar.unit, box))
            if bar.resistor:
                centre = ((box.left + box.right) / 2, (box.bottom + box.top) / 2)
                instances.append(Instance(bar.unit, bar.resistor.id, *centre, "R0"))
        pins = sorted(self.pins, key=lambda pin: (pin[1].bottom, pin[1].left, pin[0]))
        symmetric = self.sketch.is_mirror_image_of_itself() and (extent.left + extent.right) % (2 * self.tech.grid) == 0
        return Module(
            name=self.spec.name,
            cell=cell,
            layout=layout,
            pins=tuple(Pin(net, self.rail.name, moved(area)) for net, area in pins),
            devices=(*(resistor.id for resistor in self.spec.resistors), *(name for name, _ in self.spec.guards)),
            instances=tuple(instances),
            symmetry_axis_x=(extent.right - extent.left) // 2 if symmetric else None,
            bbox=moved(extent),
            gates=tuple(gates),
            mirrored_in_y=self.sketch.is_mirror_image_of_itself(upside_down=True),
            joined=False,
            warnings=tuple(warning for resistor in self.spec.resistors for warning in resistor.warnings),
            dummies=self._dummies(),
        )

    def _dummies(self) -> tuple[DrawnDummy, ...]:
        """Return the bars that the netlist lacks."""
        net, count = self.spec.bulk_net, sum(not (bar.resistor or bar.unit) for bar in self.bars)
        bar = DrawnDummy(self.flavour.name, net, net, net, net, self.width, self.length, count)
        return (bar,) if count else ()


class _MetalDrawing(_Drawing):
    def __init__(self, plan: MetalPlan) -> None:
        super().__init__(plan, plan.wired)
        self.plan = plan

    def module(self, layout: kdb.Layout) -> Module:
        self.pins = self.plan.draw(self.sketch)
        self._draw_texts()
        return replace(self._described(layout), keepouts=self._beside_wide_bars())

    def _beside_wide_bars(self) -> tuple[Keepout, ...]:
        """Return where wires would be too close to bars that are wide: beside them, but for a gap before each terminal.

        The gap is shorter than the length from which such rules count.
        """
        import klayout.db as kdb

        metal, extent = self.plan.metal, self.sketch.extent()
        width, height = extent.right - extent.left, extent.top - extent.bottom
        beyond = beside_wide(self.tech, metal, min(self.plan.sizes.head_width, height))
        if beyond <= wide_space(metal):  # the router keeps that by itself
            return ()
        half = self.tech.to_dbu(_GAP_UM / 2)
        boxes = [(-beyond, 0, 0, height), (width, 0, width + beyond, height)]
        for low, high, is_upper in ((-beyond, 0, False), (height, height + beyond, True)):
            left = -beyond
            for _, pin in self.pins:
                if (pin.bottom > self.length // 2) == is_upper:
                    middle = self.tech.snap((pin.left + pin.right) / 2) - extent.left
                    boxes.append((left, low, middle - half, high))
                    left = middle + half
            boxes.append((left, low, width + beyond, high))
        return tuple(Keepout(metal.name, kdb.Box(*box), by_rule=True) for box in boxes if box[0] < box[2])


class _BankDrawing(_Drawing):
    def __init__(self, plan: BankPlan) -> None:
        super().__init__(plan, plan.tech.conductors[1])
        self.plan, self.sizes = plan, plan.sizes

    def module(self, layout: kdb.Layout) -> Module:
        for index, bar in enumerate(self.plan.bars):
            self._draw_bar(bar, *self.plan.core_ends(index))
        self._draw_covers()
        ring = self.plan.ring_inside() if self.spec.ring else None
        for high in (False, True):
            self._draw_side(ring, high=high)
        if ring is not None:
            taps = self.plan.taps
            self.pins += draw_tap_ring(self.sketch, self.tech, taps, TapRing(ring), self.spec.bulk_net)
            sizes, flavour = ring_sizes(self.tech, taps, self.plan.rows), self.flavour
            own = self.spec.in_well or (flavour.diffusion_of and not flavour.in_p_well)  # a deep well holds a p well
            for layer, area in module_covers(ring, sizes, self.tech, taps) if own else ():
                self.sketch.box(layer, area)
            if flavour.undrawn_well:
                for layer, area in module_covers(ring, sizes, self.tech, taps):
                    self._draw_around_bars(layer, area)
        self._draw_texts()
        return self._described(layout)

    def _draw_around_bars(self, layer: str, area: Rectangle) -> None:
        """Draw a well, whose holes the bars are."""
        outline = self.plan.outline()
        edges = [area.left, *(x for bar in self.bars for x in (bar.left, bar.left + self.width)), area.right]
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            self.sketch.box(layer, Rectangle(left, area.bottom, right, area.top))
        self.sketch.box(layer, area._replace(top=outline.bottom))
        self.sketch.box(layer, area._replace(bottom=outline.top))

    def _draw_bar(self, bar: Bar, low_end: int, high_end: int) -> None:
        sizes, sketch, tech = self.sizes, self.sketch, self.tech
        body = self.flavour.parts["body"]
        right = bar.left + sizes.width
        if not self.flavour.undrawn_well:
            bottom, top = -self.plan.poly_end if bar.low else low_end, sizes.length + self.plan.poly_end
            sketch.box(body, Rectangle(bar.left, bottom, right, top if bar.high else high_end))
        margin = self.plan.head_margin()
        count = max(
            1,
            (sizes.head_width - 2 * self.plan.head_side() + sizes.contact_space)
            // (sizes.contact + sizes.contact_space),
        )
        used = count * (sizes.contact + sizes.contact_space) - sizes.contact_space
        first = tech.snap(bar.left + sizes.width / 2 - used / 2)
        heads = ((bar.low, -sizes.to_contact - sizes.contact_length), (bar.high, sizes.length + sizes.to_contact))
        for low in (low for net, low in heads if net):
            top = low + sizes.contact_length
            if margin:
                sketch.box(
                    body, Rectangle(bar.left - margin, low - sizes.head_end, right + margin, top + sizes.head_end)
                )
            for i in range(count):
                left = first + i * (sizes.contact + sizes.contact_space)
                height = sizes.contact if self.flavour.well else sizes.contact_length
                for bottom in range(low, top - height + 1, height + sizes.contact_space):
                    sketch.box(tech.contact.layer, Rectangle(left, bottom, left + sizes.contact, bottom + height))
            if self.flavour.well:
                inset = self.plan.tap_inset
                beyond = self.flavour.dimensions.get("tap_end", self.plan.head_side() - inset)
                tap = Rectangle(bar.left - margin + inset, low - beyond, right + margin - inset, top + beyond)
                sketch.box("tap", tap)
            pad_left, pad_right = self.plan.pad_x(bar)
            pad = Rectangle(pad_left, low - self.plan.rows.strip_end, pad_right, top + self.plan.rows.strip_end)
            sketch.box(tech.conductors[0].layer, pad)

    def _draw_covers(self) -> None:
        sketch = self.sketch
        core, on_bars = self.flavour.parts["core"], list(self.flavour.core_markers)
        if self.flavour.dimensions.get("core_enclosure", 0):
            sketch.box(core, self.plan.core())
        else:
            on_bars.append(core)
        for index, bar in enumerate(self.plan.bars):
            low, high = self.plan.core_ends(index)
            for layer in on_bars:
                sketch.box(layer, Rectangle(bar.left, low, bar.left + self.sizes.width, high))
        for bend in self.plan.bends():
            for layer in (self.flavour.parts["body"], *on_bars):
                sketch.box(layer, bend)
        for marker, area in self.plan.covers().items():
            sketch.box(marker, area)
        for area in self.plan.heads():
            for layer in self.flavour.heads:
                sketch.box(layer, area)
        role = self.tech.role("poly_contact_marker")
        if role is not None and role not in self.flavour.markers and self.plan.material == "poly":
            self._draw_contact_markers(role)

    def _draw_contact_markers(self, layer: str) -> None:
        """Draw the marker of poly contacts over each row of heads."""
        sizes = self.sizes
        beyond = max(self.plan.rows.marker, self.plan.head_margin())
        for low in (-sizes.to_contact - sizes.contact_length, sizes.length + sizes.to_contact):
            area = Rectangle(
                self.plan.bars[0].left, low, self.plan.bars[-1].left + sizes.width, low + sizes.contact_length
            )
            self.sketch.box(layer, area.enlarged(beyond, self.plan.rows.marker))

    def _draw_side(self, ring: Rectangle | None, *, high: bool) -> None:
        sizes, sketch, tech = self.plan.rows, self.sketch, self.tech
        heights = {
            net: self.plan.rail_low(i, high=high) for i, t in enumerate(self.plan.tracks[high]) for net, _, _ in t.rails
        }
        for index, track in enumerate(self.plan.tracks[high]):
            low = self.plan.rail_low(index, high=high)
            for net, left, right in track.rails:
                area = Rectangle(left, low, right, low + sizes.rail)
                sketch.box(tech.conductors[1].layer, area)
                if any(net in (r.p, r.n) for r in self.spec.resistors):
                    self.pins.append((net, area))
        contact_low = (
            self.sizes.length + self.sizes.to_contact if high else -self.sizes.to_contact - self.sizes.contact_length
        )
        for bar in self.plan.bars:
            net = bar.high if high else bar.low
            left, right = self.plan.pad_x(bar)
            if not net:
                continue
            if self.plan.to_ring(net):
                if ring is None:
                    continue
                end = ring.top if high else ring.bottom
                ends = (contact_low, end) if high else (end, contact_low + self.sizes.contact_length)
                sketch.box(tech.conductors[0].layer, Rectangle(left, ends[0], right, ends[1]))
                continue
            cut_low = heights[net] + (sizes.rail - sizes.cut) // 2
            if high:
                ends = (contact_low, cut_low + sizes.cut + sizes.cut_strip_end)
            else:
                ends = (cut_low - sizes.cut_strip_end, contact_low + self.sizes.contact_length)
            sketch.box(tech.conductors[0].layer, Rectangle(left, ends[0], right, ends[1]))
            for x in self.plan.cuts(bar):
                sketch.box(tech.cuts[0].layer, Rectangle(x, cut_low, x + sizes.cut, cut_low + sizes.cut))


_WIRED = (1, 4)
"""The lowest and the highest conductor of the stack that usually carry wires between modules."""
_MOST_CUTS = 24  # on a side of one head
_GAP_UM = 4.0  # before a terminal of wide metal, beside which wires keep away


class MetalSizes(NamedTuple):
    """Lengths of one bar and its heads. [dbu]"""

    width: int
    length: int
    neck: int
    head_width: int
    head_length: int
    pitch: int


class MetalPlan:
    """Where the bars and heads of metal resistors lie; the first bar's core has its lower left corner at (0, 0).

    Args:
        tech: Process.
        spec: Resistors of one conductor, bar width and bar length.
    """

    def __init__(self, tech: Technology, spec: ResistorSpec) -> None:
        self.tech, self.spec, self.flavour = tech, spec, spec.resistors[0].spec
        self.metal = tech.conductor(self.flavour.conductor)
        level = [conductor.name for conductor in tech.conductors].index(self.metal.name)
        wired = min(max(level, _WIRED[0]), _WIRED[1])
        self.wired: Conductor = tech.conductors[wired]
        steps = range(level, wired) if level < wired else range(level - 1, wired - 1, -1)
        self.cuts: tuple[Cut, ...] = tuple(tech.cuts[step] for step in steps)  # from the heads on
        near = [(cut, above) for above, cut in ((False, level), (True, level - 1)) if 0 <= cut < len(tech.cuts)]
        held = [_held(tech.cuts[cut], above=above) for cut, above in near]
        held += [_held(cut, above=above) for cut in self.cuts for above in (False, True)]
        self.least = max(held)
        self.sizes = self._sizes()
        self.columns = self._columns()
        self.bars = [column for column in self.columns if column.unit]

    def _sizes(self) -> MetalSizes:
        tech, metal = self.tech, self.metal
        width, length = self.spec.resistors[0].width, self.spec.resistors[0].length
        lack = max(metal.width, self.least) - width
        head = width + max(0, -(-lack // (2 * tech.grid))) * 2 * tech.grid
        space = wide_space(metal) if metal.wide_width is not None and head > metal.wide_width else metal.space
        space = max(space, beside_wide(tech, metal, head))
        neck = tech.snap_up(space)
        bare = -(-(metal.area - width * (length + 2 * neck)) // (2 * head))
        head_length = tech.snap_up(max(metal.width, self.least, bare))
        pitch = head + space
        if any(resistor.m > 1 for resistor in self.spec.resistors):  # the space between two of its bars is a hole
            hole = self.flavour.dimensions.get("hole_area", 0)
            neck = max(neck, tech.snap_up((-(-hole // (pitch - width)) - length) / 2))
        if self.cuts:
            pitch = max(pitch, head + 2 * self._beyond() + wide_space(self.wired))
        return MetalSizes(width, length, neck, head, head_length, -(-pitch // (2 * tech.grid)) * 2 * tech.grid)

    def _beyond(self) -> int:
        """Return how far the widest conductor between a head and its wires reaches beyond the head. [dbu]"""
        return max((0, *(_enclosure(cut, above=not up) - _enclosure(cut, above=up) for cut, up in self._led())))

    def _led(self) -> list[tuple[Cut, bool]]:
        """Return the cuts from the heads to the conductor with wires, each with whether the way leads downwards."""
        downwards = bool(self.cuts) and self.cuts[0].above == self.metal.name
        return [(cut, downwards) for cut in self.cuts]

    def _columns(self) -> list[Bar]:
        """Return the bars from left to right, and the columns without a core, which have no unit."""
        found: list[Bar] = []
        for resistor in self.spec.resistors:
            for number in range(resistor.bars):
                string, place = divmod(number, resistor.segments)
                before, after = (node(resistor, string, place + step) for step in (0, 1))
                low, high = (after, before) if place % 2 else (before, after)
                found.append(Bar(len(found) * self.sizes.pitch, resistor, f"{resistor.id}_{number + 1}", low, high))
                if place + 1 == resistor.segments and place % 2:
                    found.append(Bar(len(found) * self.sizes.pitch, resistor, "", resistor.n, resistor.n))
        return found

    def _heads(self, resistor: Resistor, *, high: bool) -> list[tuple[str, Rectangle]]:
        """Return the heads above or below the bars of a resistor, those of neighbours on one net as one."""
        sizes = self.sizes
        margin = (sizes.head_width - sizes.width) // 2
        low = sizes.length + sizes.neck if high else -sizes.neck - sizes.head_length
        found = []
        own = [column for column in self.columns if column.resistor is resistor]
        for net, group in groupby(own, attrgetter("high" if high else "low")):
            lefts = [column.left for column in group]
            right = lefts[-1] + sizes.width + margin
            found.append((net, Rectangle(lefts[0] - margin, low, right, low + sizes.head_length)))
        return found

    def draw(self, sketch: Sketch) -> list[tuple[str, Rectangle]]:
        """Draw bars, heads and markers; return the pins on ``wired``, as net and area."""
        sizes, pins = self.sizes, []
        margin = (sizes.head_width - sizes.width) // 2
        for column in self.columns:
            core = Rectangle(column.left, 0, column.left + sizes.width, sizes.length)
            sketch.box(self.metal.layer, core.enlarged(0 if column.unit else margin, sizes.neck))
            for layer in (self.flavour.parts["core"], *self.flavour.core_markers) if column.unit else ():
                sketch.box(layer, core)
        for resistor in self.spec.resistors:
            for high, terminal in ((False, resistor.p), (True, resistor.n)):
                heads = self._heads(resistor, high=high)
                for _, area in heads:
                    sketch.box(self.metal.layer, area)
                pin = self._strap(sketch, [area for net, area in heads if net == terminal], high=high)
                pins.append((terminal, self._led_away(sketch, pin, high=high) if self.cuts else pin))
        return pins

    def _strap(self, sketch: Sketch, heads: list[Rectangle], *, high: bool) -> Rectangle:
        """Draw what joins the heads of one terminal; return it, the head itself where there is only one."""
        if len(heads) == 1:
            return heads[0]
        sizes, first = self.sizes, heads[0]
        beyond = sizes.neck + sizes.head_length
        for head in heads:
            grown = head._replace(top=head.top + beyond) if high else head._replace(bottom=head.bottom - beyond)
            sketch.box(self.metal.layer, grown)
        low = first.top + sizes.neck if high else first.bottom - beyond
        strap = Rectangle(first.left, low, heads[-1].right, low + sizes.head_length)
        sketch.box(self.metal.layer, strap)
        return strap

    def _led_away(self, sketch: Sketch, head: Rectangle, *, high: bool) -> Rectangle:
        """Draw the cuts and conductors from a head to the conductor with wires; return the area on the last one."""
        area, beyond = head, self._beyond()
        for cut, downwards in self._led():
            inside = max(_enclosure(cut, above=downwards), _enclosure(cut, above=not downwards) - beyond)
            room = head.enlarged(-inside, -inside)
            for square in spread_squares(room, cut.size, cut.spacing(), self.tech.grid, _MOST_CUTS):
                sketch.box(cut.layer, square)
            next_one = self.tech.conductor(cut.below if downwards else cut.above)
            area = head.enlarged(beyond, beyond)
            lack = max(next_one.width, -(-next_one.area // (area.right - area.left))) - (area.top - area.bottom)
            more = self.tech.snap_up(max(0, lack))
            area = area._replace(top=area.top + more) if high else area._replace(bottom=area.bottom - more)
            sketch.box(next_one.layer, area)
        return area


def _enclosure(cut: Cut, *, above: bool) -> int:
    """Return how far the conductor above or below a cut reaches beyond it on any side. [dbu]"""
    sides = (cut.enclose_above, cut.enclose_above_end) if above else (cut.enclose_below, cut.enclose_below_end)
    return max(sides)


def _held(cut: Cut, *, above: bool) -> int:
    """Return the side of the square of the conductor above or below a cut that holds one. [dbu]"""
    return cut.size + 2 * _enclosure(cut, above=above)
