"""Direct currents of the devices of a circuit: stated ones, and estimates where none is stated.

Pass devices, and switches, carry what they can at full drive. The reference of a mirror carries what a resistor leaves
it, else the current at a usual overdrive; its outputs carry the ratio. All else follows from Kirchhoff's law at the
inner nets: tails feed their pairs, stacks pass their current on, outputs carry what their stage leaves. A switching
gate carries a small part of its full drive in the mean.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.orientation import carries_both_ways, is_off
from layoutkit.extract.predicted_offset import OVERDRIVE_V

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.roles import Roles
    from layoutkit.technology import Technology

THRESHOLD = 0.25
"""Threshold over the supply, as in the alpha-power law of ``extract.predicted_offset``."""
SWITCHING = 0.02
"""Mean current of a switching gate over that at full drive: about 50 ps of half the full drive in each nanosecond."""
SIGNS = {
    "nmos": {"d": -1, "s": 1},
    "pmos": {"d": 1, "s": -1},
    "npn": {"c": -1, "e": 1},
    "pnp": {"c": 1, "e": -1},
}
"""Whether current flows from a terminal into its net (1) or the other way."""
_ANALOG = frozenset({"current_mirror", "differential_pair", "cross_coupled_pair", "cascode_pair", "load_pair"})
_ROUNDS = 50
_NOTHING = 1e-15  # currents below this are numerical noise [A]


class Current(NamedTuple):
    """The current of one device [A], and how it is known; ``full`` says whether the device is at full drive."""

    ampere: float
    how: str
    stated: bool = False
    full: bool = False


@dataclass(frozen=True)
class DeviceCurrents:
    """The currents of a circuit's devices.

    Attributes:
        devices: Current of each device; those that are missing carry none that is known.
        supply_v: Voltage of the supply of each transistor. [V]
    """

    devices: Mapping[str, Current]
    supply_v: Mapping[str, float]


def device_currents(
    circuit: Circuit, roles: Roles, technology: Technology, stated: Mapping[str, float]
) -> DeviceCurrents:
    """Return the currents of the devices of a circuit.

    Args:
        circuit: In models of the technology, its transistors oriented.
        roles: Its roles.
        technology: States the saturation currents.
        stated: Current of devices. [A]
    """
    search = _Estimate(circuit, roles, technology, stated)
    search.run()
    return DeviceCurrents(search.found, search.supply_v)


class _Estimate:
    def __init__(self, circuit: Circuit, roles: Roles, technology: Technology, stated: Mapping[str, float]) -> None:
        self.circuit, self.roles, self.technology = circuit, roles, technology
        self.found = {name: Current(ampere, "stated", stated=True) for name, ampere in stated.items()}
        self.supply_v: dict[str, float] = {}
        self.full: dict[str, float] = {}  # current at full drive [A]
        for device in circuit.devices:
            if device.is_mos:
                self._add_drive(device)
        self.off = {d.id for d in circuit.devices if d.is_mos and (is_off(d, roles.supplies) or _is_tied(d))}
        self.both_ways = carries_both_ways(circuit)
        self.mirrors = [each for each in roles.groups if each.type == "current_mirror"]
        self.ends: dict[str, list[tuple[Device, int]]] = defaultdict(list)
        for device in circuit.devices:
            if device.id not in self.off:
                for terminal, sign in _signs(device).items():
                    own = 0 if device.id in self.both_ways else sign
                    self.ends[device.terminals[terminal]].append((device, own))

    def _add_drive(self, device: Device) -> None:
        spec = self.technology.device_names.drawn(device.model)
        if spec is None or spec.type != device.type:
            spec = self.technology.device(device.type)
        assumed = getattr(spec, "saturation_ma_um", None) or self.technology.device(device.type).saturation_ma_um
        self.supply_v[device.id] = getattr(spec, "supply_v", None) or 1.8
        if assumed and {"w", "l"} <= device.params.keys():
            length = device.l * device.params.get("stack", 1) * 1e6
            width, shortest = device.w * device.m * 1e6, spec.min_l * self.technology.dbu_um
            self.full[device.id] = assumed * 1e-3 * width * min(1.0, shortest / length)

    def run(self) -> None:
        """Find the currents of pass devices and switches, then of the bias, then of all that follows."""
        for device in self.circuit.devices:
            if device.id in self.full and device.id not in {*self.found, *self.off} and self._passes(device):
                what = "switch" if device.id in self.both_ways else "pass device"
                self._set(device.id, self.full[device.id], f"{what} at full drive", full=True)
        self._gates()
        self._follow()
        for seeds in (self._resistor_fed, self._port_references, self._sources, self._references, self._rest):
            proposed = [each for each in seeds() if each[0] not in self.found]
            for name, ampere, how in proposed:  # all of one kind at once: the order of devices decides nothing
                self._set(name, ampere, how)
            self._follow()

    def _set(self, name: str, ampere: float, how: str, *, full: bool = False) -> None:
        self.found[name] = Current(ampere, how, full=full)

    def _usual(self, name: str) -> float:
        """Return the current at the usual overdrive. [A]"""
        most = (1 - THRESHOLD) * self.supply_v[name]
        return self.full[name] * float(min(1.0, OVERDRIVE_V / most) ** 1.5)

    def _passes(self, device: Device) -> bool:
        """Return whether a transistor feeds a port that nothing inside loads with a current of the other direction."""
        if (
            any(device.id in group.devices for group in self.roles.groups if group.type in _ANALOG)
            or device.terminals["d"] == device.terminals["g"]
        ):
            return False
        outer = {*self.circuit.ports, *self.roles.supplies.power, *self.roles.supplies.ground}
        supplies = self.roles.supplies
        ends = [device.terminals["d"], device.terminals["s"]]
        if not set(ends) <= outer or all(end in supplies for end in ends) or device.terminals["g"] in supplies:
            return False
        free = [end for end in ends if end not in supplies]
        others = {other.type for end in free for other, _ in self.ends[end] if other.id != device.id and other.is_mos}
        return others <= {device.type}

    def _gates(self) -> None:
        """Give the transistors of switching gates, and those that a clock switches, their mean current."""
        clocked = {d.id for d in self.circuit.devices if d.is_mos and d.terminals["g"] in self.roles.clocks}
        for name in sorted(clocked - self.off - self.found.keys()):
            self._set(name, SWITCHING * self.full[name], f"clocked, {SWITCHING:.0%} of full drive")
        for module in self.roles.groups:
            if module.type == "inverter":
                for name in module.devices:
                    if name in self.full and name not in self.found:
                        self._set(name, SWITCHING * self.full[name], f"switching gate, {SWITCHING:.0%} of full drive")

    def _resistor_fed(self) -> Iterator[tuple[str, float, str]]:
        """Yield the references of mirrors whose current a resistor sets."""
        for module in self.mirrors:
            device = self.circuit.device(str(module.properties["reference"]))
            if device.id not in self.full:
                continue
            for other in self.circuit.devices:
                if other.type == "resistor" and device.terminals["d"] in (other.terminals["p"], other.terminals["n"]):
                    far = {other.terminals["p"], other.terminals["n"]} - {device.terminals["d"]}
                    supplies = self.roles.supplies
                    ohm = resistance(other, self.technology)
                    opposite = supplies.power if device.type == "nmos" else supplies.ground
                    if far & set(opposite) and ohm:
                        supply = self.supply_v[device.id]
                        volts = (1 - THRESHOLD) * supply - OVERDRIVE_V
                        yield device.id, max(volts, 0.1 * supply) / ohm, f"set by resistor {other.id}"

    def _references(self) -> Iterator[tuple[str, float, str]]:
        for module in self.mirrors:
            name = str(module.properties["reference"])
            if name in self.full:
                yield name, self._usual(name), f"reference of a mirror, at {OVERDRIVE_V:g} V overdrive"

    def _port_references(self) -> Iterator[tuple[str, float, str]]:
        ports = self.circuit.ports
        return (each for each in self._references() if self.circuit.device(each[0]).terminals["d"] in ports)

    def _sources(self) -> Iterator[tuple[str, float, str]]:
        """Yield the current sources whose bias comes from outside."""
        for name in self.full:
            net = self.circuit.device(name).terminals
            if name not in self.off and net["s"] in self.roles.supplies and net["g"] in self.circuit.ports:
                yield name, self._usual(name), f"current source at {OVERDRIVE_V:g} V overdrive"

    def _rest(self) -> Iterator[tuple[str, float, str]]:
        for name, most in self.full.items():
            if name in self.both_ways:
                yield name, SWITCHING * most, f"switch, {SWITCHING:.0%} of full drive"
            elif name not in self.off:
                yield name, self._usual(name), f"at {OVERDRIVE_V:g} V overdrive"

    def _follow(self) -> None:
        """Pass currents on through mirrors and nets until nothing more follows."""
        for _ in range(_ROUNDS):
            proposed: list[tuple[str, float, str]] = []
            for module in self.mirrors:
                proposed += self._mirror(str(module.properties["reference"]), module.properties.get("ratios", {}))
            for net in self.ends:
                if net not in self.roles.supplies:
                    proposed += self._balance(net, mixed=False)
            if not proposed:  # only then is a current divided between transistors of both types
                nets = [net for net in self.ends if net not in self.roles.supplies]
                proposed = [each for net in nets for each in self._balance(net, mixed=True)]
            if not proposed:
                return
            for name, ampere, how in sorted(proposed, key=lambda each: each[1]):  # the largest one stays
                self._set(name, ampere, how)

    def _mirror(self, reference: str, ratios: Mapping[str, float | None]) -> Iterator[tuple[str, float, str]]:
        known = {name: ratio for name, ratio in ratios.items() if ratio}
        if reference in self.found:
            for name, ratio in known.items():
                if name not in self.found:
                    yield name, ratio * self.found[reference].ampere, f"{ratio:.3g} times its mirror's reference"
        elif self.full.get(reference):
            for name, ratio in known.items():
                if name in self.found:
                    yield reference, self.found[name].ampere / ratio, "reference of a mirror, from its output"

    def _balance(self, net: str, *, mixed: bool) -> Iterator[tuple[str, float, str]]:
        """Yield what is missing at a net for the devices of unknown current, where they are all on one side."""
        ends = self.ends[net]
        if any(self.found[d.id].full for d, _ in ends if d.id in self.found):
            return
        missing = -sum(sign * self.found[d.id].ampere for d, sign in ends if d.id in self.found and sign)
        unknown = [(device, sign) for device, sign in ends if device.id not in self.found]
        if not unknown or len(unknown) == len(ends) or abs(missing) < _NOTHING:
            return
        if not mixed and len({device.type for device, _ in unknown}) > 1:
            return
        signs = {sign for _, sign in unknown}
        parallel = len({frozenset((d.terminals[d.kind.ends[0]], d.terminals[d.kind.ends[1]])) for d, _ in unknown}) == 1
        if (signs == {0} and parallel) or (len(signs) == 1 and 0 not in signs and missing * next(iter(signs)) > 0):
            parts = [self.full.get(device.id, 0.0) for device, _ in unknown]
            if len(parts) == 1 or all(parts):
                for (device, _), part in zip(unknown, parts, strict=True):
                    share = part / sum(parts) if len(parts) > 1 else 1.0
                    yield device.id, abs(missing) * share, "what its net leaves it"


def _signs(device: Device) -> Mapping[str, int]:
    """Return the terminals that carry current, and its direction; 0 where it is not known."""
    if device.type in SIGNS:
        return SIGNS[device.type]
    return dict.fromkeys(device.kind.ends, 0) if device.type in {"resistor", "diode", "inductor"} else {}


def _is_tied(device: Device) -> bool:
    return device.terminals["d"] == device.terminals["s"]


def resistance(device: Device, technology: Technology) -> float | None:
    """Return the resistance that a resistor states, else that of its size; None where neither is known. [ohm]"""
    if device.params.get("r"):
        return float(device.params["r"]) / device.m
    spec = technology.device_names.drawn(device.model)
    sheet = getattr(spec, "value", None)
    if not sheet or not {"w", "l"} <= device.params.keys():
        return None
    return float(sheet) * device.l * device.params.get("series", 1) / (device.w * device.m)
