"""Modules that are drawn again: at their old place, with the parameters of the first drawing unless others are given.

``drawings.json`` of the workspace holds the parameters of every module that a drawing tool drew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError
from layoutkit.flow.contents import Contents
from layoutkit.flow.editing import Attached, Edited, attached, ends_lost, follow_labels
from layoutkit.layout.cells import choose_cell
from layoutkit.layout.history import DRAWINGS
from layoutkit.layout.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import Technology

MAX_LISTED = 6
NOT_KEPT = ("workspace", "technology", "position", "orientation", "drawn_by")
SIZES = ("w", "l", "nf", "m", "r", "c", "segments", "columns")


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


def redraw(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a module again with other sizes of one device; return the data of the tool that draws it.

    Raises:
        LayoutkitError: If no drawing tool drew the device in this workspace, no size is given, or the module cannot be
            drawn with it.
    """
    workspace = Workspace(params.get("workspace"))
    wanted, sizes = params["device_id"], {name: params[name] for name in SIZES if name in params}
    if not sizes:
        raise LayoutkitError(
            f"no new size of {wanted} is given; give one or more of {', '.join(SIZES)}",
            details={"param_name": "w", "allowed": list(SIZES)},
        )
    drawings = drawings_of(workspace)
    found = [entry for entry in drawings.values() if wanted in entry["devices"]]
    if not found:
        layout = workspace.read_layout()
        module = Contents.of(choose_cell(layout), workspace.technology(None), workspace).module(wanted)
        raise LayoutkitError(
            f"{wanted} lies in module {module.name}, which flow.build_layout or another program drew; to change its "
            "size, give flow.build_layout the netlist with the new size and from: place, which keeps the other places",
            details={"param_name": "device_id", "provided_value": wanted, "module": module.name},
        )
    entry = found[-1]
    values = _with_sizes({**entry["params"], **_shared(params)}, wanted, sizes)
    return _creators()[entry["drawn_by"]](values)


def _shared(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: params[name] for name in ("workspace", "check") if name in params}


def _with_sizes(values: dict[str, Any], device: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a drawing tool with other sizes of one of its devices.

    A value that another one determines is dropped: the length of a resistor with ``r``, the sides of a capacitor with
    ``c``, and the reverse.
    """
    determined = {"r": ("l",), "c": ("w", "l"), "l": ("r", "c"), "w": ("c",)}
    dropped = {name for given in sizes for name in determined.get(given, ())} - set(sizes)

    def changed(entry: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in entry.items() if name not in dropped}
        return {**kept, **sizes}

    for name in ("device_a", "device_b"):
        if isinstance(values.get(name), dict) and values[name].get("device_id") == device:
            return {**values, name: changed(values[name])}
    for name in ("devices", "more_devices"):
        entries = values.get(name, [])
        if any(each.get("device_id") == device for each in entries):
            return {**values, name: [changed(e) if e.get("device_id") == device else e for e in entries]}
    return changed(values)


def _creators() -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
    from layoutkit.tools.bipolar_request import create_bipolar_array
    from layoutkit.tools.mirror_request import create_current_mirror
    from layoutkit.tools.pair_request import create_common_centroid_pair
    from layoutkit.tools.passive_requests import create_capacitor, create_diode, create_resistor
    from layoutkit.tools.transistor_requests import create_mos

    return {
        "nmos": lambda values: create_mos("nmos", values),
        "pmos": lambda values: create_mos("pmos", values),
        "pair": create_common_centroid_pair,
        "mirror": create_current_mirror,
        "resistor": create_resistor,
        "capacitor": create_capacitor,
        "diode": create_diode,
        "bipolar": create_bipolar_array,
    }
