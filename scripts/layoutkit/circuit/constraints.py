"""Layout constraints of a circuit: one object and its JSON file.

Recognition, a user's file or a model's suggestion fill a ``Constraints``; the placer and the router obey it. The file
is what ``plan.suggest_constraints`` writes, every section optional. Where it states ``supplies`` or ``substrate_nets``
and none of the first six, recognition completes it::

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
     "port_sides": [{"port": "inp", "side": "left", "order": 1, "reason": "..."}],
     "supplies": {"power": ["vin"], "ground": ["gnd"], "reason": "..."},
     "substrate_nets": {"nets": ["avss", "dvss"], "reason": "..."}}

``constraints.schema.json`` states the format; ``constraint_faults.py`` checks what a schema cannot say.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

from layoutkit.circuit.circuit import StatedSupplies, stated_data
from layoutkit.errors import LayoutkitError, did_you_mean, sentences
from layoutkit.file_schema import JsonSchema, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = JsonSchema(Path(__file__).with_name("constraints.schema.json"))
MAX_NAME = 200  # characters of a name in a message
MAX_SHOWN = 10  # faults in a message; the details hold all
PRIORITIES = {"sensitive": 1, "signal": 2, "bias": 3, "supply": 4}
"""Priority of a net by its kind; nets with a smaller number are routed first."""
OPPOSITE = {"left": "right", "right": "left", "bottom": "bottom", "top": "top"}
"""Side at which the mirror image of a port lies."""


@dataclass(frozen=True)
class SymmetryGroup:
    """Devices and nets that are mirror images of each other about one vertical axis.

    A device may be in two groups where one lies within a half of the other, as in one of two equal amplifiers.

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

    @property
    def sides(self) -> dict[str, int]:
        """Device of a pair to its half, 0 for left and 1 for right."""
        return {name: side for pair in self.pairs for side, name in enumerate(pair)}


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
class SubstrateNets:
    """Grounds that meet in the substrate alone: LVS compares them as nets of their own."""

    nets: tuple[str, ...]
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
    supplies: tuple[StatedSupplies, ...] = ()
    substrate_nets: tuple[SubstrateNets, ...] = ()

    @classmethod
    def from_json(cls, data: Any) -> Constraints:
        """Return the constraints in JSON data.

        Raises:
            LayoutkitError: If ``data`` does not follow ``constraints.schema.json``; the details list every fault.
        """
        if isinstance(data, dict) and data and not any(did_you_mean(name, ENTRIES) for name in data):
            # A document of another kind, which no message may quote.
            text = f"not a document of layout constraints: it has none of {', '.join(ENTRIES)}"
            raise LayoutkitError(text, details={"param_name": "constraints"})
        faults = [ConstraintFault(fault.place, fault.message) for fault in SCHEMA.faults(data)]
        raise_faults(faults, "the constraints do not have the format of plan.suggest_constraints")
        listed = {name: [part] if name in OF_THE_CHIP else part for name, part in data.items()}
        return cls(**{name: tuple(ENTRIES[name](**frozen(each)) for each in listed[name]) for name in listed})

    def to_json(self) -> dict[str, Any]:
        """Return the constraints as JSON data, as ``from_json`` takes it, without empty optional sections."""
        found: dict[str, Any] = {
            name: [_entry_data(entry) for entry in getattr(self, name)]
            for name in ENTRIES
            if name in _ALWAYS or getattr(self, name)
        }
        found |= {"supplies": stated_data(self.supplies[0])} if self.supplies else {}
        return found | ({"substrate_nets": found["substrate_nets"][0]} if self.substrate_nets else {})

    def devices_in(self, *sections: str) -> set[str]:
        """Return the devices that the entries of some sections name."""
        entries = [entry for section in sections for entry in getattr(self, section)]
        pairs = {name for entry in entries if isinstance(entry, SymmetryGroup) for pair in entry.pairs for name in pair}
        names = ("self_symmetric", "devices")
        return pairs | {name for entry in entries for field in names for name in getattr(entry, field, ())}

    @cached_property
    def images(self) -> dict[str, str]:
        """Second net of each pair of nets, mapped to its first net, as stated in the first group with the pair."""
        found: dict[str, str] = {}
        for one, other in (pair for group in self.symmetry for pair in group.net_pairs):
            if found.get(one) != other:
                found.setdefault(other, one)
        return found

    @cached_property
    def axes_within(self) -> dict[SymmetryGroup, list[SymmetryGroup]]:
        """Each symmetry group to those that lie within one of its halves."""
        of: dict[str, list[tuple[SymmetryGroup, dict[str, int]]]] = defaultdict(list)
        for group in self.symmetry:
            sides = group.sides
            for name in sides:
                of[name].append((group, sides))
        found: dict[SymmetryGroup, list[SymmetryGroup]] = defaultdict(list)
        for group in self.symmetry:
            for other, sides in {id(each[0]): each for name in group.sides for each in of[name]}.values():
                known = [{sides.get(name) for name in pair} for pair in group.pairs]
                if other is not group and len(set().union(*known) - {None}) == 1 and all(len(e) == 1 for e in known):
                    found[other].append(group)
        return dict(found)

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


ENTRIES: dict[str, type[Any]] = {name: get_args(entries)[0] for name, entries in get_type_hints(Constraints).items()}
"""Name of each list of constraints to the class of its entries."""
OF_THE_CHIP = ("supplies", "substrate_nets")
"""The sections with one entry, which hold for the whole circuit."""
_ALWAYS = ("symmetry", "matching", "net_priorities")
OF_PLACES = ("alignment", "ordering", "abutment")
"""The sections that state where devices lie, besides what mirrors or surrounds them."""
_OF_DEVICES = ("symmetry", "matching", "proximity", *OF_PLACES)


def _entry_data(entry: Any) -> dict[str, Any]:
    found = {name: _thawed(value) for name, value in vars(entry).items()}
    return {name: value for name, value in found.items() if value is not None and (name, value) != ("kind", "")}


def _thawed(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)  # also of a name with a rank
    return [_thawed(each) for each in value] if isinstance(value, tuple) else value


class ConstraintFault(NamedTuple):
    """What is wrong with one constraint: its place, such as ``symmetry[0].pairs[1]``, and why."""

    path: str
    message: str
    value: Any = None


def parse_data(text: str) -> Any:
    """Return the JSON data of a file of constraints, whose format is not checked.

    Raises:
        LayoutkitError: If it is not JSON.
    """
    from layoutkit.circuit.readers.json_reader import parse_json

    try:
        return parse_json(text)
    except LayoutkitError as error:
        reason = short(str(error))
        message = f"the file of constraints is not JSON ({reason}); give a file as plan.suggest_constraints writes it"
        raise LayoutkitError(message, details={"param_name": "constraints"}) from error


def leaves_devices_open(data: Mapping[str, Any]) -> bool:
    """Return whether constraints state supplies or grounds, and nothing about how devices are matched or placed."""
    return any(name in data for name in OF_THE_CHIP) and not any(name in data for name in _OF_DEVICES)


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


def raise_faults(faults: Sequence[ConstraintFault], what: str, param: str = "constraints") -> None:
    """Raise a LayoutkitError that lists the faults of constraints, if there are any; ``what`` begins its message."""
    if faults:
        listed = sentences((f"{fault.path}: {fault.message}" for fault in faults), MAX_SHOWN)
        errors = [{"path": fault.path, "message": fault.message} for fault in faults]
        raise LayoutkitError(f"{what}: {listed}", details={"param_name": param, "errors": errors})


def short(name: str) -> str:
    """Return a name for use in a message."""
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."
