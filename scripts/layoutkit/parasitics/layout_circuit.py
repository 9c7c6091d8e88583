"""The circuit that a layout holds, under the names of its input netlist."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from layoutkit.errors import LayoutkitError, listed
from layoutkit.lvs.compare import compare
from layoutkit.lvs.lvs_result import measured_circuit
from layoutkit.parasitics.terminal_feeds import Feeds, terminal_feeds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.extract.extracted import Extraction
    from layoutkit.lvs.lvs_result import LvsResult

    FeedsOfNet = dict[tuple[str, str], Feeds]


@dataclass(frozen=True)
class LayoutCircuit:
    """What a layout holds, under the names of the netlist.

    Attributes:
        extraction: What was extracted.
        circuit: The devices as drawn and measured, with the netlist's names, ports and order of source and drain.
        dummies: The dummies, likewise.
        nets: Name of each net of the layout, by number.
        sources: Index of the extracted device, and whether its ends are exchanged, by name in ``circuit``.
    """

    extraction: Extraction
    circuit: Circuit
    dummies: tuple[Device, ...]
    nets: Mapping[int, str]
    sources: Mapping[str, tuple[int, bool]]

    @cached_property
    def feeds(self) -> dict[int, FeedsOfNet]:
        """What feeds the terminals of each net, by its number, under the names of the netlist."""
        names = {index: (name, exchanged) for name, (index, exchanged) in self.sources.items()}
        feeds: dict[int, FeedsOfNet] = defaultdict(dict)
        for (index, terminal), each in terminal_feeds(self.extraction).items():
            name, exchanged = names[index]
            ends = self.extraction.devices[index].kind.ends
            own = ends[1 - ends.index(terminal)] if exchanged and terminal in ends else terminal
            feeds[each.net][name, own] = each
        return feeds

    @property
    def substrate(self) -> str:
        """Net of the substrate; empty where no named net reaches it."""
        found = self.extraction.substrate
        return next((self.nets[net.id] for net in self.extraction.nets.values() if net.name == found), "")


def layout_circuit(extraction: Extraction, circuit: Circuit, result: LvsResult | None = None) -> LayoutCircuit:
    """Return the circuit of a layout under the names of ``circuit``, its input netlist.

    Args:
        extraction: What was extracted.
        circuit: The netlist.
        result: How LVS compared the two; None to compare them here.

    Raises:
        LayoutkitError: If the layout is not that circuit, or has layers that extraction does not read.
        NetlistError: If the netlist holds models that the technology does not have.
    """
    result = compare(extraction, circuit) if result is None else result
    unread = extraction.coverage.unchecked
    if unread and not result.mismatches:
        shown = listed(layer.shown for layer in unread)
        raise LayoutkitError(
            f"extraction does not read all layers of {extraction.cell_name}, so its figures may not be those of "
            f"the netlist: {shown}; list those that change no device or net in waived_layers, then try again",
            details=extraction.coverage.to_data(),
        )
    if not result.matched:
        shown = "; ".join(mismatch.message for mismatch in result.mismatches[:3])
        raise LayoutkitError(
            f"the layout of {extraction.cell_name} is not the circuit {circuit.name}, so that its figures would be of "
            f"another one: {result.mismatch_count} differences, the first: {shown}; mend what lvs.run_check reports, "
            "then try again",
            details={"mismatch_count": result.mismatch_count},
        )
    nets = _net_names(extraction, circuit, result)
    measured, idle = measured_circuit(extraction)
    by_layout_name = {net.name: nets[net.id] for net in extraction.nets.values()}
    devices, sources, stated = [], {}, {device.id: device for device in circuit.devices}
    taken: set[str] = set()
    for index, device in enumerate(measured.devices):
        drawn = _renamed_nets(device, by_layout_name)
        names = [name for name in (*result.device_pairs.get(device.id, ()), device.id) if name not in taken]
        name = names[0] if names else f"{device.id}_{index}"
        taken.add(name)
        wanted = stated.get(name)
        exchanged = wanted is not None and _exchanged(drawn, wanted)
        written = wanted is not None and wanted.exchanged
        devices.append(replace(drawn.with_ends_exchanged() if exchanged else drawn, id=name, exchanged=written))
        sources[name] = (index, exchanged)
    return LayoutCircuit(
        extraction=extraction,
        circuit=replace(circuit, devices=tuple(devices), modules=(), subcircuits=()),
        dummies=tuple(_renamed_nets(device, by_layout_name) for device in idle),
        nets=nets,
        sources=sources,
    )


def _net_names(extraction: Extraction, circuit: Circuit, result: LvsResult) -> dict[int, str]:
    """Return a name of each net of the layout: the netlist's, else its own, made different from all others."""
    names: dict[int, str] = {}
    taken = set(circuit.nets)
    claimed: set[str] = set()
    for number in sorted(extraction.nets):
        name = result.nets.get(number)
        if name is not None and name not in claimed:
            names[number] = name
            claimed.add(name)
    for number, net in sorted(extraction.nets.items()):
        if number not in names:
            name = net.name if net.name not in taken else f"{net.name}_{number}"
            taken.add(name)
            names[number] = name
    return names


def _renamed_nets(device: Device, names: Mapping[str, str]) -> Device:
    return replace(device, terminals={terminal: names.get(net, net) for terminal, net in device.terminals.items()})


def _exchanged(device: Device, wanted: Device) -> bool:
    """Return whether a device has its two ends the other way round than the one of the netlist."""
    if not device.kind.exchangeable or wanted.kind.ends != device.kind.ends:
        return False
    first, second = device.kind.ends
    own, theirs = ((each.terminals.get(first), each.terminals.get(second)) for each in (device, wanted))
    return own != theirs and own == theirs[::-1]
