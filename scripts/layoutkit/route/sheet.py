"""Fixed and routed metal in an area, and whose it is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from layoutkit.route.metal import cut_index
from layoutkit.route.occupancy import Occupancy, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from layoutkit.route.metal import NetMetal
    from layoutkit.route.occupancy import FixedMetal
    from layoutkit.route.routes import NetRequest, Rect, Via
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
        self._act(net, metal.shapes(self.stack), metal.vias, amount)

    def exchange(self, net: NetRequest, old: NetMetal, new: NetMetal) -> None:
        """Replace a route of a net by another one; only what differs is processed."""
        if (old.wires, old.vias, old.patches) == (new.wires, new.vias, new.patches):
            return
        shapes = [Counter(metal.shapes(self.stack)) for metal in (old, new)]
        vias = [Counter(metal.vias) for metal in (old, new)]
        for amount, one, other in ((-1, 0, 1), (1, 1, 0)):
            differ = list((shapes[one] - shapes[other]).elements())
            self._act(net, differ, list((vias[one] - vias[other]).elements()), amount)

    def _act(self, net: NetRequest, shapes: Sequence[tuple[int, Rect, bool]], vias: Sequence[Via], amount: int) -> None:
        """Enter or take out metal, as (level, rectangle, whether it is wide), and the cuts of vias."""
        act = self.occupancy.add if amount > 0 else self.occupancy.remove
        for level, rect, wide in shapes:
            act(self.stack.conductors[level].name, Shape(rect, net.name, wide))
        for via in vias:
            cut = cut_index(self.stack, via.cut)
            for rect in self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows):
                act(via.cut, Shape(rect, net.name, wide=False))
