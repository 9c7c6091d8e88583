"""How far nets that should be mirror images are: lengths, vias, capacitance, and the metal that differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.route.equal_loads import capacitance
from layoutkit.route.router import cuts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.flow.keepouts import Obstacles
    from layoutkit.route.routes import Mirrored, RoutedNet, RoutingResult
    from layoutkit.technology import Technology

MIRROR_ERROR = 0.02
"""Largest mirror error of two whole nets, metal inside modules included, that is not mentioned."""

LOAD_MISMATCH = 0.02
"""Difference in length or capacitance, as a share of the larger one, that is left for want of room only."""


@dataclass(frozen=True)
class MirroredNets:
    """Two nets that should be mirror images, or one that should be its own.

    Attributes:
        nets: Their names.
        exact: Whether wires and cuts are mirror images as they are drawn in the end, to the database unit.
        reason: Why not; empty where they are.
        wire_lengths: Of each net. [dbu]
        via_counts: Of each net; a via has one cut or several.
        cut_counts: Of each net.
        capacitances: Of each net's wires to the substrate [aF]; empty where the technology states no numbers.
        wires_error: Area of the wires that differ from the mirror image, over twice their area.
        error: The same for all metal of the nets above the first conductor's contacts, in modules, too.
        totals: Capacitance of each net in the layout, modules and couplings included [fF]; empty if not measured.
        unlike_coupling: By how much two nets differ in what each single signal couples to them, summed. [fF]
        alike: False where different devices are known to hang on two nets, so that these cannot load equally.
    """

    nets: tuple[str, ...]
    exact: bool
    reason: str
    wire_lengths: tuple[int, ...]
    via_counts: tuple[int, ...]
    cut_counts: tuple[int, ...]
    capacitances: tuple[float, ...]
    wires_error: float
    error: float
    totals: tuple[float, ...] = ()
    unlike_coupling: float = 0.0
    alike: bool = True

    @property
    def text(self) -> str:
        """It in words."""
        within = "metal inside the modules, which share one row or lie at different heights, does not"
        if self.exact:
            inside = f"; {within}: mirror error {self.error:.3g}" if self.error > MIRROR_ERROR else ""
            differ = _mismatch(self.totals) or 0.0
            unequal = f"; modules load the nets unequally: their capacitance differs by {differ:.2%}"
            return f"the wires are mirror images{inside}{unequal if differ > LOAD_MISMATCH else ''}"
        if len(self.nets) < 2:
            return self.reason
        length, vias, cuts, load = (
            _mismatch(each) for each in (self.wire_lengths, self.via_counts, self.cut_counts, self.loads)
        )
        last = "" if load is None else f", in capacitance by {load:.2%}"
        counts = f"in vias by {vias or 0:.2%}, in cuts by {cuts or 0:.2%}"
        full = "; there is no room for further bumps or stubs" if self.lacks > 0 else ""
        return f"{self.reason}; the nets differ in length by {length or 0:.2%}, {counts}{last}{full}"

    @property
    def loads(self) -> tuple[float, ...]:
        """Capacitance of each net in the layout if that is measured, else of its wires to the substrate."""
        return self.totals or self.capacitances

    @property
    def lacks(self) -> float:
        """By how much two nets that are no mirror images differ beyond ``LOAD_MISMATCH``."""
        differences = [_mismatch(each) or 0.0 for each in (self.wire_lengths, self.loads)]
        return 0.0 if self.exact or len(self.nets) < 2 else max(0.0, max(differences) - LOAD_MISMATCH)

    @property
    def unequal_loads(self) -> float:
        """By how much two nets with equal devices differ beyond ``LOAD_MISMATCH``, mirror images or not.

        It is the larger difference: of their whole capacitances, or of what the signals couple to them, both over the
        larger of their whole capacitances.
        """
        if not self.alike or not self.totals:
            return 0.0
        coupling = self.unlike_coupling / max(*self.totals, 1e-9)
        return max(0.0, max(_mismatch(self.totals) or 0.0, coupling) - LOAD_MISMATCH)

    def to_json(self, technology: Technology) -> dict[str, Any]:
        """Return it as JSON data, lengths in micrometres, capacitances in femtofarads."""
        data: dict[str, Any] = {
            "nets": list(self.nets),
            "exact": self.exact,
            "wire_length": [technology.to_um(length) for length in self.wire_lengths],
            "via_count": list(self.via_counts),
            "wires_error": round(self.wires_error, 4),
            "mirror_error": round(self.error, 4),
        }
        if self.reason:
            data["reason"] = self.reason
        if self.capacitances:
            data["capacitance_ff"] = [round(each / 1000, 4) for each in self.capacitances]
        if self.totals:
            data["total_ff"] = [round(each, 4) for each in self.totals]
        if len(self.nets) == 2:
            mismatches = {
                "length": _mismatch(self.wire_lengths),
                "vias": _mismatch(self.via_counts),
                "cuts": _mismatch(self.cut_counts),
                "capacitance": _mismatch(self.loads),
            }
            data["mismatch"] = {name: round(value, 4) for name, value in mismatches.items() if value is not None}
        return data


def _mismatch(values: Sequence[float]) -> float | None:
    """Return the difference of two values over the larger one; None where there are none."""
    if len(values) < 2:
        return None
    return abs(values[0] - values[1]) / max(*values) if max(values) else 0.0


def measured_mirrors(
    technology: Technology, result: RoutingResult, axis_x: int | None, fixed: Obstacles
) -> tuple[MirroredNets, ...]:
    """Return the figures of each net or pair of a result that was to be mirrored and is routed.

    Args:
        technology: States the capacitance of conductors.
        result: The routes.
        axis_x: Axis of the mirror; None where the nets have none: then the metal differs wholly. [dbu]
        fixed: Metal that was there before, with its nets.
    """
    return tuple(
        _measured(technology, each, [result.net(net) for net in each.nets], axis_x, fixed)
        for each in result.mirrored
        if all(result.net(net).success for net in each.nets)
    )


def _measured(
    technology: Technology, mirrored: Mirrored, nets: Sequence[RoutedNet], axis_x: int | None, fixed: Obstacles
) -> MirroredNets:
    wires = [_regions(technology, net) for net in nets]
    wires_error = mirror_error(wires[0], wires[-1], axis_x)
    reason = mirrored.reason or ("wires changed when the frame moved" if wires_error else "")
    whole = [_with_fixed(regions, net.name, fixed, technology) for regions, net in zip(wires, nets, strict=True)]
    return MirroredNets(
        mirrored.nets,
        mirrored.exact and not wires_error,
        reason,
        tuple(net.wire_length for net in nets),
        tuple(net.via_count for net in nets),
        tuple(sum(via.columns * via.rows for via in net.vias) for net in nets),
        tuple(found for regions in wires for found in [capacitance(technology, regions)] if found is not None),
        wires_error,
        mirror_error(whole[0], whole[-1], axis_x),
    )


def _regions(technology: Technology, net: RoutedNet) -> dict[str, kdb.Region]:
    """Return the merged metal and cuts that a net draws, by conductor and cut."""
    import klayout.db as kdb

    found: dict[str, kdb.Region] = {}
    for layer, rect in (*net.metal, *cuts_of(technology, net)):
        found.setdefault(layer, kdb.Region()).insert(kdb.Box(*rect))
    return {layer: region.merged() for layer, region in sorted(found.items())}


def _with_fixed(
    regions: Mapping[str, kdb.Region], net: str, fixed: Obstacles, technology: Technology
) -> dict[str, kdb.Region]:
    """Return metal of a net on all conductors, with what was there before."""
    import klayout.db as kdb

    names = {conductor.name for conductor in technology.conductors}
    found = {layer: region.dup() for layer, region in regions.items() if layer in names}
    for layer, shapes in fixed.items():
        for geometry, owner in shapes:
            if owner == net and layer in names:
                found.setdefault(layer, kdb.Region()).insert(geometry)
    return {layer: region.merged() for layer, region in sorted(found.items())}


def mirror_error(one: Mapping[str, kdb.Region], other: Mapping[str, kdb.Region], axis_x: int | None) -> float:
    """Return the area by which one differs from the mirror image of the other, over the area of both; 0: equal."""
    import klayout.db as kdb

    differs = total = 0
    for layer in sorted({*one, *other}):
        first, second = one.get(layer, kdb.Region()), other.get(layer, kdb.Region())
        total += first.area() + second.area()
        image = kdb.Region() if axis_x is None else first.transformed(kdb.Trans(kdb.Trans.M90)).moved(2 * axis_x, 0)
        differs += (image ^ second).area()
    return differs / total if total else 0.0
