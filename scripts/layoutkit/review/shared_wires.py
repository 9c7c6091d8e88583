"""Findings on wires that a device shares with others, whose current shifts its voltage: supplies and sensed outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.review.supply_ways import mirrored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.electrical import Electrical
    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import PlacedDevice, Subject

_EQUAL = 1.1  # factor within which currents are equal
_PASS_OHM = 100  # on-resistance up to which a transistor from a supply to a port is one that a load draws from [ohm]


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
    worst = max(volts, key=lambda each: (float(f"{volts[each]:.6g}"), -each.index), default=loud)
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
        worst = max(
            (p for p, _ in drawing if p in taps),
            key=lambda each: (float(f"{taps[each]:.6g}"), -each.index),
            default=None,
        )
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
        worst = max(
            (p for p, _ in drawing if p in taps),
            key=lambda each: (float(f"{taps[each]:.6g}"), -each.index),
            default=None,
        )
        if worst is not None:
            why = f"between the port of {net} and where {worst.id} takes it, its load current passes "
            why += f"{taps[worst]:.3g} ohm; {source.id} has {own:.3g} ohm itself"
            yield from subject.finding("supply-drop.tap", taps[worst] / own, why, devices=[worst, source], nets=[net])
