"""Which net a polygon is on, for the rules that ask: spacing by nets, antennas.

What is connected is what extraction says it is (``connectivity``); names and labels connect nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from layoutkit.drc.rules import Case
    from layoutkit.technology.technology import Technology

NET = "net"  # the name of the property that tells nets apart
_ROLES = {"poly": "poly", "contact": "contact", "nwell": "nwell", "deep_nwell": "deep_nwell", "pwell": "p_body"}


class Nets:
    """The nets of one cell.

    Args:
        cell: The cell, with all below it.
        technology: What connects to what.
        magnification: From the layout's database units to the working units of the check.
    """

    def __init__(self, cell: kdb.Cell, technology: Technology, magnification: float) -> None:
        from layoutkit.extract.connectivity import electrical_layers

        layout = cell.layout()
        drawn = set(layout.layer_indexes())
        electrical = electrical_layers(cell, technology)
        for index in set(layout.layer_indexes()) - drawn:  # layers that the cell does not have, asked for all the same
            layout.delete_layer(index)
        self._technology = technology
        self._conducting = {
            name: region if magnification == 1 else region.transformed(kdb.ICplxTrans(magnification)).merged()
            for name, region in electrical.conducting.items()
        }
        self._extracted = _extracted(self._conducting, electrical.joins, 1.0)
        self._of: dict[str, kdb.Region] = {}

    def of(self, region: kdb.Region, conductor: str) -> kdb.Region:
        """Return ``region`` with the net of each polygon as a property.

        Args:
            region: Merged polygons that lie in ``conductor``.
            conductor: Layer, role or alias that carries nets: a conductor, cut, contact, poly or well.

        Raises:
            TechnologyError: If ``conductor`` carries no nets or ``region`` leaves it.
        """
        name = self._named(conductor)
        if name not in self._of:
            nets = self._conducting[name].nets(self._extracted, NET)
            nets.enable_properties()
            self._of[name] = nets
        if not (region - self._conducting[name]).is_empty():
            raise TechnologyError(
                f"a rule about nets is about polygons within one conductor; these leave '{conductor}'"
            )
        found = self._of[name].and_(region, kdb.Region.NoPropertyConstraint)  # keeps the properties of the first
        found.enable_properties()
        return found

    def _named(self, layer: str) -> str:
        technology = self._technology
        wanted = technology.resolve(layer)
        carriers = {technology.resolve(stacked.layer): stacked.name for stacked in technology.cuts}
        carriers.update({technology.resolve(stacked.layer): stacked.name for stacked in technology.conductors})
        carriers.update({technology.roles[role]: name for role, name in _ROLES.items() if role in technology.roles})
        if wanted in carriers:
            return carriers[wanted]
        raise TechnologyError(
            f"'{layer}' carries no nets; name with net_of the conductor, cut, contact, poly or well that does"
        )


def _extracted(layers: dict[str, kdb.Region], joins: Any, unit_um: float) -> kdb.LayoutToNetlist:
    extraction = kdb.LayoutToNetlist("NETS", unit_um)
    for name, region in layers.items():
        extraction.register(region, name)
        extraction.connect(region)
    for one, other in joins:
        extraction.connect(layers[one], layers[other])
    extraction.extract_netlist()
    return extraction


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
    layers = case.layers
    stages = _stages(layers.technology)
    layer = layers.technology.resolve(case.text("layer"))
    if layer not in stages:
        raise TechnologyError(f"the layer of an antenna rule is one of {', '.join(stages)}; got '{case.text('layer')}'")
    stack = list(stages)[: list(stages).index(layer) + 1]
    regions = {name: layers.region(name).dup() for name in stack}
    # Without the gate in the connectivity KLayout finds no antenna at all, and says nothing.
    regions["gate"] = case.region("gate") & layers.region(stack[0])
    joins = [("gate", stack[0])] + [pair for name in stack for pair in stages[name] if set(pair) <= set(stack)]
    diodes: list[Any] = []
    if case.has("diode"):
        regions["diode"] = case.region("diode").dup()
        joins += [("diode", name) for name in stack[1:2]]
        diodes = [[regions["diode"], case.number("diode_ratio")]] if case.has("diode_ratio") else [regions["diode"]]
    extraction = _extracted(regions, joins, layers.unit_um)
    thickness = float(case.fields.get("thickness_um", 0.0)) if case.choice("measure") == "sidewall" else None
    factors = (1.0, 0.0) if thickness is None else (0.0, thickness)

    def beyond(ratio: float) -> kdb.Region:
        return extraction.antenna_check(regions["gate"], 1.0, 0.0, regions[layer], *factors, ratio, diodes)

    # Copied, because KLayout's own results end with the extraction.
    greatest = max((float(polygon.property("ratio")) for polygon in beyond(0.0).each()), default=None)
    return Antennas(greatest, kdb.Region([polygon.dup() for polygon in beyond(case.ratio).each()]))


def _stages(technology: Technology) -> dict[str, list[tuple[str, str]]]:
    """Return the layers that charge gates, in the order in which they are made, and what each connects."""
    poly, contact = technology.resolve("poly"), technology.resolve(technology.contact.layer)
    stages: dict[str, list[tuple[str, str]]] = {poly: [], contact: [(contact, poly)]}
    below = contact
    for number, conductor in enumerate(technology.conductors):
        layer = technology.resolve(conductor.layer)
        stages[layer] = [(below, layer)]
        if number < len(technology.cuts):
            below = technology.resolve(technology.cuts[number].layer)
            stages[below] = [(below, layer)]
    return stages
