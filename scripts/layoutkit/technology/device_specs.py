"""The devices of a technology: what is drawn for each, and which sizes it may have.

Lengths are integers in database units, areas in square database units; names of values in micrometres end in ``_um``.

Rectangular frames surround the emitter of a vertical bipolar transistor, at distances from its edge::

    +-------------------------+    collector   p+ ring in the substrate
    |  +-------------------+  |    well        from the emitter to beyond the base ring
    |  |  +-------------+  |  |    base        n+ ring in the well
    |  |  |  +-------+  |  |  |
    |  |  |  |emitter|  |  |  |    p+ diffusion in the well
    |  |  |  +-------+  |  |  |
    |  |  +-------------+  |  |
    |  +-------------------+  |
    +-------------------------+

A frame begins and ends at distances from the emitter, in x and in y; one that begins at 0 covers the emitter as well.
The numbers are those of the foundry's cell. The other frames are implants and the markers of the device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.errors import TechnologyError
from layoutkit.technology.device_kinds import BLOCKS, KINDS, UNEQUAL_ENDS
from layoutkit.technology.parasitic_data import MatchingData

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.technology.device_cell import DeviceCell
    from layoutkit.technology.device_kinds import DeviceKind

    Distance = tuple[int, int]
    Frame = tuple[Distance, Distance]

FRAMES = ("base", "collector", "well", "emitter_implant", "collector_implant")
"""The frames that every vertical bipolar transistor has."""
OPTIONAL_FRAMES = ("base_implant",)
"""The implant of the base ring, where the process draws one."""


@dataclass(frozen=True, kw_only=True)
class DrawnSpec:
    """What every device of a technology states: what it is called and drawn with, and which sizes it may have. [dbu]

    Attributes:
        name: Name in the technology.
        type: Name of its kind, such as ``resistor``.
        model: Name of the SPICE model.
        min_l: Minimum length.
        min_w: Minimum width of gate, body or plate.
        max_l: Maximum length; None if the process states none.
        max_w: Maximum width.
        default: Whether a device of this type means it if the netlist names no model of the technology.
        markers: Layers drawn over the whole device, or over the diffusion rows of transistors (threshold implants).
        covers: Layers drawn over the whole module with its tap ring (thick oxide), which must hold the device.
        optional: Layers that may lie over the device and change nothing in it.
        ring_text: The text that makes it this device, on its closed ring of taps; empty where none does. Capacitor:
            the text that the foundry's decks look for in its ring. Tap: that in its marker, or in its well.
        dimensions: Drawing dimensions of this device.
    """

    name: str
    type: str
    model: str
    min_l: int
    min_w: int
    max_l: int | None = None
    max_w: int | None = None
    default: bool = False
    markers: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    ring_text: str = ""
    dimensions: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> DeviceKind:
        """The declaration of its kind."""
        return KINDS[self.type]


@dataclass(frozen=True, kw_only=True)
class DeviceSpec(DrawnSpec):
    """One MOS flavour. [dbu]

    ``implant`` or ``bulk_implant`` is None where the process makes diffusion of that type without drawing it.
    ``block`` is the layer that blocks silicide over its gates and beside them, ``source_marker`` the one over its
    sources: both or none.
    ``drain_marker`` is drawn over a device whose drain is a tap beyond the gate, in a well of its own (NMOS) or in a
    hole of the well above a deep n well (PMOS); empty for other devices.
    ``matching`` is what the process publishes about equal devices.
    """

    implant: str | None = None
    bulk_implant: str | None = None
    well: str | None = None
    supply_v: float | None = None
    block: str = ""
    source_marker: str = ""
    drain_marker: str = ""
    matching: MatchingData = field(default_factory=MatchingData)
    saturation_ma_um: float | None = None
    """Drain current per width of the shortest channel at VGS = VDS = supply. [mA/um]"""

    @property
    def kind(self) -> DeviceKind:
        """The declaration of its kind."""
        return UNEQUAL_ENDS[self.type] if self.unequal_ends else KINDS[self.type]

    @property
    def unequal_ends(self) -> bool:
        """Whether its drain is not drawn as its source is."""
        return bool(self.block or self.drain_marker)

    @property
    def beyond_channel(self) -> int:
        """How far an extended drain lets the gate reach beyond the channel, over the drain's well and field. [dbu]"""
        return self.dimensions["drain_well_overlap"] + self.dimensions["gate_over_field"] if self.drain_marker else 0

    @property
    def beyond_gate(self) -> tuple[int, int] | None:
        """How far an extended drain, and its source, lie beyond the gate; None for other drains. [dbu]"""
        dimensions = self.dimensions
        return (dimensions["drain_space"] - dimensions["gate_over_field"], 0) if self.drain_marker else None

    def blocked(self, params: Mapping[str, float], dbu_um: float) -> tuple[int, int] | None:
        """Return how far silicide is blocked beside its gate at drain and source, as stated or as usual. [dbu]

        Args:
            params: Parameters of a device. [m]
            dbu_um: Database unit. [um]
        """
        if not self.block:
            return None
        drain, source = (
            round(params[name] * 1e6 / dbu_um) if name in params else self.dimensions[name] for name in BLOCKS
        )
        return drain, source

    def block_faults(self, params: Mapping[str, float], dbu_um: float) -> list[str]:
        """Return what is wrong with the lengths of the silicide block that a device states."""
        faults = []
        for name, length in zip(BLOCKS, self.blocked(params, dbu_um) or (), strict=False):
            low, high = (round(self.dimensions[f"{name}_{end}"] * dbu_um, 6) for end in ("min", "max"))
            if not low <= round(length * dbu_um, 6) <= high:
                faults.append(f"{name} of {self.name} is {low:g} to {high:g} um, got {length * dbu_um:g} um")
        return faults

    @property
    def placed_with(self) -> str:
        """The type of the blocks with which its blocks share rows and wells; an extended drain needs its own well."""
        return f"{self.type} {self.name}" if self.drain_marker else self.type

    @property
    def marked_by(self) -> tuple[str, ...]:
        """The layers, besides implants and well, that distinguish this flavour from others: markers and covers."""
        return (*self.markers, *self.covers, *filter(None, (self.block, self.drain_marker)))


