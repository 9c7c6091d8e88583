"""What looks like part of a group and is in none with its like, each with the reason, in words.

Devices look as if they match if they are drawn alike, share a gate or a rail, or drive one another from the same rail.
At most one line is written for every ``DEVICES_A_LINE`` devices of the circuit. If there are more lines than that,
those are written that name the most likely pairs which no other line names.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heapreplace
from itertools import combinations
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.canonical import canonical_order, natural
from layoutkit.circuit.channels import gate_length
from layoutkit.circuit.symmetry import is_capacitor
from layoutkit.circuit.symmetry_graph import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device, RecognisedModule

DEVICES_A_LINE = 5
"""Devices of a circuit for which one line is written."""
_LOOSE = frozenset({"inverter", "ring_stage"})
"""Types of groups whose devices need not match one another."""
_MOST_NAMED = 24
"""Most devices of a part of a line, and most parts of a line, that are named; of others the number is told."""
_MOST_PAIRED = 128  # parts of a line whose pairs are weighed: those of many parts grow with their square


class _Line(NamedTuple):
    """One line.

    Attributes:
        rank: How likely its pairs seem to match; a larger number first.
        parts: The devices that it names, in the parts that it tells apart.
        text: The line.
        summary: Whether it is of use only where no other line names its pairs.
    """

    rank: float
    parts: tuple[tuple[str, ...], ...]
    text: str
    summary: bool = False


def near_misses(
    channels: Channels, groups: Sequence[RecognisedModule], left_out: Iterable[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Return what looks like part of a group and is in none, each with the reason, the most likely first.

    Args:
        channels: The channels of the circuit.
        groups: What was found in it.
        left_out: Devices that have the gate of a mirror and are not in it, in words, each with the reason.
    """
    search = _Search(channels, groups)
    lines = [
        _Line(40, tuple((name,) for name in names.split(", ")), f"{names} {reason}")
        for names, reason in left_out
        if not search.is_grouped(names)
    ]
    lines += [*search.alike(), *search.on_one_net()]
    lines += [*search.others(), *search.dummies(), *search.of_one_type()]
    most = len(channels.circuit.devices) // DEVICES_A_LINE
    return _most_telling(lines, canonical_order(channels.circuit).device_ranks, most) if lines else ()


