"""Map a circuit to a technology: a device for every model, legal sizes, and a record of every change.

The rules; the result reports every change that they make:

- **Device**: the technology's device of the same model; a device of the process without a drawing is refused. A generic
  model or one of another process becomes the device of the same type with the smallest sufficient voltage rating and,
  where the technology has it, the same threshold flavour; else the technology's default. The circuit lists it as
  replaced.
- **Length**: where it is missing, the shortest of the circuit is taken; below the minimum it becomes the minimum;
  ``stack`` gates in series become one gate of their total length.
- **Width**: scales by the factor its length grew by. ``nfin`` fins count as width, ``nfin * fin_pitch`` per finger, and
  win over ``w``, which FinFET netlists carry along unused.
- **Fingers**: ``w`` is the total of all fingers, or of one finger where the caller says so or no other reading fits the
  whole file (``widths``). A finger narrower than the minimum is an error that names both readings; it is never merged
  with others. Only a width counted in fins, which is always the total, is drawn in fewer fingers. A device of
  one finger is widened.
- **Grid**: a total width on the grid is kept: where the number of fingers does not divide it on the grid, the nearest
  number that does is drawn, one for all devices of equal fingers. Everything else is snapped to the nearest grid point.
- **Junctions**: a device whose width, length or fingers one of these rules changes loses the areas and perimeters that
  the netlist states.

All other devices: ``passive_map``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.circuit.bipolar_map import check_collector
from layoutkit.circuit.circuit import OTHER_SIZE, ReplacedDevice
from layoutkit.circuit.passive_map import deep_well, map_passive, with_common_bars, with_common_plates
from layoutkit.circuit.readers.model_names import rated_voltage, threshold_flavour
from layoutkit.circuit.replaced_devices import notes_on_options, refuse_undrawn
from layoutkit.circuit.supplies import find_supplies, substrate_net
from layoutkit.circuit.taps import join_taps
from layoutkit.circuit.widths import NarrowFinger, in_um, narrow_error, refuse_widths, with_total_widths
from layoutkit.errors import Findings, NetlistError, UnsupportedOperationError, listed, sentences
from layoutkit.technology.device_kinds import BLOCKS, KINDS
from layoutkit.technology.finger_widths import (
    ROUNDING,
    FingeredWidth,
    circuit_fault,
    dividing_fingers,
    drawn_faults,
    widest_finger,
)
from layoutkit.technology.passive_sizes import bars_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.technology import DeviceSpec, Technology

# ASAP7, whose model names the FinFET netlists in circulation use, has fins every 27 nm (Clark et al. 2016).
ASAP7_FIN_PITCH_M = 27e-9


@dataclass(frozen=True)
class MapOptions:
    """How the netlist states sizes.

    Attributes:
        width_per: ``device``: ``w`` is the total of all fingers (BSIM4, the PDKs); ``finger``: of one finger; ``auto``:
            of one finger where no other reading fits the whole file, else the total.
        fin_pitch_m: Width that one fin of ``nfin`` counts as. [m]
    """

    width_per: Literal["auto", "device", "finger"] = "auto"
    fin_pitch_m: float = ASAP7_FIN_PITCH_M


def map_circuit(circuit: Circuit, technology: Technology, options: MapOptions | None = None) -> Circuit:
    """Return the circuit with every device replaced by one of the technology, at legal sizes; warnings sum up changes.

    Device ids, nets, ports and modules stay. ``model`` becomes the technology's device name, and the parameters
    become ``w``, ``l``, ``nf``, ``m``.

    Args:
        circuit: What a reader returned.
        technology: The technology.
        options: How the netlist states widths.

    Raises:
        UnsupportedOperationError: If the technology has no device of a type that the circuit uses.
        NetlistError: If transistors state no width, or resistors one that the process does not have.
    """
    circuit = join_taps(circuit, technology)
    options_needed = notes_on_options(technology, circuit.devices)
    technology = technology.made_for(device.model for device in circuit.devices)
    mapping = _Mapping(technology, options or MapOptions(), circuit)
    mapping.check(circuit.devices)
    refuse_widths(technology, circuit)
    circuit = mapping.with_total_widths(circuit)
    mapping.default_length = min((d.l for d in circuit.devices if d.is_mos and "l" in d.params), default=None)
    devices = mapping.with_bulks(mapping.common_units(circuit, mapping.devices(circuit.devices)))
    notes = (note for note in options_needed if note not in circuit.warnings)
    warnings = (*circuit.warnings, *notes, *mapping.findings.warnings)
    replaced = (*circuit.replaced, *mapping.replaced)
    return replace(circuit, devices=devices, warnings=warnings, replaced=replaced)


class _Draft(NamedTuple):
    """A transistor before its width is on the grid.

    Attributes:
        device: As the netlist has it.
        spec: What it is drawn as.
        length: Gate length. [dbu]
        factor: By how much one gate's length grew. [1]
        width: Its width and fingers.
        is_stated: Whether the netlist states that width, which neither counts fins nor scaled with the length.
    """

    device: Device
    spec: DeviceSpec
    length: int
    factor: float
    width: FingeredWidth
    is_stated: bool


class _Mapping:
    def __init__(self, technology: Technology, options: MapOptions, circuit: Circuit) -> None:
        self._technology = technology
        self._options = options
        self._substrate = substrate_net(circuit)
        self._grounds = find_supplies(circuit).ground
        self._dbu_m = float(Decimal(str(technology.dbu_um)).scaleb(-6))
        self._written: dict[str, Device] = {}
        self._narrow: list[NarrowFinger] = []
        self.default_length: float | None = None
        self.replaced: list[ReplacedDevice] = []
        self._resized: set[str] = set()
        self.findings = Findings()

    def check(self, devices: Sequence[Device]) -> None:
        """Refuse what cannot be drawn, all of it at once."""
        refuse_undrawn(self._technology, devices)
        drawn = {
            spec.type for specs in (self._technology.devices, self._technology.passives) for spec in specs.values()
        }
        missing: dict[str, list[str]] = {}
        unsized: list[str] = []
        for device in devices:
            if device.type not in drawn:
                missing.setdefault(device.type, []).append(device.id)
            elif device.is_mos and "w" not in device.params and "nfin" not in device.params:
                unsized.append(device.id)
        if missing:
            shown = "; ".join(f"{kind}: {listed(ids)}" for kind, ids in sorted(missing.items()))
            cures = [KINDS[kind] for kind in sorted(missing) if KINDS[kind].instead]
            raise UnsupportedOperationError(
                f"Technology '{self._technology.name}' has no device for {shown}; it has {', '.join(sorted(drawn))}"
                + "".join(f"; instead of a {kind.noun} use {kind.instead}" for kind in cures),
                details={"technology": self._technology.name, "devices": dict(sorted(missing.items()))},
            )
        if unsized:
            raise NetlistError(
                f"Transistors without a width: {listed(unsized)}; give w (or nfin) to each",
                details={"devices": unsized},
            )

    def with_total_widths(self, circuit: Circuit) -> Circuit:
        """Return the circuit with ``w`` as the total of every device."""
        result, reason = with_total_widths(circuit, self._options.width_per, self._own_minimum)
        for before, after in zip(circuit.devices, result.devices, strict=True):
            if after is not before:
                self._change(before, "w", (before.w, after.w), reason)
                self._written[before.id] = before
        return result

    def _own_minimum(self, device: Device) -> float | None:
        """Return the narrowest finger of a device that names one of the technology's models, None for another's. [m]"""
        exact = self._exact(device)
        return None if exact is None else self._metres(exact.min_w)

    def _exact(self, device: Device) -> DeviceSpec | None:
        """Return the technology's transistor that the netlist names, by its model or its own name."""
        named = self._technology.devices.get(getattr(self._technology.device_names.drawn(device.model), "name", ""))
        return named if named is not None and named.type == device.type else None

    def devices(self, devices: Sequence[Device]) -> tuple[Device, ...]:
        """Return the devices of the technology, in order.

        Raises:
            NetlistError: If fingers are too narrow; the error names all of them and both readings of ``w``. If sizes
                cannot be drawn; the error names all of these devices.
        """
        drafts = [self._draft(device) if device.is_mos else None for device in devices]
        if self._narrow:
            raise narrow_error(self._narrow)
        stated = (draft.width for draft in drafts if draft is not None and draft.is_stated)
        fingers = dividing_fingers(stated, self._technology.grid)
        mapped, faults, total = [], [], 0
        for device, draft in zip(devices, drafts, strict=True):
            try:
                found = self._passive(device) if draft is None else self._transistor(draft, fingers)
            except NetlistError as error:
                faults.append(str(error))
                continue
            mapped.append(found)
            units, side_um = self._units(found, draft)
            total += units
            faults += [f"'{device.id}': {text}" for text in drawn_faults(units, side_um, _area_um2(found))]
        if not faults and (fault := circuit_fault(total)):
            faults.append(fault)
        if faults:
            raise NetlistError(sentences(faults))
        return tuple(mapped)

    def _units(self, device: Device, draft: _Draft | None) -> tuple[int, float]:
        """Return in how many fingers, bars or plates a mapped device is drawn at least, and how long one is. [um]"""
        technology, count = self._technology, device.m * int(device.params.get("series", 1))
        if draft is not None:
            widest = widest_finger(technology, draft.spec)
            return max(device.nf * device.m, math.ceil(device.w * device.m / self._dbu_m / widest)), device.l * 1e6
        if device.kind.in_series != "lengths":
            return count, max(device.w, device.l) * 1e6
        width, length = (round(side * 1e6 / technology.dbu_um) for side in (device.w, device.l))
        bars = bars_of(technology, technology.passives[device.model], width, length)
        return bars * device.m, device.l * 1e6 / bars

    def _passive(self, device: Device) -> Device:
        check_collector(self._technology, device, self._substrate, self._grounds)
        return map_passive(
            self._technology,
            device,
            lambda field, before, after, reason: self._change(device, field, (before, after), reason),
            self._substrate,
        )

    def common_units(self, circuit: Circuit, devices: Sequence[Device]) -> Sequence[Device]:
        """Return mapped devices, capacitors and resistors whose values are in an integer ratio made of equal units."""
        devices = with_common_plates(self._technology, circuit, devices, self._change)
        return with_common_bars(self._technology, circuit, devices, self._change)

    def _draft(self, device: Device) -> _Draft:
        """Return a transistor as it will be drawn, but with a width that may be off the grid."""
        spec = self._choose(device)
        length, factor = self._length(device, spec)
        given, fingers = self._given_width(device)
        total = given * factor / self._dbu_m
        # A width that scaled with its length, or counts fins, is snapped; a stated one is kept.
        stated = factor == 1.0 and "nfin" not in device.params
        finger = total / fingers if stated else self._snap(total / fingers)
        if fingers > 1 and finger < spec.min_w - ROUNDING:
            if "nfin" in device.params:
                fingers = self._fewer_fingers(device, spec, total)
            else:
                model = spec.name if factor == 1.0 else f"{spec.name} before the width grows with the length"
                written = self._written.get(device.id, device)
                self._narrow.append(NarrowFinger(written, self._metres(spec.min_w) / factor, model))
        widest, allowed = widest_finger(self._technology, spec), spec.max_w or math.inf
        width = FingeredWidth(device.id, spec.name, total, fingers, spec.min_w, widest, allowed=allowed)
        return _Draft(device, spec, length, factor, width, stated)

    def _transistor(self, draft: _Draft, fingers: Mapping[str, int]) -> Device:
        device, width = draft.device, draft.width
        count = fingers.get(device.id, width.fingers)
        if count != width.fingers:
            reason = f"another number of fingers keeps the total width on the {self._grid_um} um grid"
            self._change(device, "nf", (width.fingers, count), reason)
        total = self._drawn_width(draft, count)
        params = {"w": self._metres(total), "l": self._metres(draft.length), "nf": count, "m": device.m}
        params |= deep_well(self._technology, device)
        if blocked := draft.spec.blocked(device.params, self._technology.dbu_um):
            params |= {name: self._metres(length) for name, length in zip(BLOCKS, blocked, strict=True)}
            if faults := draft.spec.block_faults(params, self._technology.dbu_um):
                raise NetlistError(f"'{device.id}': {sentences(faults)}")
        junctions = device.junctions
        if junctions and device.id in self._resized:
            self.findings.warn(OTHER_SIZE, device.id)
            junctions = {}
        return replace(device, model=draft.spec.name, params=params, junctions=junctions)

    def with_bulks(self, devices: Sequence[Device]) -> tuple[Device, ...]:
        """Return mapped devices, passives with the bulk terminal that the technology's device has, or without."""
        return tuple(d if d.is_mos else self._with_bulk(d) for d in devices)

    def _with_bulk(self, device: Device) -> Device:
        substrate, spec, bulk = self._substrate, self._technology.passives[device.model], device.kind.bulk
        if not bulk:
            return device
        if spec.body_terminal != bulk and spec.terminals == len(device.kind.terminals):
            return replace(device, terminals={t: net for t, net in device.terminals.items() if t != bulk})
        if bulk in device.terminals or not substrate:
            return device
        reason = f"the bulk of {device.kind.noun}s that state none is the substrate, {substrate}"
        self._change(device, bulk, (None, substrate), reason)
        return replace(device, terminals={**device.terminals, bulk: substrate})

    def _change(self, device: Device, field: str, values: tuple[str | float | None, str | float], reason: str) -> None:
        if field == "model":
            self.replaced.append(ReplacedDevice(device.id, device.model, dict(device.params)))
        if field in {"w", "l", "nf"}:
            self._resized.add(device.id)
        is_plain = field == "model" or values[0] == values[1]
        self.findings.warn(reason if is_plain else f"{reason} ({_shown_change(field, *values)})", device.id)

    def _choose(self, device: Device) -> DeviceSpec:
        exact = self._exact(device)
        if exact is not None:
            return exact
        flavour = threshold_flavour(device.model)
        same_type = [
            spec
            for spec in self._technology.devices.values()
            if spec.type == device.type and (flavour == "native" or threshold_flavour(spec.name) != "native")
        ]
        needed, rated_v = rated_voltage(device.model), {spec.name: _rating(spec) for spec in same_type}
        enough = [rated_v[spec.name] for spec in same_type if not needed or not 0 < rated_v[spec.name] < needed]
        rating = min(enough, default=max(rated_v.values()))
        rated = [spec for spec in same_type if rated_v[spec.name] == rating]
        alike = [spec for spec in rated if threshold_flavour(spec.name) == flavour]
        regular = [spec for spec in rated if not threshold_flavour(spec.name)]
        chosen = max(alike or regular or rated, key=lambda spec: spec.default)
        reason = f"model {device.model} drawn as {chosen.name} of {self._technology.name}"
        if not enough:
            reason += f", which is rated {rating:g} V and not {needed:g} V"
        self._change(device, "model", (device.model, chosen.name), reason)
        return chosen

    def _length(self, device: Device, spec: DeviceSpec) -> tuple[int, float]:
        """Return the drawn length [dbu] and the factor by which one gate's length grew."""
        given = device.params.get("l")
        minimum = self._metres(spec.min_l)
        if given is None:
            given = minimum if self.default_length is None else self.default_length
            which = "the minimum" if self.default_length is None else "the shortest of the circuit"
            self._change(device, "l", (None, given), f"missing gate length taken as {which}, {in_um(given)} um")
        gate, factor = given / self._dbu_m, 1.0
        if round(gate) < spec.min_l:
            factor, gate = spec.min_l / gate, float(spec.min_l)
            reason = f"gate length below the minimum became {in_um(minimum)} um and the width grew by the same factor"
            self._change(device, "l", (given, minimum), reason)
            if self._exact(device) is not None:  # a device of the process of a length that the process does not have
                self.replaced.append(ReplacedDevice(device.id, device.model, dict(device.params)))
        stack = int(device.params.get("stack", 1))
        length = self._snap(gate * stack)
        if stack > 1:
            values = (f"{stack} x {in_um(gate * self._dbu_m)} um", self._metres(length))
            self._change(device, "l", values, f"{stack} gates in series drawn as one gate of their total length")
        elif factor == 1.0 and abs(length - gate) > 1e-6:
            self._change(
                device, "l", (given, self._metres(length)), f"gate length snapped to the {self._grid_um} um grid"
            )
        return length, factor

    def _given_width(self, device: Device) -> tuple[float, int]:
        """Return the total width [m] and the number of fingers that the netlist states."""
        if "nfin" not in device.params:
            return device.params["w"], device.nf
        given = device.params["nfin"] * self._options.fin_pitch_m * device.nf
        pitch = f"{self._options.fin_pitch_m * 1e9:g} nm"
        values = (f"{device.params['nfin']:g} fins x {device.nf}", given)
        self._change(device, "w", values, f"fins counted as {pitch} of width in every finger; w not used")
        return given, device.nf

    def _drawn_width(self, draft: _Draft, fingers: int) -> int:
        """Return the total width with every finger on the grid. [dbu]"""
        device, spec, total = draft.device, draft.spec, draft.width.total
        finger = max(self._snap(total / fingers), self._round_up(spec.min_w))
        width = finger * fingers
        if abs(width - total) > 1e-6 * total:
            small = total < spec.min_w - self._technology.grid / 2
            snapped = f"finger width snapped to the {self._grid_um} um grid"
            reason = "width below the minimum became the minimum" if small else snapped
            self._change(device, "w", (total * self._dbu_m, self._metres(width)), reason)
        elif draft.factor != 1.0:
            before = total / draft.factor * self._dbu_m
            self._change(device, "w", (before, self._metres(width)), "width scaled with the length")
        return width

    def _fewer_fingers(self, device: Device, spec: DeviceSpec, total: float) -> int:
        """Return in how many fingers the fins of a device fit.

        A divisor keeps the unit finger of devices that were in a whole ratio, such as a mirror's. Where the only
        divisor would widen the finger more than twofold beyond need, as many fingers as fit are kept instead.
        """
        fingers = device.nf
        fitting = max(1, math.floor(total / spec.min_w + 1e-9))
        divisor = next((fingers // k for k in range(2, fingers + 1) if fingers % k == 0 and fingers // k <= fitting), 1)
        legal = divisor if 2 * divisor >= fitting else fitting
        least = in_um(self._metres(spec.min_w))
        reason = f"fins drawn in fewer fingers of the same total width, since a finger has at least {least} um"
        self._change(device, "nf", (fingers, legal), reason)
        return legal

    @property
    def _grid_um(self) -> str:
        return in_um(self._metres(self._technology.grid))

    def _snap(self, length: float) -> int:
        """Return the nearest grid point, halves up. [dbu]"""
        return math.floor(length / self._technology.grid + 0.5 + 1e-9) * self._technology.grid

    def _round_up(self, length: int) -> int:
        return -(-length // self._technology.grid) * self._technology.grid

    def _metres(self, length: int) -> float:
        return float((Decimal(length) * Decimal(str(self._technology.dbu_um))).scaleb(-6))


def _rating(spec: DeviceSpec) -> float:
    """Return the rating of a transistor; 0 where neither the technology nor its model's name states one. [V]"""
    return spec.supply_v or rated_voltage(spec.model)


def _shown_change(field: str, before: str | float | None, after: str | float) -> str:
    """Return a change for a warning, lengths in micrometres."""
    unit, scale = (" um", 1e6) if field in {"w", "l"} else ("", 1.0)

    def shown(value: str | float) -> str:
        return value if isinstance(value, str) else f"{value * scale:.6g}{unit}"

    return f"{field}: {'none' if before is None else shown(before)} became {shown(after)}"


def _area_um2(device: Device) -> float | None:
    """Return the area of all bars or plates of a mapped device; None for a transistor. [um^2]"""
    if device.is_mos:
        return None
    return device.w * device.l * 1e12 * device.m * int(device.params.get("series", 1))
