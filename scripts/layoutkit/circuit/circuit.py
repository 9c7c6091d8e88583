"""The circuit: devices, the nets that connect them, and the modules recognised among them.

Everything is immutable plain data. A circuit is flat: hierarchy is resolved by the readers, and a device that came
from an instance carries the instance path in its id (``X1.M2``). ``Circuit.subcircuits`` states which devices came from
which instance.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.errors import DeviceNotFoundError, Findings, NetlistError, did_you_mean, sentences
from layoutkit.technology.device_kinds import DEEP_WELL, KINDS
from layoutkit.technology.finger_widths import stated_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.technology.device_kinds import DeviceKind

INTEGER_PARAMS = frozenset({"m", "nf", "nfin", "stack", "bends", DEEP_WELL})
JUNCTIONS = ("ad", "as", "pd", "ps")
"""Areas [m2] and perimeters [m] of drain and source that a netlist may state for a MOS transistor."""
_OTHER_END = {"ad": "as", "as": "ad", "pd": "ps", "ps": "pd"}
OTHER_SIZE = "ad, as, pd and ps belong to another size and are left out of the simulation of the netlist"


class Connection(NamedTuple):
    """One device terminal on a net; unpacks as ``(device, terminal)``."""

    device: str
    terminal: str


@dataclass(frozen=True)
class Device:
    """One primitive of the circuit.

    Attributes:
        id: Name, unique in the circuit; instance path and name joined by dots.
        type: Name of its kind, one of ``KINDS``.
        model: Model name as the netlist gives it, or as the technology names it after mapping.
        params: MOS: ``w`` [m] total drawn width of one multiplier unit over all its fingers, ``l`` [m] gate length,
            ``nf`` fingers, ``m`` parallel units. Passives: ``r`` [ohm], ``c`` [F], ``w``/``l`` [m], ``m``; of a
            capacitor ``series``, equal capacitors of that size in series. ``deep_well`` is 1 where a device lies in a
            deep well even though its body is on the substrate's net.
        terminals: Terminal name to net name: MOS ``d g s b``; two-terminal ``p n`` (and ``b``); bipolar ``c b e``.
        junctions: ``JUNCTIONS`` of one multiplier unit as the netlist states them; empty where it states none. Only the
            simulation of the netlist uses them. Placement, drawing and LVS do not, and extraction measures its own.
            They hold for one ``w``, ``l`` and ``nf``: a change of any of these drops them, with a warning. A change of
            ``m`` or of the model does not.
        exchanged: Whether the netlist calls the drain source and the source drain; netlists are written in that order.
        both_ways: Whether this transistor carries current both ways, as ``orientation.oriented`` marks it; None before.
        unknown: Parameters whose values the netlist leaves open. ``params`` has stand-ins for them, which only tell
            equal sizes from others and are shown nowhere.
    """

    id: str
    type: str
    model: str
    params: Mapping[str, float]
    terminals: Mapping[str, str]
    junctions: Mapping[str, float] = field(default_factory=dict)
    exchanged: bool = field(default=False, compare=False)
    both_ways: bool | None = field(default=None, compare=False)
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", dict(self.params))
        object.__setattr__(self, "terminals", dict(self.terminals))
        object.__setattr__(self, "junctions", dict(self.junctions))

    @property
    def kind(self) -> DeviceKind:
        """The declaration of its kind."""
        return KINDS[self.type]

    @property
    def is_mos(self) -> bool:
        """Whether this is a MOS transistor."""
        return self.kind.is_mos

    @property
    def w(self) -> float:
        """Total drawn gate width of one multiplier unit [m]."""
        return self._required("w")

    @property
    def l(self) -> float:  # noqa: E743 - the domain's own name for gate length
        """Gate length [m]."""
        return self._required("l")

    @property
    def nf(self) -> int:
        """Fingers of one multiplier unit."""
        return int(self.params.get("nf", 1))

    @property
    def m(self) -> int:
        """Multiplier: identical units in parallel."""
        return int(self.params.get("m", 1))

    @property
    def in_series(self) -> tuple[Device, ...]:
        """The equal capacitors in series that it consists of, with nets of its own between them; else itself."""
        count = int(self.params.get("series", 1))
        if count < 2 or self.kind.in_series:  # the length of bars in series is one length
            return (self,)
        first, last = self.kind.ends
        nets = [self.terminals[first], *(f"{self.id}#{i}" for i in range(1, count)), self.terminals[last]]
        params = {name: value for name, value in self.params.items() if name != "series"}
        return tuple(
            replace(
                self,
                id=f"{self.id}_s{i + 1}",
                params=params,
                terminals={**self.terminals, first: nets[i], last: nets[i + 1]},
            )
            for i in range(count)
        )

    @property
    def in_deep_well(self) -> bool:
        """Whether it states that it lies in a deep well."""
        return bool(self.params.get(DEEP_WELL))

    def _required(self, name: str) -> float:
        try:
            return float(self.params[name])
        except KeyError:
            raise NetlistError(f"Device '{self.id}' ({self.model}) has no parameter '{name}'") from None

    def with_ends_exchanged(self) -> Device:
        """Return this device with its ends exchanged, what was stated or measured at them as well, and marked so."""
        junctions = {_OTHER_END[name]: value for name, value in self.junctions.items()}
        params = self.params
        if self.is_mos:
            params = {_OTHER_END.get(name, name): value for name, value in params.items()}
        first, second = self.kind.ends
        ends = {first: self.terminals[second], second: self.terminals[first]}
        terminals = {**self.terminals, **ends}
        return replace(self, terminals=terminals, params=params, junctions=junctions, exchanged=not self.exchanged)

    @property
    def as_written(self) -> Device:
        """This device with drain and source as the netlist calls them."""
        return self.with_ends_exchanged() if self.exchanged else self

    def to_json(self) -> dict[str, Any]:
        """Return the device in the shape of the netlist format, in which the junctions are among the parameters."""
        if self.exchanged:
            return self.as_written.to_json()
        stated = {**self.params, **self.junctions}
        return {
            "id": self.id,
            "type": self.type,
            "model": self.model,
            "params": {k: _plain_number(k, value) for k, value in sorted(stated.items()) if k not in self.unknown},
            "terminals": dict(self.terminals),
        }


@dataclass(frozen=True)
class BlackBox:
    """An instance of a cell whose content the netlist does not hold, kept because the caller listed the cell.

    Attributes:
        id: Name, unique in the circuit; instance path and name joined by dots.
        cell: Name of the empty or undefined subcircuit.
        nets: Port to net; ports of an undefined cell are numbered from 1.
    """

    id: str
    cell: str
    nets: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as an instance of the netlist format."""
        return {"id": self.id, "cell": self.cell, "terminals": dict(self.nets)}


