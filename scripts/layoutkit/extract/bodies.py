"""Which bodies of devices have no width and length: KLayout takes both from the outline, whatever its shape.

A channel or the body of a resistor is a strip of one width, straight or bent: its area is w * l and its outline
2 * (w + l), with l along its middle. Where its width changes, the two numbers that KLayout reports are those of no
rectangle that conducts like it. A plate or a junction is measured by area and perimeter, which is right for any shape
whose two numbers some rectangle has; a rounder shape has more area than any.

    bulge  __|""|__      notch  ""|__|""      branch  __|  |__
           --------             --------              --------
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.technology.device_kinds import SIZE_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLACK = 1  # deviation of an edge that is no other width; of sloped edges, whose corners are off the grid, a few [dbu]
_SLOPED_SLACK = 6


def unmeasured(bodies: kdb.Region, dbu_um: float, *, strips: bool) -> Iterator[tuple[kdb.Polygon, str]]:
    """Yield the bodies of devices that have no width and length, each with the reason.

    Args:
        bodies: Bodies of devices of one type.
        dbu_um: Database unit. [um]
        strips: Whether current flows along them: channels and resistors. Else area and perimeter count.
    """
    for polygon in bodies.merged().each():
        if polygon.is_box():
            continue
        area, half = polygon.area(), polygon.perimeter() / 2
        rest = half * half / 4 - area
        if rest < -SIZE_TOLERANCE * area:
            yield polygon, f"no rectangle has its area of {area * dbu_um**2:g} um2 and its perimeter"
        elif strips:
            width = half / 2 - math.sqrt(max(rest, 0.0))
            least, most = _widths(polygon, width)
            if (least, most) != (width, width):
                yield polygon, f"its width changes between {least * dbu_um:.3f} and {most * dbu_um:.3f} um"
            elif _ends(polygon, width) != 2:
                yield polygon, "it branches"


def _widths(polygon: kdb.Polygon, width: float) -> tuple[float, float]:
    """Return the least and the largest width, each ``width`` where it does not deviate from it. [dbu]"""
    region = kdb.Region(polygon)
    slack = _SLACK if polygon.is_rectilinear() else _SLOPED_SLACK
    narrow = region.width_check(max(1, math.ceil(width) - slack))
    least = min((pair.distance() for pair in narrow.each()), default=width)
    if region.sized(-(math.floor(width / 2) + slack), 2).is_empty():
        return least, width
    low, high = math.floor(width / 2) + slack, max(polygon.bbox().width(), polygon.bbox().height())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if region.sized(-middle, 2).is_empty() else (middle, high)
    return least, 2.0 * high


def _ends(polygon: kdb.Polygon, width: float) -> int:
    """Return how many edges are as long as a strip is wide and lie between two outer corners: a strip has two."""
    edges = list(polygon.each_edge())
    slack = _SLACK if polygon.is_rectilinear() else _SLOPED_SLACK
    outer = [edge.d().vprod_sign(edges[(i + 1) % len(edges)].d()) < 0 for i, edge in enumerate(edges)]
    return sum(abs(edge.length() - width) <= slack and outer[i] and outer[i - 1] for i, edge in enumerate(edges))
