"""The tools of the skill ``layout-edit``: list, move, delete, unroute, redraw, undo."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import GeometryError, LayoutConflictError, LayoutkitError
from layoutkit.extract.connectivity import labelled_gates
from layoutkit.flow.contents import Contents, HeldModule
from layoutkit.flow.editing import Edited, delete_module, delete_wires, metal_of_nets, move_module
from layoutkit.layout.cells import choose_cell
from layoutkit.layout.reports import sha256_of
from layoutkit.layout.workspace import Saved, Workspace
from layoutkit.tools.current_layout import CellPlace, box_um, place_of, transformation
from layoutkit.tools.module_requests import drawings_of, lost_ends_texts, pin_data
from layoutkit.tools.passive_requests import create_bipolar_array, create_capacitor, create_diode, create_resistor
from layoutkit.tools.transistor_requests import create_common_centroid_pair, create_current_mirror, create_mos

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from layoutkit.technology import Technology

MAX_PINS = 40  # of one net, in a list
SIZES = ("w", "l", "nf", "m", "r", "c", "segments", "columns")
_OF_TRANSISTOR = ("w", "l", "nf", "m")
DRAWN_BY: dict[str, tuple[Callable[[Mapping[str, Any]], dict[str, Any]], tuple[str, ...]]] = {
    "nmos": (partial(create_mos, "nmos"), _OF_TRANSISTOR),
    "pmos": (partial(create_mos, "pmos"), _OF_TRANSISTOR),
    "pair": (create_common_centroid_pair, _OF_TRANSISTOR),
    "mirror": (create_current_mirror, _OF_TRANSISTOR),
    "resistor": (create_resistor, ("w", "l", "r", "m", "segments")),
    "capacitor": (create_capacitor, ("w", "l", "c", "m", "columns")),
    "diode": (create_diode, ("w", "l", "m")),
    "bipolar": (create_bipolar_array, ("w", "l", "m")),
}
"""What draws each kind of device, and the sizes that it takes."""
ANSWER = (
    *("cell_name", "position", "orientation", "bounding_box", "drawn", "drc", "technology", "layout_path"),
    *("layout_sha256", "warnings"),
)


class _Edit:
    """The layout of a workspace, to be looked at or changed."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params
        self.workspace = Workspace(params.get("workspace"))
        self.workspace.read_layout()  # that there is one is reported first
        self.technology = self.workspace.technology(params.get("technology"))

    def contents(self, layout: kdb.Layout) -> Contents:
        """Return the contents of the chosen cell."""
        return Contents.of(choose_cell(layout, self.params.get("cell_name")), self.technology, self.workspace)

    def changing(self, operation: str) -> AbstractContextManager[kdb.Layout]:
        """Return the layout, to be changed in a block and saved at its end."""
        return self.workspace.update_layout(self.technology.dbu_um, self.technology, operation)

    def answer(self, cell_name: str, edited: Edited | None, warnings: list[str]) -> dict[str, Any]:
        """Return what all editing tools answer."""
        saved = self.workspace.saved or Saved("")
        what = edited.to_json(self.technology.to_um) if edited else {}
        lost = lost_ends_texts(edited.lost_ends, self.technology) if edited else []
        return {
            **what,
            "cell_name": cell_name,
            "technology": self.technology.name,
            "layout_path": str(self.workspace.layout_path),
            "layout_sha256": saved.sha256,
            "warnings": [*warnings, *lost, *saved.warnings],
        }


