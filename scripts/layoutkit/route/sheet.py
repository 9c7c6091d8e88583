"""Fixed and routed metal in an area, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.route.occupancy import Occupancy, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from layoutkit.route.metal import NetMetal
    from layoutkit.route.occupancy import FixedMetal
    from layoutkit.route.routes import NetRequest, Rect
    from layoutkit.route.routing_stack import Stack


class Sheet:
    """The metal and keepouts of a routed cell, found by place.

    Args:
        stack: The rules.
        names: Nets whose fixed metal is listed in ``own``.
        area: Nothing is drawn outside it. [dbu]
    """

    def __init__(self, stack: Stack, names: Iterable[str], area: Rect) -> None:
        self.stack, self.area, self.pitch = stack, area, stack.pitch()
        self.occupancy = Occupancy()
        self.own: dict[str, list[tuple[int, Rect]]] = {name: [] for name in names}

    def add_fixed(self, piece: FixedMetal) -> None:
        """Enter metal, a cut or a keepout that stays."""
        layer, rect, net, wide, keepout = piece
        if layer in [cut.name for cut in self.stack.cuts]:
            self.occupancy.add(layer, Shape(rect, net, wide=False, keepout=keepout))
            return
        level = self.stack.index(layer)
        self.occupancy.add(self.stack.conductors[level].name, Shape(rect, net, wide, keepout))
        if net in self.own:
            self.own[net].append((level, rect))

    def change(self, net: NetRequest, metal: NetMetal, amount: int) -> None:
        """Enter (``amount`` 1) or take out (-1) the route of a net."""
        act = self.occupancy.add if amount > 0 else self.occupancy.remove
        for level, rect, wide in metal.shapes(self.stack):
            act(self.stack.conductors[level].name, Shape(rect, net.name, wide))
        for cut, rect in metal.cuts(self.stack):
            act(self.stack.cuts[cut].name, Shape(rect, net.name, wide=False))
