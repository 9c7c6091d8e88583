"""Findings on thin wires that carry a drive, to many gates or from strong drains, and on wires wider than needed.

Long wires to the plates of capacitors are among them, and wires that devices share, where the current of one shifts the
others.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.parasitics.net_network import layout_networks
from layoutkit.review.finding import Spot
from layoutkit.review.pass_devices import resistance
from layoutkit.review.ports_and_cuts import gate_contacts
from layoutkit.review.subject import MOST_CONTACTS, SWITCHES, names_of, region_of
from layoutkit.review.supply_ways import current_ends, mirrored, neck_findings, necks, port_rails, switches
from layoutkit.review.ways import MESH_CONTACTS, Extents, Ways, apart, from_ports, rectangles, worst_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from layoutkit.parasitics.net_network import NetNetwork
    from layoutkit.review.electrical import Electrical
    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import PlacedDevice, Subject
    from layoutkit.review.supply_ways import Neck
    from layoutkit.review.ways import Place

_MANY_GATES, _MANY_SWITCHED = 24, 16  # channels on one net whose way from the driver is judged; of what switches
_DRIVES = ("d", "s", "c", "e")
_LONG = 8  # squares of a wire from which on it limits a current; metal beside shorter ones helps them
_THIN, _THIN_UM = 5, 2.0  # squares, times the part of what it may carry, and length [um] of a wire that is thin
_SMALL_OHM = 5, 500  # resistors of metal have less; from the second one on the ohms of wires do not count [ohm]
_PLATE_UM = 2.0  # from a plate to the edge of its metal [um]
_WIDE = 2  # metal is wide from twice as many times the minimum width on, if that is twice what its current needs, too
_PLATES_UM, _STRAPS_UM = 2.5, 0.6  # around plates and emitters, and around channels, metal may be wide [um]
_EQUAL = 1.1  # factor within which currents are equal
_PASS_OHM = 100  # on-resistance up to which a transistor from a supply to a port is one that a load draws from [ohm]


def wide_metal(subject: Subject) -> Iterator[Remark]:
    """Yield the signals with much metal that is wider than their current needs, apart from plates and terminals."""
    technology, limit = subject.technology, subject.limits["dead-metal.wide"]
    whole, reach, straps = subject.box.area(), technology.to_dbu(_PLATES_UM), technology.to_dbu(_STRAPS_UM)
    part = subject.limits["electromigration.part"].should or 0.0
    for net in [net for net in subject.nets if net not in subject.supplies]:
        if not limit.beyond(sum(metal.area() for metal in subject.metal(net).values()) / whole):
            continue
        carrying = [p for p, end in subject.feeds(net) if end in p.device.kind.ends and not subject.is_idle(p)]
        own = [p for p in subject.placed if net in p.ends and p.device.type != "resistor"]
        plates = region_of(box.enlarged(straps if p.device.is_mos else reach) for p in own for box in p.boxes)
        if any(subject.drive(placed) or placed.id in subject.both_ways for placed in carrying):
            continue  # the wires of a switch or pass device are wide for their resistance
        ampere, wide = max((subject.current(placed) or 0.0 for placed in carrying), default=0.0), kdb.Region()
        if part <= 1000 * ampere / _narrowest(subject, net) <= 1:
            continue  # a good part of what a narrow wire may carry: wide straps are no fault
        for name, metal in subject.metal(net).items():
            spec = technology.conductor(name)
            half = max(_WIDE * spec.width, technology.to_dbu(spec.width_um(1000 * ampere)))
            wide += (metal - plates).sized(-half).sized(half)
        wide.merge()
        area = f"{wide.area() * technology.dbu_um**2:.3g} um2"
        why = f"{net} has {area} of metal that is wider than {2 * _WIDE} times the minimum width and than twice "
        why += f"what its {1e6 * ampere:.3g} uA need"
        yield from subject.finding(
            "dead-metal.wide", wide.area() / whole, why, where=wide.bbox(), nets=[net], cause="wide"
        )


def gate_necks(subject: Subject) -> Iterator[Remark]:
    """Yield the nets whose many gates hang on one thin wire from what drives them, or from the port."""
    first, mirrors = subject.technology.conductors[0].name, mirrored(subject)
    for net in [net for net in subject.nets if net not in subject.supplies]:
        feeds = subject.feeds(net)
        gates = {placed for (placed, end), _ in feeds.items() if placed.device.is_mos and end == "g"}
        gates -= {placed for placed in gates if subject.is_idle(placed)}
        diode = any(placed.device.terminals["d"] == net for placed in gates)
        still = diode or all(not mirrors.isdisjoint(placed.names) for placed in gates)  # a bias, which stays
        fewest = _MANY_SWITCHED if any(_switches(subject, placed) for placed in gates) else _MANY_GATES
        if still or sum(len(placed.boxes) for placed in gates) < fewest:
            continue
        drivers = [each for (placed, end), each in feeds.items() if placed not in gates and end in _DRIVES]
        starts = [(first, kdb.Box(p.x, p.y, p.x, p.y)) for each in drivers for p in each.points if p.conductor == first]
        starts = starts or [(name, kdb.Box(point, point)) for name, point, _ in subject.labels.get(net, ())]
        points = {placed: [kdb.Box(x, y, x, y) for x, y in gate_contacts(subject, net, placed)] for placed in gates}
        found = necks(subject, net, starts, dict(sorted(points.items(), key=lambda each: each[0].index)))
        many = [neck for neck in found if neck.channels >= fewest]
        yield from neck_findings(subject, net, "wire-resistance.gate", many, {}, cause="gates")


def gates_at_one_end(subject: Subject) -> list[Remark]:
    """Return the transistors that switch and have long gates which a contact reaches at one end only."""
    limit = subject.limits["wire-resistance.finger"]
    squares, bars = dict["PlacedDevice", float](), dict[str, kdb.Region]()  # by net: its poly with contacts
    channels = region_of(box for placed in subject.placed if placed.device.is_mos for box in placed.boxes)
    for placed in (each for each in subject.placed if each.device.is_mos and _switches(subject, each)):
        long = [(f.w_um / f.l_um, box) for f, box in zip(placed.fingers, placed.boxes, strict=True)]
        if long := [each for each in long if limit.beyond(each[0])]:
            if (net := placed.device.terminals["g"]) not in bars:
                poly = (subject.shapes(net, "poly") - channels).merged()
                bars[net] = poly.interacting(subject.shapes(net, "contact"))
            alone = [each for each, box in long if bars[net].interacting(kdb.Region(box)).count() < 2]
            squares[placed] = max(alone, default=0.0)
    order = sorted(filter(squares.__getitem__, squares), key=lambda each: (-squares[each], each.index))
    most, up_to = squares[order[0]] if order else 0.0, "up to " * (len(order) > 1)
    why = f"the gates of {names_of(order)} are {up_to}{most:.3g} squares of poly long and have contacts at one end only"
    return subject.finding("wire-resistance.finger", most, why, devices=order)


def _switches(subject: Subject, placed: PlacedDevice) -> bool:
    """Return whether a transistor turns on and off."""
    known = switches(subject, placed, SWITCHES) or placed.id in subject.both_ways or bool(subject.drive(placed))
    return known and not subject.is_idle(placed)


def drive_necks(subject: Subject) -> Iterator[Remark]:
    """Yield the thin wires that are the only way from strong transistors to the port, or to the others of the net.

    Transistors at full drive are judged by their currents, the rails that the ports of supplies are on by their straps.
    """
    most, mean = subject.limits["electromigration.drive"], subject.limits["electromigration.mean"].should or 0.0
    for net in subject.nets:
        ends = {placed: points for placed, points in current_ends(subject, net).items() if placed.device.is_mos}
        least, strong = _narrowest(subject, net), _drive(subject, ends)
        if not most.beyond(strong.full / least) or strong.mean < mean * least:
            continue
        many = subject.shapes(net, "contact").count() > MESH_CONTACTS and net in subject.supplies
        if many or any(map(subject.is_full, ends)):
            continue
        starts, largest = _starts(subject, net, ends, lambda each: _drive(subject, [each]).full)
        strong = _drive(subject, largest) if largest else strong
        rails = port_rails(subject, net, starts) if net in subject.supplies else []
        found = (neck for neck in necks(subject, net, starts, ends) if neck.squares > _LONG)
        yield from _weakest(subject, net, [n for n in found if not any(map(n.box.inside, rails))], strong)


def _starts(
    subject: Subject, net: str, ends: dict[PlacedDevice, list[kdb.Box]], figure: Callable[[PlacedDevice], float]
) -> tuple[list[Place], list[PlacedDevice]]:
    """Return where a current enters a net: at its ports, else at the device of the largest figure, no longer an end."""
    starts = [(name, kdb.Box(point, point)) for name, point, _ in subject.labels.get(net, ())]
    largest = [] if starts or not ends else [max(ends, key=lambda each: (figure(each), -each.index))]
    first = subject.technology.conductors[0].name
    return starts or [(first, point) for each in largest for point in ends.pop(each)], largest


class _Drive(NamedTuple):
    """What transistors can drive, and what they are estimated to carry. [mA]"""

    full: float
    mean: float


def _drive(subject: Subject, devices: Iterable[PlacedDevice]) -> _Drive:
    """Return the drive of transistors, which those of one type give or take together."""
    full, mean = defaultdict[str, float](float), defaultdict[str, float](float)
    for placed in devices:
        full[placed.device.type] += 1000 * sum(subject.currents.limited.get(name, 0.0) for name in placed.names)
        mean[placed.device.type] += 1000 * (subject.current(placed) or 0.0)
    return _Drive(max(full.values(), default=0.0), max(mean.values(), default=0.0))


def _weakest(subject: Subject, net: str, found: Iterable[Neck], others: _Drive) -> list[Remark]:
    """Return the worst of the necks of a net, whose transistors drive no more than what they drive into."""
    figures = {}
    mean = subject.limits["electromigration.mean"].should or 0.0
    for neck in found:
        own, limit = _drive(subject, neck.devices), subject.technology.conductor(neck.conductor)
        allowed = limit.current_ma(subject.um(neck.width)) or inf
        carried = min(own.mean, others.mean) / allowed
        if carried >= mean:
            figures[neck] = min(own.full, others.full), allowed, carried
    if not figures:
        return []
    leaves = net in subject.circuit.ports or net in subject.supplies
    worst = max(figures, key=lambda neck: (figures[neck][0] / figures[neck][1], neck.squares, str(neck.box)))
    full, allowed, carried = figures[worst]
    length, width = subject.um(worst.length), subject.um(worst.width)
    why = f"{net} connects to {names_of(worst.devices)} only through {length:.3g} um of {worst.conductor}, "
    why += f"{width:.3g} um wide: it may carry {allowed:.3g} mA, and up to {full:.3g} mA can flow"
    return subject.finding(
        "electromigration.drive", full / allowed, why, where=worst.box, devices=worst.devices, nets=[net],
        cause="thin ways of strong transistors", difference=carried, must=leaves,
    )  # fmt: skip


def thin_links(subject: Subject) -> Iterator[Remark]:
    """Yield the signals whose current has to pass a wire much thinner than the straps that it joins.

    The current is a good part of what the wire may carry, but not too much for it, which others tell. Between a pair
    and its tail, half of that part and shorter wires count.
    """
    technology, part = subject.technology, subject.limits["electromigration.part"].should or 0.0
    pairs = (subject.devices(each.devices) for each in subject.roles.groups if each.type == "differential_pair")
    tails = {placed.device.terminals.get("s") for pair in pairs for placed in pair}
    for net in [net for net in subject.nets if net not in subject.supplies]:
        ends = {p: points for p, points in current_ends(subject, net).items() if points and subject.current(p)}
        least = part / 2 if net in tails else part
        too_little = 1000 * sum(subject.current(placed) or 0.0 for placed in ends) < least * _narrowest(subject, net)
        if too_little or any(map(subject.is_full, ends)):
            continue
        starts, _ = _starts(subject, net, ends, lambda each: subject.current(each) or 0.0)
        found: list[tuple[float, float, Neck]] = []
        for neck in necks(subject, net, starts, ends):
            allowed = technology.conductor(neck.conductor).current_ma(subject.um(neck.width)) or inf
            carried = 1000 * sum(subject.current(placed) or 0.0 for placed in neck.devices)
            figure, long = neck.squares * carried / allowed, subject.um(neck.length) >= _THIN_UM
            if least <= carried / allowed < 1.0 and (neck.squares if net in tails else figure * long) >= _THIN:
                found.append((figure, carried, neck))
        if not found:
            continue
        _, carried, neck = max(found, key=lambda each: (each[0], str(each[2].box)))
        widest, name = _widest(subject, net)
        length, width = subject.um(neck.length), subject.um(neck.width)
        why = f"{net} leads {carried:.3g} mA to {names_of(neck.devices)} only through {length:.3g} um of "
        why += f"{neck.conductor}, {width:.3g} um wide ({neck.squares:.3g} squares); its widest strap is "
        why += f"{subject.um(widest):.3g} um of {name}"
        yield from subject.finding(
            "electromigration.thin", widest / neck.width, why, where=neck.box, devices=neck.devices, nets=[net],
            cause="thin links",
        )  # fmt: skip


def _narrowest(subject: Subject, net: str) -> float:
    """Return what a wire of minimum width may carry, of the weakest conductor of a net. [mA]"""
    drawn = map(subject.technology.conductor, subject.metal(net))
    return min((each.current_ma(subject.um(each.width)) or inf for each in drawn), default=inf)


def _widest(subject: Subject, net: str) -> tuple[int, str]:
    """Return the width of the widest metal of a net apart from plates, and its conductor. [dbu]"""
    reach = subject.technology.to_dbu(_PLATE_UM)
    plates = region_of(
        box.enlarged(reach) for placed in subject.placed if placed.device.type == "capacitor" for box in placed.boxes
    )
    extents = {name: Extents(metal) for name, metal in subject.metal(net).items()}
    middles = [(name, piece.bbox().center()) for name, piece in rectangles(subject, net).pieces]
    bare = [(name, at) for name, at in middles if plates.is_empty() or not _inside(plates, at)]
    return max(((min(extents[name].at(at)), name) for name, at in bare), default=(0, ""))


def _inside(plates: kdb.Region, point: kdb.Point) -> bool:
    return any(piece.inside(point) for piece in plates.each())


def small_resistors(subject: Subject) -> list[Remark]:
    """Return the resistors of few ohm whose wires, to the port of a supply or the next transistor, add much to them."""
    ohms = {p: _whole(subject, p) for p in subject.placed if p.device.type == "resistor" and not subject.is_idle(p)}
    small = {placed: ohm for placed, ohm in ohms.items() if _SMALL_OHM[0] <= ohm <= _SMALL_OHM[1]}
    numbers = {subject.number[net]: net for placed in small for net in placed.ends if net in subject.number}
    networks, _ = layout_networks(subject.found, numbers, most_contacts=MOST_CONTACTS) if numbers else ({}, set())
    wires = {}
    for placed in small:
        ends = {end: placed.device.terminals[end] for end in placed.device.kind.ends}
        own = {net: _to_next(subject, networks.get(subject.number.get(net, -1)), net, (placed.key, end))
               for end, net in ends.items()}  # fmt: skip
        most = max(own, key=lambda net: (own[net], -subject.number.get(net, 0)))
        wires[placed] = sum(own.values()), most
    limit = subject.limits["wire-resistance.bar"]
    shares = {placed: wires[placed][0] / ohm for placed, ohm in small.items()}
    thin = [placed for placed in small if limit.beyond(shares[placed])]
    found = []
    for p in thin:
        why = f"{p.id} has {small[p]:.3g} ohm, its wires {wires[p][0]:.3g} ohm, most on {wires[p][1]}"
        found.append((shares[p], Spot(p.box, why, f"{p.id} ({wires[p][0]:.3g} to {small[p]:.3g} ohm)")))
    nets = {wires[placed][1] for placed in thin}
    return worst_first(subject, "wire-resistance.bar", found, devices=thin, nets=nets, cause="small resistors")


def _whole(subject: Subject, placed: PlacedDevice) -> float:
    """Return the resistance of a resistor, of all that are in parallel or in series; infinite if unknown. [ohm]"""
    siemens = defaultdict[frozenset[str], float](float)
    for device in map(subject.circuit.device, placed.names):
        ohm = resistance(device, subject.technology)
        siemens[frozenset(device.terminals[end] for end in device.kind.ends)] += 1 / ohm if ohm else 0.0
    return sum(1 / each if each else inf for each in siemens.values())


def _to_next(subject: Subject, network: NetNetwork | None, net: str, end: tuple[str, str]) -> float:
    """Return the resistance from an end of a resistor to the port of a supply, else to the nearest transistor. [ohm]"""
    node = network.nodes.get(end) if network is not None else None
    if network is None or node is None:
        return 0.0
    others = [network.own] if network.start == "port" else []
    if net not in subject.supplies:
        known = ((subject.by_key.get(key), each, at) for (key, each), at in network.nodes.items())
        others = [
            at for placed, each, at in known if placed is not None and each in {*_DRIVES} & {*placed.device.kind.ends}
        ]
    return min(network.between(node, [each for each in others if each != node] or [node]), default=0.0)


def plate_ways(subject: Subject) -> Iterator[Remark]:
    """Yield the plates that a signal reaches by a way much longer than straight, from the nearest device or its port.

    Of equal capacitors on one net, as those of an array, the nearest one counts.
    """
    first = subject.technology.conductors[0].name
    for net in [net for net in subject.nets if net not in subject.supplies]:
        plates, pins = (
            defaultdict[int, list[tuple["PlacedDevice", "Place"]]](list),
            defaultdict[str, list["Place"]](list),
        )
        for (placed, _), feed in sorted(subject.feeds(net).items(), key=lambda each: each[0][0].index):
            places = [(at.conductor, kdb.Box(at.x, at.y, at.x, at.y)) for at in feed.points]
            if placed.device.type == "capacitor" and not subject.is_idle(placed):
                plates[placed.area] += [(placed, place) for place in places]
            elif placed.device.type != "capacitor":
                contacts = gate_contacts(subject, net, placed) if feed.channels else ()
                pins[placed.id] += places + [(first, kdb.Box(x, y, x, y)) for x, y in contacts]
        if not pins:
            pins["its port"] = [(name, kdb.Box(point, point)) for name, point, _ in subject.labels.get(net, ())]
        yield from _from_port(subject, net, chain(*plates.values()))
        for own in plates.values():
            ways = Ways(subject, net, [place for _, place in own])
            led = [(ways.to(*place), name) for name, places in pins.items() for place in places]
            known = [(way, name) for way, name in led if way is not None]
            if not known:
                continue
            way, name = min(known, key=lambda each: each[0].length)
            devices = list(dict.fromkeys(placed for placed, _ in own))
            straight = min(sum(apart(box, at)) for each in devices for box in each.boxes for _, at in pins[name])
            why = f"{net} leads from {name} to {names_of(devices)} by {way.words(subject)}, {way.ohm:.3g} ohm"
            why += f", though the plate lies {subject.um(straight):.3g} um from it"
            yield from subject.finding(
                "wire-length.plate", subject.um(way.length - straight), why, where=way.box, devices=devices, nets=[net],
                cause="plates",
            )  # fmt: skip


def _from_port(subject: Subject, net: str, plates: Iterable[tuple[PlacedDevice, Place]]) -> list[Remark]:
    """Return the plates with much resistance between them and the port of a signal."""
    known = [(ohm, placed) for placed, at in plates if (ohm := from_ports(subject, net).ohm(*at)) is not None]
    ohms = {placed: ohm for ohm, placed in sorted(known, key=lambda each: -each[0])}  # the least of each stays
    limit, most = subject.limits["wire-resistance.plate"], max(ohms.values(), default=0.0)
    far = [placed for placed, ohm in ohms.items() if limit.beyond(ohm)]
    why = f"{most:.3g} ohm of wires lie between the port of {net} and the plates of {names_of(far)}"
    return subject.finding("wire-resistance.plate", most, why, devices=far, nets=[net], cause="plates")


def shared_wires(electrical: Electrical, groups: Sequence[MatchedDevices]) -> Iterator[Remark]:
    """Yield all findings."""
    yield from _unlike_drops(electrical, groups)
    for net in electrical.supplies:
        yield from _shared_way(electrical, net)
    for net in sorted(electrical.networks.keys() - electrical.supplies, key=electrical.subject.number.__getitem__):
        yield from _sensed(electrical, net)


def _unlike_drops(electrical: Electrical, groups: Sequence[MatchedDevices]) -> Iterator[Remark]:
    """Yield the mirrors and pairs at whose sources unlike parts of a supply are lost."""
    subject = electrical.subject
    for group in groups:
        nets = {placed.device.terminals.get("s", "") for placed in group.devices}
        network = electrical.networks.get(net := nets.pop()) if len(nets) == 1 else None
        if network is None or network.start != "port" or any(map(subject.drive, group.devices)):
            continue
        known = electrical.drops(net, network)
        drops = {placed: known[placed] for placed in group.devices if placed in known}
        carried = [subject.current(placed) or 0.0 for placed in drops]
        if len(drops) < 2 or not (group.strict or max(carried) <= _EQUAL * min(carried)):
            continue
        order = sorted(drops, key=lambda placed: (drops[placed], placed.index))
        most, least = 1000 * drops[order[-1]], 1000 * drops[order[0]]
        why = f"of {net}, {most:.3g} mV are lost at {order[-1].id} and {least:.3g} mV at {order[0].id}, "
        why += f"which {group.words} makes alike"
        yield from subject.finding(
            "supply-drop.unlike", most - least, why, devices=group.devices, nets=[net], cause="unlike drops"
        )


def _shared_way(electrical: Electrical, net: str) -> list[Remark]:
    """Return whether the largest driver or output stage draws through the wires of current sources and dividers."""
    subject, network = electrical.subject, electrical.networks[net]
    sources, quiet = [placed for placed, end in subject.feeds(net) if end == "s"], mirrored(subject)
    peaks = {placed: _peak(subject, placed) for placed in sources}
    still = [(p, "s") for p in sources if not peaks[p] and not quiet.isdisjoint(p.names)]
    still += [(p, end) for p, end in subject.feeds(net) if p.device.type == "resistor" and _sets_gates(subject, p)]
    loud = max(sources, key=lambda each: (peaks[each], -each.index), default=None)
    if network.start != "port" or loud is None or not peaks[loud]:
        return []
    drops = electrical.drops(net, network, still, {(loud, "s"): peaks[loud]})
    volts = {p: drops[p] / electrical.supply_v(p) for p, _ in still if p in drops}
    worst = _largest(volts, volts) or loud
    why = f"{loud.id} shifts {net} at {worst.id} by up to {1000 * drops.get(worst, 0.0):.3g} mV: they share wires"
    return subject.finding("supply-drop.shared", volts.get(worst, 0.0), why, devices=[worst, loud], nets=[net])


def _sets_gates(subject: Subject, placed: PlacedDevice) -> bool:
    """Return whether a resistor leads from a supply to a net with gates, as that of a divider or a reference does."""
    inner = placed.ends - subject.supplies.nets
    return any(end.terminal == "g" for net in inner for end in subject.circuit.nets[net])


def _peak(subject: Subject, placed: PlacedDevice) -> float:
    """Return the largest current of a driver or output stage, else 0. [A]"""
    currents, ports = subject.currents, {*subject.circuit.ports}
    if any(currents.devices[n].how.startswith("switching") for n in placed.names if n in currents.devices):
        return sum(currents.strength.get(name, 0.0) for name in placed.names)
    outside = placed.ends & ports - subject.supplies.nets
    return subject.current(placed) or 0.0 if outside and mirrored(subject).isdisjoint(placed.names) else 0.0


def _largest(figures: Mapping[PlacedDevice, float], among: Iterable[PlacedDevice]) -> PlacedDevice | None:
    """Return the device with the largest figure, the first of equal ones; None if there is no device."""
    return max(among, key=lambda each: (float(f"{figures[each]:.6g}"), -each.index), default=None)


def _sensed(electrical: Electrical, net: str) -> Iterator[Remark]:
    """Yield an output that a divider takes at another voltage than that of its port.

    Of a pass device whose current nothing tells, the resistance on the way of both is compared with its own.
    """
    subject, network = electrical.subject, electrical.networks[net]
    drawing = [(p, end) for p, end in subject.feeds(net) if p.device.type == "resistor"]
    if network.start != "port" or not drawing:
        return
    if any(subject.is_full(placed) for placed, *_ in electrical.currents_of(net)):
        taps = electrical.drops(net, network, drawing)
        worst = _largest(taps, [p for p, _ in drawing if p in taps])
        if worst is not None:
            why = f"{worst.id} takes {net} where it is {1000 * taps[worst]:.3g} mV off the voltage at its port"
            share = taps[worst] / electrical.supply_v(worst)
            yield from subject.finding("supply-drop.sense", share, why, devices=[worst], nets=[net])
        return
    feeds = [(p, end) for p, end in subject.feeds(net) if end == "d" and electrical.on_ohm(p) <= _PASS_OHM]
    feeds = [(p, end) for p, end in feeds if p.device.terminals["s"] in subject.supplies]
    if feeds:
        source, end = min(feeds, key=lambda each: (electrical.on_ohm(each[0]), each[0].index))
        own, taps = electrical.on_ohm(source), electrical.drops(net, network, drawing, {(source, end): 1.0})
        worst = _largest(taps, [p for p, _ in drawing if p in taps])
        if worst is not None:
            why = f"between the port of {net} and where {worst.id} takes it, its load current passes "
            why += f"{taps[worst]:.3g} ohm; {source.id} has {own:.3g} ohm itself"
            yield from subject.finding("supply-drop.tap", taps[worst] / own, why, devices=[worst, source], nets=[net])
