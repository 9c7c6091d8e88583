"""Constraints that follow from the modules recognised in a circuit."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from layoutkit.circuit.constraints import PRIORITIES, Constraints, MatchedGroup, NetPriority, SymmetryGroup
from layoutkit.circuit.input_pairs import same_size
from layoutkit.circuit.passive_map import shared_nets
from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.symmetry import is_capacitor
from layoutkit.errors import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Circuit, RecognisedModule

    Nets = frozenset[str]
    InverterPair = tuple[tuple[str, ...], tuple[str, ...], tuple[str, str]]


def suggest_constraints(circuit: Circuit) -> Constraints:
    """Return the constraints that follow from the modules of ``circuit``; the same circuit gives the same ones."""
    arrays = _capacitor_arrays(circuit)
    symmetry = _Symmetry(circuit, {name for array in arrays for name in array.devices}).groups()
    transistors = (
        _matching(module, devices)
        for module in find_roles(circuit).modules
        if MODULE_TYPES[module.type].matched
        for devices in _by_kind(circuit, module)
    )
    return Constraints(
        symmetry=symmetry,
        matching=(*transistors, *arrays),
        net_priorities=_net_priorities(circuit, symmetry),
    )


class _Symmetry:
    """Collects symmetry groups: the pairs that are connected by nets of their channels."""

    def __init__(self, circuit: Circuit, in_arrays: AbstractSet[str]) -> None:
        self._circuit = circuit
        self._in_arrays = in_arrays  # capacitors whose plates have a common centroid
        self._supplies = find_roles(circuit).supplies
        self._order = {device.id: index for index, device in enumerate(circuit.devices)}
        self._partner: dict[str, str] = {}  # net to the net that mirrors it
        self._mirrored: set[str] = set()  # nets that are in a net pair of a group
        self._paired: set[str] = set()  # devices that are in a pair of a group
        self._on_axis: set[str] = set()
        self._drains: dict[str, list[str]] = defaultdict(list)  # net to the devices whose drain is on it
        for device in circuit.devices:
            if "d" in device.terminals:
                self._drains[device.terminals["d"]].append(device.id)
        self._inverters: dict[str, list[RecognisedModule]] = defaultdict(list)  # by their input
        for module in find_roles(circuit).modules:
            if module.type == "inverter":
                self._inverters[module.properties["input"]].append(module)

    def groups(self) -> tuple[SymmetryGroup, ...]:
        """Return one group for each set of connected pairs."""
        members = self._connected()
        self._choose_partners(members)
        groups = [self._group(modules) for modules in members]
        result = []
        for group in groups:  # a device on an axis is in no pair, and on no other axis
            own = tuple(d for d in group.self_symmetric if d not in self._paired and d not in self._on_axis)
            self._on_axis.update(own)
            result.append(SymmetryGroup(group.pairs, own, group.net_pairs, group.reason))
        return tuple(result)

    def _choose_partners(self, groups: Sequence[Sequence[RecognisedModule]]) -> None:
        """Choose which nets mirror each other: those of channels and passives first, then those of gates.

        With this order, an amplifier that compares an output with a reference does not make the two mirror each other.
        """
        facing = [self._facing(module, *pair) for modules in groups for module in modules for pair in _pairs_of(module)]
        for part in (slice(2), slice(2, None)):
            for first, second in (nets for each in facing for nets in each[part]):
                taken = any(net in self._partner or net in self._supplies for net in (first, second))
                if first != second and not taken:
                    self._partner[first], self._partner[second] = second, first

    def _connected(self) -> list[list[RecognisedModule]]:
        """Return the modules with pairs, grouped by shared nets; a mirror joins with one branch on each side."""
        waiting = {
            module.id: module
            for symmetric in (True, False)
            for module in find_roles(self._circuit).modules
            if MODULE_TYPES[module.type].symmetric is symmetric
            and _pairs_of(module)
            and not self._in_arrays & set(module.devices)
        }
        place = {name: index for index, name in enumerate(waiting)}
        shared = {name: self._shared_nets(module) for name, module in waiting.items()}
        on_nets: dict[Nets, list[str]] = defaultdict(list)
        for name, module in waiting.items():
            for nets in shared[name]:
                if MODULE_TYPES[module.type].symmetric or len(nets) == 2:
                    on_nets[nets].append(name)
        groups = []
        for seed, module in list(waiting.items()):
            if seed not in waiting or not MODULE_TYPES[module.type].symmetric:
                continue
            members, front = [waiting.pop(seed)], set(shared[seed])
            while front:
                joining = sorted(
                    {name for nets in front for name in on_nets[nets] if name in waiting}, key=place.__getitem__
                )
                members += [waiting.pop(name) for name in joining]
                front = {nets for name in joining for nets in shared[name]} - front
            groups.append(members)
        return groups

    def _shared_nets(self, module: RecognisedModule) -> set[Nets]:
        """Return the nets ``{left, right}`` of the channels of a module's pairs, and ``{net}`` where both share one."""
        found = set()
        for left, right in _pairs_of(module):
            nets = self._facing(module, left, right)
            if "facing" not in module.properties:
                nets = nets[2:] if is_capacitor(self._circuit.device(left)) else nets[:2]
            found |= {frozenset(pair) for pair in nets}
        return {nets for nets in found if not any(net in self._supplies for net in nets)}

    def _facing(self, module: RecognisedModule, left: str, right: str) -> list[tuple[str, str]]:
        """Return the nets of a pair that face each other: of drains, sources and gates, or of both ends."""
        if "facing" in module.properties:
            return [(first, second) for first, second in module.properties["facing"]]
        one, other = self._circuit.device(left), self._circuit.device(right)
        return [(one.terminals[terminal], other.terminals[terminal]) for terminal in ("d", "s", "g")]

    def _group(self, members: Sequence[RecognisedModule]) -> SymmetryGroup:
        """Return the group of some modules: pairs, devices on its axis, and net pairs that no earlier group has."""
        pairs = [pair for module in members for pair in _pairs_of(module)]
        words = [
            f"{MODULE_TYPES[module.type].words if MODULE_TYPES[module.type].symmetric else 'mirror of ratio 1'} "
            f"{'/'.join(module.devices[:2])}"
            for module in members
        ]
        net_pairs: list[tuple[str, str]] = []
        axis: dict[str, None] = {}
        for owner, (left, right) in [(module, pair) for module in members for pair in _pairs_of(module)]:
            for number, (first, second) in enumerate(self._facing(owner, left, right)):
                if first in self._supplies or second in self._supplies:
                    continue
                if first != second:
                    self._mirror(first, second, net_pairs)
                elif number == 1 and "facing" not in owner.properties:  # the source, below which a tail hangs
                    axis[first] = None
        self._paired.update(device for pair in pairs for device in pair)
        for left_devices, right_devices, outputs in self._inverter_pairs(net_pairs):
            if self._paired & {*left_devices, *right_devices}:
                continue
            pairs += list(zip(left_devices, right_devices, strict=True))
            self._paired.update(left_devices, right_devices)
            words.append(f"inverters {'+'.join(left_devices)}/{'+'.join(right_devices)}")
            self._mirror(*outputs, net_pairs)
        tails = {device for net in axis for device in self._drains[net] if device not in self._paired}
        in_order = tuple(sorted(tails, key=self._order.__getitem__))
        return SymmetryGroup(tuple(pairs), in_order, tuple(net_pairs), ", ".join(words))

    def _mirror(self, first: str, second: str, net_pairs: list[tuple[str, str]]) -> None:
        images = self._partner.get(first, second) == second and self._partner.get(second, first) == first
        if images and not self._mirrored & {first, second}:
            self._mirrored.update((first, second))
            net_pairs.append((first, second))

    def _inverter_pairs(self, net_pairs: Iterable[tuple[str, str]]) -> list[InverterPair]:
        """Return the pairs of equal inverters driven by two nets that mirror each other, with their two outputs."""
        found: list[InverterPair] = []
        for left, right in net_pairs:
            first, second = self._inverters.get(left, []), self._inverters.get(right, [])
            if len(first) == len(second) == 1 and all(
                same_size(self._circuit.device(a), self._circuit.device(b))
                for a, b in zip(first[0].devices, second[0].devices, strict=True)
            ):
                outputs = (first[0].properties["output"], second[0].properties["output"])
                found.append((first[0].devices, second[0].devices, outputs))
        return found


