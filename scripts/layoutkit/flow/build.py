"""The whole job: netlist -> circuit -> modules -> placement -> routing -> DRC -> LVS -> metrics -> files."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from layoutkit.errors import NetlistError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import klayout.db as kdb

    from layoutkit.check.drc import DrcReport
    from layoutkit.circuit.model import Circuit
    from layoutkit.flow.assemble import Assembly, Drawn
    from layoutkit.flow.groups import Group
    from layoutkit.flow.passives import PassiveGroup
    from layoutkit.technology import Technology
    from layoutkit.workspace import Workspace

# Extra room between rows, in pitches of the third conductor; the next is tried when a net finds no way.
ROW_ROOM = (2, 8, 20)
FILES = {
    "gds": "layout.gds",
    "png": "layout.png",
    "reference_netlist": "reference.spice",
    "extracted_netlist": "extracted.spice",
    "drc_report": "drc.lyrdb",
    "lvs_report": "lvs.lvsdb",
    "summary": "summary.json",
}


@dataclass(frozen=True)
class BuildRequest:
    """What to build.

    Attributes:
        netlist_path: SPICE, CDL, Spectre or JSON netlist.
        technology: Name of a shipped technology or path of a technology file.
        workspace: Folder that receives every file; None for the default one.
        top: Subcircuit; None for the netlist's own top.
        width_per: Whether ``W`` is of a whole ``device`` or of one ``finger``.
        dummies: Dummy fingers at each end of a matched row.
        seed: Seed of the placement search.
    """

    netlist_path: str
    technology: str = "generic"
    workspace: str | None = None
    top: str | None = None
    width_per: str = "device"
    dummies: int = 0
    seed: int = 1


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


def build_layout(request: BuildRequest, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the report of the job; every file lies in the workspace, whether the layout is clean or not.

    The report's ``drc``, ``lvs`` and ``routing`` carry the verdicts; ``flow.summary.faults`` puts them in words.

    Args:
        request: What to build.
        progress: Receives a line as each stage begins.

    Raises:
        LayoutkitError: If the netlist cannot be read, mapped or drawn; nothing is written then.
    """
    from layoutkit.technology import load
    from layoutkit.workspace import Workspace

    stages = _Stages(progress)
    workspace = Workspace(request.workspace)
    technology = load(request.technology)
    with stages.stage("parse", request.netlist_path):
        circuit, warnings = _circuit(request, technology)
    job = _Job(request, technology, circuit, workspace, stages)
    return job.run(warnings)


def _circuit(request: BuildRequest, technology: Technology) -> tuple[Circuit, list[str]]:
    from layoutkit.circuit import MapOptions, Target, map_circuit, read_netlist, recognise

    read = read_netlist(request.netlist_path, top=request.top, identify_modules=False)
    if not read.devices:
        raise NetlistError(f"the netlist has no devices, so there is nothing to lay out: {request.netlist_path}")
    options = MapOptions(width_per="finger" if request.width_per == "finger" else "device")
    mapped = map_circuit(read, Target.from_technology(technology), options)
    circuit = mapped.circuit.with_modules(recognise(mapped.circuit))
    return circuit, [*read.warnings, *(w for w in mapped.circuit.warnings if w not in read.warnings)]