def width_name(width_um: float) -> str:
    """Return a width [um] as model names contain it: ``1p41`` for 1.41."""
    return f"{width_um:.2f}".replace(".", "p")


@dataclass(frozen=True, kw_only=True)
class PassiveSpec(DrawnSpec):
    """One device that is not a transistor. [dbu, dbu2]

    ``{width}`` in the name of its model stands for the width, written ``1p41`` for 1.41 um.

    Attributes:
        terminals: As many as its kind has, or one more where the model has a bulk.
        parts: Layer by part. Resistor: ``body`` carries the current, ``core`` on it makes it resistive and gives the
            length. Capacitor: ``bottom`` (a conductor), ``plate``, ``cut`` and ``top`` (a conductor). MOS capacitor:
            ``implant`` of the diffusion beside its gate, that of the transistor or of the taps of its body.
        conductor: Resistor: the conductor that its body is; empty for one of poly or silicon.
        well: Resistor: the well that its body is, in which its heads are taps; its core layer where none draws it.
            Diode: the well whose junction it is. Empty for others.
        diffusion_of: The transistor whose source and drain diffusion it is made of, with its well, implants and covers;
            for a MOS capacitor the transistor that it is drawn as; for a resistor of diffusion or well the transistor
            whose well and taps surround it; for a diode of a well the one whose taps do; for a tap the one whose body
            it contacts.
        core_markers: Layers drawn exactly over the core of each resistor. Poly under them is not a wire.
        resistive: Layers that make the body of a resistor resistive outside its core as well.
        excludes: Layers that must not touch the core of a resistor, the gate of a MOS capacitor, or other diffusion.
        value: Ohms per square, or farads per square micrometre of plate; 0 where the kind has no value.
        edge_value: Farads per micrometre of the plate's edge; 0 for resistors.
        widths: The allowed widths; empty if any width is allowed.
        min_area: Minimum area of a plate.
        max_area: Maximum area of a plate.
        other_models: Other model names that the process's netlists use for it, whatever its width.
        frames: Vertical bipolar: what surrounds its emitter, as the head of this module describes.
        base_growth: Vertical bipolar: the base ring is ``base_growth[0]`` of the emitter's width wide in x where that
            is more than ``base_growth[1]`` [dbu], and all beyond it lies farther out; None where it is always the same.
        usual_size: Width and length of a device whose netlist states none; None where there is only one.
        usual_ma_um: Bipolar: collector current in usual use per length of its emitters [mA/um]; None where not stated.
        bend: Resistor: the straight length that a bend counts as in the model: a share of the width, and a length
            [um] in addition, and the space [um] in that; None where the process's netlists state no bends.
        heads: Resistor: layers drawn over each row of heads, from the end of the core markers on.
        options: Option of the process's masks -> the value with which they make this device.
        cell: The foundry's cell that it is drawn as; ``w`` is then the width of all emitters of one unit.
    """

    terminals: int
    parts: Mapping[str, str]
    value: float
    edge_value: float
    widths: tuple[int, ...]
    min_area: int
    max_area: int | None
    other_models: tuple[str, ...] = ()
    core_markers: tuple[str, ...] = ()
    resistive: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    conductor: str = ""
    well: str = ""
    diffusion_of: DeviceSpec | None = None
    frames: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=dict)
    base_growth: tuple[float, int] | None = None
    usual_size: tuple[int, int] | None = None
    usual_ma_um: float | None = None
    bend: tuple[float, ...] | None = None
    heads: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    cell: DeviceCell | None = None

    def bend_um(self, width_um: float, space_um: float | None = None) -> float:
        """Return the straight length that one bend counts as, between bars at a distance, else the usual one. [um]"""
        widths, length, usual = self.bend or (0.0, 0.0, 0.0)
        return widths * width_um + length + (0.0 if space_um is None else space_um - usual)

    @property
    def fed(self) -> bool:
        """Whether it is a capacitor in a ring of taps with feeds of a stated width: for radio frequencies."""
        return "feed" in self.dimensions

    def usual_feed(self, width: int) -> int:
        """Return the width of the feeds of a plate of ``width`` whose netlist states none; 0 without feeds. [dbu]"""
        return min(self.dim("feed"), width - 2 * self.dim("feed_inset")) if self.fed else 0

    @property
    def placed_with(self) -> str:
        """The type of the blocks with which its blocks share rows and wells.

        A well with a capacitor of accumulated carriers holds no transistors (varac.7 of sky130A).
        """
        lies_apart = self.kind.substrate or self.accumulates or (self.well and not self.in_p_well)
        if self.diffusion_of is None or lies_apart:
            return self.type
        return self.diffusion_of.type

    @property
    def only_size(self) -> tuple[int, int] | None:
        """Width and length of a device that exists in one size; None where it has others."""
        return (self.min_w, self.min_l) if (self.min_w, self.min_l) == (self.max_w, self.max_l) else None

    def emitter_sides(self, sides: Iterable[float], metre: float) -> tuple[float, float]:
        """Return the width of all emitters of a unit and the length of one.

        Args:
            sides: The two, in either order. [m]
            metre: A database unit. [m]
        """

        def beyond(side: float) -> float:
            return max(self.min_l * metre - side, side - (self.max_l or self.min_l) * metre, 0.0)

        length, width = sorted(sides, key=lambda side: (round(beyond(side) / metre), -side))
        return width, length

    @property
    def body_terminal(self) -> str:
        """The terminal that is the well or substrate around it: its bulk, or an end of a junction; may be empty."""
        if self.kind.substrate:
            return self.kind.substrate
        if self.diffusion_of is not None and "body" not in self.parts:
            return self.kind.ends[0 if self.diffusion_of.type == "nmos" and "implant" not in self.parts else 1]
        return self.kind.bulk if self.terminals > len(self.kind.terminals) else ""

    @property
    def in_substrate(self) -> bool:
        """Whether one end of it is the substrate, so that all such devices share the net of that end."""
        return bool(self.kind.substrate) or (self.diffusion_of is not None and self.diffusion_of.well is None)

    @property
    def in_p_well(self) -> bool:
        """Whether its ``well`` is a p well in a deep well, whose taps surround it."""
        return bool(self.well) and self.diffusion_of is not None and self.diffusion_of.type == "pmos"

    @property
    def undrawn_well(self) -> bool:
        """Whether its ``well`` is what an n well leaves open, so that only a marker tells where the body is."""
        return bool(self.well) and self.well == self.parts.get("core")

    @property
    def bare(self) -> bool:
        """Whether it is a diode of diffusion without an implant, which metal makes a Schottky diode."""
        return self.type == "diode" and self.diffusion_of is not None and self.diffusion_of.implant in self.excludes

    @property
    def accumulates(self) -> bool:
        """Whether it is a MOS capacitor whose diffusion is of the type of its body, so that its gate accumulates."""
        return self.diffusion_of is not None and self.parts.get("implant") == self.diffusion_of.bulk_implant

    @property
    def cuts_body(self) -> tuple[str, ...]:
        """The layers that separate a resistor from its heads: its core markers, else its core layer."""
        return self.core_markers or tuple(layer for part, layer in self.parts.items() if part == "core")

    def model_of(self, width_um: float) -> str:
        """Return the name of the model for a width [um]."""
        return self.model.replace("{width}", width_name(width_um))

    def models(self, dbu_um: float) -> dict[str, int | None]:
        """Return the names of all its models, each with the width that it stands for, None for any. [dbu]"""
        any_width = dict.fromkeys((*self.other_models, self.model))
        if "{width}" not in self.model:
            return any_width
        return {self.model_of(width * dbu_um): width for width in self.widths} | any_width

    def dim(self, name: str) -> int:
        """Return a drawing dimension of this device. [dbu]"""
        try:
            return self.dimensions[name]
        except KeyError:
            raise TechnologyError(f"device {self.name} states no dimension '{name}'") from None