@dataclass(frozen=True)
class SubcircuitInstance:
    """One instance of a subcircuit, whose devices are among those of the flat circuit.

    Attributes:
        path: Names of the instances from the top, joined by dots: ``X1.X2``.
        parent: Path of the instance that contains it; empty at the top.
        cell: Name of the subcircuit.
        ports: Port to the name of its net inside the parent; the parent's own names, not those of the flat circuit.
        devices: Id of each device directly in it to its terminals, each with the name of its net inside the subcircuit.
    """

    path: str
    parent: str
    cell: str
    ports: Mapping[str, str]
    devices: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class RecognisedModule:
    """A group of devices that belongs together in a layout.

    Attributes:
        id: Name, unique in the circuit, such as ``diff_pair_1``.
        type: A key of ``layoutkit.circuit.recognise.MODULE_TYPES``, such as ``differential_pair``.
        devices: Ids; the order carries meaning (reference first, left before right).
        properties: JSON data that depends on the type.
    """

    id: str
    type: str
    devices: tuple[str, ...]
    properties: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the module in the shape of the netlist format."""
        return {"id": self.id, "type": self.type, "devices": list(self.devices), "properties": dict(self.properties)}


@dataclass(frozen=True)
class ReplacedDevice:
    """What the netlist states of a device that is drawn as another one.

    Attributes:
        device: Its id.
        model: The model that the netlist names; the name of the kind where it names none.
        params: Its parameters in the netlist. [SI units]
        asked: Whether the user named the model in a device map; else no process at hand has it, or another one has.
    """

    device: str
    model: str
    params: Mapping[str, float]
    asked: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return {**vars(self), "params": {name: _plain_number(name, value) for name, value in self.params.items()}}


@dataclass(frozen=True)
class StatedSupplies:
    """Power and ground nets as the user states them, in place of those that are found.

    Attributes:
        power: Nets of power; None where they are to be found.
        ground: Nets of ground; None where they are to be found.
        reason: Why, in a few words.
    """

    power: tuple[str, ...] | None = None
    ground: tuple[str, ...] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Circuit:
    """A flat circuit.

    Attributes:
        name: Name of the top subcircuit; may be empty for an empty netlist.
        devices: In the order of the netlist.
        ports: Nets that leave the circuit, in order.
        modules: What recognition found; empty when it did not run.
        black_boxes: Instances of listed cells whose content is unknown; nothing is drawn or compared for them.
        replaced: The devices that are drawn as others than the netlist names, in its order.
        supplies: Power and ground as the user states them; None where they are found. Not part of equality. Names that
            the circuit lacks are not used; ``supplies.supply_faults`` finds them.
        warnings: What the reader decided or ignored, in words. Not part of equality or of the JSON form.
        subcircuits: The instances that the devices came from, outer ones first. Not part of equality or of the JSON
            form, which is flat.
    """

    name: str
    devices: tuple[Device, ...] = ()
    ports: tuple[str, ...] = ()
    modules: tuple[RecognisedModule, ...] = ()
    black_boxes: tuple[BlackBox, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    subcircuits: tuple[SubcircuitInstance, ...] = field(default=(), compare=False)
    replaced: tuple[ReplacedDevice, ...] = ()
    supplies: StatedSupplies | None = field(default=None, compare=False)

    @cached_property
    def nets(self) -> dict[str, tuple[Connection, ...]]:
        """Net name to its connections: ports first, then nets in order of first use, those of black boxes last."""
        found: dict[str, list[Connection]] = {port: [] for port in self.ports}
        for device in self.devices:
            for terminal, net in device.terminals.items():
                found.setdefault(net, []).append(Connection(device.id, terminal))
        for net in self.black_box_nets:
            found.setdefault(net, [])
        return {net: tuple(connections) for net, connections in found.items()}

    @cached_property
    def black_box_nets(self) -> tuple[str, ...]:
        """The nets that black boxes are on, in the order of first use."""
        return tuple(dict.fromkeys(net for box in self.black_boxes for net in box.nets.values()))

    @cached_property
    def _by_id(self) -> dict[str, Device]:
        return {device.id: device for device in self.devices}

    def device(self, device_id: str) -> Device:
        """Return the device of that id.

        Raises:
            DeviceNotFoundError: If the circuit has none.
        """
        try:
            return self._by_id[device_id]
        except KeyError:
            raise DeviceNotFoundError(
                f"Device '{device_id}' not found in circuit",
                details={"provided_value": device_id, "available_devices": [d.id for d in self.devices]},
            ) from None

    def with_modules(self, modules: Iterable[RecognisedModule]) -> Circuit:
        """Return this circuit with ``modules`` in place of its own."""
        return replace(self, modules=tuple(modules))

    def to_json(self) -> dict[str, Any]:
        """Return ``{name, ports, devices, nets, modules}`` as plain JSON data, black boxes as ``instances``.

        ``replaced`` lists the replaced devices, if there are any, ``supplies`` the nets that the user states.
        """
        return {
            "name": self.name,
            "ports": list(self.ports),
            "devices": [device.to_json() for device in self.devices],
            "nets": [
                {"name": net, "connections": [{"device": c.device, "terminal": c.terminal} for c in connections]}
                for net, connections in self.nets.items()
            ],
            "modules": [module.to_json() for module in self.modules],
            **({"instances": [box.to_json() for box in self.black_boxes]} if self.black_boxes else {}),
            **({"replaced": [each.to_json() for each in self.replaced]} if self.replaced else {}),
            **({"supplies": stated_data(self.supplies)} if self.supplies else {}),
        }


def stated_data(supplies: StatedSupplies) -> dict[str, Any]:
    """Return stated supplies as JSON data, without what is not stated."""
    kinds = {"power": supplies.power, "ground": supplies.ground}
    found: dict[str, Any] = {kind: list(nets) for kind, nets in kinds.items() if nets is not None}
    return {**found, "reason": supplies.reason} if supplies.reason else found


def stated_supplies(data: Mapping[str, Any]) -> StatedSupplies:
    """Return the stated supplies in JSON data, as ``stated_data`` writes it."""
    power, ground = (tuple(data[kind]) if kind in data else None for kind in ("power", "ground"))
    return StatedSupplies(power, ground, data.get("reason", ""))


def _plain_number(name: str, value: float) -> float | int:
    if name in INTEGER_PARAMS and float(value).is_integer():
        return int(value)
    return value


def resized(circuit: Circuit, sizes: Mapping[str, Mapping[str, float]]) -> Circuit:
    """Return the circuit with other sizes of some devices, whose stated junctions are dropped with a warning.

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
            faults += [fault for size, value in values.items() if (fault := _size_fault(known[name], size, value))]
        else:
            faults.append(f"the circuit has no device {name!r}{did_you_mean(name, known)}")
    if faults:
        details = {"param_name": "sizes", "errors": faults}
        raise NetlistError(f"the sizes do not fit the circuit: {sentences(faults)}", details=details)
    devices = []
    findings = Findings()
    for device in circuit.devices:
        params = {**device.params, **sizes.get(device.id, {})}
        other = any(params.get(name) != device.params.get(name) for name in ("w", "l", "nf"))
        if other and device.junctions:
            findings.warn(OTHER_SIZE, device.id)
        devices.append(replace(device, params=params, junctions={} if other else device.junctions))
    return replace(circuit, devices=tuple(devices), warnings=(*circuit.warnings, *findings.warnings))


def _size_fault(device: Device, size: str, value: float) -> str:
    """Return what is wrong with a new size of a device; empty if nothing is."""
    if size not in device.params:
        return f"{device.id} has no size {size!r}; it has {', '.join(sorted(device.params))}"
    if not (isfinite(value) and value > 0):
        return f"{size} of {device.id} must be above 0, got {value:g}"
    if size in INTEGER_PARAMS and value != int(value):
        return f"{size} of {device.id} must be a whole number, got {value:g}"
    changed = replace(device, params={size: value})
    return "; ".join(f"{device.id}: {text}" for text in stated_faults(changed.params, changed.m, changed.nf))