class _Job:
    """One build in progress."""

    def __init__(
        self, request: BuildRequest, technology: Technology, circuit: Circuit, workspace: Workspace, stages: _Stages
    ) -> None:
        self.request = request
        self.technology = technology
        self.circuit = circuit
        self.workspace = workspace
        self.stages = stages

    def run(self, warnings: list[str]) -> dict[str, Any]:
        stage = self.stages.stage
        assembly, drawn, attempts = self._layout(warnings)
        cell = assembly.cell
        files = {kind: str(self.workspace.path(name)) for kind, name in FILES.items()}
        with stage("export", "layout and reference netlist"):
            self._write_inputs(cell)
        with stage("drc", f"{len(self.technology.rules)} rules"):
            drc = self._drc(cell)
        with stage("lvs", "against the input netlist"):
            lvs = self._lvs(cell)
        with stage("metrics", "areas and matching"):
            metrics = self._metrics(cell, drawn)
        with stage("view", "picture"):
            self._picture(cell, drc)
        report = {
            "circuit": {
                "name": self.circuit.name,
                "device_count": len(self.circuit.devices),
                "net_count": len(self.circuit.nets),
            },
            "technology": self.technology.name,
            "files": files,
            "drc": _drc_data(drc),
            "lvs": lvs,
            "routing": _routing_data(assembly, attempts, self.technology),
            "placement": _placement_data(assembly, self.technology),
            "modules": [_module_data(item, self.technology) for item in drawn],
            "metrics": metrics,
            "warnings": warnings,
            "stages": self.stages.done,
        }
        self.workspace.write_json(FILES["summary"], report)
        return report

    def _layout(self, warnings: list[str]) -> tuple[Assembly, list[Drawn], int]:
        """Return the first attempt in which every net is routed, else the one with the fewest failures."""
        import klayout.db as kdb

        from layoutkit.circuit import find_supplies
        from layoutkit.flow.assemble import assemble, label_ports
        from layoutkit.flow.groups import group_devices
        from layoutkit.flow.modules import draw_groups
        from layoutkit.flow.passives import group_passives
        from layoutkit.place import PlacementOptions

        supplies = find_supplies(self.circuit)
        wide = set(supplies.power) | set(supplies.ground)
        pitch = self.technology.conductors[2].width + self.technology.conductors[2].space
        best: tuple[Assembly, list[Drawn]] | None = None
        with self.stages.stage("recognise", f"{len(self.circuit.modules)} modules"):
            transistors, notes = group_devices(self.circuit, self.technology)
            groups: tuple[Group | PassiveGroup, ...] = (*transistors, *group_passives(self.circuit, self.technology))
            warnings.extend(notes)
        for attempt, room in enumerate(ROW_ROOM, start=1):
            layout = kdb.Layout()
            layout.dbu = self.technology.dbu_um
            with self.stages.stage("draw", f"{len(groups)} rows of devices"):
                drawn = draw_groups(layout, self.technology, groups, self.request.dummies)
            cell = layout.create_cell(_cell_name(self.circuit.name, layout))
            options = PlacementOptions(row_gap=room * pitch, seed=self.request.seed)
            with self.stages.stage("place", "and route" if attempt == 1 else f"and route, attempt {attempt}"):
                assembly = assemble(self.technology, cell, drawn, options, wide)
            if best is None or len(assembly.routing.failed) < len(best[0].routing.failed):
                best = (assembly, drawn)
            if not assembly.routing.failed:
                break
        assembly, drawn = best if best is not None else (assembly, drawn)
        warnings.extend(warning for item in drawn for warning in item.module.warnings)
        missing = label_ports(self.technology, assembly, [item.module for item in drawn], self.circuit.ports)
        warnings.extend(f"port {port} connects to no device; it has no metal and no label" for port in missing)
        return assembly, drawn, attempt

    def _write_inputs(self, cell: kdb.Cell) -> None:
        from layoutkit import files
        from layoutkit.circuit import write_spice

        named, subcircuits = _model_names(self.technology, self.circuit)
        self.workspace.create()
        with self.workspace.lock():
            files.write_layout(cell.layout(), self.workspace.layout_path)
            text = write_spice(named, subcircuits=subcircuits)
            files.write_text(self.workspace.path(FILES["reference_netlist"]), text)
            self.workspace.write_json("circuit.json", {"circuit": self.circuit.to_json()})

    def _drc(self, cell: kdb.Cell) -> DrcReport:
        from layoutkit.check.drc import check

        report = check(cell.layout(), cell, self.technology)
        report.write_lyrdb(self.workspace.path(FILES["drc_report"]))
        return report

    def _lvs(self, cell: kdb.Cell) -> dict[str, Any]:
        from layoutkit.check.extract import extract
        from layoutkit.check.lvs import compare
        from layoutkit.check.lvs_files import write_extracted, write_report

        extraction = extract(cell.layout(), cell, self.technology)
        result = compare(extraction, self.circuit)
        write_extracted(extraction, self.workspace.path(FILES["extracted_netlist"]))
        write_report(result, self.workspace.path(FILES["lvs_report"]))
        return {
            "matched": result.matched,
            "mismatches": [mismatch.to_json() for mismatch in result.mismatches],
            "dummies": len(extraction.dummies),
        }

    def _picture(self, cell: kdb.Cell, drc: DrcReport) -> None:
        from layoutkit.markers import markers_at
        from layoutkit.render import View, render, save

        box = cell.dbbox()
        long_side = 1600
        ratio = min(max(box.width() / max(box.height(), 1e-9), 0.4), 2.5)
        width, height = (long_side, round(long_side / ratio)) if ratio >= 1 else (round(long_side * ratio), long_side)
        markers = markers_at(drc.to_data()["violations"])
        view = View(width=max(width, 900), height=max(height, 700))
        save(render(cell, self.technology, view, markers), self.workspace.path(FILES["png"]))

    def _metrics(self, cell: kdb.Cell, drawn: list[Drawn]) -> dict[str, Any]:
        from itertools import combinations

        from layoutkit.metrics import compute, labelled_gates

        pairs = [
            (a, b)
            for item in drawn
            if item.group.type not in {"single", "resistor_bank"}
            for a, b in combinations([device.id for device in item.group.devices], 2)
        ]
        gates = labelled_gates(cell, self.technology)
        return compute(cell, self.technology, gates, matched_pairs=pairs).to_json()