def _pairs_of(module: RecognisedModule) -> list[tuple[str, str]]:
    """Return the pairs of equal devices in a module: a pair's own, or the branches of a mirror of ratio 1."""
    properties = module.properties
    if MODULE_TYPES[module.type].symmetric:
        return [(module.devices[0], module.devices[1])] if properties.get("matched", True) else []
    if list(properties.get("ratios", {}).values()) != [1]:
        return []
    cascodes = properties.get("cascodes", [])
    return [(properties["reference"], properties["outputs"][0]), *([(cascodes[0], cascodes[1])] if cascodes else [])]


def _by_kind(circuit: Circuit, module: RecognisedModule) -> list[list[str]]:
    """Return the devices of a module that can match: a mirror's cascodes may be of another model than its branches.

    Transistors with bodies on two nets lie in two wells, so they do not match.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for device in map(circuit.device, module.devices):
        body = device.terminals.get("b", "") if device.is_mos else ""
        groups.setdefault((device.type, device.model, body), []).append(device.id)
    return [devices for devices in groups.values() if len(devices) > 1]


def _matching(module: RecognisedModule, devices: Sequence[str]) -> MatchedGroup:
    """Return how the devices of a module, or those of one kind, are to be matched."""
    module_type = MODULE_TYPES[module.type]
    if module_type.symmetric:
        return MatchedGroup(tuple(devices), reason=module_type.words)
    ratios = module.properties.get("ratios", {})
    shown = listed(f"{device} {ratio:g}" if ratio else device for device, ratio in ratios.items())
    if "units" in module.properties:
        units = ":".join(str(module.properties["units"][device]) for device in devices)
        return MatchedGroup(tuple(devices), "interdigitated", f"{module_type.words}, {units} units")
    text = f"{module.properties.get('topology', 'simple')} current mirror, ratios to {module.devices[0]}: {shown}"
    return MatchedGroup(tuple(devices), reason=text)


def _capacitor_arrays(circuit: Circuit) -> list[MatchedGroup]:
    """Return the capacitors that are made of equal plates and share a net that is no supply, in groups.

    Two that mirror each other and have an odd number of plates each form no group: no array gives them one centroid.
    """
    mirrored = [set(module.devices) for module in find_roles(circuit).modules if module.type == "capacitor_pair"]
    supplies = find_roles(circuit).supplies
    plates = [
        device
        for device in circuit.devices
        if device.type == "capacitor" and {"w", "l"} <= device.params.keys() and device.params.get("series", 1) == 1
    ]
    groups = shared_nets(
        plates,
        lambda device: (device.model, *sorted((device.w, device.l))),
        {*supplies.power, *supplies.ground},
    )
    return [
        MatchedGroup(
            tuple(device.id for device in group),
            "interdigitated",
            f"capacitors of equal plates, {':'.join(str(device.m) for device in group)}",
        )
        for group in groups
        if group[0].m % 2 == 0 or {device.id for device in group} not in mirrored
    ]


def _net_priorities(circuit: Circuit, symmetry: Sequence[SymmetryGroup]) -> tuple[NetPriority, ...]:
    """Return a priority for each net that joins two terminals or leaves the circuit, the first to route first."""
    supplies = find_roles(circuit).supplies
    mirrored = {net for group in symmetry for pair in group.net_pairs for net in pair}
    gates = Counter(net for net, places in circuit.nets.items() for place in places if place.terminal == "g")
    mirrors = [module for module in find_roles(circuit).groups if module.type == "current_mirror"]
    bias = {module.properties.get("common_gate") for module in mirrors}
    entries = []
    for net, places in circuit.nets.items():
        if len(places) < 2 and net not in circuit.ports:
            continue
        if net in supplies:
            kind, reason = "supply", "supply net"
        elif net in mirrored:
            kind, reason = "sensitive", "one of two nets that mirror each other"
        elif net in bias and gates[net] > 1:
            kind, reason = "bias", "gates of a current mirror"
        else:
            kind, reason = "signal", "signal net"
        entries.append(NetPriority(net, PRIORITIES[kind], kind, reason))
    return tuple(sorted(entries, key=lambda entry: entry.priority))
