"""The netlist side of LVS: the input circuit in the technology's devices.

Devices in parallel and resistors in series are folded as extraction folds fingers and bars. A width is ``w * m`` in
all. Where ``w / nf`` is off the grid, a generator draws the nearest grid multiple per finger; either width is right.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.bipolar_map import of_size, sized, with_units
from layoutkit.circuit.circuit import BlackBox, Circuit, Device, ReplacedDevice
from layoutkit.circuit.passive_map import bend_length, deep_well, stated_length, with_sides
from layoutkit.circuit.replaced_devices import refuse_undrawn, replaced_data
from layoutkit.errors import NetlistError, TechnologyError, UnsupportedOperationError, listed, sentences
from layoutkit.extract.folding import FoldKey, SizedDevice, dummies, dummy_strings, fold_series, in_parallel
from layoutkit.extract.passive_devices import RECIPES
from layoutkit.technology import DeviceSpec, PassiveSpec, Technology
from layoutkit.technology.device_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


@dataclass(frozen=True)
class ReferenceDevice(SizedDevice):
    """One device of the netlist: all its fingers and multiples together. [um]

    ``drawn_w_um`` and ``drawn_l_um`` are the sizes on the technology's grid, ``w_um`` and ``l_um`` those of the
    netlist. Of a rectangle's sides the longer one is the width. ``odd_area_um2`` is an area that no rectangle of the
    perimeter has; the sizes are then those of the square of that perimeter. ``feed_um`` is the width of the feeds of
    a capacitor that has some; its width is that across them. ``blocked_um``: how far silicide is
    blocked at drain and source. ``in_deep_well``: whether the netlist puts it in one.
    """

    id: str
    drawn_w_um: float
    drawn_l_um: float
    fingers: int
    odd_area_um2: float | None = None
    feed_um: float = 0.0
    blocked_um: tuple[float, ...] = ()
    in_deep_well: bool = False

    @property
    def area_um2(self) -> float:
        """Area as the netlist states it. [um2]"""
        return self.w_um * self.l_um if self.odd_area_um2 is None else self.odd_area_um2

    @property
    def drawn_area_um2(self) -> float:
        """Area with each side on the grid. [um2]"""
        return self.drawn_w_um * self.drawn_l_um if self.odd_area_um2 is None else self.odd_area_um2

    def in_series(self, other: ReferenceDevice, nets: Mapping[str, str]) -> ReferenceDevice:
        """Return both as one device on ``nets``, as long as the two together."""
        return replace(
            self,
            id=f"{self.id}+{other.id}",
            l_um=round(self.l_um + other.l_um, 9),
            drawn_l_um=round(self.drawn_l_um + other.drawn_l_um, 9),
            nets=nets,
        )

    def in_parallel(self, other: ReferenceDevice) -> ReferenceDevice:
        """Return both as one device, as wide as the two together."""
        return replace(
            self,
            id=f"{self.id}+{other.id}",
            w_um=round(self.w_um + other.w_um, 9),
            drawn_w_um=round(self.drawn_w_um + other.drawn_w_um, 9),
            fingers=self.fingers + other.fingers,
        )


@dataclass(frozen=True)
class Reference:
    """A circuit as LVS compares it. ``groups`` holds transistors in parallel, of whatever length."""

    name: str
    devices: tuple[ReferenceDevice, ...]
    dummies: tuple[ReferenceDevice, ...]
    ports: tuple[str, ...]
    nets: frozenset[str]
    black_boxes: tuple[BlackBox, ...] = ()
    replaced: tuple[dict[str, Any], ...] = ()
    """What ``replaced_data`` says about the devices that are others than the netlist names."""

    @property
    def outer_nets(self) -> tuple[str, ...]:
        """Nets that something outside of the compared devices is on: ports, and nets of black boxes."""
        return (*self.ports, *(net for box in self.black_boxes for net in box.nets.values()))

    @cached_property
    def groups(self) -> dict[FoldKey[str], tuple[ReferenceDevice, ...]]:
        """Transistors in parallel, in the order of the netlist."""
        return in_parallel(self.devices)

    @cached_property
    def _spellings(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for net in sorted(self.nets):
            found.setdefault(net.casefold(), []).append(net)
        return found

    def net_named(self, text: str) -> str | None:
        """Return the net that a label names: of that spelling, else the only one that differs in case alone."""
        if text in self.nets:
            return text
        alike = self._spellings.get(text.casefold(), [])
        return alike[0] if len(alike) == 1 else None


def reference_of(circuit: Circuit, technology: Technology) -> Reference:
    """Return ``circuit`` in the devices of ``technology``.

    Raises:
        NetlistError: If a model is none of the technology's, or a device has no usable size.
        UnsupportedOperationError: If it holds devices that are no MOS transistors nor passives of the technology.
    """
    refuse_undrawn(technology, circuit.devices)
    drawn = sorted({spec.type for spec in technology.passives.values()})
    others = [device for device in circuit.devices if not (device.is_mos or device.type in drawn)]
    if others:
        shown = listed(f"{device.id} ({device.type})" for device in others)
        raise UnsupportedOperationError(
            f"LVS compares MOS transistors{''.join(f', {KINDS[kind].noun}s' for kind in drawn)} in {technology.name}; "
            f"the netlist also holds {shown}",
            details={"devices": [device.id for device in others]},
        )
    specs = _specs(circuit, technology)
    devices = [_device(unit, specs[device.id], technology) for device in circuit.devices for unit in device.in_series]
    outer = (*circuit.ports, *circuit.black_box_nets)
    idle = dummies(devices, outer) | _loops_of_two_units(devices, outer)
    folded = fold_series([device for index, device in enumerate(devices) if index not in idle], outer)
    strings = dummy_strings(folded, outer)
    return Reference(
        name=circuit.name or "top",
        devices=tuple(device for index, device in enumerate(folded) if index not in strings),
        dummies=tuple(device for index, device in enumerate(devices) if index in idle),
        ports=circuit.ports,
        nets=frozenset(circuit.nets) | {net for device in devices for net in device.nets.values()},
        black_boxes=circuit.black_boxes,
        replaced=tuple(replaced_data(with_defaults(circuit, technology), technology)),
    )


def with_defaults(circuit: Circuit, technology: Technology) -> Circuit:
    """Return the circuit with the devices that name only their kind as replaced by the default of that kind.

    Raises:
        NetlistError: If a model is none of the technology's.
    """
    specs = _specs(circuit, technology)
    plain = {each.id for each in circuit.devices if technology.device_names.drawn(each.model) is None}
    if not plain:
        return circuit
    devices = (replace(d, model=specs[d.id].name) if d.id in plain else d for d in circuit.devices)
    replaced = (ReplacedDevice(d.id, d.model, d.params) for d in circuit.devices if d.id in plain)
    return replace(circuit, devices=tuple(devices), replaced=(*circuit.replaced, *replaced))


def _loops_of_two_units(devices: Sequence[ReferenceDevice], outer: Collection[str]) -> set[int]:
    """Return the indexes of resistors of two units on a net that meets nothing else: see ``folding.loops``."""
    meeting = Counter(net for device in devices for net in device.nets.values())
    return {
        index
        for index, device in enumerate(devices)
        if device.kind.in_series == "lengths"
        and device.fingers == 2
        and any(meeting[device.nets[end]] == 1 and device.nets[end] not in outer for end in device.kind.ends)
    }


def _specs(circuit: Circuit, technology: Technology) -> dict[str, DeviceSpec | PassiveSpec]:
    """Return the technology's device of every device; one error names all models that have none."""
    specs: dict[str, DeviceSpec | PassiveSpec] = {}
    spec: DeviceSpec | PassiveSpec
    unknown: dict[str, list[str]] = {}
    for device in circuit.devices:
        try:
            find = technology.device if device.is_mos else technology.passive
            spec = technology.device_names.drawn(device.model) or find(device.model or device.type)
        except TechnologyError:
            unknown.setdefault(device.model, []).append(device.id)
            continue
        if spec.type != device.type:
            unknown.setdefault(f"{device.model} as {device.type}", []).append(device.id)
        specs[device.id] = spec if isinstance(spec, DeviceSpec) else of_size(technology, spec, device)
    if unknown:
        every: list[DeviceSpec | PassiveSpec] = [*technology.devices.values(), *technology.passives.values()]
        known = sorted({name for entry in every for name in (entry.name, entry.model)})
        shown = sentences(f"{model} ({listed(ids)})" for model, ids in sorted(unknown.items()))
        raise NetlistError(
            f"technology {technology.name} has no device for the models {shown}; it has {listed(known)}. "
            "Use these names in the netlist, or have devices mapped (map_devices, or device_map for models you choose)",
            details={"unknown_models": dict(sorted(unknown.items())), "known": known},
        )
    return specs


