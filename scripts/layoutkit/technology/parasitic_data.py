"""What a technology file states for extraction and simulation: capacitances, matching, models of the kit.

Capacitances follow from heights, sidewalls, pairs of conductors and shielding; those to the substrate, and resistances,
are in the stack. What a process does not publish is left out; extraction reports it as unchecked.

Matching of a transistor: stress, junctions, random mismatch. A process that publishes nothing states so: ``stress:
{not_modelled: "..."}`` says why its models show no difference.

The section ``simulation`` says where a process's kit keeps the models of its devices for ngspice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from layoutkit.file_schema import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


POLY = "poly"
DIFFUSION = "diffusion"
THICK_DIFFUSION = "thick_diffusion"
SILICON_LEVELS = (DIFFUSION, THICK_DIFFUSION, POLY)
"""What lies below the first conductor of the stack: diffusion below thin and below thick oxide, and poly."""
TYPICAL = "typical"


@dataclass(frozen=True)
class WireProfile:
    """Cross-section of one conductor and its coupling to neighbours on the same layer; None where nothing is stated.

    Attributes:
        bottom_um: Height of its lower face above the silicon below field oxide. [um]
        thickness_um: Its thickness. [um]
        sidewall_af: Coupling of two facing edges, per length, times their distance plus ``sidewall_offset_um``. [aF]
        sidewall_offset_um: Added to the distance. [um]
    """

    bottom_um: float | None = None
    thickness_um: float | None = None
    sidewall_af: float | None = None
    sidewall_offset_um: float = 0.0


@dataclass(frozen=True)
class Overlap:
    """Capacitance of one conductor above another.

    Attributes:
        area_af_um2: Per area where they overlap. [aF/um2]
        fringe_upper_af_um: From an edge of the upper one to a wide lower one, per length. [aF/um]
        fringe_lower_af_um: From an edge of the lower one to a wide upper one, per length; 0 if none is stated. [aF/um]
    """

    area_af_um2: float
    fringe_upper_af_um: float
    fringe_lower_af_um: float = 0.0


@dataclass(frozen=True)
class FringeShielding:
    """How much of the fringe field of an edge lies within a distance of it.

    Of the field, ``2 / pi * atan(steepness_um_af * area_af_um2 * distance_um)`` lies within a distance, where
    ``area_af_um2`` is the capacitance per area of the edge's conductor to what the field goes to.

    Attributes:
        reach_um: Neighbours farther away are left out. [um]
        steepness_um_af: See above. [um/aF]
    """

    reach_um: float
    steepness_um_af: float


@dataclass(frozen=True)
class ParasiticData:
    """What a technology states about capacitances between conductors.

    Attributes:
        profiles: Conductor, or ``poly``, to its cross-section.
        pairs: Upper and lower conductor to their capacitance. Below the stack there are ``SILICON_LEVELS``.
        shielding: How neighbours shield fringe fields; None if the file does not state it.
        well_af_um2: Junction of an n well or deep n well and p silicon; None if the file states none. [aF/um2]
        modelled_heads_um: Resistor to the length of each head whose capacitance its model contains, beyond the core;
            no resistor whose model contains only that of the core. [um]
        sources: What the numbers are (``profile``, ``capacitances``, ``shielding``, ``heads``) to where they are from.
    """

    profiles: Mapping[str, WireProfile] = field(default_factory=dict)
    pairs: Mapping[tuple[str, str], Overlap] = field(default_factory=dict)
    shielding: FringeShielding | None = None
    well_af_um2: float | None = None
    modelled_heads_um: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


def read_parasitics(section: Mapping[str, Any]) -> ParasiticData:
    """Return what the section ``parasitics`` of a technology file states."""
    shielding = section.get("shielding")
    return ParasiticData(
        profiles={name: WireProfile(**_numbers(entry)) for name, entry in section.get("conductors", {}).items()},
        pairs={(entry["upper"], entry["lower"]): Overlap(**_numbers(entry)) for entry in section.get("pairs", ())},
        shielding=None if shielding is None else FringeShielding(**shielding),
        well_af_um2=section.get("wells", {}).get("area_af_um2"),
        modelled_heads_um={name: float(length) for name, length in section.get("modelled_heads_um", {}).items()},
        sources=dict(section.get("sources", {})),
    )


def _numbers(entry: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in entry.items() if key not in {"upper", "lower", "uncertain"}}


def uncertain_parasitics(section: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the entries of the section that may hold ``uncertain``, each with a name for notes."""
    pairs = [(f"{entry['upper']} over {entry['lower']}", entry) for entry in section.get("pairs", ())]
    return [("wells", section.get("wells", {})), *section.get("conductors", {}).items(), *pairs]


