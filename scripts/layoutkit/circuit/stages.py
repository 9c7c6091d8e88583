"""Find what repeats in equal parts: inverters, the stages of ring oscillators and delay lines, and switches.

    supply -- source* -- PMOS --.-- NMOS -- source* -- ground
                          |  output   |                           * in a current-starved stage
                          '-- input --'

A stage is what pulls a net to both supplies, or a differential pair, with what is on its outputs and below its sources.
Three and more equal stages that follow each other in a circle, or four in a line, are one array of cells.

Equal switches lie below a mirror, steer a current into two nets, or are in ladders and in mixers without current::

  M1|--|M2            current            in --M1-- net --M3-- net --M5--
    |  |             __|__                     |          |          |
   S1  S2          S1|   |S2                   M2         M4         M6
    |  |          b--|   |--not b              |          |          |
   rail           out     dump                out        out        out
below a mirror     steering          one ladder, all gates on one net
"""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import and_, xor
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.channels import electrical_width, gate_length
from layoutkit.circuit.mirrors import Found
from layoutkit.circuit.symmetry_graph import drawing, grouped, same_size, shared_nets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device


FEWEST_STAGES = 3
FEWEST_IN_LINE = 4  # equal stages in a row; fewer are the buffer of a signal
_DEEPEST_STACK = 4  # transistors in series
_MOST_ON_AN_OUTPUT = 64  # connections; a net with more is no inner net of a stage
FEWEST_IN_MIXER = 4
FEWEST_IN_LADDER = 4  # transistors; fewer in series on one gate are one long channel
FEWEST_BITS = 3
_MOST_ON_A_NET = 64  # channel ends


class _Stage(NamedTuple):
    """The core of a stage: what pulls its outputs to both supplies, or a pair with its tails.

    Attributes:
        devices: Its transistors.
        inputs: Nets at its gates.
        outputs: Nets at its drains.
    """

    devices: tuple[Device, ...]
    inputs: frozenset[str]
    outputs: frozenset[str]


def inverters(channels: Channels, taken: Collection[str], current_sources: Collection[str]) -> list[Found]:
    """Return the inverters, the PMOS transistor first; the properties name the nets of input and output.

    Args:
        channels: The channels of the circuit.
        taken: Transistors that are part of other groups.
        current_sources: Transistors of mirrors: an inverter may lie between two of these.
    """
    free = [device for device in channels.mos.values() if device.id not in taken]
    by_nets = grouped(free, lambda device: (device.terminals["g"], device.terminals["d"]))
    found = []
    for (gate, drain), members in by_nets.items():
        types = {member.type: member for member in members}
        if gate == drain or len(members) != 2 or len(types) != 2:
            continue
        drives = channels.gates.get(drain) or drain in channels.ports or channels.others.get(drain)
        above = [each for each in channels.sources.get(drain, ()) if each.terminals["d"] not in channels.supplies]
        if not drives and not all(each.both_ways or _leads_to_no_rail(channels, each, drain) for each in above):
            continue  # a clocked tail, which is charged meanwhile
        core = (types["pmos"], types["nmos"])
        on_rails = [device.terminals["s"] in channels.supplies for device in core]
        ends = [_ends_as_stage(channels, device, current_sources) for device in core]
        logic = any(d.terminals["s"] in channels.supplies for d in channels.drains[drain] if d not in core)  # as a NAND
        if all(on_rails) or (all(ends) and not logic):
            found.append(Found("inverter", tuple(device.id for device in core), {"input": gate, "output": drain}))
    return found


def _leads_to_no_rail(channels: Channels, device: Device, net: str) -> bool:
    """Whether a transistor and what follows only switch the voltage of a net, to ports, gates and capacitors."""
    front, seen = [(device, net)], {net}
    for each, here in front:  # which grows
        far = channels.far(each, here)
        if far in channels.supplies or channels.others.get(far) or not channels.is_switch(each, by_port=True):
            return False
        onward = [other for other in channels.channel_ends(far) if other is not each and far not in seen]
        at_rail = channels.supplies if far in channels.ports else channels.circuit.nets  # a port may lead on outside
        front += [(other, far) for other in onward if channels.far(other, far) in at_rail]
        seen.add(far)
    return True


