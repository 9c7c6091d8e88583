"""What the parts of a circuit are for, found once: its supplies, its ports, its groups, and which groups are modules.

Groups may share devices: the load of a pair is also the diodes of two mirrors. A module is drawn as one block, so the
modules are a cut of the groups in which no device stands twice. ``Roles.cut`` says how each overlap was decided.

Of the ports it says what they carry and which way, and which are the two inputs, the clocks and the enables.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.circuit.families import halves
from layoutkit.circuit.orientation import carries_both_ways
from layoutkit.circuit.ranked_names import is_ranked, plain, ranked
from layoutkit.circuit.recognise import MODULE_TYPES, find_groups
from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule
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
Use = Literal["signal", "power", "ground"]
Direction = Literal["input", "output", "inout"]
_CONTROLS = {("nmos", "g"), ("pmos", "g"), ("npn", "b"), ("pnp", "b")}
_DRAINS = {("nmos", "d"), ("pmos", "d")}
_SOURCES = {("nmos", "s"), ("pmos", "s")}
_CLOCK_NAME = re.compile(r"(n|x)?(c(l?k|lock)|phi|latch|strobe|en_?clk).*", re.IGNORECASE)
_INVERSE = r"_?(?:bar|inv|not|b|n|x|z)|[!~-]"
_INVERSE_SUFFIX = re.compile(rf"(.+?)(?:{_INVERSE})")
_INVERSE_PREFIX = re.compile(r"(?:n_?|x_?|not_|inv_|[!~/])(.+)")
_TRUE_SUFFIX = re.compile(r"(.+?)(?:_?[pt]|\+)")
_ON = re.compile(rf"en(?:a|able)?(\d*)({_INVERSE})?(\d*)", re.IGNORECASE)
_OFF = re.compile(rf"(?:pd|pwd|pwr_?dn|power_?down|sleep|dis(?:able)?|rst|reset)(\d*)({_INVERSE})?(\d*)", re.IGNORECASE)


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
        modules, cut = _Cut(groups).result()
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


class PortUse(NamedTuple):
    """What a port carries, and its direction: ``inout`` where the circuit does not tell."""

    use: Use
    direction: Direction


def port_uses(circuit: Circuit, supplies: Supplies) -> dict[str, PortUse]:
    """Return the use of each port.

    A port that leads to gates or bases only is an input; one that drains of both kinds drive, and no source, an output.
    A channel that carries current both ways is drain and source at both ends.
    """
    found = {}
    both_ways = carries_both_ways(circuit)
    types = {device.id: device.type for device in circuit.devices}
    for port in circuit.ports:
        ends = {
            (types[end.device], terminal)
            for end in circuit.nets[port]
            for terminal in ("ds" if end.device in both_ways and end.terminal in {"d", "s"} else (end.terminal,))
        }
        use: Use = "power" if port in supplies.power else "ground" if port in supplies.ground else "signal"
        direction: Direction = "inout"
        if use == "signal" and ends and ends <= _CONTROLS:
            direction = "input"
        elif use == "signal" and ends >= _DRAINS and not ends & _SOURCES:
            direction = "output"
        found[port] = PortUse(use, direction)
    return found


def ports_on_gates(circuit: Circuit, supplies: Supplies) -> list[str]:
    """Return the ports that only gates are on, in the order of the circuit."""
    signals = (port for port in circuit.ports if port not in supplies)
    return [port for port in signals if (ends := circuit.nets[port]) and all(end.terminal == "g" for end in ends)]


def differential_inputs(circuit: Circuit, supplies: Supplies, groups: Sequence[RecognisedModule]) -> tuple[str, ...]:
    """Return the two ports at the gates of a differential pair that nothing inside drives, in the order of the ports.

    The pair may have its sources joined by resistors or switches. Nothing where the circuit has no such ports.
    """
    signals = {port for port in circuit.ports if port not in supplies}
    for module in (group for group in groups if group.type == "differential_pair"):
        devices = [circuit.device(name) for name in module.devices]
        nets = {device.terminals["g" if device.is_mos else "b"] for device in devices}
        if len(nets) == 2 and all(net in signals and not _is_driven(circuit, net) for net in nets):
            return tuple(sorted(nets, key=circuit.ports.index))
    return _pair_on_two_currents(circuit, supplies, (group for group in groups if group.type == "current_mirror"))


def _is_driven(circuit: Circuit, port: str) -> bool:
    """Whether a drain drives a port, as in a ring of differential stages; a transistor as a capacitor does not."""
    return any(end.terminal == "d" and circuit.device(end.device).terminals["s"] != port for end in circuit.nets[port])


def _pair_on_two_currents(circuit: Circuit, supplies: Supplies, mirrors: Iterable[RecognisedModule]) -> tuple[str, ...]:
    """Return two ports on gates of equal transistors, each between an output and a current of the same mirror.

    Transistors in series with one gate count as one.
    """
    signals = {port for port in circuit.ports if port not in supplies}
    on_gates: dict[str, list[Device]] = {
        port: [circuit.device(end.device) for end in circuit.nets[port]] for port in ports_on_gates(circuit, supplies)
    }
    for mirror in mirrors:
        currents = {circuit.device(name).terminals["d"] for name in mirror.devices}
        found: dict[str, tuple[set[str], set[str], list[str]]] = {}
        for port, devices in on_gates.items():
            below = currents & {device.terminals["s"] for device in devices}
            above = {device.terminals["d"] for device in devices} & signals
            if len(below) == len(above) == 1:
                sizes = sorted(f"{device.type} {sorted(device.params.items())}" for device in devices)
                found[port] = below, above, sizes
        if len(found) == 2:
            one, other = found.values()
            if one[2] == other[2] and not one[0] & other[0] and not one[1] & other[1]:
                return tuple(found)
    return ()


def clock_ports(circuit: Circuit, supplies: Supplies, ports: Sequence[str]) -> dict[str, bool]:
    """Return the clocks among some ports, the main one first, and whether each is the inverse of that one.

    A clock has the name of one or switches the tail of other transistors and also drives gates of the other kind. Of
    two clocks one is the inverse by its name (``clk`` and ``clk_b``, ``ckp`` and ``ckn``) or by what it drives: the
    tails conduct and the resets do not while the circuit compares.

    Args:
        circuit: The circuit.
        supplies: Its supplies.
        ports: Ports that only gates are on, in the order of the circuit.
    """
    driven = {port: [circuit.device(end.device) for end in circuit.nets[port]] for port in ports}
    named = [port for port in ports if _CLOCK_NAME.fullmatch(port)]
    both = [
        port
        for port in ports
        if port not in named
        and {device.type for device in driven[port]} >= {"nmos", "pmos"}
        and any(_is_tail(circuit, supplies, device) for device in driven[port])
    ]
    found = [*named, *both]
    if not found:
        return {}
    main = next((port for port in found if not any(_is_inverse(port, other) for other in found)), found[0])
    found += [port for port in ports if port not in found and (_is_inverse(port, main) or _is_inverse(main, port))]
    high = {port: _compares_high(circuit, supplies, driven[port]) for port in found}
    inverted = {main: False}
    for port in found:
        if port != main:
            opposite = None not in (high[port], high[main]) and high[port] != high[main]
            inverted[port] = opposite or _is_inverse(port, main) or _is_inverse(main, port)
    return inverted


def is_clock(circuit: Circuit, net: str) -> bool:
    """Return whether a net leads to gates of both types, but to no drain: a bias turns on one type only."""
    ends = [(circuit.device(end.device), end.terminal) for end in circuit.nets[net]]
    at_gates = {device.type for device, terminal in ends if device.is_mos and terminal == "g"}
    return at_gates == {"nmos", "pmos"} and not any(device.is_mos and terminal == "d" for device, terminal in ends)


def held_at_supply(port: str) -> bool | None:
    """Return whether a port enables the circuit when it is high, by its name; None for another name."""
    for pattern, high in ((_ON, True), (_OFF, False)):
        match = pattern.fullmatch(port)
        if match is not None:
            return high != bool(match[2])
    return None


def _is_inverse(port: str, of: str) -> bool:
    """Whether the name of a port says that it is the inverse of another, with the same number at the end of both."""
    one, other = (re.fullmatch(r"(.*?)(\d*)", name.lower()) for name in (port, of))
    if one is None or other is None:
        return False
    if one[2] != other[2]:  # clk1 and clk1_b: the mark is after the number
        return _marks(port.lower(), of.lower())
    return _marks(one[1], other[1]) or _marks(port.lower(), of.lower())


def _marks(name: str, of: str) -> bool:
    match = _INVERSE_SUFFIX.fullmatch(name)
    if match is not None:
        true = _TRUE_SUFFIX.fullmatch(of)
        if of == match[1] or (true is not None and true[1] == match[1]):
            return True
    match = _INVERSE_PREFIX.fullmatch(name)
    return match is not None and match[1] == of


def _is_tail(circuit: Circuit, supplies: Supplies, device: Device) -> bool:
    """Whether a transistor connects a supply to the sources of others of its kind."""
    drain = device.terminals["d"]
    return device.terminals["s"] in supplies and any(
        end.terminal == "s" and circuit.device(end.device).type == device.type for end in circuit.nets[drain]
    )


def _compares_high(circuit: Circuit, supplies: Supplies, driven: Sequence[Device]) -> bool | None:
    """Return whether a clock is high during the comparison; None where nothing tells.

    It turns tails on then, and off what connects other nets to a supply.
    """
    tails = {device.type == "nmos" for device in driven if _is_tail(circuit, supplies, device)}
    resets = {device.type == "pmos" for device in driven if device.terminals["s"] in supplies}
    votes = tails or resets
    return votes.pop() if len(votes) == 1 else None
