"""The policy for groups that reach across repeated cells: whether matching or sharing is worth more.

A subcircuit that is used more than once is laid out once. A group with members in several instances can only be drawn
as a group where these members lie outside of the cell; what is left of the cell stays shared::

    X1: pair, load, tail        ota (2 uses): pair, load
    X2: pair, load, tail   ->   current_mirror_1: M1, X1.tail, X2.tail, in one module
    M1: diode of the tails

The role of a group decides:

- Pairs of an amplifier, mirrors, arrays of bipolar transistors, ratios of resistors or capacitors: matching.
- The halves of a symmetric amplifier are drawn device by device, about one axis, if each is small.
- A bias that is copied into many equal cells, sources that a port drives in equal cells, the current sources of equal
  stages, the pairs of logic: sharing. But currents that many equal cells add on one net are those of a converter, which
  must match.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.symmetry import OF_CELLS
from layoutkit.errors import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Circuit, RecognisedModule
    from layoutkit.circuit.repeated import Hierarchy

MOST_COPIES = 4
"""Equal cells into which a bias is copied; in more, each cell keeps its own current source."""
MOST_MATCHED = 24
"""Largest number of transistors in a module whose pattern is not stated.

Each has a rail over all rows and risers to it, so the area grows with the square of their number. With 40, wires
to some outputs find no way in sky130A."""
MOST_IN_HALF = 24
"""Devices in one half of a symmetric circuit that is drawn device by device."""
MOST_IN_RATIO = 128
"""Devices of a ratio that is drawn as one bank or array."""
_RATIOS = frozenset({"bipolar_array", "bipolar_pair", "resistor_ratio", "capacitor_ratio"})
_IMAGES = frozenset({"cross_coupled_pair", "cascode_pair", "load_pair", "symmetric_pair"})
_SHOWN = 6  # names in a sentence


@dataclass(frozen=True)
class AcrossCells:
    """What was decided about the groups that reach across cells.

    Attributes:
        moved: Device to the paths of the instances outside of which it is drawn.
        dissolved: Paths of the instances whose devices are all drawn by themselves.
        words: Each decision with its reason.
    """

    moved: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    dissolved: AbstractSet[str] = frozenset()
    words: tuple[str, ...] = ()


def groups_across_cells(circuit: Circuit, hierarchy: Hierarchy, *, all_roles: bool = True) -> AcrossCells:
    """Return the decision for each group of an oriented circuit that reaches across its repeated cells.

    Args:
        circuit: The flat circuit.
        hierarchy: Its repeated subcircuits (``find_repeated``).
        all_roles: Whether all roles are decided, or only those that no constraints state: arrays and ratios.
    """
    if not hierarchy.shared:
        return AcrossCells()
    policy = _Policy(circuit, hierarchy)
    if all_roles:
        policy.decide_halves()
    for module in find_roles(circuit).modules:
        if all_roles or module.type in _RATIOS:
            policy.decide(module)
    return policy.decisions()


class Places:
    """In which repeated cells each device lies."""

    def __init__(self, circuit: Circuit, hierarchy: Hierarchy) -> None:
        self.cell_of = {use.path: shared.name for shared in hierarchy.shared for use in shared.uses}
        parents = {each.path: each.parent for each in circuit.subcircuits}
        self.around: dict[str, tuple[str, ...]] = {}
        for instance in circuit.subcircuits:
            path, chain = instance.path, []
            while path:
                chain += [path] if path in self.cell_of else []
                path = parents[path]
            self.around.update(dict.fromkeys(instance.devices, tuple(chain)))

    def apart(self, devices: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return each device that lies in cells in which the others do not, with these cells, the inner one first."""
        chains = {name: self.around.get(name, ()) for name in devices}
        common = set.intersection(*map(set, chains.values()))
        found = {name: tuple(path for path in chain if path not in common) for name, chain in chains.items()}
        return {name: paths for name, paths in found.items() if paths}