def _most_telling(lines: Sequence[_Line], ranks: Mapping[str, int], most: int) -> tuple[str, ...]:
    """Return at most ``most`` lines, each time the one with the most likely pairs that no line before it names.

    Of each part its first device in ``ranks`` counts, so that neither names nor the order of cards decide.
    """
    places = [sorted(min(ranks.get(name, 0) for name in part) for part in line.parts) for line in lines]
    pairs = [set(combinations(place[:_MOST_PAIRED], 2)) or {(place[0], place[0])} for place in places]
    seen: set[tuple[int, int]] = set()

    def gain(at: int) -> float:
        new = len(pairs[at] - seen)
        return -lines[at].rank * (log2(max(new, 1)) if lines[at].summary else log2(1 + new) + 0.01)

    # Gains only fall: a line that is still the first when its gain is counted anew is the best one.
    queue = [(gain(at), place, at) for at, place in enumerate(places)]
    heapify(queue)
    told: list[str] = []
    while queue and len(told) < most and queue[0][0]:
        before, place, at = queue[0]
        now = gain(at)
        if now == before:
            told.append(lines[at].text)
            seen |= pairs[at]
            heappop(queue)
        else:
            heapreplace(queue, (now, place, at))
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
        self._ward = {name: group for group in groups for name in group.properties.get("dummies", ())}
        self._logic = channels.in_logic_gates.union(*(each.devices for each in groups if each.type == "inverter"))
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
        sized = [device for device in self._devices if device.is_mos and "l" in device.params]
        kinds = grouped(sized, lambda device: (device.type, device.model.lower(), gate_length(device)))
        return [line for devices in kinds.values() for part in self._split(devices) for line in self._alike(part)]

    def _split(self, devices: list[Device]) -> list[list[Device]]:
        """Return devices of one model and length, by width and then by source where they are too many for a line."""
        keys: tuple[Callable[[Device], Hashable], ...] = (lambda d: d.params.get("w"), lambda d: d.terminals["s"])
        parts = [devices]
        for key in keys:
            parts = [
                less
                for part in parts
                for less in (grouped(part, key).values() if len(self._cells(part)) > _MOST_NAMED else [part])
            ]
        return parts

    def _alike(self, devices: Sequence[Device]) -> list[_Line]:
        cells = self._with_tied(devices)
        one_size = len({device.params.get("w") for cell in cells for device in cell}) == 1
        what = f"have one model and {'size' if one_size else 'length'} ({_size(devices[0], one_size)})"
        near = _common({(end, net) for end, net, _ in _links(cell)} for cell in cells)
        equal = _common(_links(cell) for cell in cells)
        logic = all(self._is_tied(cell[0]) or self._channels.is_switch(cell[0]) for cell in cells)
        return self._apart(3 if logic else 4 + 2 * equal + near, cells, what)

    def _with_tied(self, devices: Sequence[Device]) -> list[list[Device]]:
        """Return transistors in parts that one group holds each, and those that are tied off and guard none in one."""
        tied = [device for device in devices if self._is_tied(device) and device.id not in self._ward]
        active = [device for device in devices if not self._channels.is_dummy(device) or is_capacitor(device)]
        return [*self._cells([each for each in active if each not in tied]), *([tied] if tied else [])]

    def _apart(self, rank: float, cells: Sequence[Sequence[Device]], what: str) -> list[_Line]:
        """Return the line that tells in what the cells that have something in common differ; none for one group."""
        logic = all(device.id in self._logic for cell in cells for device in cell)  # in which nothing matches
        if logic or (len(cells) < 2 and not any(self._overlapping(cell) for cell in cells)):
            return []
        differ = [word for word, key in _DIFFERENCES if not _all_share(cells, key)]
        whole = {tuple(key(cell[0]) for _, key in _DIFFERENCES) for cell in cells}
        if len(whole) < len(cells) or not differ:  # some agree in all of these
            differ.append("drains")
        parts = [tuple(device.id for device in cell) for cell in cells]
        if len(parts) == 1:
            parts = [(name,) for name in parts[0]]
        sized = "lengths" in differ and all(len({gate_length(each) for each in cell}) == 1 for cell in cells)
        shown = _some([self._named(cell, sized=sized) for cell in cells], ", ")
        return [_Line(rank, tuple(parts), f"{shown} {what}, but are not one group: their {_and(differ)} differ")]

    def _cells(self, devices: Sequence[Device]) -> list[list[Device]]:
        """Return devices in parts that one group holds each."""
        from networkx.utils import UnionFind

        names = {device.id: device for device in devices}
        part = UnionFind(names)
        for group in {group.id: group for name in names for group in self._groups.get(name, ())}.values():
            part.union(*(name for name in group.devices if name in names))
        in_stages: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name in names:
            if name in self._stage:
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
        if len(cell) < 2 or not groups or any(names <= self._members(group) for group in groups.values()):
            return []
        return [each.id for each in groups.values() if len(names & self._members(each)) > 1]

    @staticmethod
    def _members(group: RecognisedModule) -> set[str]:
        return {*group.devices, *group.properties.get("cascodes", ())}

    def _named(self, cell: Sequence[Device], *, sized: bool = False) -> str:
        """Return the names of devices and what they are, with their gate length where ``sized``."""
        first = cell[0]
        names, net = {device.id for device in cell}, first.terminals
        several = self._overlapping(cell)
        own = [group for group in self._groups.get(first.id, ()) if names <= self._members(group)]
        if several:
            what = f"{'each in ' if len(several) > 1 else ''}{_and(several, 'or')}"
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
        return f"{_some([device.id for device in cell])} ({what}{f'; {_size(first, False)}' if sized else ''})"

    def is_grouped(self, names: str) -> bool:
        """Whether each of some devices is in a group."""
        return all(self._groups.get(name) for name in names.split(", "))

    def dummies(self) -> list[_Line]:
        """Return the transistors that are tied off and what they guard, in one line."""
        tied = [device for device in self._devices if device.is_mos and self._is_tied(device)]
        wards = grouped(tied, lambda device: self._ward[device.id].id if device.id in self._ward else "").values()
        texts = []
        parts: list[tuple[str, ...]] = []
        for dummies in wards:
            ward = self._ward.get(dummies[0].id)
            beside = f" of {_some(ward.devices)} ({ward.id})" if ward else ""
            texts.append(f"{_some([each.id for each in dummies])}{beside}")
            parts += [tuple(each.id for each in dummies), *([tuple(ward.devices)] if ward else [])]
        text = f"dummies, which carry no current and match nothing: {_some(texts, ', ')}"
        return [_Line(4, tuple(parts), text)] if tied and (len(tied) > 1 or self._ward) else []

    def _is_tied(self, device: Device) -> bool:
        """Whether a transistor is off for good and no capacitor on a signal."""
        capacitor = is_capacitor(device) and device.terminals["g"] not in self._supplies
        return self._channels.is_dummy(device) and not capacitor

    def on_one_net(self) -> list[_Line]:
        """Return the transistors of one type on one gate, or with their sources on one rail, that differ in size."""
        shared: dict[tuple[str, str, str], list[Device]] = defaultdict(list)
        for device in self._devices:
            off = device.is_mos and device.id not in self._ward and device.terminals["d"] != device.terminals["s"]
            for end in "gs" if device.id in self._channels.mos or off else "":
                net = device.terminals[end]
                if (end == "s") == (net in self._supplies):
                    shared[end, device.type, net].append(device)
        found = []
        for (end, _, net), devices in shared.items():
            cells = self._cells(devices)
            if len(cells) > _MOST_NAMED:
                cells = [cell for cell in cells if not self._channels.is_switch(cell[0])]
            if len({(each.model.lower(), gate_length(each)) for cell in cells for each in cell}) > 1:
                rank, what = (7, "gate") if end == "g" else (6, "source")
                found += self._apart(rank, cells, f"have the {what} {net}")
        return found

    def of_one_type(self) -> list[_Line]:
        """Return all transistors of each type where they are few, which is the shortest way to tell them apart."""
        found = []
        for devices in grouped((d for d in self._devices if d.is_mos), lambda device: device.type).values():
            cells = self._with_tied(devices)
            if len(cells) <= _MOST_NAMED:
                what = f"are {devices[0].type} transistors"
                found += [line._replace(summary=True) for line in self._apart(6, cells, what)]
        return found

    def others(self) -> list[_Line]:
        """Return the resistors, capacitors and bipolar transistors that are in no group together, by their type."""
        kinds = grouped((d for d in self._devices if d.type in _OTHERS), lambda device: device.type).values()
        found = []
        rails = self._supplies.nets
        for devices in kinds:
            cells = self._cells(devices)
            if len(cells) < 2:
                continue
            nets = [{device.terminals[end] for device in cell for end in device.kind.ends} - rails for cell in cells]
            joined = _common(nets)
            differ = [word for word, key in _OTHERS_DIFFER if not _all_share(cells, key)]
            why = ["no ratio of equal units joins them" if joined else "no signal net joins them"]
            why += [f"their {_and(differ)} differ"] if differ else []
            parts = tuple(tuple(device.id for device in cell) for cell in cells[:_MOST_NAMED])
            shown = _some(list(map(self._named, cells)), ", ")
            text = f"{shown} are {_OTHERS[devices[0].type]}, but are not one group: {_and(why)}"
            found.append(_Line(5 if joined else 4, parts, text))
        return found


_OTHERS = {
    "resistor": "resistors",
    "capacitor": "capacitors",
    "npn": "bipolar transistors",
    "pnp": "bipolar transistors",
}
_OTHERS_DIFFER: tuple[tuple[str, Callable[[Device], object]], ...] = (
    ("models", lambda device: device.model.lower()),
    ("widths", lambda device: device.params.get("w")),
)
_DIFFERENCES: tuple[tuple[str, Callable[[Device], object]], ...] = (
    ("models", lambda device: device.model.lower()),
    ("lengths", gate_length),
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


def _size(device: Device, with_width: bool) -> str:
    known = {name: value for name, value in device.params.items() if name not in device.unknown}
    width = known.get("w")
    length = f"L {known['l'] * 1e6:g} um" if "l" in known else device.model
    return f"W {width * 1e6:g} um, {length}" if with_width and width is not None else length


def _some(names: Sequence[str], joint: str = " ") -> str:
    """Return names, the first ones where there are more."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return joint.join(names[:_MOST_NAMED]) + more


def _and(words: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
