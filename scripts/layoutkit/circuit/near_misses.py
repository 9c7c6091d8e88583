"""What looks like part of a group and is in none with its like, each with the reason, in words.

Devices look as if they match if they agree in model and size, in gate or rail, or in type. At most one line is written
for every ``DEVICES_A_LINE`` devices of the circuit. If there are more lines than that, those are written that name the
most likely pairs which no other line names.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heapreplace
from itertools import combinations
from math import inf, log2
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.canonical import canonical_order, natural
from layoutkit.circuit.channels import gate_length
from layoutkit.circuit.symmetry import is_capacitor
from layoutkit.circuit.symmetry_graph import grouped
from layoutkit.errors import enumerated

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device, RecognisedModule

DEVICES_A_LINE = 5
"""Devices of a circuit for which one line is written."""
_LOOSE = frozenset({"inverter", "ring_stage"})
"""Types of groups whose devices need not match one another."""
_MOST_NAMED = 24
"""Most devices of a part of a line, and most parts of a line, that are named; of others the number is told."""


class _Line(NamedTuple):
    """One line.

    Attributes:
        rank: How likely its pairs seem to match; a larger number first.
        parts: The devices that it names, in the parts that it tells apart.
        text: The line.
    """

    rank: float
    parts: tuple[tuple[str, ...], ...]
    text: str


def near_misses(
    channels: Channels, groups: Sequence[RecognisedModule], left_out: Iterable[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Return what looks like part of a group and is in none, each with the reason, the most likely first.

    Of each part of a line its first device in canonical order counts, so that neither names nor the order of cards
    decide.

    Args:
        channels: The channels of the circuit.
        groups: What was found in it.
        left_out: Devices that have the gate of a mirror and are not in it, in words, each with the reason.
    """
    ranks = canonical_order(channels.circuit).device_ranks
    queue: list[tuple[float, list[int], _Line]] = []
    for line in _Search(channels, groups).lines(left_out):
        places = sorted(min(ranks.get(name, 0) for name in part) for part in line.parts[:_MOST_NAMED])
        queue.append((-inf, places, line))
    queue.sort()
    told: list[str] = []
    seen: set[tuple[int, int]] = set()
    # Gains only fall: a line that is still the first when its gain is counted anew is the best one.
    while queue and len(told) < len(channels.circuit.devices) // DEVICES_A_LINE:
        before, places, line = queue[0]
        pairs = set(combinations(places, 2)) or {(places[0], places[0])}
        gain = -line.rank * (log2(1 + len(pairs - seen)) + 0.01)
        if gain == before:
            told.append(line.text)
            seen |= pairs
            heappop(queue)
        else:
            heapreplace(queue, (gain, places, line))
    return tuple(told)