class _Policy:
    """The decisions so far."""

    def __init__(self, circuit: Circuit, hierarchy: Hierarchy) -> None:
        self._circuit = circuit
        self._roles = find_roles(circuit)
        self._places = Places(circuit, hierarchy)
        self._inside = Counter(path for chain in self._places.around.values() for path in chain)
        self._stages = {name for group in self._roles.groups if group.type == "ring_stage" for name in group.devices}
        self._moved: dict[str, set[str]] = {}
        self._dissolved: dict[str, None] = {}
        self._words: list[str] = []
        self._kept: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)

    def decisions(self) -> AcrossCells:
        """Return what was decided; one sentence for all groups that are kept in the same cells for one reason."""
        kept = [
            f"{listed(cells, _SHOWN)} stay{'' if len(cells) > 1 else 's'} one cell for all instances, "
            f"so {listed(groups, _SHOWN)} {'is' if len(groups) == 1 else 'are'} drawn in parts: {why}"
            for (cells, why), groups in self._kept.items()
        ]
        return AcrossCells(self._moved, frozenset(self._dissolved), (*self._words, *kept))

    def decide_halves(self) -> None:
        """Dissolve the instances that are images of each other in an amplifier, if a half is small.

        Those with an axis of their own stay cells: each is drawn once.
        """
        for structure in self._roles.symmetry:
            found: dict[str, None] = {}
            halves: dict[tuple[str, ...], None] = {}
            own = [name for kind, *pair in structure.pairs if kind == OF_CELLS for name in pair]
            kept = {path for name in own for path in self._places.around.get(name, ())}
            for _, left, right in structure.pairs:
                apart = self._places.apart((left, right))
                apart = {name: paths for name, paths in apart.items() if kept.isdisjoint(paths)}
                found.update(dict.fromkeys(path for paths in apart.values() for path in paths))
                if apart:
                    halves[tuple(paths[-1] for paths in apart.values())] = None
            amplifies = any(kind == "differential_pair" for kind, _, _ in structure.pairs)
            one_side = sum(max(self._inside[path] for path in half) for half in halves)
            if found and amplifies and one_side <= MOST_IN_HALF:
                self._dissolved.update(found)
                names = " and ".join(listed(dict.fromkeys(side), _SHOWN) for side in zip(*halves, strict=False))
                cells = listed(dict.fromkeys(self._places.cell_of[path] for path in found), _SHOWN)
                self._words.append(
                    f"{names} ({cells}) are drawn device by device: they are halves of a symmetric amplifier, whose "
                    "pairs match about one axis"
                )

    def decide(self, module: RecognisedModule) -> None:
        """Decide whether the members of a group leave their cells."""
        apart = {
            name: paths
            for name, all_paths in self._places.apart(module.devices).items()
            if (paths := tuple(path for path in all_paths if path not in self._dissolved))
        }
        if not apart:
            return
        kept = self._why_shared(module, apart)
        if kept is None:
            return
        group = f"{module.id} ({listed(module.devices, _SHOWN)})"
        cells = tuple(dict.fromkeys(self._places.cell_of[path] for paths in apart.values() for path in paths))
        if kept:
            self._kept[cells, kept].append(group)
            return
        for name, paths in apart.items():
            self._moved.setdefault(name, set()).update(paths)
        self._words.append(
            f"{group} is drawn as one group, with {listed(apart, _SHOWN)} outside of {listed(cells, _SHOWN)}: "
            f"its matching ({MODULE_TYPES[module.type].words}) is worth more than equal cells"
        )

    def _why_shared(self, module: RecognisedModule, apart: Mapping[str, Sequence[str]]) -> str | None:
        """Return why a group stays in its cells; an empty string if it leaves them, None if nothing is lost there."""
        if module.type in _RATIOS:
            many = len(module.devices) > MOST_IN_RATIO
            return f"more than {MOST_IN_RATIO} devices in a ratio are no one bank" if many else ""
        if module.type == "differential_pair":
            return ""
        if module.type in _IMAGES:
            return "it is no pair of a small amplifier, so equal cells are worth more"
        return self._why_mirror_shared(module, apart) if module.type == "current_mirror" else None

    def _why_mirror_shared(self, module: RecognisedModule, apart: Mapping[str, Sequence[str]]) -> str:
        if self._stages & apart.keys():
            return "the stages of a ring or delay line are equal cells, whose equal wires are worth more"
        if len(module.devices) > MOST_MATCHED:
            return f"a module holds at most {MOST_MATCHED} transistors"
        instances: dict[str, dict[str, None]] = defaultdict(dict)
        for paths in apart.values():
            instances[self._places.cell_of[paths[-1]]][paths[-1]] = None
        copies = max(map(len, instances.values()))
        driven = module.properties.get("topology") == "driven" and set(apart) == set(module.devices)
        if driven and len(instances) == 1 and not self._are_summed(apart):
            return "a net without a reference drives them, and equal cells match"
        if copies > MOST_COPIES and not self._are_summed(apart):
            return f"a bias copied into {copies} equal cells, which are worth more than one mirror"
        return ""

    def _are_summed(self, apart: Mapping[str, Sequence[str]]) -> bool:
        """Whether the currents of sources in different instances flow to the same nets."""
        ends = {paths[-1]: self._destinations(name, paths[-1]) for name, paths in apart.items()}
        first, *others = ends.values()
        return bool(first) and bool(others) and all(each == first for each in others)

    def _destinations(self, name: str, path: str) -> frozenset[str]:
        """Return the nets at the border of an instance to which the current of a device in it flows."""
        inside = {device for device, chain in self._places.around.items() if path in chain}
        front, seen, found = [self._circuit.device(name).terminals["d"]], set[str](), set[str]()
        while front:
            net = front.pop()
            if net in seen or net in self._roles.supplies:
                continue
            seen.add(net)
            places = self._circuit.nets[net]
            if net in self._circuit.ports or any(place.device not in inside for place in places):
                found.add(net)
                continue
            above = (self._circuit.device(place.device) for place in places if place.terminal in {"s", "d"})
            front += [device.terminals[end] for device in above if device.is_mos for end in ("d", "s")]
        return frozenset(found)
