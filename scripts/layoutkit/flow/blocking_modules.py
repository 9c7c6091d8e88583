"""Name the modules that hold what is in the way of nets that failed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.route.routes import Blocker, RoutingResult
    from layoutkit.technology import Technology


def with_modules(cell: kdb.Cell, technology: Technology, result: RoutingResult) -> RoutingResult:
    """Return a result whose blockers name the instance in ``cell``, not yet wired, that holds each of them."""
    if not result.failed:
        return result
    layers = {conductor.name: conductor.layer for conductor in technology.conductors}
    layers |= {cut.name: cut.layer for cut in technology.cuts}

    def named(blocker: Blocker) -> Blocker:
        return replace(blocker, module=_holder(cell, technology, layers[blocker.layer], blocker))

    nets = tuple(replace(net, blocked_by=tuple(map(named, net.blocked_by))) for net in result.nets)
    return replace(result, nets=nets)


def _holder(cell: kdb.Cell, technology: Technology, layer: str, blocker: Blocker) -> str:
    """Return the name of the instance that holds a blocker; empty where none does."""
    import klayout.db as kdb

    if blocker.kind not in {"metal", "keepout"}:
        return ""
    box, layout = kdb.Box(*blocker.rect), cell.layout()
    index = technology.layer(layout, layer)
    found = []
    for instance in cell.each_touching_inst(box):
        within = instance.bbox()
        if blocker.kind == "keepout":
            held = box.inside(within)
        else:
            own = instance.trans.inverted() * box
            held = (kdb.Region(own) - kdb.Region(instance.cell.begin_shapes_rec_touching(index, own))).is_empty()
        if held:
            found.append((within.area(), instance.cell.name))
    return min(found, default=(0, ""))[1]
