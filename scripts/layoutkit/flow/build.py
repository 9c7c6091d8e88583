"""The whole job: netlist -> circuit -> modules -> placement -> routing -> DRC -> LVS -> metrics -> files.

Each stage leaves enough in the workspace for a later build to begin with the next one (``stage_record``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.ranked_names import plain
from layoutkit.errors import FileError, LayoutkitError
from layoutkit.flow.design import (
    make_design,
    read_circuit,
    read_constraints,
    source_of,
    supplies_of,
    technology_of,
    with_outline,
)
from layoutkit.flow.stage_record import (
    STAGES,
    Progress,
    StageEntry,
    StageRecord,
    Surroundings,
    faults_of_files,
    faults_of_netlist,
    faults_of_technology,
    from_data,
    read_record,
    refuse,
    resized_devices,
    resumed,
    to_data,
)
from layoutkit.layout.workspace import DEFAULT_TECHNOLOGY, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.flow.design import Design, LayoutRequest
    from layoutkit.flow.placing import TriedPlacement
    from layoutkit.flow.routing_job import Routes
    from layoutkit.flow.stage_record import StageFault
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.place.kept_places import EarlierPlaces
    from layoutkit.technology import Technology

PICTURE_SIDE = 1600  # pixels of the longer side
FILES = {
    "gds": "layout.gds",
    "lef": "layout.lef",
    "png": "layout.png",
    "report": "report.html",
    "reference_netlist": "reference.spice",
    "deck_netlist": "reference.cdl",
    "extracted_netlist": "extracted.spice",
    "parasitics_netlist": "extracted.pex.spice",
    "drc_report": "drc.lyrdb",
    "lvs_report": "lvs.lvsdb",
    "review_report": "review.lyrdb",
    "summary": "summary.json",
}
CONSTRAINTS, PLACED, PLACEMENT, ROUTES = "used_constraints.json", "placed.gds", "placement.json", "routes.json"
SUBCIRCUITS = "subcircuits.json"
LVS_FIELDS = (
    "matched",
    "complete",
    "verdict",
    "layers_unchecked",
    "layers_unchecked_count",
    "layers_waived",
    "not_compared",
)
NETLIST_FORMS = {"reference_netlist": "spice", "deck_netlist": "lvs_deck"}
SAVED_AFTER = ("place", "route", "export")
"""Stages after which the record is written; it is also written after the last one."""


def build_layout(request: LayoutRequest, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the report of the job; every file is written into the workspace, whether the layout is clean or not.

    The report's ``drc``, ``lvs`` and ``routing`` hold the verdicts; ``flow.summary.faults`` states them as sentences.
    A build that stops early has no verdict of the stages that ``remaining_stages`` lists.

    A build that begins with stage ``place`` and is given the netlist with other sizes reads it again and keeps the
    places of modules where it can.

    Args:
        request: What to build, the stage to begin with and the one to stop after.
        progress: Receives a line as each stage begins.

    Raises:
        LayoutkitError: If the netlist cannot be read, mapped or drawn, or the workspace does not hold what the first
            stage needs; nothing is written then.
    """
    first, last = request.first_stage or STAGES[0], request.last_stage or STAGES[-1]
    if STAGES.index(first) > STAGES.index(last):
        raise LayoutkitError(
            f"the build cannot begin with stage {first} and stop after {last}; the order is {', '.join(STAGES)}",
            details={"param_name": "until", "provided_value": last},
        )
    workspace = Workspace(request.workspace)
    if request.first_stage is None:
        technology = technology_of(request, workspace)
        job = _Job(request, technology, workspace, StageRecord.begun(technology, request), Progress(progress))
        return job.run(first, last)
    record = read_record(workspace, first)
    technology = workspace.technology(request.technology or record.technology[0])
    merged, faults = resumed(request, record)
    faults += [*faults_of_technology(technology, record), *faults_of_files(workspace, record, first)]
    refuse(faults, first, workspace)
    job = _Job(merged, technology, workspace, record, Progress(progress))
    resized = job.resized(request) if first == "place" else []
    if resized:
        earlier = job.earlier(resized)
        job = _Job(merged, technology, workspace, record, Progress(progress))
        job.keeps = earlier
        return job.run(STAGES[0], last)
    refuse(job.contradictions(request, first), first, workspace)
    return job.run(first, last)


