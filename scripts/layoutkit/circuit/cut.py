"""The policy that cuts groups, which may share devices, into the modules that are drawn, which share none."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.circuit.parallel_devices import halves

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import RecognisedModule

_WIDEST_DRIVEN = 10  # ratio of two transistors on one amplifier above which one of them carries the output current
_ORDER = (
    ("cross_coupled_pair",),
    ("current_mirror",),
    ("differential_pair", "symmetric_pair", "load_pair", "cascode_pair", "bipolar_array"),
    ("resistor_pair", "capacitor_pair", "bipolar_pair"),
    ("inverter",),
)
"""Which groups are cut first; those of other types come last."""


def cut_groups(groups: Sequence[RecognisedModule]) -> tuple[tuple[RecognisedModule, ...], tuple[str, ...]]:
    """Return the groups that are drawn as modules, none with a device of another, and what was decided, in words.

    The policy: the group that loses most by a split keeps its devices. A cross-coupled pair goes before a mirror, since
    both its halves must see the same wires; a mirror before a pair, whose loads may be two mirrors side by side; large
    mirrors before small ones; pairs before inverters; and what is only placed side by side comes last. A mirror goes on
    without the outputs that it loses. A pair is whole or none. Outputs of another gate length are drawn apart.
    """
    return _Cut(groups).result()


class _Cut:
    """The state of one cut: what each device is part of so far."""

    def __init__(self, groups: Sequence[RecognisedModule]) -> None:
        self._groups = groups
        self._owner: dict[str, str] = {}  # device to the id of its module
        self._modules: dict[str, list[RecognisedModule]] = defaultdict(list)  # of each group
        self._words: list[str] = []

    def result(self) -> tuple[tuple[RecognisedModule, ...], tuple[str, ...]]:
        """Return the modules in the order of the groups, and the decisions."""
        rank = {name: place for place, names in enumerate(_ORDER) for name in names}
        last = len(_ORDER)

        def place(group: RecognisedModule) -> tuple[int, bool, int]:
            aside = group.properties.get("topology") in {"self_biased", "switched"}
            return rank.get(group.type, last), aside, -len(group.devices) - len(group.properties.get("cascodes", ()))

        for group in sorted(self._groups, key=place):
            if group.type == "current_mirror":
                self._mirror(group)
            else:
                self._whole(group)
        return tuple(module for group in self._groups for module in self._modules[group.id]), tuple(self._words)

    def _keep(self, module: RecognisedModule, of: str = "") -> None:
        self._modules[of or module.id].append(module)
        self._owner.update(dict.fromkeys(module.devices, module.id))

    def _whole(self, group: RecognisedModule) -> None:
        owners = dict.fromkeys(self._owner[name] for name in group.devices if name in self._owner)
        if "of" in group.properties and not owners:
            self._words.append(f"{group.id} ({' '.join(group.devices)}) is drawn as single devices")
        elif owners:
            self._words.append(f"{group.id} ({' '.join(group.devices)}) is drawn as parts of {' and '.join(owners)}")
        elif "halves" in group.properties:
            self._in_pairs(group)
        else:
            self._keep(group)

    def _in_pairs(self, group: RecognisedModule) -> None:
        """Keep the pairs of a group whose halves are several devices in parallel."""
        pairs = halves(group)
        properties = {key: value for key, value in group.properties.items() if key != "halves"}
        for number, pair in enumerate(pairs, start=1):
            self._keep(replace(group, id=f"{group.id}_{number}", devices=pair, properties=properties), of=group.id)
        how = f"{len(pairs)} equal pairs" if pairs else "single devices"
        self._words.append(f"{group.id} ({' '.join(group.devices)}) is drawn as {how}")

    def _mirror(self, group: RecognisedModule) -> None:
        properties = group.properties
        group = replace(group, devices=(*group.devices, *properties.get("cascodes", ())))
        reference, apart = properties["reference"], set[str]()
        if "cascodes" in properties and not properties["cascoded_reference"]:
            apart = set(properties["cascodes"])
            self._words.append(f"{' '.join(sorted(apart))} of {group.id}: drawn apart, the reference has no cascode")
        if "unequal_length" in properties:
            names = " ".join(properties["unequal_length"])
            self._words.append(f"{names}: not drawn with {group.id}, the gate length is not that of {reference}")
        free = {name for name in group.devices if name not in self._owner and name not in apart}
        outputs = [name for name in properties["outputs"] if name in free]
        first = next((each for each in self._modules[self._owner.get(reference, "")]), None)
        if first is not None and first.type == "current_mirror" and first.properties["reference"] == reference:
            self._words.append(f"{group.id} is drawn as {first.id} and {' '.join(outputs)}: their gates differ")
            return
        lost = [name for name in group.devices if name not in free]
        ratios = [ratio for ratio in properties["ratios"].values() if ratio]
        if properties["topology"] == "driven" and len(ratios) == 1 and max(ratios[0], 1 / ratios[0]) > _WIDEST_DRIVEN:
            self._words.append(f"{group.id} ({' '.join(group.devices)}) is not drawn in one module: a power transistor")
            return
        if reference not in free or not outputs:
            owners = dict.fromkeys(self._owner[name] for name in lost if name in self._owner)
            self._words.append(f"{group.id} ({' '.join(group.devices)}) is drawn as parts of {' and '.join(owners)}")
            return
        for name in lost:
            if name not in apart:
                self._words.append(f"{name} of {group.id} is drawn as part of {self._owner[name]}")
        self._keep(_restricted(group, free) if lost else group)


def _restricted(group: RecognisedModule, kept: AbstractSet[str]) -> RecognisedModule:
    """Return a mirror with those of its devices that are kept."""
    known, properties = kept, dict(group.properties)
    properties["outputs"] = [name for name in properties["outputs"] if name in known]
    properties["ratios"] = {name: ratio for name, ratio in properties["ratios"].items() if name in known}
    cascodes = [name for name in properties.pop("cascodes", ()) if name in known]
    if len(cascodes) > 1:
        properties["cascodes"] = cascodes
    bottoms = [properties["reference"], *properties["outputs"]]
    devices = (*bottoms, *(cascodes if len(cascodes) > 1 else ()))
    return replace(group, devices=devices, properties=properties)
