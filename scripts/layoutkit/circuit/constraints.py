"""Layout constraints of a circuit: suggested from what recognition finds, and checked against the circuit.

A set of constraints is plain JSON data::

    {"symmetry": [{"pairs": [["M1", "M2"]], "self_symmetric": ["M5"], "net_pairs": [["inp", "inn"]], "reason": "..."}],
     "matching": [{"devices": ["M1", "M2"], "arrangement": "ABBA", "reason": "..."}],
     "net_priorities": [{"net": "inp", "priority": 1, "kind": "sensitive", "reason": "..."}]}

One symmetry group has one axis. Nets with a smaller priority are routed first.
"""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.recognise import same_size
from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule
    from layoutkit.circuit.supplies import Supplies

PAIRS = frozenset({"differential_pair", "cross_coupled_pair", "cascode_pair", "load_pair", "symmetric_pair"})
MAX_NAME = 200  # characters of a name in a message
MAX_HINTED = 50  # faults that say what may have been meant
PRIORITIES = {"sensitive": 1, "signal": 2, "bias": 3, "supply": 4}
_WORDS = {
    "differential_pair": "differential pair",
    "cross_coupled_pair": "cross-coupled pair",
    "cascode_pair": "cascode pair",
    "load_pair": "load pair",
    "symmetric_pair": "symmetric pair",
}


class ConstraintFault(NamedTuple):
    """What is wrong with one constraint: its place, such as ``symmetry[0].pairs[1]``, and why."""

    path: str
    message: str
    value: Any = None


def suggest_constraints(circuit: Circuit) -> dict[str, Any]:
    """Return the constraints that follow from the modules of ``circuit``; the same circuit gives the same ones."""
    supplies = find_supplies(circuit)
    groups = _symmetry_groups(circuit, supplies)
    return {
        "symmetry": groups,
        "matching": [
            _matching(module, devices)
            for module in circuit.modules
            if module.type != "inverter"
            for devices in _by_kind(circuit, module)
        ],
        "net_priorities": _net_priorities(circuit, supplies, groups),
    }


def find_faults(constraints: Mapping[str, Any], circuit: Circuit) -> list[ConstraintFault]:
    """Return what is wrong with well-formed constraints for ``circuit``: what it lacks, and what contradicts itself."""
    judge = _Judge(circuit)
    for index, group in enumerate(constraints["symmetry"]):
        judge.symmetry(f"symmetry[{index}]", group)
    for index, group in enumerate(constraints["matching"]):
        judge.matching(f"matching[{index}]", group)
    for index, entry in enumerate(constraints["net_priorities"]):
        judge.net_priority(f"net_priorities[{index}]", entry)
    return judge.faults


# --- suggesting


def _symmetry_groups(circuit: Circuit, supplies: Supplies) -> list[dict[str, Any]]:
    """Return one group for each set of pairs that hang together by their nets."""
    seeds = [module for module in circuit.modules if module.type in PAIRS and _pairs_of(module)]
    mirrors = [module for module in circuit.modules if module.type == "current_mirror" and _pairs_of(module)]
    groups: list[dict[str, Any]] = []
    mirrored: set[str] = set()
    while seeds:
        members = [seeds.pop(0)]
        nets = _shared_nets(circuit, members[0], supplies)
        while joining := [module for module in (*seeds, *mirrors) if _hangs_on(circuit, module, nets, supplies)]:
            for module in joining:
                (seeds if module in seeds else mirrors).remove(module)
                members.append(module)
                nets |= _shared_nets(circuit, module, supplies)
        earlier = [pair for group in groups for pair in group["pairs"]]
        groups.append(_symmetry_group(circuit, members, supplies, mirrored, earlier))
    _one_place_each(groups)
    return groups


def _one_place_each(groups: list[dict[str, Any]]) -> None:
    """Leave on an axis no device that is one of a pair in another group, and none that is on another axis already."""
    taken = {device for group in groups for pair in group["pairs"] for device in pair}
    for group in groups:
        group["self_symmetric"] = [device for device in group["self_symmetric"] if device not in taken]
        taken.update(group["self_symmetric"])


def _pairs_of(module: RecognisedModule) -> list[tuple[str, str]]:
    """Return the pairs of equal devices in a module: a pair's own, or the branches of a mirror of ratio 1."""
    properties = module.properties
    if module.type in PAIRS:
        return [(module.devices[0], module.devices[1])] if properties.get("matched", True) else []
    if list(properties.get("ratios", {}).values()) != [1]:
        return []
    cascodes = properties.get("cascodes", [])
    return [(properties["reference"], properties["outputs"][0]), *([(cascodes[0], cascodes[1])] if cascodes else [])]


