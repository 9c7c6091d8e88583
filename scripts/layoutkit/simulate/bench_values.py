"""Voltages, currents and loads of a test bench: a user's, else from the technology and the sizes of the devices.

Limits on measurements are of a value after layout, or of its change.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.simulate.port_roles import PortRoles
    from layoutkit.technology import Technology


OVERDRIVE_V = 0.2
"""Overdrive voltage at which a bias current puts the transistor that takes it. [V]"""
FALLBACK_A = 10e-6
"""Bias current where the technology states no saturation current. [A]"""
BY_PORT = ("currents_a", "voltages_v")
"""Values that name ports."""
CASCODE_V = 0.3
"""How far the gate of a cascode lies beyond that of the transistor under it. [V]"""
COMMON_MODE = {"nmos": 0.6, "pmos": 0.4}
"""Common-mode voltage of an input pair as a part of the supply, which leaves its tail some room."""


@dataclass(frozen=True)
class BenchValues:
    """What the sources and loads of a bench are; every value is told in the answer.

    Attributes:
        supply_v: Voltage of the supplies above ground. [V]
        common_mode_v: Voltage of the inputs. [V]
        output_v: Voltage at which the loop of an amplifier keeps its output; None for that of the schematic with equal
            inputs, so that the offset is what the layout adds and not the error of a finite gain. [V]
        load_f: Capacitance at each output. [F]
        source_ohm: Resistance of the sources at the inputs of a comparator. [ohm]
        period_s: Period of a comparator's clock. [s]
        overdrive_v: Input voltage at which the delay of a comparator is measured. [V]
        temperature_c: Temperature of the devices. [degrees Celsius]
        currents_a: Port to the current of its source, which flows into an NMOS and out of a PMOS. [A]
        voltages_v: Port to the voltage of its source. [V]
    """

    supply_v: float
    common_mode_v: float
    output_v: float | None = None
    load_f: float = 50e-15
    source_ohm: float = 1000.0
    period_s: float = 20e-9
    overdrive_v: float = 0.01
    temperature_c: float = 27.0
    currents_a: Mapping[str, float] = field(default_factory=dict)
    voltages_v: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the values as JSON data."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def choose_values(
    circuit: Circuit, technology: Technology, roles: PortRoles, given: Mapping[str, Any] | None = None
) -> BenchValues:
    """Return the values of a bench: those given, and for the others what fits the technology and the devices.

    Raises:
        LayoutkitError: If a given value is of a port for which ``value_faults`` finds a fault.
    """
    given = dict(given or {})
    faults = value_faults(circuit, roles, given)
    if faults:
        raise LayoutkitError(sentences(faults), details={"param_name": "values", "faults": faults})
    ports = {port.lower(): port for port in circuit.ports}
    named = {name: {ports[port.lower()]: value for port, value in given.pop(name, {}).items()} for name in BY_PORT}
    supply = given.pop("supply_v", None) or supply_voltage(circuit, technology)
    share = COMMON_MODE.get(_input_type(circuit, roles), 0.5)
    common = given.pop("common_mode_v", None)
    common = round(share * supply, 3) if common is None else common
    above = {
        port: round(common + (CASCODE_V if device.type == "nmos" else -CASCODE_V), 3)
        for port, device in roles.gates.items()
        if port not in named["currents_a"] and _above_the_pair(circuit, roles, device)
    }
    named["voltages_v"] = {**above, **named["voltages_v"]}
    takers = {**roles.currents, **roles.gates}
    currents = {port: bias_current(device, technology) for port, device in takers.items()}
    kept = {port: value for port, value in currents.items() if port not in named["voltages_v"]}
    return BenchValues(
        supply_v=supply,
        common_mode_v=common,
        currents_a={**kept, **named["currents_a"]},
        voltages_v=named["voltages_v"],
        **given,
    )


def value_faults(circuit: Circuit, roles: PortRoles, given: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the ports that given values name, in words.

    A port is in the circuit, in any case of letters, and named once; and no source of the bench's own drives it: those
    of grounds and inputs do, but for the current into a mirror.
    """
    known, faults = {port.lower(): port for port in circuit.ports}, []
    named = {name: list(given.get(name, {})) for name in BY_PORT}
    strange = sorted({port for ports in named.values() for port in ports if port.lower() not in known})
    if strange:
        faults.append(f"values: the circuit has no port {', '.join(strange)}; it has {', '.join(circuit.ports)}")
    for name, ports in named.items():
        count = Counter(port.lower() for port in ports)
        faults += [f"values.{name}: port {known.get(port, port)} is named twice" for port in count if count[port] > 1]
        for port in dict.fromkeys(known[port] for port in count if port in known):
            if port in roles.ground:
                faults.append(f"values.{name}: {port} is ground, which is 0 V")
            elif port in roles.inputs and not (roles.bench == "mirror" and name == "currents_a"):
                other = "its current in currents_a" if roles.bench == "mirror" else "common_mode_v"
                faults.append(f"values.{name}: the bench drives the input {port}; give {other}")
    return faults


