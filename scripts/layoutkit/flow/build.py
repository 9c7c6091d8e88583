"""The whole job: netlist -> circuit -> modules -> placement -> routing -> DRC -> LVS -> metrics -> files."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.drc.check import DrcReport
    from layoutkit.flow.design import Design, LayoutRequest
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.placing import PlacedModules, TriedPlacement
    from layoutkit.flow.routing import Routes
    from layoutkit.layout.workspace import Workspace
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.technology import Technology

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
    """Reports each stage as it begins, and measures how long it takes."""

    progress: Callable[[str], None]
    done: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, text: str) -> Iterator[None]:
        self.progress(f"{name:<10} {text}")
        start = perf_counter()
        yield
        self.done.append({"name": name, "duration_ms": round((perf_counter() - start) * 1000, 1)})


def build_layout(request: LayoutRequest, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the report of the job; every file is written into the workspace, whether the layout is clean or not.

    The report's ``drc``, ``lvs`` and ``routing`` hold the verdicts; ``flow.summary.faults`` states them as sentences.

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
    with stages.stage("parse", str(request.netlist)):
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
        from layoutkit.extract.strap_loss import strap_losses, straps_data
        from layoutkit.flow.current_loads import currents_data, judged
        from layoutkit.flow.measured_matching import matching_data, modules_data
        from layoutkit.flow.placing import placement_data
        from layoutkit.flow.summary import constraints_data

        stage = self.stages.stage
        design, tried = self._placement(warnings)
        with stage("route", f"{len(tried.job.nets)} nets"):
            cell, layout, routes = self._routed(tried)
        placed = tried.placed
        with stage("currents", "wires, rails and cuts"):
            verdicts = judged(cell, placed, self.circuit, design.constraints)
        constraints, ignored = constraints_data(design, tried, routes, verdicts)
        warnings += [*ignored, *(each.text for each in routes.unequal)]
        unwritten = NETLIST_FORMS.keys() - self.netlist_forms.keys()
        files = {kind: str(self.workspace.path(name)) for kind, name in FILES.items() if kind not in unwritten}
        with stage("export", "layout and reference netlist"):
            out_of_date = self._write_inputs(layout, design, placed.drawn)
        with stage("drc", f"{len(self.technology.rules)} rules"):
            drc = self._drc(cell)
        with stage("lvs", "against the input netlist"):
            result, lvs = self._lvs(cell)
        with stage("metrics", "areas and matching"):
            straps = strap_losses(cell, self.technology)
            metrics = {**self._metrics(cell, placed), "straps": straps_data(straps)}
            matching = matching_data(design.constraints, self.circuit, result, cell, straps)
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
            "routing": _routing_data(routes, tried.attempts, self.technology),
            "currents": currents_data(self.technology, verdicts),
            "placement": placement_data(tried, cell),
            "constraints": constraints,
            "modules": modules_data(placed, self.technology, cell),
            "metrics": metrics,
            "matching": matching,
            "warnings": warnings,
            "stages": self.stages.done,
        }
        self.workspace.write_json(FILES["summary"], report)
        out_of_date += self.workspace.add_reports([self.workspace.path(FILES[kind]) for kind in REPORTS])
        report["warnings"] = [*warnings, *out_of_date]  # summary.json itself is up to date
        return report

    def _placement(self, warnings: list[str]) -> tuple[Design, TriedPlacement]:
        """Return the design and its placement, as ``layout.place_modules`` makes them."""
        from layoutkit.flow.design import make_design
        from layoutkit.flow.placing import find_placement

        with self.stages.stage("recognise", f"{len(self.circuit.modules)} modules"):
            design, notes = make_design(self.request, self.technology, self.circuit)
        with self.stages.stage("place", f"{len(design.groups)} modules"):
            tried = find_placement(design, self.request)
        warnings += [*notes, *tried.warnings]
        return design, tried

    def _routed(self, tried: TriedPlacement) -> tuple[kdb.Cell, kdb.Layout, Routes]:
        """Return the placed layout with its wires, as ``layout.route_signal_nets_basic`` draws them.

        That tool reads the placed layout from a file. The layout goes through the same bytes here, on which the order
        of shapes depends.
        """
        import klayout.db as kdb

        from layoutkit.flow.routing import draw_job, find_routes
        from layoutkit.layout.files import layout_bytes

        layout = kdb.Layout()
        layout.read_bytes(layout_bytes(tried.placed.layout, "GDS2"), kdb.LoadLayoutOptions())
        cell = layout.cell(tried.placed.cell.name)
        routes = tried.routes or find_routes(layout, cell, tried.job)
        draw_job(layout, cell, tried.job, routes)
        return cell, layout, routes

    def _write_inputs(self, layout: kdb.Layout, design: Design, drawn: Sequence[Drawn]) -> list[str]:
        """Write layout, circuit and reference netlists with the dummies; return warnings of reports out of date."""
        from layoutkit.circuit import write_spice
        from layoutkit.flow.modules import dummy_devices
        from layoutkit.layout import files
        from layoutkit.layout.provenance import CIRCUIT, LAYOUT, noted, sha256_of

        listed, in_wells = dummy_devices(drawn, self.circuit, self.technology)
        isolated = {*design.isolated, *in_wells}

        workspace = self.workspace
        with workspace.lock():
            saved = workspace.save_layout(layout, self.technology)
            circuit_path = workspace.write_json(workspace.circuit_path.name, {"circuit": self.circuit.to_json()})
            circuit = {CIRCUIT: sha256_of(circuit_path) or ""}
            for kind, form in self.netlist_forms.items():
                text = write_spice(self.circuit, self.technology, form, isolated, listed)
                files.write_bytes(workspace.path(FILES[kind]), noted(text.encode(), circuit))
        self.sources = {LAYOUT: saved.sha256, **circuit}
        return list(saved.warnings)

    def _drc(self, cell: kdb.Cell) -> DrcReport:
        from layoutkit.drc.check import Options, check_cell

        options = Options(waived_layers=self.request.waived_layers)
        report = check_cell(cell.layout(), cell, self.technology, options)
        report.write_lyrdb(self.workspace.path(FILES["drc_report"]), self._layout_source())
        return report

    def _lvs(self, cell: kdb.Cell) -> tuple[LvsResult, dict[str, Any]]:
        from layoutkit.extract.extractor import extract
        from layoutkit.lvs.compare import compare
        from layoutkit.lvs.lvs_files import write_extracted, write_report

        waived = self.request.waived_layers
        extraction = extract(cell.layout(), cell, self.technology, waived_layers=waived)
        result = compare(extraction, self.circuit)
        write_extracted(extraction, self.workspace.path(FILES["extracted_netlist"]), self._layout_source())
        write_report(result, self.workspace.path(FILES["lvs_report"]), self.sources)
        data = result.to_json()
        return result, {
            **{name: data[name] for name in LVS_FIELDS},
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

    def _metrics(self, cell: kdb.Cell, placed: PlacedModules) -> dict[str, Any]:
        from layoutkit.extract.connectivity import labelled_gates
        from layoutkit.flow.placing import matched_pairs
        from layoutkit.view.metrics import compute

        gates = labelled_gates(cell, self.technology)
        return compute(cell, self.technology, gates, matched_pairs=matched_pairs(placed)).to_json()


def _routing_data(routes: Routes, attempts: int, technology: Technology) -> dict[str, Any]:
    routing = routes.result
    return {
        "total_nets": len(routing.nets),
        "routed": sum(net.success for net in routing.nets),
        "failed": [
            {
                "net": net.name,
                "reason": net.reason or "no reason given",
                "blocked_by": [each.to_json(technology.to_um) for each in net.blocked_by],
            }
            for net in routing.failed
        ],
        "total_wire_length": technology.to_um(routing.wire_length),
        "via_count": sum(net.via_count for net in routing.nets),
        "single_cuts": [
            {"net": net.name, **single.to_json(technology.to_um)} for net in routing.nets for single in net.single_cuts
        ],
        "unequal_metal": [each.to_json(technology) for each in routes.unequal],
        "attempts": attempts,
    }
