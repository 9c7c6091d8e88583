"""The kinds of devices: ``device_kinds.json`` declares each once, and every other module reads its declaration.

A declaration states the terminals and what they are for, the parameters and how closely LVS compares them, how netlists
name the device, how several devices fold into one, and what a technology file states about it. Three tables refer to
the kinds by name: ``layoutkit.draw.generators.GENERATORS`` draws them, ``layoutkit.extract.passive_devices.RECIPES``
finds them in a layout, and ``layoutkit.technology.passive_sizes.SIZE_OF_VALUE`` holds those whose size can follow from
their value. A kind that the first two lack can be read from netlists, but is neither drawn nor compared.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from layoutkit.errors import enumerated
from layoutkit.file_schema import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZE_TOLERANCE = 1e-3
"""Largest relative difference of a size between layout and netlist. [1]"""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a device.

    Attributes:
        name: Name in a circuit.
        unit: ``m``, ``m2``, ``ohm``, ``F``; empty for a count.
        tolerance: Largest relative difference that LVS accepts [1]; None where LVS does not compare it.
        spellings: Other names of it in netlists, in lowercase.
    """

    name: str
    unit: str = ""
    tolerance: float | None = None
    spellings: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileFields:
    """What a technology file states about a device of one kind, beyond what it states about every device.

    Attributes:
        layers: Fields that each name one layer or conductor.
        layer_lists: Optional fields that each list layers.
        value: Field with the number from which the device's value follows; empty where it has none.
        edge_value: Optional field with the same number per length of the edge.
        diffusion: Whether ``diffusion_of`` names the transistor whose source and drain diffusion the device is made of;
            a resistor may have one.
        well: Whether ``body`` may name the well whose junction the device is.
        frames: Whether ``frames`` states what surrounds an emitter, and ``base_growth`` and ``usual_size`` may.
        cell: Whether ``cell`` states the foundry's cell, as ``device_cell`` describes; ``usual_size`` may be stated.
        text: Whether only the text ``ring_text`` makes it this device, so that it must be stated.
    """

    layers: tuple[str, ...] = ()
    layer_lists: tuple[str, ...] = ()
    value: str = ""
    edge_value: str = ""
    diffusion: bool = False
    well: bool = False
    frames: bool = False
    cell: bool = False
    text: bool = False


