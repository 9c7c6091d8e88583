"""One step of the job: a netlist becomes placed modules in the workspace, with what the router is to be asked next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.flow.design import LayoutRequest
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.layout.workspace import Saved, Workspace

# Extra room between rows, in track pitches, where none is asked for. One attempt must do, so it is more than the
# first of the whole job, which tries again.
ROW_GAP_TRACKS = 4
FILES = {"placed_path": "placed.gds", "routing_path": "routing.json"}


@dataclass(frozen=True)
class PlaceRequest:
    """What to place, and how.

    Attributes:
        layout: What to lay out.
        row_gap_um: Room between rows beyond what the rules ask; None for ``ROW_GAP_TRACKS`` tracks. [um]
        priorities: Net to the priority it has in routing, where it is not the usual one.
    """

    layout: LayoutRequest
    row_gap_um: float | None = None
    priorities: Mapping[str, int] = field(default_factory=dict)


def place_circuit(request: PlaceRequest) -> dict[str, Any]:
    """Return modules, placement and the router's request; layout and circuit are in the workspace.

    The layout is written twice: as the current layout, and as a file of its own from which routing can start again.
    The router's request is a file too.

    Raises:
        LayoutkitError: If the netlist cannot be read, mapped or drawn; nothing is written then.
    """
    from layoutkit.flow.design import make_design, read_circuit
    from layoutkit.flow.placing import label_ports, matched_pairs, module_data, place_modules, placement_data
    from layoutkit.flow.wiring import routing_request, track_pitch
    from layoutkit.layout.workspace import Workspace
    from layoutkit.place import PlacementOptions

    workspace = Workspace(request.layout.workspace)
    technology = workspace.technology(request.layout.technology)
    circuit, warnings = read_circuit(request.layout, technology)
    _check_nets(request.priorities, circuit)
    row_gap = ROW_GAP_TRACKS * track_pitch(technology)
    if request.row_gap_um is not None:
        row_gap = technology.snap_up(technology.to_dbu(request.row_gap_um))
    design, notes = make_design(technology, circuit, request.layout.dummies)
    placed = place_modules(design, PlacementOptions(row_gap=row_gap, seed=request.layout.seed))
    warnings = [*warnings, *notes, *(text for item in placed.drawn for text in item.module.warnings)]
    warnings += label_ports(placed, circuit)
    routing = routing_request(placed, design.supplies, request.priorities)
    saved = _write(workspace, placed, circuit, routing)
    warnings += saved.warnings
    placement = {**placement_data(placed), "row_gap": technology.to_um(row_gap), "instances": _instances(placed)}
    return {
        "layout_path": str(workspace.layout_path),
        "layout_sha256": saved.sha256,
        "circuit_path": str(workspace.circuit_path),
        **{kind: str(workspace.path(name)) for kind, name in FILES.items()},
        "cell_name": placed.cell.name,
        "technology": technology.name,
        "modules": [module_data(item, technology) for item in placed.drawn],
        "matched_pairs": [list(pair) for pair in matched_pairs(placed)],
        "placement": placement,
        **routing,
        "warnings": warnings,
    }


def _check_nets(priorities: Mapping[str, int], circuit: Circuit) -> None:
    nets = {*circuit.nets, *circuit.ports}
    unknown = sorted(set(priorities) - nets)
    if unknown:
        has = ", ".join(sorted(nets))
        raise LayoutkitError(
            f"net_priorities names nets that the circuit lacks: {', '.join(unknown)}; it has: {has}",
            details={"param_name": "net_priorities", "provided_value": unknown},
        )


def _write(workspace: Workspace, placed: PlacedModules, circuit: Circuit, routing: Mapping[str, Any]) -> Saved:
    from layoutkit.layout import files

    with workspace.lock():
        saved = workspace.save_layout(placed.layout, placed.technology)
        stale = workspace.save_circuit({"circuit": circuit.to_json()})
        workspace.write_json(FILES["routing_path"], {"cell_name": placed.cell.name, **routing})
        files.write_layout(placed.layout, workspace.path(FILES["placed_path"]))
    return replace(saved, warnings=(*saved.warnings, *stale))


def _instances(placed: PlacedModules) -> list[dict[str, Any]]:
    """Return where each module lies, rows from below, left to right. [um]"""
    from layoutkit.flow.wiring import box_data

    technology, modules, found = placed.technology, placed.modules, []
    for name in [name for row in placed.placement.rows for name in row]:
        place = placed.placement.placed[name]
        found.append(
            {
                "module": name,
                "position": [technology.to_um(place.x), technology.to_um(place.y)],
                "orientation": "MY" if place.mirrored else "R0",
                "bounding_box": box_data(technology, placed.place_of(modules[name], modules[name].bbox)),
            }
        )
    return found