class _Search:
    """The search in one circuit."""

    def __init__(self, channels: Channels, groups: Sequence[RecognisedModule]) -> None:
        self._channels = channels
        self._devices = sorted(channels.circuit.devices, key=lambda device: natural(device.id))  # order of the text
        self._supplies = channels.supplies
        self._groups: dict[str, list[RecognisedModule]] = defaultdict(list)
        self._ward = {name: group for group in groups for name in group.properties.get("dummies", ())}
        self._logic = channels.in_logic_gates.union(*(each.devices for each in groups if each.type == "inverter"))
        self._stage: dict[str, tuple[str, int]] = {}  # device to its array of equal stages and its place there
        for group in groups:
            for place, stage in enumerate(group.properties.get("stages", ())):
                self._stage.update(dict.fromkeys(stage, (group.id, place)))
            if group.type not in _LOOSE:
                for name in _members(group):
                    self._groups[name].append(group)

    def lines(self, left_out: Iterable[tuple[str, str]]) -> Iterator[_Line]:
        """Yield a line for each set of devices that agree in something and are not one group."""
        for names, reason in left_out:
            if not all(map(self._groups.get, names.split(", "))):
                yield _Line(40, tuple((name,) for name in names.split(", ")), f"{names} {reason}")
        yield from self._dummies()
        mos = [device for device in self._devices if device.is_mos and device.id not in self._ward]
        carrying = [device for device in mos if device.terminals["d"] != device.terminals["s"]]
        sized = [device for device in mos if "l" in device.params]

        def on(end: str, *, is_rail: bool) -> Callable[[Device], Hashable]:
            return lambda d: (d.terminals[end] in self._supplies) == is_rail and (d.type, d.terminals[end])

        sets: list[tuple[int, str, Iterable[Device], Callable[[Device], Hashable]]] = [
            (8, "have one model and size ({size})", sized, lambda d: (*_kind(d), d.params.get("w"))),
            (7, "have the gate {g}", carrying, on("g", is_rail=False)),
            (6, "have the source {s}", carrying, on("s", is_rail=True)),
            (6, "have one model and length ({length})", sized, _kind),
            (5, "are {type} transistors", mos, lambda d: d.type),
            (4, "are {noun}s", self._devices, lambda d: d.type in _OTHERS and d.kind.noun),
        ]
        for rank, words, devices, key in sets:
            for agreed, alike in grouped(devices, key).items():
                cells = self._cells(alike) if agreed else []
                if len(cells) > 1 or any(map(self._overlapping, cells)):
                    yield from self._apart(rank, cells, words.format(**_facts(alike[0])))

    def _apart(self, rank: float, cells: Sequence[Sequence[Device]], what: str) -> Iterator[_Line]:
        """Yield the line on how cells with something in common differ; none if all of them are logic."""
        devices = [device for cell in cells for device in cell]
        if all(device.id in self._logic for device in devices):
            return  # in which nothing matches
        differ = [word for word, key in _DIFFERENCES if len({*map(key, devices)}) > 1]
        whole = {tuple(key(cell[0]) for _, key in _DIFFERENCES) for cell in cells}
        if len(whole) < len(cells) or not differ:  # some agree in all of these
            differ.append("drains" if devices[0].is_mos else "nets")
        parts = [tuple(device.id for device in cell) for cell in cells]
        parts = parts if len(parts) > 1 else [(name,) for name in parts[0]]
        sized = "lengths" in differ and all(len({*map(gate_length, cell)}) == 1 for cell in cells)
        shown = _some([self._named(cell, sized=sized) for cell in cells], ", ")
        switched = all(self._is_tied(cell[0]) or self._channels.is_switch(cell[0]) for cell in cells if cell[0].is_mos)
        yield _Line(
            rank / 2 if switched else rank,
            tuple(parts),
            f"{shown} {what}, but are not one group: their {enumerated(differ)} differ",
        )

    def _cells(self, devices: Sequence[Device]) -> list[list[Device]]:
        """Return devices in parts that one group holds each; those that are tied off and guard none are in one."""
        from networkx.utils import UnionFind

        names = {device.id: device for device in devices}
        part = UnionFind(names)
        part.union(*(device.id for device in devices if device.is_mos and self._is_tied(device)))
        for group in {group.id: group for name in names for group in self._groups.get(name, ())}.values():
            part.union(*(name for name in group.devices if name in names))
        in_stages: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name in names.keys() & self._stage.keys():
            array, place = self._stage[name]
            in_stages[array][place].add(part[name])
        for stages in in_stages.values():
            if all(len(cells) == 1 for cells in stages.values()):  # what is alike in all stages matches
                part.union(*(name for cells in stages.values() for name in cells))
        return [*grouped(devices, lambda device: part[device.id]).values()]

    def _overlapping(self, cell: Sequence[Device]) -> list[str]:
        """Return the groups that together hold a cell of which no group holds all; none for other cells."""
        names = {device.id for device in cell}
        groups = {group.id: group for device in cell for group in self._groups.get(device.id, ())}
        if len(cell) < 2 or not groups or any(names <= _members(group) for group in groups.values()):
            return []
        return [each.id for each in groups.values() if len(names & _members(each)) > 1]

    def _named(self, cell: Sequence[Device], *, sized: bool) -> str:
        """Return the names of devices and what they are, with their gate length where ``sized``."""
        first = cell[0]
        names, net = {device.id for device in cell}, first.terminals
        several = self._overlapping(cell)
        own = [group for group in self._groups.get(first.id, ()) if names <= _members(group)]
        if several:
            what = f"{'each in ' if len(several) > 1 else ''}{enumerated(several, 'or')}"
        elif own:
            what = f"{'' if first.id in own[0].devices else 'cascodes of '}{own[0].id}"
        elif not first.is_mos:
            return _some([device.id for device in cell])
        elif self._is_tied(first):
            what = "dummies" if len(cell) > 1 else "a dummy"
        elif net["d"] == net["s"]:
            what = "a capacitor"
        else:
            switch = "a switch, " if self._channels.is_switch(first) and net["g"] not in self._supplies else ""
            what = f"{'in a logic gate, ' if first.id in self._logic else switch}gate on {net['g']}"
        size = f"; {_facts(first)['length']}" if sized else ""
        return f"{_some([device.id for device in cell])} ({what}{size})"

    def _dummies(self) -> Iterator[_Line]:
        """Yield the line of the transistors that are tied off and of what they guard."""
        tied = [device for device in self._devices if device.is_mos and self._is_tied(device)]
        texts = []
        parts: list[tuple[str, ...]] = []
        for ward, dummies in grouped(tied, lambda device: getattr(self._ward.get(device.id), "id", "")).items():
            guarded = self._ward[dummies[0].id].devices if ward else ()
            beside = f" of {_some(guarded)} ({ward})" if ward else ""
            texts.append(f"{_some([each.id for each in dummies])}{beside}")
            parts += [tuple(each.id for each in dummies), *([tuple(guarded)] if ward else [])]
        if len(tied) > 1 or self._ward:
            text = f"dummies, which carry no current and match nothing: {_some(texts, ', ')}"
            yield _Line(4, tuple(parts), text)

    def _is_tied(self, device: Device) -> bool:
        """Whether a transistor is off for good and no capacitor on a signal."""
        capacitor = is_capacitor(device) and device.terminals["g"] not in self._supplies
        return self._channels.is_dummy(device) and not capacitor


