"""The whole job: netlist -> circuit -> modules -> placement -> routing -> DRC -> LVS -> metrics -> files."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.drc.check import DrcReport
    from layoutkit.flow.design import LayoutRequest
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.layout.workspace import Workspace
    from layoutkit.route import RoutingResult
    from layoutkit.technology import Technology

# Extra room between rows, in pitches of the third conductor; the next is tried when a net finds no way.
ROW_ROOM = (2, 8, 20)
PICTURE_SIDE = 1600  # pixels of the longer side
FILES = {
    "gds": "layout.gds",
    "png": "layout.png",
    "reference_netlist": "reference.spice",
    "deck_netlist": "reference.cdl",
    "extracted_netlist": "extracted.spice",
    "drc_report": "drc.lyrdb",
    "lvs_report": "lvs.lvsdb",
    "summary": "summary.json",
}
LVS_FIELDS = ("matched", "complete", "layers_unchecked", "layers_waived", "not_compared")
REPORTS = tuple(kind for kind in FILES if kind != "gds")
NETLIST_FORMS = {"reference_netlist": "spice", "deck_netlist": "lvs_deck"}


@dataclass
class _Stages:
    """Times the stages and tells them while they run."""

    progress: Callable[[str], None]
    done: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, text: str) -> Iterator[None]:
        self.progress(f"{name:<10} {text}")
        start = perf_counter()
        yield
        self.done.append({"name": name, "duration_ms": round((perf_counter() - start) * 1000, 1)})


def build_layout(request: LayoutRequest, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the report of the job; every file lies in the workspace, whether the layout is clean or not.

    The report's ``drc``, ``lvs`` and ``routing`` carry the verdicts; ``flow.summary.faults`` puts them in words.

    Args:
        request: What to build.
        progress: Receives a line as each stage begins.

    Raises:
        LayoutkitError: If the netlist cannot be read, mapped or drawn; nothing is written then.
    """
    from layoutkit.flow.design import read_circuit
    from layoutkit.layout.workspace import Workspace

    stages = _Stages(progress)
    workspace = Workspace(request.workspace)
    technology = workspace.technology(request.technology)
    with stages.stage("parse", request.netlist_path):
        circuit, warnings = read_circuit(request, technology)
    job = _Job(request, technology, circuit, workspace, stages)
    return job.run(warnings)


