"""Names that sort by the place of their device or net in the canonical order of the circuit.

The engine sorts names wherever it needs one order. With these names that order is the canonical one, so that neither
the names nor the order of cards decide about a layout. They are the user's names in every other respect: equal to
them, and written like them.
"""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from layoutkit.circuit.canonical import canonical_order
from layoutkit.circuit.orientation import undecided

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device, SubcircuitInstance

Value = TypeVar("Value")
LAST = sys.maxsize  # rank of an instance without devices


class RankedName(str):
    """A name that is less than those of a higher rank, and less than every plain string."""

    __slots__ = ("rank",)
    rank: int

    def __new__(cls, text: str, rank: int) -> RankedName:  # noqa: PYI034 - Self is of Python 3.11
        """Return the name ``text`` of a rank."""
        name = super().__new__(cls, text)
        name.rank = rank
        return name

    def __getnewargs__(self) -> tuple[str, int]:  # type: ignore[override]
        return str(self), self.rank

    __hash__ = str.__hash__

    def __lt__(self, other: str) -> bool:
        if not isinstance(other, RankedName):
            return True
        return self.rank < other.rank or (self.rank == other.rank and str(self) < str(other))

    def __gt__(self, other: str) -> bool:
        return isinstance(other, RankedName) and other < self

    def __le__(self, other: str) -> bool:
        return self == other or self < other

    def __ge__(self, other: str) -> bool:
        return self == other or self > other


def named_after(first: str, text: str) -> str:
    """Return ``text`` with the rank of the name ``first``; plain where that has none."""
    return RankedName(text, first.rank) if isinstance(first, RankedName) else text


def with_names(value: Value, names: Mapping[str, str]) -> Value:
    """Return a value with every known name in it, and in the dataclasses and tuples inside it, replaced."""
    found: Any = value
    if isinstance(value, str):
        found = names.get(value, value)
    elif isinstance(value, tuple):
        found = getattr(value, "_make", tuple)(with_names(each, names) for each in value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{each.name: with_names(getattr(value, each.name), names) for each in fields(value)})
    result: Value = found
    return result


def plain(value: Value) -> Value:
    """Return data with plain strings for the ranked names in it, which sort as everyone expects."""
    found: Any = value
    if isinstance(value, RankedName):
        found = str(value)
    elif isinstance(value, dict):
        found = {plain(key): plain(each) for key, each in value.items()}
    elif isinstance(value, (list, tuple, set, frozenset)):
        found = getattr(value, "_make", type(value))(plain(each) for each in value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{each.name: plain(getattr(value, each.name)) for each in fields(value)})
    result: Value = found
    return result


def is_ranked(circuit: Circuit) -> bool:
    """Return whether a circuit is one that ``ranked`` returned."""
    return bool(circuit.devices) and isinstance(circuit.devices[0].id, RankedName)


def ranked(circuit: Circuit, *, turn: bool = True, before: Mapping[str, int] | None = None) -> Circuit:
    """Return the circuit in canonical order, with ranked names and without modules.

    Args:
        circuit: Oriented.
        turn: Whether ends that may be exchanged are put in canonical order, too: those of resistors, and those of
            transistors of which nothing tells drain and source apart.
        before: What decides where an automorphism exchanges devices, see ``canonical_order``.
    """
    if is_ranked(circuit):
        return circuit
    order = canonical_order(circuit, with_instances=True, before=before)
    nets = {name: RankedName(name, rank) for rank, name in enumerate(order.nets)}
    devices = {name: RankedName(name, rank) for rank, name in enumerate(order.devices, len(nets))}
    boxes = {name: RankedName(name, rank) for rank, name in enumerate(order.boxes, len(nets) + len(devices))}
    turned = _turned(circuit, undecided(circuit), order.net_ranks) if turn else set()
    by_id = {device.id: device for device in circuit.devices}
    found = []
    for name in devices.values():
        device = by_id[name]
        terminals = {terminal: nets[net] for terminal, net in device.terminals.items()}
        device = replace(device, id=name, terminals=terminals)
        found.append(_with_ends_exchanged(device) if name in turned else device)
    return replace(
        circuit,
        devices=tuple(found),
        ports=tuple(sorted(nets[port] for port in circuit.ports)),
        black_boxes=tuple(
            replace(box, id=boxes[box.id], nets={port: nets[net] for port, net in box.nets.items()})
            for box in sorted(circuit.black_boxes, key=lambda box: boxes[box.id])
        ),
        subcircuits=_instances(circuit.subcircuits, devices, turned),
        supplies=with_names(circuit.supplies, nets),
        modules=(),
    )


def _turned(circuit: Circuit, drains: Mapping[str, str | None], ranks: Mapping[str, int]) -> set[str]:
    """Return the devices whose ends change places, since the netlist alone decides about their order.

    Args:
        circuit: Oriented.
        drains: Net of the drain of each transistor that the current does not orient; None where its rank decides.
        ranks: Place of each net in the canonical order.
    """
    found = set()
    for device in circuit.devices:
        if device.id not in drains and device.type != "resistor":
            continue
        first, second = (device.terminals[end] for end in sorted(device.kind.ends))  # d before s, n before p
        drain = drains.get(device.id) or min(first, second, key=ranks.__getitem__)
        if drain != first:
            found.add(device.id)
    return found


def _with_ends_exchanged(device: Device) -> Device:
    if device.is_mos:
        return device.with_ends_exchanged()
    return replace(device, terminals=_exchanged(device.kind.ends, device.terminals))


def _exchanged(ends: tuple[str, str], terminals: Mapping[str, str]) -> dict[str, str]:
    one, other = ends
    return {**terminals, one: terminals[other], other: terminals[one]}


def _instances(
    instances: Sequence[SubcircuitInstance], devices: Mapping[str, RankedName], turned: Collection[str]
) -> tuple[SubcircuitInstance, ...]:
    """Return the instances with ranked paths, outer ones first, each in the order of the first device inside of it."""
    first = {
        each.path: min((devices[name].rank for name in each.devices if name in devices), default=LAST)
        for each in instances
    }
    for instance in sorted(instances, key=_depth, reverse=True):
        if instance.parent:
            first[instance.parent] = min(first[instance.parent], first[instance.path])
    paths = {path: RankedName(path, rank) for path, rank in first.items()}
    return tuple(
        replace(
            instance,
            path=paths[instance.path],
            parent=paths.get(instance.parent, ""),
            devices={
                devices[name]: _exchanged(("d", "s") if "d" in nets else ("p", "n"), nets) if name in turned else nets
                for name, nets in instance.devices.items()
                if name in devices  # mapping leaves out taps
            },
        )
        for instance in sorted(instances, key=lambda each: (_depth(each), paths[each.path]))
    )


def _depth(instance: SubcircuitInstance) -> int:
    return instance.path.count(".")
