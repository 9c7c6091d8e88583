"""Requests for transistors: from the JSON parameters of a generator to a transistor, alone or in a module."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.draw.mos import MosSize, MosSpec, compact_rows, draw_mos, transistor
from layoutkit.errors import GeometryError
from layoutkit.technology.finger_widths import FingeredWidth, dividing_fingers, widest_finger
from layoutkit.tools.module_requests import (
    deliver,
    drawn_size,
    in_deep_well,
    known_nets,
    ring_style,
    technology_of,
    terminal_pins,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
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
    (requested,) = with_dividing_fingers(tech, [{**params, "type": device_type}], flavour)
    device = requested_transistor(tech, requested, flavour, nets)
    cell_name = f"{device_type}_{device.id}"

    def draw(layout: kdb.Layout, name: str) -> Module:
        spec = MosSpec(device, name, dummies=params["dummies"], labels=params["labels"], ring=ring_style(params))
        spec = replace(spec, rows=params["rows"] if "rows" in params else compact_rows(tech, spec))
        return in_deep_well(params, tech, draw_mos(layout, tech, spec), device.spec)

    delivered = deliver({**params, "cell_name": cell_name, "drawn_by": device_type}, tech, [device.id], draw)
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
    """Return the transistor that ``device`` describes.

    Args:
        tech: Process.
        device: ``device_id``, ``type``, ``w``, ``l`` [m], ``m``, ``nf``, and ``asked_nf`` if the request has another
            number of fingers.
        flavour: Device of the technology; None for the usual one of the type.
        nets: Terminal to net.

    Raises:
        GeometryError: If its size is not allowed, or ``flavour`` is of another type.
    """
    spec = tech.device(flavour or device["type"])
    if spec.type != device["type"]:
        raise GeometryError(
            f"device '{flavour}' of {tech.name} is of type {spec.type}, {device['device_id']} of type {device['type']}"
        )
    size = MosSize(float(device["w"]), float(device["l"]), device.get("nf", 1), device.get("m", 1))
    made = transistor(tech, device["device_id"], spec.name, size, nets)
    if "asked_nf" not in device:
        return made
    change = f"nf {device['asked_nf']} became {size.nf}, which keeps w {size.w_m * 1e6:.6g} um on the grid"
    return replace(made, warnings=(*made.warnings, f"{made.id}: {change}"))


def with_dividing_fingers(
    tech: Technology, devices: Sequence[Mapping[str, Any]], flavour: str | None, units: int = 1
) -> list[dict[str, Any]]:
    """Return ``devices``, where possible with numbers of fingers that keep their widths on the grid.

    Args:
        tech: Process.
        devices: As for ``requested_transistor``.
        flavour: As there.
        units: Number of equal parts that each device is split into.
    """
    widths = []
    for device in devices:
        spec = tech.device(flavour or device["type"])
        parts = units // math.gcd(units, device.get("m", 1))
        total, nf = float(device["w"]) * 1e6 / tech.dbu_um, device.get("nf", 1)
        widest = widest_finger(tech, spec)
        allowed = spec.max_w or math.inf
        widths.append(FingeredWidth(device["device_id"], spec.name, total, nf, spec.min_w, widest, parts, allowed))
    counts = dividing_fingers(widths, tech.grid)
    return [
        {**device, "nf": counts[width.device], "asked_nf": width.fingers} if width.device in counts else dict(device)
        for device, width in zip(devices, widths, strict=True)
    ]
