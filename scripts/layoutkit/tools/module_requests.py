"""From a request to the workspace: a module is drawn, placed in the current layout, checked, saved and described.

What the generator skills share. Micrometres and metres appear here; the generators know database units only.

A module may be drawn again: at its old place, with the parameters of the first drawing unless others are given.

``drawings.json`` of the workspace holds the parameters of every module that a drawing tool drew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.draw.deep_well import DeepWellNets, deep_well_of, isolate
from layoutkit.draw.ring import RingStyle
from layoutkit.errors import DrcViolationError, GeometryError, KlayoutError, listed
from layoutkit.flow.contents import Contents
from layoutkit.flow.editing import Attached, Edited, attached, ends_lost, follow_labels
from layoutkit.layout.history import DRAWINGS
from layoutkit.layout.workspace import Saved, Workspace
from layoutkit.technology.device_kinds import DRAWN_KINDS, KINDS
from layoutkit.tools.current_layout import CellPlace, box_um, place_module, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from layoutkit.draw.module import Module, Pin
    from layoutkit.draw.mos import Transistor
    from layoutkit.technology import DeviceSpec, Technology


_TERMINALS = frozenset(terminal for name in DRAWN_KINDS for terminal in KINDS[name].all_terminals)
SEED_LAYERS = ("active", "poly", "contact", "metal1")


@dataclass(frozen=True)
class Delivered:
    """A module in the current layout."""

    tech: Technology
    module: Module
    trans: kdb.Trans
    place: CellPlace
    layout_path: str
    drc: dict[str, Any] | None
    saved: Saved
    edited: Edited | None = None

    def common_data(self) -> dict[str, Any]:
        """Return the data that every generator answers: cell, box, place, nets, check and warnings. [um]"""
        return {
            "cell_name": self.module.name,
            "bounding_box": box_um(self.module.bbox.transformed(self.trans), self.tech),
            "position": [self.place.x_um, self.place.y_um],
            "orientation": self.place.orientation,
            "geometry_stats": self.geometry_stats(),
            "layout_path": self.layout_path,
            "layout_sha256": self.saved.sha256,
            "technology": self.tech.name,
            "drc": self.drc,
            "warnings": [*self.module.warnings, *self.lost_ends(), *self.saved.warnings],
        }

    def lost_ends(self) -> list[str]:
        """Return which wires ended on the module before it was redrawn and end on nothing now, in words."""
        ends = self.edited.lost_ends if self.edited else []
        return lost_ends_texts(ends, self.tech)

    def point(self, x: float, y: float) -> list[float]:
        """Return a point of the cell as placed. [dbu] -> [um]"""
        # Twice the coordinates are integers: centres of boxes lie at most half a database unit off.
        turns, mirrored, offset = self.trans.angle, self.trans.is_mirror(), self.trans.disp
        moved = kdb.Trans(turns, mirrored, 2 * offset.x, 2 * offset.y)
        doubled = moved * kdb.Point(round(2 * x), round(2 * y))
        return [self.tech.to_um(doubled.x / 2), self.tech.to_um(doubled.y / 2)]

    def pin(self, pin: Pin) -> dict[str, Any]:
        """Return one pin as placed: its net, layer and metal. [um]"""
        return pin_data(self.tech, pin.net, pin.layer, pin.box.transformed(self.trans))

    def net_pins(self) -> list[dict[str, Any]]:
        """Return all pins as placed, from below in the unplaced cell."""
        return [self.pin(pin) for pin in self.module.pins]

    def instances(self) -> list[dict[str, Any]]:
        """Return the units: centre of their channels as placed, orientation within the module. [um]"""
        return [
            {
                "id": instance.id,
                "parent": instance.parent,
                "position": self.point(instance.x, instance.y),
                "orientation": instance.orientation,
            }
            for instance in self.module.instances
        ]

    def centroids(self, devices: Sequence[str] | None = None, digits: int = 6) -> dict[str, Any]:
        """Return the centroid of each device, and the largest distance of two of ``devices`` (default: all). [um]"""
        module = self.module
        return {
            "centroids": {device: self.point(*module.centroid(device)) for device in module.devices},
            "centroid_error_um": round(self.tech.to_um(module.centroid_error(devices)), digits),
        }

    def geometry_stats(self) -> dict[str, int]:
        """Return how many separate polygons the cell has on the layers a reader looks for first."""
        return {
            f"{name}_count": self.tech.region(self.module.cell, layer).merged().count()
            for name, layer in (
                ("active", "active"),
                ("poly", "poly"),
                ("contact", self.tech.contact.layer),
                ("metal1", "metal1"),
                ("local_metal", self.tech.conductors[0].layer),
                ("rail_metal", self.tech.conductors[1].layer),
            )
        }


def pin_data(tech: Technology, net: str, layer: str, box: kdb.Box) -> dict[str, Any]:
    """Return a pin as all tools describe it: its net, conductor and metal. [um]"""
    return {
        "net": net,
        "layer": tech.spec(tech.conductor(layer).layer).gds[0],
        "layer_name": layer,
        "center": [tech.to_um((box.left + box.right) / 2), tech.to_um((box.bottom + box.top) / 2)],
        "box": box_um(box, tech),
    }


def deliver(
    params: Mapping[str, Any], tech: Technology, devices: Sequence[str], draw: Callable[[kdb.Layout, str], Module]
) -> Delivered:
    """Draw a module into the workspace's layout, check it and save; on any error the saved layout stays as it was.

    Args:
        params: ``cell_name``, ``workspace``, ``check``, ``drawn_by`` (which tool drew it), and ``position`` [um]
            and ``orientation``, by default those of the module of this name if there is one.
        tech: Technology to draw in.
        devices: Ids the module holds; a cell of this name with other devices is left alone and the new one is called
            after its devices as well.
        draw: Draws into the layout, with the given cell name.

    Raises:
        LayoutConflictError: If it would overlap another instance.
        DrcViolationError: If the drawn cell violates a rule of ``tech``.
        KlayoutError: If KLayout fails.
        FileError: If the workspace cannot be read or written.
        TechnologyError: If the workspace's layout is drawn in another technology.
    """
    workspace = Workspace(params.get("workspace"))
    with workspace.update_layout(tech.dbu_um, tech, f"draw {', '.join(devices)}") as layout:
        name = free_cell_name(layout, tech, params["cell_name"], devices)
        redrawn = Redrawn.of(layout, tech, workspace, name)
        # what is left open is as before, and for a new module at the origin
        before = CellPlace() if redrawn is None else place_of(redrawn.bbox, redrawn.trans, tech)
        x_um, y_um = params.get("position", (before.x_um, before.y_um))
        place = CellPlace(float(x_um), float(y_um), params.get("orientation", before.orientation))
        try:
            module = draw(layout, name)
            trans = place_module(module, tech, place)
        except RuntimeError as error:  # what KLayout raises
            raise KlayoutError(f"Failed to create cell: {error}") from error
        drc = checked(module, tech) if params["check"] else None
        edited = redrawn.finished(module) if redrawn else None
        record_drawing(workspace, name, params, devices)
    saved = workspace.saved or Saved("")
    return Delivered(tech, module, trans, place, str(workspace.layout_path), drc, saved, edited)


def checked(module: Module, tech: Technology) -> dict[str, Any]:
    """Return the summary of the design rule check of the module's cell.

    Raises:
        DrcViolationError: If a rule is violated; the details hold the report.
    """
    from layoutkit.drc.check import Options, check

    report = check(module.layout, module.cell, tech, Options(max_violations=20))
    if report.violated:
        rules = listed(verdict.rule.id for verdict in report.violated)
        raise DrcViolationError(f"{module.name} as drawn violates {rules}", details=report.summary())
    return report.summary()


def free_cell_name(layout: kdb.Layout, tech: Technology, name: str, devices: Sequence[str]) -> str:
    """Return ``name``, or ``name`` and the device ids where ``layout`` has a cell of that name with other devices."""
    cell = layout.cell(name)
    layer = tech.role("device_text")
    if cell is None or layer is None:
        return name
    held = {shape.text_string for shape in cell.shapes(tech.layer(layout, layer)).each() if shape.is_text()}
    return name if held <= set(devices) else "_".join((name, *devices))


def technology_of(params: Mapping[str, Any], flavour: str) -> Technology:
    """Return the technology that ``params`` name, else the workspace's, with their ``layer_map`` where given.

    Args:
        params: ``technology``, ``workspace`` and ``layer_map``, each optional; the last is layer, role or alias to GDS
            layer or [layer, datatype].
        flavour: Device to be drawn; its well must be mapped.

    Raises:
        TechnologyError: If there is no such technology, layer or device, or the workspace is drawn in another one.
        GeometryError: If the map leaves out a layer that it must name, or puts two layers on one number.
    """
    tech = Workspace(params.get("workspace")).technology(params.get("technology"))
    layer_map = params.get("layer_map")
    if layer_map is None:
        return tech
    well = tech.device(flavour).well
    for name in (*SEED_LAYERS, *([well] if well else [])):
        if not any(tech.resolve(given) == tech.resolve(name) for given in layer_map):
            raise GeometryError(f"Missing layer mapping for: {name}", details={"param_name": "layer_map"})
    numbers = {name: value if isinstance(value, int) else (value[0], value[1]) for name, value in layer_map.items()}
    mapped = tech.with_layer_map(numbers)
    owners: dict[tuple[int, int], str] = {}
    for name, layer in sorted(mapped.layers.items()):
        other = owners.setdefault(layer.gds, name)
        if other != name:
            raise GeometryError(
                f"layer_map puts {other} and {name} both on GDS layer {layer.gds[0]}/{layer.gds[1]}; "
                "give each a number of its own",
                details={"param_name": "layer_map"},
            )
    return mapped


def ring_style(params: Mapping[str, Any]) -> RingStyle:
    """Return which taps the request wants around its devices.

    Raises:
        GeometryError: If its open sides or its outer net do not fit the ring.
    """
    return RingStyle(params["ring"], tuple(params["ring_open_sides"]), params.get("ring_outer_net", ""))


def in_deep_well(params: Mapping[str, Any], tech: Technology, module: Module, device: DeviceSpec) -> Module:
    """Return ``module`` in a deep well if the request wants its body isolated, else as it is.

    Raises:
        GeometryError: If the request names nets of a deep well and none is drawn.
        UnsupportedOperationError: If ``tech`` has no deep well for ``device``.
    """
    named = [name for name in ("deep_well_net", "substrate_net") if name in params]
    if not params.get("isolated", False):
        if named:
            raise GeometryError(
                f"{', '.join(named)} belong to a deep well; set isolated as well, or leave them out",
                details={"param_name": named[0]},
            )
        return module
    if device.well is not None and "deep_well_net" in params and deep_well_of(tech, device):
        raise GeometryError(
            f"leave deep_well_net out: the deep well of {device.name} has the net of its n well",
            details={"param_name": "deep_well_net"},
        )
    nets = DeepWellNets(params.get("deep_well_net", "VDD"), params.get("substrate_net", "VSS"))
    return isolate(tech, module, device, nets, labels=params["labels"])


def known_nets(params: Mapping[str, Any], device_id: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """Return terminal to net: as ``given``, else as the workspace's circuit has the device, else nothing."""
    devices = Workspace(params.get("workspace")).circuit()["devices"]
    terminals = next((each.get("terminals") for each in devices if each["id"] == device_id), None) or {}
    return {**{name: str(net) for name, net in terminals.items() if name in _TERMINALS}, **(given or {})}


