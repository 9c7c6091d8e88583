"""Devices that are one: in parallel, in series, and those that carry no current. The same for layouts and netlists.

    in parallel      devices of one type on the same nets; exchangeable ends count in either order
    "lengths"        devices of equal width, joined by a net that meets nothing else  ->  one of their total length
    "stacks"         the same for channels under one gate; and equal stacks between the same two nets
                     ->  one stack of their total width, the inner nets of which are one

The kind of a device says how it folds in series (``DeviceKind.in_series``). Resistors fold always, so that strings of
bars become one device whichever way they are joined. Two bars on the same two nets, one of which meets nothing else,
are not in parallel: they are a string that begins and ends on the other net. Stacks fold only where the circuits do not
match as they are, on both sides, and the result reports it. A net with a name leads out of the circuit: nothing is
folded over it.

A transistor is a dummy if its source and drain are one net and its gate is tied to them or to the bulk, or if its gate
is tied to the bulk and source or drain leads nowhere: to an unnamed net that meets only such transistors. A MOS
capacitor (source and drain tied, gate driven) and a transistor that is merely off between two nets are not dummies.
There is one exception: in a layout whose channels bear device texts, a transistor that is off (gate on the bulk's net)
and bears no text is a dummy finger that a generator added on shared diffusion.
Any other device is a dummy if both its terminals are on one net, or if both lead nowhere; a capacitor only in the
first case. A string of resistors is also judged as the single device that it folds into.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from layoutkit.technology.device_kinds import DeviceKind

Net = TypeVar("Net", int, str)

FoldKey = tuple[str, tuple[tuple[str, Net], ...]]
"""Device type, and its nets by role, sorted: exchangeable ends have the role ``e``, other terminals their own name."""

_SAME_WIDTH = 1e-6  # largest difference of widths that count as equal [um, and relative where larger]


@dataclass(frozen=True)
class SizedDevice:
    """A device of either side of a comparison, or a part of one: its type, size [um] and nets by terminal."""

    device: str
    kind: DeviceKind
    w_um: float
    l_um: float
    nets: Mapping[str, Any]

    @property
    def key(self) -> FoldKey[Any]:
        """What it has in common with devices in parallel to it."""
        return self.device, tuple(sorted((self.kind.roles[terminal], net) for terminal, net in self.nets.items()))

    def in_series(self, other: Any, nets: Mapping[str, Any]) -> Any:
        """Return both as one device on ``nets`` whose lengths add up."""
        raise NotImplementedError

    def in_parallel(self, other: Any) -> Any:
        """Return both as one device whose widths add up."""
        raise NotImplementedError


Part = TypeVar("Part", bound=SizedDevice)


def in_parallel(devices: Iterable[Part]) -> dict[FoldKey[Any], tuple[Part, ...]]:
    """Group devices that are in parallel, whatever their lengths are, by their type and nets."""
    found: dict[FoldKey[Any], list[Part]] = {}
    for device in devices:
        found.setdefault(device.key, []).append(device)
    return {key: tuple(members) for key, members in found.items()}


def fold_series(devices: Sequence[Part], named: Collection[Any], how: str = "lengths") -> tuple[Part, ...]:
    """Return ``devices`` with those folded that fold in series in the way ``how``; others stay as they are.

    Args:
        devices: Devices of one side.
        named: Nets that lead out and stay: labelled nets of a layout, ports of a circuit.
        how: ``lengths`` or ``stacks``, see the top of the module.
    """
    if not any(part.kind.in_series == how for part in devices):
        return tuple(devices)
    parts = _paralleled(list(devices), how, named)
    while True:
        alike = _with_inner_nets_joined(parts, how, named) if how == "stacks" else parts
        folded = _paralleled(_chained(alike, how, named), how, named)
        if len(folded) == len(parts):
            return tuple(folded)
        parts = folded


def loops(parts: Sequence[SizedDevice], named: Collection[Any]) -> set[int]:
    """Return the indexes of resistors that are one of two in a string that begins and ends on one net."""
    inner = inner_nets(parts, "lengths", named)
    return {
        index
        for first, second in inner.values()
        if parts[first].key == parts[second].key
        and _alike(parts[first], parts[second])
        and len(inner.keys() & {*_ends(parts[first])}) == 1
        for index in (first, second)
    }


def dummies(devices: Sequence[SizedDevice], named: Collection[Any]) -> set[int]:
    """Return the indexes of the dummies.

    Args:
        devices: Devices of one side.
        named: Nets that lead out: labelled nets of a layout, ports of a circuit.
    """
    at = {(device.kind.name, frozenset(device.nets.items())) for device in devices}  # those in parallel are one
    meeting = Counter(net for _, ends in at for net in {net for _, net in ends})
    connections = Counter(net for device in devices for net in device.nets.values())
    found, lead_somewhere, off = set(), set(named), set()
    for index, device in enumerate(devices):
        kind, nets = device.kind, device.nets
        if kind.gate:
            if nets[kind.gate] == nets[kind.bulk]:
                off.add(index)
            else:
                lead_somewhere.update(_ends(device))
            lead_somewhere.update(nets[terminal] for terminal in kind.sensing)
            continue
        ends = set(_ends(device))
        apart = not kind.tied_dummies and all(meeting[net] == 1 and net not in named for net in ends)
        if len(ends) == 1 or apart:
            found.add(index)
        else:
            lead_somewhere.update(net for net in ends if connections[net] > 1)
    for index, device in enumerate(devices):
        if not device.kind.gate:
            continue
        first, second = _ends(device)
        tied = first == second and device.nets[device.kind.gate] in (first, device.nets[device.kind.bulk])
        if tied or (index in off and not {first, second} <= lead_somewhere):
            found.add(index)
    return found


def dummy_strings(devices: Sequence[Part], named: Collection[Any]) -> set[int]:
    """Return the indexes of the dummies among folded strings, such as strings with both ends on one net.

    Args:
        devices: What ``fold_series`` returned for the devices that are not dummies themselves.
        named: Nets that lead out.
    """
    return {index for index in dummies(devices, named) if devices[index].kind.in_series == "lengths"}


def off_transistors(devices: Sequence[SizedDevice]) -> set[int]:
    """Return the indexes of the transistors that are always off: the gate is on the bulk's net."""
    return {
        i for i, each in enumerate(devices) if each.kind.gate and each.nets[each.kind.gate] == each.nets[each.kind.bulk]
    }


