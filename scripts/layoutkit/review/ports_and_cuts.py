"""Findings on single places that a current must pass: ports, and joints of wires on one cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.errors import listed
from layoutkit.extract.single_cuts import WholeLayout, single_places
from layoutkit.review.subject import box_around, region_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.extract.single_cuts import SinglePlace
    from layoutkit.review.electrical import Electrical
    from layoutkit.review.finding import Finding, Unjudged

_MOST_JOINTS = 12
"""Joints on one cut where two fit that are looked for where the current is small."""


class PortsAndCuts:
    """The findings on ports and single cuts of one layout.

    Args:
        electrical: The currents of its nets, and where their metal is weakest.
    """

    def __init__(self, electrical: Electrical) -> None:
        self.electrical = electrical
        self.subject = electrical.subject
        self.technology = electrical.technology
        self.unjudged: list[Unjudged] = []

    def findings(self) -> Iterator[Finding]:
        """Yield all findings."""
        for net in self.subject.nets:
            yield from self.narrow_port(net)
        yield from self.single_cut()

    def narrow_port(self, net: str) -> list[Finding]:
        """Return whether the metal at a port is too narrow for the current of its net."""
        widest, place, name = 0.0, None, ""
        needed = 0.0
        for conductor, point, _ in self.subject.labels.get(net, ()):
            width = self.subject.um(width_at(self.subject.shapes(net, conductor), point))
            if width > widest or place is None:
                widest, place, name = width, point, conductor
                needed = self.technology.conductor(conductor).width_um(1000 * self._through_port(net))
        if place is None or not needed:
            return []
        return self.subject.finding(
            "narrow-port",
            widest / needed,
            kdb.Box(place, place).enlarged(100, 100),
            f"port {net} is {widest:.3g} um of {name} wide and needs {needed:.3g} um for "
            f"{1000 * self._through_port(net):.3g} mA",
            "as wide a port as its rail, or several ports",
            nets=[net],
        )

    def _through_port(self, net: str) -> float:
        """Return the current that enters a net from outside. [A]"""
        ends = self.electrical.currents_of(net)
        if net in self.subject.supplies:
            return sum(current for *_, current in ends)
        full = [current for placed, *_, current in ends if self.subject.is_full(placed)]
        return max(full, default=abs(sum(sign * current for *_, sign, current in ends)))

    def single_cut(self) -> Iterator[Finding]:
        """Yield the nets with single cuts where two fit."""
        subject, technology = self.subject, self.technology
        conducting = {name: subject.layer(layer) for name, layer in subject.metal_layers}
        channels = region_of(box for placed in subject.placed for box in placed.boxes if placed.device.is_mos)
        whole = WholeLayout(technology, conducting, channels, subject.cell.bbox())
        plain: list[tuple[str, SinglePlace]] = []
        for net in subject.nets:
            weak, regions = self.electrical.weakest(net), {name: subject.shapes(net, name) for name in conducting}
            over = single_places(whole, regions, near=weak.box) if weak is not None and weak.share > 1 else []
            if len(plain) < _MOST_JOINTS:
                others = single_places(whole, regions, _MOST_JOINTS - len(plain))
                plain += [(net, each) for each in others if each not in over]
            for each in over:
                yield from subject.finding(
                    "single-cut",
                    weak.share if weak else 0.0,
                    each.box,
                    f"{net} leads more than one {each.cut} may carry through a joint on one cut where two fit",
                    "as many cuts as the current needs",
                    nets=[net],
                )
        if plain:
            names = list(dict.fromkeys(net for net, _ in plain))
            yield from subject.finding(
                "single-cut",
                1.0,
                plain[0][1].box if len(names) == 1 else box_around(each.box for _, each in plain),
                f"{'at least ' * (len(plain) >= _MOST_JOINTS)}{len(plain)} joint{'s' * (len(plain) > 1)} of "
                f"{listed(names)} on one cut where two fit, the first {plain[0][1].cut}",
                "two cuts wherever they fit",
                nets=names,
            )


def width_at(region: kdb.Region, point: kdb.Point) -> int:
    """Return the width of the metal at a point, which may be on its edge. [dbu]

    It is the shorter of the metal's extents in x and y through the point.
    """
    box = region.bbox()
    found = []
    for strip in (
        kdb.Box(box.left, point.y - 1, box.right, point.y + 1),
        kdb.Box(point.x - 1, box.bottom, point.x + 1, box.top),
    ):
        here = [piece.bbox() for piece in (region & kdb.Region(strip)).each() if piece.bbox().contains(point)]
        if here:
            found.append(max(max(each.width(), each.height()) for each in here))
    return min(found, default=0)
