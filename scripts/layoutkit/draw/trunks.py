"""Trunks: straps and bars that join the rails of a module whose currents need more than usual rails.

Straps on the riser level run over all rows, and those of the nets alternate. A bar of each net crosses them on the
level above. Wires start from the bars::

       |#|   |#|   |#|
    ===|#|==[###]==|#|===    bar of net b
    ---|#|--[###]--|#|---    rail of net b
    --[###]--|#|--[###]--    rail of net a
    ==[###]==|#|==[###]==    bar of net a
       |#|   |#|   |#|

Rails then carry current only as far as the next strap. The straps lie in an order that is the same from both sides, so
that a module stays its own mirror image.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.draw.risers import DrawnRail
    from layoutkit.draw.row_metal import Metal
    from layoutkit.rectangle import Rectangle


class Strap(NamedTuple):
    """A vertical wire of a net over all rows. [dbu]"""

    net: str
    area: Rectangle


class Trunks(NamedTuple):
    """The straps and bars of a module; both are empty where it needs none.

    Attributes:
        straps: Wires on the riser level, from the left.
        bars: Net to its wire on the level above.
        lack: By how much the room is too narrow for straps that carry the currents. [dbu]
    """

    straps: tuple[Strap, ...] = ()
    bars: Mapping[str, Rectangle] = {}
    lack: int = 0

    @property
    def nets(self) -> frozenset[str]:
        """The nets that have trunks."""
        return frozenset(self.bars)

    def rows_of_cuts(self, metal: Metal, net: str, rail: Rectangle, current_ma: float) -> int:
        """Return how many rows of cuts a rail of a net needs below the straps, so that these carry its current. [mA]"""
        straps = [strap.area for strap in self.straps if strap.net == net]
        lines = sum(
            len({cut.left for cut in metal.cuts_between(metal.rail, rail, each, crowded=True)}) for each in straps
        )
        return metal.cuts_of_each(metal.rail, current_ma, max(1, lines))

    def shapes(self, metal: Metal, rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Rectangle]]:
        """Yield straps, bars and the cuts that join them to each other and to rails, as (layer, area)."""
        for net, bar in self.bars.items():
            yield metal.layer(metal.riser + 1), bar
            for strap in (each.area for each in self.straps if each.net == net):
                yield metal.layer(metal.riser), strap
                below = [(level, area) for name, level, area in rails if name == net and level == metal.rail]
                for level, area in below:
                    for cut in metal.cuts_between(level, area, strap, crowded=True):
                        yield metal.cuts[level].layer, cut
                for cut in metal.cuts_between(metal.riser, strap, bar, crowded=True):
                    yield metal.cuts[metal.riser].layer, cut


USUAL_ROWS, FEWER_ROWS = 4, 2
"""Rows of cuts. A net needs trunks if its current needs a rail higher than ``USUAL_ROWS`` of them. Beside such a net,
others get trunks if they need a rail higher than ``FEWER_ROWS``."""


def heavy_nets(metal: Metal, currents: Mapping[str, float]) -> list[str]:
    """Return the nets that need trunks, sorted; none without two levels above rails.

    There are some if the current of a net needs a rail higher than ``USUAL_ROWS`` of cuts. Then all nets that need a
    rail higher than ``FEWER_ROWS`` have trunks.

    Args:
        metal: Conductors and cuts.
        currents: Net to its current in the module. [mA]
    """
    if metal.riser + 1 >= len(metal.conductors):
        return []
    needs = {net: metal.conductors[metal.rail].width_um(ma) for net, ma in currents.items()}
    usual, lower = (metal.tech.to_um(metal.wire(metal.rail, rows)) for rows in (USUAL_ROWS, FEWER_ROWS))
    return sorted(net for net in needs if needs[net] > lower) if max(needs.values(), default=0.0) > usual else []


def rail_below_straps(metal: Metal, current_ma: float, width: int, least_rows: int) -> int:
    """Return the height of a rail that carries the current of its row to the straps over it, and has cuts for it. [dbu]

    Args:
        metal: Conductors and cuts.
        current_ma: Current of the row. [mA]
        width: Width of the row. [dbu]
        least_rows: Rows of cuts that the rail has room for at least.
    """
    level, widest = metal.rail, metal.tech.to_dbu(metal.widest(metal.riser))
    pitch = 2 * (widest + metal.space(metal.riser, widest))  # of two straps of the same net
    at_strap = current_ma * min(1.0, pitch / max(1, width))
    rows = metal.cuts_of_each(level, at_strap, len(metal.cuts_in(level, widest)))
    return max(metal.width_for(level, at_strap / 2), metal.wire(level, max(rows, least_rows)))


def plan_trunks(metal: Metal, currents: Mapping[str, float], room: Rectangle, rails: Sequence[DrawnRail]) -> Trunks:
    """Return the trunks of some nets.

    A bar is as high as its current needs, as far as there is room. The straps of a net carry together the current of
    the rails that do not lie below its bar. Straps that need less width fill the room, but none is so wide that other
    metal has to keep more than the usual space. If the straps do not fit, the bars become higher.

    Args:
        metal: Conductors and cuts.
        currents: Net to its current, that of the lowest bar first; each of its rails has the same part of it. [mA]
        room: Where the riser level and the level above are free; it may be too narrow. [dbu]
        rails: The rails of these nets.
    """
    width = room.right - room.left
    for most in (False, True):
        bars = _bars(metal, currents, room, most=most)
        order, widths = _strap_widths(metal, _strap_needs(metal, currents, bars, rails), width)
        if _total(metal, order, widths) <= width:
            break
    lack = max(0, _total(metal, order, widths) - width)
    names, straps = list(currents), []
    at = room.left + (width - _total(metal, order, widths)) // (2 * metal.grid) * metal.grid
    for number in order:
        straps.append(Strap(names[number], room._replace(left=at, right=at + widths[number])))
        at += widths[number] + strap_space(metal)
    return Trunks(tuple(straps), bars, lack)


def strap_space(metal: Metal) -> int:
    """Return the distance of straps. [dbu]"""
    return metal.even(metal.space(metal.riser, metal.tech.to_dbu(metal.widest(metal.riser))))


def _bars(metal: Metal, currents: Mapping[str, float], room: Rectangle, *, most: bool) -> dict[str, Rectangle]:
    """Return the bar of each net, the first one at the bottom, the last one at the top, others between them."""
    heights = _bar_heights(metal, currents, room.top - room.bottom, most=most)
    step = 2 * metal.grid
    gap = (room.top - room.bottom - sum(heights.values())) // (step * max(1, len(heights) - 1)) * step
    bars, bottom, last = {}, room.bottom, list(heights)[-1]
    for net, height in heights.items():
        bottom = room.top - height if net == last and len(heights) > 1 else bottom
        bars[net] = room._replace(bottom=bottom, top=bottom + height)
        bottom += height + gap
    return bars


def _bar_heights(metal: Metal, currents: Mapping[str, float], height: int, *, most: bool) -> dict[str, int]:
    """Return the height of the bar of each net: what its current needs, or, with ``most``, its part of all height.

    Args:
        metal: Conductors and cuts.
        currents: Net to its current. [mA]
        height: Room for all bars. [dbu]
        most: Whether bars fill the room.
    """
    level, step = metal.riser + 1, 2 * metal.grid
    conductor, least = metal.conductors[level], metal.wire(level, 2)
    needs = {net: max(least, conductor.width_um(ma) / metal.tech.dbu_um) for net, ma in currents.items()}
    free = height - (len(needs) - 1) * metal.even(metal.space(level, height))
    part, widest = free / sum(needs.values()), metal.tech.widest_usual(conductor) or free
    if part >= 1 and not most:
        high = {net: ceil(round(need / step, 6)) * step for net, need in needs.items()}
    else:
        high = {net: int(need * part) // step * step for net, need in needs.items()}
    return {net: max(metal.wire(level), min(each, widest // step * step)) for net, each in high.items()}


def _strap_needs(
    metal: Metal, currents: Mapping[str, float], bars: Mapping[str, Rectangle], rails: Sequence[DrawnRail]
) -> list[float]:
    """Return the width of all straps of each net together: for the rails that do not lie below its bar. [dbu]"""
    conductor, found = metal.conductors[metal.riser], []
    for net, current in currents.items():
        own = [area for name, _, area in rails if name == net]
        covered = sum(
            max(0, min(area.top, bars[net].top) - max(area.bottom, bars[net].bottom)) / (area.top - area.bottom)
            for area in own
        )
        beside = 1 - covered / max(1, len(own))
        found.append(conductor.width_um(current) / metal.tech.dbu_um * beside)
    return found


def _strap_widths(metal: Metal, needs: Sequence[float], width: int) -> tuple[list[int], list[int]]:
    """Return the nets of the straps from the left, by their numbers, and the width of the straps of each net. [dbu]"""
    step, least = 2 * metal.grid, metal.wire(metal.riser)
    widest = metal.tech.to_dbu(metal.widest(metal.riser)) // step * step
    inner = [*range(1, len(needs)), *range(len(needs) - 2, 0, -1)]
    least_counts = [need / (widest + step) for need in needs]  # fewer straps would be too wide
    per_unit = [1, *[2] * (len(needs) - 2), 1][: len(needs)]
    units = max(0, int(max(count / each for count, each in zip(least_counts, per_unit, strict=True))) - 2)
    while True:
        units += 1
        order = [0, *[number for _ in range(units) for number in (*inner, 0)]]
        counts = [order.count(number) for number in range(len(needs))]
        totals = [max(need, count * least) for need, count in zip(needs, counts, strict=True)]
        free = width - (len(order) - 1) * strap_space(metal)
        fill = max(1.0, free / sum(totals))
        widths = [
            max(least, int(total * fill / count) // step * step)
            if fill > 1
            else metal.even(ceil(round(total / count, 6)))
            for total, count in zip(totals, counts, strict=True)
        ]
        if max(widths) <= widest:
            return order, widths


def _total(metal: Metal, order: Sequence[int], widths: Sequence[int]) -> int:
    """Return the width of all straps with the spaces between them. [dbu]"""
    return sum(widths[number] for number in order) + (len(order) - 1) * strap_space(metal)
