"""Modules that are drawn again: at their old place, with the parameters of the first drawing unless others are given.

``drawings.json`` of the workspace holds the parameters of every module that a drawing tool drew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.flow.contents import Contents
from layoutkit.flow.editing import Attached, Edited, attached, ends_lost, follow_labels
from layoutkit.layout.history import DRAWINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.layout.workspace import Workspace
    from layoutkit.technology import Technology

MAX_LISTED = 6
NOT_KEPT = ("workspace", "technology", "position", "orientation", "drawn_by")


@dataclass(frozen=True)
class Redrawn:
    """A module of the layout that is about to be drawn again.

    Attributes:
        name: Its cell.
        parent: The cell that holds it.
        tech: The process.
        bbox: Its bounding box before, in its own coordinates. [dbu]
        trans: Its place before.
        attached: What hangs on it.
    """

    name: str
    parent: kdb.Cell
    tech: Technology
    bbox: kdb.Box
    trans: kdb.Trans
    attached: Attached

    @classmethod
    def of(cls, layout: kdb.Layout, tech: Technology, workspace: Workspace, name: str) -> Redrawn | None:
        """Return the module that the cell ``name`` draws; None where the layout places no such cell."""
        cell = layout.cell(name)
        use = None if cell is None else next(iter(cell.each_parent_inst()), None)
        if use is None:
            return None
        parent = layout.cell(use.parent_cell_index())
        contents = Contents.of(parent, tech, workspace)
        module = contents.module(name)
        return cls(name, parent, tech, cell.bbox(), module.instance.trans, attached(contents, module))

    def finished(self, module: Module) -> Edited:
        """Move labels to the new pins, and return which wires lost their end."""
        contents = Contents(self.parent, self.tech)
        held = contents.module(self.name)
        edited = ends_lost(self.attached, contents, held)
        pins = [(pin.net, pin.layer, pin.box.transformed(held.instance.trans)) for pin in module.pins]
        edited.labels = follow_labels(contents, held, self.attached, pins)
        return edited


def lost_ends_texts(ends: Sequence[tuple[str, str, kdb.Point]], tech: Technology) -> list[str]:
    """Return one sentence on wires that lost their end, with the places; none without such wires."""
    if not ends:
        return []
    um, more = tech.to_um, len(ends) - MAX_LISTED
    listed = [f"{net or 'an unnamed net'} on {layer} at ({um(p.x):g}, {um(p.y):g}) um" for net, layer, p in ends]
    text = f"wires end on nothing now: {'; '.join(listed[:MAX_LISTED])}{f' and {more} more' if more > 0 else ''}"
    return [f"{text}; delete them with layout.unroute_net and route the nets again"]


def record_drawing(workspace: Workspace, name: str, params: Mapping[str, Any], devices: Sequence[str]) -> None:
    """Record how a module was drawn; the caller holds the lock."""
    drawings = drawings_of(workspace)
    kept = {key: value for key, value in params.items() if key not in NOT_KEPT}
    drawings[name] = {"drawn_by": params["drawn_by"], "devices": list(devices), "params": kept}
    workspace.write_json(DRAWINGS, drawings)


def drawings_of(workspace: Workspace) -> dict[str, Any]:
    """Return how each module was drawn, by the name of its cell; none where that is not recorded."""
    if not workspace.path(DRAWINGS).is_file():
        return {}
    found = workspace.read_json(DRAWINGS)
    return found if isinstance(found, dict) else {}
