"""``layout.redraw_device``: a device is drawn again with other sizes, by the tool that drew it before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError
from layoutkit.flow.contents import Contents
from layoutkit.layout.cells import choose_cell
from layoutkit.layout.workspace import Workspace
from layoutkit.tools.module_requests import drawings_of
from layoutkit.tools.passive_requests import create_bipolar_array, create_capacitor, create_diode, create_resistor
from layoutkit.tools.transistor_requests import create_common_centroid_pair, create_current_mirror, create_mos

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