def planned_figures(module: Module, tech: Technology) -> dict[str, Any]:
    """Return how unequal the devices of a matched group are by its plan, as JSON data."""
    found = module.figures
    if found is None:
        raise GeometryError(f"module {module.name} is no matched group")
    return {
        "centroid_error_x_um": tech.to_um(found.centroid_error_x),
        "centroid_error_y_um": tech.to_um(found.centroid_error_y),
        "junctions": round(found.junctions, 6),
        "stress_spread": round(found.stress_spread, 6),
        "dispersion": round(found.dispersion, 4),
        "one_direction": found.one_direction,
    }


def drawn_size(device: Transistor, delivered: Delivered) -> dict[str, Any]:
    """Return the size of ``device`` as its drawn channels have it, halved and rounded fingers included. [m, um]"""
    tech = delivered.tech
    channels = [gate.box for gate in delivered.module.gates if gate.device == device.id]
    return {
        "w": round(sum(box.height() for box in channels) / device.m * tech.dbu_um * 1e-6, 12),
        "l": round(channels[0].width() * tech.dbu_um * 1e-6, 12),
        "nf": len(channels) // device.m,
        "m": device.m,
        "finger_width_um": tech.to_um(channels[0].height()),
        "length_um": tech.to_um(channels[0].width()),
    }