def list_contents(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return modules, devices, nets with pins, labels and wires of the layout, and what can be undone. [um]

    Raises:
        LayoutkitError: If there is no layout, or no such device or net.
    """
    edit = _Edit(params)
    layout = edit.workspace.read_layout()
    contents = edit.contents(layout)
    modules, names = contents.modules, contents.net_names
    if "device_id" in params:
        modules = [contents.module(params["device_id"])]
        held = {module.name for module in modules}
        names = sorted({pin.net for pin in contents.pins if pin.module in held})
    if "net_name" in params:
        contents.pieces_of(params["net_name"])
        names = [params["net_name"]]
        held = {pin.module for pin in contents.pins if pin.net in names}
        modules = [module for module in modules if module.name in held]
    gates = labelled_gates(contents.cell, edit.technology)
    return {
        "cell_name": contents.cell.name,
        "technology": edit.technology.name,
        "bounding_box": box_um(contents.cell.bbox(), edit.technology),
        "modules": [_module(module, edit.technology) for module in modules],
        "devices": [
            {"device_id": device, "module": module.name, **_gates(gates.get(device, []), edit.technology)}
            for module in modules
            for device in module.devices
        ],
        "nets": [_net(contents, name) for name in names],
        "operations": edit.workspace.operations(),
        "layout_path": str(edit.workspace.layout_path),
        "layout_sha256": sha256_of(edit.workspace.layout_path) or "",
        "warnings": edit.workspace.stale_reports(),
    }


def _module(module: HeldModule, tech: Technology) -> dict[str, Any]:
    instance = module.instance
    place = place_of(instance.cell.bbox(), instance.trans, tech)
    box = box_um(module.box, tech)
    return {
        "name": module.name,
        "devices": list(module.devices),
        "position": [box["x"], box["y"]],
        "orientation": place.orientation,
        "bounding_box": box,
    }


def _gates(boxes: list[kdb.Box], tech: Technology) -> dict[str, Any]:
    """Return how many channels a device has and the box around them."""
    return {"gates": len(boxes), **({"box": box_um(sum(boxes, kdb.Box()), tech)} if boxes else {})}


def _net(contents: Contents, name: str) -> dict[str, Any]:
    tech = contents.technology
    pins = [pin for pin in contents.pins if pin.net == name]
    pieces = contents.pieces_of(name) if any(name in names for _, names in contents.named.values()) else []
    wires: dict[str, int] = {}
    box = kdb.Box()
    for part, layer in contents.wire_layers.items():
        inside = contents.wires(layer).inside(metal_of_nets(contents, pieces, part))
        if not inside.is_empty():
            wires[part] = inside.count()
            box += inside.bbox()
    return {
        "net_name": name,
        "pieces": len(pieces),
        "pins": [{**pin_data(tech, pin.net, pin.layer, pin.box), "module": pin.module} for pin in pins[:MAX_PINS]],
        "pin_count": len(pins),
        "labels": [
            {"layer": label.layer, "x": tech.to_um(label.point.x), "y": tech.to_um(label.point.y)}
            for label in contents.labels
            if label.net == name
        ],
        "wires": wires,
        **({} if box.empty() else {"wires_box": box_um(box, tech)}),
    }


def move_device(params: Mapping[str, Any]) -> dict[str, Any]:
    """Move the module of a device to another place; return where it lies and which wires lost their end. [um]

    Raises:
        LayoutkitError: If there is no such device, the place is off the grid, or another module lies there.
    """
    edit = _Edit(params)
    if not {"position", "by", "orientation"} & params.keys():
        raise LayoutkitError(
            "give either position (the new lower left corner) or by (how far to move), or an orientation",
            details={"param_name": "position"},
        )
    with edit.changing(f"move {params['device_id']}") as layout:
        contents = edit.contents(layout)
        module = _only_one(contents, params["device_id"])
        place = _new_place(module, params, edit.technology)
        trans = transformation(module.instance.cell.bbox(), edit.technology, place)
        _check_free(contents, module, trans)
        before = _joined_nets(contents)
        edited = move_module(contents, module, trans)
        cell_name = contents.cell.name
        moved = _module(module, edit.technology)
        joined = _joined_nets(edit.contents(layout)) - before
    warnings = _together(module, params["device_id"])
    warnings += [
        f"nets {names} are joined now; choose another place, or delete their wires with layout.unroute_net and route "
        "them again"
        for names in sorted(joined)
    ]
    return {"module": moved, **edit.answer(cell_name, edited, warnings)}


def _joined_nets(contents: Contents) -> set[str]:
    """Return the names of each piece of metal that has several."""
    return {", ".join(sorted(names)) for _, names in contents.named.values() if len(names) > 1}


def _only_one(contents: Contents, name: str) -> HeldModule:
    module = contents.module(name)
    if module.instance.is_regular_array():
        raise LayoutkitError(
            f"{module.name} is an array of {len(module.devices)} devices in one instance, which cannot be edited; "
            "change the netlist or the constraints, and build again",
            code="UNSUPPORTED_OPERATION",
            details={"param_name": "device_id", "provided_value": name},
        )
    return module


def _together(module: HeldModule, asked: str) -> list[str]:
    """Return a warning if the request moved one device of a module that holds several."""
    others = [device for device in module.devices if device != asked]
    if asked == module.name or not others:
        return []
    why = f"{asked} is drawn together with {', '.join(others)} and cannot be moved alone"
    return [f"{why}: the whole module {module.name} was moved"]


def _new_place(module: HeldModule, params: Mapping[str, Any], tech: Technology) -> CellPlace:
    before = place_of(module.instance.cell.bbox(), module.instance.trans, tech)
    x, y = params.get("position", (before.x_um, before.y_um))
    dx, dy = params.get("by", (0, 0))
    return CellPlace(round(x + dx, 9), round(y + dy, 9), params.get("orientation", before.orientation))


def _check_free(contents: Contents, module: HeldModule, trans: kdb.Trans) -> None:
    """Refuse a place where another module with devices lies; a ring of taps around modules may enclose it.

    Raises:
        LayoutConflictError: If there is one.
    """
    change = trans * module.instance.trans.inverted()
    boxes = {each.bbox(): each.bbox().transformed(change) for each in module.instances}
    taken = [
        other
        for other in contents.modules
        if other.instance != module.instance
        and other.devices
        and any(other.box.overlaps(box) for box in boxes.values())
        and not any(other.box.overlaps(box) for box in boxes)  # such as a capacitor, which lies over it already
    ]
    if taken:
        raise LayoutConflictError(
            f"{module.name} would overlap {', '.join(other.name for other in taken)} there; choose another place",
            details={
                "bounding_box": box_um(boxes[module.box], contents.technology),
                "overlaps": [{"module": o.name, "bounding_box": box_um(o.box, contents.technology)} for o in taken],
            },
        )


def delete_device(params: Mapping[str, Any]) -> dict[str, Any]:
    """Delete the module of a device with its own labels and stubs; return which wires lost their end. [um]

    Raises:
        LayoutkitError: If there is no such device, or it is drawn together with others.
    """
    edit = _Edit(params)
    asked = params["device_id"]
    with edit.changing(f"delete {asked}") as layout:
        contents = edit.contents(layout)
        module = _only_one(contents, asked)
        if asked != module.name and len(module.devices) > 1:
            raise LayoutkitError(
                f"{asked} is drawn together with {', '.join(d for d in module.devices if d != asked)} and cannot be "
                f"deleted alone; to delete all of them, give device_id '{module.name}'",
                details={"param_name": "device_id", "provided_value": asked, "module": module.name},
            )
        devices, cell_name = list(module.devices), contents.cell.name
        edited = delete_module(contents, module)
    return {"deleted": devices, **edit.answer(cell_name, edited, [])}


def unroute_net(params: Mapping[str, Any]) -> dict[str, Any]:
    """Delete the wires of nets; pins, ports and rails stay.

    Raises:
        LayoutkitError: If no pin or label has the name of a net.
    """
    edit = _Edit(params)
    names = list(dict.fromkeys(params["net_names"])) if "net_names" in params else [params["net_name"]]
    nets, warnings = [], []
    with edit.changing(f"unroute {', '.join(names)}") as layout:
        contents = edit.contents(layout)
        for name in names:
            contents.pieces_of(name)
        for name in names:
            contents = edit.contents(layout)
            count, labels, others = delete_wires(contents, name)
            nets.append({"net_name": name, "shapes": count, "labels": sorted(labels)})
            if others:
                warnings.append(
                    f"net {name} was joined with {', '.join(sorted(others))}: their wires were deleted, too"
                )
            if not count:
                warnings.append(f"net {name} had no wires")
        cell_name = contents.cell.name
    return {"nets": nets, **edit.answer(cell_name, None, warnings)}


def undo(params: Mapping[str, Any]) -> dict[str, Any]:
    """Undo the last operations on the workspace; return their names and what else can be undone.

    Raises:
        LayoutkitError: If fewer operations are recorded, or another program changed the layout since.
    """
    workspace = Workspace(params.get("workspace"))
    if not workspace.directory.is_dir():
        raise GeometryError(f"there is no workspace {workspace.directory}", details={"param_name": "workspace"})
    undone, warnings = workspace.undo(params["steps"], discard=params["discard_external"])
    return {
        "undone": undone,
        "operations": workspace.operations(),
        "layout_path": str(workspace.layout_path),
        "layout_sha256": sha256_of(workspace.layout_path) or "",
        "warnings": warnings,
    }


def redraw(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a module again with other sizes of one device; return where it lies, its sizes and the check.

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
    draw, taken = DRAWN_BY[entry["drawn_by"]]
    foreign = [name for name in sizes if name not in taken]
    if foreign:
        raise LayoutkitError(
            f"{wanted} has no {' and no '.join(foreign)}; its sizes are {', '.join(taken)}",
            details={"param_name": foreign[0], "provided_value": sizes[foreign[0]], "allowed": list(taken)},
        )
    shared = {name: params[name] for name in ("workspace", "check") if name in params}
    answer = draw(_with_sizes({**entry["params"], **shared}, wanted, sizes))
    return {"device_id": wanted, **{name: answer[name] for name in ANSWER}}


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