@dataclass(frozen=True, eq=False)
class DeviceKind:
    """One kind of device.

    Attributes:
        name: Name in circuits and technology files.
        noun: What messages call it.
        terminals: The terminals it must connect, in the order of a SPICE card.
        optional: The terminals it may connect after them.
        ends: The two terminals between which its current flows.
        exchangeable: Whether the ends may be exchanged without changing the circuit.
        gate: The terminal that controls the current without carrying any; empty where there is none.
        bulk: The terminal that is the well or the substrate around the device; empty where there is none.
        letter: First letter of its SPICE card.
        terminal_names: Other names of terminals in JSON netlists.
        other_names: Other names of the kind in JSON netlists.
        model_cards: Types of ``.model`` cards that describe it.
        model_names: Regular expression for its models' names: it matches whole parts between underscores.
        parameters: Its parameters.
        value: Name of the parameter that gives its value; empty where it has none.
        rectangle: Whether ``w`` and ``l`` are the sides of a rectangle, which a layout gives the longer one first.
        in_series: ``lengths``: devices of equal width in series are one device of their total length. ``stacks``: the
            same, for one gate, and only where the circuits do not match otherwise. Empty: devices in series stay apart.
        fingers: Whether LVS reports another number of parallel parts than the netlist's.
        in_ring: Whether it is drawn in a ring of substrate taps even where it has no bulk terminal.
        tied_dummies: Whether a dummy has both ends on one net; one that leads nowhere is a fault.
        always_tied: Whether its ends are one net in every circuit, as those of a tap are; LVS then only asks whether
            the layout has as many.
        together: How many equal devices are drawn in one block about a common centroid.
        substrate: The terminal that is the substrate in every device of the kind; empty where none is.
        well_inside: The terminal that is a p well in which other devices may lie, and the one of the n well around it.
        area_counts: Whether an area far larger than any emitter's is a number of units, as SPICE's area factor is.
        file: What a technology file states about it; None where technologies have no such device.
        instead: What to use in a process that has no such device, for a message.
        lost: Likely reasons why a layout lacks it, for a message of LVS.
        stray: Likely reasons why only the layout has it.
        part: What LVS calls a shape that should be such a device and is none.
        none_made: Sentence of LVS about such a shape, with ``{noun}``, ``{place}`` and ``{technology}``.
        not_made_because: Likely reasons for it.
    """

    name: str
    noun: str
    terminals: tuple[str, ...]
    ends: tuple[str, str]
    letter: str
    optional: tuple[str, ...] = ()
    exchangeable: bool = False
    gate: str = ""
    bulk: str = ""
    terminal_names: Mapping[str, str] = field(default_factory=dict)
    other_names: tuple[str, ...] = ()
    model_cards: tuple[str, ...] = ()
    model_names: str = ""
    parameters: tuple[Parameter, ...] = ()
    value: str = ""
    rectangle: bool = False
    in_series: Literal["", "lengths", "stacks"] = ""
    fingers: bool = False
    in_ring: bool = False
    tied_dummies: bool = False
    always_tied: bool = False
    together: int = 1
    substrate: str = ""
    well_inside: tuple[str, str] | None = None
    area_counts: bool = False
    file: FileFields | None = None
    instead: str = ""
    lost: str = "it was not drawn, it lost its marker layer, or it is shorted"
    stray: str = "the netlist lacks it"
    part: str = ""
    none_made: str = ""
    not_made_because: str = ""
    roles: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        ends = dict.fromkeys(self.ends, "e") if self.exchangeable else {}
        roles = {terminal: ends.get(terminal, terminal) for terminal in self.all_terminals}
        object.__setattr__(self, "roles", roles)

    @property
    def all_terminals(self) -> tuple[str, ...]:
        """All terminals, in the order of a SPICE card."""
        return (*self.terminals, *self.optional)

    @property
    def is_mos(self) -> bool:
        """Whether this is a MOS transistor, whose ``w`` is divided into fingers."""
        return bool(self.gate)

    @property
    def one_size(self) -> bool:
        """Whether its devices are drawn as the foundry's cell of one size."""
        return self.file is not None and self.file.cell and not self.in_cells

    @property
    def in_cells(self) -> bool:
        """Whether a unit is the foundry's cell of a number of equal parts, such as the emitters of an HBT."""
        return self.file is not None and self.file.cell and self.parameter("nf") is not None

    @property
    def sensing(self) -> tuple[str, ...]:
        """The terminals of a transistor that carry no direct current: its gate and bulk; none of other devices."""
        return (self.gate, self.bulk) if self.gate else ()

    @property
    def letters(self) -> tuple[str, str]:
        """The letters with which a card of a device or of its subcircuit begins."""
        return self.letter, "X"

    @property
    def compared(self) -> dict[str, float]:
        """The parameters that LVS compares, each with its tolerance. [1]"""
        return {each.name: each.tolerance for each in self.parameters if each.tolerance is not None}

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter that a netlist calls ``name``, None where this kind has none of that name."""
        return next((each for each in self.parameters if name in (each.name, *each.spellings)), None)


DEEP_WELL = "deep_well"
"""Parameter of a device that lies in a deep well, whatever the net of its body; 1 where it is stated."""
BLOCKS = ("drain_block", "source_block")
"""Parameters of a transistor whose silicide is blocked: how far beside the gate at drain and source."""
OTHER_LENGTHS = ("wfeed", *BLOCKS)
"""Parameters that are lengths, besides w and l."""


def _declared() -> dict[str, DeviceKind]:
    """Return the kinds that ``device_kinds.json`` declares, by name."""
    stated: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))["kinds"]
    found = {}
    for name, own in stated.items():
        entry = {**stated.get(own.get("like", ""), {}), **own}
        parameters = tuple(_parameter(each, rule) for each, rule in entry["parameters"].items())
        file = FileFields(**frozen(entry["file"])) if "file" in entry else None
        plain = {key: frozen(value) for key, value in entry.items() if key not in {"like", "parameters", "file"}}
        found[name] = DeviceKind(name, parameters=parameters, file=file, **plain)
    return found


def _parameter(name: str, stated: Mapping[str, Any]) -> Parameter:
    tolerance = SIZE_TOLERANCE if stated.get("compared") else None
    return Parameter(name, stated.get("unit", ""), tolerance, tuple(stated.get("spellings", ())))


KINDS = _declared()
"""Name to kind. Where two patterns match a model's name, the first kind counts.

A ``mos_capacitor`` is one that its PDK names; names such as ``nmoscap`` of other processes are plain capacitors.
"""

MOS_KINDS = tuple(name for name, kind in KINDS.items() if kind.is_mos)
UNEQUAL_ENDS = {name: replace(KINDS[name], exchangeable=False) for name in MOS_KINDS}
"""The kinds of transistors whose drain is not drawn as their source is, so that LVS does not exchange the two."""
DRAWN_KINDS = tuple(name for name, kind in KINDS.items() if kind.file is not None)
PASSIVE_KINDS = tuple(name for name in DRAWN_KINDS if name not in MOS_KINDS)
"""The kinds that a technology describes by layers of their own rather than as a transistor."""


def plural_nouns() -> str:
    """Return what can be drawn, for a message: ``MOS transistors, capacitors and resistors``."""
    return enumerated(["MOS transistors", *(f"{KINDS[name].noun}s" for name in PASSIVE_KINDS)])
