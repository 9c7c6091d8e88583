"""Which pairs of nets a latch discharges against each other, so that unequal capacitances on them are an offset."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.extract.extracted import ExtractedDevice


def latched_nets(devices: Sequence[ExtractedDevice]) -> set[frozenset[int]]:
    """Return the pairs of nets that two cross-coupled transistors join: those of their drains, and of their sources.

    Transistors of the same types drive both nets of the drains; those that are always off do not count, nor those with
    a gate on either net. Where some drive one net alone, the two are no sides of a latch that decides: an inverter
    switches a Schmitt trigger by one of them, and the difference of their capacitances is no offset.
    """
    ends: dict[int, list[tuple[ExtractedDevice, int]]] = defaultdict(list)
    for device in devices:
        if device.kind.gate:
            for own, other in (("s", "d"), ("d", "s")):
                ends[device.nets[own]].append((device, device.nets[other]))

    def driving(net: int, latch: frozenset[int]) -> set[str]:
        return {each.kind.name for each, other in ends[net] if other != net and each.nets["g"] not in {*latch, other}}

    found: set[frozenset[int]] = set()
    for drain, connected in [*ends.items()]:
        for device, source in connected:
            latch = frozenset((device.nets["g"], drain))
            # Another transistor of the type has this drain as its gate and this gate as its drain.
            alike = [pair for pair in ends[device.nets["g"]] if pair[0].kind.name == device.kind.name]
            partners = [other for each, other in alike if each.nets["g"] == drain]
            if len(latch) == 2 and partners and driving(drain, latch) == driving(device.nets["g"], latch):
                found |= {latch, *(frozenset((source, other)) for other in partners)}
    return found
