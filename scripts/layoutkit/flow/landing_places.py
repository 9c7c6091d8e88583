"""Where wires with a stated current end on the metal of modules: on pieces of metal that carry the current."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.route.net_flows import Draw

if TYPE_CHECKING:
    from layoutkit.route.routes import NetRequest, Terminal
    from layoutkit.technology import Technology


class NetPiece(NamedTuple):
    """Connected metal of a net.

    Attributes:
        draw: Largest current that its terminals draw together. [mA]
        height: Height of its highest rail, on which vias may land. [dbu]
    """

    draw: float
    height: int


def heavy_pieces(net: NetRequest, usual: float) -> list[NetPiece]:
    """Return the pieces of metal that draw more than ``usual``, the current that wires of usual width carry. [mA]"""
    groups: dict[Any, list[Terminal]] = {}
    for number, terminal in enumerate(net.terminals):
        if terminal.draw and terminal.draw.most > 0:
            groups.setdefault(terminal.group or number, []).append(terminal)
    pieces = (
        NetPiece(sum((each.draw or Draw() for each in its), Draw()).most, max(each.box.height() for each in its))
        for its in groups.values()
    )
    return [piece for piece in pieces if piece.draw > usual]


def landed(technology: Technology, net: NetRequest) -> NetRequest:
    """Return a net in which the rails of a module are separate pieces if one rail does not carry the current of all.

    A rail that does not even carry the current of its own row is divided along its length, so that wires lead to
    several places on it. So are rails of neighbours that touch, if they draw together more than one rail carries. Wires
    do not end on the metal of a ring that does not carry the current of the devices inside.
    """
    groups: dict[str, list[Terminal]] = {}
    for terminal in net.terminals:
        groups.setdefault(terminal.group, []).append(terminal)
    found: dict[Terminal, list[Terminal]] = {}
    for name, its in groups.items():
        draw = sum((each.draw or Draw() for each in its), Draw())
        rails = [each for each in its if each.draw is not None and each.draw.most > 0]
        least = min((_carried(technology, each) for each in rails), default=float("inf"))
        if not name or draw.port:
            continue
        found.update(
            {each: [] for each in its if rails and each not in rails and _carried(technology, each) < draw.most}
        )
        if least >= draw.most:
            continue
        rows = sorted({(each.layer, each.box.bottom, each.box.top) for each in rails})
        for each in (each for each in its if each not in found):
            row = each.layer, each.box.bottom, each.box.top
            group = f"{name} rail {rows.index(row) if row in rows else 0}"
            own = replace(each, group=group)
            beside = [one for one in rails if one.layer == each.layer and one is not each and one.box.touches(each.box)]
            most = sum((one.draw or Draw() for one in (each, *beside)), Draw()).most
            apart = bool(beside) and most > _carried(technology, each)
            found[each] = _divided(technology, own, f" {its.index(each)}" if apart else "") if each in rails else [own]
    return replace(net, terminals=tuple(part for each in net.terminals for part in found.get(each, [each])))


def _carried(technology: Technology, rail: Terminal) -> float:
    """Return what a rail carries along its length; infinity without a limit. [mA]"""
    carried = technology.conductor(rail.layer).current_ma(technology.to_um(min(rail.box.width(), rail.box.height())))
    return float("inf") if carried is None else carried


def _divided(technology: Technology, rail: Terminal, own: str = "") -> list[Terminal]:
    """Return a rail in as many parts along its length as its current needs, apart and no shorter than it is high.

    Args:
        technology: The process.
        rail: The rail.
        own: Suffix for its group if the rail is also separate from rails that it touches; else empty.
    """
    needed = ceil((rail.draw or Draw()).most / _carried(technology, rail) - 1e-9)
    count = min(needed, rail.box.width() // max(rail.box.height(), 4 * technology.grid))
    if (count < 2 and not own) or rail.draw is None:
        return [rail]
    count, step, parts = max(count, 1), rail.box.width() // max(count, 1), []
    for number in range(count):
        left = technology.snap_up(rail.box.left + number * step)
        box = kdb.Box(left, rail.box.bottom, technology.snap(left + step) - 2 * technology.grid, rail.box.top)
        group = f"{rail.group}{own}" if number == 0 else f"{rail.group}{own} part {number}"
        parts.append(replace(rail, box=box, group=group, draw=rail.draw.part(1 / count), divided=True))
    return parts
