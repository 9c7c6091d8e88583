"""The tool that draws vertical bipolar transistors: from JSON parameters to a drawn array and its answer."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from layoutkit.draw.bipolar import KIND, BipolarSpec, bipolar, draw_bipolars
from layoutkit.draw.bipolar_pattern import as_text, rows_of
from layoutkit.errors import GeometryError
from layoutkit.layout.workspace import Workspace
from layoutkit.technology.passive_sizes import PassiveSize
from layoutkit.tools.module_requests import deliver, known_nets
from layoutkit.tools.passive_requests import USUAL_TECHNOLOGY, check_names, device_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology


def create_bipolar_array(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw one bipolar transistor, or several that match, into the workspace's layout; return the tool's data.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    tech = Workspace(params.get("workspace")).technology(params.get("technology"), USUAL_TECHNOLOGY)
    spec = tech.passive(params.get("device") or KIND)
    entries = [params, *params.get("matched", [])]
    check_names([entry["device_id"] for entry in entries])
    width, length = _emitter(tech, spec, params)
    substrate: str | None = None
    devices = []
    for entry in entries:
        nets = dict(known_nets(params, entry["device_id"], entry.get("nets")))
        shared = "c" if spec.kind.substrate else "s"
        substrate = substrate or nets.get(shared) or f"{entry['device_id']}_{shared.upper()}"
        size = PassiveSize(width, length, int(entry.get("m", 1)))
        devices.append(bipolar(tech, entry["device_id"], spec.name, size, {shared: substrate, **nets}))
    pattern = tuple(params.get("pattern", ()))
    units = sum(device.m for device in devices)
    dummies = int(params.get("dummies", 1 if units > 1 else 0))
    delivered = deliver(
        {**params, "cell_name": "_".join(["bipolar", *(device.id for device in devices)]), "drawn_by": "bipolar"},
        tech,
        [device.id for device in devices],
        lambda layout, cell: draw_bipolars(
            layout, tech, BipolarSpec(cell, tuple(devices), dummies, pattern, labels=params["labels"])
        ),
    )
    module, metre = delivered.module, tech.dbu_um * 1e-6
    drawn = devices[0]
    return {
        **device_data(delivered, drawn.id, spec, drawn.width),
        "drawn": {
            device.id: {
                "w": round(drawn.width * metre, 12),
                "l": round(drawn.length * metre, 12),
                "m": device.m,
                "area": float(f"{drawn.width * drawn.length * metre**2 * device.m:.9g}"),
            }
            for device in devices
        },
        "pattern": as_text(rows_of(pattern, [device.m for device in devices])),
        "dummies": sum(not gate.device for gate in module.gates),
        "centroids": {device: delivered.point(*module.centroid(device)) for device in module.devices},
        "centroid_error_um": round(tech.to_um(module.centroid_error()), 4),
        "dispersion_um": {device: round(tech.to_um(_dispersion(module, device)), 4) for device in module.devices},
    }


def _emitter(tech: Technology, spec: PassiveSpec, params: Mapping[str, Any]) -> tuple[float, float]:
    """Return the sides of the emitter that the request states, else those of the flavour. [m]"""
    sides = {name: float(params[name]) for name in ("w", "l") if name in params}
    if len(sides) == 1:
        raise GeometryError("give both w and l, the sides of the emitter, or neither", details={"param_name": "w"})
    if sides and "emitters" in params:
        raise GeometryError("give w and l, or emitters, not both", details={"param_name": "emitters"})
    if sides:
        return sides["w"], sides["l"]
    metre = tech.dbu_um * 1e-6
    width, length = spec.only_size or spec.usual_size or (spec.min_w, spec.min_l)
    if spec.cell is not None:
        width = spec.min_w * int(params.get("emitters", 1))
    elif "emitters" in params:
        raise GeometryError(
            f"{spec.name} has one emitter in each unit; state the number of units as m",
            details={"param_name": "emitters"},
        )
    return round(width * metre, 12), round(length * metre, 12)


def _dispersion(module: Module, device: str) -> float:
    """Return the root mean square distance of the emitters of ``device`` from the centre of all. [dbu]"""
    places = [(instance.x, instance.y) for instance in module.instances if instance.parent == device]
    every = [(instance.x, instance.y) for instance in module.instances]
    x, y = (sum(place[axis] for place in every) / len(every) for axis in (0, 1))
    return sqrt(sum((at[0] - x) ** 2 + (at[1] - y) ** 2 for at in places) / len(places))
