"""Devices of a circuit that are not transistors: which are drawn together, and drawing them.

Matched resistors of one flavour, width and length are one bank, matched capacitors of one plate one array, both with a
common centroid. A symmetric pair that matches no other device is two equal modules, unless there are many such pairs of
resistors: these share banks. Other equal resistors share banks: those of a string whose inner nets nothing else uses
lie in its order, up to four in each, others up to eight. Resistors whose ratio counts share a bank although their
lengths differ, where bars of one length make up all of them. Bipolar transistors of one flavour on the same base and
collector, as those of a bandgap are, share arrays. Any other device is a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.circuit.canonical import natural
from layoutkit.circuit.constraints import OF_PLACES
from layoutkit.circuit.ranked_names import named_after
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.supplies import substrate_net
from layoutkit.circuit.symmetry import facing_nets
from layoutkit.circuit.symmetry_graph import shared_nets
from layoutkit.draw.deep_well import isolate, needs_deep_well
from layoutkit.draw.generators import BlockSpec, draw_block
from layoutkit.draw.mos import MAX_ASPECT
from layoutkit.errors import GeometryError, listed
from layoutkit.flow.groups import PARALLEL
from layoutkit.layout.cells import short_name
from layoutkit.technology.device_kinds import KINDS
from layoutkit.technology.passive_sizes import PassiveSize, bars_of, unit_bar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.draw.deep_well import DeepWellNets
    from layoutkit.draw.module import Module
    from layoutkit.technology import DeviceSpec, PassiveSpec, Technology


ARRAYS = {name: "bipolar_array" for name, kind in KINDS.items() if kind.in_cells or name == "pnp"}
ARRAYS |= {"resistor": "resistor_bank", "capacitor": "capacitor_array"}
"""Kind of device to what several of them in one block are called."""
MOST_IN_RATIO = 16
"""Most resistors or strings in a ratio in one bank: each of their nets has a rail along the whole bank."""
FEWEST_UNITS = 3
"""Fewest capacitors of equal plates on one net that are an array although nothing matches them."""
MANY_PAIRS = 3
"""Fewest symmetric pairs of equal resistors that share banks."""
MOST_IDLE = 32
"""Most resistors of the netlist that are dummies in one bank."""
HEADS_UM = 6.0
"""What heads, rails and ring add to the length of the bars of a bank, as an estimate. [um]"""
TURNED = frozenset({"resistor", "capacitor"})
"""Kinds of which a device that matches no other may be turned by 90 degrees."""


@dataclass(frozen=True)
class PassiveGroup:
    """Devices drawn in one cell.

    Attributes:
        name: Cell name.
        type: One of ``ARRAYS`` for several, ``PARALLEL`` for capacitors that are drawn as one, else ``single``.
        spec: The flavour all of them have.
        devices: In the order of the netlist.
        bulk_net: Net of the well or substrate around them; empty where there is none or the circuit names none.
        level: 1.
        strings: Ids of its resistors that are in series, each string in its order.
        guards: Dummies of the netlist among the dummy bars of a bank.
        matched: Whether constraints match its devices.
        unit: Length of one bar of resistors in a ratio; 0 where each has bars of its own length. [dbu]
        deep_well: Nets of the deep well around diodes; of the n well below resistors; None where they have none.
    """

    name: str
    type: str
    spec: PassiveSpec
    devices: tuple[Device, ...]
    bulk_net: str
    level: int = 1
    strings: tuple[tuple[str, ...], ...] = ()
    guards: tuple[Device, ...] = ()
    matched: bool = False
    unit: int = 0
    deep_well: DeepWellNets | None = None

    @property
    def chained(self) -> bool:
        """Whether its devices are resistors of one string."""
        return len(self.devices) > 1 and any(len(string) == len(self.devices) for string in self.strings)

    @property
    def shares_centroid(self) -> bool:
        """Whether it is drawn so that its devices are equal: several, and not the sections of one string."""
        free = self.type == ARRAYS["capacitor"] and not self.matched
        return len(self.devices) > 1 and not (self.strings or free or self.type == PARALLEL)

    @property
    def turns(self) -> bool:
        """Whether its module may be turned by 90 degrees: a device whose value does not depend on its direction.

        The bars of resistors in a ratio all lie in one direction.
        """
        alone = len(self.devices) == 1 and not self.guards
        return alone and self.type == "single" and not self.unit and self.devices[0].type in TURNED


def group_passives(
    circuit: Circuit,
    technology: Technology,
    constraints: Constraints,
    substrate: str | None = None,
    wells: Mapping[str, DeepWellNets] | None = None,
) -> tuple[tuple[PassiveGroup, ...], tuple[str, ...]]:
    """Return the devices of ``circuit`` that are not transistors, in groups, and what was decided, in words.

    Args:
        circuit: Mapped to ``technology``.
        technology: Where the circuit is drawn.
        constraints: State which devices are matched.
        substrate: Net of the substrate; None for that of ``circuit``.
        wells: Nets of the well of its own of each device that has one, as ``isolated_bodies`` decides.
    """
    substrate = substrate_net(circuit) if substrate is None else substrate
    bulks = {
        device.id: _bulk_net(device, technology.passive(device.model), substrate)
        for device in circuit.devices
        if not device.is_mos
    }
    groups: list[PassiveGroup] = []
    notes, taken = [], set[str]()
    named = constraints.devices_in("symmetry", "matching", *OF_PLACES)
    idle = [device for device in circuit.devices if _is_idle(device) and device.id not in named]
    for wanted in constraints.matching:
        devices = [circuit.device(name) for name in wanted.devices]
        if devices[0].is_mos or devices[0].type not in ARRAYS or technology.passive(devices[0].model).fed:
            continue
        parts = _alike(devices, bulks)
        if len(parts) > 1:
            split = "; ".join(" ".join(device.id for device in part) for part in parts)
            notes.append(
                f"the matched group {' '.join(wanted.devices)} is drawn in {len(parts)} blocks, because its devices "
                f"differ in flavour, w, l or body, or are plates in series (equal w and l, with m for the ratio, share "
                f"one): {split}"
            )
        for part in parts:
            guards = tuple(_guards_of(technology, part, (each for each in idle if each.id not in taken), bulks))
            group = _group(technology, part, bulks[part[0].id] or substrate)
            groups.append(replace(group, matched=True, guards=guards))
            taken.update(device.id for device in guards)
        taken.update(wanted.devices)
    pairs = {name for group in constraints.symmetry for pair in group.pairs for name in pair}
    beside: dict[str, tuple[Device, ...]] = {}  # the dummies beside each of two images
    for one, other in (map(circuit.device, pair) for group in constraints.symmetry for pair in group.pairs):
        if not taken & {one.id, other.id} and one.kind == other.kind:
            around = _guards_of(technology, [one, other], (each for each in idle if each.id not in taken), bulks)
            half = len(around) // 2
            beside |= {one.id: tuple(around[:half]), other.id: tuple(around[half : 2 * half])}
            taken.update(device.id for device in around[: 2 * half])
    rest = [device for device in circuit.devices if device.id in bulks and device.id not in taken]
    shared = _pairs_of_many(constraints, rest, bulks)
    alone = {each.id: each for each in rest if each.kind.together == 1 or each.id in pairs - shared.keys()}
    banks, reasons = _ratio_banks(
        circuit, technology, [each for each in rest if each.id not in alone and each.id not in shared], bulks
    )
    groups += banks
    notes += reasons
    in_banks = {device.id for bank in banks for device in (*bank.devices, *bank.guards)}
    rest = [device for device in rest if device.id not in in_banks]
    bodies = {device.id: f"{bulks[device.id]} {_base_net(device)}" for device in rest}
    for part in _alike([device for device in rest if device.id not in alone], bodies):
        strings = _strings(circuit, part)
        for bank in (bank for string in strings for bank in _banks(technology, string)):
            groups.append(_with_strings(_group(technology, bank, bulks[bank[0].id]), [bank]))
        in_strings = {device.id for string in strings for device in string}
        single = [device for device in part if device.id not in in_strings]
        single.sort(key=lambda device: shared.get(device.id, len(shared)))
        groups += [_group(technology, bank, bulks[part[0].id]) for bank in _in_banks(single)]
    placed = pairs | constraints.devices_in(*OF_PLACES)
    placed |= {
        name for name, device in alone.items() if technology.passive(device.model).fed
    }  # each in a ring of its own
    for part in _in_parallel([device for device in alone.values() if device.id not in placed]):
        groups.append(replace(_group(technology, part, bulks[part[0].id]), type=PARALLEL))
        alone = {name: device for name, device in alone.items() if device not in part}
    for part in _unit_capacitors([device for device in alone.values() if device.id not in placed]):
        groups.append(_group(technology, part, bulks[part[0].id]))
        alone = {name: device for name, device in alone.items() if device not in part}
    images = _images(circuit, constraints)
    groups += [
        replace(_group(technology, [images.get(name, device)], bulks[name]), guards=beside.get(name, ()))
        for name, device in alone.items()
    ]
    wells = wells or {}
    return tuple(replace(each, deep_well=wells.get(each.devices[0].id)) for each in groups), tuple(notes)


def _pairs_of_many(constraints: Constraints, free: Sequence[Device], bulks: Mapping[str, str]) -> dict[str, int]:
    """Return the devices of pairs of which a circuit has many equal ones, by id, with the number of their pair.

    They share banks as other equal devices do, images in one: as modules of their own, each with a ring, they would
    take several times the area.
    """
    own = {device.id: device for device in free if device.kind.together > 1}
    pairs = [pair for group in constraints.symmetry for pair in group.pairs if own.keys() >= set(pair)]
    number = {name: count for count, pair in enumerate(pairs) for name in pair}
    parts = _alike([own[name] for name in number], bulks)
    return {device.id: number[device.id] for part in parts if len(part) >= 2 * MANY_PAIRS for device in part}


def _images(circuit: Circuit, constraints: Constraints) -> dict[str, Device]:
    """Return the right device of each symmetric pair of passives by id, with its ends in the order of the left one."""
    found = {}
    for group in constraints.symmetry:
        nets = {left: right for pair in group.net_pairs for left, right in (pair, pair[::-1])}
        for one, other in (map(circuit.device, pair) for pair in group.pairs):
            if one.kind == other.kind and one.kind.exchangeable and not one.is_mos:
                ends = dict(zip(one.kind.ends, (net for _, net in facing_nets(one, other, nets)), strict=True))
                found[other.id] = replace(other, terminals={**other.terminals, **ends})
    return found


def _alike(devices: Sequence[Device], bulks: Mapping[str, str]) -> list[list[Device]]:
    """Return the devices in parts that are made of equal bars or plates around one body, in order."""
    parts: dict[tuple[object, ...], list[Device]] = {}
    for device in devices:
        alone = device.id if device.params.get("series", 1) > 1 else ""
        key = (*_flavour(device), bulks[device.id], device.w, device.l, alone)
        parts.setdefault(key, []).append(device)
    return list(parts.values())


def _ratio_banks(
    circuit: Circuit, technology: Technology, free: Sequence[Device], bulks: Mapping[str, str]
) -> tuple[list[PassiveGroup], list[str]]:
    """Return banks of resistors whose ratio counts, and which of them have no common bar, in words.

    Resistors in series are one resistor of the ratio: their bars lie in the order of the string. Dummies of the netlist
    that are bars of the unit are dummies of the bank.
    """
    own, banks, notes = {device.id: device for device in free}, [], []
    idle = [device for device in free if _is_idle(device)]
    for module in (each for each in find_roles(circuit).groups if each.type == "resistor_ratio"):
        alike: dict[tuple[object, ...], list[Device]] = {}
        for device in (own[name] for name in module.devices if name in own):
            alike.setdefault((_flavour(device), bulks[device.id], _dbu(technology, device.w)), []).append(device)
        for (flavour, bulk, width), members in alike.items():
            if len(members) == 1:
                continue
            for devices, unit in _with_common_bar(technology, members, int(str(width))):
                if not unit:
                    notes.append(
                        f"the resistors {listed([each.id for each in devices], 12)} are in a ratio, but no bar within "
                        "the limits of the process makes up all their lengths: those of each length have a bar of "
                        "their own, with dummies, and lie side by side"
                    )
                    continue
                like = (flavour, bulk, width, unit)
                sizes = {d.id: tuple(_dbu(technology, side) for side in (d.w, d.l)) for d in idle}
                guards = [d for d in idle if (_flavour(d), bulks[d.id], *sizes[d.id]) == like]
                guards = guards if bulk else []  # end bars are tied to the ring, which has the net of the bulk
                made = _ratio_bank(circuit, technology, devices, unit, guards)
                idle = [d for d in idle if all(d not in bank.guards for bank in made)]
                banks += [replace(bank, bulk_net=str(bulk)) for bank in made]
    return banks, notes


def _with_common_bar(technology: Technology, members: Sequence[Device], width: int) -> list[tuple[list[Device], int]]:
    """Return resistors with the length of the bar that makes up all of them, else those of each length with theirs.

    The last entry is without a bar where there is no common one. [dbu]
    """

    def bar(devices: Sequence[Device]) -> int:
        shares = [_dbu(technology, device.l) for device in devices for _ in range(device.m)]
        return unit_bar(technology, technology.passive(members[0].model), width, shares)

    if unit := bar(members):
        return [(list(members), unit)]
    by_length: dict[int, list[Device]] = {}
    for device in members:
        by_length.setdefault(_dbu(technology, device.l), []).append(device)
    own = [(devices, bar(devices)) for devices in by_length.values()]
    return [*(each for each in own if each[1]), (list(members), 0)]


def _ratio_bank(
    circuit: Circuit, technology: Technology, members: Sequence[Device], unit: int, guards: Sequence[Device]
) -> list[PassiveGroup]:
    """Return the banks of resistors that are made of one bar, with dummies of the netlist shared among them."""
    parts = _bank_parts(circuit, technology, members, unit)
    bars = sum(_dbu(technology, device.l) // unit * device.m for device in members)
    share = min(-(-len(guards) // len(parts)), max(2, bars // len(parts) // 2))
    banks = []
    for number, chains in enumerate(parts):
        bank = _group(technology, [each for chain in chains for each in chain], "")
        taken = tuple(guards[share * number : share * (number + 1)])
        banks.append(replace(_with_strings(bank, chains), unit=unit, guards=taken))
    return banks


def _guards_of(
    technology: Technology, part: Sequence[Device], idle: Iterable[Device], bulks: Mapping[str, str]
) -> list[Device]:
    """Return the dummies of the netlist that are bars like those of a matched group, at most two or half as many."""
    first = part[0]
    if first.type != "resistor" or not bulks[first.id]:
        return []
    width, length = (_dbu(technology, size) for size in (first.w, first.l))
    folded = bars_of(technology, technology.passive(first.model), width, length)
    like = (_flavour(first), bulks[first.id], width, length // folded)
    alike = [d for d in idle if (_flavour(d), bulks[d.id], *(_dbu(technology, size) for size in (d.w, d.l))) == like]
    return alike[: max(2, folded * sum(device.m for device in part) // 2)]


def _is_idle(device: Device) -> bool:
    """Return whether a device is a single bar with both ends on one net, which only guards others."""
    return device.type == "resistor" and device.m == 1 and device.terminals["p"] == device.terminals["n"]


def _bank_parts(
    circuit: Circuit, technology: Technology, members: Sequence[Device], unit: int
) -> list[list[list[Device]]]:
    """Return resistors in a ratio in as few banks as their rails and a fair aspect allow, each as strings of resistors.

    Every string has its share of resistors in each bank, and a resistor of many bars is in one: a bank with such may be
    twice as long.

    Args:
        circuit: The whole circuit.
        technology: The process.
        members: Of one flavour and width.
        unit: Length of each bar. [dbu]
    """
    chains = _strings(circuit, members)
    inside = {device.id for chain in chains for device in chain}
    chains += [[device] for device in members if device.id not in inside]
    bars = {device.id: _dbu(technology, device.l) // unit * device.m for device in members}
    rows = _rows(technology, members[0], unit, sum(bars.values()))
    count = max(-(-len(chains) // MOST_IN_RATIO), min(max(map(len, chains)), rows), min(len(chains), -(-rows // 2)))
    parts: list[list[list[Device]]] = [[] for _ in range(count)]
    for chain in chains:
        if len(chain) >= count:
            cuts = [len(chain) * number // count for number in range(count + 1)]
            for part, (low, high) in zip(parts, pairwise(cuts), strict=True):
                part.append(chain[low:high])
    short = [chain for chain in chains if len(chain) < count]
    for chain in sorted(short, key=lambda chain: -sum(bars[device.id] for device in chain)):
        least = min(parts, key=lambda part: sum(bars[device.id] for chain in part for device in chain))
        least.append(chain)
    return [part for part in parts if part]


def _rows(technology: Technology, device: Device, unit: int, bars: int) -> int:
    """Return how many banks of bars like those of ``device`` have an aspect of ``MAX_ASPECT`` at most. [dbu]"""
    width = _dbu(technology, device.w)
    pitch = width + technology.passive(device.model).dimensions.get("body_space", width)
    return int(-(-bars * pitch // (MAX_ASPECT * (unit + technology.to_dbu(HEADS_UM)))))


def _with_strings(group: PassiveGroup, chains: Sequence[Sequence[Device]]) -> PassiveGroup:
    """Return a bank whose resistors are some strings, each in its order, and single ones."""
    strings = tuple(tuple(device.id for device in chain) for chain in chains if len(chain) > 1)
    return replace(group, strings=strings)


def _in_banks(devices: Sequence[Device]) -> list[list[Device]]:
    """Return equal devices in parts for one block each: dummies of the netlist together, few of the others."""
    idle = [device for device in devices if _is_idle(device)]
    others = [device for device in devices if device not in idle]
    cuts = ((idle, MOST_IDLE), (others, devices[0].kind.together if devices else 1))
    return [part[i : i + most] for part, most in cuts for i in range(0, len(part), most)]


def _in_parallel(devices: Sequence[Device]) -> list[list[Device]]:
    """Return the equal capacitors that are on the same nets, in parts for one block each."""
    alike: dict[tuple[object, ...], list[Device]] = {}
    for device in devices:
        if device.type in {"capacitor", "mos_capacitor"} and device.params.get("series", 1) == 1:
            key = (device.model, device.w, device.l, *sorted(device.terminals.items()))
            alike.setdefault(key, []).append(device)
    return [part for part in alike.values() if len(part) > 1]


def _unit_capacitors(devices: Sequence[Device]) -> list[list[Device]]:
    """Return the plate capacitors of equal plates that share a net, such as the loads of equal stages, in arrays."""
    plates = [d for d in devices if d.type == "capacitor" and d.params.get("series", 1) == 1]
    found = shared_nets(plates, lambda device: (device.model, device.w, device.l), ())
    parts = [part[i : i + MOST_IN_RATIO] for part in found for i in range(0, len(part), MOST_IN_RATIO)]
    return [part for part in parts if len(part) >= FEWEST_UNITS]


def _dbu(technology: Technology, length_m: float) -> int:
    return round(length_m * 1e6 / technology.dbu_um)


def _strings(circuit: Circuit, part: Sequence[Device]) -> list[list[Device]]:
    """Return the resistors of ``part`` that are in series, each string in its order.

    Nothing else is on a net between two of them, so that neither it nor their matching is seen from outside.
    """
    own = {device.id: device for device in part if device.type == "resistor" and device.m == 1}
    near: dict[str, list[Device]] = {name: [] for name in own}
    for net, connections in circuit.nets.items():
        ends = [each.device for each in connections if each.terminal in {"p", "n"}]
        alone = len(connections) == len(set(ends)) == 2 and net not in {*circuit.ports, *circuit.black_box_nets}
        if alone and own.keys() >= set(ends):
            near[ends[0]].append(own[ends[1]])
            near[ends[1]].append(own[ends[0]])
    found: list[list[Device]] = []
    for device in own.values():
        if len(near[device.id]) != 1 or any(device in string for string in found):
            continue  # inside a string, alone, or the other end of one
        string = [device]
        while following := [each for each in near[string[-1].id] if each not in string]:
            string.append(following[0])
        found.append(string)
    return found


def _banks(technology: Technology, string: list[Device]) -> list[list[Device]]:
    """Return a string in parts of about equal length, each for one bank, as few as a fair aspect allows."""
    unit = _dbu(technology, string[0].l)
    folded = bars_of(technology, technology.passive(string[0].model), _dbu(technology, string[0].w), unit)
    count = _rows(technology, string[0], unit // folded, len(string) * folded)
    cuts = [len(string) * number // count for number in range(count + 1)]
    return [string[low:high] for low, high in pairwise(cuts)]


def _along(string: Sequence[Device]) -> list[Mapping[str, str]]:
    """Return the nets of the resistors of a string, turned so that the ``n`` of each is the ``p`` of the next."""
    nets = [device.terminals for device in string]
    start = nets[0]["p"] if nets[0]["n"] in {nets[1]["p"], nets[1]["n"]} else nets[0]["n"]
    found: list[Mapping[str, str]] = []
    for each in nets:
        p, n = (each["p"], each["n"]) if each["p"] == start else (each["n"], each["p"])
        found.append({**each, "p": p, "n": n})
        start = n
    return found


def _base_net(device: Device) -> str:
    """Return the net of a bipolar transistor's base, which is its well; empty for other devices."""
    return device.terminals["b"] if device.type == "pnp" else ""