def _shared_nets(circuit: Circuit, module: RecognisedModule, supplies: Supplies) -> set[frozenset[str]]:
    """Return the nets ``{left, right}`` that the channels of a module's pairs lie on, and ``{net}`` where it is one."""
    found = set()
    for left, right in _pairs_of(module):
        first, second = circuit.device(left).terminals, circuit.device(right).terminals
        found |= {frozenset((first[terminal], second[terminal])) for terminal in ("d", "s")}
    return {nets for nets in found if not any(net in supplies for net in nets)}


def _hangs_on(circuit: Circuit, module: RecognisedModule, nets: set[frozenset[str]], supplies: Supplies) -> bool:
    """Return whether a module touches the nets of a group; a mirror must do so with one branch each side."""
    own = _shared_nets(circuit, module, supplies)
    return bool(nets & (own if module.type in PAIRS else {pair for pair in own if len(pair) == 2}))


def _symmetry_group(
    circuit: Circuit,
    members: list[RecognisedModule],
    supplies: Supplies,
    mirrored: set[str],
    earlier: list[list[str]],
) -> dict[str, Any]:
    """Return the group of some modules: pairs, devices on its axis, and net pairs unless ``mirrored`` already.

    Inverters that are one of the ``earlier`` groups' pairs stay there.
    """
    pairs = [pair for module in members for pair in _pairs_of(module)]
    words = [f"{_WORDS.get(module.type, 'mirror of ratio 1')} {'/'.join(module.devices[:2])}" for module in members]
    net_pairs: list[list[str]] = []
    axis: set[str] = set()
    for left, right in pairs:
        for terminal in ("d", "s", "g"):
            nets = [circuit.device(device).terminals[terminal] for device in (left, right)]
            if any(net in supplies for net in nets):
                continue
            if nets[0] != nets[1] and not mirrored & set(nets):
                mirrored.update(nets)
                net_pairs.append(nets)
            elif nets[0] == nets[1] and terminal == "s":
                axis.add(nets[0])
    for left_devices, right_devices, outputs in _inverter_pairs(circuit, net_pairs):
        if any({*left_devices, *right_devices} & set(pair) for pair in (*pairs, *earlier)):
            continue
        pairs += list(zip(left_devices, right_devices, strict=True))
        words.append(f"inverters {'+'.join(left_devices)}/{'+'.join(right_devices)}")
        if not mirrored & set(outputs):
            mirrored.update(outputs)
            net_pairs.append(outputs)
    paired = {device for pair in pairs for device in pair}
    tails = [device.id for device in circuit.devices if device.id not in paired and device.terminals.get("d") in axis]
    return {
        "pairs": [list(pair) for pair in pairs],
        "self_symmetric": tails,
        "net_pairs": net_pairs,
        "reason": ", ".join(words),
    }


def _inverter_pairs(
    circuit: Circuit, net_pairs: list[list[str]]
) -> list[tuple[tuple[str, ...], tuple[str, ...], list[str]]]:
    """Return the pairs of equal inverters driven by two nets that mirror each other, with their two outputs."""
    by_input: dict[str, list[RecognisedModule]] = {}
    for module in circuit.modules:
        if module.type == "inverter":
            by_input.setdefault(module.properties["input"], []).append(module)
    found = []
    for left, right in net_pairs:
        first, second = by_input.get(left, []), by_input.get(right, [])
        if len(first) == len(second) == 1 and all(
            same_size(circuit.device(a), circuit.device(b))
            for a, b in zip(first[0].devices, second[0].devices, strict=True)
        ):
            outputs = [first[0].properties["output"], second[0].properties["output"]]
            found.append((first[0].devices, second[0].devices, outputs))
    return found


def _by_kind(circuit: Circuit, module: RecognisedModule) -> list[list[str]]:
    """Return the devices of a module that can match: a mirror's cascodes may be of another model than its branches."""
    groups: dict[tuple[str, str], list[str]] = {}
    for device in map(circuit.device, module.devices):
        groups.setdefault((device.type, device.model), []).append(device.id)
    return [devices for devices in groups.values() if len(devices) > 1]


def _matching(module: RecognisedModule, devices: list[str]) -> dict[str, Any]:
    """Return how the devices of a module, or those of one kind, are to be matched."""
    if module.type in PAIRS:
        arrangement = "ABBA" if module.properties.get("matched", True) else "interdigitated"
        return {"devices": devices, "arrangement": arrangement, "reason": _WORDS[module.type]}
    ratios = module.properties.get("ratios", {})
    told = ", ".join(f"{device} {ratio:g}" if ratio else device for device, ratio in ratios.items())
    text = f"{module.properties.get('topology', 'simple')} current mirror, ratios to {module.devices[0]}: {told}"
    return {"devices": devices, "arrangement": "interdigitated", "reason": text}