def terminal_pins(delivered: Delivered, device: Transistor) -> dict[str, Any]:
    """Return one pin for each of G, D, S and B; of a net with several, the gate takes the last, others the first."""
    by_net: dict[str, list[Pin]] = {}
    for pin in delivered.module.pins:
        by_net.setdefault(pin.net, []).append(pin)
    chosen: Iterable[tuple[str, Pin]] = (
        ("G", by_net[device.gate][-1]),
        ("D", by_net[device.drain][0]),
        ("S", by_net[device.source][0]),
        ("B", by_net[device.bulk][0]),
    )
    return {terminal: delivered.pin(pin) for terminal, pin in chosen}


MAX_LISTED = 6
NOT_KEPT = ("workspace", "technology", "position", "orientation", "drawn_by")


@dataclass(frozen=True)
class Redrawn:
    """A module of the layout that is about to be drawn again.

    Attributes:
        name: Its cell.
        parent: The cell that holds it.
        tech: The process.
        bbox: Its bounding box before, in its own coordinates. [dbu]
        trans: Its place before.
        attached: What hangs on it.
    """

    name: str
    parent: kdb.Cell
    tech: Technology
    bbox: kdb.Box
    trans: kdb.Trans
    attached: Attached

    @classmethod
    def of(cls, layout: kdb.Layout, tech: Technology, workspace: Workspace, name: str) -> Redrawn | None:
        """Return the module that the cell ``name`` draws; None where the layout places no such cell."""
        cell = layout.cell(name)
        use = None if cell is None else next(iter(cell.each_parent_inst()), None)
        if use is None:
            return None
        parent = layout.cell(use.parent_cell_index())
        contents = Contents.of(parent, tech, workspace)
        module = contents.module(name)
        return cls(name, parent, tech, cell.bbox(), module.instance.trans, attached(contents, module))

    def finished(self, module: Module) -> Edited:
        """Move labels to the new pins, and return which wires lost their end."""
        contents = Contents(self.parent, self.tech)
        held = contents.module(self.name)
        edited = ends_lost(self.attached, contents, held)
        pins = [(pin.net, pin.layer, pin.box.transformed(held.instance.trans)) for pin in module.pins]
        edited.labels = follow_labels(contents, held, self.attached, pins)
        return edited


