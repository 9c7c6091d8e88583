"""The plan of a bank of resistor bars: their pitch and heads, which node each head is on, and the rails of both sides.

Everything is in the bank's own coordinates: the first bar's core has its lower left corner at (0, 0).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.passive import straight
from layoutkit.draw.pattern import common_centroid
from layoutkit.draw.ring import ring_sizes
from layoutkit.draw.row import row_sizes
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from layoutkit.draw.passive import Resistor
    from layoutkit.technology import PassiveSpec, Technology


@dataclass(frozen=True)
class ResistorSpec:
    """Resistors to be drawn in one bank.

    Attributes:
        name: Name of the cell.
        resistors: Of one flavour, bar width and bar length; several are interleaved about a common centroid.
        bulk_net: Net of the ring of taps of the substrate, or of the well.
        dummies: Dummy bars at each end.
        ring: Whether to draw the ring.
        labels: Whether pins carry net names.
        strings: Ids of resistors in series, in their order: the first's ``n`` is the second's ``p``, and so on. The
            bars of a string lie in its order, and a net between two of them joins two bars only. Several strings, and
            resistors in none, are interleaved.
        guards: Dummies of the netlist, which are some of the dummy bars: each with the net of both its ends.
        in_well: Whether they lie in an n well of their own, whose taps are the ring.
        substrate: Net of the substrate, for resistors of a p well, which lies in a deep well.
    """

    name: str
    resistors: tuple[Resistor, ...]
    bulk_net: str
    dummies: int = 0
    ring: bool = True
    labels: bool = True
    strings: tuple[tuple[str, ...], ...] = ()
    guards: tuple[tuple[str, str], ...] = ()
    in_well: bool = False
    substrate: str = "SUB"

    @property
    def inner_nets(self) -> frozenset[str]:
        """The nets between the resistors of a string."""
        after = {name for string in self.strings for name in string[1:]}
        return frozenset(r.p for r in self.resistors if r.id in after)


class BarSizes(NamedTuple):
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


class Bar(NamedTuple):
    """One bar: where it is and which net each of its heads is on; a dummy has no resistor.

    A bar that a bend joins to its neighbour has no net at that end.
    """

    left: int
    resistor: Resistor | None
    unit: str
    low: str  # net of the lower head
    high: str


@dataclass
class Track:
    """Rails of one height: each a net with its left and right end."""

    rails: list[tuple[str, int, int]] = field(default_factory=list)

    def has_room(self, left: int, right: int, space: int) -> bool:
        """Return whether a rail from ``left`` to ``right`` keeps ``space`` from those of the track."""
        return all(
            right + space <= other_left or left - space >= other_right for _, other_left, other_right in self.rails
        )


class BankPlan:
    """Where everything of a bank lies.

    Args:
        tech: Process.
        spec: Resistors of one bar width and length.
    """

    def __init__(self, tech: Technology, spec: ResistorSpec) -> None:
        self.tech = tech
        self.spec = spec
        self.flavour: PassiveSpec = spec.resistors[0].spec
        self.taps = self.flavour.diffusion_of or tech.device("pmos" if spec.in_well else "nmos")
        self.rows = row_sizes(tech, self.taps)
        self.material = _material(tech, self.flavour)
        self.sizes = self._bar_sizes()
        self.turns = self._turns(spec.resistors[0])
        if not self.turns and any(resistor.bends for resistor in spec.resistors):
            self.spec = replace(spec, resistors=tuple(straight(tech, resistor) for resistor in spec.resistors))
            self.sizes = self._bar_sizes()
        self.bars = self._bent_bars() if self.turns else self._bars()
        self.tracks = {False: self._tracks(high=False), True: self._tracks(high=True)}

    # ---- sizes

    def _bar_sizes(self) -> BarSizes:
        tech, rows, dims = self.tech, self.rows, self.flavour.dimensions
        first = tech.conductors[0]
        width, length = self.spec.resistors[0].width, self.spec.resistors[0].length
        contact = dims.get("contact_width", rows.contact)
        contact_length = dims.get("contact_length", rows.contact)
        space = max(rows.contact_space, dims.get("contact_space", 0), tech.contact.array_space)
        side = self.head_side()
        end = max(
            side, dims.get("contact_enclosure_end", 0), tech.dim(f"{self.material}_contact_enclosure_end", self.taps)
        )
        end = self.tap_inset + dims["tap_end"] if "tap_end" in dims else end
        head = max(width, contact + 2 * side)
        count = max(1, (head - 2 * side + space) // (contact + space))
        used = count * (contact + space) - space
        beyond = 2 * max(rows.strip_side, dims.get("head_metal_enclosure", 0))
        pad = used + -(-max(beyond, rows.strip - used) // (2 * tech.grid)) * 2 * tech.grid
        strip_space = first.spacing(wide=pad > (first.wide_width or pad))
        own_marker = tech.role("poly_contact_marker") in self.flavour.markers or self.material != "poly"
        between = tech.dim("gate_space" if self.material == "poly" else "active_space", self.taps)
        pitch = max(width + dims.get("body_space", 0), head + between, pad + strip_space)
        return BarSizes(
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

    def _turns(self, resistor: Resistor) -> list[int]:
        """Make the core as high as the length of bent bars needs; return how far each bend lies from its end.

        The bends lie within the core, whose layer reaches beyond them as beyond the sides of bars. A resistor that is
        too short for its bends, or not alone, has none.
        """
        grid, count = self.tech.grid, resistor.bends
        if not count or len(self.spec.resistors) > 1 or self.spec.dummies:
            return []
        width_um = self.tech.to_um(resistor.width)
        inset = self.flavour.dimensions.get("core_enclosure", 0)
        lost = inset + resistor.width  # of a bar at a bend
        found = []
        for wider, higher in ((0, 0), (0, grid), (grid, 0)):  # which of them meets the length on the grid
            pitch = self.sizes.pitch + wider
            bend = self.flavour.bend_um(width_um, self.tech.to_um(pitch - resistor.width)) / self.tech.dbu_um
            unbent = resistor.length - count * bend  # of all bars
            height = self.tech.snap_up((unbent + 2 * count * lost) / (count + 1)) + higher
            over = (count + 1) * height - 2 * count * lost - unbent
            moved = min(count, round(over / (2 * grid)))  # bends farther in take it away again
            found.append((round(abs(over - 2 * grid * moved)), wider + higher, pitch, height, moved))
        _, _, pitch, height, moved = min(found)
        if height <= min(count, 2) * (lost + grid):
            return []
        self.sizes = self.sizes._replace(length=height, pitch=pitch)
        return [inset + grid * (number < moved) for number in range(count)]

    def _bent_bars(self) -> list[Bar]:
        resistor, last, found = self.spec.resistors[0], len(self.turns), list[Bar]()
        for number in range(resistor.m):
            for place in range(last + 1):
                ends = (resistor.p if place == 0 else "", resistor.n if place == last else "")
                low, high = reversed(ends) if place % 2 else ends
                found.append(Bar(len(found) * self.sizes.pitch, resistor, f"{resistor.id}_{number + 1}", low, high))
        return found

    def bends(self) -> list[Rectangle]:
        """Return the boxes in which bent bars turn."""
        sizes, found = self.sizes, []
        for index, bar in enumerate(self.bars if self.turns else ()):
            place = index % (len(self.turns) + 1)
            if place < len(self.turns):
                low = self.turns[place] if place % 2 else sizes.length - self.turns[place] - sizes.width
                found.append(Rectangle(bar.left, low, bar.left + sizes.pitch + sizes.width, low + sizes.width))
        return found

    def core_ends(self, index: int) -> tuple[int, int]:
        """Return where the core of a bar begins and ends: at its heads, or with the bend that it turns in."""
        place = index % (len(self.turns) + 1)
        ends = ([0, *self.turns][place], [*self.turns, 0][place])
        low, high = reversed(ends) if place % 2 else ends
        return low, self.sizes.length - high

    @property
    def poly_end(self) -> int:
        """How far the poly reaches beyond the core, at both ends."""
        return self.sizes.to_contact + self.sizes.contact_length + self.sizes.head_end

    # ---- what lies where

    def _bars(self) -> list[Bar]:
        spec, pitch = self.spec, self.sizes.pitch
        by_id = {resistor.id: resistor for resistor in spec.resistors}
        count = dict.fromkeys(by_id, 0)
        ends = [*spec.guards, *[("", spec.bulk_net)] * (2 * spec.dummies - len(spec.guards))]
        bars = [Bar(i * pitch, None, name, net, net) for i, (name, net) in enumerate(ends[0::2])]
        for device, place_in_string in self._order():
            resistor, number = by_id[device], count[device]
            count[device] += 1
            string, place = divmod(number, resistor.segments)
            before, after = (node(resistor, string, place + step) for step in (0, 1))
            turned = place if place_in_string is None else place_in_string
            low, high = (after, before) if turned % 2 else (before, after)
            bars.append(Bar(len(bars) * pitch, resistor, f"{device}_{number + 1}", low, high))
        for name, net in ends[1::2]:
            bars.append(Bar(len(bars) * pitch, None, name, net, net))
        return bars

    def _order(self) -> list[tuple[str, int | None]]:
        """Return the resistor of each bar from left to right, and the bar's place in its string if it is in one."""
        strings = {string[0]: string for string in self.spec.strings}
        inner = {name for string in self.spec.strings for name in string[1:]}
        by_id = {resistor.id: resistor for resistor in self.spec.resistors}
        left = {
            name: [device for device in strings.get(name, (name,)) for _ in range(by_id[device].bars)]
            for name in by_id
            if name not in inner
        }
        lengths = {name: len(devices) for name, devices in left.items()}
        found: list[tuple[str, int | None]] = []
        for name in common_centroid(lengths):
            place = lengths[name] - len(left[name])
            found.append((left[name].pop(0), place if name in strings else None))
        return found

    def to_ring(self, net: str) -> bool:
        """Return whether heads on ``net`` extend to the ring."""
        return self.spec.ring and net == self.spec.bulk_net

    def cuts(self, bar: Bar) -> range:
        """Return the left edges of the cuts on the strip of ``bar``."""
        sizes, cut = self.rows, self.tech.cuts[0]
        middle = bar.left + self.sizes.width / 2
        room = self.sizes.pad_width - 2 * cut.enclose_below
        count = max(1, (room + sizes.cut_space) // (sizes.cut + sizes.cut_space))
        used = count * (sizes.cut + sizes.cut_space) - sizes.cut_space
        low = self.tech.snap(middle - used / 2)
        return range(low, low + count * (sizes.cut + sizes.cut_space), sizes.cut + sizes.cut_space)

    def _tracks(self, *, high: bool) -> list[Track]:
        """Return the rails of one side from the bars outward: links first, then the terminals over the whole bank."""
        sizes = self.rows
        nets = [net for r in self.spec.resistors for net in (r.p, r.n)] + [net for _, net in self.spec.guards]
        terminals = set(nets) - self.spec.inner_nets
        spans: dict[str, tuple[int, int]] = {}
        for bar in self.bars:
            net = bar.high if high else bar.low
            if not net or self.to_ring(net):
                continue
            cuts = self.cuts(bar)
            left, right = cuts[0] - sizes.cut_rail_end, cuts[-1] + sizes.cut + sizes.cut_rail_end
            old = spans.get(net, (left, right))
            spans[net] = (min(old[0], left), max(old[1], right))
        tracks: list[Track] = []
        for net, (left, right) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
            if net in terminals:
                continue
            span = self._grown(left, right)
            track = next((track for track in tracks if track.has_room(*span, sizes.rail_space)), None)
            if track is None:
                tracks.append(track := Track())
            track.rails.append((net, *span))
        whole = self._whole()
        in_order = dict.fromkeys(nets)  # as in a bank's mirror image
        tracks += [Track([(net, *whole)]) for net in in_order if net in spans and net in terminals]
        return tracks

    def _whole(self) -> tuple[int, int]:
        lefts = [cut for bar in self.bars for cut in self.cuts(bar)]
        return self._grown(min(lefts) - self.rows.cut_rail_end, max(lefts) + self.rows.cut + self.rows.cut_rail_end)

    def _grown(self, left: int, right: int) -> tuple[int, int]:
        """Return a rail's ends moved apart until it has the minimum area."""
        lack = -(-self.rows.rail_area // self.rows.rail) - (right - left)
        grow = max(0, -(-lack // (2 * self.tech.grid)) * self.tech.grid)
        return left - grow, right + grow

    def rail_low(self, index: int, *, high: bool) -> int:
        """Return the lower edge of the rails of a track."""
        sizes = self.rows
        start = self.sizes.length + self.poly_end if high else -self.poly_end
        offset = max(0, sizes.strip_end - self.sizes.head_end) + index * (sizes.rail + sizes.rail_space)
        return start + offset if high else start - offset - sizes.rail

    @property
    def tap_inset(self) -> int:
        """How far a well reaches beyond the taps that are its heads; 0 where the heads are the body itself."""
        if "tap_enclosure" in self.flavour.dimensions:
            return self.flavour.dimensions["tap_enclosure"]
        if self.flavour.in_p_well and self.tech.deep_well is not None:
            return self.tech.deep_well.dim("body_tap_enclosure")
        return self.tech.dim("well_tap_enclosure", self.tech.device("pmos")) if self.flavour.well else 0

    def head_side(self) -> int:
        """Return how far the body reaches beyond contacts across a head."""
        dims = self.flavour.dimensions
        beyond = max(dims.get("contact_enclosure", 0), self.tech.dim(f"{self.material}_contact_enclosure", self.taps))
        return self.tap_inset + dims.get("tap_side", beyond)

    def head_margin(self) -> int:
        """Return how far a head reaches beyond its bar on each side."""
        lack = self.sizes.head_width - self.sizes.width
        return -(-lack // (2 * self.tech.grid)) * self.tech.grid

    def pad_x(self, bar: Bar) -> tuple[int, int]:
        """Return left and right edge of the wire on the heads of ``bar``."""
        left = self.tech.snap(bar.left + self.sizes.width / 2 - self.sizes.pad_width / 2)
        return left, left + self.sizes.pad_width

    def outline(self) -> Rectangle:
        """Return the box of all bars with their heads."""
        margin = self.head_margin()
        left, right = self.bars[0].left - margin, self.bars[-1].left + self.sizes.width + margin
        return Rectangle(left, -self.poly_end, right, self.sizes.length + self.poly_end)

    def core(self) -> Rectangle:
        """Return the core layer over all bars, of its minimum area."""
        dims, sizes = self.flavour.dimensions, self.sizes
        beyond, width = dims.get("core_enclosure", 0), self.bars[-1].left + sizes.width - self.bars[0].left
        over = dims.get("core_overlap", 0)
        lack = -(-dims.get("core_area", 0) // (sizes.length + 2 * over)) - width
        beyond = max(beyond, -(-lack // (2 * self.tech.grid)) * self.tech.grid)
        return Rectangle(
            self.bars[0].left - beyond, -over, self.bars[-1].left + sizes.width + beyond, sizes.length + over
        )

    def covers(self) -> dict[str, Rectangle]:
        """Return each marker of the flavour over all bars, as wide as it must be."""
        dims, grid = self.flavour.dimensions, self.tech.grid
        found = {}
        for marker in self.flavour.markers:
            beyond = max(dims.get(f"{kind}_enclosure", 0) for kind in ("implant", "block", "marker", marker))
            area = self.outline().enlarged(beyond, beyond)
            least = dims.get(f"{marker}_width", 0)
            dx, dy = (
                max(0, -(-(least - size) // (2 * grid)) * grid)
                for size in (area.right - area.left, area.top - area.bottom)
            )
            found[marker] = area.enlarged(dx, dy)
        return found

    def heads(self) -> list[Rectangle]:
        """Return the area of the layers over the lower and the upper row of heads; none where the flavour has none."""
        if not self.flavour.heads:
            return []
        beyond, outline = self.flavour.dimensions.get("head_enclosure", 0), self.outline().enlarged
        around, over = outline(beyond, beyond), self.flavour.dimensions.get("head_overlap", 0)
        return [around._replace(top=over), around._replace(bottom=self.sizes.length - over)]

    def ring_inside(self) -> Rectangle:
        """Return the inner edge of the ring: clear of poly, markers, strips and rails."""
        tech, rows, dims = self.tech, self.rows, self.flavour.dimensions
        ring = ring_sizes(tech, self.taps, rows)
        outline = self.outline()
        clear = max(dims.get("body_to_active", 0), ring.active_space)
        if self.material == "poly":
            clear = max(clear, ring.poly_space, ring.gate_contact_space, rows.marker + rows.gate_space)
        inner = outline.enlarged(clear, clear)
        space = max(rows.implant_space, ring.implant_to_active if self.spec.in_well else 0)
        covers = [(area, space + ring.implant) for area in (*self.covers().values(), *self.heads())]
        covers.append((self.core(), dims.get("core_to_active", 0)))
        for area, space in covers:
            grown = area.enlarged(space, space)
            inner = _union(inner, grown)
        pads, space = [self.pad_x(bar) for bar in self.bars], max(self.sizes.pad_space, ring.strip_space)
        inner = _union(inner, Rectangle(pads[0][0] - space, inner.bottom, pads[-1][1] + space, inner.top))
        over = max(0, (rows.rail - ring.width + 1) // 2)
        for high in (False, True):
            for index, track in enumerate(self.tracks[high]):
                low = self.rail_low(index, high=high)
                for _, left, right in track.rails:
                    # The rail of the ring lies on its lower side; strips end a little beyond the rails.
                    beyond = max(rows.rail_space + over, rows.cut_strip_end + space)
                    inner = _union(inner, Rectangle(left, low - beyond, right, low + rows.rail + beyond))
        return Rectangle(
            *(tech.grid * (-(-edge // tech.grid) if i > 1 else edge // tech.grid) for i, edge in enumerate(inner))
        )


def _material(tech: Technology, flavour: PassiveSpec) -> str:
    """Return what the contacts of the heads stand on: ``poly`` or ``active``."""
    return "poly" if tech.resolve(flavour.parts["body"]) == tech.role("poly") else "active"


def node(resistor: Resistor, string: int, place: int) -> str:
    """Return the net before bar ``place`` of a string: its ends are the terminals."""
    if place == 0:
        return resistor.p
    if place == resistor.segments:
        return resistor.n
    return f"{resistor.id}#{string + 1}.{place}"


def _union(one: Rectangle, other: Rectangle) -> Rectangle:
    return Rectangle(
        min(one.left, other.left), min(one.bottom, other.bottom), max(one.right, other.right), max(one.top, other.top)
    )
