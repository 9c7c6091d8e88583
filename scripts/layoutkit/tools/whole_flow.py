"""From netlist to layout.

``flow.build_layout``: a netlist becomes a placed, routed and checked layout.

``layout.place_modules``: a netlist becomes placed modules in the workspace, with the router's request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.ranked_names import plain
from layoutkit.circuit.replaced_devices import replaced_data
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit, technology_of
from layoutkit.flow.modules import changed_fingers
from layoutkit.flow.placing import PlacedModules, matched_pairs, placement_data, shape_warnings
from layoutkit.flow.shared_cells import hierarchy_data, place_design, placed_design
from layoutkit.flow.summary import constraints_data, faults, modules_data, summary
from layoutkit.layout import files
from layoutkit.layout.workspace import Saved, Workspace
from layoutkit.tools.current_layout import box_um, place_of
from layoutkit.tools.routing_request import request_data

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from layoutkit.circuit.circuit import Circuit


def build(params: Mapping[str, Any], progress: Callable[[str], None]) -> tuple[dict[str, Any], list[str]]:
    """Return the report of the whole job and one sentence for each fault of the layout, none if it is clean.

    Args:
        params: Those of ``flow.build_layout``.
        progress: Receives a line as each stage begins, and the summary of the report.

    Raises:
        LayoutkitError: If the netlist cannot be read, mapped or drawn; nothing is written then.
    """
    report = build_layout(LayoutRequest.of(params), progress=progress)
    progress(summary(report))
    return report, faults(report)


FILES = {"placed_path": "placed.gds", "routing_path": "routing.json"}


def place_circuit(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return modules, placement and the router's request; layout and circuit are in the workspace.

    The layout is written twice: as the current layout, and as a file of its own from which routing can start again.
    The router's request is a file too.

    Raises:
        LayoutkitError: If the netlist or the constraints cannot be read, or a device cannot be drawn; nothing is
            written then.
    """
    request = LayoutRequest.of(params)
    workspace = Workspace(request.workspace)
    technology = technology_of(request, workspace)
    circuit, warnings = read_circuit(request, technology)
    design, notes = make_design(request, technology, circuit)
    tried = place_design(design, request)
    shape = shape_warnings(tried.placed, tried.placed.cell, request)
    design = placed_design(design, request, tried)
    placed, routing = tried.placed, request_data(tried.job)
    saved = _write(workspace, placed, circuit, routing)
    constraints, ignored = constraints_data(design, tried, tried.routes)
    answer: dict[str, Any] = {
        "layout_path": str(workspace.layout_path),
        "layout_sha256": saved.sha256,
        "circuit_path": str(workspace.circuit_path),
        **{kind: str(workspace.path(name)) for kind, name in FILES.items()},
        "cell_name": placed.cell.name,
        "technology": technology.name,
        "replaced_devices": replaced_data(circuit, technology),
        "modules": modules_data(placed.flat, technology, placed.cell),
        "matched_pairs": [list(pair) for pair in matched_pairs(placed.flat)],
        "hierarchy": hierarchy_data(design, placed.layout),
        "placement": {**placement_data(tried, placed.cell), "instances": _instances(placed)},
        "constraints": constraints,
        **routing,
        "warnings": [
            *warnings,
            *notes,
            *tried.warnings,
            *changed_fingers(placed.flat.drawn),
            *shape,
            *ignored,
            *saved.warnings,
        ],
    }
    return plain(answer)


def _write(workspace: Workspace, placed: PlacedModules, circuit: Circuit, routing: Mapping[str, Any]) -> Saved:
    with workspace.lock():
        saved = workspace.save_layout(placed.layout, placed.technology, "layout.place_modules")
        stale = workspace.save_circuit({"circuit": circuit.to_json()})
        workspace.write_json(FILES["routing_path"], {"cell_name": placed.cell.name, **routing})
        files.write_layout(placed.layout, workspace.path(FILES["placed_path"]))
    return replace(saved, warnings=(*saved.warnings, *stale))


def _instances(placed: PlacedModules) -> list[dict[str, Any]]:
    """Return where each module lies, from the lowest to the highest. [um]"""
    technology, modules, found = placed.technology, placed.modules, []
    for name, place in placed.placement.placed.items():
        box, trans = modules[name].bbox, placed.trans[name]
        found.append(
            {
                "module": name,
                "position": [technology.to_um(place.x), technology.to_um(place.y)],
                "orientation": place_of(box, trans, technology).orientation,
                "bounding_box": box_um(box.transformed(trans), technology),
            }
        )
    return found
