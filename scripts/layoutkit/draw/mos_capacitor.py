"""MOS capacitors: gates over diffusion whose source, drain and body are one net, drawn as rows of fingers.

::

      n   p   n   p   n         n+ diffusion in a well (accumulation), or that of a transistor (inversion)
    | # |   | # |   | # |       contact columns between the fingers, all on one net with the tap ring around them
    | # | G | # | G | # |       G: gates, all on the other net
    | # |   | # |   | # |

The rows, their wires and the ring are those of a transistor (``draw_mos``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.draw.passive import EqualRectangles, nets_of, rectangle_on_grid, spec_of_kind
from layoutkit.draw.sizes import row_sizes
from layoutkit.errors import GeometryError
from layoutkit.technology.passive_sizes import folded_gate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import DeviceSpec, PassiveSpec, Technology
    from layoutkit.technology.passive_sizes import PassiveSize

_MOST_ROWS = 8


@dataclass(frozen=True)
class MosCapacitor(EqualRectangles):
    """A MOS capacitor: ``p`` is the net of the gates, ``n`` that of diffusion and body; ``m`` counts gates."""

    def farad(self, dbu_um: float) -> float:
        """Return the capacitance of the gates by their area. [F]"""
        return self.spec.value * self.width * self.length * dbu_um**2 * self.m


def mos_capacitor(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> MosCapacitor:
    """Return the MOS capacitor ``device_id`` with its gates on the grid of ``tech``, wide ones folded.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: ``mos_capacitor``, a device of the technology, or its model.
        size: As in the netlist: width and length of one gate.
        nets: Terminal (p, n) to net; a terminal left out is called ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If a size is below or above what the process allows.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, "mos_capacitor")
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, size)
    total = width * m
    width, m = folded_gate(tech, spec, width, m)
    if width * m != total:
        text = f"{device_id}: {m} gates of {tech.to_um(width):g} um are {tech.to_um(width * m):g} um wide in all"
        warnings = (*warnings, f"{text}, not {tech.to_um(total):g} um")
    return MosCapacitor(device_id, spec, width, length, m, *nets_of(device_id, nets), warnings)


def draw_mos_capacitor(
    layout: kdb.Layout, tech: Technology, name: str, device: MosCapacitor, *, labels: bool = True
) -> Module:
    """Draw the capacitor into the cell ``name`` and return its module.

    Raises:
        GeometryError: If a gate would lie too far from the taps.
        TechnologyError: If the technology lacks a dimension.
    """
    own, transistor = _drawn_as(tech, device.spec)
    drawn = Transistor(
        device.id,
        transistor,
        device.width,
        device.length,
        device.m,
        1,
        drain=device.n,
        gate=device.p,
        source=device.n,
        bulk=device.n,
        warnings=device.warnings,
    )
    rows = _rows(own, transistor, device)
    return draw_mos(layout, own, MosSpec(drawn, name, rows=rows, labels=labels))


def _drawn_as(tech: Technology, spec: PassiveSpec) -> tuple[Technology, DeviceSpec]:
    """Return the technology and the transistor that draw a MOS capacitor.

    Where the gate accumulates, diffusion and taps are of one type: they share one implant, and one layer.
    """
    transistor = spec.diffusion_of
    if transistor is None:
        raise GeometryError(f"{spec.name} does not say as which transistor it is drawn")
    covers = (*transistor.covers, *spec.covers)
    tap = tech.role("tap")
    if spec.accumulates:
        covers = (*covers, spec.parts["implant"])
        tech = tech if tap is None else replace(tech, roles={**tech.roles, "active": tap})
    return tech, replace(
        transistor,
        name=spec.name,
        model=spec.model,
        min_w=spec.min_w,
        min_l=spec.min_l,
        implant=spec.parts["implant"],
        markers=(*transistor.markers, *spec.markers),
        covers=covers,
        dimensions={**transistor.dimensions, **spec.dimensions},
    )


def _rows(tech: Technology, transistor: DeviceSpec, device: MosCapacitor) -> int:
    """Return into how many rows the gates are folded: as many as bring the block near to a square."""
    sizes = row_sizes(tech, transistor)
    pitch = device.length + 2 * sizes.contact_to_gate + sizes.contact
    height = device.width + 2 * (sizes.rail + sizes.rail_space) + sizes.gate_contact_to_active + sizes.strip
    reach = 2 * tech.dim("tap_max_distance", transistor)

    def aspect(rows: int) -> float:
        wide, high = -(-device.m // rows) * pitch, rows * height
        return max(wide / high, high / wide)

    able = [rows for rows in range(1, min(device.m, _MOST_ROWS) + 1) if rows == 1 or rows * height < reach]
    return min(able, key=lambda rows: (round(aspect(rows), 3), rows))