_OTHERS = frozenset({"resistor", "capacitor", "npn", "pnp"})
_DIFFERENCES: tuple[tuple[str, Callable[[Device], object]], ...] = (
    ("models", lambda device: device.model.lower()),
    ("lengths", lambda device: device.is_mos and gate_length(device)),
    ("gates", lambda device: device.is_mos and device.terminals["g"]),
    ("sources", lambda device: device.is_mos and device.terminals["s"]),
    ("bodies", lambda device: device.is_mos and device.terminals["b"]),
    ("widths", lambda device: device.params.get("w")),
)


def _members(group: RecognisedModule) -> set[str]:
    return {*group.devices, *group.properties.get("cascodes", ())}


def _kind(device: Device) -> tuple[object, ...]:
    return device.type, device.model.lower(), gate_length(device)


def _facts(device: Device) -> dict[str, str]:
    """Return what a line may say that all of its devices have in common."""
    known = {
        name: f"{name.upper()} {device.params[name] * 1e6:g} um"
        for name in "wl"
        if name in device.params.keys() - {*device.unknown}
    }
    length = known.get("l", device.model)
    size = ", ".join([*([known["w"]] if "w" in known else []), length])
    return {"type": device.type, "noun": device.kind.noun, "length": length, "size": size, **device.terminals}


def _some(names: Sequence[str], joint: str = " ") -> str:
    """Return names, the first ones where there are more."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return joint.join(names[:_MOST_NAMED]) + more
