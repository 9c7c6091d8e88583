"""The tools that check the current layout.

``lvs.run_check``: compare the current layout with the netlist it was made from.

``review.check_layout``: what a layout engineer would say of the current layout.

``drc.run_check``: check the current layout against the technology's rules, a rule file or a foundry deck.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit import (
    Circuit,
    MapOptions,
    ModelNames,
    given_netlist,
    join_taps,
    map_circuit,
    read_netlist,
    read_widths,
)
from layoutkit.circuit.circuit import SubcircuitInstance
from layoutkit.circuit.constraint_faults import check_constraints
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.drc.check import DrcReport, Options, check, select_rules
from layoutkit.drc.foundry_deck import FoundryDeck, run_deck
from layoutkit.drc.rule_files import is_deck, with_rules_of
from layoutkit.errors import GeometryError, LayoutkitError, NetlistError
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import SUBCIRCUITS
from layoutkit.flow.design import LayoutRequest, read_constraints, with_outline
from layoutkit.flow.stage_record import RECORD, STAGES, read_record
from layoutkit.layout.cells import choose_cell, to_unit
from layoutkit.layout.workspace import Workspace
from layoutkit.lvs.compare import compare
from layoutkit.lvs.lvs_result import write_extracted, write_report
from layoutkit.lvs.reference import reference_of, with_defaults
from layoutkit.lvs.shorts import with_shorts_located
from layoutkit.review.design_review import review_layout
from layoutkit.review.finding import Review, Unjudged, limits_with
from layoutkit.view.drawing_data import MAX_MARKERS, Marker, read_markers
from layoutkit.view.render import ViewOptions, render, save

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.constraints import Constraints
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.tools.current_layout import CurrentLayout


class NetlistComparison:
    """One comparison of the current layout with a netlist; the request is checked before the layout is read.

    Args:
        params: Input of ``lvs.run_check``.
        current: The layout to compare.

    Raises:
        LayoutkitError: If the netlist cannot be read or mapped to the technology.
        FileError: If a report would replace an input.
    """

    def __init__(self, params: Mapping[str, Any], current: CurrentLayout) -> None:
        self.params = params
        self.current = current
        self.technology = current.technology()
        self.given = "netlist_path" in params or "netlist_text" in params
        self.netlist: str | Path | NetlistText = (
            given_netlist(params) if self.given else Workspace(params.get("workspace")).circuit_path
        )
        inputs = () if isinstance(self.netlist, NetlistText) else (self.netlist,)
        for name in ("report_path", "extracted_path"):
            if name in params:
                current.check_target(params[name], *inputs)
        self.circuit = self._circuit()

    def _circuit(self) -> Circuit:
        params = self.params
        circuit = read_netlist(
            self.netlist,
            top=params.get("top") or None,
            identify_modules=False,
            black_boxes=params.get("black_boxes", ()),
            parameters=params.get("parameters"),
            names=ModelNames(self.technology, params.get("device_map")),
            keep_parasitics=params.get("keep_parasitics", False),
        )
        if not params["map_devices"]:
            return join_taps(read_widths(circuit, params["width_per"]), self.technology)
        options = MapOptions(width_per=params["width_per"])
        return map_circuit(circuit, self.technology, options)

    def run(self) -> LvsResult:
        """Read the layout, extract its circuit and return the comparison."""
        layout = self.current.read()
        return with_shorts_located(layout, self._compared(layout), self._compared)

    def _compared(self, layout: kdb.Layout) -> LvsResult:
        cell = choose_cell(layout, self.params.get("cell_name"))
        made = self.technology.made_for(device.model for device in self.circuit.devices)
        extraction = extract(layout, cell, made, waived_layers=self.params["waived_layers"])
        return compare(extraction, self.circuit, tolerance=self.params["tolerance"])

    def hints(self, result: LvsResult) -> list[str]:
        """Return what to try where sizes differ of devices that the netlist names and the process lacks."""
        drawn = self.technology.device_names.drawn
        foreign = any(drawn(device.model) is None for device in self.circuit.devices)
        if result.matched or self.params["map_devices"] or not foreign:
            return []
        text = "the netlist names devices that the process lacks; map_devices (--map-devices) compares the sizes that a"
        return [f"{text} build draws for them"]

    def write(self, result: LvsResult) -> dict[str, str]:
        """Write the database and the extracted netlist that the request names; return all files by what they are."""
        files = {"layout": str(self.current.path), "netlist": str(self.netlist)}
        reports = []
        if "report_path" in self.params:
            files["report"] = self.params["report_path"]
            write_report(result, files["report"], self.current.sources(circuit=not self.given))
            reports.append(files["report"])
        if "extracted_path" in self.params:
            files["extracted"] = self.params["extracted_path"]
            write_extracted(result.extraction, files["extracted"], self.current.sources())
            reports.append(files["extracted"])
        self.current.add_reports(*reports)
        return files


READING = {"tolerance": None, "black_boxes": ()}
REPORTS = {"drc": "drc.lyrdb", "review": "review.lyrdb"}
DEFAULTS = {"map_devices": False, "width_per": "auto", "waived_layers": ()}


def _with_instances(circuit: Circuit, workspace: Workspace) -> Circuit:
    """Return the circuit of a build with the instances of its subcircuits, which its flat netlist does not tell."""
    read = workspace.read_json(SUBCIRCUITS) if workspace.path(SUBCIRCUITS).exists() else []
    found, known = tuple(SubcircuitInstance(**each) for each in read), {device.id for device in circuit.devices}
    return replace(circuit, subcircuits=found) if all(known.issuperset(each.devices) for each in found) else circuit


class LayoutReview:
    """One review; the request is checked before the layout is read.

    A netlist with models or sizes that only a mapping understands is mapped as for a build.

    Args:
        params: Input of ``review.check_layout``.
        current: The layout to review.

    Raises:
        LayoutkitError: If the netlist, the constraints or the limits cannot be used, or no report can be written.
    """

    def __init__(self, params: Mapping[str, Any], current: CurrentLayout) -> None:
        self.params = params
        self.current = current
        self.comparison = NetlistComparison({**READING, **params}, current)
        try:
            reference_of(self.comparison.circuit, self.comparison.technology)
        except NetlistError:
            self.comparison = NetlistComparison({**READING, **params, "map_devices": True}, current)
        self.circuit = with_defaults(self.comparison.circuit, self.comparison.technology)
        if not self.comparison.given:
            self.circuit = _with_instances(self.circuit, Workspace(params.get("workspace")))
        limits_with(params.get("limits"))
        self.constraints, self.unfit = self._constraints()

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
        result = compare(extraction, self.circuit)
        review = review_layout(result, self.circuit, self.constraints, self.params.get("limits"))
        return replace(review, unjudged=(*review.unjudged, *self.unfit))

    def write(self, review: Review) -> dict[str, str]:
        """Write the findings for KLayout's marker browser; return all files by what they are."""
        files = {"layout": str(self.current.path), "netlist": str(self.comparison.netlist)}
        path = self.params.get("report_path")
        if path is None and self.current.is_of_workspace:
            path = str(self.current.path.with_name(REPORTS["review"]))
        if path is not None:
            review.write_lyrdb(path, self.current.sources(circuit=not self.comparison.given))
            files["report"] = path
            self.current.add_reports(path)
        return files

    def _constraints(self) -> tuple[Constraints | None, tuple[Unjudged, ...]]:
        """Return the constraints: those given, else those that the workspace's layout was made with; None for none.

        Those of the workspace are left out, and unjudged, where the netlist is another one than it was made from.
        """
        given, used = self.params.get("constraints"), self.current.used_constraints()
        if given is not None:
            constraints = read_constraints(given)
            check_constraints(constraints, self.circuit)
            return constraints, ()
        if used is None:
            return None, ()
        constraints = read_constraints(str(used))
        try:
            check_constraints(constraints, self.circuit)
        except LayoutkitError as fault:
            return None, (
                Unjudged("all", f"the constraints that the layout was made with do not fit this netlist: {fault}"),
            )
        workspace = self.current.workspace
        if workspace is None or not workspace.path(RECORD).is_file():
            return constraints, ()
        asked = read_record(workspace, STAGES[-1]).options
        return with_outline(constraints, LayoutRequest(outline=asked.get("outline"), aspect=asked.get("aspect"))), ()


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
            return check(layout, self.cell, self.technology, options)
        deck = FoundryDeck(Path(self.deck), params.get("deck_variables", {}), params["timeout_s"])
        return run_deck(layout, self.cell, deck, options)

    def write(self, report: DrcReport) -> dict[str, str]:
        """Write the report database and the picture that the request names; return their paths by parameter.

        The whole check of a workspace's layout leaves its report there.
        """
        sources = self.current.sources()
        written = {name: self.params[name] for name in ("report_path", "image_path") if name in self.params}
        if self.current.is_of_workspace and not {"rule_ids", "region", "drc_rules_path"} & self.params.keys():
            written.setdefault("report_path", str(self.current.path.with_name(REPORTS["drc"])))
        if "report_path" in written:
            report.write_lyrdb(written["report_path"], sources)
        if "image_path" in written:
            self._draw(report, written["image_path"], sources)
        self.current.add_reports(*written.values())
        return written

    def _draw(self, report: DrcReport, path: str, sources: Mapping[str, str]) -> None:
        view = ViewOptions(region=tuple(self.params["region"]) if "region" in self.params else None)
        save(render(self.cell, self.technology, view, _drc_markers(report)), path, sources)


