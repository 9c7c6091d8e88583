"""``layout.create_common_centroid_pair``: two or more matched transistors with a common centroid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.draw.pair import PairSpec, draw_pair
from layoutkit.errors import GeometryError
from layoutkit.extract.mirror_image import mirror_image
from layoutkit.tools.module_requests import (
    deliver,
    drawn_size,
    in_deep_well,
    known_nets,
    planned_figures,
    ring_style,
    technology_of,
)
from layoutkit.tools.transistor_requests import requested_transistor, with_dividing_fingers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.technology import Technology
    from layoutkit.tools.module_requests import Delivered


def create_common_centroid_pair(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw matched transistors into the workspace's layout and return the data of the tool.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    sizes = [params["device_a"], params["device_b"], *params["more_devices"]]
    types = [device["type"] for device in sizes]
    if len(set(types)) > 1:
        raise GeometryError("Devices must be same type for matching", details={"types": types})
    tech = technology_of(params, params.get("device") or types[0])
    devices = _devices(params, tech, sizes)
    first, second, *others = devices
    spacing, ring = tech.to_dbu(params["spacing"]), ring_style(params)

    def draw(layout: kdb.Layout, name: str) -> Module:
        spec = PairSpec(
            name,
            first,
            second,
            arrangement=params["arrangement"],
            axis=params["symmetry_axis"],
            spacing=spacing,
            interdigitate=params["interdigitate"],
            dummies=params["dummies"],
            labels=params["labels"],
            ring=ring,
            others=tuple(others),
        )
        return in_deep_well(params, tech, draw_pair(layout, tech, spec), first.spec)

    delivered = deliver({**params, "drawn_by": "pair"}, tech, [device.id for device in devices], draw)
    module = delivered.module
    return {
        **delivered.common_data(),
        "arrangement": params["arrangement"],
        "pattern": module.pattern,
        "figures": planned_figures(module, tech),
        "device_instances": delivered.instances(),
        "symmetry_info": _symmetry(params["symmetry_axis"], delivered),
        "anchors": _anchors(delivered),
        "pins": delivered.net_pins(),
        "centroids": {device: delivered.point(*module.centroid(device)) for device in module.devices},
        "centroid_error_um": tech.to_um(module.centroid_error()),
        "drawn": {device.id: drawn_size(device, delivered) for device in devices},
    }


def _devices(params: Mapping[str, Any], tech: Technology, sizes: Sequence[Mapping[str, Any]]) -> list[Transistor]:
    """Return the transistors; where no nets are known they share source and bulk, as a differential pair does."""
    shared = f"{sizes[0]['device_id']}_{sizes[1]['device_id']}"
    found = []
    for device in with_dividing_fingers(tech, sizes, params.get("device"), units=2):
        given = params.get("nets", {}).get(device["device_id"])
        nets = {"s": f"{shared}_S", "b": f"{shared}_B", **known_nets(params, device["device_id"], given)}
        found.append(requested_transistor(tech, device, params.get("device"), nets))
    return found


def _symmetry(axis: str, delivered: Delivered) -> dict[str, Any]:
    module = delivered.module
    units = [instance.id for instance in module.instances]
    opposite = list(zip(units, reversed(units), strict=True))[: len(units) // 2]
    channels = {gate.box: gate.device for gate in module.gates if gate.device}
    idle = {gate.box for gate in module.gates if not gate.device}
    image = mirror_image(module.cell, delivered.tech, channels, idle, (axis,))
    return {
        "axis": axis,
        "center": delivered.point(*_middle(module)),
        "matched_pairs": [list(pair) for pair in opposite],
        "geometry_symmetric": image.symmetric,
    }


def _middle(module: Module) -> tuple[float, float]:
    """Return the middle of all channels, which the units lie around."""
    boxes = [gate.box for gate in module.gates if gate.device]
    x = (min(box.left for box in boxes) + max(box.right for box in boxes)) / 2
    return x, (min(box.bottom for box in boxes) + max(box.top for box in boxes)) / 2


def _anchors(delivered: Delivered) -> dict[str, Any]:
    x, y = delivered.point(*_middle(delivered.module))
    box = delivered.common_data()["bounding_box"]
    return {"center": [x, y], "left": [box["x"], y], "right": [round(box["x"] + box["width"], 6), y]}
