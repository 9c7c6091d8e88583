"""Name the modules that hold what is in the way of nets that failed, or what joins two nets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.route.routes import Blocker, RoutingResult
    from layoutkit.technology import Technology


def with_modules(
    cell: kdb.Cell, technology: Technology, result: RoutingResult, modules: Mapping[tuple[str, kdb.Trans], str]
) -> RoutingResult:
    """Return a result whose blockers name the module in ``cell``, not yet wired, that holds each of them.

    Args:
        cell: Holds the modules as instances.
        technology: The process.
        result: What the router returned.
        modules: Names of modules by the cell and the place of their instances; an instance that is not listed is named
            by its cell.
    """
    if not result.failed:
        return result
    layers = {conductor.name: conductor.layer for conductor in technology.conductors}
    layers |= {cut.name: cut.layer for cut in technology.cuts}

    def named(blocker: Blocker) -> Blocker:
        return replace(blocker, module=_holder(cell, technology, layers[blocker.layer], blocker, modules))

    nets = tuple(replace(net, blocked_by=tuple(map(named, net.blocked_by))) for net in result.nets)
    return replace(result, nets=nets)


def common_module(cell: kdb.Cell, boxes: Sequence[kdb.Box], modules: Mapping[tuple[str, kdb.Trans], str]) -> str:
    """Return the name of the smallest module in ``cell`` that all ``boxes`` lie in; empty where there is none.

    Args:
        cell: Holds the modules as instances.
        boxes: At least one. [dbu]
        modules: As for ``with_modules``.
    """
    found = [
        (instance.bbox().area(), modules.get((instance.cell.name, instance.trans), instance.cell.name))
        for instance in cell.each_touching_inst(boxes[0])
        if all(box.inside(instance.bbox()) for box in boxes)
    ]
    return min(found, default=(0, ""))[1]


def _holder(
    cell: kdb.Cell,
    technology: Technology,
    layer: str,
    blocker: Blocker,
    modules: Mapping[tuple[str, kdb.Trans], str],
) -> str:
    """Return the name of the module that holds a blocker; empty where none does."""
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
            name = modules.get((instance.cell.name, instance.trans), instance.cell.name)
            found.append((within.area(), name))
    return min(found, default=(0, ""))[1]