def _ends(part: SizedDevice) -> tuple[Any, Any]:
    first, second = part.kind.ends
    return part.nets[first], part.nets[second]


def _other_end(part: SizedDevice, net: Any) -> Any:
    first, second = _ends(part)
    return second if first == net else first


def _paralleled(parts: list[Part], how: str, named: Collection[Any]) -> list[Part]:
    """Return the parts with those in parallel and of one length made one."""
    found: dict[Any, Part] = {}
    apart = loops(parts, named) if how == "lengths" else set()
    for index, part in enumerate(parts):
        together = part.kind.in_series == how and index not in apart
        key: Any = (part.key, round(part.l_um, 6)) if together else index
        found[key] = found[key].in_parallel(part) if key in found else part
    return list(found.values())


def inner_nets(parts: Sequence[SizedDevice], how: str, named: Collection[Any]) -> dict[Any, list[int]]:
    """Return the unnamed nets that meet an end of two parts and nothing else, each with the two parts."""
    meeting = Counter(net for part in parts for net in part.nets.values())
    found: dict[Any, list[int]] = {}
    for index, part in enumerate(parts):
        if part.kind.in_series == how:
            for net in _ends(part):
                found.setdefault(net, []).append(index)
    return {
        net: indexes
        for net, indexes in found.items()
        if meeting[net] == 2 and len(set(indexes)) == 2 and net not in named
    }


def _chained(parts: list[Part], how: str, named: Collection[Any]) -> list[Part]:
    """Return the parts with those made one that an inner net joins."""
    found: list[Part | None] = list(parts)
    holder = list(range(len(parts)))

    def root(index: int) -> int:
        while holder[index] != index:
            holder[index] = holder[holder[index]]
            index = holder[index]
        return index

    for net, indexes in inner_nets(parts, how, named).items():
        first, second = sorted(root(index) for index in indexes)
        one, other = found[first], found[second]
        if first == second or one is None or other is None or not _alike(one, other):
            continue
        outer = zip(one.kind.ends, (_other_end(one, net), _other_end(other, net)), strict=True)
        found[first] = one.in_series(other, {**one.nets, **dict(outer)})
        found[second] = None
        holder[second] = first
    return [part for part in found if part is not None]


def _alike(one: SizedDevice, other: SizedDevice) -> bool:
    """Whether two parts in series are one: of one type and width, on the same nets but for their ends."""

    def beside(part: SizedDevice) -> dict[str, Any]:
        return {terminal: net for terminal, net in part.nets.items() if terminal not in part.kind.ends}

    same = one.device == other.device and beside(one) == beside(other)
    return same and abs(one.w_um - other.w_um) <= _SAME_WIDTH * max(1.0, one.w_um)


def _with_inner_nets_joined(parts: list[Part], how: str, named: Collection[Any]) -> list[Part]:
    """Return the parts with the inner nets of equal stacks between the same two nets made one."""
    inner = inner_nets(parts, how, named)
    known: dict[Any, list[Any]] = {}
    names: dict[Any, Any] = {}
    for stack, nets in _stacks(parts, how, inner):
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


def _steps(stack: Sequence[SizedDevice]) -> tuple[Any, ...]:
    """Return what two stacks that divide a voltage alike have in common: gates, lengths, the ratio of widths."""
    return tuple(
        (
            part.device,
            *(part.nets[terminal] for terminal in part.kind.sensing),
            round(part.l_um, 6),
            round(part.w_um / stack[0].w_um, 6),
        )
        for part in stack
    )


def _stacks(parts: Sequence[Part], how: str, inner: Mapping[Any, list[int]]) -> list[tuple[list[int], list[Any]]]:
    """Return the longest chains of parts over inner nets, each with its inner nets, in order."""
    found, used = [], set()
    for start, part in enumerate(parts):
        if part.kind.in_series != how or start in used:
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
    nets = {terminal: names.get(net, net) for terminal, net in part.nets.items()}
    return replace(part, nets=nets)
