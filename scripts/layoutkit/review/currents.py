"""Direct currents of the devices of a circuit: stated ones, and estimates where none is stated.

Pass devices, and switches, carry what they can at full drive; what may be part of an amplifier as well carries the
current of one, and sampling switches carry none (``review.pass_devices``). The reference of a mirror carries what a
resistor or a transistor that is always on leaves it, or what a loop of two unequal transistors and a resistor settles
at, else the current at a usual overdrive; its outputs carry the ratio. All else follows from Kirchhoff's law at the
inner nets: tails feed their pairs, stacks pass their current on, outputs carry what their stage leaves. A switching
gate carries a small part of its full drive in the mean.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from math import inf, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.orientation import carries_both_ways, is_off
from layoutkit.extract.predicted_offset import OVERDRIVE_V
from layoutkit.review.pass_devices import Switches, largest_alone, most_through, resistance
from layoutkit.technology.device_specs import PassiveSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.roles import Roles
    from layoutkit.technology import Technology

THRESHOLD = 0.25
"""Threshold over the supply, as in the alpha-power law of ``extract.predicted_offset``."""
BIAS_SPREAD = 4
"""Factor within which an assumed current of a source is right: half and twice the usual overdrive."""
SWITCHING = 0.02
"""Mean current of a switching gate over that at full drive: about 50 ps of half the full drive in each nanosecond."""
USUAL_REFERENCE = f"reference of a mirror, at {OVERDRIVE_V:g} V overdrive"
"""How the current of a reference is known that nothing in the circuit sets."""
SIGNS = {"nmos": {"d": -1, "s": 1}, "pmos": {"d": 1, "s": -1}, "npn": {"c": -1, "e": 1}, "pnp": {"c": 1, "e": -1}}
"""Whether current flows from a terminal into its net (1) or the other way."""
_JUNCTION_V = 0.65
_THERMAL_V = 0.026
_DEGENERATION_V = 0.1  # usual over the resistor at an emitter, four times the thermal voltage
_SLOPE = 1.3  # of a transistor in weak inversion
_ROUNDS = 50
_NOTHING = 1e-15  # currents below this are numerical noise [A]
_SUPPLY_V = 1.8  # where no transistor tells the supply [V]


class Current(NamedTuple):
    """The current of one device [A], and how it is known.

    ``full`` says whether the device is at full drive, ``assumed`` whether a bias that is not in the circuit decides.
    """

    ampere: float
    how: str
    stated: bool = False
    full: bool = False
    assumed: bool = False


@dataclass(frozen=True)
class DeviceCurrents:
    """The currents of a circuit's devices.

    Attributes:
        devices: Current of each device; those that are missing carry none that is known.
        supply_v: Voltage of the supply of each transistor. [V]
        drive: Current at full drive of switches and pass devices, also of those that carry charge alone. [A]
        strength: Current of each transistor at full drive, whatever it is used for. [A]
        limited: The same, no more than what is in series with it lets through. [A]
    """

    devices: Mapping[str, Current]
    supply_v: Mapping[str, float]
    drive: Mapping[str, float]
    strength: Mapping[str, float]
    limited: Mapping[str, float]


def device_currents(
    circuit: Circuit,
    roles: Roles,
    technology: Technology,
    stated: Mapping[str, float],
    stated_nets: Mapping[str, float] | None = None,
) -> DeviceCurrents:
    """Return the currents of the devices of a circuit.

    Args:
        circuit: In models of the technology, its transistors oriented.
        roles: Its roles.
        technology: States the saturation currents.
        stated: Current of devices. [A]
        stated_nets: Current of nets. [A]
    """
    search = _Estimate(circuit, roles, technology, stated, stated_nets or {})
    search.run()
    return DeviceCurrents(search.found, search.supply_v, search.drive, search.full, search.limited())


class _Estimate:
    def __init__(
        self, circuit: Circuit, roles: Roles, technology: Technology, stated: Mapping[str, float],
        stated_nets: Mapping[str, float],
    ) -> None:  # fmt: skip
        self.circuit, self.roles, self.technology, self.stated_nets = circuit, roles, technology, stated_nets
        self.found = {name: Current(ampere, "stated", stated=True) for name, ampere in stated.items()}
        self.supply_v: dict[str, float] = {}
        self.full: dict[str, float] = {}  # current at full drive [A]
        self.shortest: dict[str, float] = {}  # length [m]
        self.drive: dict[str, float] = {}
        self.late: list[Device] = []  # switches of blocks, which decide their current
        self.unsure: set[str] = set()  # may be pass devices, but are taken for sources
        self.biased: set[str] = set()  # sources with a bias from outside
        self.assumed = False  # whether what is found now rests on a bias that is not in the circuit
        self.slow: dict[str, float] = {}  # the same, were it in proportion to 1/L, as it is at a low overdrive [A]
        for device in circuit.devices:
            if device.is_mos:
                self._add_drive(device)
        self.off = {
            d.id
            for d in circuit.devices
            if d.is_mos and (is_off(d, roles.supplies) or d.terminals["d"] == d.terminals["s"])
        }
        self.both_ways = carries_both_ways(circuit)
        mirrors = (each for each in roles.groups if each.type == "current_mirror")  # a mesh shares its current
        self.mirrors = [each for each in mirrors if each.properties.get("topology") != "translinear"]
        self.gates: dict[str, list[Device]] = defaultdict(list)
        self.resistors: dict[str, list[tuple[str, float, str]]] = defaultdict(list)  # by net: other end, ohm, name
        for device in circuit.devices:
            ohm = resistance(device, technology) if device.type == "resistor" else None
            if ohm:
                one, other = device.terminals["p"], device.terminals["n"]
                self.resistors[one].append((other, ohm, device.id))
                self.resistors[other].append((one, ohm, device.id))
            if device.id in self.full:
                self.gates[device.terminals["g"]].append(device)
        self.volts = max(self.supply_v.values(), default=_SUPPLY_V)
        self.alone = largest_alone(circuit, technology, {**self.full, **dict.fromkeys(self.off, 0.0)}, self.volts)
        loaded = {net for net, own in self.resistors.items() if any(far in roles.supplies for far, *_ in own)}
        loaded -= {net for device in circuit.devices if device.is_mos for net in device.terminals.values()}
        free = {*circuit.ports, *circuit.black_box_nets} - loaded  # collectors with a resistor have their load inside
        self.most = most_through(circuit, roles, self.alone, free)
        references = {str(each.properties["reference"]) for each in self.mirrors}  # one that nothing feeds is fed
        self.most = {name: most for name, most in self.most.items() if most or name not in references}
        self.ends: dict[str, list[tuple[Device, int]]] = defaultdict(list)
        for device in circuit.devices:
            if device.id not in self.off:
                for terminal, sign in _signs(device).items():
                    own = 0 if device.id in self.both_ways else sign
                    self.ends[device.terminals[terminal]].append((device, own))
        self.switches = Switches(circuit, roles, self.full, self.shortest, self.ends, self.both_ways)

    def _add_drive(self, device: Device) -> None:
        spec = self.technology.device_names.drawn(device.model)
        if spec is None or spec.type != device.type:
            spec = self.technology.device(device.type)
        assumed = getattr(spec, "saturation_ma_um", None) or self.technology.device(device.type).saturation_ma_um
        self.supply_v[device.id] = getattr(spec, "supply_v", None) or 1.8
        if assumed and {"w", "l"} <= device.params.keys():
            length = device.l * device.params.get("stack", 1) * 1e6
            width, shortest = device.w * device.m * 1e6, spec.min_l * self.technology.dbu_um
            most, part = assumed * 1e-3 * width, min(1.0, shortest / length)
            # The velocity of electrons saturates, so that a short transistor is less strong than a long one promises.
            self.full[device.id] = most * (part if device.type == "pmos" else 2 * part / (1 + part))
            self.slow[device.id] = most * part
            self.shortest[device.id] = shortest * 1e-6

    def limited(self) -> dict[str, float]:
        """Return what transistors can drive; capacitors give any current, mirrors what is known of them. [A]"""
        told, ports = dict[str, float](), {*self.circuit.ports}
        for each in self.roles.groups:
            name = str(each.properties.get("reference", ""))
            if each.type == "current_mirror" and name in self.found and not self.found[name].assumed:
                usual = self.found[name].how.startswith(USUAL_REFERENCE)
                if not usual or self.circuit.device(name).terminals["g"] in ports:
                    told |= {own: self.found[own].ampere for own in each.devices if own in self.found}
        for name in self.biased:
            told.setdefault(name, BIAS_SPREAD * self.found[name].ampere)
        free = {*ports, *self.circuit.black_box_nets}
        free |= {net for d in self.circuit.devices if d.id not in self.alone for net in d.terminals.values()}
        signs = {d.id: _signs(d) for d in self.circuit.devices if d.id not in self.both_ways}
        most = most_through(self.circuit, self.roles, {**self.alone, **told}, free, signs)
        return {name: ampere for name, ampere in most.items() if name in self.full}

    def run(self) -> None:
        """Find the currents of pass devices and switches, then of the bias, then of all that follows."""
        for name, ampere, how in [each for each in self._stated_nets() if each[0] not in self.found]:
            self._set(name, ampere, how)
        for name in {each[2] for each in chain(*self.resistors.values()) if not self.most[each[2]]} - self.found.keys():
            self._set(name, 0.0, "leads to no other device")
        for device in self.circuit.devices:
            if device.id in self.full and device.id not in {*self.found, *self.off}:
                self._pass_or_switch(device)
        self._gates()
        self._follow()
        order = (
            self._dividers, self._resistor_fed, self._always_on, self._unequal_pairs, self._junctions,
            self._port_references, self._cascode_biases, self._sources, self._emitters,
            self._references, self._bipolars, self._rest,
        )  # fmt: skip
        for seeds in order:
            if seeds == self._rest:
                self._blocks()
            self.assumed = seeds in (self._sources, self._emitters, self._bipolars, self._rest)
            by_current = seeds in (self._references, self._bipolars, self._rest)
            proposed = defaultdict[float, list[tuple[str, float, str]]](list)
            for each in seeds():  # all of one kind at once: the order of devices decides nothing
                proposed[min(each[1], self.most.get(each[0], inf)) if by_current else 0.0].append(each)
            for _, equal in sorted(proposed.items()):  # of those in series, the least current flows in all
                for name, ampere, how in [each for each in equal if each[0] not in self.found]:
                    self._set(name, ampere, how)
                self._follow()

    def _set(self, name: str, ampere: float, how: str, *, full: bool = False) -> None:
        most = inf if full else self.most.get(name, inf)
        if ampere > most:
            ampere, how = most, "what is in series with it lets through"
        self.found[name] = Current(ampere, how, full=full, assumed=self.assumed)

    def _usual(self, name: str) -> float:
        """Return the current at the usual overdrive. [A]"""
        most = (1 - THRESHOLD) * self.supply_v[name]
        return self.slow[name] * float(min(1.0, OVERDRIVE_V / most) ** 1.5)

    def _pass_or_switch(self, device: Device) -> None:
        """Set the current of a pass device or switch; what may amplify is left to what follows."""
        passes, sure, most = self.switches.passes(device), self.switches.is_sure(device), self.full[device.id]
        likely = passes and not sure and self.switches.is_likely(device)
        load = self._load(device) if passes and sure and not self.switches.is_large(device) else 0.0
        if load:
            taken = (1 - THRESHOLD) * self.supply_v[device.id] / load
            self._set(device.id, min(most, taken), "what its resistors take")
            return
        if passes and (sure or likely):
            self.drive[device.id] = most
        if self.switches.turns_off(device):
            self._set(device.id, 0.0, "turns others off, or starts them")
        elif self.switches.carries_charge(device):
            self._set(device.id, 0.0, "sampling switch, carries charge alone")
        elif passes and self.switches.rail_of_block(device):
            self.late.append(device)
        elif passes and sure:
            what = "switch" if device.id in self.both_ways else "pass device"
            self._set(device.id, most, f"{what} at full drive", full=True)
        elif likely:
            how = "its gate is driven from outside of the circuit, assumed to be a switch at full drive"
            self.found[device.id] = Current(most, how, full=True, assumed=True)
        elif passes:
            self.unsure.add(device.id)

    def _load(self, device: Device) -> float:
        """Return the resistance from a transistor at a rail by one or two resistors to the other rail, else 0. [ohm]

        They tell its current: an output that is to feed more is larger.
        """
        supplies, ends = self.roles.supplies, {device.terminals["d"], device.terminals["s"]}
        rails = supplies.ground if ends & set(supplies.power) else supplies.power
        near = [(far, ohm) for net in ends if net not in supplies for far, ohm, _ in self.resistors[net]]
        two = [(far, one + ohm) for net, one in near if net not in supplies for far, ohm, _ in self.resistors[net]]
        ohms = [ohm for far, ohm in near + two if far in rails]
        return min(ohms, default=0.0)

    def _blocks(self) -> None:
        """Set the currents of switches to what the blocks behind them take, at most; else they are at full drive."""
        for device in [each for each in self.late if each.id not in self.found]:
            on = [other.id for other, _ in self.ends[self.switches.rail_of_block(device)] if other not in self.late]
            taken = sum(self.found[name].ampere for name in on if name in self.found)
            if 0.0 < taken < self.full[device.id] and self.found.keys() >= set(on):
                self._set(device.id, taken, "what its block takes")
            else:
                self._set(device.id, self.full[device.id], "pass device at full drive", full=True)

    def _gates(self) -> None:
        """Give the transistors of switching gates, and those that a clock switches, their mean current."""
        gates = (module.devices for module in self.roles.groups if module.type == "inverter")
        clocked = {d.id for d in self.circuit.devices if d.is_mos and d.terminals["g"] in self.roles.clocks} - self.off
        for name in sorted(clocked.union(*gates) & self.full.keys() - self.found.keys()):
            what = "clocked" if name in clocked else "switching gate"
            self._set(name, SWITCHING * self.full[name], f"{what}, {SWITCHING:.0%} of full drive")

    def _dividers(self) -> Iterator[tuple[str, float, str]]:
        """Yield the resistors of strings from a supply, or from what a pass device feeds, that only gates tap."""
        supplies, passing = self.roles.supplies, [self.circuit.device(name).terminals for name in self.drive]
        fed = {net[end] for net in passing for end in ("d", "s")} | self.stated_nets.keys()
        for start in (*supplies.power, *sorted(fed - supplies.nets)):
            for first in self.resistors[start]:
                string, here = [first], first[0]
                while here not in supplies:
                    ends = [(self.circuit.device(end.device), end.terminal) for end in self.circuit.nets[here]]
                    on = [each for each in self.resistors[here] if each[2] != string[-1][2]]
                    taps = [d for d, end in ends if d.type not in {"resistor", "capacitor"} and end != "g"]
                    if len(on) != 1 or taps:
                        break
                    string, here = [*string, on[0]], on[0][0]
                if here in supplies.ground:
                    part = 1.0 if start in supplies else 1 - THRESHOLD
                    ampere = part * self.volts / sum(ohm for _, ohm, _ in string)
                    yield from ((name, ampere, "what the supply drives through its string") for *_, name in string)

    def _resistor_fed(self) -> Iterator[tuple[str, float, str]]:
        """Yield the references of mirrors whose current a resistor sets."""
        supplies = self.roles.supplies
        for module in self.mirrors:
            device = self.circuit.device(str(module.properties["reference"]))
            opposite = supplies.power if device.type == "nmos" else supplies.ground
            for far, ohm, name in self.resistors[device.terminals["d"]] if device.id in self.full else ():
                if far in opposite:
                    supply = self.supply_v[device.id]
                    volts = (1 - THRESHOLD) * supply - OVERDRIVE_V
                    yield device.id, max(volts, 0.1 * supply) / ohm, f"set by resistor {name}"

    def _stated_nets(self) -> Iterator[tuple[str, float, str]]:
        """Yield the transistors that share the stated current of a net, by their strength, on each side of it."""
        for net, ampere in self.stated_nets.items():
            for side in (-1, 1) if net not in self.roles.supplies else ():
                own = [d.id for d, sign in self.ends[net] if d.id in self.full and sign in (0, side)]
                rest = ampere - sum(self.found[name].ampere for name in own if name in self.found)
                free = [name for name in own if name not in self.found]
                for name in free if rest > 0 else ():
                    share = self.full[name] / sum(self.full[each] for each in free)
                    yield name, rest * share, f"its share of what is stated of {net}"

    def _always_on(self) -> Iterator[tuple[str, float, str]]:
        """Yield the transistors whose gate is on the supply that turns them on, and that feed a mirror's reference."""
        references = {self.circuit.device(str(each.properties["reference"])).terminals["d"] for each in self.mirrors}
        for name in self.full.keys() - self.off:
            net = self.circuit.device(name).terminals
            if net["s"] in self.roles.supplies and net["g"] in self.roles.supplies and net["d"] in references:
                yield name, self.full[name], "always on"

    def _unequal_pairs(self) -> Iterator[tuple[str, float, str]]:
        """Yield the diodes beside a larger transistor with a resistor at its source, which set each other's current."""
        for name, net in self._diodes():
            for other in self.gates[net["g"]] if net["s"] in self.roles.supplies else ():
                foot, ratio = other.terminals["s"], self.slow[other.id] / self.slow[name]
                ohms = [ohm for far, ohm, _ in self.resistors[foot] if far == net["s"] != foot]
                if ohms and ratio > 1 and other.type == self.circuit.device(name).type:
                    strong = (OVERDRIVE_V * (1 - 1 / sqrt(ratio)) / ohms[0]) ** 2 / self._usual(name)
                    weak = _SLOPE * _THERMAL_V * log(ratio) / ohms[0]
                    yield name, max(strong, weak), f"set by {other.id} and the resistor at its source"

    def _junctions(self) -> Iterator[tuple[str, float, str]]:
        """Yield the resistors that hold the difference of two junctions, or the voltage of one."""
        supplies, areas = self.roles.supplies, defaultdict[str, float](float)
        for device in self.circuit.devices:
            net = device.terminals
            if device.type == "npn" and net["b"] == net["c"]:  # one whose emitter is on no rail holds no level
                areas |= {net["c"]: areas[net["c"]] + device.m} if net["e"] in supplies else {}
            elif device.type in {"npn", "pnp"} and (net["b"] in supplies or net["b"] == net["c"]):
                areas[net["e"]] += device.m
        levels = set(areas)
        for emitter in sorted(areas):
            ratio = areas[emitter] / min(areas.values())
            for far, ohm, name in self.resistors[emitter] if ratio > 1 else ():
                if far not in supplies and far not in areas:
                    levels.add(far)
                    yield name, _THERMAL_V * log(ratio) / ohm, f"holds the difference of junctions of {ratio:g} to 1"
        for level in sorted(levels):
            for far, ohm, name in self.resistors[level]:
                if far in supplies.ground:
                    yield name, _JUNCTION_V / ohm, "holds the voltage of a junction"

    def _cascode_biases(self) -> Iterator[tuple[str, float, str]]:
        """Yield the diodes at ports that bias cascodes: they get the least current of these."""
        for name, net in self._diodes():
            cascodes = [d.id for d in self.gates[net["g"]] if d.terminals["s"] not in self.roles.supplies]
            stacked = [self.found[other].ampere for other in cascodes if other in self.found and other != name]
            if stacked and net["g"] in self.circuit.ports:
                yield name, min(stacked), "that of the cascodes that it biases"

    def _diodes(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        for name in self.full:
            net = self.circuit.device(name).terminals
            if net["d"] == net["g"]:
                yield name, net

    def _references(self) -> Iterator[tuple[str, float, str]]:
        for module in self.mirrors:
            name = str(module.properties["reference"])
            if name in self.full:
                yield name, self._usual(name), USUAL_REFERENCE

    def _port_references(self) -> Iterator[tuple[str, float, str]]:
        on_ports = {device.id for net in self.circuit.ports for device in self.gates.get(net, ())}
        return (each for each in self._references() if each[0] in on_ports)

    def _sources(self) -> Iterator[tuple[str, float, str]]:
        """Yield the current sources whose bias comes from outside."""
        for name in self.full:
            net = self.circuit.device(name).terminals
            if name not in self.off and net["s"] in self.roles.supplies and net["g"] in self.circuit.ports:
                self.biased |= {name} - self.unsure - self.found.keys()
                yield self._source(name)

    def _emitters(self) -> Iterator[tuple[str, float, str]]:
        """Yield the resistors between a rail and the emitter of a bipolar transistor."""
        for device in self.circuit.devices:
            if device.type in {"npn", "pnp"}:
                for far, ohm, name in self.resistors[device.terminals["e"]]:
                    if far in self.roles.supplies:
                        yield name, _DEGENERATION_V / ohm, f"{_DEGENERATION_V:g} V over the resistor at an emitter"

    def _bipolars(self) -> Iterator[tuple[str, float, str]]:
        """Yield the bipolar transistors of which the technology tells the current per length of an emitter."""
        for device in self.circuit.devices:
            spec = self.technology.device_names.drawn(device.model) if device.type in {"npn", "pnp"} else None
            net = device.terminals
            if isinstance(spec, PassiveSpec) and spec.usual_ma_um and net["e"] not in {net["b"], net["c"]}:
                length_um = 1e6 * device.params.get("l", 1e-6 * spec.min_l * self.technology.dbu_um)
                emitters = _emitters(device)
                how = f"usual current of {emitters} emitter{'s' * (emitters > 1)}"
                yield device.id, 1e-3 * spec.usual_ma_um * length_um * emitters, how

    def _source(self, name: str) -> tuple[str, float, str]:
        what = "its gate is driven from outside of the circuit, assumed to be a source " if name in self.unsure else ""
        return name, self._usual(name), f"{what}at {OVERDRIVE_V:g} V overdrive"

    def _rest(self) -> Iterator[tuple[str, float, str]]:
        for name in self.full.keys() - self.off:
            switch = name, SWITCHING * self.full[name], f"switch, {SWITCHING:.0%} of full drive"
            yield switch if name in self.both_ways - self.unsure else self._source(name)

    def _follow(self) -> None:
        """Pass currents on through mirrors and nets until nothing more follows."""
        inner = [net for net in self.ends if net not in self.roles.supplies and net not in self.stated_nets]
        ratios: dict[str, Mapping[str, float | None]] = {name: {} for name, _ in self._diodes()}
        ratios |= {str(each.properties["reference"]): each.properties.get("ratios", {}) for each in self.mirrors}
        for _ in range(_ROUNDS):
            proposed: list[tuple[str, float, str]] = []
            for reference, told in ratios.items():
                proposed += self._mirror(reference, told)
            proposed += [each for net in inner for each in self._balance(net, mixed=False)]
            if not proposed:  # only then is a current divided between transistors of both types
                proposed = [each for net in inner for each in self._balance(net, mixed=True)]
            if not proposed:
                return
            for name, ampere, how in sorted(proposed, key=lambda each: each[1]):  # the largest one stays
                self._set(name, ampere, how)

    def _mirror(self, reference: str, ratios: Mapping[str, float | None]) -> Iterator[tuple[str, float, str]]:
        of, known = self.circuit.device(reference), dict[str, float]()
        for device in self.gates[of.terminals["g"]] if reference in self.slow else ():  # lengths may differ
            if (device.type, device.terminals["s"]) == (of.type, of.terminals["s"]) and device.id not in self.off:
                known[device.id] = self.slow[device.id] / self.slow[reference]
        told = {name: ratio for name, ratio in ratios.items() if ratio and not self._is_degenerated(name, reference)}
        known = {name: ratio for name, ratio in (known | told).items() if name != reference}
        if reference in self.found:
            for name, ratio in known.items():
                if name not in self.found:
                    yield name, ratio * self.found[reference].ampere, f"{ratio:.3g} times its mirror's reference"
        elif self.full.get(reference):
            for name, ratio in known.items():
                if name in self.found:
                    yield reference, self.found[name].ampere / ratio, "reference of a mirror, from its output"

    def _is_degenerated(self, name: str, reference: str) -> bool:
        """Return whether a resistor is at the source of a mirror's output, but not of its reference."""
        feet = [self.circuit.device(each).terminals.get("s", "") for each in (name, reference)]
        return feet[1] in self.roles.supplies and any(far == feet[1] for far, *_ in self.resistors[feet[0]])

    def _balance(self, net: str, *, mixed: bool) -> Iterator[tuple[str, float, str]]:
        """Yield what is missing at a net for the devices of unknown current, where they are all on one side."""
        ends = self.ends[net]
        if any(self.found[d.id].full for d, _ in ends if d.id in self.found):
            return
        missing = -sum(sign * self.found[d.id].ampere for d, sign in ends if d.id in self.found and sign)
        unknown = [(device, sign) for device, sign in ends if device.id not in self.found]
        if unknown and not missing:  # what resistors take, the others give
            resistors = sum(self.found[d.id].ampere for d, sign in ends if d.id in self.found and not sign)
            missing = resistors * (unknown[0][1] or 1)
        if not unknown or len(unknown) == len(ends) or abs(missing) < _NOTHING:
            return
        if not mixed and len({device.type for device, _ in unknown}) > 1:
            return
        signs = {sign for _, sign in unknown}
        parallel = len({frozenset((d.terminals[d.kind.ends[0]], d.terminals[d.kind.ends[1]])) for d, _ in unknown}) == 1
        if (signs == {0} and parallel) or (len(signs) == 1 and 0 not in signs and missing * next(iter(signs)) > 0):
            parts = [self.full.get(device.id) or _emitters(device) for device, _ in unknown]
            if len(parts) == 1 or all(parts):
                for (device, _), part in zip(unknown, parts, strict=True):
                    share = part / sum(parts) if len(parts) > 1 else 1.0
                    yield device.id, abs(missing) * share, "what its net leaves it"


def _emitters(device: Device) -> int:
    count = round(device.params.get("nf", device.params.get("nx", 1))) * device.m
    return count if device.type in {"npn", "pnp"} else 0


def _signs(device: Device) -> Mapping[str, int]:
    """Return the terminals that carry current, and its direction; 0 where it is not known."""
    if device.type in SIGNS:
        return SIGNS[device.type]
    return dict.fromkeys(device.kind.ends, 0) if device.type in {"resistor", "diode", "inductor"} else {}