class _Job:
    """One build in progress.

    What a stage makes is a cached property. It is computed by the stage, or restored from the workspace where an
    earlier build has done the stage.
    """

    def __init__(
        self,
        request: LayoutRequest,
        technology: Technology,
        workspace: Workspace,
        record: StageRecord,
        progress: Progress,
    ) -> None:
        self.request = request
        self._process = technology
        self.workspace = workspace
        self.record = record
        self.progress = progress
        self.out_of_date: list[str] = []  # reports of earlier layouts
        self._unsaved: dict[str, dict[str, Any]] = {}  # stage to the files that it leaves: bytes or JSON data
        self._warnings: list[str] = []  # of the stage in progress
        self._tries: dict[str, Any] = {}  # what was compared
        self.keeps: EarlierPlaces | None = None
        """Places of the build before the sizes of devices were changed; None for a placement without them."""
        self._in_history = False
        self._page = ""  # the report as a page, but for the times
        forms = {"spice", *technology.netlists}
        self.netlist_forms = {kind: form for kind, form in NETLIST_FORMS.items() if form in forms}

    def resized(self, asked: LayoutRequest) -> list[str]:
        """Return the devices that have other sizes in the netlist that is given again, or in ``sizes``."""
        if asked.netlist_path is None and asked.netlist_text is None and asked.sizes is None:
            return []
        return resized_devices(read_circuit(self.request, self.technology)[0], self.circuit)

    def earlier(self, resized: Sequence[str]) -> EarlierPlaces | None:
        """Return the places of the modules in the workspace; None where it holds no finished placement."""
        from layoutkit.flow.kept_modules import earlier_places

        if not self.record.has("place") or faults_of_files(self.workspace, self.record, "route"):
            return None
        return earlier_places(self.tried, resized)

    def contradictions(self, asked: LayoutRequest, first: str) -> list[StageFault]:
        """Return how a netlist or constraints that are given again differ from those of the stages that are kept."""
        faults = []
        given = asked.netlist_path is not None or asked.netlist_text is not None
        if given and first != "parse":
            faults += faults_of_netlist(read_circuit(self.request, self.technology)[0], self.circuit)
        if not faults and asked.constraints is not None and STAGES.index(first) > STAGES.index("recognise"):
            given_now, _ = make_design(self.request, self.technology, self.circuit)
            if given_now.whole != self.design.whole:
                faults.append(("recognise", f"the constraints are not those of {CONSTRAINTS}"))
        return faults

    def run(self, first: str, last: str) -> dict[str, Any]:
        """Run the stages from ``first`` to ``last`` and return the report."""
        self.record.begin(first, self.request)
        for name in STAGES[STAGES.index(first) : STAGES.index(last) + 1]:
            self._warnings = []
            if STAGES.index(name) > STAGES.index("route"):
                self._enter_history()
            with self.progress.stage(name, self._title(name)):
                part = getattr(self, f"_{name}")()
                self.record.entries.append(StageEntry(name, {}, plain(part), plain(tuple(self._warnings))))
                if name in SAVED_AFTER or name == last:
                    self.save()
        return self._report()

    def _enter_history(self) -> None:
        """Record the design before the first file is written; a build that is refused before leaves no workspace."""
        if not self._in_history:
            self.workspace.begin("flow.build_layout")
            self._in_history = True

    def _title(self, stage: str) -> str:
        """Return what a stage works on, in words."""
        if stage == "parse":
            return str(self.request.netlist)
        numbers = {
            "recognise": lambda: f"{len(self.circuit.modules)} groups",
            "place": lambda: f"{len(self.design.groups)} modules",
            "route": lambda: f"{len(self.tried.job.nets)} nets",
            "drc": lambda: f"{len(self.technology.rules)} rules",
        }
        texts = {
            "currents": "wires, rails and cuts",
            "export": "layout and reference netlist",
            "lvs": "against the input netlist",
            "metrics": "areas, matching, design review",
            "view": "picture and report",
        }
        return numbers[stage]() if stage in numbers else texts[stage]

    # What the stages make.

    @cached_property
    def technology(self) -> Technology:
        """The process, with the options of its masks that the circuit's devices need."""
        return self._process.made_for(device.model for device in self.circuit.devices)

    @cached_property
    def circuit(self) -> Circuit:
        """The circuit, mapped to the technology."""
        from layoutkit.circuit import read_netlist, recognised
        from layoutkit.circuit.circuit import SubcircuitInstance

        if not self.record.has("parse"):
            circuit, self._warnings[:] = read_circuit(self.request, self._process)
            return circuit
        given, boxes = self.request.constraints, self.request.black_boxes
        read = read_netlist(
            str(self.workspace.circuit_path),
            identify_modules=False,
            black_boxes=boxes,
            supplies=None if given is None else supplies_of(read_constraints(given)),
        )
        instances = self.workspace.read_json(SUBCIRCUITS)
        read = replace(read, subcircuits=tuple(SubcircuitInstance(**each) for each in instances))
        return recognised(read)

    @cached_property
    def design(self) -> Design:
        """The circuit with its constraints and groups."""
        if not self.record.has("recognise"):
            design, notes = make_design(self.request, self.technology, self.circuit)
            self._warnings += notes
            return replace(design, earlier=self.keeps)
        used = self.workspace.read_json(CONSTRAINTS)
        request = replace(self.request, constraints=used, net_priorities=())
        design, _ = make_design(request, self.technology, self.circuit)
        return replace(design, source=source_of(self.request.constraints))

    @cached_property
    def tried(self) -> TriedPlacement:
        """The placement."""
        from layoutkit.flow.shared_cells import place_design
        from layoutkit.flow.tries import Effort

        if self.record.has("place"):
            return self._restored(PLACEMENT, self._placed_layout)  # type: ignore[no-any-return]
        if self.keeps is not None or Effort.of(self.request.effort).is_one:
            tried = place_design(self.design, self.request)
        else:
            tried = self._best_of_tries()
        self._warnings += tried.warnings
        return tried

    def _best_of_tries(self) -> TriedPlacement:
        """Return the placement of the best try, with its wires; the tries continue from what is parsed so far."""
        from layoutkit.flow.tries import compare_tries

        def adopt(folder: Path) -> TriedPlacement:
            other = self._sibling(folder, read_record(Workspace(folder), "currents"))
            return replace(other.tried, routes=other.routes)

        best, tries, chosen = compare_tries(
            self.request, self._prepare, adopt, lambda text: self.progress.line("place", text)
        )
        self._tries = {"compared": [{**each.to_json(), "chosen": each is chosen} for each in tries]}
        return best  # type: ignore[no-any-return]

    def _sibling(self, folder: Path, record: StageRecord) -> _Job:
        """Return the same job in another workspace."""
        return _Job(self.request, self.technology, Workspace(folder), record, self.progress)

    def _prepare(self, folder: Path) -> None:
        """Make ``folder`` a workspace in which a build can begin with stage ``place``, for a single try."""
        options = {**self.record.options, "effort": 1}
        job = self._sibling(folder, StageRecord(self.record.technology, options))
        job.circuit, job.design = self.circuit, self.design
        for name in ("parse", "recognise"):
            job.record.entries.append(StageEntry(name, {}, getattr(job, f"_{name}")()))
        job.save()

    @cached_property
    def placed_design(self) -> Design:
        """The design as it was placed in the end."""
        from layoutkit.flow.shared_cells import placed_design

        return placed_design(self.design, self.request, self.tried)

    @cached_property
    def _placed_layout(self) -> kdb.Layout:
        """The placed layout as the workspace holds it."""
        from layoutkit.layout import files

        return files.read_layout(self.workspace.path(PLACED))

    @cached_property
    def routes(self) -> Routes:
        """The wires."""
        from layoutkit.flow.pair_loads import finished_routes

        if self.record.has("route"):
            return self._restored(ROUTES, self._placed_layout)  # type: ignore[no-any-return]
        layout, cell = self._opened
        return self.tried.routes or finished_routes(layout, cell, self.tried.job)

    @cached_property
    def _opened(self) -> tuple[kdb.Layout, kdb.Cell]:
        """A copy of the placed layout, into which the wires are drawn, and its top cell."""
        layout = self.tried.placed.layout.dup()
        return layout, layout.cell(self.tried.placed.cell.name)

    @cached_property
    def cell(self) -> kdb.Cell:
        """The finished layout's top cell."""
        from layoutkit.flow.routing import draw_job

        layout, cell = self._opened
        draw_job(layout, cell, self.tried.job, self.routes)
        return cell

    @property
    def _routed(self) -> TriedPlacement:
        """The placement with the frame at which the wires end."""
        tried = self.tried
        return replace(tried, placed=replace(tried.placed, frame=self.routes.frame or tried.placed.frame))

    @cached_property
    def compared(self) -> LvsResult:
        """The layout's circuit, compared with the netlist's."""
        from layoutkit.extract.extractor import extract
        from layoutkit.lvs.compare import compare

        extraction = extract(self.cell.layout(), self.cell, self.technology, waived_layers=self.request.waived_layers)
        return compare(extraction, self.circuit)

    def _restored(self, name: str, layout: kdb.Layout) -> Any:
        """Return the object that the file ``name`` of the workspace holds."""
        path = self.workspace.path(name)
        try:
            return from_data(self.workspace.read_json(name), Surroundings(self.technology, layout))
        except ValueError as error:
            raise FileError(
                f"{path}: {str(error)[:300]}; build from {'route' if name == ROUTES else 'place'}",
                details={"path": str(path), "param_name": "from"},
            ) from error

    def _stored(self, value: Any) -> Any:
        """Return an object as data for ``_restored``."""
        return to_data(value, Surroundings(self.technology, self.tried.placed.layout))

    # The stages: each returns its part of the report.

    def _parse(self) -> dict[str, Any]:
        from layoutkit.circuit.replaced_devices import replaced_data

        circuit = self.circuit
        if self.request.technology is None and self._process.name == DEFAULT_TECHNOLOGY:
            self._warnings.append(
                f"{DEFAULT_TECHNOLOGY} is no real process: the netlist names no device of one; give technology (-t)"
            )
        self._unsaved["parse"] = {
            self.workspace.circuit_path.name: {"circuit": circuit.to_json()},
            SUBCIRCUITS: [vars(each) for each in circuit.subcircuits],
        }
        sizes = {"device_count": len(circuit.devices), "net_count": len(circuit.nets)}
        return {
            "circuit": {"name": circuit.name, **sizes},
            "technology": self.technology.name,
            "replaced_devices": replaced_data(circuit, self.technology),
        }

    def _recognise(self) -> dict[str, Any]:
        from layoutkit.circuit.suggested_constraints import recognition_data

        self._unsaved["recognise"] = {CONSTRAINTS: self.design.whole.to_json()}
        return {"recognition": recognition_data(self.circuit)}

    def _place(self) -> dict[str, Any]:
        from layoutkit.flow.modules import changed_fingers
        from layoutkit.flow.placing import placement_data, shape_warnings
        from layoutkit.flow.shared_cells import hierarchy_data
        from layoutkit.layout import files

        tried = self.tried
        placed = files.layout_bytes(tried.placed.layout, "GDS2")
        self._warnings += changed_fingers(tried.placed.flat.drawn)
        if self.request.last_stage == "place":  # else the routed layout is judged
            self._warnings += shape_warnings(tried.placed, tried.placed.cell, self.request)
        self._unsaved["place"] = {PLACED: placed, PLACEMENT: self._stored(tried)}
        return {
            "placement": placement_data(tried, tried.placed.cell),
            "hierarchy": hierarchy_data(self.placed_design, tried.placed.layout),
            **self._tries,
        }

    def _route(self) -> dict[str, Any]:
        from layoutkit.flow.placing import placement_data, shape_warnings
        from layoutkit.flow.ports import supplies_data, weak_supplies
        from layoutkit.flow.summary import routing_data

        tried = self._routed
        self._unsaved["route"] = {ROUTES: self._stored(self.routes)}
        routing = routing_data(self.routes, tried.attempts, self.technology)
        routing["supplies"] = supplies_data(tried.placed, self.routes.result)
        compared = self.record.entry("place").report.get("compared", ())
        shape = shape_warnings(tried.placed, self.cell, self.request, compared)
        self._warnings += [*weak_supplies(routing["supplies"]), *shape]
        return {"routing": routing, "placement": placement_data(tried, self.cell)}

    def _currents(self) -> dict[str, Any]:
        from layoutkit.flow.current_loads import currents_data, judged
        from layoutkit.flow.matched_wires import over_gates
        from layoutkit.flow.summary import constraints_data

        design, placed = self.placed_design, self.tried.placed.flat
        verdicts = judged(self.cell, placed, self.circuit, design.whole, self.routes.result.nets)
        constraints, ignored = constraints_data(design, self.tried, self.routes, verdicts)
        self._warnings += [*ignored, *over_gates(self.routes.unequal)]
        return {"currents": currents_data(self.technology, verdicts), "constraints": constraints}

    def _export(self) -> dict[str, Any]:
        """Write the layout and the reference netlists with the dummies."""
        from layoutkit.circuit import longer_sides_first, write_spice
        from layoutkit.flow.modules import as_drawn, dummy_devices
        from layoutkit.layout import files
        from layoutkit.layout.reports import CIRCUIT, LAYOUT, noted, sha256_of

        drawn = self.tried.placed.flat.drawn
        listed, in_wells = dummy_devices(drawn, self.circuit, self.technology)
        isolated = {*self.placed_design.isolated, *in_wells}
        circuit = as_drawn(longer_sides_first(self.circuit), drawn)
        circuit_of_cell = replace(circuit, name=self.cell.name)  # LVS decks compare by name
        workspace = self.workspace
        with workspace.lock():
            saved = workspace.save_layout(self.cell.layout(), self.technology)
            source = {CIRCUIT: sha256_of(workspace.circuit_path) or ""}
            for kind, form in self.netlist_forms.items():
                text = write_spice(circuit_of_cell, self.technology, form, isolated, listed)
                files.write_bytes(workspace.path(FILES[kind]), noted(text.encode(), source))
            lef = self._write_lef()
        self.out_of_date += saved.warnings
        self._unsaved["export"] = {FILES["gds"]: None}
        return {LAYOUT: saved.sha256, **source, "files": ["gds", *lef, *self.netlist_forms]}

    def _write_lef(self) -> list[str]:
        """Write the outline, pins and obstructions of the cell; return which files there are."""
        from layoutkit.circuit import find_roles
        from layoutkit.layout import files
        from layoutkit.layout.export import lef_of
        from layoutkit.layout.reports import LAYOUT, noted, sha256_of

        path = self.workspace.path(FILES["lef"])
        try:
            lef = lef_of(self.cell, self.technology, find_roles(self.circuit).ports)
        except LayoutkitError as error:  # no ports, or names that LEF cannot hold
            self._warnings.append(f"no LEF was written: {error}")
            path.unlink(missing_ok=True)
            return []
        self._warnings += lef.warnings
        source = {LAYOUT: sha256_of(self.workspace.layout_path) or ""}
        files.write_bytes(path, noted(lef.text.encode(), source))
        return ["lef"]

    def _drc(self) -> dict[str, Any]:
        from layoutkit.drc.check import Options, check

        options = Options(waived_layers=self.request.waived_layers)
        report = check(self.cell.layout(), self.cell, self.technology, options)
        report.write_lyrdb(self.workspace.path(FILES["drc_report"]), self._sources("layout"))
        return {"drc": report.summary(), "files": ["drc_report"]}

    def _lvs(self) -> dict[str, Any]:
        from layoutkit.lvs.lvs_result import write_extracted, write_report

        result = self.compared
        write_extracted(result.extraction, self.workspace.path(FILES["extracted_netlist"]), self._sources("layout"))
        write_report(result, self.workspace.path(FILES["lvs_report"]), self._sources("layout", "circuit"))
        data = result.to_json()
        lvs = {
            **{name: data[name] for name in LVS_FIELDS},
            "mismatches": [mismatch.to_json() for mismatch in result.mismatches],
            "dummies": len(result.extraction.dummies),
        }
        return {"lvs": lvs, "files": ["extracted_netlist", "lvs_report"]}

    def _metrics(self) -> dict[str, Any]:
        from layoutkit.extract.connectivity import labelled_gates
        from layoutkit.extract.strap_loss import strap_losses, straps_data
        from layoutkit.flow.placing import matched_pairs
        from layoutkit.flow.summary import matching_data, modules_data
        from layoutkit.view.metrics import compute

        cell, placed, technology = self.cell, self.tried.placed.flat, self.technology
        straps = strap_losses(cell, technology)
        gates = labelled_gates(cell, technology)
        metrics = compute(cell, technology, gates, matched_pairs=matched_pairs(placed))
        matching = matching_data(self.placed_design.whole, self.circuit, self.compared, cell, straps)
        review = self._review() if self.request.reviewed else {"files": ()}
        post = self._post_layout(matching["groups"]) if self.request.post_layout else {}
        return {
            "metrics": {**metrics, "straps": straps_data(straps)},
            "matching": matching,
            "modules": modules_data(placed, technology, cell),
            **review,
            **post,
            "files": [*review["files"], *post.get("files", ())],
        }

    def _review(self) -> dict[str, Any]:
        """Return what an engineer would say of the layout, which does not decide whether the build is clean."""
        from layoutkit.review.design_review import review_layout, unmatched

        result = self.compared
        if not result.matched:
            return {"review": unmatched(result).to_json(), "files": []}
        review = review_layout(result, self.circuit, with_outline(self.design.whole, self.request))
        review.write_lyrdb(self.workspace.path(FILES["review_report"]), self._sources("layout", "circuit"))
        return {"review": review.to_json(), "files": ["review_report"]}

    def _post_layout(self, groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
        from layoutkit.flow.summary import post_layout_figures
        from layoutkit.layout import files
        from layoutkit.layout.reports import noted
        from layoutkit.parasitics.parasitic_extraction import PexOptions

        options = PexOptions(
            cell_name=self.cell.name,
            constraints=self.placed_design.whole,
            waived_layers=tuple(self.request.waived_layers),
        )
        layout = self.cell.layout()
        figures, spice = post_layout_figures(layout, self.circuit, self.technology, options, groups)
        if spice:
            path = self.workspace.path(FILES["parasitics_netlist"])
            files.write_bytes(path, noted(spice.encode(), self._sources("layout")))
        return {"post_layout": figures, "files": ["parasitics_netlist"] if spice else []}

    def _view(self) -> dict[str, Any]:
        from layoutkit.flow.build_page import build_page
        from layoutkit.view.drawing_data import markers_at
        from layoutkit.view.render import ViewOptions, render, save

        markers = markers_at(self.record.entry("drc").report["drc"]["violations"])
        view = ViewOptions(width=PICTURE_SIDE, height=PICTURE_SIDE)
        picture = render(self.cell, self.technology, view, markers)
        save(picture, self.workspace.path(FILES["png"]), self._sources("layout"))
        report = {name: part for entry in self.record.entries for name, part in entry.report.items()}
        warnings = [text for entry in self.record.entries for text in entry.warnings]
        self._page = build_page(
            {**report, "warnings": warnings}, self.record, self.circuit, self.compared, self.cell, picture.png
        )
        return {"files": ["png", "report"]}

    # The record and the report.

    def _sources(self, *kinds: str) -> dict[str, str]:
        """Return the SHA-256 of the layout and of the circuit, to be written into reports."""
        names = [f"{kind}_sha256" for kind in kinds]
        return {name: self.record.entry("export").report[name] for name in names}

    def save(self) -> None:
        """Write the files of the finished stages, and then the record that names them."""
        workspace = self.workspace
        self._enter_history()
        with workspace.lock():
            for stage, contents in self._unsaved.items():
                for name, content in contents.items():
                    if name == workspace.circuit_path.name:
                        self.out_of_date += workspace.save_circuit(content)
                    elif content is not None:
                        workspace.write(name, content)
                self.record.sign(stage, list(contents), workspace)
            self._unsaved = {}
            self.record.write(workspace)

    def _report(self) -> dict[str, Any]:
        """Return the report of all finished stages, which also becomes a file once there is a layout."""
        from layoutkit.flow.placing import wishes_first
        from layoutkit.flow.summary import next_steps
        from layoutkit.view.report_page import with_times

        report: dict[str, Any] = {}
        kinds = []
        for entry in self.record.entries:
            kinds += entry.report.get("files", [])
            report |= entry.report
        report["files"] = {kind: str(self.workspace.path(FILES[kind])) for kind in kinds}
        report["warnings"] = wishes_first([text for entry in self.record.entries for text in entry.warnings])
        report["stages"] = self.progress.done
        report["remaining_stages"] = list(STAGES[len(self.record.entries) :])
        report["next"] = next_steps(report)
        out_of_date = self.out_of_date
        if self._page:
            self.workspace.write(FILES["report"], with_times(self._page, self.progress.done).encode())
        if "gds" in kinds:
            path = self.workspace.path(FILES["summary"])
            report["files"]["summary"] = str(path)
            self.workspace.write_json(path.name, report)
            reports = [self.workspace.path(FILES[kind]) for kind in report["files"] if kind != "gds"]
            out_of_date = [*out_of_date, *self.workspace.add_reports(reports)]
        told = ["; ".join(out_of_date)] if out_of_date else []
        return {**report, "warnings": [*report["warnings"], *told]}  # summary.json itself is up to date
