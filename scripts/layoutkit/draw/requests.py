"""What the generator tools are asked for, from their JSON parameters: a transistor, drawn or as part of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.draw.delivery import deliver, drawn_size, known_nets, technology_of, terminal_pins
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.draw.mos import Transistor
    from layoutkit.technology import Technology


def create_mos(device_type: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw one transistor into the workspace's layout and return the data of ``layout.create_<device_type>_pcell``.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    flavour = params.get("device") or device_type
    tech = technology_of(params, flavour)
    nets = known_nets(params, params["device_id"], params.get("nets"))
    device = requested_transistor(tech, {**params, "type": device_type}, flavour, nets)
    cell_name = f"{device_type}_{device.id}"
    delivered = deliver(
        {**params, "cell_name": cell_name},
        tech,
        [device.id],
        lambda layout, name: draw_mos(
            layout, tech, MosSpec(device, name, dummies=params["dummies"], labels=params["labels"])
        ),
    )
    return {
        **delivered.common_data(),
        "device_id": device.id,
        "device_type": device_type,
        "device": device.spec.name,
        "model": device.spec.model,
        "pins": terminal_pins(delivered, device),
        "net_pins": delivered.net_pins(),
        "drawn": drawn_size(device, delivered),
    }


def requested_transistor(
    tech: Technology, device: Mapping[str, Any], flavour: str | None, nets: Mapping[str, str]
) -> Transistor:
    """Return the transistor that ``device`` (``device_id``, ``type``, ``w``, ``l`` [m], ``m``, ``nf``) asks for.

    Raises:
        GeometryError: If its size is not allowed, or ``flavour`` is of another type.
    """
    spec = tech.device(flavour or device["type"])
    if spec.type != device["type"]:
        raise GeometryError(
            f"device '{flavour}' of {tech.name} is of type {spec.type}, {device['device_id']} of type {device['type']}"
        )
    size = MosSize(float(device["w"]), float(device["l"]), device.get("nf", 1), device.get("m", 1))
    return transistor(tech, device["device_id"], spec.name, size, nets)