def faults_of_parasitics(
    section: Mapping[str, Any], conductors: list[str], resistors: list[str]
) -> list[tuple[str, str]]:
    """Return the place and message of each reference of the section to what is not there, or in the wrong order.

    Args:
        section: The section ``parasitics``, which keeps the schema.
        conductors: Names of the conductors of the stack, from below.
        resistors: Names of the resistors.
    """
    faults = [
        (f"parasitics.modelled_heads_um.{name}", f"there is no resistor '{name}'; there are {', '.join(resistors)}")
        for name in section.get("modelled_heads_um", {})
        if name not in resistors
    ]
    faults += [
        (f"parasitics.conductors.{name}", f"there is no conductor '{name}' in the stack, and it is not '{POLY}'")
        for name in section.get("conductors", {})
        if name not in {POLY, *conductors}
    ]
    order = [*SILICON_LEVELS, *conductors]
    seen: set[tuple[str, str]] = set()
    for number, entry in enumerate(section.get("pairs", ())):
        place, pair = f"parasitics.pairs[{number}]", (entry.get("upper"), entry.get("lower"))
        unknown = [name for name in pair if name not in order]
        faults += [(place, f"there is no conductor '{name}'; there are {', '.join(order)}") for name in unknown]
        if not unknown and (order.index(pair[0]) <= order.index(pair[1]) or pair[0] not in conductors):
            faults.append((place, f"'{pair[0]}' is not a conductor above '{pair[1]}'"))
        if pair in seen:
            faults.append((place, f"states '{pair[0]}' over '{pair[1]}' a second time"))
        seen.add(pair)
    return faults


@dataclass(frozen=True)
class Stress:
    """Shift of a transistor with its distances to the edges of its diffusion (BSIM4, length-of-diffusion model).

    ``S = 1 / (sa + L/2) + 1 / (sb + L/2)``, L drawn. The magnitude of the threshold shifts by
    ``threshold(W) * (S - Sref)``, and the mobility is multiplied by ``(1 + k * S) / (1 + k * Sref)``,
    ``k = mobility(W)``. ``Sref`` is ``S`` for the reference distance of the gate length.

    Attributes:
        kvth0_mv_um: Shift of the signed threshold. [mV um]
        wkvth0_um: Its dependence on the finger width. [um]
        ku0_um: Change of the mobility. [um]
        wku0_um: Its dependence on the finger width. [um]
        kvsat: Share of the mobility's change that the saturation velocity follows.
        saref_um: Pairs of a gate length [um] and the reference distance from that length up [um].
        source: Where the numbers are from.
        uncertain: Why they are uncertain; empty if they are not.
        note: What a user of the numbers should know, such as a simulator that ignores some of them.
    """

    kvth0_mv_um: float
    ku0_um: float
    source: str
    wkvth0_um: float = 0.0
    wku0_um: float = 0.0
    kvsat: float = 0.0
    saref_um: tuple[tuple[float, float], ...] = ()
    uncertain: str = ""
    note: str = ""

    def threshold_mv_um(self, width_um: float) -> float:
        """Return the shift of the signed threshold per S for fingers of this width. [mV um]"""
        return self.kvth0_mv_um / (1 + self.wkvth0_um / width_um)

    def mobility_um(self, width_um: float) -> float:
        """Return the coefficient of the mobility for fingers of this width. [um]"""
        return self.ku0_um / (1 + self.wku0_um / width_um)


@dataclass(frozen=True)
class Junction:
    """Capacitance of source and drain to the bulk without bias.

    Attributes:
        cj_ff_um2: Per area. [fF/um2]
        cjsw_ff_um: Per length of the edges to the field oxide. [fF/um]
        cjswg_ff_um: Per length of the edges below gates. [fF/um]
        source: Where the numbers are from.
        uncertain: Why they are uncertain; empty if they are not.
    """

    cj_ff_um2: float
    cjsw_ff_um: float
    cjswg_ff_um: float
    source: str
    uncertain: str = ""

    def capacitance_ff(self, area_um2: float, perimeter_um: float, gate_edge_um: float) -> float:
        """Return the capacitance of a source or drain. [fF]

        Args:
            area_um2: Its area. [um2]
            perimeter_um: Its perimeter, gate edges included. [um]
            gate_edge_um: Length of the gate edges in it. [um]
        """
        sides = max(perimeter_um - gate_edge_um, 0.0)
        return self.cj_ff_um2 * area_um2 + self.cjsw_ff_um * sides + self.cjswg_ff_um * gate_edge_um


