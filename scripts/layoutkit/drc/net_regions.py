"""Nets of a cell, for the rules that depend on them: spacing by nets, antenna ratios.

``layoutkit.extract.connectivity`` says what is connected; names and labels connect nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import TechnologyError
from layoutkit.extract.connectivity import Nets, electrical_layers, wiring

if TYPE_CHECKING:
    from layoutkit.drc.kind_register import Case
    from layoutkit.technology.technology import Technology

NET = "net"  # the name of the property that holds the net of a polygon
_ROLES = {"poly": "poly", "contact": "contact", "nwell": "nwell", "deep_nwell": "deep_nwell", "pwell": "p_body"}


class NetRegions:
    """The nets of one cell, in the working units of a check.

    Args:
        cell: The cell, with all below it.
        technology: What connects to what.
        magnification: From the layout's database units to the working units of the check.
    """

    def __init__(self, cell: kdb.Cell, technology: Technology, magnification: float) -> None:
        self._cell = cell
        self._technology = technology
        self._magnification = magnification
        self._of: dict[str, kdb.Region] = {}

    @cached_property
    def _nets(self) -> Nets:
        electrical = electrical_layers(self._cell, self._technology)
        return Nets(self._magnified(electrical.conducting), electrical.joins, 1.0)

    @cached_property
    def metal(self) -> tuple[dict[str, kdb.Region], tuple[tuple[str, str], ...]]:
        """The conductors, cuts and capacitor plates, and which of them join."""
        metal = wiring(self._cell, self._technology)
        return self._magnified(metal.regions), metal.joins

    def _magnified(self, regions: dict[str, kdb.Region]) -> dict[str, kdb.Region]:
        if self._magnification == 1:
            return regions
        grown = kdb.ICplxTrans(self._magnification)
        return {name: region.transformed(grown).merged() for name, region in regions.items()}

    def of(self, region: kdb.Region, conductor: str) -> kdb.Region:
        """Return ``region`` with the net of each polygon as a property.

        Args:
            region: Merged polygons that lie in ``conductor``.
            conductor: Layer, role or alias that carries nets: a conductor, cut, contact, poly or well.

        Raises:
            TechnologyError: If ``conductor`` carries no nets or ``region`` leaves it.
        """
        name = carrier(self._technology, conductor)
        if name is None:
            raise TechnologyError(
                f"'{conductor}' carries no nets; name with net_of the conductor, cut, contact, poly or well that does"
            )
        conducting = self._nets.regions[name]
        if name not in self._of:
            nets = conducting.nets(self._nets.database, NET)
            nets.enable_properties()
            self._of[name] = nets
        if not (region - conducting).is_empty():
            raise TechnologyError(
                f"a rule about nets is about polygons within one conductor; these leave '{conductor}'"
            )
        found = self._of[name].and_(region, kdb.Region.NoPropertyConstraint)  # keeps the properties of the first
        found.enable_properties()
        return found


def carrier(technology: Technology, layer: str) -> str | None:
    """Return the name under which ``electrical_layers`` holds ``layer``, None where the layer carries no nets."""
    carriers = {technology.resolve(cut.layer): cut.name for cut in technology.cuts}
    carriers.update({technology.resolve(conductor.layer): conductor.name for conductor in technology.conductors})
    carriers.update({technology.roles[role]: name for role, name in _ROLES.items() if role in technology.roles})
    return carriers.get(technology.resolve(layer))


@dataclass(frozen=True)
class Antennas:
    """The greatest ratio of an antenna rule's layer to gates (None where it reaches none), and what exceeds it."""

    greatest: float | None
    violating: kdb.Region


def antennas(case: Case) -> Antennas:
    """Return what an antenna rule finds: the polygons of its ``layer`` that are too much for the gates they reach.

    Raises:
        TechnologyError: If ``layer`` is neither poly, contact, conductor nor cut.
    """
    layers, technology = case.layers, case.layers.technology
    etched = _etched(technology)
    layer = carrier(technology, case.text("layer"))
    if layer not in etched:
        known = ", ".join(technology.resolve(name) for name in etched)
        raise TechnologyError(f"the layer of an antenna rule is one of {known}; got '{case.text('layer')}'")
    metal, joins = layers.nets.metal
    stack = etched[: etched.index(layer) + 1]
    drawn = {"poly": layers.region("poly"), "contact": layers.region(technology.contact.layer), **metal}
    later = set(etched) - set(stack)
    regions = {name: region for name, region in drawn.items() if name not in later}
    # Without the gate in the connectivity KLayout finds no antenna at all and reports nothing.
    regions["gate"] = case.region("gate") & regions["poly"]
    joins = (*joins, ("gate", "poly"), ("contact", "poly"), ("contact", technology.conductors[0].name))
    if case.has("diode"):
        regions["diode"] = case.region("diode")
        joins = (*joins, ("diode", "contact"))
    nets = Nets(regions, joins, layers.unit_um)
    diodes: list[Any] = [nets.regions["diode"]] if case.has("diode") else []
    if diodes and case.has("diode_ratio"):
        diodes = [[*diodes, case.number("diode_ratio")]]
    thickness = float(case.fields.get("thickness_um", 0.0)) if case.choice("measure") == "sidewall" else None
    factors = (1.0, 0.0) if thickness is None else (0.0, thickness)

    def beyond(ratio: float) -> kdb.Region:
        return nets.database.antenna_check(nets.regions["gate"], 1.0, 0.0, nets.regions[layer], *factors, ratio, diodes)

    # Copied, because KLayout's own results end with the extraction.
    greatest = max((float(polygon.property("ratio")) for polygon in beyond(0.0).each()), default=None)
    return Antennas(greatest, kdb.Region([polygon.dup() for polygon in beyond(case.ratio).each()]))


def _etched(technology: Technology) -> list[str]:
    """Return the layers that charge gates, by the names of their regions, in the order in which they are made."""
    names = ["poly", "contact"]
    for number, conductor in enumerate(technology.conductors):
        names += [conductor.name, *(cut.name for cut in technology.cuts[number : number + 1])]
    return names
