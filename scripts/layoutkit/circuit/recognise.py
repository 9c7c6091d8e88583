r"""Recognising the groups that belong together in an analog layout.

Groups are found in this order, and a device belongs to the first that takes it: cross-coupled pairs, current mirrors,
input pairs (see ``input_pairs.py``; source followers are a symmetric pair), then what is symmetric about those pairs
(cascodes, loads, resistors and capacitors), then inverters. Bipolar transistors on one base and collector, such as the
diode-connected ones of a bandgap, are an array.
Every search runs over devices indexed by the nets they share, so its cost grows with the devices, not with their pairs.

        d1   d2          iref    out           d1    d2
        |    |            |__     |             |\  /|
    g1-| M1  M2 |-g2    M1|--'---|M2           M1 X  M2
        |____|            |       |             |/  \|
         tail             s       s             s     s
    differential pair   current mirror     cross-coupled pair
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.bipolar_map import with_units
from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule
from layoutkit.circuit.input_pairs import InputPairs, same_size
from layoutkit.circuit.supplies import find_supplies
from layoutkit.circuit.symmetry import facing_nets, is_capacitor, symmetric_partners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    _BySource = dict[tuple[str, str], list[Device]]


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
    "inverter": ModuleType("inverter", "inverter", matched=False),
    "bipolar_array": ModuleType("bipolar_array", "bipolar transistors on one base and collector"),
}
"""Every type of module that recognition finds, in the order in which the modules are listed."""


def recognise(circuit: Circuit) -> tuple[RecognisedModule, ...]:
    """Return the modules of a circuit, by type and then in netlist order.

    The same circuit gives the same modules; no device is in two of them. A device that is switched off for good (gate
    on the supply of its own bulk) or has drain and source on one net is a dummy and belongs to none; two equal ones
    whose gates are on two nets that mirror each other are capacitors, and a symmetric pair.
    """
    return _Recognition(circuit).modules()


class _Recognition:
    """The state of one run: which devices are still free, and what was found."""

    def __init__(self, circuit: Circuit) -> None:
        self._supplies = find_supplies(circuit)
        self._ports = frozenset(circuit.ports)
        self._order = {device.id: index for index, device in enumerate(circuit.devices)}
        rails = {"nmos": frozenset(self._supplies.ground), "pmos": frozenset(self._supplies.power)}
        self._mos = [device for device in circuit.devices if device.is_mos and not _is_dummy(device, rails)]
        self._mos_by_id = {device.id: device for device in self._mos}
        self._circuit = circuit
        self._taken: set[str] = set()
        self._found: dict[str, list[tuple[tuple[str, ...], dict[str, Any]]]] = {name: [] for name in MODULE_TYPES}

    def modules(self) -> tuple[RecognisedModule, ...]:
        self._cross_coupled_pairs()
        self._current_mirrors()
        self._input_pairs()
        self._symmetric_pairs()
        self._inverters()
        self._bipolar_arrays()
        modules = []
        for name, module_type in MODULE_TYPES.items():
            groups = sorted(self._found[name], key=lambda group: min(self._order[d] for d in group[0]))
            for number, (devices, properties) in enumerate(groups, start=1):
                modules.append(RecognisedModule(f"{module_type.stem}_{number}", name, devices, properties))
        return tuple(modules)

    def _free(self) -> list[Device]:
        return [device for device in self._mos if device.id not in self._taken]

    def _add(self, module_type: str, devices: Sequence[Device], properties: dict[str, Any]) -> None:
        self._taken.update(device.id for device in devices)
        self._found[module_type].append((tuple(device.id for device in devices), properties))

    @cached_property
    def _channels(self) -> dict[str, list[str]]:
        """Net to the devices that are on it with another terminal than gate or bulk."""
        return {
            net: [each.device for each in connections if each.terminal not in {"g", "b"}]
            for net, connections in self._circuit.nets.items()
        }

    def _bipolar_arrays(self) -> None:
        """Find bipolar transistors of one model on one base and one collector; their units and emitters may differ."""
        alike: dict[tuple[str, ...], list[Device]] = defaultdict(list)
        for device in self._circuit.devices:
            net = device.terminals
            if device.kind.area_counts and net["e"] not in (net["b"], net["c"]):
                alike[device.type, device.model.lower(), net["b"], net["c"]].append(device)
        for (_, _, base, collector), devices in alike.items():
            if len(devices) > 1:
                units = {device.id: with_units(device).m for device in devices}
                least = min(units.values())
                self._add(
                    "bipolar_array",
                    devices,
                    {
                        "matched": True,
                        "units": units,
                        "ratios": {name: count / least for name, count in units.items()},
                        "common_base": base,
                        "common_collector": collector,
                        "diode_connected": base == collector,
                    },
                )

    def _cross_coupled_pairs(self) -> None:
        by_drain_gate: dict[tuple[str, ...], list[Device]] = defaultdict(list)
        for device in self._free():
            by_drain_gate[device.type, device.model.lower(), device.terminals["d"], device.terminals["g"]].append(
                device
            )
        for device in self._free():
            net = device.terminals
            partners = by_drain_gate.get((device.type, device.model.lower(), net["g"], net["d"]), ())
            own = by_drain_gate[device.type, device.model.lower(), net["d"], net["g"]]
            if net["d"] == net["g"] or len(partners) != 1 or len(own) != 1 or device.id in self._taken:
                continue
            if net["d"] in self._supplies or net["g"] in self._supplies:
                continue
            if self._driven_beside(net["d"], net["g"]) != self._driven_beside(net["g"], net["d"]):
                continue
            properties: dict[str, Any] = {"matched": same_size(device, partners[0])}
            if net["s"] == partners[0].terminals["s"]:
                properties["common_source"] = net["s"]
            self._add("cross_coupled_pair", (device, partners[0]), properties)

    def _driven_beside(self, net: str, other: str) -> bool:
        """Whether ``net`` hangs on the channel of a transistor that is not driven by ``other``.

        Where one net of a loop does and the other does not, the loop follows an input: it is the feedback of a Schmitt
        trigger or the keeper of a latch, and the two transistors are no mirror images.
        """
        return any(
            name in self._mos_by_id and self._mos_by_id[name].terminals["g"] != other for name in self._channels[net]
        )

    def _current_mirrors(self) -> None:
        groups: dict[tuple[str, ...], list[Device]] = defaultdict(list)
        by_source: _BySource = defaultdict(list)
        for device in self._free():
            net = device.terminals
            groups[device.type, device.model.lower(), net["s"], net["g"]].append(device)
            by_source[net["s"], device.type].append(device)
        for (_, _, _, gate), members in groups.items():
            if len(members) < 2 or gate in self._supplies:
                continue
            members = [member for member in members if member.id not in self._taken]  # noqa: PLW2901
            diodes = [member for member in members if member.terminals["d"] == gate]
            if diodes and len(members) > len(diodes):
                outputs = [*diodes[1:], *(member for member in members if member.terminals["d"] != gate)]
                self._mirror(diodes[0], _of_equal_length(diodes[0], outputs), by_source)
            elif not diodes:
                self._wide_swing_mirror(gate, members, by_source)
                self._driven_sources(gate, [member for member in members if member.id not in self._taken])

    def _mirror(self, reference: Device, outputs: list[Device], by_source: _BySource) -> None:
        """Add a mirror with its diode-connected reference, and the cascode devices on top of it and of its outputs.

        The gates of the cascodes are on the cascode of the reference, connected as a diode, or on a bias of their own.
        """
        top = self._cascode_above(reference, by_source)
        tops = self._cascodes(top, outputs, by_source) if top is not None else []
        biased = bool(tops) and tops[0].terminals["d"] != tops[0].terminals["g"]
        self._add_mirror(reference, outputs, tops, "biased_cascode" if biased else "cascode" if tops else "simple")

    def _wide_swing_mirror(self, gate: str, members: list[Device], by_source: _BySource) -> None:
        """Add a mirror whose gates are driven by the drain of the cascode above its reference."""
        for reference in members:
            top = self._cascode_above(reference, by_source)
            if top is None or top.terminals["d"] != gate:
                continue
            outputs = _of_equal_length(reference, [member for member in members if member is not reference])
            tops = self._cascodes(top, outputs, by_source)
            if tops:
                stacked = top.terminals["g"] == gate
                self._add_mirror(reference, outputs, tops, "stacked" if stacked else "wide_swing")
            return

    def _driven_sources(self, gate: str, members: list[Device]) -> None:
        """Add three and more current sources at a supply whose gates an amplifier drives, as those of a bandgap.

        Two are a pair or none; gates of both types are those of switches.
        """
        lengths = Counter(_gate_length(member) for member in members)
        alike = [member for member in members if _gate_length(member) == lengths.most_common(1)[0][0]]
        if len(alike) < 3 or alike[0].terminals["s"] not in self._supplies:
            return
        drains = {member.terminals["d"] for member in alike}
        one_type = len({each.type for each in self._mos if each.terminals["g"] == gate}) == 1
        driven = any(name in self._mos_by_id for name in self._channels[gate])
        if driven and one_type and len(drains) > 2 and not any(net in self._supplies for net in drains):
            self._add_mirror(alike[0], alike[1:], [], "driven")

    def _cascode_above(self, device: Device, by_source: _BySource) -> Device | None:
        drain = device.terminals["d"]
        if drain in self._supplies:
            return None
        free = by_source.get((drain, device.type), [])
        # A taken device stays taken, so each is removed once: the cost stays linear in the devices of a net.
        while free and free[-1].id in self._taken:
            del free[-1]
        while len(free) > 1 and free[-2].id in self._taken:
            del free[-2]
        return free[0] if len(free) == 1 else None

    def _cascodes(self, top: Device, outputs: list[Device], by_source: _BySource) -> list[Device]:
        """Return the cascode of the reference and of every output that has one of its own, or nothing without any."""
        above = [self._cascode_above(output, by_source) for output in outputs]
        found = [d for d in above if d is not None and d.terminals["g"] == top.terminals["g"]]
        distinct = {device.id for device in (top, *found)}
        return [top, *found] if found and len(distinct) == 1 + len(found) else []

    def _add_mirror(self, reference: Device, outputs: list[Device], tops: list[Device], topology: str) -> None:
        ratios = {output.id: _ratio(output, reference) for output in outputs}
        bottoms = [reference, *outputs]
        properties: dict[str, Any] = {
            "matched": all(ratio is not None for ratio in ratios.values()),
            "topology": topology,
            "reference": reference.id,
            "outputs": [output.id for output in outputs],
            "ratios": ratios,
            "common_gate": reference.terminals["g"],
            "common_source": reference.terminals["s"],
        }
        if tops:
            properties["cascodes"] = [device.id for device in tops]
        self._add("current_mirror", [*bottoms, *tops], properties)

    def _input_pairs(self) -> None:
        search = InputPairs(self._circuit, self._supplies, self._channels)
        for found in (search.with_one_source, search.with_two_sources):
            for kind, first, second, properties in found(self._free()):
                self._add(kind, (first, second), properties)

    def _symmetric_pairs(self) -> None:
        seeds: list[tuple[str, str]] = []
        for kind in ("differential_pair", "cross_coupled_pair", "symmetric_pair"):
            seeds.extend((ids[0], ids[1]) for ids, _ in self._found[kind])
        known = [(self._circuit.device(a), self._circuit.device(b)) for a, b in seeds]
        loads = [d for d in self._circuit.devices if is_capacitor(d) and d.terminals["g"] not in self._supplies]
        loads += [device for device in self._circuit.devices if device.type in {"resistor", "capacitor"}]
        for kind, first, second in symmetric_partners([*self._mos, *loads], known, self._taken, self._supplies):
            properties: dict[str, Any] = {"matched": True}
            for terminal, name in (("g", "common_gate"), ("s", "common_source")) if first.is_mos else ():
                if first.terminals[terminal] == second.terminals[terminal]:
                    properties[name] = first.terminals[terminal]
            if not first.is_mos:
                properties["facing"] = [list(nets) for nets in facing_nets(first, second)]
            self._add(kind, (first, second), properties)

    def _inverters(self) -> None:
        by_nets: dict[tuple[str, str], list[Device]] = defaultdict(list)
        for device in self._free():
            by_nets[device.terminals["g"], device.terminals["d"]].append(device)
        for (gate, drain), members in by_nets.items():
            by_type = {member.type: member for member in members if member.terminals["s"] in self._supplies}
            if gate != drain and len(members) == len(by_type) == 2:
                self._add("inverter", (by_type["pmos"], by_type["nmos"]), {"input": gate, "output": drain})


def _of_equal_length(reference: Device, outputs: list[Device]) -> list[Device]:
    """Return the outputs that can be drawn matched to the reference; all of them when none can."""
    matching = [output for output in outputs if _gate_length(output) == _gate_length(reference)]
    return matching or outputs


def _ratio(output: Device, reference: Device) -> float | None:
    """Return how many times the reference's current an output carries, or ``None`` when their lengths differ."""
    if output.params.get("l") != reference.params.get("l") or output.params.get("stack") != reference.params.get(
        "stack"
    ):
        return None
    own, base = _strength(output), _strength(reference)
    return None if own is None or base is None else round(own / base, 6)


def _gate_length(device: Device) -> tuple[float | None, float]:
    return device.params.get("l"), device.params.get("stack", 1)


def _strength(device: Device) -> float | None:
    """Return the electrical width in units that compare within one netlist."""
    if "nfin" in device.params:
        return float(device.params["nfin"]) * device.nf * device.m
    return float(device.params["w"]) * device.m if "w" in device.params else None


def _is_dummy(device: Device, rails: Mapping[str, frozenset[str]]) -> bool:
    net = device.terminals
    return net["d"] == net["s"] or net["g"] in rails[device.type]
