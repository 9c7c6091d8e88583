"""How far apart gates must be so that the straps between them carry their currents.

The current of a column enters its strap at the contacts and leaves it where the rail crosses, so that the strap carries
most at one edge of the rail: what enters above it, or what enters below::

    |#|  contacts above the rail
    [#]==== rail
    |#|  contacts below it
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutkit.draw.row import Column
    from layoutkit.draw.wires import WiredRow


def wider_spread(row: WiredRow) -> int:
    """Return by how much the gates of a row must move apart so that straps carry their currents. [dbu]

    It is 0 if the straps are wide enough, or if no strap may be drawn as wide as they would have to be.
    """
    metal, level = row.metal, row.metal.strap
    carried = [_most_at_rail(row, column) for i, column in enumerate(row.plan.columns) if i not in row.tied_columns]
    width = metal.width_for(level, max(carried, default=0.0))
    contact = row.sizes.contact
    width = contact + metal.even(width - contact)
    if width <= row.strap_width:
        return 0
    columns = sorted(row.plan.columns, key=lambda column: column.left)
    pitch = min((b.left - a.left for a, b in pairwise(columns)), default=0)
    return max(0, width + metal.space(level, width) - pitch)


def _most_at_rail(row: WiredRow, column: Column) -> float:
    """Return the largest current that a strap carries at an edge of its rail. [mA]"""
    stripes, fingers, contacts = row.plan.stripes, row.loads.fingers, row.column_contacts(column)
    current = sum(fingers.get(stripes[i].finger.device, 0.0) for i in column.fingers)
    parts = [0]
    for rail in (each for each in row.rails if each.net == column.net):
        parts.append(sum(low + row.sizes.contact > rail.high for low in contacts))
        parts.append(sum(low < rail.low for low in contacts))
    return current * max(parts) / max(1, len(contacts))