def _device(device: Device, spec: DeviceSpec | PassiveSpec, technology: Technology) -> ReferenceDevice:
    if not isinstance(spec, DeviceSpec):
        return _passive(device, spec, technology)
    w_um, l_um, fingers = device.w * 1e6, device.l * 1e6, device.nf * device.m
    if w_um <= 0 or l_um <= 0 or device.nf < 1 or device.m < 1:
        raise NetlistError(
            f"Device '{device.id}': w, l, nf and m must be positive, got w={device.w:g} m, l={device.l:g} m, "
            f"nf={device.nf}, m={device.m}"
        )
    finger = technology.to_um(technology.snap(w_um / device.nf / technology.dbu_um))
    return ReferenceDevice(
        id=device.id,
        device=spec.name,
        kind=spec.kind,
        w_um=round(w_um * device.m, 9),
        l_um=round(l_um, 9),
        drawn_w_um=round(finger * fingers, 9),
        drawn_l_um=technology.to_um(technology.snap(l_um / technology.dbu_um)),
        fingers=fingers,
        nets=(device.with_ends_exchanged() if spec.unequal_ends and device.exchanged else device).terminals,
        blocked_um=tuple(map(technology.to_um, spec.blocked(device.params, technology.dbu_um) or ())),
        in_deep_well=bool(deep_well(technology, device)),
    )