class _Job:
    """One build in progress."""

    def __init__(
        self, request: LayoutRequest, technology: Technology, circuit: Circuit, workspace: Workspace, stages: _Stages
    ) -> None:
        self.request = request
        self.technology = technology
        self.circuit = circuit
        self.workspace = workspace
        self.stages = stages
        self.sources: dict[str, str] = {}  # SHA-256 of the layout and the circuit, to be written into every report
        forms = {"spice", *technology.netlists}
        self.netlist_forms = {kind: form for kind, form in NETLIST_FORMS.items() if form in forms}

    def run(self, warnings: list[str]) -> dict[str, Any]:
        from layoutkit.flow.placing import module_data, placement_data

        stage = self.stages.stage
        placed, routing, attempts = self._layout(warnings)
        cell = placed.cell
        unwritten = NETLIST_FORMS.keys() - self.netlist_forms.keys()
        files = {kind: str(self.workspace.path(name)) for kind, name in FILES.items() if kind not in unwritten}
        with stage("export", "layout and reference netlist"):
            out_of_date = self._write_inputs(cell)
        with stage("drc", f"{len(self.technology.rules)} rules"):
            drc = self._drc(cell)
        with stage("lvs", "against the input netlist"):
            lvs = self._lvs(cell)
        with stage("metrics", "areas and matching"):
            metrics = self._metrics(placed)
        with stage("view", "picture"):
            self._picture(cell, drc)
        report = {
            "circuit": {
                "name": self.circuit.name,
                "device_count": len(self.circuit.devices),
                "net_count": len(self.circuit.nets),
            },
            "technology": self.technology.name,
            **self.sources,
            "files": files,
            "drc": drc.summary(),
            "lvs": lvs,
            "routing": _routing_data(routing, attempts, self.technology),
            "placement": placement_data(placed),
            "modules": [module_data(item, self.technology) for item in placed.drawn],
            "metrics": metrics,
            "warnings": warnings,
            "stages": self.stages.done,
        }
        self.workspace.write_json(FILES["summary"], report)
        out_of_date += self.workspace.add_reports([self.workspace.path(FILES[kind]) for kind in REPORTS])
        report["warnings"] = [*warnings, *out_of_date]  # summary.json itself is up to date
        return report

    def _layout(self, warnings: list[str]) -> tuple[PlacedModules, RoutingResult, int]:
        """Return the first attempt in which every net is routed, else the one with the fewest failures."""
        from layoutkit.flow.design import make_design
        from layoutkit.flow.placing import label_ports, place_modules
        from layoutkit.flow.wiring import route_modules, track_pitch
        from layoutkit.place import PlacementOptions

        pitch = track_pitch(self.technology)
        best: tuple[PlacedModules, RoutingResult] | None = None
        with self.stages.stage("recognise", f"{len(self.circuit.modules)} modules"):
            design, notes = make_design(self.technology, self.circuit, self.request.dummies)
            warnings.extend(notes)
        for attempt, room in enumerate(ROW_ROOM, start=1):
            again = "" if attempt == 1 else f", attempt {attempt}"
            options = PlacementOptions(row_gap=room * pitch, seed=self.request.seed)
            with self.stages.stage("place", f"{len(design.groups)} rows of devices{again}"):
                placed = place_modules(design, options)
            with self.stages.stage("route", f"{len(self.circuit.nets)} nets{again}"):
                routing = route_modules(placed, design.supplies)
            if best is None or len(routing.failed) < len(best[1].failed):
                best = (placed, routing)
            if not routing.failed:
                break
        placed, routing = best if best is not None else (placed, routing)
        warnings.extend(warning for item in placed.drawn for warning in item.module.warnings)
        warnings.extend(label_ports(placed, self.circuit))
        return placed, routing, attempt

    def _write_inputs(self, cell: kdb.Cell) -> list[str]:
        """Write layout, circuit and reference netlist; return a warning for each earlier report out of date."""
        from layoutkit.circuit import write_spice
        from layoutkit.layout import files
        from layoutkit.layout.provenance import CIRCUIT, LAYOUT, noted, sha256_of

        workspace = self.workspace
        with workspace.lock():
            saved = workspace.save_layout(cell.layout(), self.technology)
            circuit_path = workspace.write_json(workspace.circuit_path.name, {"circuit": self.circuit.to_json()})
            circuit = {CIRCUIT: sha256_of(circuit_path) or ""}
            for kind, form in self.netlist_forms.items():
                text = write_spice(self.circuit, self.technology, form)
                files.write_bytes(workspace.path(FILES[kind]), noted(text.encode(), circuit))
        self.sources = {LAYOUT: saved.sha256, **circuit}
        return list(saved.warnings)

    def _drc(self, cell: kdb.Cell) -> DrcReport:
        from layoutkit.drc.check import Options, check_cell

        options = Options(waived_layers=self.request.waived_layers)
        report = check_cell(cell.layout(), cell, self.technology, options)
        report.write_lyrdb(self.workspace.path(FILES["drc_report"]), self._layout_source())
        return report

    def _lvs(self, cell: kdb.Cell) -> dict[str, Any]:
        from layoutkit.extract.extractor import extract
        from layoutkit.lvs.compare import compare
        from layoutkit.lvs.lvs_files import write_extracted, write_report

        waived = self.request.waived_layers
        extraction = extract(cell.layout(), cell, self.technology, waived_layers=waived)
        result = compare(extraction, self.circuit)
        write_extracted(extraction, self.workspace.path(FILES["extracted_netlist"]), self._layout_source())
        write_report(result, self.workspace.path(FILES["lvs_report"]), self.sources)
        told = result.to_json()
        return {
            **{name: told[name] for name in LVS_FIELDS},
            "mismatches": [mismatch.to_json() for mismatch in result.mismatches],
            "dummies": len(extraction.dummies),
        }

    def _picture(self, cell: kdb.Cell, drc: DrcReport) -> None:
        from layoutkit.view.markers import markers_at
        from layoutkit.view.render import View, render, save

        box = cell.dbbox()
        ratio = min(max(box.width() / max(box.height(), 1e-9), 0.4), 2.5)
        width, height = round(PICTURE_SIDE * min(ratio, 1)), round(PICTURE_SIDE / max(ratio, 1))
        markers = markers_at(drc.summary()["violations"])
        view = View(width=max(width, PICTURE_SIDE * 9 // 16), height=max(height, PICTURE_SIDE * 7 // 16))
        save(render(cell, self.technology, view, markers), self.workspace.path(FILES["png"]), self._layout_source())

    def _layout_source(self) -> dict[str, str]:
        from layoutkit.layout.provenance import LAYOUT

        return {LAYOUT: self.sources[LAYOUT]}

    def _metrics(self, placed: PlacedModules) -> dict[str, Any]:
        from layoutkit.extract.connectivity import labelled_gates
        from layoutkit.flow.placing import matched_pairs
        from layoutkit.view.metrics import compute

        gates = labelled_gates(placed.cell, self.technology)
        return compute(placed.cell, self.technology, gates, matched_pairs=matched_pairs(placed)).to_json()


def _routing_data(routing: RoutingResult, attempts: int, technology: Technology) -> dict[str, Any]:
    return {
        "total_nets": len(routing.nets),
        "routed": sum(net.success for net in routing.nets),
        "failed": [{"net": net.name, "reason": net.reason or "no reason given"} for net in routing.failed],
        "total_wire_length": technology.to_um(routing.wire_length),
        "via_count": sum(net.via_count for net in routing.nets),
        "attempts": attempts,
    }