def lost_ends_texts(ends: Sequence[tuple[str, str, kdb.Point]], tech: Technology) -> list[str]:
    """Return one sentence on wires that lost their end, with the places; none without such wires."""
    if not ends:
        return []
    um, more = tech.to_um, len(ends) - MAX_LISTED
    listed = [f"{net or 'an unnamed net'} on {layer} at ({um(p.x):g}, {um(p.y):g}) um" for net, layer, p in ends]
    text = f"wires end on nothing now: {'; '.join(listed[:MAX_LISTED])}{f' and {more} more' if more > 0 else ''}"
    return [f"{text}; delete them with layout.unroute_net and route the nets again"]


def record_drawing(workspace: Workspace, name: str, params: Mapping[str, Any], devices: Sequence[str]) -> None:
    """Record how a module was drawn; the caller holds the lock."""
    drawings = drawings_of(workspace)
    kept = {key: value for key, value in params.items() if key not in NOT_KEPT}
    drawings[name] = {"drawn_by": params["drawn_by"], "devices": list(devices), "params": kept}
    workspace.write_json(DRAWINGS, drawings)


def drawings_of(workspace: Workspace) -> dict[str, Any]:
    """Return how each module was drawn, by the name of its cell; none where that is not recorded."""
    if not workspace.path(DRAWINGS).is_file():
        return {}
    found = workspace.read_json(DRAWINGS)
    return found if isinstance(found, dict) else {}
