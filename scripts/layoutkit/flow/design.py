"""From a netlist to what is to be drawn: the circuit mapped to a technology, its groups of devices, its supplies."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from layoutkit.errors import NetlistError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.flow.groups import Group
    from layoutkit.flow.passive_modules import PassiveGroup
    from layoutkit.technology import Technology


@dataclass(frozen=True)
class LayoutRequest:
    """What to lay out.

    Attributes:
        netlist_path: SPICE, CDL, Spectre or JSON netlist.
        technology: Name of a shipped technology or path of a technology file; None for the workspace's.
        workspace: Folder that receives every file; None for the default one.
        top: Subcircuit; None for the netlist's own top.
        parameters: Values of parameters that the netlist leaves open or sets itself, such as ``{"w0": "2u"}``.
        width_per: Whether ``W`` is of a whole ``device`` or of one ``finger``; ``auto``: of one finger where no other
            reading fits the whole netlist, else of the device.
        dummies: Dummy fingers at each end of a matched row.
        seed: Seed of the placement search.
        waived_layers: Layers that DRC need not judge and LVS need not read.
        black_boxes: Empty or undefined subcircuits whose instances are kept as black boxes: not drawn, not compared.
    """

    netlist_path: str
    technology: str | None = None
    workspace: str | None = None
    top: str | None = None
    parameters: Mapping[str, str | float] | None = None
    width_per: Literal["auto", "device", "finger"] = "auto"
    dummies: int = 0
    seed: int = 1
    waived_layers: Sequence[str] = ()
    black_boxes: tuple[str, ...] = ()

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> LayoutRequest:
        """Return the request in a tool's parameters, which have these names; what else they hold is not looked at."""
        return cls(**{each.name: params[each.name] for each in fields(cls) if each.name in params})


@dataclass(frozen=True)
class Design:
    """A circuit ready to be drawn.

    Attributes:
        technology: The process.
        circuit: Mapped to ``technology``, with its modules recognised.
        groups: What is drawn in one cell each.
        supplies: Power and ground nets.
        dummies: Dummy fingers at each end of a matched row.
    """

    technology: Technology
    circuit: Circuit
    groups: tuple[Group | PassiveGroup, ...]
    supplies: frozenset[str]
    dummies: int


def read_circuit(request: LayoutRequest, technology: Technology) -> tuple[Circuit, list[str]]:
    """Return the circuit of ``request`` mapped to ``technology``, with its modules, and what was decided, in words.

    Raises:
        LayoutkitError: If the netlist cannot be read or mapped, or holds no devices.
    """
    from layoutkit.circuit import MapOptions, Target, map_circuit, read_netlist, recognise

    read = read_netlist(
        request.netlist_path,
        top=request.top,
        identify_modules=False,
        black_boxes=request.black_boxes,
        parameters=request.parameters,
    )
    mapped = map_circuit(read, Target.from_technology(technology), MapOptions(width_per=request.width_per))
    if not mapped.circuit.devices:
        raise NetlistError(f"the netlist has no devices, so there is nothing to lay out: {request.netlist_path}")
    circuit = mapped.circuit.with_modules(recognise(mapped.circuit))
    return circuit, [*read.warnings, *(w for w in mapped.circuit.warnings if w not in read.warnings)]


def make_design(technology: Technology, circuit: Circuit, dummies: int) -> tuple[Design, list[str]]:
    """Return which devices are drawn together, and what was decided, in words.

    Raises:
        UnsupportedOperationError: If a device cannot be drawn.
    """
    from layoutkit.circuit import find_supplies
    from layoutkit.flow.groups import group_devices
    from layoutkit.flow.passive_modules import group_passives

    supplies = find_supplies(circuit)
    transistors, notes = group_devices(circuit, technology)
    groups: tuple[Group | PassiveGroup, ...] = (*transistors, *group_passives(circuit, technology))
    return Design(technology, circuit, groups, frozenset({*supplies.power, *supplies.ground}), dummies), list(notes)
