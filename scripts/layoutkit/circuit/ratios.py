"""Find resistors and capacitors whose ratio counts: dividers, strings with taps, ladders, resistors on equal currents.

Two resistors form a ratio where one current flows through both, because nothing else carries current from the net
between them, or where the currents of one mirror flow through them, as in a bandgap reference. So do those from one net
to both inputs of an amplifier, and equal ones of two ratios on one output, as in a subtractor. A resistor that carries
no direct current, in series with a gate or a capacitor, belongs to none. Capacitors form a ratio if they consist of
equal plates and share a net that is no supply, or if switches pass charge between them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.mirrors import Found
from layoutkit.circuit.symmetry import is_capacitor
from layoutkit.circuit.symmetry_graph import drawing, grouped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import networkx as nx

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device

_LEAST_R, _MOST_R = 1.0, 1e9  # ohm
_LARGEST_STEP = 100  # between two resistors of one ratio
_MOST_ON_A_PORT = 3  # resistors on a port that is a tap
_MOST_IN_SERIES = 6  # equal resistors with nothing between them; more are the bars of one
_MOST_IN_A_LOOP = 64  # transistors of a mirror that may feed another one and be fed by it
_MOST_ON_A_BRANCH = 1024  # nets
_LEAST_SWITCHED = 3  # capacitors or resistors; two are a pair, each other's load or a choice
_MULTIPLE = 0.01  # how far a device may be from a multiple of the least one


class ResistorRatios:
    """The search for ratios of resistors in one circuit.

    Args:
        channels: The channels of the circuit.
        order: Id of each device to its place in the netlist.
    """

    def __init__(self, channels: Channels, order: Mapping[str, int]) -> None:
        self._channels = channels
        self._order = order
        self._on: dict[str, list[Device]] = defaultdict(list)
        resistors = [d for d in channels.circuit.devices if d.type == "resistor" and self._is_real(d)]
        for device in resistors:
            for end in device.kind.ends:
                self._on[device.terminals[end]].append(device)
        ends = {d.id: (d.terminals[d.kind.ends[0]], d.terminals[d.kind.ends[1]]) for d in resistors}
        alive = _carrying(ends, {net for net in self._on if self._leads_on(net)})
        self._resistors = [device for device in resistors if device.id in alive]
        for net, devices in list(self._on.items()):
            self._on[net] = [device for device in devices if device.id in alive]

    @staticmethod
    def _is_real(device: Device) -> bool:
        """Whether a resistor joins two nets and is neither an ideal short nor an ideal open, as of a trimmed link."""
        value = device.params.get("r", _LEAST_R)
        two = len({device.terminals[end] for end in device.kind.ends}) == 2
        return two and ("l" in device.params or _LEAST_R <= value <= _MOST_R)

    def _leads_on(self, net: str) -> bool:
        """Whether more than resistors carries direct current from a net."""
        if net in self._channels.supplies or net in self._channels.ports or self._channels.channel_ends(net):
            return True
        others = any(device.type != "resistor" for device in self._channels.others.get(net, ()))
        return others or net in self._channels.circuit.black_box_nets

    def found(
        self, mirrors: Sequence[Found], arrays: Iterable[Found], pairs: Sequence[tuple[Device, Device]]
    ) -> list[Found]:
        """Return the ratios, each of resistors of one model.

        Args:
            mirrors: The mirrors, whose currents are in fixed ratios.
            arrays: The arrays of bipolar transistors: the difference of their voltages is on resistors.
            pairs: The input pairs. Equal dividers on both gates are those of one amplifier; what joins the sources of
                pairs with the same outputs weighs their inputs.
        """
        from networkx.utils import UnionFind

        joined = UnionFind(device.id for device in self._resistors)

        def join(devices: Iterable[Device]) -> None:
            joined.union(*(device.id for device in devices))

        for net, devices in self._on.items():
            if self._is_tap(net):
                whole = len(devices) < 3 or _of_one_unit(devices) or self._is_sensed(net, star=False)
                for part in [devices] if whole else grouped(devices, drawing).values():
                    join(part)
        for one, other in ((first.terminals["g"], second.terminals["g"]) for first, second in pairs):
            first, second = self._on.get(one, []), self._on.get(other, [])
            if self._is_tap(one) and self._is_tap(other) and {*map(drawing, first)} & {*map(drawing, second)}:
                join([*first, *second])
            for device in first:  # the amplifier holds its inputs equal, and so the voltages on these
                far = self._channels.far(device, one)
                join([device, *(each for each in second if far != other and self._compare(device, each, far, other))])
        fed = (self._on_mirrors(mirrors), self._of_replicas(mirrors, pairs), map(self._around_array, arrays))
        others = (self._behind_switches(), self._between_sources(pairs), self._against_one_junction(pairs))
        for devices in chain(*fed, *others):
            join(devices)
        for equal in self._on_outputs():
            join(device for device in equal if joined.weights[joined[device.id]] > 1)
        groups = grouped(self._resistors, lambda device: (joined[device.id], device.model.lower()))
        parts = map(self._without_loads, groups.values())
        return [self._group(devices) for devices in parts if self._has_ratio(devices)]

    def _compare(self, one: Device, other: Device, far: str, net: str) -> bool:
        """Whether two resistors, one on ``net``, have one unit and end on ``far``, or are equal and on supplies."""
        beyond = self._channels.far(other, net)
        on_rails = far in self._channels.supplies and beyond in self._channels.supplies
        return (beyond == far and _of_one_unit([one, other])) or (on_rails and drawing(one) == drawing(other))

    def _between_sources(self, pairs: Iterable[tuple[Device, Device]]) -> list[list[Device]]:
        """Return the resistors that join the sources of pairs, by the drain nets of these."""
        found: dict[frozenset[str], list[Device]] = defaultdict(list)
        for pair in pairs:
            drains, sources = ({device.terminals[end] for device in pair} for end in "ds")
            if len(sources) == 2:
                one, other = sorted(sources)
                found[frozenset(drains)] += (d for d in self._on.get(one, ()) if self._channels.far(d, one) == other)
        return [devices for devices in found.values() if devices]

    def _against_one_junction(self, pairs: Iterable[tuple[Device, Device]]) -> Iterator[list[Device]]:
        """Yield the equal resistors on nets that amplifiers hold equal to one junction, as of PTAT and CTAT."""
        held: dict[str, list[Device]] = defaultdict(list)
        for one, other in ((first.terminals["g"], second.terminals["g"]) for first, second in pairs):
            for net, far in ((one, other), (other, one)):
                held[net] += self._on.get(far, ()) if self._channels.ends_in_junction(net) else ()
        yield from (alike for devices in held.values() for alike in grouped(devices, drawing).values())

    def _on_mirrors(self, mirrors: Iterable[Found]) -> Iterator[list[Device]]:
        """Yield the resistors on the currents of each mirror, and of two that feed each other.

        What is below one of these makes the current; what the other one feeds makes a voltage of it.
        """
        loops: dict[tuple[str, str], tuple[list[Device], list[Device]]] = defaultdict(lambda: ([], []))
        for mirror in mirrors:
            feet, fed = self._fed_by(mirror)
            yield [*feet, *fed]
            drains = sorted({*self._outputs_of(mirror).values()})
            for ends in combinations(drains, 2) if len(drains) <= _MOST_IN_A_LOOP else ():
                loops[ends][0].extend(feet[:1])
                loops[ends][1].extend(fed[:1])
        yield from ([*feet, *fed] for feet, fed in loops.values() if feet and fed)

    def _of_replicas(self, mirrors: Iterable[Found], pairs: Iterable[tuple[Device, Device]]) -> Iterator[list[Device]]:
        """Yield the loads of stages and of their replica, whose output an amplifier holds by the tails of all."""
        held = {(d.terminals["d"], each.terminals["g"]) for pair in pairs for d in pair for each in pair}
        for mirror in mirrors:
            loads: dict[Any, dict[str, list[Device]]] = defaultdict(dict)
            for net in self._outputs_of(mirror).values():
                for top in self._channels.sources.get(net, ()):
                    drain = top.terminals["d"]
                    loads[drawing(top)][drain] = self._on.get(drain, [])
            for stages in loads.values():
                if any((mirror.properties.get("common_gate"), drain) in held for drain in stages):
                    yield [*chain.from_iterable(stages.values())]

    @staticmethod
    def _without_loads(devices: list[Device]) -> list[Device]:
        """Return the resistors below a step in size that no units bridge; above it are loads, such as bleeders."""
        known = sorted(value for device in devices if (value := _squares(device)))
        tops = [large for small, large in pairwise(known) if large > _LARGEST_STEP * small]
        return [device for device in devices if not tops or (_squares(device) or 0) < tops[0]]

    def _on_outputs(self) -> Iterator[list[Device]]:
        """Yield the equal resistors on one output: those round one amplifier and from it to the next."""
        for net, devices in self._on.items():
            if net in self._channels.supplies or not self._channels.channel_ends(net):
                continue
            if len(devices) <= _MOST_ON_A_PORT:
                yield from grouped(devices, drawing).values()

    def _is_tap(self, net: str) -> bool:
        """Whether all current of a resistor on a net flows on through another one, apart from that of switches."""
        if len(self._on[net]) < 2 or net in self._channels.supplies:
            return False
        if any(device.type != "resistor" for device in self._channels.others.get(net, ())):
            return False
        if net in self._channels.ports and len(self._on[net]) > _MOST_ON_A_PORT:
            return False  # a voltage from outside, to which many resistors go as to a rail
        ends = {self._past_switch(self._channels.far(device, net), device)[0] for device in self._on[net]}
        if len(ends) == 1 and ends < self._channels.supplies.nets:
            return False
        if not all(self._carries_nothing(d, net) for d in self._channels.channel_ends(net)):
            return False
        return self._is_sensed(net) or not self._channels.has_capacitor(net)

    def _carries_nothing(self, device: Device, net: str) -> bool:
        """Whether a transistor on a net only switches, and no current source is at its other end.

        One in series with a resistor may bridge another one on the net, as for hysteresis.
        """
        far = self._channels.far(device, net)
        if self._channels.channel_ends(far) == [device] and len(self._channels.others.get(far, ())) == 1:
            on_far, on_net = ({self._channels.far(each, end) for each in self._on.get(end, ())} for end in (far, net))
            return on_far <= on_net
        beyond = () if far in self._channels.supplies else self._channels.channel_ends(far)
        return all(self._channels.is_switch(each, by_port=True) for each in (device, *beyond))

    def _outputs_of(self, mirror: Found) -> dict[str, str]:
        """Return source of a mirror to the net of its output, which may be above a cascode that others are drawn as."""
        alike = {drawing(self._channels.mos[name]) for name in mirror.properties.get("cascodes", ())}
        found = {}
        for name in sorted(
            (mirror.properties["reference"], *mirror.properties["outputs"]), key=self._order.__getitem__
        ):
            device = self._channels.mos[name]
            tops = [top for top in self._channels.sources.get(device.terminals["d"], ()) if drawing(top) in alike]
            found[name] = (tops[0] if len(tops) == 1 else device).terminals["d"]
        return found

    def _past_switch(self, net: str, device: Device) -> tuple[str, str]:
        """Return the net to which a switch leads on from one on which a device and that switch alone are, and its gate.

        Where no switch does, it is the net itself.
        """
        ends = [each for each in (*self._channels.channel_ends(net), *self._on.get(net, ())) if each is not device]
        only = len(ends) == 1 and ends[0].is_mos and self._channels.is_switch(ends[0], by_port=True)
        return (self._channels.far(ends[0], net), ends[0].terminals["g"]) if only else (net, "")

    def _behind_switches(self) -> Iterator[list[Device]]:
        """Yield the resistors that separate switches lay between the same two nets."""
        between: dict[frozenset[str], dict[str, frozenset[str]]] = defaultdict(dict)
        for device in self._resistors:
            past = [self._past_switch(device.terminals[end], device) for end in device.kind.ends]
            gates = frozenset(gate for _, gate in past if gate)
            if gates:
                between[frozenset(net for net, _ in past)][device.id] = gates
        banks = (each for each in between.values() if len(each) >= _LEAST_SWITCHED and len({*each.values()}) > 1)
        yield from (list(map(self._channels.circuit.device, bank)) for bank in banks)

    def _is_sensed(self, net: str, *, star: bool = True) -> bool:
        """Whether the voltage between resistors counts: a gate, base, switch, port or (``star``) third one is on it."""
        seen = self._channels.gates.get(net) or self._channels.channel_ends(net) or net in self._channels.ports
        far = {self._channels.far(device, net) for device in self._on[net]}
        seen = seen or any(device.type != "resistor" for device in self._channels.others.get(net, ()))
        circuit = self._channels.circuit
        bases = (circuit.device(each.device).type for each in circuit.nets[net] if each.terminal == "b")
        seen = seen or not {"npn", "pnp"}.isdisjoint(bases)
        return bool(seen) or (star and len(far) > 2) or net in circuit.black_box_nets

    def _has_ratio(self, devices: Sequence[Device]) -> bool:
        """Whether resistors are more than one in parts: something is on a net between them, or few are equal."""
        nets = [{device.terminals[end] for end in device.kind.ends} for device in devices]
        if all(each == nets[0] for each in nets):
            return False
        count = Counter(net for each in nets for net in each)
        ends = [net for net, number in count.items() if number == 1]
        equal = len(devices) <= _MOST_IN_SERIES and len({drawing(device) for device in devices}) == 1
        return equal or len(ends) != 2 or any(number > 1 and self._is_sensed(net) for net, number in count.items())

    def _fed_by(self, mirror: Found) -> tuple[list[Device], list[Device]]:
        """Return the resistors below the sources of a mirror, and those from its branches to a supply."""
        feet = [name for names in mirror.properties.get("feet", {}).values() for name in names]
        below = {name: self._channels.circuit.device(name) for name in feet}
        found: dict[str, Device] = {}
        for name, net in self._outputs_of(mirror).items():
            source = self._channels.mos[name]
            for resistor in self._down_from(self._past_switch(net, source)[0], source.type):
                found[resistor.id] = resistor
        alive = {device.id for device in self._resistors}
        sides = ([each for name, each in side.items() if name in alive] for side in (below, found))
        return next(sides), next(sides)

    def _around_array(self, array: Found) -> list[Device]:
        """Return the resistors from the emitters of transistors on one base, and equal ones on their collectors.

        These lead to one net; on both of two diodes they may be parts of any strings, whose voltages add up.
        """
        devices = [self._channels.circuit.device(name) for name in array.devices]
        emitters = sorted({device.terminals["e"] for device in devices})
        kind = "pmos" if devices[0].type == "npn" else "nmos"
        found = {resistor.id: resistor for net in emitters for resistor in self._down_from(net, kind)}
        diodes = array.properties["diode_connected"]
        ends = {device.terminals[end] for device in devices for end in ("ce" if diodes else "c")}
        loads = [(d, net) for net in sorted(ends) if net not in self._channels.supplies for d in self._on.get(net, ())]
        alike = grouped(loads, lambda load: (drawing(load[0]), "" if diodes else self._channels.far(*load)))
        found |= {load.id: load for row in alike.values() if len({net for _, net in row}) > 1 for load, _ in row}
        return list(found.values()) if diodes or len(emitters) > 1 else []

    def _down_from(self, net: str, mos_type: str) -> list[Device]:
        """Return the resistors between a branch and the rail opposite to that of its current source."""
        supplies = self._channels.supplies
        rail = supplies.ground if mos_type == "pmos" else supplies.power
        if net in supplies:
            return []
        front, fixed, seen = [net], {net}, {net}
        edges: dict[str, tuple[str, str]] = {}
        while front and len(seen) <= _MOST_ON_A_BRANCH:
            here = front.pop()
            if here != net and (here in rail or self._channels.ends_in_junction(here)):
                fixed.add(here)
                continue
            ends = {self._channels.far(each, here) for each in self._channels.channel_ends(here)}
            if here != net and ends & {*supplies.power} and ends & {*supplies.ground}:
                continue  # the output of a buffer, into which another current flows
            for resistor in self._on.get(here, ()):
                far = self._channels.far(resistor, here)
                edges[resistor.id] = (here, far)
                if far not in seen:
                    seen.add(far)
                    front.append(far)
        alive = _carrying(edges, fixed) if len(fixed) > 1 else set()
        return [self._channels.circuit.device(name) for name in edges if name in alive]

    def _group(self, devices: Sequence[Device]) -> Found:
        members = sorted(devices, key=lambda device: self._order[device.id])
        widths = {device.params.get("w") for device in members}
        values = {device.id: _squares(device) for device in members}
        known = [value for value in values.values() if value]
        least = min(known) if known else 0.0
        properties: dict[str, Any] = {"matched": len(widths) == 1}
        if least and len(known) == len(members) and not any(device.unknown for device in members):
            properties["resistance_ratios"] = {name: round((value or 0) / least, 4) for name, value in values.items()}
        return Found("resistor_ratio", tuple(device.id for device in members), properties)


def _carrying(edges: Mapping[str, tuple[str, str]], fixed: Collection[str]) -> set[str]:
    """Return which resistors, of some with their nets, carry current between nets that lead on, the ``fixed`` ones."""
    on: dict[str, set[str]] = defaultdict(set)
    for name, ends in edges.items():
        for net in ends:
            on[net].add(name)
    front = list(on)
    for net in front:  # which grows
        if len(on[net]) == 1 and net not in fixed:
            (name,) = on[net]
            for end in edges[name]:
                on[end].discard(name)
                front.append(end)
    return set().union(*on.values())


def _squares(device: Device) -> float | None:
    """Return what a resistor is proportional to: its length by its width, or its value."""
    params, units = device.params, device.m
    if "l" in params:
        return float(params["l"]) * params.get("series", 1) / float(params.get("w", 1e-6)) / units
    return float(params["r"]) / units if "r" in params else None


def _of_one_unit(devices: Iterable[Device]) -> bool:
    """Whether the resistors of each model have one width and are multiples of the least one."""
    models = grouped(devices, lambda device: device.model.lower()).values()
    one_width = all(len({device.params.get("w") for device in each}) == 1 for each in models)
    return one_width and all(_are_multiples([_squares(device) or 1.0 for device in each]) for each in models)


def _are_multiples(values: Sequence[float]) -> bool:
    multiples = [value / min(values) for value in values]
    return all(abs(each - round(each)) <= _MULTIPLE * each for each in multiples)


def capacitor_ratios(channels: Channels, order: Mapping[str, int], images: Iterable[Sequence[str]] = ()) -> list[Found]:
    """Return the groups of capacitors whose ratio counts.

    They consist of equal plates, share a net that is no supply and differ in the other one, or two are turned against
    each other; or switches pass charge between them, or between capacitors that are their images (pairs in ``images``);
    or several in parallel are images of as many.
    """
    found, seen = [], set[frozenset[str]]()
    units = _units_of_images(channels, images)
    for devices in (*_on_one_net(channels), *units, *_switched_capacitors(channels, images)):
        key = frozenset(device.id for device in devices)
        if not any(key <= each for each in seen):
            seen.add(key)
            found.append(_capacitors(devices, order))
    return found


def wiring_capacitors(channels: Channels) -> set[str]:
    """Return the capacitors of one value from nearly all nets to one supply: estimates for wires."""
    alike: dict[Any, list[Device]] = defaultdict(list)
    rails = set(channels.supplies.power) | set(channels.supplies.ground)
    for device in channels.circuit.devices:
        if device.type == device.model == "capacitor" and not {"w", "l", "area"} & device.params.keys():
            on_rails = [net for net in {device.terminals[end] for end in device.kind.ends} if net in rails]
            if len(on_rails) == 1:
                alike[device.params.get("c"), on_rails[0]].append(device)
    bipolar = {d.terminals[end] for d in channels.circuit.devices if d.type in {"npn", "pnp"} for end in "ce"}
    most = len({*channels.drains, *channels.sources, *bipolar} - rails) * 3 / 4
    return {device.id for devices in alike.values() if len(devices) > most for device in devices}


def _plates(channels: Channels) -> Iterator[tuple[tuple[str, float, float], list[str], Device]]:
    """Yield the capacitors of a stated size, each with its plate and the two nets of its ends."""
    for device in channels.circuit.devices:
        if device.type == "capacitor" and {"w", "l"} <= device.params.keys():
            ends = [device.terminals[end] for end in device.kind.ends]
            if ends[0] != ends[1]:
                yield (device.model.lower(), device.w, device.l), ends, device


def _on_one_net(channels: Channels) -> Iterator[list[Device]]:
    """Yield banks of equal plates: what shares a net, with the banks across one of them and what is in series."""
    import networkx as nx

    by_net: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
    for plate, ends, device in _plates(channels):
        for net in ends:
            if net not in channels.supplies:
                by_net[plate, net].append(device)
    bridged: nx.Graph[str] = nx.Graph()
    banks = set[str]()
    for (_, net), devices in by_net.items():
        others = {device.terminals[end] for device in devices for end in device.kind.ends} - {net}
        turned = len({d.terminals[d.kind.ends[0]] for d in devices}) == len(devices) == 2
        if turned and len(others) == 1 and not any(each in channels.supplies for each in others):
            yield devices  # so that each loads one of the nets with its bottom plate
        # On the output of an amplifier they compensate or load it.
        switched = all(channels.is_switch(device, by_port=True) for device in channels.channel_ends(net))
        if len(devices) > 1 and len(others) > 1 and switched:
            nx.add_path(bridged, [device.id for device in devices])
            if not _is_joint(channels, net):  # two alone in series hold twice the voltage
                banks.update(device.id for device in devices)
    for bank in nx.connected_components(bridged):
        if bank & banks:
            yield [channels.circuit.device(name) for name in sorted(bank)]


def _is_joint(channels: Channels, net: str) -> bool:
    """Whether a net only joins two capacitors that are in series."""
    devices = [channels.circuit.device(end.device) for end in channels.circuit.nets[net]]
    return len(devices) == 2 and net not in channels.ports and all(each.type == "capacitor" for each in devices)


def _units_of_images(channels: Channels, images: Iterable[Sequence[str]]) -> Iterator[list[Device]]:
    between: dict[Any, list[Device]] = defaultdict(list)
    for pair in images:
        devices = [channels.circuit.device(name) for name in pair]
        if is_capacitor(devices[0]) or "capacitor" in devices[0].type or devices[0].type == "varactor":
            ends = frozenset(frozenset(device.terminals.values()) for device in devices)
            between[drawing(devices[0]), ends] += devices
    yield from (devices for devices in between.values() if len(devices) > 2)


def _switched_capacitors(channels: Channels, images: Iterable[Sequence[str]]) -> list[list[Device]]:
    """Return the capacitors between which switches pass charge, where all are multiples of the least one.

    Their ratios are the coefficients of the circuit. One with an end on a supply loads or holds a signal only.
    """
    import networkx as nx

    links: nx.Graph[str] = nx.Graph()
    valued: dict[str, tuple[Device, float]] = {}
    for device in channels.circuit.devices:
        ends = [device.terminals[end] for end in device.kind.ends] if device.kind.ends else []
        if len(set(ends)) != 2 or any(net in channels.supplies for net in ends):
            continue
        if device.is_mos and channels.is_switch(device, by_port=True):
            links.add_edge(*(f"net {net}" for net in ends), switch=True)
        elif device.type == "capacitor" and (value := _farads(device)) and not device.unknown:
            valued[device.id] = device, value
            passed = [n for n in ends if all(channels.is_switch(d, by_port=True) for d in channels.channel_ends(n))]
            links.add_edges_from((device.id, f"net {net}") for net in passed if net not in channels.ports)
    links.add_edges_from(pair for pair in images if pair[0] in valued and all(name in links for name in pair))
    found = []
    for part in nx.connected_components(links):
        members = [valued[name] for name in sorted(part & valued.keys())]
        models = {device.model.lower() for device, _ in members}
        chains = len(members) - sum(_is_joint(channels, node.removeprefix("net ")) for node in part - valued.keys())
        switched = nx.get_edge_attributes(links.subgraph(part), "switch")
        if chains < _LEAST_SWITCHED or len(models) > 1 or not switched:
            continue
        if _are_multiples([value for _, value in members]):
            found.append([device for device, _ in members])
    return found


def _farads(device: Device) -> float:
    """Return what a capacitor is proportional to among those of one model: its value, or the area of its plates."""
    params = device.params
    one = params["c"] if "c" in params else params.get("w", 0.0) * params.get("l", 0.0)
    return float(one) * device.m


def _capacitors(devices: Sequence[Device], order: Mapping[str, int]) -> Found:
    """Return a ratio of capacitors; it is matched where all consist of equal plates."""
    members = sorted(devices, key=lambda device: order[device.id])
    units = {device.id: device.m for device in members}
    plates = {tuple(device.params.get(name) for name in ("w", "l", "c")) for device in members}
    return Found("capacitor_ratio", tuple(units), {"matched": len(plates) == 1, "units": units})
