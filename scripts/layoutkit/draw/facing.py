"""Two rows whose gates face each other share their gate rails, or short wires join these.

The nearest rail of one row is the farthest of the other, so the equally long strips of both rows cross all rails.
Strips of different gates at one place lie side by side.

Rails that are not shared are joined by short wires between the rows. These links lie on the third conductor, in pairs
that mirror each other about x = 0. No channel lies below them, and the gates need no risers at the ends of the rows.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.row import is_palindrome
from layoutkit.draw.row_metal import hull
from layoutkit.draw.wires import HeadMove
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.draw.row_metal import Metal
    from layoutkit.draw.wires import Head, WiredRow


LEVEL = 2


def share_gate_rails(lower: WiredRow, upper: WiredRow, metal: Metal, *, way: int) -> bool:
    """Let two rows share their gate rails if their strips find room beside each other; return whether they do.

    ``upper`` is drawn upside down above ``lower``; the rails of each start with its nearest. The strips of ``lower``
    move against ``way`` (1 or -1), those of ``upper`` along it; it also turns the order of the rails.
    """
    if not lower.gate_nets or not upper.gate_nets:
        return False
    bars = lower.bar or upper.bar
    if bars and not (lower.bar and upper.bar and lower.gate_nets == upper.gate_nets):
        return False
    counts = Counter(net for row in (lower, upper) for net, _ in row.gate_strips())
    nets = sorted(counts, key=lambda net: (-counts[net], net))[::way]
    before = [(row.heads, row.gate_nets) for row in (lower, upper)]
    strip = lower.sizes.strip
    distance = -(-(strip + metal.space(0, strip)) // (2 * metal.grid)) * metal.grid
    mirrored = all(is_palindrome(row.plan.row, row.exchanged) for row in (lower, upper))
    farther = range(0, distance, metal.grid) if mirrored and (lower.exchanged or upper.exchanged) else (0,)
    for inner in (None, *farther):
        heads: list[list[Head] | None] = [None, None]
        if inner is not None:
            heads = [
                row.moved_heads(HeadMove(side * distance, mirrored, inner))
                for row, side in ((lower, -way), (upper, way))
            ]
            if bars or None in heads:
                continue
        lower.share_rails(nets, heads[0])
        upper.share_rails(nets[::-1], heads[1])
        if lower.gate_rail == upper.gate_rail and _have_room(lower, upper, metal):
            return True
    for row, (heads_before, nets_before) in zip((lower, upper), before, strict=True):
        row.share_rails(nets_before, heads_before)
    return False


def _have_room(lower: WiredRow, upper: WiredRow, metal: Metal) -> bool:
    """Return whether wires of two rows on the first conductor keep their distance wherever both reach all rails."""
    strips = [*lower.gate_strips(), *upper.gate_strips()]
    cut = metal.cuts[0]

    def near(one: Rectangle, other: Rectangle, between_cuts: int = 0) -> bool:
        gap = max(one.left, other.left) - min(one.right, other.right)
        return gap < max(metal.space(0, max(one.right - one.left, other.right - other.left)), between_cuts)

    for net, one in lower.gate_strips():
        for other_net, other in upper.gate_strips():
            same = net == other_net and (one.left, one.right) == (other.left, other.right)
            if not same and near(one, other, cut.space - 2 * cut.enclose_below if net == other_net else 0):
                return False
    bars = [bar for row in (lower, upper) for _, bar in row.tie_bars()]
    return not any(near(bar, strip) for bar in bars for _, strip in strips)


def shared_distance(lower: WiredRow, upper: WiredRow, least: int, odd_step: int = 0) -> int:
    """Return the distance of two rows that share their rails, at least ``least``; their rails are moved to agree.

    Args:
        lower: One row.
        upper: The row above it.
        least: Least distance of their diffusions. [dbu]
        odd_step: Which row's rails move one grid step more than the other's where only that gives ``least`` exactly: 1
            the lower row's, -1 the upper row's. 0: neither's, so that the distance may be one grid step more.
    """
    grid = lower.sizes.grid

    def beside() -> int:
        ends = [row.gate_rails[0].low - row.plan.height for row in (lower, upper)]
        return sum(ends) + lower.gate_rails[-1].high - lower.gate_rails[0].low

    lower.lift_rails(0)
    upper.lift_rails(0)
    lack = least - beside()
    if lack > 0:
        lift = -(-lack // (2 * grid)) * grid
        less = grid if odd_step and 2 * lift - lack >= grid else 0
        lower.lift_rails(lift - (less if odd_step < 0 else 0))
        upper.lift_rails(lift - (less if odd_step > 0 else 0))
    return beside()


class GateLink(NamedTuple):
    """A wire on level ``LEVEL`` over the rails of one net. [dbu]"""

    net: str
    area: Rectangle
    rails: tuple[Rectangle, Rectangle]


def gate_links(
    lower: Sequence[tuple[str, Rectangle]], upper: Sequence[tuple[str, Rectangle]], half_width: int, metal: Metal
) -> list[GateLink]:
    """Return two links for each net that has a rail in both rows, or none if they find no room.

    Args:
        lower: Nets and gate rails of the lower row.
        upper: Those of the upper row.
        half_width: How far from x = 0 the links may reach. [dbu]
        metal: Conductors and cuts.
    """
    above, cut = dict(upper), metal.cuts[LEVEL - 1]
    pairs = [(net, rail, above[net]) for net, rail in lower if net in above]
    width = metal.even(2 * cut.size + cut.space + 2 * cut.enclose_above_end)
    pitch = metal.even(width + metal.space(LEVEL, width))
    if (2 * len(pairs) - 1) * pitch // 2 + width // 2 > half_width:
        return []
    found = []
    for slot, (net, one, other) in enumerate(pairs):
        span = hull((one, other))
        if (span.top - span.bottom) * width < metal.conductors[LEVEL].area:
            return []
        for side in (-1, 1):
            left = side * (2 * slot + 1) * pitch // 2 - width // 2
            found.append(GateLink(net, Rectangle(left, span.bottom, left + width, span.top), (one, other)))
    return found


def link_shapes(links: Sequence[GateLink], metal: Metal) -> Iterator[tuple[str, Rectangle]]:
    """Yield the links and their cuts, as (layer, area)."""
    for link in links:
        yield metal.layer(LEVEL), link.area
        for rail in link.rails:
            for area in metal.cuts_between(LEVEL - 1, rail, link.area):
                yield metal.cuts[LEVEL - 1].layer, area