def _ends_as_stage(channels: Channels, device: Device, current_sources: Collection[str]) -> bool:
    """Whether the source of a transistor is on a supply, a current source, a diode, a switch or a supply from outside.

    More share one from outside.
    """
    net = device.terminals["s"]
    if net in channels.supplies:
        return True
    below = [each for each in channels.drains.get(net, ()) if each.type == device.type]
    if below:
        at_rail = all(each.terminals["s"] in channels.supplies for each in below)
        if at_rail and len(channels.channel_ends(net)) == 2 and channels.is_switch(below[0], by_port=True):
            return True
        return at_rail and all(each.id in current_sources or each.terminals["g"] == net for each in below)
    return _is_fed_from_outside(channels, net) and len(channels.sources[net]) > 1


def _is_fed_from_outside(channels: Channels, net: str) -> bool:
    """Whether a port feeds sources of one type alone, such as the regulated supply of a ring."""
    if net not in channels.ports or channels.drains.get(net) or channels.others.get(net):
        return False
    return len(channels.source_types.get(net, ())) == 1


def ring_stages(channels: Channels, pairs: Iterable[tuple[Device, Device]]) -> list[Found]:
    """Return each array of equal stages that drive each other, as one group; ``stages`` lists them in order."""
    found: list[Found] = []
    taken: set[str] = set()
    for stages in (_pulling_stages(channels), [_pair_stage(channels, *pair) for pair in pairs]):
        for chain, is_ring in _chains(stages):
            cells = _with_own_bias(channels, _with_loads(channels, chain), chain)
            devices = tuple(name for cell in cells for name in cell)
            if taken & set(devices) or len(devices) != len(set(devices)):
                continue
            taken.update(devices)
            properties: dict[str, Any] = {
                "matched": True,
                "arrangement": "ring" if is_ring else "line",
                "stages": [list(cell) for cell in cells],
                "outputs": [sorted(stage.outputs) for stage in chain],
            }
            found.append(Found("ring_stage", devices, properties))
    return found


def _pulling_stages(channels: Channels) -> list[_Stage]:
    """Return what pulls each net to both supplies, with the nets of that kind that drive it.

    Two nets that drive each other, as the sides of a latch, are the outputs of one stage.
    """
    pulled: dict[str, list[Device]] = {}
    for net, drains in channels.drains.items():
        if net not in channels.supplies and len(drains) <= _MOST_ON_AN_OUTPUT:
            sides = [_pulling(channels, net, kind) for kind in ("pmos", "nmos")]
            if all(sides) and all(device.terminals["g"] != net for side in sides for device in side):
                pulled[net] = [device for side in sides for device in side]
    driving: dict[str, set[str]] = {}
    for net, devices in pulled.items():  # the gates next to the output; those of current sources lie below
        upper = {device.terminals["g"] for device in devices if device.terminals["d"] == net} & pulled.keys()
        driving[net] = upper or {device.terminals["g"] for device in devices} & pulled.keys()
    found, seen = [], set[str]()
    for net in pulled:
        if net in seen:
            continue
        others = [each for each in driving[net] if net in driving[each]]
        nets = {net, *others} if len(others) == 1 else {net}
        seen |= nets
        inputs = frozenset(gate for each in nets for gate in driving[each]) - nets
        whole = {device.id: device for each in sorted(nets, key=lambda n: n != net) for device in pulled[each]}
        whole |= {device.id: device for device in _tails(channels, whole) if len(nets) > 1}
        if inputs:
            found.append(_Stage(tuple(whole.values()), inputs, frozenset(nets)))
    return found


def _tails(channels: Channels, devices: Mapping[str, Device]) -> list[Device]:
    """Return the transistors on supplies below the sources that only some of the ``devices`` share."""
    found = []
    for net in dict.fromkeys(device.terminals["s"] for device in devices.values()):
        sources = channels.sources[net]
        if net in channels.supplies or not {device.id for device in sources} <= devices.keys():
            continue
        below = [each for each in channels.drains.get(net, ()) if each.id not in devices]
        found += [each for each in below if each.type == sources[0].type and each.terminals["s"] in channels.supplies]
    return found


