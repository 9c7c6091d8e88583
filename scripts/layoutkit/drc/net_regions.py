"""Nets of a cell, for the rules that depend on them: spacing by nets and antenna ratios.

``layoutkit.extract.connectivity`` says what is connected; names and labels connect nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.etched_nets import NET
from layoutkit.errors import TechnologyError
from layoutkit.extract.connectivity import Nets, electrical_layers, wiring

if TYPE_CHECKING:
    from layoutkit.drc.etched_nets import EtchedNets
    from layoutkit.technology.technology import Technology

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
        self.etched: dict[str, EtchedNets] = {}
        """Diodes of antenna rules to the nets as the cell is made."""

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
            conductor: Layer, role or alias that carries nets (a conductor, cut, contact, poly or well), or their union.

        Raises:
            TechnologyError: If ``conductor`` carries no nets or ``region`` leaves it.
        """
        carriers = [carrier(self._technology, part.strip()) for part in conductor.split("|")]
        names = [name for name in carriers if name is not None]
        if len(names) < len(carriers):
            raise TechnologyError(
                f"'{conductor}' carries no nets; name with net_of the conductor, cut, contact, poly or well that does"
            )
        found, conducting = kdb.Region(), kdb.Region()
        for name in names:
            if name not in self._of:
                nets = self._nets.regions[name].nets(self._nets.database, NET)
                nets.enable_properties()
                self._of[name] = nets
            conducting += self._nets.regions[name]
            found += _parts(self._of[name], region)
        if not (region - conducting).is_empty():
            raise TechnologyError(
                f"a rule about nets is about polygons within one conductor; these leave '{conductor}'"
            )
        found.enable_properties()
        return found


def polygons_as_nets(region: kdb.Region, whole: kdb.Region) -> kdb.Region:
    """Return ``region`` with the polygon of ``whole`` that holds it as its net, as a property; it lies in ``whole``."""
    nets = Nets({"whole": whole}, (), 1.0)
    polygons = nets.regions["whole"].nets(nets.database, NET)
    polygons.enable_properties()
    return _parts(polygons, region)


def _parts(nets: kdb.Region, region: kdb.Region) -> kdb.Region:
    """Return ``region`` with the properties of the polygons of ``nets`` in which it lies."""
    found = nets.and_(region, kdb.Region.NoPropertyConstraint)  # keeps the properties of the first
    found.enable_properties()
    return found


def carrier(technology: Technology, layer: str) -> str | None:
    """Return the name under which ``electrical_layers`` holds ``layer``, None where the layer carries no nets."""
    carriers = {technology.resolve(cut.layer): cut.name for cut in technology.cuts}
    carriers.update({technology.resolve(conductor.layer): conductor.name for conductor in technology.conductors})
    carriers.update({technology.roles[role]: name for role, name in _ROLES.items() if role in technology.roles})
    return carriers.get(technology.resolve(layer))
