"""``drc.run_check``: check the current layout against the technology's rules, a rule file or a foundry deck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.drc.check import Options, check_cell, select_rules
from layoutkit.drc.rule_files import is_deck, with_rules_of
from layoutkit.errors import GeometryError
from layoutkit.layout.cells import choose_cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.drc.check import DrcReport
    from layoutkit.tools.current_layout import CurrentLayout


class DesignRuleCheck:
    """One check of the current layout; the request is checked before the layout is read.

    Args:
        params: Input of ``drc.run_check``.
        current: The layout to check.

    Raises:
        GeometryError: If the region is empty.
        RuleNotFoundError: If ``rule_ids`` names a rule that the technology or the rule file does not have.
        FileError: If the rule file cannot be read, or a report would replace an input.
    """

    def __init__(self, params: Mapping[str, Any], current: CurrentLayout) -> None:
        region = params.get("region")
        if region is not None and (region[0] >= region[2] or region[1] >= region[3]):
            raise GeometryError(
                f"region must be left < right and bottom < top, got {region}",
                details={"param_name": "region", "provided_value": region},
            )
        self.params = params
        self.current = current
        self.technology = current.technology()
        rules: str | None = params.get("drc_rules_path")
        self.deck = rules if rules is not None and is_deck(rules) else None
        if self.deck is None:
            if rules is not None:
                self.technology = with_rules_of(rules, self.technology)
            select_rules(self.technology, params.get("rule_ids"))
        for target in ("report_path", "image_path"):
            if target in params:
                current.check_target(params[target], *([] if rules is None else [rules]))

    def run(self) -> DrcReport:
        """Read the layout and return the report on its cell."""
        params, region = self.params, self.params.get("region")
        self.layout = layout = self.current.read()  # kept: its cells and shapes end with it
        self.cell = choose_cell(layout, params.get("cell_name"))
        options = Options(
            params.get("rule_ids"),
            params["max_violations"],
            None if region is None else kdb.DBox(*region),
            params["mode"],
            waived_layers=params["waived_layers"],
            chosen_rules="drc_rules_path" in params,
        )
        if self.deck is None:
            return check_cell(layout, self.cell, self.technology, options)
        from layoutkit.drc.foundry_deck import Deck, run_deck

        deck = Deck(Path(self.deck), params.get("deck_variables", {}), params["timeout_s"])
        return run_deck(layout, self.cell, deck, options)

    def write(self, report: DrcReport) -> dict[str, str]:
        """Write the report database and the picture that the request names; return their paths by parameter."""
        sources = self.current.sources()
        written = {name: self.params[name] for name in ("report_path", "image_path") if name in self.params}
        if "report_path" in written:
            report.write_lyrdb(written["report_path"], sources)
        if "image_path" in written:
            self._draw(report, written["image_path"], sources)
        self.current.add_reports(*written.values())
        return written

    def _draw(self, report: DrcReport, path: str, sources: Mapping[str, str]) -> None:
        from layoutkit.view.markers import MAX_MARKERS, Marker
        from layoutkit.view.render import View, render, save

        view = View(region=tuple(self.params["region"]) if "region" in self.params else None)
        markers = [Marker(rule_id, (kdb.DPolygon(box),), box) for rule_id, box in report.boxes(MAX_MARKERS)]
        save(render(self.cell, self.technology, view, markers), path, sources)
