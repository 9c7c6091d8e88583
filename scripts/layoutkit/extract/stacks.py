"""Transistors in series: stacks that are one transistor, and stacks in parallel that a layout draws apart.

    one gate over several channels in series     ->  one transistor of their total length
    equal stacks between the same two nets       ->  one stack of their total width; their inner nets are one

Both keep what the circuit does. They are tried only where the circuits do not match as they are, on both sides, and
what they folded is told. Inner nets carry no label, are no port, and meet nothing but the two channels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.extract.extracted import ExtractedDevice
    from layoutkit.lvs.reference import ReferenceDevice

    Part = TypeVar("Part", ExtractedDevice, ReferenceDevice)
else:
    Part = TypeVar("Part")

_SAME = 1e-6  # relative difference of widths that count as equal [1]


def fold_stacks(devices: Sequence[Part], named: Collection[Any]) -> tuple[Part, ...]:
    """Return ``devices`` with stacks folded; the same devices where there are none.

    Args:
        devices: Devices of one side, those in parallel combined.
        named: Nets that lead out: labelled nets of a layout, ports of a circuit.
    """
    parts = list(devices)
    while True:
        folded = _one_gate(_joined_inner_nets(parts, named), named)
        folded = _in_parallel(folded)
        if len(folded) == len(parts):
            return tuple(folded)
        parts = folded


def _ends(part: Part) -> tuple[Any, Any]:
    return part.nets["s"], part.nets["d"]


def _other_end(part: Part, net: Any) -> Any:
    source, drain = _ends(part)
    return drain if source == net else source


def _inner_nets(parts: Sequence[Part], named: Collection[Any]) -> dict[Any, list[int]]:
    """Return the nets that meet two channels' ends and nothing else, with the two transistors."""
    meeting = Counter(net for part in parts for net in part.nets.values())
    found: dict[Any, list[int]] = {}
    for index, part in enumerate(parts):
        if "g" in part.nets:
            for net in _ends(part):
                found.setdefault(net, []).append(index)
    return {
        net: indexes
        for net, indexes in found.items()
        if net not in named and meeting[net] == 2 and len(set(indexes)) == 2
    }


def _one_gate(parts: list[Part], named: Collection[Any]) -> list[Part]:
    """Return the parts with channels in series under one gate made one; each round joins pairs, so few are needed."""
    while True:
        joined: dict[int, Part] = {}
        gone: set[int] = set()
        for net, (first, second) in _inner_nets(parts, named).items():
            if any(index in joined or index in gone for index in (first, second)):
                continue
            one, other = parts[first], parts[second]
            same = all(one.nets[terminal] == other.nets[terminal] for terminal in "gb") and one.device == other.device
            if same and abs(one.w_um - other.w_um) <= _SAME * one.w_um:
                nets = {**one.nets, "s": _other_end(one, net), "d": _other_end(other, net)}
                joined[first] = one.in_series(other, nets)
                gone.add(second)
        if not joined:
            return parts
        parts = [joined.get(index, part) for index, part in enumerate(parts) if index not in gone]


def _in_parallel(parts: list[Part]) -> list[Part]:
    found: dict[Any, Part] = {}
    for index, part in enumerate(parts):
        key: Any = (part.key, round(part.l_um, 6)) if "g" in part.nets else index
        found[key] = found[key].in_parallel(part) if key in found else part
    return list(found.values())


def _joined_inner_nets(parts: list[Part], named: Collection[Any]) -> list[Part]:
    """Return the parts with the inner nets of equal stacks between the same two nets made one."""
    inner = _inner_nets(parts, named)
    known: dict[Any, list[Any]] = {}
    names: dict[Any, Any] = {}
    for stack, nets in _stacks(parts, inner):
        ends = [next(end for end in _ends(parts[stack[i]]) if end not in nets) for i in (0, -1)]
        key = (ends[0], ends[1], _steps([parts[index] for index in stack]))
        turned = (ends[1], ends[0], _steps([parts[index] for index in reversed(stack)]))
        if key in known:
            names.update(zip(nets, known[key], strict=True))
        elif turned in known:
            names.update(zip(reversed(nets), known[turned], strict=True))
        else:
            known[key] = nets
    return [_renamed(part, names) for part in parts] if names else parts


def _steps(stack: Sequence[Part]) -> tuple[Any, ...]:
    """Return what two stacks that divide a voltage alike have in common: gates, lengths, the ratio of widths."""
    return tuple(
        (p.device, p.nets["g"], p.nets["b"], round(p.l_um, 6), round(p.w_um / stack[0].w_um, 6)) for p in stack
    )


def _stacks(parts: Sequence[Part], inner: Mapping[Any, list[int]]) -> list[tuple[list[int], list[Any]]]:
    """Return the maximal chains of transistors over inner nets, each with its inner nets, in order."""
    found, used = [], set()
    for start, part in enumerate(parts):
        if "g" not in part.nets or start in used:
            continue
        inside = [net for net in _ends(part) if net in inner]
        if len(inside) != 1:  # alone, or in the middle of a chain
            continue
        chain, nets, net = [start], [], inside[0]
        while net is not None:
            nets.append(net)
            after = next(index for index in inner[net] if index != chain[-1])
            chain.append(after)
            net = next((end for end in _ends(parts[after]) if end in inner and end != net), None)
        used |= set(chain)
        found.append((chain, nets))
    return found


def _renamed(part: Part, names: Mapping[Any, Any]) -> Part:
    if not any(net in names for net in part.nets.values()):
        return part
    return replace(part, nets={terminal: names.get(net, net) for terminal, net in part.nets.items()})
