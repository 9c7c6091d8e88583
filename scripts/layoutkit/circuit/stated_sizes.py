"""Sizes that a request states in place of those of the netlist."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from layoutkit.circuit.circuit import INTEGER_PARAMS
from layoutkit.errors import NetlistError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit, Device


def resized(circuit: Circuit, sizes: Mapping[str, Mapping[str, float]]) -> Circuit:
    """Return the circuit with other sizes of some devices.

    Args:
        circuit: Mapped to a technology, so that ``w`` is the total width of one unit. [m]
        sizes: Device id to new values of its parameters, in their units.

    Raises:
        NetlistError: If a device does not exist, or a value does not fit it; the details list every fault.
    """
    known = {device.id: device for device in circuit.devices}
    faults = []
    for name, values in sizes.items():
        if name in known:
            faults += [fault for size, value in values.items() if (fault := _fault(known[name], size, value))]
        else:
            faults.append(f"the circuit has no device {name!r}{did_you_mean(name, known)}")
    if faults:
        details = {"param_name": "sizes", "errors": faults}
        raise NetlistError(f"the sizes do not fit the circuit: {'; '.join(faults[:10])}", details=details)
    devices = [
        replace(device, params={**device.params, **sizes[device.id]}) if device.id in sizes else device
        for device in circuit.devices
    ]
    return replace(circuit, devices=tuple(devices))


def _fault(device: Device, size: str, value: float) -> str:
    """Return what is wrong with one size; empty if nothing is."""
    if size not in device.params:
        return f"{device.id} has no size {size!r}; it has {', '.join(sorted(device.params))}"
    if not (isfinite(value) and value > 0):
        return f"{size} of {device.id} must be above 0, got {value:g}"
    if size in INTEGER_PARAMS and value != int(value):
        return f"{size} of {device.id} must be a whole number, got {value:g}"
    return ""