@dataclass(frozen=True)
class DeepWell:
    """How the process isolates the body of an NMOS transistor from the substrate. [dbu]

    ``body`` is None where a ring of n well on the edge of the deep n well closes it: the p region in the ring is the
    body. Where it names a layer, the deep n well reaches the surface and this p well in it is the body.

    Attributes:
        devices: Names of the transistors that may lie in a deep well. Their junctions and resistors may, too.
        body: Layer of the p well that is drawn in a deep well; None where none is.
        substrate_ring: Whether a closed ring of substrate taps must lie around every deep well.
        name_parts: Parts of names, between underscores, that say of a device that it lies in a deep well.
        lvs_deck_models: Device -> its model in the ``lvs_deck`` form of netlists, where it differs in a deep well.
        dimensions: Lengths by name; ``dimensions.json`` explains them.
    """

    devices: tuple[str, ...]
    body: str | None = None
    substrate_ring: bool = False
    name_parts: tuple[str, ...] = ()
    lvs_deck_models: Mapping[str, str] = field(default_factory=dict)
    dimensions: Mapping[str, int] = field(default_factory=dict)

    def dim(self, name: str) -> int:
        """Return a length; 0 where the process states none. [dbu]"""
        return self.dimensions.get(name, 0)


def frames_of(spec: PassiveSpec, width: int, grid: int) -> Mapping[str, Frame]:
    """Return the frames around an emitter of ``width`` [dbu]: name to inner and outer distance in x and y. [dbu]

    What grows with the width stays on ``grid``. [dbu]
    """
    if spec.base_growth is None:
        return spec.frames
    share, above = spec.base_growth
    growth = max(0, int(share * width) // grid * grid - above)
    ring = spec.frames["base"][1][0]

    def grown(distance: Distance) -> Distance:
        return (distance[0] + growth if distance[0] >= ring else distance[0]), distance[1]

    return {name: (grown(inner), grown(outer)) for name, (inner, outer) in spec.frames.items()}


def layer_of_frame(spec: PassiveSpec, name: str) -> str | None:
    """Return the layer or role that the frame ``name`` is drawn on; None where the process does not draw it."""
    transistor = spec.diffusion_of
    if transistor is None:
        return None
    parts = {
        "base": "tap",
        "collector": "tap",
        "well": transistor.well,
        "emitter_implant": transistor.implant,
        "collector_implant": transistor.implant,
        "base_implant": transistor.bulk_implant,
    }
    return parts.get(name, name)
