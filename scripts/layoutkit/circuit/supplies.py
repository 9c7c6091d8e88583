"""Which nets of a circuit are power and ground, by structure; a name is only a hint.

A net is power if PMOS transistors have their body and a source on it and no PMOS transistor feeds it, ground likewise
with NMOS transistors. A net named like a supply is one unless a transistor feeds it from a supply of its polarity: the
inner rail of a current-starved inverter is named like a supply and is none. Nor is one that drives gates alone, beside
a rail that is a port: an input that senses a supply. A fed net is a supply only where it feeds a block of its own: it
is the body of many transistors, or a port named like a supply that is the body of any. Where wells have nets of their
own, the rail is the port on which most channels of the type end that lead to channels of the other type or a diode.
A rail that a transistor of the circuit feeds from another one is a supply of what hangs on it, if a loop through its
voltage drives that transistor or inverters hang on it: a regulated rail, which is a signal of that loop, too.
Without PMOS transistors, a net with nothing but loads of NMOS or NPN transistors is power; without NMOS
transistors, the substrate of bipolar ones is ground, or a net with nothing but loads of PMOS transistors. The reasons
say which supplies only their names tell.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from layoutkit.circuit.rails import BY_NAME, Rails
from layoutkit.errors import counted, did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from layoutkit.circuit.circuit import Circuit, Device, StatedSupplies

_DOMAIN = "(?:[a-z]|in|out|int|ext|core|io|ana|dig|low|high|hv|lv|reg|ref|sub|pad|buf|drv)?"
"""What the name of a supply may end in: a letter, or the part of the chip that it feeds."""
_VOLTAGE = r"_?(?:\d+(?:[vp]\d*)?)?"
"""The voltage or number after it: 1v8, 3p3, 33, 2."""
_REST = rf"{_DOMAIN}{_VOLTAGE}(?:_\w+)?!?"
_GROUND = re.compile(rf"(?:0|[a-z]*_?(?:v?gnd|vss|vee|ground){_REST}|sub!)")
_POWER = re.compile(rf"(?:[a-z]*_?(?:vdd|vcc|vd?pwr|vapwr|vps|avd|dvd|power){_REST})")

_NO_NAME = re.compile(r"(?!)")
_LOADS = ("resistor", "inductor")
_FED_BY_POWER = frozenset({("nmos", "d"), ("nmos", "s"), ("npn", "c")})  # types and terminals that loads end on
_FED_BY_GROUND = frozenset({("pmos", "d"), ("pmos", "s")})

MAX_SHOWN = 200  # characters of a name in a message
_KEPT = "_supplies"  # where a circuit holds its supplies once they are found


@dataclass(frozen=True)
class Supplies:
    """The supply nets of a circuit, each kind sorted by name.

    Attributes:
        power: Nets of power.
        ground: Nets of ground.
        reasons: Each of these nets to why it was taken for a supply, in words.
        fed: Those that a transistor of the circuit feeds from another one.
        regulated: Those of ``fed`` that are more than ends of channels. Of others a switch makes a rail.
    """

    power: tuple[str, ...]
    ground: tuple[str, ...]
    reasons: Mapping[str, str] = field(default_factory=dict, compare=False)
    fed: frozenset[str] = frozenset()
    regulated: frozenset[str] = frozenset()

    @cached_property
    def outer(self) -> Supplies:
        """The supplies but for regulated rails, which are signals in the loop that regulates them."""
        power, ground = (tuple(net for net in nets if net not in self.regulated) for nets in (self.power, self.ground))
        return Supplies(power, ground, self.reasons)

    @cached_property
    def turning_off(self) -> Mapping[str, frozenset[str]]:
        """The nets at which the gate of a transistor of each type turns it off for good."""
        return {"nmos": frozenset(self.ground), "pmos": frozenset(self.power)}

    @cached_property
    def nets(self) -> frozenset[str]:
        """All of them."""
        return frozenset((*self.power, *self.ground))

    def __contains__(self, net: object) -> bool:
        return net in self.nets


def find_supplies(circuit: Circuit) -> Supplies:
    """Return the power and ground nets of a circuit, each with the reason; those that the user states, where he does.

    The order of devices, and of drain and source of each, decides nothing. They are computed once for each object.
    Readers ask for them before the roles are known; all others read ``Roles.supplies``.
    """
    kept = vars(circuit)
    if _KEPT not in kept:
        power, ground = _stated(circuit, "power"), _stated(circuit, "ground")
        with_names = _both(circuit, power, ground, (_POWER, _GROUND))
        without = _both(circuit, power, ground, (_NO_NAME, _NO_NAME))
        for by_name, by_structure in zip(with_names, without, strict=True):
            by_name.update({net: _by_name(words) for net, words in by_name.items() if net not in by_structure})
        power, ground = with_names
        fed = _fed(circuit, power, ground)
        reasons = {
            net: f"{words}; {fed[net]}" if net in fed else words for net, words in (*power.items(), *ground.items())
        }
        signals = frozenset(net for net in fed if _acts(circuit, net))
        kept[_KEPT] = Supplies(tuple(sorted(power)), tuple(sorted(ground)), reasons, frozenset(fed), signals)
    found: Supplies = kept[_KEPT]
    return found


def structural_supplies(circuit: Circuit) -> Supplies:
    """Return the supplies by which groups are found: none in a circuit without transistors, where only names tell them.

    Those that the user states count, and those on unknown cells, whose names say what they are for.
    """
    told = circuit.supplies is not None or circuit.black_boxes or not is_passive(circuit)
    return find_supplies(circuit) if told else Supplies((), ())


def is_passive(circuit: Circuit) -> bool:
    """Whether a circuit has no transistors."""
    return not any(device.is_mos or device.type in ("npn", "pnp") for device in circuit.devices)


def _fed(circuit: Circuit, power: Collection[str], ground: Collection[str]) -> dict[str, str]:
    """Return the supplies that a channel joins to another one of their polarity, each with the words for that.

    The well that a transistor is in is on the rail that feeds, else the port feeds the net inside, or the net with more
    bodies and ends on it the other one; where all are alike, none is fed.
    """
    bodies = Counter(device.terminals.get("b", "") for device in circuit.devices)
    ends = Counter(device.terminals[end] for device in circuit.devices for end in device.kind.ends)
    off = {"nmos": ground, "pmos": power}
    fed: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for device in circuit.devices:
        if not device.is_mos or device.terminals["g"] in off[device.type]:
            continue
        pair = {device.terminals["d"], device.terminals["s"]}
        if len(pair) == 2 and any(pair <= set(rails) for rails in (power, ground)):
            body = device.terminals["b"]
            one, other = sorted(((net == body, net in circuit.ports, bodies[net], ends[net]), net) for net in pair)
            if one[0] != other[0]:
                fed[one[1]][other[1]].append(device.id)
    return {
        net: "fed from " + " and ".join(f"{rail} by {listed(by)}" for rail, by in sorted(feeders.items()))
        for net, feeders in fed.items()
    }


def _acts(circuit: Circuit, net: str) -> bool:
    """Whether more than ends of channels and capacitors is on a net, so that its voltage acts on others."""
    places = circuit.nets[net]
    return any(p.terminal not in "ds" and "capacitor" not in circuit.device(p.device).type for p in places)


def _by_name(words: str) -> str:
    """Return the reason for a supply that its structure alone does not tell."""
    return f"only by {words}" if words.startswith(BY_NAME) else words


def _both(
    circuit: Circuit,
    power: dict[str, str] | None,
    ground: dict[str, str] | None,
    named: tuple[re.Pattern[str], re.Pattern[str]],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return power and ground with the reasons; what is stated stays."""
    likely_power = Rails(circuit, "pmos", named[0]).found() if power is None else power
    types = {device.type for device in circuit.devices}
    if ground is None:
        ground = Rails(circuit, "nmos", named[1], likely_power).found() or _substrate(circuit)
        if not ground or "nmos" not in types:
            ground = {**_of_loads(circuit, _FED_BY_GROUND, likely_power), **ground}
    if power is None:
        power = Rails(circuit, "pmos", named[0], ground).found()
        if not power or "pmos" not in types:  # its name may tell one of several
            power = {**_of_loads(circuit, _FED_BY_POWER, ground), **power}
    return dict(power), dict(ground)