@dataclass(frozen=True)
class Mismatch:
    """Random mismatch (Pelgrom): the standard deviation of one device is ``a / sqrt(W * L)``.

    Attributes:
        a_vt_mv_um: For the threshold of one device. [mV um]
        a_beta_percent_um: For the current factor of one device. [% um]
        source: Where the numbers are from.
        uncertain: Why they are uncertain; empty if they are not.
    """

    a_vt_mv_um: float
    source: str
    a_beta_percent_um: float = 0.0
    uncertain: str = ""


@dataclass(frozen=True)
class MatchingData:
    """What a technology states about matching of one transistor; a part is None where it states nothing.

    ``stress_not_modelled`` says why the models of the process show no stress; empty where they do or nothing is known.
    """

    stress: Stress | None = None
    junction: Junction | None = None
    mismatch: Mismatch | None = None
    stress_not_modelled: str = ""


def read_matching(entry: Mapping[str, Any]) -> MatchingData:
    """Return what the entry of one transistor in the section ``matching`` of a technology file states."""
    stated = frozen(entry)
    stress, why = stated.get("stress"), stated.get("stress", {}).get("not_modelled", "")
    return MatchingData(
        stress=Stress(**stress) if stress and not why else None,
        junction=Junction(**stated["junction"]) if "junction" in stated else None,
        mismatch=Mismatch(**stated["mismatch"]) if "mismatch" in stated else None,
        stress_not_modelled=why,
    )


@dataclass(frozen=True)
class ModelLibrary:
    """One library file.

    Attributes:
        files: Its name below the folder; the first that exists is read.
        sections: Corner to the section to read, ``typical`` for those not named; empty to read the whole file.
        mismatch: Corner to the section whose models differ at random from device to device.
        optional: Whether it may be absent, and is read only where the others lack a model.
    """

    files: tuple[str, ...]
    sections: Mapping[str, str] = field(default_factory=dict)
    mismatch: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False

    def section(self, corner: str, *, random: bool) -> str:
        """Return the section of a corner, empty for the whole file."""
        fixed = self.sections.get(corner, self.sections.get(TYPICAL, ""))
        return self.mismatch.get(corner, self.mismatch.get(TYPICAL, fixed)) if random else fixed


@dataclass(frozen=True)
class SimulationModels:
    """The models of a process.

    Attributes:
        pdk: Names of the kit's folder below ``$PDK_ROOT``.
        folder: Folder of the models in it.
        libraries: What to read, in this order.
        osdi: Type of a model, as ``.model`` states it, to its compiled Verilog-A below the folder, which ngspice loads.
        mismatch_parameters: Parameters to set for random differences between devices.
        ignored_parameters: Parameters of device cards that the models do not have.
        generic: Whether the models ship with this package and are those of no real process.
        source: Where this comes from.
    """

    pdk: tuple[str, ...]
    folder: str
    libraries: tuple[ModelLibrary, ...]
    osdi: Mapping[str, str] = field(default_factory=dict)
    mismatch_parameters: Mapping[str, float] = field(default_factory=dict)
    ignored_parameters: tuple[str, ...] = ()
    generic: bool = False
    source: str = ""

    @property
    def corners(self) -> tuple[str, ...]:
        """The corners that a library names, ``typical`` first."""
        names = [name for library in self.libraries for name in library.sections]
        return tuple(dict.fromkeys([TYPICAL, *names]))

    @property
    def varies(self) -> bool:
        """Whether the models can differ at random from device to device."""
        return bool(self.mismatch_parameters) or any(library.mismatch for library in self.libraries)


def read_simulation_models(entry: Mapping[str, Any] | None) -> SimulationModels | None:
    """Return the section ``simulation`` of a technology file, whose form the schema states; None without one."""
    if entry is None:
        return None
    stated = frozen(entry)
    libraries = tuple(ModelLibrary(**each) for each in stated["libraries"])
    return SimulationModels(**{"pdk": (), "folder": "", **stated, "libraries": libraries})
