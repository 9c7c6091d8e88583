"""What looks like part of a group and is in none with its like, each with the reason, in words.

A designer is tempted to match devices that are drawn alike, that share gate and source, or of which one is driven by
the other from the same rail. What holds against it is told, the most tempting first, in at most one line for every
``DEVICES_A_LINE`` devices of the circuit.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.canonical import canonical_order, natural
from layoutkit.circuit.channels import gate_length
from layoutkit.circuit.symmetry import is_capacitor

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device, RecognisedModule

DEVICES_A_LINE = 5
"""Devices of a circuit for which one line is told."""
_LOOSE = frozenset({"inverter", "ring_stage"})
"""Types of groups whose devices need not match one another."""
_MOST_NAMED = 24
"""Most devices of a part of a line, and most parts of a line, that are named; of others the number is told."""
_MOST_DUMMIES = 60


class _Line(NamedTuple):
    """One line.

    Attributes:
        rank: How tempting it is; a larger number first.
        names: The devices that it names.
        text: The line.
    """

    rank: int
    names: frozenset[str]
    text: str


def near_misses(
    channels: Channels, groups: Sequence[RecognisedModule], left_out: Iterable[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Return what looks like part of a group and is in none, each with the reason, the most tempting first.

    Args:
        channels: The channels of the circuit.
        groups: What was found in it.
        left_out: Devices that have the gate of a mirror and are not in it, in words, each with the reason.
    """
    circuit = channels.circuit
    search = _Search(channels, groups)
    lines = [
        _Line(9, frozenset(names.split(", ")), f"{names} {reason}")
        for names, reason in left_out
        if not search.is_grouped(names)
    ]
    lines += [*search.stages_behind(), *search.alike(), *search.on_one_gate(), *search.stacked()]
    lines += [*search.passives(), *search.dummies()]
    told: list[str] = []
    most = len(circuit.devices) // DEVICES_A_LINE
    ranks = canonical_order(circuit).device_ranks if len(lines) > most else {}  # the order of cards decides nothing
    lines.sort(key=lambda line: (-line.rank, sorted(ranks.get(name, 0) for name in line.names)))
    naming: dict[str, list[frozenset[str]]] = defaultdict(list)  # device to the devices of each line that names it
    for line in lines:
        if len(told) == most:
            break
        if not any(line.names <= names for names in naming[min(line.names)]):
            told.append(line.text)
            for name in line.names:
                naming[name].append(line.names)
    return tuple(told)