def _net_priorities(circuit: Circuit, supplies: Supplies, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a priority for each net that joins two terminals or leaves the circuit, the first to route first."""
    mirrored = {net for group in groups for pair in group["net_pairs"] for net in pair}
    gates = Counter(net for net, places in circuit.nets.items() for place in places if place.terminal == "g")
    bias = {module.properties.get("common_gate") for module in circuit.modules if module.type == "current_mirror"}
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
        entries.append({"net": net, "priority": PRIORITIES[kind], "kind": kind, "reason": reason})
    return sorted(entries, key=lambda entry: entry["priority"])


# --- checking


class _Judge:
    """Collects what is wrong with constraints, one after the other."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._devices = {device.id: device for device in circuit.devices}
        self._supplies = find_supplies(circuit)
        self._placed: dict[str, str] = {}
        self._mirrored: dict[str, str] = {}
        self._matched: dict[str, str] = {}
        self._ranked: dict[str, str] = {}
        self._found: dict[tuple[str, str], ConstraintFault] = {}
        self._looked_up = 0

    @property
    def faults(self) -> list[ConstraintFault]:
        """What is wrong, each told once."""
        return list(self._found.values())

    def symmetry(self, path: str, group: Mapping[str, Any]) -> None:
        """Judge one symmetry group."""
        for index, pair in enumerate(group["pairs"]):
            where = f"{path}.pairs[{index}]"
            devices = [self._device(where, name) for name in pair]
            self._alone(where, pair, self._placed)
            if None not in devices:
                self._alike(where, [device for device in devices if device is not None], "symmetric")
        for index, name in enumerate(group["self_symmetric"]):
            where = f"{path}.self_symmetric[{index}]"
            if self._device(where, name) is not None:
                self._alone(where, [name], self._placed)
        for index, pair in enumerate(group["net_pairs"]):
            where = f"{path}.net_pairs[{index}]"
            known = [self._net(where, name) for name in pair]
            self._alone(where, pair, self._mirrored)
            supply = next((name for name in pair if name in self._supplies), None)
            if all(known) and supply is not None:
                self._tell(where, f"the supply net {supply!r} mirrors no other net", pair)

    def matching(self, path: str, group: Mapping[str, Any]) -> None:
        """Judge one group of matched devices."""
        devices = [self._device(path, name) for name in group["devices"]]
        self._alone(path, group["devices"], self._matched)
        there = [device for device in devices if device is not None]
        if len(there) < len(devices):
            return
        kinds = sorted({f"{device.type} {device.model}" for device in there})
        if len(kinds) > 1:
            self._tell(path, f"devices of different kinds cannot be matched: {', '.join(kinds)}", group["devices"])
        elif group["arrangement"] in ("ABBA", "ABAB", "AABB"):
            if len(there) != 2:
                self._tell(path, f"{group['arrangement']} arranges two devices, got {len(there)}", group["devices"])
            else:
                self._alike(path, there, f"arranged {group['arrangement']}")

    def net_priority(self, path: str, entry: Mapping[str, Any]) -> None:
        """Judge the priority of one net."""
        if self._net(path, entry["net"]):
            self._alone(path, [entry["net"]], self._ranked)

    def _device(self, path: str, name: str) -> Device | None:
        device = self._devices.get(name)
        if device is None:
            self._tell(path, f"the circuit has no device {_short(name)!r}{self._nearest(name, self._devices)}", name)
        return device

    def _net(self, path: str, name: str) -> bool:
        if name in self._circuit.nets:
            return True
        self._tell(path, f"the circuit has no net {_short(name)!r}{self._nearest(name, self._circuit.nets)}", name)
        return False

    def _alone(self, path: str, names: Sequence[str], taken: dict[str, str]) -> None:
        """Note that names stand here; one that stands elsewhere too is a fault."""
        here = Counter(names)
        for name in names:
            other = taken.setdefault(name, path)
            if other != path or here[name] > 1:
                place = "twice here" if here[name] > 1 else f"in {other} already"
                self._tell(path, f"{_short(name)!r} stands {place}", name)

    def _alike(self, path: str, devices: Sequence[Device], purpose: str) -> None:
        """Tell devices that differ in what is drawn."""
        first, *others = devices
        different = [device.id for device in others if not same_size(first, device)]
        if different:
            self._tell(
                path,
                f"{first.id} and {', '.join(different)} differ in type, model or size and cannot be {purpose}",
                [device.id for device in devices],
            )

    def _tell(self, path: str, message: str, value: Any) -> None:
        self._found.setdefault((path, message), ConstraintFault(path, message, value))

    def _nearest(self, name: str, known: Iterable[str]) -> str:
        """Return which known name may have been meant; nobody reads that of the hundredth fault."""
        self._looked_up += 1
        if len(name) > MAX_NAME or self._looked_up > MAX_HINTED:
            return ""
        near = get_close_matches(name, list(known), n=1, cutoff=0.5)
        return f"; did you mean {near[0]!r}?" if near else ""


def _short(name: str) -> str:
    """Return a name for use in a message."""
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."
