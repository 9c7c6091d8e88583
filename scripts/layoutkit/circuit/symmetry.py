"""Find further symmetric pairs from known ones: devices with equal connections on both sides are a pair too."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.circuit.circuit import Device
    from layoutkit.circuit.supplies import Supplies

PairKind = str
_CHANNEL = ("d", "s")


def symmetric_partners(
    devices: Iterable[Device], seeds: Iterable[tuple[Device, Device]], taken: Iterable[str], supplies: Supplies
) -> list[tuple[PairKind, Device, Device]]:
    """Return the further pairs that mirror each other about the seed pairs.

    From the two drains (and sources) of a known pair the search goes to the devices whose channel touches one net or
    the other, or whose gate does if they are capacitors, and to resistors and capacitors that do. Two of them, one on
    each side, are a pair when they are drawn alike, touch the nets with the same terminal (resistors and capacitors
    with any), agree on their other nets (the same net, or nets already known as mirror images), and neither side offers
    a second choice.

    Args:
        devices: The transistors, resistors and capacitors of the circuit.
        seeds: Pairs known to be symmetric, left device first.
        taken: Ids of devices that already belong to a module. They carry symmetry on but form no pair.
        supplies: The supply nets, where the search ends.

    Returns:
        ``(kind, left, right)`` in the order found: ``load_pair`` when they share gate and source, ``cascode_pair`` when
        they share the gate only, else ``symmetric_pair``; ``resistor_pair`` and ``capacitor_pair``, the ends of the
        right one exchanged where they face the other ends of the left one.
    """
    return _Search(list(devices), set(taken), supplies).run(list(seeds))


def is_capacitor(device: Device) -> bool:
    """Return whether a transistor is a capacitor to the net of its drain and source: only its gate carries a signal."""
    return device.is_mos and device.terminals["d"] == device.terminals["s"] != device.terminals["g"]


def facing_nets(first: Device, second: Device, images: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Return the nets of two equal devices that face each other: those of drains, sources and gates, or of both ends.

    The ends of resistors and capacitors face each other as they must so that a net faces itself, or its mirror image in
    ``images``.
    """
    one, other = ([device.terminals[t] for t in _terminals(device)] for device in (first, second))
    if first.kind.exchangeable and not first.is_mos:
        known = [(images or {}).get(net, net) for net in one]
        straight, crossed = (sum(map(str.__eq__, known, nets)) for nets in (other, other[::-1]))
        other = other[::-1] if crossed > straight else other
    return list(zip(one, other, strict=True))


def _terminals(device: Device) -> tuple[str, ...]:
    return ("d", "s", "g") if device.is_mos else device.kind.ends


class _Search:
    def __init__(self, devices: list[Device], taken: set[str], supplies: Supplies) -> None:
        self._taken = taken
        self._supplies = supplies
        self._on_net: dict[str, list[tuple[Device, str]]] = defaultdict(list)
        for device in devices:
            channel = _CHANNEL if device.is_mos else device.kind.ends
            for terminal in ("g",) if is_capacitor(device) else channel:
                self._on_net[device.terminals[terminal]].append((device, terminal))
        self._mirror: dict[str, str] = {}
        self._queue: deque[tuple[str, str]] = deque()
        self._paired: set[str] = set()
        self._found: list[tuple[PairKind, Device, Device]] = []

    def run(self, seeds: list[tuple[Device, Device]]) -> list[tuple[PairKind, Device, Device]]:
        """Return the pairs found from the channels of all seeds, then from their gates.

        Gates come last, because the inputs of a pair do not always mirror each other. In a common-mode amplifier, one
        may be a reference and the other an output, which mirrors the second output.
        """
        for first, second in seeds:
            self._paired.update((first.id, second.id))
        for terminals in (slice(2), slice(2, None)):
            for first, second in seeds:
                self._mirror_nets(facing_nets(first, second, self._mirror)[terminals])
            while self._queue:
                self._visit(*self._queue.popleft())
        return self._found

    def _mirror_nets(self, facing: Iterable[tuple[str, str]]) -> None:
        for left, right in facing:
            if left == right or left in self._supplies or right in self._supplies:
                continue
            if left in self._mirror or right in self._mirror:
                continue
            self._mirror[left], self._mirror[right] = right, left
            self._queue.append((left, right))

    def _visit(self, left: str, right: str) -> None:
        there = self._unpaired(right)
        for key, firsts in self._unpaired(left).items():
            seconds = there.get(key, [])
            if len(firsts) != 1 or len(seconds) != 1 or firsts[0] is seconds[0]:
                continue
            if not {firsts[0].id, seconds[0].id} & self._paired:  # a terminal looked at before may have paired them
                self._consider(firsts[0], seconds[0])

    def _unpaired(self, net: str) -> dict[tuple[object, ...], list[Device]]:
        found: dict[tuple[object, ...], list[Device]] = defaultdict(list)
        for device, terminal in self._on_net[net]:
            if device.id not in self._paired:
                found[self._key(device, terminal)].append(device)
        return found

    @staticmethod
    def _key(device: Device, terminal: str) -> tuple[object, ...]:
        params = tuple(sorted((name, float(value)) for name, value in device.params.items()))
        end = "" if device.kind.exchangeable and not device.is_mos else terminal
        return (end, device.type, device.model.lower(), params, device.terminals.get("b"))

    def _consider(self, first: Device, second: Device) -> None:
        facing = facing_nets(first, second, self._mirror)
        if not all(self._agree(left, right) for left, right in facing):
            return
        self._paired.update((first.id, second.id))
        if first.id not in self._taken and second.id not in self._taken:
            turned = dict(zip(_terminals(second), (net for _, net in facing), strict=True))
            turned_second = replace(second, terminals={**second.terminals, **turned})
            self._found.append((self._kind(first, second), first, turned_second))
        self._mirror_nets(facing)

    def _agree(self, left: str, right: str) -> bool:
        """Whether two nets are one net, known mirror images, or both not yet placed."""
        if left == right:
            return True
        if left in self._supplies or right in self._supplies:
            return False
        return self._mirror.get(left, right) == right and self._mirror.get(right, left) == left

    @staticmethod
    def _kind(first: Device, second: Device) -> PairKind:
        if not first.is_mos:
            return f"{first.type}_pair"
        if first.terminals["g"] != second.terminals["g"]:
            return "symmetric_pair"
        return "load_pair" if first.terminals["s"] == second.terminals["s"] else "cascode_pair"