def supply_voltage(circuit: Circuit, technology: Technology) -> float:
    """Return the lowest of the supply voltages that the circuit's transistors are made for. [V]"""
    stated = [
        technology.devices[device.model].supply_v
        for device in circuit.devices
        if device.is_mos and device.model in technology.devices
    ]
    return min((voltage for voltage in stated if voltage), default=1.8)


def bias_current(device: Device, technology: Technology) -> float:
    """Return the current that puts a transistor at ``OVERDRIVE_V``, to two digits. [A]

    The saturation current of the technology at three quarters of the supply as overdrive, scaled with the power 1.5 as
    of a transistor between velocity saturation and square law, and with the length.
    """
    spec = technology.devices.get(device.model)
    if spec is None or not spec.saturation_ma_um or not spec.supply_v:
        return FALLBACK_A
    width_um, shorter = 1e6 * device.w * device.m, spec.min_l * technology.dbu_um / (1e6 * device.l)
    current = 1e-3 * spec.saturation_ma_um * width_um * shorter * (OVERDRIVE_V / (0.75 * spec.supply_v)) ** 1.5
    return float(f"{current:.1e}")


def _above_the_pair(circuit: Circuit, roles: PortRoles, cascode: Device) -> bool:
    """Whether a transistor is a cascode of the input pair, whose own gates are at the common-mode voltage."""
    return roles.bench != "mirror" and any(
        end.terminal == "d"
        and circuit.device(end.device).type == cascode.type
        and circuit.device(end.device).terminals["g"] in roles.inputs
        for end in circuit.nets[cascode.terminals["s"]]
    )


def _input_type(circuit: Circuit, roles: PortRoles) -> str:
    """Return the type of the transistors at the first input."""
    ends = circuit.nets.get(roles.inputs[0], ()) if roles.inputs else ()
    return next((circuit.device(end.device).type for end in ends if end.terminal == "g"), "")


KINDS = ("min", "max", "max_change", "max_change_percent", "max_loss_percent")


@dataclass(frozen=True)
class MeasurementLimit:
    """One bound of one measurement.

    Attributes:
        name: The measurement.
        kind: ``min`` or ``max`` of the extracted value; ``max_change`` and ``max_change_percent`` of the change in
            either direction; ``max_loss_percent`` of a decrease.
        bound: In the unit of the measurement, or in percent.
    """

    name: str
    kind: str
    bound: float

    def fault(self, measured: Mapping[str, Any]) -> str:
        """Return why a measurement does not keep the limit, or cannot be judged; empty where it does."""
        field = {"min": "extracted", "max": "extracted", "max_change": "change"}.get(self.kind, "change_percent")
        value = measured.get(field)
        if value is None and "change" in measured and field == "change_percent":
            return f"{self.name} has no change in percent, so its limit {self.kind} is not checked; give max_change"
        if value is None:
            return f"{self.name}: not measured, so its limit {self.kind} {self.bound:g} is not checked"
        unit = "%" if field == "change_percent" else measured["unit"]
        amount = {"min": value, "max": value, "max_loss_percent": -value}.get(self.kind, abs(value))
        broken = amount < self.bound if self.kind == "min" else amount > self.bound
        return f"{self.name}: {field} {value:.4g} {unit} breaks {self.kind} {self.bound:g} {unit}" if broken else ""


def limits_of(given: Mapping[str, Any]) -> list[MeasurementLimit]:
    """Return the limits in ``{measurement: {kind: bound}}``.

    Raises:
        LayoutkitError: If a kind is not one of ``KINDS``.
    """
    strange = sorted({kind for bounds in given.values() for kind in bounds} - set(KINDS))
    if strange:
        raise LayoutkitError(
            f"limits: there is no kind {', '.join(strange)}; there are {', '.join(KINDS)}",
            details={"param_name": "limits", "provided_value": strange[0]},
        )
    return [
        MeasurementLimit(name, kind, float(bound)) for name, bounds in given.items() for kind, bound in bounds.items()
    ]


def judge(
    corners: Sequence[dict[str, Any]], limits: Iterable[MeasurementLimit]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the corners with a verdict on each limited measurement, and the faults in words."""
    faults, broken, limited = [], set(), set()
    for limit in limits:
        for corner in corners:
            place = (corner["corner"], limit.name)
            limited.add(place)
            measured = next((each for each in corner["measurements"] if each["name"] == limit.name), None)
            fault = limit.fault(measured or {"unit": ""})
            if measured is None and corner["measurements"]:
                fault += f"; measured are {', '.join(each['name'] for each in corner['measurements'])}"
            if fault:
                broken.add(place)
                faults.append(f"{corner['corner']}: {fault}")
    judged = [
        {**corner, "measurements": [
            {**each, "passed": (corner["corner"], each["name"]) not in broken}
            if (corner["corner"], each["name"]) in limited else each
            for each in corner["measurements"]
        ]}
        for corner in corners
    ]  # fmt: skip
    return judged, faults
