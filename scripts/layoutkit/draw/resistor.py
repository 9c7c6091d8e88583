"""Poly resistors: equal bars side by side, in series and parallel, of one resistor or of several that match.

::

      ===== p        ===== n     rails (second conductor), one a net
        |   +--link--+   |
       [#] [#]      [#] [#]      heads: poly with contacts
        |   |        |   |
        |   |  core  |   |       bars (poly): the core layer on them makes them resistive
        |   |        |   |
       [#] [#]      [#] [#]
        +-link-+     +-link-+
    ============================ tap ring of the substrate, which is the bulk

Dummies are bars at the ends whose heads run on to the ring.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.cells import fresh_cell
from layoutkit.draw.module import Gate, Instance, Module, Pin
from layoutkit.draw.pattern import common_centroid
from layoutkit.draw.ring import ring_sizes
from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area, Sketch
from layoutkit.draw.tap_ring import draw_tap_ring
from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.passive import Resistor
    from layoutkit.technology import PassiveSpec, Technology


@dataclass(frozen=True)
class ResistorSpec:
    """Resistors to be drawn in one bank.

    Attributes:
        name: Name of the cell.
        resistors: Of one flavour, bar width and bar length; several are interleaved about a common centroid.
        bulk_net: Net of the substrate ring.
        dummies: Dummy bars at each end.
        ring: Whether to draw the ring.
        labels: Whether pins carry net names.
    """

    name: str
    resistors: tuple[Resistor, ...]
    bulk_net: str
    dummies: int = 0
    ring: bool = True
    labels: bool = True


def draw_resistors(layout: kdb.Layout, tech: Technology, spec: ResistorSpec) -> Module:
    """Draw the bank and return its module; units are called ``<id>_1``, ``<id>_2`` in the order of their current.

    Raises:
        GeometryError: If the resistors differ in flavour or bar, or dummies are asked for without a ring.
        TechnologyError: If the process lacks a dimension.
    """
    _check(tech, spec)
    return _Bank(tech, spec).module(layout)


def _check(tech: Technology, spec: ResistorSpec) -> None:
    if not spec.resistors:
        raise GeometryError(f"module {spec.name} needs at least one resistor")
    if spec.dummies and not spec.ring:
        raise GeometryError("dummy bars are tied to the substrate ring; draw it, or leave out the dummies")
    for what, values in (
        ("flavour", {r.spec.name for r in spec.resistors}),
        ("width", {tech.to_um(r.width) for r in spec.resistors}),
        ("segment length", {tech.to_um(r.length) for r in spec.resistors}),
    ):
        if len(values) > 1:
            raise GeometryError(f"resistors of one bank have one {what}, got {sorted(values)}")


class _Sizes(NamedTuple):
    """Lengths of one bar and its surroundings. [dbu]"""

    width: int
    length: int
    contact: int
    contact_length: int
    contact_space: int
    to_contact: int
    head_end: int
    head_width: int
    pad_width: int
    pad_space: int
    pitch: int


class _Bar(NamedTuple):
    left: int
    resistor: Resistor | None
    unit: str
    low: str  # net of the lower head
    high: str


@dataclass
class _Track:
    """Rails of one height: each a net with its left and right end."""

    rails: list[tuple[str, int, int]] = field(default_factory=list)

    def has_room(self, left: int, right: int, space: int) -> bool:
        return all(
            right + space <= other_left or left - space >= other_right for _, other_left, other_right in self.rails
        )


class _Bank:
    def __init__(self, tech: Technology, spec: ResistorSpec) -> None:
        self.tech = tech
        self.spec = spec
        self.flavour: PassiveSpec = spec.resistors[0].spec
        self.taps = tech.device("nmos")
        self.rows = row_sizes(tech, self.taps)
        self.sizes = self._bar_sizes()
        self.sketch = Sketch()
        self.pins: list[tuple[str, Area]] = []
        self.bars = self._bars()
        self.tracks = {False: self._tracks(high=False), True: self._tracks(high=True)}

    # ---- sizes

    def _bar_sizes(self) -> _Sizes:
        tech, rows, dims = self.tech, self.rows, self.flavour.dimensions
        first = tech.conductors[0]
        width, length = self.spec.resistors[0].width, self.spec.resistors[0].length
        contact = dims.get("contact_width", rows.contact)
        contact_length = dims.get("contact_length", rows.contact)
        space = max(rows.contact_space, dims.get("contact_space", 0), tech.contact.array_space)
        side = max(dims.get("contact_enclosure", 0), tech.dim("poly_contact_enclosure"))
        end = max(side, dims.get("contact_enclosure_end", 0), tech.dim("poly_contact_enclosure_end"))
        head = max(width, contact + 2 * side)
        count = max(1, (head - 2 * side + space) // (contact + space))
        pad = count * (contact + space) - space + 2 * rows.strip_side
        pad = contact + -(-(max(pad, rows.strip) - contact) // (2 * tech.grid)) * 2 * tech.grid
        strip_space = max(first.space, (first.wide_space or 0) if pad > (first.wide_width or pad) else 0)
        own_marker = tech.role("poly_contact_marker") in self.flavour.markers
        pitch = max(width + dims.get("body_space", 0), head + tech.dim("gate_space"), pad + strip_space)
        return _Sizes(
            width=width,
            length=length,
            contact=contact,
            contact_length=contact_length,
            contact_space=space,
            to_contact=max(
                dims.get("core_to_contact", 0), end if head > width else 0, 0 if own_marker else rows.marker
            ),
            head_end=end,
            head_width=head,
            pad_width=pad,
            pad_space=strip_space,
            pitch=-(-pitch // (2 * tech.grid)) * 2 * tech.grid,
        )

    @property
    def poly_end(self) -> int:
        """How far the poly reaches beyond the core, at both ends."""
        return self.sizes.to_contact + self.sizes.contact_length + self.sizes.head_end

    # ---- what lies where

    def _bars(self) -> list[_Bar]:
        spec, pitch = self.spec, self.sizes.pitch
        by_id = {resistor.id: resistor for resistor in spec.resistors}
        pattern = common_centroid({resistor.id: resistor.bars for resistor in spec.resistors})
        count = dict.fromkeys(by_id, 0)
        bars = [_Bar(i * pitch, None, "", spec.bulk_net, spec.bulk_net) for i in range(spec.dummies)]
        for device in pattern:
            resistor, number = by_id[device], count[device]
            count[device] += 1
            string, place = divmod(number, resistor.segments)
            before, after = (_node(resistor, string, place + step) for step in (0, 1))
            low, high = (after, before) if place % 2 else (before, after)
            bars.append(_Bar(len(bars) * pitch, resistor, f"{device}_{number + 1}", low, high))
        bars += [_Bar((len(bars) + i) * pitch, None, "", spec.bulk_net, spec.bulk_net) for i in range(spec.dummies)]
        return bars

    def _to_ring(self, net: str) -> bool:
        return self.spec.ring and net == self.spec.bulk_net

    def _cuts(self, bar: _Bar) -> range:
        """Return the left edges of the cuts on the strip of ``bar``."""
        sizes, cut = self.rows, self.tech.cuts[0]
        middle = bar.left + self.sizes.width / 2
        room = self.sizes.pad_width - 2 * cut.enclose_below
        count = max(1, (room + sizes.cut_space) // (sizes.cut + sizes.cut_space))
        used = count * (sizes.cut + sizes.cut_space) - sizes.cut_space
        low = self.tech.snap(middle - used / 2)
        return range(low, low + count * (sizes.cut + sizes.cut_space), sizes.cut + sizes.cut_space)

    def _tracks(self, *, high: bool) -> list[_Track]:
        """Return the rails of one side from the bars outward: links first, then the terminals over the whole bank."""
        sizes = self.rows
        terminals = {net for r in self.spec.resistors for net in (r.p, r.n)}
        spans: dict[str, tuple[int, int]] = {}
        for bar in self.bars:
            net = bar.high if high else bar.low
            if self._to_ring(net):
                continue
            cuts = self._cuts(bar)
            left, right = cuts[0] - sizes.cut_rail_end, cuts[-1] + sizes.cut + sizes.cut_rail_end
            old = spans.get(net, (left, right))
            spans[net] = (min(old[0], left), max(old[1], right))
        tracks: list[_Track] = []
        for net, (left, right) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
            if net in terminals:
                continue
            span = self._grown(left, right)
            track = next((track for track in tracks if track.has_room(*span, sizes.rail_space)), None)
            if track is None:
                tracks.append(track := _Track())
            track.rails.append((net, *span))
        whole = self._whole()
        tracks += [_Track([(net, *whole)]) for net in sorted(spans) if net in terminals]
        return tracks

    def _whole(self) -> tuple[int, int]:
        lefts = [cut for bar in self.bars for cut in self._cuts(bar)]
        return self._grown(min(lefts) - self.rows.cut_rail_end, max(lefts) + self.rows.cut + self.rows.cut_rail_end)

    def _grown(self, left: int, right: int) -> tuple[int, int]:
        """Return a rail's ends moved apart until it has the least area."""
        lack = -(-self.rows.rail_area // self.rows.rail) - (right - left)
        grow = max(0, -(-lack // (2 * self.tech.grid)) * self.tech.grid)
        return left - grow, right + grow

    def _rail_low(self, index: int, *, high: bool) -> int:
        """Return the lower edge of the rails of a track."""
        sizes = self.rows
        start = self.sizes.length + self.poly_end if high else -self.poly_end
        offset = max(0, sizes.strip_end - self.sizes.head_end) + index * (sizes.rail + sizes.rail_space)
        return start + offset if high else start - offset - sizes.rail

    # ---- drawing

    def module(self, layout: kdb.Layout) -> Module:
        for bar in self.bars:
            self._draw_bar(bar)
        self._draw_covers()
        ring = self._ring_inside() if self.spec.ring else None
        for high in (False, True):
            self._draw_side(ring, high=high)
        if ring is not None:
            self.pins += draw_tap_ring(self.sketch, self.tech, self.taps, ring, self.spec.bulk_net)
        self._draw_texts()
        return self._described(layout)

    def _draw_bar(self, bar: _Bar) -> None:
        sizes, sketch, tech = self.sizes, self.sketch, self.tech
        body = self.flavour.parts["body"]
        right = bar.left + sizes.width
        sketch.box(body, Area(bar.left, -self.poly_end, right, sizes.length + self.poly_end))
        margin = self._head_margin()
        count = max(
            1, (sizes.head_width - 2 * self._side() + sizes.contact_space) // (sizes.contact + sizes.contact_space)
        )
        used = count * (sizes.contact + sizes.contact_space) - sizes.contact_space
        first = tech.snap(bar.left + sizes.width / 2 - used / 2)
        for low in (-sizes.to_contact - sizes.contact_length, sizes.length + sizes.to_contact):
            top = low + sizes.contact_length
            if margin:
                sketch.box(body, Area(bar.left - margin, low - sizes.head_end, right + margin, top + sizes.head_end))
            for i in range(count):
                left = first + i * (sizes.contact + sizes.contact_space)
                sketch.box(tech.contact.layer, Area(left, low, left + sizes.contact, top))
            pad_left, pad_right = self._pad_x(bar)
            pad = Area(pad_left, low - self.rows.strip_end, pad_right, top + self.rows.strip_end)
            sketch.box(tech.conductors[0].layer, pad)

    def _side(self) -> int:
        dims = self.flavour.dimensions
        return max(dims.get("contact_enclosure", 0), self.tech.dim("poly_contact_enclosure"))

    def _head_margin(self) -> int:
        lack = self.sizes.head_width - self.sizes.width
        return -(-lack // (2 * self.tech.grid)) * self.tech.grid

    def _pad_x(self, bar: _Bar) -> tuple[int, int]:
        left = self.tech.snap(bar.left + self.sizes.width / 2 - self.sizes.pad_width / 2)
        return left, left + self.sizes.pad_width

    def _outline(self) -> Area:
        """Return the box of all poly."""
        margin = self._head_margin()
        left, right = self.bars[0].left - margin, self.bars[-1].left + self.sizes.width + margin
        return Area(left, -self.poly_end, right, self.sizes.length + self.poly_end)

    def _core(self) -> Area:
        dims, sizes = self.flavour.dimensions, self.sizes
        beyond, width = dims.get("core_enclosure", 0), self.bars[-1].left + sizes.width - self.bars[0].left
        lack = -(-dims.get("core_area", 0) // sizes.length) - width
        beyond = max(beyond, -(-lack // (2 * self.tech.grid)) * self.tech.grid)
        return Area(self.bars[0].left - beyond, 0, self.bars[-1].left + sizes.width + beyond, sizes.length)

    def _covers(self) -> dict[str, Area]:
        """Return each marker of the flavour over all bars, as wide as it must be."""
        dims, grid = self.flavour.dimensions, self.tech.grid
        found = {}
        for marker in self.flavour.markers:
            beyond = max(dims.get(f"{kind}_enclosure", 0) for kind in ("implant", "block", "marker", marker))
            area = self._outline().enlarged(beyond, beyond)
            least = dims.get(f"{marker}_width", 0)
            dx, dy = (
                max(0, -(-(least - size) // (2 * grid)) * grid)
                for size in (area.right - area.left, area.top - area.bottom)
            )
            found[marker] = area.enlarged(dx, dy)
        return found

    def _draw_covers(self) -> None:
        sketch = self.sketch
        core = self.flavour.parts["core"]
        if self.flavour.dimensions.get("core_enclosure", 0):
            sketch.box(core, self._core())
        else:
            for bar in self.bars:
                sketch.box(core, Area(bar.left, 0, bar.left + self.sizes.width, self.sizes.length))
        for marker, area in self._covers().items():
            sketch.box(marker, area)
        role = self.tech.role("poly_contact_marker")
        if role is not None and role not in self.flavour.markers:
            self._draw_contact_markers(role)

    def _draw_contact_markers(self, layer: str) -> None:
        """Draw the marker of poly contacts over each row of heads."""
        sizes = self.sizes
        beyond = max(self.rows.marker, self._head_margin())
        for low in (-sizes.to_contact - sizes.contact_length, sizes.length + sizes.to_contact):
            area = Area(self.bars[0].left, low, self.bars[-1].left + sizes.width, low + sizes.contact_length)
            self.sketch.box(layer, area.enlarged(beyond, self.rows.marker))

    def _draw_side(self, ring: Area | None, *, high: bool) -> None:
        sizes, sketch, tech = self.rows, self.sketch, self.tech
        heights = {net: self._rail_low(i, high=high) for i, t in enumerate(self.tracks[high]) for net, _, _ in t.rails}
        for index, track in enumerate(self.tracks[high]):
            low = self._rail_low(index, high=high)
            for net, left, right in track.rails:
                area = Area(left, low, right, low + sizes.rail)
                sketch.box(tech.conductors[1].layer, area)
                if any(net in (r.p, r.n) for r in self.spec.resistors):
                    self.pins.append((net, area))
        contact_low = (
            self.sizes.length + self.sizes.to_contact if high else -self.sizes.to_contact - self.sizes.contact_length
        )
        for bar in self.bars:
            net = bar.high if high else bar.low
            left, right = self._pad_x(bar)
            if self._to_ring(net):
                if ring is None:
                    continue
                end = ring.top if high else ring.bottom
                ends = (contact_low, end) if high else (end, contact_low + self.sizes.contact_length)
                sketch.box(tech.conductors[0].layer, Area(left, ends[0], right, ends[1]))
                continue
            cut_low = heights[net] + (sizes.rail - sizes.cut) // 2
            if high:
                ends = (contact_low, cut_low + sizes.cut + sizes.cut_strip_end)
            else:
                ends = (cut_low - sizes.cut_strip_end, contact_low + self.sizes.contact_length)
            sketch.box(tech.conductors[0].layer, Area(left, ends[0], right, ends[1]))
            for x in self._cuts(bar):
                sketch.box(tech.cuts[0].layer, Area(x, cut_low, x + sizes.cut, cut_low + sizes.cut))

    def _ring_inside(self) -> Area:
        """Return the inner edge of the ring: clear of poly, markers, strips and rails."""
        tech, rows, dims = self.tech, self.rows, self.flavour.dimensions
        ring = ring_sizes(tech, self.taps, rows)
        outline = self._outline()
        clear = max(
            dims.get("body_to_active", 0), ring.poly_space, ring.gate_contact_space, rows.marker + rows.gate_space
        )
        inner = outline.enlarged(clear, clear)
        covers = [(area, rows.implant_space + ring.implant) for area in self._covers().values()]
        covers.append((self._core(), dims.get("core_to_active", 0)))
        for area, space in covers:
            grown = area.enlarged(space, space)
            inner = _union(inner, grown)
        pads, space = [self._pad_x(bar) for bar in self.bars], self.sizes.pad_space
        inner = _union(inner, Area(pads[0][0] - space, inner.bottom, pads[-1][1] + space, inner.top))
        over = max(0, (rows.rail - ring.width + 1) // 2)
        for high in (False, True):
            for index, track in enumerate(self.tracks[high]):
                low = self._rail_low(index, high=high)
                for _, left, right in track.rails:
                    # The rail of the ring lies on its lower side; strips end a little beyond the rails.
                    beyond = max(rows.rail_space + over, rows.cut_strip_end + space)
                    inner = _union(inner, Area(left, low - beyond, right, low + rows.rail + beyond))
        return Area(
            *(tech.grid * (-(-edge // tech.grid) if i > 1 else edge // tech.grid) for i, edge in enumerate(inner))
        )

    # ---- what is told

    def _draw_texts(self) -> None:
        rail = self.tech.conductors[1]
        for net, area in self.pins:
            if rail.pin_layer:
                self.sketch.box(rail.pin_layer, area)
            if self.spec.labels:
                x, y = (area.left + area.right) // 2, (area.bottom + area.top) // 2
                self.sketch.text(rail.label_layer, net, x, y)
        layer = self.tech.role("device_text")
        for bar in self.bars:
            if layer and bar.resistor:
                self.sketch.text(layer, bar.resistor.id, bar.left + self.sizes.width // 2, self.sizes.length // 2)

    def _described(self, layout: kdb.Layout) -> Module:
        import klayout.db as kdb

        extent, sizes = self.sketch.extent(), self.sizes
        dx, dy = -extent.left, -extent.bottom
        cell = fresh_cell(layout, self.spec.name)
        self.sketch.write(cell, self.tech, dx, dy)

        def moved(area: Area) -> kdb.Box:
            return kdb.Box(area.left + dx, area.bottom + dy, area.right + dx, area.top + dy)

        gates, instances = [], []
        for bar in self.bars:
            box = moved(Area(bar.left, 0, bar.left + sizes.width, sizes.length))
            gates.append(Gate(bar.resistor.id if bar.resistor else "", bar.unit, box))
            if bar.resistor:
                centre = ((box.left + box.right) / 2, (box.bottom + box.top) / 2)
                instances.append(Instance(bar.unit, bar.resistor.id, *centre, "R0"))
        pins = sorted(self.pins, key=lambda pin: (pin[1].bottom, pin[1].left, pin[0]))
        symmetric = self.sketch.is_mirror_image_of_itself() and (extent.left + extent.right) % (2 * self.tech.grid) == 0
        return Module(
            name=self.spec.name,
            cell=cell,
            layout=layout,
            pins=tuple(Pin(net, self.tech.conductors[1].name, moved(area)) for net, area in pins),
            devices=tuple(resistor.id for resistor in self.spec.resistors),
            instances=tuple(instances),
            symmetry_axis_x=(extent.right - extent.left) // 2 if symmetric else None,
            bbox=moved(extent),
            gates=tuple(gates),
            mirrored_in_y=self.sketch.is_mirror_image_of_itself(upside_down=True),
            warnings=tuple(warning for resistor in self.spec.resistors for warning in resistor.warnings),
        )


def _node(resistor: Resistor, string: int, place: int) -> str:
    """Return the net before bar ``place`` of a string: its ends are the terminals."""
    if place == 0:
        return resistor.p
    if place == resistor.segments:
        return resistor.n
    return f"{resistor.id}#{string + 1}.{place}"


def _union(one: Area, other: Area) -> Area:
    return Area(
        min(one.left, other.left), min(one.bottom, other.bottom), max(one.right, other.right), max(one.top, other.top)
    )
