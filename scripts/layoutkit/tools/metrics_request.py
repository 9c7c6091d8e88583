"""The metrics of the current layout.

This is apart from what else is made of a layout, because it alone needs numpy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.layout.cells import choose_cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.view.metrics import LayoutMetrics

SHOWN = 20


def measure(params: Mapping[str, Any], current: CurrentLayout) -> LayoutMetrics:
    """Return the metrics of a cell of the current layout, as ``params`` (of ``eval.compute_metrics``) request.

    Raises:
        LayoutkitError: If the cell is empty, or a pair or an area names something that does not exist.
    """
    from layoutkit.extract.connectivity import labelled_gates
    from layoutkit.extract.current_limits import judge_currents
    from layoutkit.extract.extractor import extract
    from layoutkit.extract.labelled_nets import labelled_loads
    from layoutkit.extract.matched_groups import MatchingReport, MeasuredGroup
    from layoutkit.extract.strap_loss import strap_losses, straps_data
    from layoutkit.view.metrics import compute

    technology = current.technology()
    layout = current.read()
    cell = choose_cell(layout, params.get("cell_name"))
    gates = labelled_gates(cell, technology)
    metrics = compute(
        cell,
        technology,
        gates,
        matched_pairs=[tuple(pair) for pair in params.get("matched_pairs", ())],
        area_targets=params.get("area_targets"),
    )
    stated = {entry["net"]: entry["current"] for entry in params.get("net_currents", ())}
    if stated:
        verdicts = judge_currents(cell, technology, labelled_loads(cell, technology, current.devices(), stated))
        metrics = replace(metrics, currents=tuple(each.to_json() for each in verdicts))
    straps = strap_losses(cell, technology)
    metrics = replace(metrics, straps=tuple(straps_data(straps)))
    groups = [MeasuredGroup(tuple(names)) for names in params.get("matched_groups", ())]
    if "matched_groups" not in params:
        wanted = current.matched_groups()
        groups = [MeasuredGroup(names) for names in wanted if set(names) <= gates.keys()]
        missing = {names: [name for name in names if name not in gates] for names in wanted}
        notes = [
            f"matched group {' '.join(names)} is not measured: the cell has no labelled gate of {', '.join(absent)}"
            for names, absent in missing.items()
            if absent
        ]
        if not wanted:
            notes.append("no matched groups are known of this layout, so none is measured; give matched_groups")
        metrics = replace(metrics, notes=tuple(notes[:SHOWN]))
    if not groups:
        return metrics
    report = MatchingReport(extract(layout, cell, technology), cell, straps)
    return replace(metrics, groups=tuple(report.measure(groups)))
