"""What a technology file states about matching of a transistor: stress, junctions, random mismatch.

A process that publishes nothing states so: ``stress: {not_modelled: "..."}`` says why its models show no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.technology.bounded_yaml import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


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
