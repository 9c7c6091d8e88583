"""Fill gaps of a layer that are narrower than its space allows."""

from __future__ import annotations

import klayout.db as kdb


def joined(region: kdb.Region, space: int, width: int, grid: int) -> kdb.Region:
    """Return ``region`` with gaps and holes narrower than ``space`` filled; corners that nearly meet are bridged.

    A check cuts its edges where the distance ends, anywhere between grid points, so bridges grow to the grid.
    """
    half = -(-space // 2)
    for _ in range(len(list(region.each())) + 1):
        region = region.sized(half, 2).sized(-half, 2) + region
        region.merge()
        faults = region.space_check(space, False, kdb.Metrics.Euclidian)
        faults += region.width_check(width, False, kdb.Metrics.Euclidian)
        if faults.is_empty():
            break
        for pair in faults.each():
            region.insert(on_grid(pair.bbox().enlarged(width // 2, width // 2), grid))
        region.merge()
    return region


def on_grid(box: kdb.Box, grid: int) -> kdb.Box:
    """Return the smallest box on the grid that holds ``box``."""
    low = (edge // grid * grid for edge in (box.left, box.bottom))
    high = (-(-edge // grid) * grid for edge in (box.right, box.top))
    return kdb.Box(*low, *high)