def present_markers(kind: str, layout: kdb.Layout, cell: kdb.Cell, current: CurrentLayout) -> list[Marker]:
    """Return what DRC or the design review finds in the layout as it is now.

    The report beside the layout is read if it is about this layout; else the check runs, with default options.

    Args:
        kind: ``drc`` or ``review``.
        layout: The current layout, as read.
        cell: The cell that is drawn.
        current: Where it comes from.

    Raises:
        LayoutkitError: If the layout cannot be checked.
    """
    report = current.path.with_name(REPORTS[kind])
    if report.is_file() and not current.doubts_of(str(report)):
        return read_markers(report, cell)
    if kind == "drc":
        return _drc_markers(check(layout, cell, current.technology(), Options()))
    review = LayoutReview({**DEFAULTS, "cell_name": cell.name, "workspace": current.path.parent}, current).run()
    found = [(each, box.to_dtype(review.dbu_um)) for each in review.findings for box, _ in each.everywhere()]
    return [Marker(f"{each.id} ({each.severity})", (kdb.DPolygon(box),), box) for each, box in found]


def _drc_markers(report: DrcReport) -> list[Marker]:
    return [Marker(rule_id, (kdb.DPolygon(box),), box) for rule_id, box in report.boxes(MAX_MARKERS)]
