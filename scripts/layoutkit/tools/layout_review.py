"""``review.check_layout``: what a layout engineer would say of the current layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraint_faults import check_constraints
from layoutkit.errors import LayoutkitError, NetlistError
from layoutkit.extract.extractor import extract
from layoutkit.flow.design import LayoutRequest, read_constraints, with_outline
from layoutkit.flow.stage_record import RECORD, STAGES, read_record
from layoutkit.layout.cells import choose_cell, to_unit
from layoutkit.lvs.compare import compare
from layoutkit.lvs.reference import reference_of, with_defaults
from layoutkit.review.design_review import review_layout
from layoutkit.review.finding import Unjudged
from layoutkit.review.review_limits import limits_with
from layoutkit.tools.netlist_comparison import NetlistComparison

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit import Circuit
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.review.finding import Review
    from layoutkit.tools.current_layout import CurrentLayout

_USED_CONSTRAINTS = "used_constraints.json"
_READING = {"tolerance": None, "black_boxes": ()}
REPORT = "review.lyrdb"


@dataclass(frozen=True)
class LayoutReview:
    """One review; the request is checked before the layout is read.

    Attributes:
        params: Input of ``review.check_layout``.
        current: The layout to review.
        comparison: The netlist.
        circuit: The same in devices of the technology.
    """

    params: Mapping[str, Any]
    current: CurrentLayout
    comparison: NetlistComparison
    circuit: Circuit

    @classmethod
    def read(cls, params: Mapping[str, Any], current: CurrentLayout) -> LayoutReview:
        """Return the request. A netlist with models or sizes that only a mapping understands is mapped as for a build.

        Raises:
            LayoutkitError: If the netlist, the constraints or the limits cannot be used, or no report can be written.
        """
        comparison = NetlistComparison({**_READING, **params}, current)
        try:
            reference_of(comparison.circuit, comparison.technology)
        except NetlistError:
            comparison = NetlistComparison({**_READING, **params, "map_devices": True}, current)
        circuit = with_defaults(comparison.circuit, comparison.technology)
        request = cls(params, current, comparison, circuit)
        if "report_path" in params:
            current.check_target(params["report_path"])
        limits_with(params.get("limits"))
        request._constraints()
        return request

    def run(self) -> Review:
        """Read the layout and return its review.

        Raises:
            LayoutkitError: If the layout is not the netlist's circuit.
        """
        layout = self.current.read()
        cell = choose_cell(layout, self.params.get("cell_name"))
        technology = self.comparison.technology.made_for(device.model for device in self.comparison.circuit.devices)
        to_unit(layout, technology.dbu_um)
        extraction = extract(layout, cell, technology, waived_layers=self.params["waived_layers"])
        constraints, unfit = self._constraints()
        result = compare(extraction, self.circuit)
        review = review_layout(result, self.circuit, constraints, self.params.get("limits"))
        return replace(review, unjudged=(*review.unjudged, *unfit))

    def write(self, review: Review) -> dict[str, str]:
        """Write the findings for KLayout's marker browser; return all files by what they are."""
        files = {"layout": str(self.current.path), "netlist": str(self.comparison.netlist)}
        path = self.params.get("report_path")
        if path is None and self._of_workspace:
            path = str(self.current.path.parent / REPORT)
        if path is not None:
            review.write_lyrdb(path, self.current.sources(circuit=not self.comparison.given))
            files["report"] = path
            self.current.add_reports(path)
        return files

    def _constraints(self) -> tuple[Constraints | None, tuple[Unjudged, ...]]:
        """Return the constraints: those given, else those that the workspace's layout was made with; None for none.

        Those of the workspace are left out, and unjudged, where the netlist is another one than it was made from.
        """
        given, used = self.params.get("constraints"), self.current.path.parent / _USED_CONSTRAINTS
        if given is not None:
            constraints = read_constraints(given)
            check_constraints(constraints, self.circuit)
            return constraints, ()
        if not (self._of_workspace and used.is_file()):
            return None, ()
        constraints = read_constraints(str(used))
        try:
            check_constraints(constraints, self.circuit)
        except LayoutkitError as fault:
            return None, (Unjudged("all", f"what the layout was asked for was left out: {fault}"),)
        workspace = self.current.workspace
        if workspace is None or not workspace.path(RECORD).is_file():
            return constraints, ()
        asked = read_record(workspace, STAGES[-1]).options
        return with_outline(constraints, LayoutRequest(outline=asked.get("outline"), aspect=asked.get("aspect"))), ()

    @property
    def _of_workspace(self) -> bool:
        return self.current.workspace is not None and "layout_path" not in self.params
