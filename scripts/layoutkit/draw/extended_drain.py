"""Drains that lie beyond field oxide, each a tap in a well of its own (NMOS) or in a hole of the well (PMOS).

The well or hole reaches below the gate, where the channel ends::

    +------- gate --------+
    +-- source, channel --+--+        +---------+
    |          +- well ---|--|- field | - drain |----+
    +---------------------+--+        +---------+    |
               +-------------------------------------+
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.draw.row import PlannedRow
    from layoutkit.draw.sizes import RowSizes
    from layoutkit.technology import DeviceSpec


class ExtendedDrain(NamedTuple):
    """What is drawn of one finger: diffusion of source and channel, drain, and its well or the hole in it. [dbu]"""

    source: Area
    drain: Area
    well: Area


def extended_drains(plan: PlannedRow, device: DeviceSpec, sizes: RowSizes) -> Iterator[ExtendedDrain]:
    """Yield the sources and drains of a row of ``device``; those that two fingers share overlap."""
    over, beyond = device.dimensions["gate_over_field"], device.dimensions["drain_well_enclosure"]
    for stripe in plan.stripes:
        before = max(column.left for column in plan.columns if column.left < stripe.left)
        after = min(column.left for column in plan.columns if column.left > stripe.left)
        left, right = (
            Area(x, stripe.bottom, x + sizes.contact, stripe.top).enlarged(sizes.active_side, 0)
            for x in (before, after)
        )
        if stripe.finger.source_left:
            well = right.enlarged(beyond, beyond)._replace(left=stripe.right - device.beyond_channel)
            yield ExtendedDrain(left._replace(right=stripe.right - over), right, well)
        else:
            well = left.enlarged(beyond, beyond)._replace(right=stripe.left + device.beyond_channel)
            yield ExtendedDrain(right._replace(left=stripe.left + over), left, well)


def bevelled(area: Area, bevel: int) -> tuple[tuple[int, int], ...]:
    """Return the corners of ``area`` without a triangle of ``bevel`` at each. [dbu]"""
    x, y = ((low, low + bevel, high - bevel, high) for low, high in ((area.left, area.right), (area.bottom, area.top)))
    corners = ((0, 1), (0, 2), (1, 3), (2, 3), (3, 2), (3, 1), (2, 0), (1, 0))
    return tuple((x[i], y[j]) for i, j in corners)