def _pulling(channels: Channels, net: str, mos_type: str, depth: int = 0) -> list[Device]:
    """Return the transistors of one type through which a net is pulled to its rail and that pull no other net."""
    found: list[Device] = []
    for device in channels.drains.get(net, ()):
        below = device.terminals["s"]
        if device.type != mos_type:
            continue
        if below in channels.supplies or _is_fed_from_outside(channels, below):
            found.append(device)
            continue
        if len(channels.channel_ends(below)) > _MOST_ON_AN_OUTPUT:
            continue
        lower = [each for each in channels.drains.get(below, ()) if each.type == mos_type]
        if len({each.terminals["d"] for each in channels.sources[below]}) > 1:  # an inner rail that more stages share
            if lower and all(each.terminals["s"] in channels.supplies for each in lower):
                found.append(device)
        elif depth < _DEEPEST_STACK and (inner := _pulling(channels, below, mos_type, depth + 1)):
            found += [device, *inner]
    return found


def _pair_stage(channels: Channels, first: Device, second: Device) -> _Stage:
    tails = {
        source.id: source for net in (first.terminals["s"], second.terminals["s"]) for source in channels.drains[net]
    }
    sides = (first.terminals, second.terminals)
    own = [tail for tail in tails.values() if tail.type == first.type and tail.terminals["s"] in channels.supplies]
    return _Stage((first, second, *own), frozenset(net["g"] for net in sides), frozenset(net["d"] for net in sides))


def _chains(stages: Sequence[_Stage]) -> list[tuple[list[_Stage], bool]]:
    """Return the chains of equal stages, each with whether it is a ring; stages with several successors end chains."""
    by_input: dict[tuple[frozenset[str], tuple[Any, ...]], list[int]] = defaultdict(list)
    keys = [tuple(sorted((drawing(d) for d in stage.devices), key=str)) for stage in stages]
    for number, stage in enumerate(stages):
        by_input[stage.inputs, keys[number]].append(number)
    following: dict[int, int] = {}
    for number, stage in enumerate(stages):
        after = by_input.get((stage.outputs, keys[number]), [])
        if len(after) == 1 and after[0] != number:
            following[number] = after[0]
    before = Counter(following.values())
    seen: set[int] = set()
    found = []
    for start in [n for n in range(len(stages)) if not before[n]] + list(range(len(stages))):
        chain: list[int] = []
        at: int | None = start
        while at is not None and at not in seen:
            seen.add(at)
            chain.append(at)
            at = following.get(at)
        is_ring = bool(chain) and at == chain[0]
        if len(chain) >= (FEWEST_STAGES if is_ring else FEWEST_IN_LINE):
            found.append(([stages[n] for n in chain], is_ring))
    return found


def _with_loads(channels: Channels, chain: Sequence[_Stage]) -> list[tuple[str, ...]]:
    """Return the devices of each stage, with those that every stage has on its outputs."""
    own = {device.id for stage in chain for device in stage.devices}
    loads: list[dict[Any, list[str]]] = []
    for stage in chain:
        found: dict[Any, list[str]] = defaultdict(list)
        for net in sorted(stage.outputs):
            places = channels.circuit.nets[net]
            for place in places if len(places) <= _MOST_ON_AN_OUTPUT else ():
                device = channels.circuit.device(place.device)
                mos_load = device.is_mos and place.terminal in {"d", "s"} and not channels.is_dummy(device)
                if device.id not in own and (mos_load or _is_load(device)):
                    found[drawing(device), "s" if device.is_mos else ""].append(device.id)
        loads.append({key: list(dict.fromkeys(names)) for key, names in found.items()})
    used = Counter(name for each in loads for names in each.values() for name in names)
    alike = Counter((key, len(names)) for each in loads for key, names in each.items())
    cells = []
    for stage, found in zip(chain, loads, strict=True):
        shared = [
            name
            for key, names in found.items()
            if alike[key, len(names)] == len(chain)
            for name in names
            if used[name] == 1
        ]
        cells.append((*(device.id for device in stage.devices), *shared))
    return cells


