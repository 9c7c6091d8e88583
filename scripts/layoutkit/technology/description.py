"""Describe a technology as plain data for those who choose devices: lengths in micrometres, no geometry."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from layoutkit.technology.device_names import values_of

if TYPE_CHECKING:
    from layoutkit.technology.device_specs import DeviceSpec, PassiveSpec
    from layoutkit.technology.technology import Technology


def described(technology: Technology) -> dict[str, Any]:
    """Return layers, wiring, devices and rule counts of ``technology`` as JSON data, in the order of its file."""
    names: dict[str, list[str]] = {}
    devices: tuple[DeviceSpec | PassiveSpec, ...] = (*technology.devices.values(), *technology.passives.values())
    for device in devices:
        names.setdefault(device.type, []).append(device.name)
    return {
        "technology": technology.name,
        "description": technology.description,
        "grid_um": technology.to_um(technology.grid),
        "layers": [
            {"name": spec.name, "gds": list(spec.gds), "description": spec.description}
            for spec in technology.layers.values()
        ],
        "conductors": [
            {
                "name": conductor.name,
                "width_um": technology.to_um(conductor.width),
                "space_um": technology.to_um(conductor.space),
            }
            for conductor in technology.conductors
        ],
        "device_names": names,
        "transistors": [_transistor(spec, technology) for spec in technology.devices.values()],
        "passives": [_passive(spec, technology) for spec in technology.passives.values()],
        "undrawn_devices": [
            {"type": entry.type, "names": list(entry.names), "reason": entry.reason, **values_of(entry)}
            for entry in technology.names.undrawn
        ],
        "rules": {
            "total": len(technology.rules),
            "by_kind": dict(sorted(Counter(rule.kind for rule in technology.rules).items())),
        },
        "notes": list(technology.notes),
    }


def _transistor(spec: DeviceSpec, technology: Technology) -> dict[str, Any]:
    return {
        "name": spec.name,
        "type": spec.type,
        "model": spec.model,
        "default": spec.default,
        "supply_v": spec.supply_v,
        **_limits(spec, technology),
    }


def _passive(spec: PassiveSpec, technology: Technology) -> dict[str, Any]:
    value = "" if spec.kind.file is None else spec.kind.file.value
    return {
        "name": spec.name,
        "type": spec.type,
        "model": spec.model,
        "default": spec.default,
        "terminals": spec.terminals,
        **({value: spec.value} if value else {}),
        "widths_um": [technology.to_um(width) for width in spec.widths],
        **_limits(spec, technology),
    }


def _limits(spec: DeviceSpec | PassiveSpec, technology: Technology) -> dict[str, float | None]:
    return {
        "min_w_um": technology.to_um(spec.min_w),
        "max_w_um": None if spec.max_w is None else technology.to_um(spec.max_w),
        "min_l_um": technology.to_um(spec.min_l),
        "max_l_um": None if spec.max_l is None else technology.to_um(spec.max_l),
    }
