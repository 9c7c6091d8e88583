"""Layout constraints of a circuit: one object, its JSON file, and what contradicts the circuit or itself.

Recognition, a user's file or a model's suggestion fill a ``Constraints``; the placer and the router obey it. The file
is what ``plan.suggest_constraints`` writes, every section optional::

    {"symmetry": [{"pairs": [["M1", "M2"]], "self_symmetric": ["M5"], "net_pairs": [["inp", "inn"]], "reason": "..."}],
     "matching": [{"devices": ["M1", "M2"], "arrangement": "auto", "reason": "..."}],
     "proximity": [{"devices": ["M5", "M6"], "reason": "..."}],
     "alignment": [{"devices": ["M5", "M6"], "edge": "bottom", "reason": "..."}],
     "ordering": [{"devices": ["M5", "M6"], "direction": "left_to_right", "reason": "..."}],
     "abutment": [{"devices": ["M5", "M6"], "reason": "..."}],
     "outline": [{"width": 40, "height": 30, "aspect": 1.5, "reason": "..."}],
     "net_priorities": [{"net": "inp", "priority": 1, "kind": "sensitive", "reason": "..."}],
     "net_currents": [{"net": "out", "current": 0.001, "reason": "..."}],
     "net_lengths": [{"nets": ["outp", "outn"], "tolerance": 0.02, "reason": "..."}],
     "net_shields": [{"net": "inp", "shield": "vss", "reason": "..."}],
     "net_separations": [{"nets": ["inp", "out"], "reason": "..."}],
     "device_currents": [{"device": "M5", "current": 0.001, "reason": "..."}],
     "port_sides": [{"port": "inp", "side": "left", "order": 1, "reason": "..."}]}

``constraints.schema.json`` states the format; ``find_faults`` checks what a schema cannot say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.placement_conflicts import contradictions
from layoutkit.circuit.recognise import same_size
from layoutkit.circuit.supplies import find_supplies
from layoutkit.errors import LayoutkitError, did_you_mean
from layoutkit.file_schema import JsonSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device

SCHEMA = JsonSchema(Path(__file__).with_name("constraints.schema.json"))
MAX_NAME = 200  # characters of a name in a message
MAX_HINTED = 50  # faults that suggest another name
MAX_SHOWN = 10  # faults in a message; the details hold all
PRIORITIES = {"sensitive": 1, "signal": 2, "bias": 3, "supply": 4}
"""Priority of a net by its kind; nets with a smaller number are routed first."""
OPPOSITE = {"left": "right", "right": "left", "bottom": "bottom", "top": "top"}
"""Side at which the mirror image of a port lies."""


@dataclass(frozen=True)
class SymmetryGroup:
    """Devices and nets that are mirror images of each other about one vertical axis.

    Attributes:
        pairs: Equal devices, left first.
        self_symmetric: Devices to be centred on the axis.
        net_pairs: Nets whose wires are to be mirror images.
        reason: Why, in a few words.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    self_symmetric: tuple[str, ...] = ()
    net_pairs: tuple[tuple[str, str], ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class MatchedGroup:
    """Devices to be drawn as one matched module; a mirror's reference comes first.

    ``arrangement`` is ``auto``, ``interdigitated`` (one row), ``stacked`` (a row for each unit), or a pattern in which
    ``A`` is the first device, such as ``ABBA``, ``A2B4A2`` or ``AB/BA``.
    """

    devices: tuple[str, ...]
    arrangement: str = "auto"
    reason: str = ""


@dataclass(frozen=True)
class ProximityGroup:
    """Devices to be placed next to each other."""

    devices: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class Alignment:
    """Devices whose modules have an edge in common: their left, right, bottom or top, or their middle in x or y."""

    devices: tuple[str, ...]
    edge: str
    reason: str = ""


@dataclass(frozen=True)
class Ordering:
    """Devices whose modules lie one after the other: ``left_to_right`` or ``bottom_to_top``."""

    devices: tuple[str, ...]
    direction: str
    reason: str = ""


@dataclass(frozen=True)
class Abutment:
    """Devices whose modules lie side by side, from left to right, as close as the design rules allow."""

    devices: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class Outline:
    """The largest width and height of the layout [um], and the largest ratio of its longer to its shorter side."""

    width: float | None = None
    height: float | None = None
    aspect: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class NetPriority:
    """When a net is routed: a smaller ``priority`` first. ``kind`` is a key of ``PRIORITIES``, or empty."""

    net: str
    priority: int
    kind: str = ""
    reason: str = ""


@dataclass(frozen=True)
class NetCurrent:
    """The largest direct current of a net. [A]"""

    net: str
    current: float
    reason: str = ""


@dataclass(frozen=True)
class NetLengths:
    """Nets whose wires are equally long; ``tolerance``: largest difference to the longest, as a share of it."""

    nets: tuple[str, ...]
    tolerance: float = 0.02
    reason: str = ""


@dataclass(frozen=True)
class NetShield:
    """A net whose wires have wires of the net ``shield`` at both sides, with vias to it."""

    net: str
    shield: str
    reason: str = ""


@dataclass(frozen=True)
class NetSeparation:
    """Nets whose wires avoid running side by side."""

    nets: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class DeviceCurrent:
    """The largest direct current through a device, between its drain and source or its two ends. [A]"""

    device: str
    current: float
    reason: str = ""


@dataclass(frozen=True)
class PortSide:
    """The side of the boundary at which a port is wanted: left, right, bottom or top.

    Ports of one side that have an ``order`` lie in that order, from the left or from below.
    """

    port: str
    side: str
    order: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Constraints:
    """All constraints of one circuit."""

    symmetry: tuple[SymmetryGroup, ...] = ()
    matching: tuple[MatchedGroup, ...] = ()
    proximity: tuple[ProximityGroup, ...] = ()
    alignment: tuple[Alignment, ...] = ()
    ordering: tuple[Ordering, ...] = ()
    abutment: tuple[Abutment, ...] = ()
    outline: tuple[Outline, ...] = ()
    net_priorities: tuple[NetPriority, ...] = ()
    net_currents: tuple[NetCurrent, ...] = ()
    net_lengths: tuple[NetLengths, ...] = ()
    net_shields: tuple[NetShield, ...] = ()
    net_separations: tuple[NetSeparation, ...] = ()
    device_currents: tuple[DeviceCurrent, ...] = ()
    port_sides: tuple[PortSide, ...] = ()

    @classmethod
    def from_json(cls, data: Any) -> Constraints:
        """Return the constraints in JSON data.

        Raises:
            LayoutkitError: If ``data`` does not follow ``constraints.schema.json``; the details list every fault.
        """
        if isinstance(data, dict) and data and not any(did_you_mean(name, _ENTRIES) for name in data):
            # A document of another kind, which no message may quote.
            text = f"not a document of layout constraints: it has none of {', '.join(_ENTRIES)}"
            raise LayoutkitError(text, details={"param_name": "constraints"})
        faults = [ConstraintFault(fault.place, fault.message) for fault in SCHEMA.faults(data)]
        _raise_faults(faults, "the constraints do not have the format of plan.suggest_constraints")
        return cls(
            **{name: tuple(_entry(_ENTRIES[name], entry) for entry in entries) for name, entries in data.items()}
        )

    def to_json(self) -> dict[str, Any]:
        """Return the constraints as JSON data, as ``from_json`` takes it, without empty optional sections."""
        return {
            name: [_entry_data(entry) for entry in getattr(self, name)]
            for name in _ENTRIES
            if name in _ALWAYS or getattr(self, name)
        }

    @cached_property
    def priorities(self) -> dict[str, int]:
        """Net to its priority."""
        return {entry.net: entry.priority for entry in self.net_priorities}

    @cached_property
    def currents(self) -> dict[str, float]:
        """Net to its current. [A]"""
        return {entry.net: entry.current for entry in self.net_currents}

    @cached_property
    def device_loads(self) -> dict[str, float]:
        """Device to its current. [A]"""
        return {entry.device: entry.current for entry in self.device_currents}

    @cached_property
    def sides(self) -> dict[str, str]:
        """Port to the side at which it is wanted."""
        return {entry.port: entry.side for entry in self.port_sides}


_ENTRIES: dict[str, type[Any]] = {
    "symmetry": SymmetryGroup,
    "matching": MatchedGroup,
    "proximity": ProximityGroup,
    "alignment": Alignment,
    "ordering": Ordering,
    "abutment": Abutment,
    "outline": Outline,
    "net_priorities": NetPriority,
    "net_currents": NetCurrent,
    "net_lengths": NetLengths,
    "net_shields": NetShield,
    "net_separations": NetSeparation,
    "device_currents": DeviceCurrent,
    "port_sides": PortSide,
}
_ALWAYS = ("symmetry", "matching", "net_priorities")


def _entry(kind: type[Any], entry: Mapping[str, Any]) -> Any:
    return kind(**{name: _frozen(value) for name, value in entry.items()})


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value


def _entry_data(entry: Any) -> dict[str, Any]:
    found = {name: _thawed(value) for name, value in vars(entry).items()}
    return {name: value for name, value in found.items() if value is not None and (name, value) != ("kind", "")}


def _thawed(value: Any) -> Any:
    return [_thawed(each) for each in value] if isinstance(value, tuple) else value


class ConstraintFault(NamedTuple):
    """What is wrong with one constraint: its place, such as ``symmetry[0].pairs[1]``, and why."""

    path: str
    message: str
    value: Any = None


def parse_constraints(text: str) -> Constraints:
    """Return the constraints of a JSON text.

    Raises:
        LayoutkitError: If it is not JSON, or has another format; the details list every fault.
    """
    from layoutkit.circuit.readers.json_reader import parse_json

    try:
        data = parse_json(text)
    except LayoutkitError as error:
        reason = _short(str(error))
        message = f"the file of constraints is not JSON ({reason}); give a file as plan.suggest_constraints writes it"
        raise LayoutkitError(message, details={"param_name": "constraints"}) from error
    return Constraints.from_json(data)


def check_constraints(constraints: Constraints, circuit: Circuit | None) -> None:
    """Check that constraints fit ``circuit``, where it is known, and do not contradict one another.

    Raises:
        LayoutkitError: If they do not; the details list every fault.
    """
    what = "contradict themselves" if circuit is None else f"do not fit circuit {circuit.name}"
    _raise_faults(find_faults(constraints, circuit), f"the constraints {what}")


@dataclass(frozen=True)
class Outcome:
    """What became of one constraint.

    Attributes:
        path: Its place, such as ``symmetry[0].pairs[1]``.
        names: The devices, nets or port that it names.
        obeyed: Whether the layout obeys it; None if a later step decides.
        reason: How it is obeyed, or why it is not.
    """

    path: str
    names: tuple[str, ...]
    obeyed: bool | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON data."""
        return {"constraint": self.path, "names": list(self.names), "obeyed": self.obeyed, "reason": self.reason}


def _raise_faults(faults: Sequence[ConstraintFault], what: str) -> None:
    if faults:
        listed = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:MAX_SHOWN])
        more = f"; and {len(faults) - MAX_SHOWN} more" if len(faults) > MAX_SHOWN else ""
        errors = [{"path": fault.path, "message": fault.message} for fault in faults]
        raise LayoutkitError(f"{what}: {listed}{more}", details={"param_name": "constraints", "errors": errors})


def find_faults(constraints: Constraints, circuit: Circuit | None) -> list[ConstraintFault]:
    """Return what is wrong with constraints for ``circuit``: what it lacks, and what contradicts itself.

    Without a circuit, every name counts as known, and only contradictions are found.
    """
    judge = _Judge(circuit)
    for name in _ENTRIES:
        for index, entry in enumerate(getattr(constraints, name)):
            getattr(judge, name)(f"{name}[{index}]", entry)
    judge.mirrored_ports(constraints)
    opposed = contradictions(constraints)
    return [*judge.faults, *(ConstraintFault(each.paths[-1], each.text, list(each.names)) for each in opposed)]


class _Judge:
    """Collects the faults of constraints, one constraint after the other."""

    def __init__(self, circuit: Circuit | None) -> None:
        self._circuit = circuit
        self._devices = {device.id: device for device in circuit.devices} if circuit else {}
        self._supplies = find_supplies(circuit) if circuit else None
        self._placed: dict[str, str] = {}
        self._mirrored: dict[str, str] = {}
        self._matched: dict[str, str] = {}
        self._ranked: dict[str, str] = {}
        self._loaded: dict[str, str] = {}
        self._equalled: dict[str, str] = {}
        self._shielded: dict[str, str] = {}
        self._driven: dict[str, str] = {}
        self._sided: dict[str, str] = {}
        self._found: dict[tuple[str, str], ConstraintFault] = {}
        self._looked_up = 0

    @property
    def faults(self) -> list[ConstraintFault]:
        """What is wrong, each reported once."""
        return list(self._found.values())

    def symmetry(self, path: str, group: SymmetryGroup) -> None:
        """Judge one symmetry group."""
        for index, pair in enumerate(group.pairs):
            where = f"{path}.pairs[{index}]"
            devices = [self._device(where, name) for name in pair]
            self._alone(where, pair, self._placed)
            if None not in devices:
                self._alike(where, [device for device in devices if device is not None], "symmetric")
        for index, name in enumerate(group.self_symmetric):
            where = f"{path}.self_symmetric[{index}]"
            self._device(where, name)
            self._alone(where, [name], self._placed)
        for index, pair in enumerate(group.net_pairs):
            where = f"{path}.net_pairs[{index}]"
            known = [self._net(where, name) for name in pair]
            self._alone(where, pair, self._mirrored)
            supply = next((name for name in pair if self._supplies and name in self._supplies), None)
            if all(known) and supply is not None:
                self._report(where, f"the supply net {supply!r} mirrors no other net", pair)

    def matching(self, path: str, group: MatchedGroup) -> None:
        """Judge one group of matched devices."""
        devices = [self._device(path, name) for name in group.devices]
        self._alone(path, group.devices, self._matched)
        known = [device for device in devices if device is not None]
        if len(known) < len(devices):
            return
        kinds = sorted({f"{device.type} {device.model}" for device in known})
        if len(kinds) > 1:
            self._report(path, f"devices of different kinds cannot be matched: {', '.join(kinds)}", list(group.devices))
            return
        letters = sorted({letter for letter in group.arrangement if letter.isupper()})
        wanted = [chr(ord("A") + place) for place in range(len(known))]
        if letters and letters != wanted:
            self._report(
                path,
                f"{group.arrangement} arranges {len(letters)} devices ({', '.join(letters)}), got {len(known)}",
                list(group.devices),
            )

    def proximity(self, path: str, group: ProximityGroup | Alignment | Ordering | Abutment) -> None:
        """Judge one group of neighbours, or of devices in a line; a device may be in several."""
        for name in group.devices:
            self._device(path, name)
        self._alone(path, group.devices, {})

    alignment = ordering = abutment = proximity

    def outline(self, path: str, entry: Outline) -> None:
        """Judge the outline: it must limit something."""
        if entry.width is None and entry.height is None and entry.aspect is None:
            self._report(path, "an outline needs a width, a height or an aspect", None)

    def net_priorities(self, path: str, entry: NetPriority) -> None:
        """Judge the priority of one net."""
        if self._net(path, entry.net):
            self._alone(path, [entry.net], self._ranked)

    def net_currents(self, path: str, entry: NetCurrent) -> None:
        """Judge the current of one net."""
        if self._net(path, entry.net):
            self._alone(path, [entry.net], self._loaded)

    def net_lengths(self, path: str, entry: NetLengths) -> None:
        """Judge a group of nets of equal length."""
        if not [name for name in entry.nets if not self._net(path, name)]:
            self._alone(path, entry.nets, self._equalled)

    def net_shields(self, path: str, entry: NetShield) -> None:
        """Judge the shield of one net."""
        if self._net(path, entry.net) and self._net(path, entry.shield):
            self._alone(path, [entry.net], self._shielded)
            if entry.net == entry.shield:
                self._report(path, f"{_short(entry.net)!r} cannot shield itself", entry.net)

    def net_separations(self, path: str, entry: NetSeparation) -> None:
        """Judge a group of nets to keep apart; a net may be in several."""
        if not [name for name in entry.nets if not self._net(path, name)]:
            self._alone(path, entry.nets, {})

    def device_currents(self, path: str, entry: DeviceCurrent) -> None:
        """Judge the current of one device."""
        self._device(path, entry.device)
        self._alone(path, [entry.device], self._driven)

    def port_sides(self, path: str, entry: PortSide) -> None:
        """Judge the side of one port."""
        if not self._net(path, entry.port):
            return
        if self._circuit and entry.port not in self._circuit.ports:
            ports = ", ".join(self._circuit.ports[:MAX_SHOWN]) or "none"
            self._report(
                path, f"{_short(entry.port)!r} is a net inside the circuit, no port; ports: {ports}", entry.port
            )
        self._alone(path, [entry.port], self._sided)

    def mirrored_ports(self, constraints: Constraints) -> None:
        """Judge ports whose nets mirror each other: they cannot both be on the left."""
        sides = constraints.sides
        for one, other in (pair for group in constraints.symmetry for pair in group.net_pairs):
            if one in sides and other in sides and sides[other] != OPPOSITE[sides[one]]:
                self._report(
                    self._sided[other],
                    f"{_short(one)!r} ({sides[one]}) and {_short(other)!r} ({sides[other]}) mirror each other about a "
                    f"vertical axis; {_short(other)!r} can be at the side {OPPOSITE[sides[one]]} only",
                    other,
                )

    def _device(self, path: str, name: str) -> Device | None:
        device = self._devices.get(name)
        if device is None and self._circuit:
            self._report(path, f"the circuit has no device {_short(name)!r}{self._nearest(name, self._devices)}", name)
        return device

    def _net(self, path: str, name: str) -> bool:
        if self._circuit is None or name in self._circuit.nets:
            return True
        self._report(path, f"the circuit has no net {_short(name)!r}{self._nearest(name, self._circuit.nets)}", name)
        return False

    def _alone(self, path: str, names: Sequence[str], taken: dict[str, str]) -> None:
        """Record where names are listed; a name that is listed elsewhere, too, is a fault."""
        here = Counter(names)
        for name in names:
            other = taken.setdefault(name, path)
            if other != path or here[name] > 1:
                place = "listed twice here" if here[name] > 1 else f"already in {other}"
                self._report(path, f"{_short(name)!r} is {place}", name)

    def _alike(self, path: str, devices: Sequence[Device], purpose: str) -> None:
        """Report devices that are not drawn alike."""
        first, *others = devices
        different = [device.id for device in others if not same_size(first, device)]
        if different:
            self._report(
                path,
                f"{first.id} and {', '.join(different)} differ in type, model or size and cannot be {purpose}",
                [device.id for device in devices],
            )

    def _report(self, path: str, message: str, value: Any) -> None:
        self._found.setdefault((path, message), ConstraintFault(path, message, value))

    def _nearest(self, name: str, known: Iterable[str]) -> str:
        """Return a hint at a similar name, for the first ``MAX_HINTED`` faults."""
        self._looked_up += 1
        if len(name) > MAX_NAME or self._looked_up > MAX_HINTED:
            return ""
        return did_you_mean(name, known, 0.5)


def _short(name: str) -> str:
    """Return a name for use in a message."""
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."
