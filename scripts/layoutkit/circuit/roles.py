"""What the parts of a circuit are for, found once: its supplies, its groups, and which of these are drawn as modules.

Groups may share devices: the load of a pair is also the diodes of two mirrors. A module is drawn as one block, so the
modules are a cut of the groups in which no device stands twice. ``Roles.cut`` says how each overlap was decided.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from layoutkit.circuit.parallel_devices import halves
from layoutkit.circuit.port_uses import clock_ports, differential_inputs, port_uses, ports_on_gates
from layoutkit.circuit.ranked_names import is_ranked, plain, ranked
from layoutkit.circuit.recognise import MODULE_TYPES, find_groups
from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Circuit, RecognisedModule
    from layoutkit.circuit.port_uses import PortUse
    from layoutkit.circuit.supplies import Supplies
    from layoutkit.circuit.symmetry import SymmetricStructure

_WIDEST_DRIVEN = 10  # ratio of two transistors on one amplifier above which one of them carries the output current
_ORDER = (
    ("cross_coupled_pair",),
    ("current_mirror",),
    ("differential_pair", "symmetric_pair", "load_pair", "cascode_pair", "bipolar_array"),
    ("resistor_pair", "capacitor_pair", "bipolar_pair"),
    ("inverter",),
)
"""Which groups are cut first; those of other types come last."""
_KEPT = "_roles"  # where a circuit holds its roles once they are found


@dataclass(frozen=True)
class Roles:
    """The roles in one circuit.

    Attributes:
        supplies: Power and ground, with the reasons.
        groups: Every group that was found, by type; a device may be in several.
        modules: The groups that are drawn as modules, with the devices that each keeps; no device is in two.
        cut: How overlapping groups were cut into modules, in words.
        not_matched: What looks like part of a group and is in none, with the reason, in words.
        symmetry: What is symmetric about one axis, the largest structure first.
        ports: What each port carries, and its direction.
        inputs: The two ports at the gates of a differential pair; none where there are no such ports.
        clocks: Ports that carry a clock, the main one first, and whether each is the inverse of that one.
    """

    supplies: Supplies
    groups: tuple[RecognisedModule, ...]
    modules: tuple[RecognisedModule, ...]
    cut: tuple[str, ...] = ()
    not_matched: tuple[str, ...] = ()
    symmetry: tuple[SymmetricStructure, ...] = ()
    ports: Mapping[str, PortUse] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    clocks: Mapping[str, bool] = field(default_factory=dict)


def find_roles(circuit: Circuit) -> Roles:
    """Return the roles in an oriented circuit; they are computed once for each ``Circuit`` object.

    The search runs on the circuit in canonical order, so that neither names nor the order of cards decide.
    """
    kept = vars(circuit)
    if _KEPT not in kept:
        supplies, found = find_supplies(circuit), find_groups(ranked(circuit))
        found = found if is_ranked(circuit) else plain(found)
        groups = found.groups
        modules, cut = _cut_groups(groups)
        inputs = differential_inputs(circuit, supplies, groups)
        unpaired = [port for port in ports_on_gates(circuit, supplies) if port not in inputs]
        kept[_KEPT] = Roles(
            supplies,
            groups,
            modules,
            cut,
            found.not_matched,
            found.symmetry,
            ports=port_uses(circuit, supplies),
            inputs=inputs,
            clocks=clock_ports(circuit, supplies, unpaired),
        )
    roles: Roles = kept[_KEPT]
    return roles


def recognised(circuit: Circuit) -> Circuit:
    """Return an oriented circuit with its groups as its modules; their roles are kept with it."""
    found = find_roles(circuit)
    result = circuit.with_modules(found.groups)
    vars(result)[_KEPT] = found  # the roles of a circuit do not depend on the modules that it lists
    return result


def _cut_groups(groups: Sequence[RecognisedModule]) -> tuple[tuple[RecognisedModule, ...], tuple[str, ...]]:
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
            aside = group.properties.get("topology") in {"self_biased", "switched", "selected"}
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
        else:  # no generator draws a pair of bipolar transistors as one of channels
            bipolar = MODULE_TYPES[group.type].symmetric and "units" in group.properties
            self._keep(replace(group, type="bipolar_pair") if bipolar else group)

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
        group = replace(group, devices=tuple(dict.fromkeys((*group.devices, *properties.get("cascodes", ())))))
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
            if len(outputs) > 1:
                self._keep(_of_outputs(group, outputs))
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
    properties = dict(group.properties)
    properties["outputs"] = [name for name in properties["outputs"] if name in kept]
    properties["ratios"] = {name: ratio for name, ratio in properties["ratios"].items() if name in kept}
    cascodes = [name for name in properties.pop("cascodes", ()) if name in kept]
    properties |= {"cascodes": cascodes} if len(cascodes) > 1 else {}
    devices = (properties["reference"], *properties["outputs"], *properties.get("cascodes", ()))
    return replace(group, devices=devices, properties=properties)


def _of_outputs(group: RecognisedModule, outputs: Sequence[str]) -> RecognisedModule:
    """Return the mirror of the outputs alone, whose reference is drawn elsewhere."""
    first, *others = outputs
    ratios = group.properties["ratios"]
    own = {name: round((ratios[name] or 0) / (ratios[first] or 1), 6) or None for name in others}
    properties = {"topology": "driven", "reference": first, "outputs": others, "ratios": own}
    return replace(group, devices=tuple(outputs), properties={"matched": group.properties["matched"], **properties})
