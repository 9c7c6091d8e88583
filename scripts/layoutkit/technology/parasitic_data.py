"""What a technology file states for the extraction of capacitances: heights, sidewalls, pairs of conductors, shielding.

Capacitances to the substrate and resistances are in the stack. What a process does not publish is left out; extraction
reports it as unchecked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

POLY = "poly"
DIFFUSION = "diffusion"
THICK_DIFFUSION = "thick_diffusion"
SILICON_LEVELS = (DIFFUSION, THICK_DIFFUSION, POLY)
"""What lies below the first conductor of the stack: diffusion below thin and below thick oxide, and poly."""


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
class Shielding:
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
    shielding: Shielding | None = None
    well_af_um2: float | None = None
    modelled_heads_um: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


def read_parasitics(section: Mapping[str, Any]) -> ParasiticData:
    """Return what the section ``parasitics`` of a technology file states."""
    shielding = section.get("shielding")
    return ParasiticData(
        profiles={name: WireProfile(**_numbers(entry)) for name, entry in section.get("conductors", {}).items()},
        pairs={(entry["upper"], entry["lower"]): Overlap(**_numbers(entry)) for entry in section.get("pairs", ())},
        shielding=None if shielding is None else Shielding(**shielding),
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
