"""Tie the dummies at the ends of rows that have no taps of their own: a post at each end, and a bulk rail.

      |=|--[o]--[o]-      gate heads of the upper row's dummies
      |P|                 P: post on the first conductor, over the outermost columns of all rows
      |=|--[o]--[o]-      gate heads of the lower row's dummies
      |=|  |x|
      |=|  |x|            columns of the dummies
    ==[#][#]============  bulk rail on the second conductor, below the rows; the pin of the bulk net

Where a row has a rail on the bulk net, its outermost columns or the posts reach that one, and no other is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.row_metal import hull
from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.draw.row import Row
    from layoutkit.draw.row_metal import Metal


class TiedRow(NamedTuple):
    """The metal of one row's end dummies: its outermost columns, and what joins the gates to them. [dbu]

    The pads are as wide as those columns below rails. The gate rails are those on the bulk net, for dummies inside the
    row.
    """

    columns: tuple[Area, Area]
    pads: tuple[Area, Area]
    bars: tuple[Area, Area]
    gate_rails: tuple[Area, ...]


def ends_in_dummies(row: Row, bulk_net: str) -> bool:
    """Return whether both ends of ``row`` are dummies whose gate and outer side are on the bulk net."""
    first, last = row.fingers[0], row.fingers[-1]
    outer = {first.gate, first.left, last.gate, last.right}
    return len(row.fingers) > 1 and not (first.device or last.device) and outer == {bulk_net}


def tie_shapes(rows: Sequence[TiedRow], rails: Sequence[Area], metal: Metal) -> Iterator[tuple[str, Area]]:
    """Yield the posts and what joins them to the bulk ``rails`` below or above all rows, as (layer, area)."""
    ends = [area for row in rows for area in (*row.columns, *row.bars, *row.gate_rails)]
    feet = [_foot(rail, metal) for rail in rails]
    low = min(area.bottom for area in (*ends, *feet))
    high = max(area.top for area in (*ends, *feet))
    for side in (0, 1):
        columns = [row.columns[side] for row in rows]
        width = min(area.right - area.left for area in columns)
        left = max(area.right for area in columns) - width if side else min(area.left for area in columns)
        post = Area(left, low, left + width, high)
        yield metal.layer(0), post
        for row in rows:
            column, bar, pad = row.columns[side], row.bars[side], row.pads[side]
            gap = max(pad.left - post.right, post.left - pad.right)
            # Metal as high as the column between it and the post would be wide, and keep more distance.
            joining = bar if gap >= metal.space(0, pad.right - pad.left) else hull((column, bar))
            yield metal.layer(0), hull((bar, post._replace(bottom=bar.bottom, top=bar.top)))
            if joining != bar:
                yield metal.layer(0), hull((column, post._replace(bottom=joining.bottom, top=joining.top)))
            for rail in row.gate_rails:
                end = metal.cuts[0].enclose_below_end
                foot = _beside_post(_foot(rail, metal).enlarged(0, end), post, row.bars[side])
                yield metal.layer(0), hull((row.bars[side], foot))
                yield from _cuts(foot, rail, metal)
        for rail, foot in zip(rails, feet, strict=True):
            wide = _beside_post(foot, post, hull(row.bars[side] for row in rows))
            yield metal.layer(0), wide
            yield from _cuts(wide, rail, metal)


def _beside_post(foot: Area, post: Area, bar: Area) -> Area:
    return foot._replace(left=min(bar.left, post.left), right=max(bar.right, post.right))


def _cuts(foot: Area, rail: Area, metal: Metal) -> Iterator[tuple[str, Area]]:
    return ((metal.cuts[0].layer, area) for area in metal.cuts_between(0, foot, rail, crowded=True))


def _foot(rail: Area, metal: Metal) -> Area:
    """Return ``rail`` as high as the first conductor below it is."""
    shrink = (rail.top - rail.bottom - metal.wire(0)) // (2 * metal.grid) * metal.grid
    return rail.enlarged(0, -shrink)