def _with_own_bias(
    channels: Channels, cells: Sequence[tuple[str, ...]], chain: Sequence[_Stage]
) -> list[tuple[str, ...]]:
    """Return the devices of each stage, with the transistors that make the gate voltages of this stage alone."""
    place = {name: number for number, cell in enumerate(cells) for name in cell}
    outputs = {net for stage in chain for net in (*stage.outputs, *stage.inputs)}
    found: list[dict[str, Device]] = []
    for number, cell in enumerate(cells):
        bias: dict[str, Device] = {}
        gates = dict.fromkeys(channels.mos[name].terminals["g"] for name in cell if name in channels.mos)
        front = list(gates)
        for net in front:  # which grows
            places = channels.circuit.nets[net]
            if net in channels.supplies or net in channels.ports or net in outputs or len(places) > _MOST_ON_AN_OUTPUT:
                continue
            if any(place.get(each.device, number) != number for each in places):
                continue  # a bias that stages share
            for device in channels.drains.get(net, ()):
                if device.id not in place and device.id not in bias and not channels.is_dummy(device):
                    bias[device.id] = device
                    front.append(device.terminals["g"])
        found.append(bias)
    used = Counter(name for bias in found for name in bias)
    alone = [{name: device for name, device in bias.items() if used[name] == 1} for bias in found]
    if len({tuple(sorted((drawing(device) for device in bias.values()), key=str)) for bias in alone}) > 1:
        return list(cells)
    return [(*cell, *bias) for cell, bias in zip(cells, alone, strict=True)]


def _is_load(device: Device) -> bool:
    """Whether a device other than a channel loads the output of a stage: a resistor, a capacitor, a gate as one."""
    if device.is_mos:
        return device.terminals["d"] == device.terminals["s"]
    return device.type in {"resistor", "capacitor", "mos_capacitor"}


def capacitors_of_stages(channels: Channels, ring: Found) -> Found | None:
    """Return the equal capacitors of the stages of a ring or line, one in each: their ratio sets equal delays."""
    stages = [[channels.circuit.device(name) for name in stage] for stage in ring.properties["stages"]]
    loads = [[device for device in stage if device.type == "capacitor"] for stage in stages]
    if any(len(each) != 1 for each in loads) or not all(same_size(each[0], loads[0][0]) for each in loads):
        return None
    units = {each[0].id: each[0].m for each in loads}
    return Found("capacitor_ratio", tuple(units), {"matched": True, "units": units})


def switch_groups(
    channels: Channels,
    mirrors: Iterable[Found],
    inverters: Iterable[Found],
    taken: Collection[str],
    pairs: Iterable[Found],
) -> Iterator[Found]:
    """Yield the groups of equal switches.

    Args:
        channels: The channels of the circuit.
        mirrors: Its mirrors.
        inverters: Its inverters, which say which signals are complements of each other.
        taken: Transistors that are part of other groups.
        pairs: Its pairs of which mixers may consist.
    """
    yield from _below_mirrors(channels, mirrors)
    yield from _mixers(channels, pairs)
    ladders = list(_ladders(channels, taken))
    yield from ladders
    yield from _steering(channels, inverters, {*taken, *(name for ladder in ladders for name in ladder.devices)})


def _below_mirrors(channels: Channels, mirrors: Iterable[Found]) -> Iterator[Found]:
    """Yield the switches below members of one mirror that are as wide as these, among them those that are always on.

    Others drop unequal voltages, and have nothing to match.
    """
    for mirror in mirrors:
        feet = mirror.properties.get("feet", {})
        below = {name: channels.mos[member] for member in feet for name in feet[member] if name in channels.mos}
        switches = [channels.mos[name] for name in below]
        forms = {(device.type, device.model, gate_length(device)) for device in switches}
        shares = {_share(channels.mos[name], member) for name, member in below.items()}
        if len(switches) > 1 and len(forms) == len(shares) == 1:
            yield _group(switches, {"of": mirror.properties["reference"]})


def _share(switch: Device, member: Device) -> object:
    """Return the width of a switch by that of the transistor above it, or how both are drawn if it is open."""
    own, base = electrical_width(switch), electrical_width(member)
    return round(own / base, 3) if own and base else (drawing(switch), drawing(member))