class _Search:
    """The search in one circuit."""

    def __init__(self, channels: Channels, groups: Sequence[RecognisedModule]) -> None:
        self._channels = channels
        self._circuit = channels.circuit
        self._devices = sorted(channels.circuit.devices, key=lambda device: natural(device.id))  # order of the text
        self._mos = [device for device in self._devices if device.id in channels.mos]
        self._supplies = channels.supplies
        self._groups: dict[str, list[RecognisedModule]] = defaultdict(list)
        self._logic = {name for group in groups if group.type == "inverter" for name in group.devices}
        self._stage: dict[str, tuple[str, int]] = {}  # device to its array of equal stages and its place there
        for group in groups:
            if group.type == "ring_stage":
                stages = enumerate(group.properties["stages"])
                self._stage.update({name: (group.id, place) for place, stage in stages for name in stage})
        for group in groups:
            if group.type not in _LOOSE:
                for name in (*group.devices, *group.properties.get("cascodes", ())):
                    self._groups[name].append(group)

    def alike(self) -> list[_Line]:
        """Return the transistors of one model and length that match only in parts."""
        kinds: dict[Hashable, list[Device]] = defaultdict(list)
        for device in self._devices:
            if device.is_mos and "l" in device.params:
                kinds[device.type, device.model.lower(), gate_length(device)].append(device)
        parts = [part for devices in kinds.values() for part in self._split(devices)]
        return [line for part in parts if (line := self._alike(part)) is not None]

    def _split(self, devices: list[Device]) -> list[list[Device]]:
        """Return devices of one model and length, by width and then by source where they are too many for a line."""
        keys: tuple[Callable[[Device], Hashable], ...] = (lambda d: d.params.get("w"), lambda d: d.terminals["s"])
        parts = [devices]
        for key in keys:
            parts = [less for part in parts for less in (_by(part, key) if len(part) > _MOST_NAMED else [part])]
        return parts

    def _alike(self, devices: Sequence[Device]) -> _Line | None:
        tied = [device for device in devices if self._is_tied(device)]
        active = self._cells([device for device in devices if device.id in self._channels.mos])
        cells = [*active, *([tied] if tied else [])]
        if len(cells) < 2:
            return None
        differ = [word for word, key in _DIFFERENCES if not _all_share(cells, key)]
        whole = {tuple(key(cell[0]) for _, key in _DIFFERENCES) for cell in cells}
        if len(whole) < len(cells):  # some agree in all of these
            differ.append("drains")
        near = _common({(end, net) for end, net, _ in _links(cell)} for cell in cells)
        equal = _common(_links(cell) for cell in cells)
        one_size = len({device.params.get("w") for device in devices}) == 1
        what = f"model and {'size' if one_size else 'length'} ({_size(devices[0], one_size)})"
        shown = _some(list(map(self._named, cells)), ", ")
        text = f"{shown} have one {what}, but are not one group: their {_and(differ)} differ"
        logic = all(self._is_tied(cell[0]) or self._channels.is_switch(cell[0]) for cell in cells)
        rank = 3 if logic else 4 + 2 * equal + near
        return _Line(rank, frozenset(device.id for device in devices), text)

    def _cells(self, devices: Sequence[Device]) -> list[list[Device]]:
        """Return devices in parts that one group holds each."""
        names = {device.id: device for device in devices}
        part: dict[str, list[str]] = {name: [name] for name in names}

        def join(members: Iterable[str]) -> None:
            first, *others = [name for name in members if name in names] or [""]
            for name in others:
                one, other = part[first], part[name]
                if one is not other:
                    one.extend(other)
                    part.update(dict.fromkeys(other, one))

        for group in {group.id: group for name in names for group in self._groups.get(name, ())}.values():
            join(group.devices)
        in_stages: dict[str, dict[int, dict[int, list[str]]]] = defaultdict(lambda: defaultdict(dict))
        for name in names:
            if name in self._stage:
                array, place = self._stage[name]
                in_stages[array][place][id(part[name])] = part[name]
        for stages in in_stages.values():
            if all(len(cells) == 1 for cells in stages.values()):  # what is alike in all stages matches
                join(name for cells in stages.values() for cell in cells.values() for name in cell)
        joined: dict[int, list[Device]] = defaultdict(list)
        for name, device in names.items():
            joined[id(part[name])].append(device)
        return list(joined.values())

    def _named(self, cell: Sequence[Device]) -> str:
        """Return the names of devices and what they are."""
        names = _some([device.id for device in cell])
        first = cell[0]
        own = next(
            (group for group in self._groups.get(first.id, ()) if len(cell) == 1 or cell[1].id in group.devices), None
        )
        if own is not None:
            return f"{names} ({own.id})"
        if not first.is_mos:
            return names
        if self._channels.is_dummy(first):
            return f"{names} ({'dummies' if len(cell) > 1 else 'a dummy'})"
        if self._channels.is_switch(first):
            return f"{names} (a switch, gate on {first.terminals['g']})"
        return f"{names} (gate on {first.terminals['g']})"

    def stages_behind(self) -> list[_Line]:
        """Return the transistors that follow a mirror or pair on its rail with another model or length."""
        found: dict[tuple[str, tuple[str, ...], str, str], list[str]] = defaultdict(list)
        leading: dict[tuple[str, str, str], tuple[str, ...]] = {}
        on_rail: dict[tuple[str, str, str], list[Device]] = defaultdict(list)  # type, source and drain
        for device in self._mos:
            on_rail[device.type, device.terminals["s"], device.terminals["d"]].append(device)
        for device in self._mos:
            gate, source = device.terminals["g"], device.terminals["s"]
            drivers = on_rail[device.type, source, gate] if source in self._supplies else ()
            for driver in drivers[:_MOST_NAMED]:
                own = {group.id for group in self._groups.get(device.id, ())}
                groups = [group for group in self._groups.get(driver.id, ()) if group.id not in own]
                alike = device.model.lower() == driver.model.lower() and gate_length(device) == gate_length(driver)
                diode = driver.terminals["g"] == gate and not groups
                if alike or diode or self._channels.is_switch(driver):
                    continue
                end = groups[0].id if groups else driver.id, device.type, source
                if end not in leading:
                    inside = groups[0].devices if groups else (driver.id,)
                    leading[end] = tuple(name for name in inside if self._on(name, device.type, source))[:_MOST_NAMED]
                group = f" of {groups[0].id}" if groups else ""
                found[group, leading[end], source, _other_size(device, driver)].append(device.id)
                break
        return [
            _Line(
                2 if self._logic.issuperset(names) else 8 if group else 5,
                frozenset((*names, *its)),
                f"{_some(names)} {'follows' if len(names) == 1 else 'follow'} {' '.join(its)}{group} on {source}, "
                f"but {'does' if len(names) == 1 else 'do'} not match: {reason}",
            )
            for (group, its, source, reason), names in found.items()
        ]

    def _on(self, name: str, mos_type: str, source: str) -> bool:
        """Whether a device is a transistor of one type with its source on a net."""
        device = self._circuit.device(name)
        return device.type == mos_type and device.terminals["s"] == source

    def is_grouped(self, names: str) -> bool:
        """Whether each of some devices is in a group."""
        return all(self._groups.get(name) for name in names.split(", "))

    def dummies(self) -> list[_Line]:
        """Return the transistors that are tied off, in one line."""
        tied = [device.id for device in self._devices if device.is_mos and self._is_tied(device)]
        if len(tied) < 2:
            return []
        return [
            _Line(
                4,
                frozenset(tied),
                f"{_some(tied, most=_MOST_DUMMIES)} are dummies, which conduct nothing and match nothing",
            )
        ]

    def _is_tied(self, device: Device) -> bool:
        """Whether a transistor is off for good and no capacitor on a signal."""
        capacitor = is_capacitor(device) and device.terminals["g"] not in self._supplies
        return self._channels.is_dummy(device) and not capacitor

    def on_one_gate(self) -> list[_Line]:
        """Return the transistors on one gate and source whose models or lengths differ."""
        found = []
        shared: dict[tuple[str, str, str], list[Device]] = defaultdict(list)
        for device in self._mos:
            shared[device.type, device.terminals["g"], device.terminals["s"]].append(device)
        for (_, gate, source), each in shared.items():
            devices = each[:_MOST_NAMED]
            if len({(one.model.lower(), gate_length(one)) for one in devices}) > 1 and len(self._cells(devices)) > 1:
                names = ", ".join(f"{device.id} ({_size(device, True)})" for device in devices)
                text = (
                    f"{names} share the gate {gate} and the source {source}, but are not one group: their sizes differ"
                )
                found.append(_Line(6, frozenset(device.id for device in devices), text))
        return found

    def stacked(self) -> list[_Line]:
        """Return the transistors that alone stand on another one of their type with another model or length."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for upper in self._mos:
            net = upper.terminals["s"]
            below = self._channels.drains.get(net, ())
            if len(below) != 1 or len(self._channels.sources[net]) != 1 or net in self._supplies:
                continue
            lower = below[0]
            apart = lower.type == upper.type and not {*self._ids(upper)} & {*self._ids(lower)}
            if apart and (upper.model.lower(), gate_length(upper)) != (lower.model.lower(), gate_length(lower)):
                found[_other_size(upper, lower)].append((upper.id, lower.id))
        return [
            _Line(
                5,
                frozenset(name for pair in pairs for name in pair),
                f"{_and([f'{upper} stands on {lower}' for upper, lower in pairs[:_MOST_NAMED]])}, but "
                f"{'does not match it' if len(pairs) == 1 else 'they do not match'}: {reason}",
            )
            for reason, pairs in found.items()
        ]

    def _ids(self, device: Device) -> list[str]:
        return [group.id for group in self._groups.get(device.id, ())]

    def passives(self) -> list[_Line]:
        """Return the resistors and capacitors of one model that are in no group together."""
        kinds: dict[tuple[object, ...], list[Device]] = defaultdict(list)
        for device in self._devices:
            if device.type in ("resistor", "capacitor"):
                kinds[device.type, device.model.lower(), device.params.get("w")].append(device)
        found = []
        rails = {*self._supplies.power, *self._supplies.ground}
        for (kind, *_), devices in kinds.items():
            cells = self._cells(devices[:_MOST_NAMED])
            if len(cells) < 2:
                continue
            nets = [{device.terminals[end] for device in cell for end in device.kind.ends} - rails for cell in cells]
            joined = any(one & other for i, one in enumerate(nets) for other in nets[:i])
            why = "no ratio of equal units joins them" if joined else "no signal net joins them"
            names = frozenset(device.id for cell in cells for device in cell)
            text = f"{', '.join(map(self._named, cells))} are {kind}s of one kind, but are not one group: {why}"
            found.append(_Line(5 if joined else 4, names, text))
        return found


_DIFFERENCES: tuple[tuple[str, Callable[[Device], object]], ...] = (
    ("gates", lambda device: device.terminals["g"]),
    ("sources", lambda device: device.terminals["s"]),
    ("bodies", lambda device: device.terminals.get("b")),
    ("widths", lambda device: device.params.get("w")),
)


def _all_share(cells: Sequence[Sequence[Device]], key: Callable[[Device], object]) -> bool:
    """Whether all devices agree in something."""
    return len({key(device) for cell in cells for device in cell}) == 1


def _links(cell: Sequence[Device]) -> set[tuple[str, str, float]]:
    """Return the gates and the ends of channels on nets in a cell, each with the width of the transistor."""
    return {
        (terminal if terminal == "g" else "end", device.terminals[terminal], device.params.get("w", 0.0))
        for device in cell
        for terminal in "gds"
    }


def _common(sets: Iterable[set[Any]]) -> bool:
    """Whether two sets share something."""
    seen: set[Any] = set()
    for each in sets:
        if seen & each:
            return True
        seen |= each
    return False


def _by(devices: Iterable[Device], key: Callable[[Device], Hashable]) -> list[list[Device]]:
    parts: dict[Hashable, list[Device]] = defaultdict(list)
    for device in devices:
        parts[key(device)].append(device)
    return list(parts.values())


def _size(device: Device, with_width: bool) -> str:
    known = {name: value for name, value in device.params.items() if name not in device.unknown}
    width = known.get("w")
    length = f"L {known['l'] * 1e6:g} um" if "l" in known else device.model
    return f"W {width * 1e6:g} um, {length}" if with_width and width is not None else length


def _other_size(device: Device, other: Device) -> str:
    """Return in what the model or length of two devices differ, in words."""
    if device.model.lower() != other.model.lower():
        return f"the models are {device.model} and {other.model}"
    lengths = [each.params.get("l", 0.0) * 1e6 for each in (device, other)]
    if "l" in (*device.unknown, *other.unknown):
        return "the lengths are given by different expressions"
    return f"the lengths are {lengths[0]:g} and {lengths[1]:g} um"


def _some(names: Sequence[str], joint: str = " ", most: int = _MOST_NAMED) -> str:
    """Return names, the first ones where there are more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return joint.join(names[:most]) + more


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
