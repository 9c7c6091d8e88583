"""What ``w`` of a transistor with several fingers means: the total of the device, or one finger.

BSIM4 and the PDKs mean the total, and so does this package (decision 0001). Some authors write one finger's width. The
two differ by a factor of ``nf``, so this module never guesses from one device: ``w`` is read as one finger only where
no other reading fits the whole file.

Area and perimeter of a diode may make it narrower than the process allows. The widths of resistors are here, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from layoutkit.errors import Findings, NetlistError, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from layoutkit.circuit.circuit import Circuit, Device

WIDTH_READINGS = ("auto", "device", "finger")
ROUNDING_M = 1e-12
MAX_SHOWN = 20
# These names identify no process: any netlist may use them.
_GENERAL_NAMES = frozenset({"nmos", "pmos"})


@dataclass(frozen=True)
class NarrowFinger:
    """A transistor whose finger cannot be drawn: ``minimum_m`` is the narrowest finger of ``model``. [m]"""

    device: Device
    minimum_m: float
    model: str

    def text(self) -> str:
        """Return what is wrong, with both readings of ``w``."""
        w, nf, least = self.device.w, self.device.nf, in_um(self.minimum_m)
        per_finger = f"as one finger (width_per 'finger') it is {in_um(w * nf)} um in total"
        if w < self.minimum_m - ROUNDING_M:
            per_finger += ", and too narrow as well"
        most = max(1, int(w / self.minimum_m + 1e-9))
        return (
            f"'{self.device.id}': w = {in_um(w)} um as the total of nf = {nf} fingers (width_per 'device') makes each "
            f"{in_um(w / nf)} um, below the minimum {least} um of {self.model}, so nf may be {most} at most; "
            f"{per_finger}"
        )


def narrow_error(narrow: Sequence[NarrowFinger]) -> NetlistError:
    """Return the error that names both readings for every transistor in ``narrow``."""
    listed = sentences((each.text() for each in narrow), MAX_SHOWN)
    details = [
        {
            "device": each.device.id,
            "w": each.device.w,
            "nf": each.device.nf,
            "minimum_finger_width": each.minimum_m,
            "total_width_per_device": each.device.w,
            "total_width_per_finger": each.device.w * each.device.nf,
        }
        for each in narrow
    ]
    return NetlistError(
        f"Fingers are too narrow: {listed}. State what w means with width_per, or correct w or nf",
        details={"param_name": "width_per", "devices": details},
    )


@cache
def shipped_minimums() -> dict[str, float]:
    """Return model name, in lowercase, to its narrowest finger in the shipped process that has it. [m]"""
    from layoutkit.technology import load, names

    return {
        model.lower(): spec.min_w * technology.dbu_um * 1e-6
        for technology in map(load, names())
        for spec in technology.devices.values()
        for model in (spec.name, spec.model)
        if model not in _GENERAL_NAMES
    }


def narrow_fingers(
    circuit: Circuit, minimum: Callable[[Device], float | None] = lambda _: None
) -> tuple[NarrowFinger, ...]:
    """Return the transistors of several fingers whose ``w``, read as a total, cannot be drawn in their own process.

    Args:
        circuit: What a reader returned.
        minimum: The narrowest finger of a device, where the caller knows it. [m] None: as the shipped process has it
            that names the device's model; a transistor of no known process is not judged.
    """
    found = []
    for device in _several_fingers(circuit):
        least = _minimum(device, minimum)
        if least is not None and device.w / device.nf < least - ROUNDING_M:
            found.append(NarrowFinger(device, least, device.model))
    return tuple(found)


def narrow_warnings(circuit: Circuit) -> tuple[str, ...]:
    """Return a warning for transistors whose ``w`` cannot be a total in the process of their model; none without."""
    findings = Findings()
    for narrow in narrow_fingers(circuit):
        findings.warn(
            "w is too narrow to be the total of nf fingers; is it the width of one finger (width_per)?",
            narrow.device.id,
        )
    return findings.warnings


def with_total_widths(
    circuit: Circuit, reading: str, minimum: Callable[[Device], float | None] = lambda _: None
) -> tuple[Circuit, str]:
    """Return the circuit with ``w`` as the total of every device, and why any changed, in words.

    ``auto`` takes ``w`` as one finger where every transistor of several fingers has a ``w`` that is impossible as a
    total, for itself or for another transistor of the file, and possible as one finger.

    Args:
        circuit: What a reader returned.
        reading: ``device``, ``finger`` or ``auto``.
        minimum: As in ``narrow_fingers``.

    Raises:
        NetlistError: If there is no such reading.
    """
    if reading not in WIDTH_READINGS:
        raise NetlistError(f"width_per must be one of {', '.join(WIDTH_READINGS)}, got '{reading}'")
    reason = "w taken as the width of one finger"
    if reading == "auto" and _says_per_finger(circuit, minimum):
        reading = "finger"
        reason += ", since its w / nf is below the minimum for every w of several fingers in the file"
    if reading != "finger":
        return circuit, ""
    wide = {device.id for device in _several_fingers(circuit)}
    devices = tuple(
        replace(device, params={**device.params, "w": device.w * device.nf}) if device.id in wide else device
        for device in circuit.devices
    )
    return replace(circuit, devices=devices), reason


def read_widths(circuit: Circuit, reading: str) -> Circuit:
    """Return the circuit with ``w`` as the total of every device; its warnings state every change.

    Raises:
        NetlistError: If there is no such reading.
    """
    result, reason = with_total_widths(circuit, reading)
    changed = [
        f"{before.id} from {in_um(before.w)} to {in_um(after.w)} um"
        for before, after in zip(circuit.devices, result.devices, strict=True)
        if after is not before
    ]
    return replace(result, warnings=(*circuit.warnings, f"{reason}: {', '.join(changed)}")) if changed else result


def _says_per_finger(circuit: Circuit, minimum: Callable[[Device], float | None]) -> bool:
    impossible = {each.device.w for each in narrow_fingers(circuit, minimum)}
    return bool(impossible) and all(
        device.w in impossible and device.w >= (_minimum(device, minimum) or 0) - ROUNDING_M
        for device in _several_fingers(circuit)
    )


def _minimum(device: Device, minimum: Callable[[Device], float | None]) -> float | None:
    known, model = minimum(device), device.model.lower().removesuffix("__model")
    if known is not None or model in _GENERAL_NAMES:
        return known
    return shipped_minimums().get(model)  # reads every shipped technology


def _several_fingers(circuit: Circuit) -> list[Device]:
    return [
        device
        for device in circuit.devices
        if device.is_mos and device.nf > 1 and "w" in device.params and "nfin" not in device.params
    ]


def in_um(metres: float) -> str:
    """Return a length [m] in micrometres for a message."""
    return f"{metres * 1e6:.6g}"


def check_junctions(technology: Any, circuit: Circuit, stated: Circuit) -> None:
    """Refuse diodes that are narrower than the process allows.

    Args:
        technology: The process.
        circuit: Mapped to it.
        stated: The circuit as the netlist states it.

    Raises:
        NetlistError: If there are any; the error names all of them.
    """
    faults, unit = [], technology.dbu_um * 1e-6
    for device in (each for each in circuit.devices if each.type == "diode"):
        spec, params = technology.passive(device.model), stated.device(device.id).params
        narrow, least = min(device.params["w"], device.params["l"]), min(spec.min_w, spec.min_l) * unit
        if narrow > least - unit / 2:
            continue
        text = f"'{device.id}': {device.model} would be {narrow * 1e6:g} um wide; the minimum is {least * 1e6:g} um"
        if {"area", "perimeter"} <= params.keys():
            side = math.sqrt(params["area"])
            text += f" (area {params['area'] * 1e12:.4g} um2, perimeter {params['perimeter'] * 1e6:g} um; a square of "
            text += f"this area has a perimeter of {4e6 * side:.4g} um); correct the netlist, or state the sides in "
            example = f"{max(side, least) * 1e6:.4g}u"
            text += f'sizes, such as {{"{device.id}": {{"w": "{example}", "l": "{example}"}}}}'
        faults.append(text)
    if faults:
        raise NetlistError(sentences(faults))


def nearest_width(technology: Any, spec: Any, width_m: float) -> float:
    """Return the width of a resistor that the process has: ``width_m`` if it is one, else the nearest. [m]"""
    unit = technology.dbu_um * 1e-6
    if not spec.widths:
        return width_m if width_m > (spec.min_w - 0.5) * unit else float(spec.min_w * unit)
    width = min((each * unit for each in spec.widths), key=lambda each: abs(each - width_m))
    return width_m if abs(width - width_m) < unit else width


def refuse_widths(technology: Any, circuit: Circuit) -> None:
    """Refuse the process's own resistors of widths that they do not have, but for those that a user put in place.

    Raises:
        NetlistError: If there are any; the error names all of them.
    """
    replaced, unit, faults = {each.device for each in circuit.replaced}, technology.dbu_um, []
    for device in (each for each in circuit.devices if {"w", "l"} <= each.params.keys() and each.id not in replaced):
        names, wanted = technology.device_names, device.params["w"]
        spec = None if names.fixed_width(device.model) else names.drawn(device.model)
        if spec is None or spec.type != device.type or device.kind.in_series != "lengths":
            continue
        width = nearest_width(technology, spec, wanted)
        if width != wanted:
            has = ", ".join(f"{each * unit:g}" for each in spec.widths) or f"at least {spec.min_w * unit:g}"
            faults.append(
                f"'{device.id}' ({spec.name}) is {wanted * 1e6:g} um wide; {technology.name} has widths of {has} um, "
                f"and w={width * 1e6:g}u l={device.params['l'] * width / wanted * 1e6:.6g}u has as many squares"
            )
    if faults:
        raise NetlistError(f"Invalid netlist: {sentences(faults, MAX_SHOWN)}", details={"faults": faults})