def _substrate(circuit: Circuit) -> dict[str, str]:
    """Return the net of the substrate of bipolar transistors with the reason: the ground of a circuit without NMOS.

    It is the substrate of all NPN transistors that state one, with more than that on it; or collector and base of two
    PNP transistors and more, whose collectors are the substrate.
    """
    bipolars = [device for device in circuit.devices if device.type in ("npn", "pnp")]
    stated = [device.terminals["s"] for device in bipolars if device.type == "npn" and "s" in device.terminals]
    nets = set(stated)
    if len(nets) == 1 and any(place.terminal not in "sb" for place in circuit.nets.get(min(nets), ())):
        return {min(nets): f"substrate of {counted(len(stated), 'NPN transistor')}"}
    diodes = Counter(d.terminals["c"] for d in bipolars if d.type == "pnp" and d.terminals["c"] == d.terminals["b"])
    return {
        net: f"collector and base of {counted(count, 'PNP transistor')}" for net, count in diodes.items() if count > 1
    }


def _of_loads(circuit: Circuit, driven: frozenset[tuple[str, str]], other_rail: Mapping[str, str]) -> dict[str, str]:
    """Return the nets that two loads and more end on, each with the reason: the other rail of a circuit of one type.

    A load is a resistor, an inductor, or a transistor of that type with its gate on the net, and its other end is on
    channels or collectors; but for capacitors nothing else is on the net. A port is one rather than a net inside. Two
    resistors to a net inside, whose other ends have loads of their own, sense a common mode; a coil and a resistor
    there are in series.

    Args:
        circuit: The circuit.
        driven: The types and terminals that loads end on.
        other_rail: The supplies of the other polarity; resistors on them degenerate sources.
    """
    channels: dict[str, dict[str, str]] = defaultdict(dict)  # nets to the transistors that loads may end on
    in_loads: Counter[str] = Counter()
    for device in circuit.devices:
        for terminal, each in device.terminals.items():
            in_loads[each] += device.type in _LOADS and terminal in device.kind.ends
            if (device.type, terminal) in driven:
                channels[each][device.id] = device.type
    found = {}
    unknown = {*circuit.black_box_nets, *other_rail}
    for net, places in circuit.nets.items():
        others = {p.device: circuit.device(p.device) for p in places if p.terminal != "b"}
        loads = [each for each in others.values() if each.type != "capacitor"]
        kinds = sorted(load.type for load in loads)
        if not loads or net in unknown or (kinds == sorted(_LOADS) and net not in circuit.ports):
            continue
        if any(
            load.type not in _LOADS and ((load.type, "d") not in driven or not _is_diode(load, net)) for load in loads
        ):
            continue
        fed = {load.terminals[end] for load in loads for end in load.kind.ends} - {net}
        all_driven = all(not channels[each].keys() <= others.keys() for each in fed)
        senses = len(fed) < 3 and all(in_loads[each] > 1 for each in fed)
        if len(fed) > 1 and all_driven and not _are_switched(circuit, fed) and (net in circuit.ports or not senses):
            driven_kinds = " and ".join(sorted({kind for each in fed for kind in channels[each].values()})).upper()
            found[net] = f"the {len(loads)} loads {listed(e.id for e in loads)} of {driven_kinds} transistors end on it"
    return {net: words for net, words in found.items() if net in circuit.ports} or found


