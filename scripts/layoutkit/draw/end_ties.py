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
    """The metal of one row's end dummies: its outermost columns, and what joins the gates to them. [dbu]"""

    columns: tuple[Area, Area]
    bars: tuple[Area, Area]


def ends_in_dummies(row: Row, bulk_net: str) -> bool:
    """Return whether both ends of ``row`` are dummies whose gate and outer side are on the bulk net."""
    first, last = row.fingers[0], row.fingers[-1]
    outer = {first.gate, first.left, last.gate, last.right}
    return len(row.fingers) > 1 and not (first.device or last.device) and outer == {bulk_net}


def tie_shapes(
    rows: Sequence[TiedRow], rails: Sequence[Area], gate_rails: Sequence[Area], metal: Metal
) -> Iterator[tuple[str, Area]]:
    """Yield the posts and what joins them to the bulk ``rails``, as (layer, area).

    Args:
        rows: The rows' end dummies.
        rails: Bulk rails below and above all rows.
        gate_rails: Bulk rails on the second conductor that cross the posts.
        metal: Conductors and cuts.
    """
    first, cut = metal.layer(0), metal.cuts[0]
    ends = [area for row in rows for area in (*row.columns, *row.bars)] + [*gate_rails]
    feet = [_foot(rail, metal) for rail in rails]
    low = min(area.bottom for area in (*ends, *feet))
    high = max(area.top for area in (*ends, *feet))
    for side in (0, 1):
        columns = [row.columns[side] for row in rows]
        width = min(area.right - area.left for area in columns)
        left = max(area.right for area in columns) - width if side else min(area.left for area in columns)
        post = Area(left, low, left + width, high)
        yield first, post
        for row in rows:
            at_row = hull((row.columns[side], row.bars[side]))
            yield first, hull((row.columns[side], post._replace(bottom=at_row.bottom, top=at_row.top)))
        bar = hull(row.bars[side] for row in rows)
        for rail, foot in zip(rails, feet, strict=True):
            span = Area(min(bar.left, post.left), foot.bottom, max(bar.right, post.right), foot.top)
            yield first, span
            for area in metal.cuts_between(0, span, rail):
                yield cut.layer, area
        for rail in gate_rails:
            for area in metal.cuts_between(0, post, rail):
                yield cut.layer, area


def _foot(rail: Area, metal: Metal) -> Area:
    """Return ``rail`` as high as the first conductor below it is."""
    shrink = (rail.top - rail.bottom - metal.wire(0)) // (2 * metal.grid) * metal.grid
    return rail.enlarged(0, -shrink)
