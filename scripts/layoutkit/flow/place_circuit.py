"""One step of the job: a netlist becomes placed modules in the workspace, with what the router is to be asked next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.model import Circuit
    from layoutkit.flow.design import LayoutRequest
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.workspace import Workspace

# Extra room between rows, in track pitches, where none is asked for. One attempt must do, so it is more than the
# first of the whole job, which tries again.
ROW_GAP_TRACKS = 8


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

    Raises:
        LayoutkitError: If the netlist cannot be read, mapped or drawn; nothing is written then.
    """
    from layoutkit.flow.design import make_design, read_circuit
    from layoutkit.flow.placing import label_ports, module_data, place_modules, placement_data
    from layoutkit.flow.wiring import routing_request, track_pitch
    from layoutkit.place import PlacementOptions
    from layoutkit.technology import load
    from layoutkit.workspace import Workspace

    workspace = Workspace(request.layout.workspace)
    technology = load(request.layout.technology)
    circuit, warnings = read_circuit(request.layout, technology)
    _check_nets(request.priorities, circuit)
    row_gap = ROW_GAP_TRACKS * track_pitch(technology)
    if request.row_gap_um is not None:
        row_gap = technology.snap_up(technology.to_dbu(request.row_gap_um))
    design, notes = make_design(technology, circuit, request.layout.dummies)
    placed = place_modules(design, PlacementOptions(row_gap=row_gap, seed=request.layout.seed))
    warnings = [*warnings, *notes, *(text for item in placed.drawn for text in item.module.warnings)]
    warnings += label_ports(placed, circuit.ports)
    _write(workspace, placed, circuit)
    placement = {**placement_data(placed), "row_gap": technology.to_um(row_gap), "instances": _instances(placed)}
    return {
        "layout_path": str(workspace.layout_path),
        "circuit_path": str(workspace.circuit_path),
        "cell_name": placed.cell.name,
        "technology": technology.name,
        "modules": [module_data(item, technology) for item in placed.drawn],
        "placement": placement,
        **routing_request(placed, design.supplies, request.priorities),
        "warnings": warnings,
    }


def _check_nets(priorities: Mapping[str, int], circuit: Circuit) -> None:
    unknown = sorted(set(priorities) - set(circuit.nets))
    if unknown:
        raise LayoutkitError(
            f"net_priorities names nets that the circuit lacks: {', '.join(unknown)}; "
            f"it has: {', '.join(sorted(circuit.nets))}",
            details={"param_name": "net_priorities", "provided_value": unknown},
        )


def _write(workspace: Workspace, placed: PlacedModules, circuit: Circuit) -> None:
    from layoutkit import files

    workspace.create()
    with workspace.lock():
        files.write_layout(placed.layout, workspace.layout_path)
        workspace.write_json("circuit.json", {"circuit": circuit.to_json()})


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
