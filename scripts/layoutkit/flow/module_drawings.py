"""The modules of a design, drawn once for all placements that are tried."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.flow.modules import draw_groups

if TYPE_CHECKING:
    from layoutkit.draw.module import Module
    from layoutkit.flow.design import Design
    from layoutkit.flow.modules import Drawn


class ModuleDrawings:
    """Draws the groups of ``design`` when they are first asked for."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self._drawn: tuple[kdb.Layout, list[Drawn]] | None = None

    def copy(self) -> tuple[kdb.Layout, list[Drawn]]:
        """Return a new layout with the modules in all their shapes.

        Raises:
            LayoutkitError: If a module cannot be drawn.
        """
        if self._drawn is None:
            layout = kdb.Layout()
            layout.dbu = self.design.technology.dbu_um
            self._drawn = layout, draw_groups(layout, self.design)
        layout, drawn = self._drawn[0].dup(), self._drawn[1]

        def moved(module: Module) -> Module:
            return replace(module, cell=layout.cell(module.cell.name), layout=layout)

        return layout, [
            replace(each, module=moved(each.module), others=tuple(map(moved, each.others))) for each in drawn
        ]