def _passive(device: Device, spec: PassiveSpec, technology: Technology) -> ReferenceDevice:
    device, odd_area = _with_sides(sized(technology, spec, with_units(device)))
    fixed_width = technology.device_names.fixed_width(device.model)
    if fixed_width is not None:  # the model's name states the width, whatever w says
        device = replace(device, params={**device.params, "w": technology.to_um(fixed_width) * 1e-6})
    if not {"w", "l"} <= device.params.keys():
        raise NetlistError(
            f"Device '{device.id}' ({device.model}) states no w and l; state both, or have devices mapped "
            "(map_devices), which takes the size from the value"
        )
    length = stated_length(device, bend_length(spec, device.w))
    w_um, l_um = device.w * 1e6, (length or 0) * 1e6
    if w_um <= 0 or l_um <= 0 or device.m < 1:
        raise NetlistError(
            f"Device '{device.id}': w, l and m must be positive, got w={device.w:g} m, l={device.l:g} m, m={device.m}"
        )
    if device.kind.rectangle and not spec.fed:
        w_um, l_um = max(w_um, l_um), min(w_um, l_um)
    drawn_w, drawn_l = (technology.to_um(technology.snap(length / technology.dbu_um)) for length in (w_um, l_um))
    extracted = set(RECIPES[device.type].terminals.values())
    terminals = device.kind.all_terminals[: max(spec.terminals, len(device.kind.terminals))]
    return ReferenceDevice(
        id=device.id,
        device=spec.name,
        kind=spec.kind,
        w_um=round(w_um * device.m, 9),
        l_um=round(l_um, 9),
        drawn_w_um=round(drawn_w * device.m, 9),
        drawn_l_um=drawn_l,
        fingers=device.m,
        nets={
            terminal: device.terminals[terminal]
            for terminal in terminals
            if terminal in device.terminals and terminal in extracted
        },
        odd_area_um2=None if odd_area is None else odd_area * 1e12 * device.m,
        feed_um=round(device.params.get("wfeed", 0) * 1e6, 9)
        or technology.to_um(spec.usual_feed(round(w_um / technology.dbu_um))),
        in_deep_well=bool(deep_well(technology, device)),
    )


def _with_sides(device: Device) -> tuple[Device, float | None]:
    """Return the device with ``w`` and ``l``, and its area [m2] where no rectangle has that area and its perimeter."""
    try:
        return with_sides(device), None
    except NetlistError:
        area, perimeter = device.params["area"], device.params.get("perimeter", 0)
        if area <= 0 or perimeter <= 0:
            raise
    return replace(device, params={**device.params, "w": perimeter / 4, "l": perimeter / 4}), area


def klayout_netlist(reference: Reference, technology: Technology) -> kdb.Netlist:
    """Return the reference in KLayout's model: one device per group of parallel devices of one drawn length."""
    netlist = kdb.Netlist()
    classes: dict[str, kdb.DeviceClass] = {}
    for name in (*sorted(technology.devices), *sorted(technology.passives)):
        classes[name] = RECIPES[technology.any_device(name).type].device_class(technology.passives.get(name))
        classes[name].name = name
        netlist.add(classes[name])
    circuit = kdb.Circuit()
    circuit.name = reference.name
    netlist.add(circuit)
    nets = {name: circuit.create_net(name) for name in sorted(reference.nets)}
    for port in reference.ports:
        circuit.connect_pin(circuit.create_pin(port), nets[port])
    for members in reference.groups.values():
        by_length: dict[float, list[ReferenceDevice]] = {}
        for member in members:
            by_length.setdefault(member.drawn_l_um, []).append(member)
        for length, alike in by_length.items():
            device = circuit.create_device(classes[alike[0].device], "+".join(member.id for member in alike))
            if alike[0].kind.rectangle:
                area = "AE" if classes[alike[0].device].has_parameter("AE") else "A"
                device.set_parameter(area, sum(member.drawn_area_um2 for member in alike))
            else:
                device.set_parameter("W", sum(member.drawn_w_um for member in alike))
                device.set_parameter("L", length)
            for name, terminal in RECIPES[alike[0].kind.name].terminals.items():
                if terminal in alike[0].nets:
                    device.connect_terminal(name, nets[alike[0].nets[terminal]])
    return netlist
