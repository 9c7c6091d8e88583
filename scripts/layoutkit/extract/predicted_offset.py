"""Predicted offset of matched devices from what was measured of them: formulas, coefficients, contributions.

Of a pair the difference of the gate voltages at equal currents, that of the reference subtracted, for an assumed
overdrive voltage Vov = |VGS - Vth|::

    stress     d|Vth| - Vov/2 * dmu/mu    d|Vth| = +-kvth0(W) * dS, mu ~ 1 + ku0(W) * S
    junction   Vov/2 * dC / C             for the capacitances C of the drains' nets, where the pair discharges them
                                          against each other, as the input pair of a latch does
    strap      Vov/2 * dloss              for the part of the current that the metal on sources and drains costs

A mirror's error of current is ``dmu/mu - 2 d|Vth|/Vov``. The formulas are those of a square-law transistor: those of
stress are BSIM4's (stress effect model), that of the junctions follows from equal times ``C dV / I``. ``C`` holds the
junctions alone; gates and wires add to it, equally if they match, so that the true share is smaller.

No process publishes the gradients across a chip. Devices whose centroids lie apart have an offset from them that is
not modelled, and ``unchecked`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Any

from layoutkit.extract.strap_loss import DRAIN_SLOPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.technology import DeviceSpec
    from layoutkit.technology.parasitic_data import Stress

OVERDRIVE_V = 0.2
"""Assumed gate voltage beyond the threshold, usual for input pairs and mirrors. [V]"""
STRESS = (
    "d|Vth| - Vov/2 * dmu/mu, d|Vth| = +-kvth0/(1 + wkvth0/W) * dS, mu ~ 1 + ku0/(1 + wku0/W) * S, "
    "S = 1/(sa + L/2) + 1/(sb + L/2)"
)
STRESS_OF_A_MIRROR = "dmu/mu - 2/Vov * d|Vth|, with d|Vth| and mu as for a pair"
JUNCTION = "Vov/2 * dC / mean(C), C = cj * area + cjsw * outer edge + cjswg * gate edge of the two drain nets"
STRAP = (
    "Vov/2 * dloss, loss = I * (2 * R(source)/Vov + 0.2 * R(drain)/VDD), "
    "I = Idsat * (Vov/(VDD - VT))^1.5 per finger, VT = VDD/4"
)
STRAP_OF_A_MIRROR = "-dloss, with the loss as for a pair"
STRAP_SOURCE = "resistances measured in the layout; alpha-power law (Sakurai, Newton, 1990) with alpha = 1.5"


@dataclass(frozen=True)
class MeasuredDevice:
    """What the offset of one device depends on.

    Attributes:
        id: The device.
        width_um: Width of one finger. [um]
        total_width_um: Width of all fingers. [um]
        length_um: Gate length. [um]
        stress: Mean of S over the fingers. [1/um]
        junction_ff: Capacitance of the junctions on its drain's net; None where the technology states none. [fF]
        saturation_ma: Saturation current of one finger; None if the technology states none. [mA]
        strap_source_ohm: Metal from the contacts of a finger's source to its rail; None where it is not known. [ohm]
        strap_drain_ohm: The same of the drain. [ohm]
    """

    id: str
    width_um: float
    total_width_um: float
    length_um: float
    stress: float
    junction_ff: float | None
    saturation_ma: float | None = None
    strap_source_ohm: float | None = None
    strap_drain_ohm: float | None = None


@dataclass
class _Offset:
    """Contributions of one set of devices, the first of which is the reference."""

    spec: DeviceSpec
    devices: Sequence[MeasuredDevice]
    mirror: bool
    clocked: bool
    apart_um: float
    unchecked: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        stress, junction, strap = self._stress(), self._junction(), self._strap()
        if self.apart_um:
            centroids = f"the centroids are {self.apart_um:g} um apart"
            self.unchecked.append(f"distance: not modelled: {centroids}, and no gradient of the process is published")
        counted = [part["values"] for part in (stress, junction, strap) if part["values"] and part["counted"]]
        totals = [round(sum(parts), 6) for parts in zip(*counted, strict=True)]
        return {
            "devices": [device.id for device in self.devices],
            "kind": "mirror" if self.mirror else "pair",
            "unit": "%" if self.mirror else "mV",
            "value": max(totals, key=abs) if totals else None,
            "of": dict(zip((device.id for device in self.devices[1:]), totals, strict=False)) if totals else {},
            "centroid_distance_um": self.apart_um,
            "overdrive_v": OVERDRIVE_V,
            "contributions": {"stress": stress, "junction": junction, "strap": strap},
            "random_sigma": self._random(),
            "unchecked": self.unchecked,
        }

    def _part(self, formula: str, source: str, values: list[float], *, counted: bool, **more: Any) -> dict[str, Any]:
        listed = [round(value, 6) + 0.0 for value in values]  # no -0.0
        return {"values": listed, "counted": counted and bool(listed), "formula": formula, "source": source, **more}

    def _stress(self) -> dict[str, Any]:
        data = self.spec.matching
        formula = STRESS_OF_A_MIRROR if self.mirror else STRESS
        if data.stress is None:
            why = data.stress_not_modelled or "the technology states no coefficients"
            self.unchecked.append(f"stress: not modelled: {why}")
            return self._part(formula, "", [], counted=False, not_modelled=why)
        shifts = [self._shifts(device, data.stress) for device in self.devices[1:]]
        if self.mirror:
            thresholds = [-200 / OVERDRIVE_V * shift / 1000 for shift, _ in shifts]
            mobilities = [100 * change for _, change in shifts]
        else:
            thresholds = [shift for shift, _ in shifts]
            mobilities = [-500 * OVERDRIVE_V * change for _, change in shifts]
        return self._part(
            formula,
            data.stress.source,
            [sum(parts) for parts in zip(thresholds, mobilities, strict=True)],
            counted=True,
            threshold=[round(value, 6) for value in thresholds],
            mobility=[round(value, 6) for value in mobilities],
            **{name: text for name in ("uncertain", "note") if (text := getattr(data.stress, name))},
        )

    def _shifts(self, device: MeasuredDevice, stress: Stress) -> tuple[float, float]:
        """Return how far threshold [mV] and mobility [1] of a device are from those of the reference."""
        reference = self.devices[0]
        sign = 1 if self.spec.type == "nmos" else -1
        thresholds = [sign * stress.threshold_mv_um(each.width_um) * each.stress for each in (device, reference)]
        mobilities = [1 + stress.mobility_um(each.width_um) * each.stress for each in (device, reference)]
        return thresholds[0] - thresholds[1], mobilities[0] / mobilities[1] - 1

    def _junction(self) -> dict[str, Any]:
        data = self.spec.matching.junction
        if self.mirror or len(self.devices) != 2:
            return self._part(JUNCTION, "", [], counted=False, why="only the drains of a pair are compared")
        first, second = (device.junction_ff for device in self.devices)
        if data is None or first is None or second is None:
            self.unchecked.append("junction: the technology states no capacitances")
            return self._part(JUNCTION, "", [], counted=False)
        if not first + second:
            return self._part(JUNCTION, data.source, [0.0], counted=self.clocked)
        value = 500 * OVERDRIVE_V * (second - first) / ((first + second) / 2)
        no_latch = "its drains feed no latch with two sides driven alike, so they need not slew equally"
        why = "its drains feed a latch" if self.clocked else no_latch
        capacitances = [round(first, 6), round(second, 6)]
        return self._part(JUNCTION, data.source, [value], counted=self.clocked, why=why, capacitance_ff=capacitances)

    def _strap(self) -> dict[str, Any]:
        formula = STRAP_OF_A_MIRROR if self.mirror else STRAP
        metals = {(each.strap_source_ohm, each.strap_drain_ohm) for each in self.devices}
        losses = [self._strap_loss(device) for device in self.devices]
        if len(metals) == 1 and None not in metals.pop() and self._same_fingers():
            losses = [0.0 for _ in losses]
        known = [loss for loss in losses if loss is not None]
        if len(known) < len(losses):
            why = "the technology states no saturation current or resistance, or a source or drain reaches no rail"
            self.unchecked.append(f"strap: not known: {why}")
            return self._part(formula, "", [], counted=False, why=why)
        factor = -100 if self.mirror else 500 * OVERDRIVE_V
        return self._part(formula, STRAP_SOURCE, [factor * (loss - known[0]) for loss in known[1:]], counted=True)

    def _same_fingers(self) -> bool:
        return len({(each.width_um, each.length_um) for each in self.devices}) == 1

    def _strap_loss(self, device: MeasuredDevice) -> float | None:
        """Return the part of a finger's current that its metal costs at the assumed overdrive voltage."""
        source, drain, supply = device.strap_source_ohm, device.strap_drain_ohm, self.spec.supply_v
        if source is None or drain is None or device.saturation_ma is None or not supply:
            return None
        current: float = device.saturation_ma * 1e-3 * (OVERDRIVE_V / (0.75 * supply)) ** 1.5
        return current * (2 * source / OVERDRIVE_V + DRAIN_SLOPE * drain / supply)

    def _random(self) -> dict[str, Any] | None:
        """Return the standard deviation of what a process varies at random, for the last device and the reference."""
        data = self.spec.matching.mismatch
        if data is None:
            return None
        areas = [each.total_width_um * each.length_um for each in (self.devices[0], self.devices[-1])]
        threshold = data.a_vt_mv_um * sqrt(sum(1 / area for area in areas))
        factor = data.a_beta_percent_um * sqrt(sum(1 / area for area in areas))
        value = sqrt((200 / OVERDRIVE_V * threshold / 1000) ** 2 + factor**2) if self.mirror else threshold
        found = {"value": round(value, 6), "unit": "%" if self.mirror else "mV", "source": data.source}
        return {**found, "uncertain": data.uncertain} if data.uncertain else found


def predicted_offset(
    spec: DeviceSpec, devices: Sequence[MeasuredDevice], *, mirror: bool, clocked: bool, apart_um: float = 0.0
) -> dict[str, Any]:
    """Return the offset of the devices from the first of them, as JSON data.

    Args:
        spec: Their type.
        devices: The reference, then those that are to be equal to it.
        mirror: Whether they are a current mirror, whose error is one of current [%]; else it is a voltage [mV].
        clocked: Whether they discharge their drains against each other, so that unequal junctions are an offset.
        apart_um: Largest distance of a centroid from that of the reference. [um]
    """
    return _Offset(spec, devices, mirror, clocked, apart_um).to_json()