def _steering(channels: Channels, inverters: Iterable[Found], taken: Collection[str]) -> Iterator[Found]:
    """Yield the two equal transistors on one net that steer its current: a signal and its complement switch them.

    Inverters tell complements, or several nets each lead to the same two others, each by a port of its own: these are
    the bits of a divider of currents, whose complements come from outside.
    """
    complement = {each.properties["output"]: each.properties["input"] for each in inverters}
    bits: dict[frozenset[str], list[tuple[str, list[Device]]]] = defaultdict(list)
    for net in dict.fromkeys((*channels.drains, *channels.sources)):
        ends = channels.channel_ends(net)
        if net in channels.supplies or channels.gates.get(net) or len(ends) > _MOST_ON_A_NET:
            continue  # a voltage, not a current, is switched where a gate is on the net
        on_gate: dict[str, list[Device]] = defaultdict(list)
        for device in ends:
            to_rail = channels.far(device, net) in channels.supplies
            if not (to_rail or device.id in taken or channels.passes(device)):
                on_gate[device.terminals["g"]].append(device)
        alone = {gate: devices[0] for gate, devices in on_gate.items() if len(devices) == 1}
        both = [(alone[complement[gate]], device) for gate, device in alone.items() if complement.get(gate) in alone]
        for pair in both:
            if drawing(pair[0]) == drawing(pair[1]):
                yield _group(pair, {"common_net": net})
        free = [device for gate, device in alone.items() if gate in channels.ports and not both]
        outputs = frozenset(channels.far(device, net) for device in free)
        if len(free) == len(outputs) == 2 and len({*map(drawing, free)}) == 1:
            bits[outputs].append((net, free))
    for several in bits.values():
        used = [device.terminals["g"] for _, devices in several for device in devices]
        if len(several) >= FEWEST_BITS and len(set(used)) == len(used):
            for net, devices in several:
                yield _group(devices, {"common_net": net})


def _mixers(channels: Channels, pairs: Iterable[Found]) -> Iterator[Found]:
    """Yield the equal transistors of pairs on one net each that are joined by nets on which no other channels end."""

    def ends(name: str) -> set[str]:
        return {channels.mos[name].terminals[end] for end in ("d", "s")}

    two = [pair.devices for pair in pairs if len(pair.devices) == 2 and channels.mos.keys() >= set(pair.devices)]
    joints, outer = ({net for one, other in two for net in nets(ends(one), ends(other))} for nets in (and_, xor))
    two = [pair for pair in two if (joints & outer).isdisjoint({*ends(pair[0]), *ends(pair[1])})]  # none on another
    names = (name for one, other in two if ends(one) & ends(other) for name in (one, other))
    paired = {name: channels.mos[name] for name in dict.fromkeys(names)}

    def switches(device: Device) -> bool:
        """Whether nothing but equal transistors of pairs is on both ends of one."""
        nets = ends(device.id)
        beside = [each for net in sorted(nets) for each in channels.channel_ends(net)[: _MOST_ON_A_NET + 1]]
        alike = all(each.id in paired and drawing(each) == drawing(device) for each in beside)
        return alike and not any(net in channels.supplies for net in nets)

    for found in shared_nets(list(filter(switches, paired.values())), drawing, ()):
        if len(found) >= FEWEST_IN_MIXER:
            yield _group(found, {})


def _ladders(channels: Channels, taken: Collection[str]) -> Iterator[Found]:
    """Yield the equal transistors on one gate whose channels form one network, as a divider of currents."""
    free = [device for device in channels.mos.values() if device.both_ways and device.id not in taken]
    inside = [device for device in free if not any(device.terminals[end] in channels.supplies for end in "ds")]
    for found in shared_nets(inside, lambda device: (device.terminals["g"], drawing(device)), ()):
        ends = Counter(device.terminals[end] for device in found for end in "ds")
        if len(found) >= FEWEST_IN_LADDER and max(ends.values()) > 2:
            yield _group(found, {})


def _group(devices: Iterable[Device], properties: dict[str, Any]) -> Found:
    return Found("switch_pair", tuple(device.id for device in devices), {"matched": True, **properties})