def _model_names(technology: Technology, circuit: Circuit) -> tuple[Circuit, set[str]]:
    """Return the circuit with the PDK's model names, and which of these are subcircuits."""
    devices, subcircuits = [], set()
    for device in circuit.devices:
        if device.is_mos:
            model = technology.device(device.model).model
        else:
            model = technology.passive(device.model).model_of(device.w * 1e6)
            subcircuits.add(model)
        devices.append(replace(device, model=model))
    return replace(circuit, devices=tuple(devices)), subcircuits


def _cell_name(name: str, layout: kdb.Layout) -> str:
    """Return a name for the top cell that GDS can hold and no module has."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in name)[:60] or "top"
    while layout.has_cell(safe):
        safe += "_top"
    return safe


def _drc_data(report: DrcReport) -> dict[str, Any]:
    data = report.to_data()
    return {
        "passed": data["passed"],
        "total_violations": data["summary"]["total_violations"],
        "rules_checked": data["summary"]["rules_checked"],
        "rules_unchecked": data["rules_unchecked"],
        "violations": data["violations"],
    }


def _routing_data(assembly: Assembly, attempts: int, technology: Technology) -> dict[str, Any]:
    nets = assembly.routing.nets
    return {
        "total_nets": len(nets),
        "routed": sum(net.success for net in nets),
        "failed": [{"net": net.name, "reason": net.reason or "no reason given"} for net in assembly.routing.failed],
        "total_wire_length": technology.to_um(assembly.routing.wire_length),
        "via_count": sum(net.via_count for net in nets),
        "attempts": attempts,
    }


def _placement_data(assembly: Assembly, technology: Technology) -> dict[str, Any]:
    box = assembly.cell.bbox()
    return {
        "rows": [list(row) for row in assembly.placement.rows],
        "width": technology.to_um(box.width()),
        "height": technology.to_um(box.height()),
        "axis_x": technology.to_um(assembly.placement.axis_x),
    }


def _module_data(item: Drawn, technology: Technology) -> dict[str, Any]:
    return {
        "name": item.module.name,
        "type": item.group.type,
        "devices": list(item.module.devices),
        "symmetric": item.module.symmetry_axis_x is not None,
        "centroid_error": technology.to_um(item.module.centroid_error()),
    }