def _are_switched(circuit: Circuit, nets: Collection[str]) -> bool:
    """Whether channels lead on from three nets and more to one port of their own, each from one load: as in a bank."""
    places = [place for net in nets for place in circuit.nets[net]]
    devices = [device for place in places if (device := circuit.device(place.device)).is_mos]
    far = {device.terminals[end] for device in devices for end in "ds"} - {*nets}
    alone = 2 < len(devices) == len(nets) == len(places) / 2 and len(far) == 1 and not far.isdisjoint(circuit.ports)
    return alone and sum(place.terminal != "b" for place in circuit.nets[min(far)]) == len(nets)


def _is_diode(device: Device, net: str) -> bool:
    """Whether gate and one end of a transistor are on a net."""
    return device.terminals["g"] == net and (device.terminals["d"] == net) != (device.terminals["s"] == net)


def supply_faults(circuit: Circuit, stated: StatedSupplies) -> list[tuple[str, str, str]]:
    """Return what is wrong with stated supplies: the kind, ``power`` or ``ground``, the fault in words, and the net."""
    faults = []
    both = set(stated.power or ()) & set(stated.ground or ())
    for kind, nets in (("power", stated.power or ()), ("ground", stated.ground or ())):
        for net in dict.fromkeys(nets):
            if net not in circuit.nets:
                hint = did_you_mean(net, circuit.nets, 0.5)
                faults.append((kind, f"the circuit has no net {net[:MAX_SHOWN]!r}{hint}", net))
            if nets.count(net) > 1:
                faults.append((kind, f"{net[:MAX_SHOWN]!r} is listed twice here", net))
            if net in both and kind == "ground":
                faults.append((kind, f"{net[:MAX_SHOWN]!r} is already in power; a net is power or ground", net))
    return faults


def _stated(circuit: Circuit, kind: str) -> dict[str, str] | None:
    """Return the nets of one kind that the user states, with the reason; None where he states none of this kind."""
    nets = getattr(circuit.supplies, kind, None)
    if circuit.supplies is None or nets is None:
        return None
    words = f"stated by the user{': ' + circuit.supplies.reason if circuit.supplies.reason else ''}"
    return {net: words for net in sorted(nets) if net in circuit.nets}


def substrate_net(circuit: Circuit) -> str:
    """Return the net of the substrate: the bulk of NMOS transistors, else of NPN ones, else ground, else nothing.

    Bulks inside isolated boxes are none; these state it. Of several bulks it is a ground net: the one of the collectors
    that the substrate makes, else the one of most transistors; where none is, it is ground itself.
    """
    boxes = [device for device in circuit.devices if device.kind.well_inside]
    inside = {box.terminals[ends[0]] for box in boxes if (ends := box.kind.well_inside)}
    bodies = Counter(device.terminals["b"] for device in circuit.devices if device.type == "nmos")
    bodies = Counter({net: count for net, count in bodies.items() if net not in inside})
    others = [*boxes, *(device for device in circuit.devices if device.type == "npn")]
    bodies = bodies or Counter(device.terminals["s"] for device in others if "s" in device.terminals)
    ground = find_supplies(circuit).ground
    candidates = (set(bodies) & set(ground)) or ground or bodies if len(bodies) > 1 else bodies or ground
    made = {device.terminals["c"] for device in circuit.devices if device.kind.substrate == "c"}
    if len(made) == 1 and made <= {*ground} and len(bodies) > 1:
        candidates = made  # no well isolates them
    return min(candidates, key=lambda net: (-bodies[net], net), default="")