def _bulk_net(device: Device, spec: PassiveSpec, substrate: str) -> str:
    if not (spec.body_terminal or (device.kind.in_ring and not spec.conductor)):
        return ""
    return device.terminals.get(spec.body_terminal or device.kind.bulk, substrate)


def _group(technology: Technology, members: list[Device], bulk: str) -> PassiveGroup:
    kind = members[0].type
    return PassiveGroup(
        name=named_after(
            members[0].id, short_name("_".join([kind, *sorted((each.id for each in members), key=natural)]))
        ),
        type=ARRAYS.get(kind, PARALLEL) if len(members) > 1 else "single",
        spec=technology.passive(members[0].model),
        devices=tuple(members),
        bulk_net=bulk,
    )


def draw_passives(layout: kdb.Layout, technology: Technology, group: PassiveGroup, dummies: int) -> Module:
    """Return the module of ``group``, drawn in ``layout``.

    Args:
        layout: Receives its cell.
        technology: The process.
        group: What to draw.
        dummies: Dummy bars at each end of a bank of several resistors, or of one in a ratio, if there is a ring to tie
            them to; any number puts one dummy on each side of an array of capacitors or bipolar transistors.

    Raises:
        GeometryError: If the process does not allow a size.
    """
    nets = {device.id: device.terminals for device in group.devices}
    for string in group.strings:
        along = _along([device for device in group.devices if device.id in string])
        nets.update(zip(string, along, strict=True))
    devices = tuple((device.id, _size(technology, group, device), nets[device.id]) for device in group.devices)
    guards = tuple((device.id, device.terminals["p"]) for device in group.guards)
    tied = group.bulk_net or group.devices[0].type != "resistor"
    ends = dummies if tied and (len(devices) > 1 or group.unit) else 0
    spec = BlockSpec(group.name, group.spec, devices, group.bulk_net, ends, group.strings, guards)
    transistor = group.spec.diffusion_of
    in_well = group.deep_well is not None and transistor is None
    spec = replace(spec, parallel=group.type == PARALLEL, matched=group.matched, in_well=in_well)
    if group.deep_well is not None:
        spec = replace(spec, substrate=group.deep_well.substrate)
    try:
        module = draw_block(layout, technology, spec)
    except GeometryError as error:
        names = [device.id for device in group.devices]
        if any(name in error.message for name in names):
            raise
        raise type(error)(f"{listed(names, 12)}: {error.message}", details=error.details) from error
    if in_well and group.devices[0].in_deep_well:
        transistor = _lends_well(technology, group.spec)
    if group.deep_well is None or transistor is None or needs_deep_well(technology, group.spec):
        return module
    return isolate(technology, module, transistor, group.deep_well, labels=False)


def _lends_well(technology: Technology, spec: PassiveSpec) -> DeviceSpec:
    """Return the PMOS whose n well a poly resistor lies above: with thick oxide where the resistor is in that."""
    alike = (each for each in technology.devices.values() if each.covers and {*each.covers} <= {*spec.markers})
    return next((each for each in alike if each.well is not None), technology.device("pmos"))


def _flavour(device: Device) -> tuple[str, bool]:
    """Return what devices in one block have in common beside body and size."""
    return device.model, device.in_deep_well


def _size(technology: Technology, group: PassiveGroup, device: Device) -> PassiveSize:
    params = device.params
    segments = _dbu(technology, device.l) // group.unit if group.unit else None
    bends = 0 if group.unit or len(group.devices) > 1 else int(params.get("bends", 0))
    return PassiveSize(
        device.w, device.l, device.m, segments, int(params.get("series", 1)), params.get("wfeed", 0), bends
    )
