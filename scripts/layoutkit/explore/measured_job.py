"""The job of a search or a suite: a layout is built, judged and measured where it is made.

Only the figures go back as the answer; the files of the workspace follow beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.explore import layout_job
from layoutkit.explore.objectives import CAPACITANCE, FIGURES
from layoutkit.explore.scoreboard import row
from layoutkit.flow.summary import faults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FUNCTION = f"{__name__}:build_and_measure"


def prepare(params: Mapping[str, Any]) -> None:
    """Import what a build needs, and read the technology."""
    layout_job.prepare(params["build"])


def build_and_measure(params: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the verdict and the figures of a layout.

    Args:
        params: ``build``: those of ``flow.build_layout``; ``nets``: those whose capacitance is wanted; ``board``:
            whether the figures of the scoreboard are wanted.
        folder: The workspace.

    Returns:
        ``faults``: sentences, none if the layout is clean; ``layout_sha256``; ``figures`` by objective, None where a
        layout has none; ``notes``; ``row`` if it is wanted.

    Raises:
        LayoutkitError: If the netlist cannot be laid out.
    """
    report = layout_job.build(params["build"], folder)
    found = faults(report)
    figures = {name: read(report) for name, (_, _, read) in FIGURES.items()}
    notes: list[str] = []
    if params.get("nets") and not found:
        capacitances, notes = _capacitances(folder, params["nets"])
        figures |= capacitances
    answer = {
        "faults": found,
        "layout_sha256": report["layout_sha256"],
        "devices": report["circuit"]["device_count"],
        "figures": figures,
        "notes": notes,
    }
    return {**answer, "row": row(folder)} if params.get("board") else answer


def _capacitances(folder: Path, nets: Sequence[str]) -> tuple[dict[str, float | None], list[str]]:
    """Return the capacitance of nets by objective, and why one is not known. [fF]"""
    from layoutkit.circuit import read_netlist
    from layoutkit.layout.workspace import Workspace
    from layoutkit.parasitics.parasitic_extraction import extract_parasitics

    workspace = Workspace(str(folder))
    circuit = read_netlist(str(workspace.circuit_path), identify_modules=False)
    found = extract_parasitics(workspace.read_layout(), circuit, workspace.technology(None))
    known = {each.net: each.total_fF for each in found.nets}
    figures = {f"{CAPACITANCE} {net}": round(known[net], 4) if net in known else None for net in nets}
    missing = [f"the layout has no net {net}, whose capacitance is wanted" for net in nets if net not in known]
    return figures, [*missing, *found.unchecked]
