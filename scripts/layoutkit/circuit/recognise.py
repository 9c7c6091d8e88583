r"""Recognising the groups that belong together in an analog layout.

Each kind of group has a room of its own: mirrors and current sources (``mirrors.py``), input pairs
(``input_pairs.py``), what is symmetric about those (``symmetry.py``), inverters, equal stages
and equal switches (``stages.py``), ratios of resistors and capacitors (``ratios.py``), arrays of bipolar transistors
(``bipolar_groups.py``). A device may be in several groups: the two diodes that load a pair are also the references of
two mirrors. What is drawn as one module is decided in ``roles.py``.
Every search runs over devices indexed by the nets they share, so its cost grows with the devices, not with their pairs.

        d1   d2          iref    out           d1    d2
        |    |            |__     |             |\  /|
    g1-| M1  M2 |-g2    M1|--'---|M2           M1 X  M2
        |____|            |       |             |/  \|
         tail             s       s             s     s
    differential pair   current mirror     cross-coupled pair
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.bipolar_groups import bipolar_groups
from layoutkit.circuit.channels import Channels, gate_length, is_of_a_wire
from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule
from layoutkit.circuit.families import OTHER_TYPE, fingers_of, folded, unfolded
from layoutkit.circuit.input_pairs import mesh_mirrors
from layoutkit.circuit.mirrors import FEWEST_SOURCES, Found, Mirrors
from layoutkit.circuit.near_misses import near_misses
from layoutkit.circuit.ratios import ResistorRatios, capacitor_ratios, wiring_capacitors
from layoutkit.circuit.stages import capacitors_of_stages, inverters, ring_stages, switch_groups
from layoutkit.circuit.supplies import is_passive, structural_supplies
from layoutkit.circuit.symmetry import OF_CELLS, SymmetricStructure, facing_nets, find_symmetry, is_capacitor, off_end
from layoutkit.circuit.symmetry_graph import drawing, same_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class ModuleType:
    """What the type of a recognised module implies.

    Attributes:
        stem: What the ids of its modules begin with.
        words: Its name in prose.
        symmetric: Whether its two devices are mirror images of each other.
        matched: Whether its devices are to be matched, and hence drawn together.
    """

    stem: str
    words: str
    symmetric: bool = False
    matched: bool = True


MODULE_TYPES = {
    "differential_pair": ModuleType("diff_pair", "differential pair", symmetric=True),
    "current_mirror": ModuleType("current_mirror", "current mirror"),
    "cross_coupled_pair": ModuleType("cross_coupled_pair", "cross-coupled pair", symmetric=True),
    "cascode_pair": ModuleType("cascode_pair", "cascode pair", symmetric=True),
    "load_pair": ModuleType("load_pair", "load pair", symmetric=True),
    "symmetric_pair": ModuleType("symmetric_pair", "symmetric pair", symmetric=True),
    "resistor_pair": ModuleType("resistor_pair", "resistor pair", symmetric=True, matched=False),
    "capacitor_pair": ModuleType("capacitor_pair", "capacitor pair", symmetric=True, matched=False),
    "switch_pair": ModuleType("switch_pair", "equal switches", matched=False),
    "resistor_ratio": ModuleType("resistor_ratio", "resistors in a ratio", matched=False),
    "capacitor_ratio": ModuleType("capacitor_ratio", "capacitors of equal plates", matched=False),
    "inverter": ModuleType("inverter", "inverter", matched=False),
    "ring_stage": ModuleType("ring_stage", "equal stages that drive each other", matched=False),
    "bipolar_array": ModuleType("bipolar_array", "bipolar transistors on one base and collector"),
    "bipolar_pair": ModuleType("bipolar_pair", "pair of bipolar transistors", matched=False),
}
"""Every type of module that recognition finds, in the order in which the modules are listed."""


class Recognised(NamedTuple):
    """What recognition found.

    Attributes:
        groups: By type, and then in the order of the netlist.
        not_matched: What looks like part of a group and is in none, with the reason, in words.
        symmetry: What is symmetric about one axis, the largest structure first.
    """

    groups: tuple[RecognisedModule, ...]
    not_matched: tuple[str, ...]
    symmetry: tuple[SymmetricStructure, ...]


def recognise(circuit: Circuit) -> tuple[RecognisedModule, ...]:
    """Return the groups of an oriented circuit, by type and then in the order of the netlist.

    A device may be in several. A transistor that is off for good (gate on the rail of its own type) or has drain and
    source on one net is a dummy and belongs to none; two equal ones whose gates are on two nets that mirror each other
    are capacitors, and a symmetric pair. A group lists the dummies with its own unit in its properties.
    """
    return find_groups(circuit).groups


def find_groups(circuit: Circuit) -> Recognised:
    """Return the groups of an oriented circuit, its symmetry and what is in none."""
    return _Recognition(circuit).found()


class _Recognition:
    """The state of one run: which devices are in matched groups, and what was found."""

    def __init__(self, circuit: Circuit) -> None:
        self._whole = circuit
        self._supplies = structural_supplies(circuit)
        self._symmetry = find_symmetry(circuit, self._supplies)
        self._fingers = fingers_of(circuit, self._symmetry.members)
        self._circuit = circuit = folded(circuit, self._fingers)
        self._channels = Channels(circuit, self._supplies)
        self._order = {device.id: index for index, device in enumerate(circuit.devices)}
        self._image = {name: other for _, *pair in self._images() for name, other in (pair, pair[::-1])}
        self._taken: set[str] = set()
        self._found: dict[str, list[Found]] = {name: [] for name in MODULE_TYPES}

    def found(self) -> Recognised:
        """Return all groups."""
        if is_passive(self._whole):
            self._drop_accidental_images()
        self._cross_coupled_pairs()
        mirrors = Mirrors(self._channels, set(self._taken), self._image)
        for mirror in mirrors.with_reference():
            self._add(mirror)
        self._input_pairs()
        folded = {
            (device.terminals["d"], "nmos" if device.type == "pmos" else "pmos")
            for pair in self._found["differential_pair"]
            for device in self._pair(pair.devices)
        }
        for source in mirrors.driven(self._tails() or {("", "")}, FEWEST_SOURCES, self._taken, folded):
            self._add(source)
        self._symmetric_pairs()
        self._pairs_on_mirrors()
        for source in mirrors.driven((), 2, self._taken):
            self._add(source)
        above = [pair for each in self._found["current_mirror"] for pair in mirrors.cascode_pairs(each, self._taken)]
        for first, second in above:
            self._add_pair("cascode_pair", first, second, {"matched": True, "common_gate": first.terminals["g"]})
        for diode, mesh in mesh_mirrors(self._channels, self._taken):
            properties = {"matched": True, "topology": "translinear", "reference": diode.id, "outputs": [mesh.id]}
            properties |= {"ratios": {mesh.id: 1.0}, "common_gate": diode.terminals["g"]}
            self._add_pair("current_mirror", diode, mesh, properties)
        mirrored = {name for mirror in self._found["current_mirror"] for name in mirror.devices}
        for inverter in inverters(self._channels, self._taken, mirrored):
            self._add(inverter)
        pairs_apart = [pair for kind in ("differential_pair", "symmetric_pair") for pair in self._found[kind]]
        mirrors_found, taken = self._found["current_mirror"], frozenset(self._taken)
        for group in switch_groups(self._channels, mirrors_found, self._found["inverter"], taken, pairs_apart):
            self._add(group)
        pairs = [self._pair(pair.devices) for pair in self._found["differential_pair"]]
        images = [names for _, *names in self._images()]
        bipolar_pairs, arrays = bipolar_groups(self._channels, self._order, pairs, images, self._symmetry.crossed)
        ratios = [
            *ResistorRatios(self._channels, self._order).found(self._found["current_mirror"], arrays, pairs),
            *capacitor_ratios(self._channels, self._order, images),
        ]
        known = {frozenset(g.devices) for kind in ("resistor_pair", "capacitor_pair") for g in self._found[kind]}
        rings = ring_stages(self._channels, pairs)
        loads = filter(None, (capacitors_of_stages(self._channels, ring) for ring in rings))
        ratios = [ratio for ratio in ratios if frozenset(ratio.devices) not in known]
        for group in (*rings, *bipolar_pairs, *arrays, *loads, *ratios):
            self._add(group)
        modules = self._modules()
        told = near_misses(self._channels, modules, mirrors.left_out())
        modules = unfolded(modules, self._whole, self._fingers)
        return Recognised(modules, told, self._symmetry.structures)

    def _drop_accidental_images(self) -> None:
        """Drop the structures within one ratio: equal units of a divider or ladder alone are no pairs."""
        ratios = [
            *ResistorRatios(self._channels, self._order).found((), (), ()),
            *capacitor_ratios(self._channels, self._order),
        ]
        banks = [set(ratio.devices) for ratio in ratios if len(ratio.devices) > 2]
        kept = tuple(
            each
            for each in self._symmetry.structures
            if not any({name for _, *pair in each.pairs for name in pair} <= devices for devices in banks)
        )
        self._symmetry = self._symmetry._replace(structures=kept)

    def _modules(self) -> tuple[RecognisedModule, ...]:
        guarded = self._dummies()
        for mirror in self._found["current_mirror"]:
            for names in self._rows(mirror):
                gate = self._circuit.device(names[0]).terminals["g"]
                properties = {"matched": True, "common_gate": gate, "of": mirror.properties["reference"]}
                self._found["cascode_pair"].append(Found("cascode_pair", names, properties))
        modules = []
        for name, module_type in MODULE_TYPES.items():
            groups = sorted(self._found[name], key=lambda group: [self._order[d] for d in group.devices])
            for number, group in enumerate(groups, start=1):
                dummies = guarded.get((name, group.devices), [])
                properties = {**group.properties, **({"dummies": dummies} if dummies else {})}
                tops = {each for names in self._rows(group) for each in names} if name == "current_mirror" else set()
                devices = tuple(each for each in group.devices if each not in tops)
                modules.append(RecognisedModule(f"{module_type.stem}_{number}", name, devices, properties))
        return tuple(modules)

    def _rows(self, mirror: Found) -> list[tuple[str, ...]]:
        """Return the cascodes of a mirror by their gates.

        On the gate of the mirror, those of its model and length are parts of its branches: of one long channel.
        """
        rows: dict[str, list[str]] = defaultdict(list)
        below = self._circuit.device(mirror.properties["reference"])
        for device in map(self._circuit.device, mirror.properties.get("cascodes", ())):
            gate = device.terminals["g"]
            other = device.model.lower() != below.model.lower() or gate_length(device) != gate_length(below)
            if other or gate != mirror.properties["common_gate"]:
                rows[gate].append(device.id)
        return [tuple(names) for names in rows.values() if len(names) > 1]

    def _pair(self, names: Sequence[str]) -> tuple[Device, Device]:
        return self._circuit.device(names[0]), self._circuit.device(names[1])

    def _add(self, group: Found) -> None:
        if MODULE_TYPES[group.type].matched or group.type == "inverter":
            self._taken.update(group.devices)
        self._found[group.type].append(group)

    def _add_pair(self, kind: str, first: Device, second: Device, properties: dict[str, Any]) -> None:
        self._add(Found(kind, (first.id, second.id), properties))

    def _dummies(self) -> dict[tuple[str, tuple[str, ...]], list[str]]:
        """Return the user's dummies by the group that they guard: the first matched one with their unit and body.

        One on a net that their other end is on goes before others. Where none has their gate length, it is one with
        their width.
        """
        tied = [d for d in self._circuit.devices if d.is_mos and self._channels.is_dummy(d) and not is_capacitor(d)]
        guarded: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
        wards: dict[tuple[Any, ...], dict[tuple[str, tuple[str, ...]], set[str]]] = defaultdict(dict)
        for name, module_type in MODULE_TYPES.items():
            for group in self._found[name] if module_type.matched else ():
                for device in map(self._circuit.device, group.devices):
                    for unit in (_unit(device), _any_length(_unit(device))) if device.is_mos else ():
                        wards[unit].setdefault((name, group.devices), set()).update(device.terminals.values())
        for device in tied:
            unit = _unit(device)
            near = wards.get(unit) or wards.get(_any_length(unit)) or {}
            end = off_end(device)
            if near:
                guarded[next((ward for ward, nets in near.items() if end in nets), next(iter(near)))].append(device.id)
        return guarded

    def _cross_coupled_pairs(self) -> None:
        for names in self._symmetry.crossed:
            first, second = self._pair(sorted(names, key=self._order.__getitem__))
            if first.is_mos:  # bipolar ones are found in their own room
                self._add_pair("cross_coupled_pair", first, second, {"matched": True, **_common_source(first, second)})

    def _input_pairs(self) -> None:
        """Add the differential pairs, also those of unequal widths and those that lie across the main axis."""
        images = [(one, other) for kind, one, other in self._images() if self._amplify(kind, one, other)]
        seen = {name for kind, *pair in self._images() if kind == "cross_coupled_pair" for name in pair}
        sides = {frozenset(pair): pair for _, *pair in self._images()}
        for names in (*self._symmetry.inputs, *images):
            left_first = sides.get(frozenset(names)) or sorted(names[:2], key=self._order.__getitem__)
            first, second = map(self._circuit.device, left_first)
            if {*names} & (self._taken | seen) or (self._inverts(first) and self._inverts(second)):
                continue
            seen.update(names)
            properties: dict[str, Any] = {"matched": same_size(first, second), **_common_source(first, second)}
            devices = (*left_first, *names[2:])
            stacks = [self._channels.stack_of(each) for each in (first, second)]
            equal = all(same_size(first, each) for stack in stacks for each in stack)
            if len(devices) == 2 and equal and len(stacks[0]) == len(stacks[1]) > 1:
                properties["halves"] = [[each.id for each in stack] for stack in stacks]
                devices = tuple(each.id for row in zip(*stacks, strict=True) for each in row)
            elif len(devices) > 2:
                ends = {first.terminals[end] for end in "dg"}
                mine = [name for name in devices if ends & {self._circuit.device(name).terminals[end] for end in "dg"}]
                properties["halves"] = [mine, [name for name in devices if name not in mine]]
            followers = first.terminals["d"] == second.terminals["d"]
            self._add(Found("symmetric_pair" if followers else "differential_pair", devices, properties))

    def _inverts(self, device: Device) -> bool:
        """Whether a transistor is half of an inverter whose output is a logic signal."""
        types = {each.type for each in self._channels.inverting(device)}
        return len(types) == 2 and self._channels.is_logic(device.terminals["d"])

    def _amplify(self, kind: str, one: str, other: str) -> bool:
        """Whether a pair is a differential one, or two source followers."""
        pair = self._pair((one, other))
        follow = kind == "symmetric_pair" and not is_capacitor(pair[0])
        drains = self._drains_of(*pair) if follow else set()
        return kind == "differential_pair" or (len(drains) == 1 and drains <= self._supplies.nets)

    def _images(self) -> Iterator[tuple[str, str, str]]:
        """Yield kind and devices of each pair of images, but of cells and wires; of several in parallel the first."""
        known = {device.id for device in self._circuit.devices if not is_of_a_wire(device)}
        for structure in self._symmetry.structures:
            yield from (pair for pair in structure.pairs if known.issuperset(pair[1:]) and pair[0] != OF_CELLS)

    def _symmetric_pairs(self) -> None:
        """Add the other images as pairs.

        Outputs of mirrors and inverters are in groups of their own already. Two diodes are a pair also where they are
        the references of two mirrors.
        """
        mirrored = {name for group in self._found["current_mirror"] for name in group.devices}
        latched = {
            self._circuit.device(name).terminals["s"]
            for pair in self._found["cross_coupled_pair"]
            for name in pair.devices
        }
        inverting = {name for group in inverters(self._channels, self._taken, mirrored) for name in group.devices}
        inputs = [self._pair(pair.devices) for pair in self._found["differential_pair"]]
        amplified = {net for pair in inputs for net in self._drains_of(*pair)}
        switched = {
            name
            for mirror in self._found["current_mirror"]
            for names in mirror.properties.get("feet", {}).values()
            for name in names
        }
        wiring = wiring_capacitors(self._channels)
        for kind, one, other in self._images():
            names = {one, other}
            first, second = self._pair((one, other))
            if names <= wiring or self._channels.is_dummy_beside(first) or (first.is_mos and names <= switched):
                continue  # equal switches below a mirror
            direct = kind == "cross_coupled_pair" and first.terminals["d"] == second.terminals["g"]
            if kind not in MODULE_TYPES or kind == "differential_pair" or direct or names <= inverting:
                continue
            logic = names <= self._channels.in_logic_gates and not latched.issuperset(self._drains_of(first, second))
            logic = logic and not {first.terminals["g"], second.terminals["g"]} <= amplified
            if logic or self._pulls_bias(first) or self._pulls_bias(second):
                continue
            loads = first.is_mos and all(map(self._is_diode, (first, second)))
            if (names & self._taken and not loads) or (loads and self._carry_one_current(first, second)):
                continue
            properties: dict[str, Any] = {"matched": True}
            for terminal, name in (("g", "common_gate"), ("s", "common_source")) if first.is_mos else ():
                if first.terminals[terminal] == second.terminals[terminal]:
                    properties[name] = first.terminals[terminal]
            if not first.is_mos:
                properties["facing"] = [list(nets) for nets in facing_nets(first, second, self._image_of)]
            self._add_pair("load_pair" if loads else kind, first, second, properties)

    def _carry_one_current(self, *diodes: Device) -> bool:
        """Whether current sources on one gate feed both diodes, if need be through mirrors and diodes of their own.

        Diodes to a rail, in place of bipolar ones, are compared even so.
        """
        fed: list[set[str]] = []
        copied = self._image_of.keys() - {diode.terminals["g"] for diode in diodes}
        for diode in diodes:
            front, gates = [diode.terminals["d"], diode.terminals["s"]], set[str]()
            for net in front:  # which grows
                for each in self._channels.channel_ends(net) if net not in self._supplies else ():
                    gate, far = each.terminals["g"], self._channels.far(each, net)
                    beyond = far if gate in (net, far) else gate
                    if beyond == far or (gate in copied and self._channels.has_diode(gate, each.type)):
                        front += [beyond] if beyond not in front else []
                    elif not self._channels.is_switch(each):
                        gates.add(gate)
            fed.append(gates)
        return len(fed[0]) == 1 and fed[0] == fed[1] and diodes[0].terminals["d"] not in self._supplies

    def _pulls_bias(self, device: Device) -> bool:
        """Whether a switch pulls the gate of a mirror to a rail, as in power-down: nothing there must match."""
        net = device.terminals
        if not device.is_mos or net["s"] not in self._supplies or not self._channels.has_diode(net["d"]):
            return False
        return net["g"] != net["d"] and self._channels.is_logic(net["g"])

    def _pairs_on_mirrors(self) -> None:
        """Add equal transistors on one rail with separate gates whose currents a mirror or crossed pairs compare.

        Mirrors may hold them where their gates are on two branches of one mirror, which they hold equal.
        """
        branches: dict[str, set[int]] = defaultdict(set)
        for number, mirror in enumerate(self._found["current_mirror"]):
            for name in (mirror.properties["reference"], *mirror.properties["outputs"]):
                branches[self._circuit.device(name).terminals["d"]].add(number)
        for *nets, mos_type in (*self._compared(), *self._crossed_tails()):
            sides = [[d for d in self._channels.drains[net] if d.type == mos_type] for net in nets]
            if nets[0] == nets[1] or [len(side) for side in sides] != [1, 1]:
                continue
            (first,), (second,) = sides
            one, other = first.terminals, second.terminals
            gates = {one["g"], other["g"]}
            alike = same_size(first, second) and one["s"] == other["s"] in self._supplies
            free = not {first.id, second.id} & self._taken or set.intersection(*(branches[net] for net in gates))
            if alike and free and len(gates - {*nets}) == 2 and not any(map(self._channels.is_switch, (first, second))):
                self._add_pair("symmetric_pair", first, second, {"matched": True, "common_source": one["s"]})

    def _compared(self) -> Iterator[tuple[str, str, str]]:
        """Yield the drain nets of references of mirrors and their equal outputs, and the type that drives these."""
        for mirror in self._found["current_mirror"]:
            reference = self._circuit.device(mirror.properties["reference"])
            for name, ratio in mirror.properties["ratios"].items():
                if ratio == 1:
                    output = self._circuit.device(name)
                    yield reference.terminals["d"], output.terminals["d"], OTHER_TYPE[reference.type]

    def _crossed_tails(self) -> Iterator[tuple[str, str, str]]:
        """Yield the tails of each two equal pairs on the same outputs, as in a double-balanced mixer, and the type."""
        tails: dict[Any, list[str]] = defaultdict(list)
        for first, second in (self._pair(pair.devices) for pair in self._found["differential_pair"]):
            if first.terminals["s"] == second.terminals["s"]:
                tails[frozenset(self._drains_of(first, second)), drawing(first)].append(first.terminals["s"])
        yield from ((nets[0], nets[1], key[1][0]) for key, nets in tails.items() if len(nets) == 2)

    @staticmethod
    def _drains_of(*devices: Device) -> set[str]:
        return {device.terminals.get("d", "") for device in devices}

    def _is_diode(self, device: Device) -> bool:
        """Whether a transistor, or the lowest of several in series on one gate, is connected as a diode."""
        below = self._channels.drains.get(device.terminals["s"], ())
        lowest = not any(each.terminals["g"] == device.terminals["g"] for each in below)
        return lowest and self._channels.stack_of(device)[-1].terminals["d"] == device.terminals["g"]

    @cached_property
    def _image_of(self) -> dict[str, str]:
        pairs = [pair for structure in self._symmetry.structures for pair in structure.net_pairs]
        return {**dict(pairs), **{right: left for left, right in pairs}}

    def _tails(self) -> set[tuple[str, str]]:
        """Return the source nets of the input pairs, each with the type of the transistors: no supplies, no latches."""
        pairs = [group for kind in ("differential_pair", "symmetric_pair") for group in self._found[kind]]
        devices = [self._circuit.device(name) for group in pairs for name in group.devices]
        found = {(d.terminals["s"], d.type) for d in devices if not self._channels.is_logic(d.terminals["d"])}
        return {(net, kind) for net, kind in found if net not in self._supplies}


def _common_source(first: Device, second: Device) -> dict[str, str]:
    """Return the property that names the net on which both sources are, if it is one."""
    return {"common_source": first.terminals["s"]} if first.terminals["s"] == second.terminals["s"] else {}


def _unit(device: Device) -> tuple[Any, ...]:
    """Return the model, length, finger width and body of a transistor, in which a dummy agrees with what it guards."""
    width = device.params.get("w")
    finger = round(width / device.nf * 1e12) if width else None
    return (device.type, device.model.lower(), gate_length(device), finger, device.terminals["b"])


def _any_length(unit: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the unit of a transistor whatever its gate length."""
    return (*unit[:2], None, *unit[3:])
