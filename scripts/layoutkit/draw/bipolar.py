"""Vertical bipolar transistors: the foundry's cell, repeated in an array.

::

    +-------+-------+-------+   collector: a ring of substrate taps per unit, below one grid of the first conductor
    | +---+ | +---+ | +---+ |
    | | B | | | B | | | B | |   base ring in its own well, bars of the second conductor at its bottom and top
    | +---+ | +---+ | +---+ |
    +-------+-------+-------+   over each column a strap of the third conductor per net, equal in all columns
    | | B | | | A | | | B | |
    +-------+-------+-------+
    ======= collector rail ==
    ======= base rail =======   rails of the second conductor below the array: the pins
    ======= emitter rails ===

Every unit has the same neighbours, straps and bars, whichever transistor it belongs to. All terminals of a dummy are on
the net of the collector, so that LVS, here and in foundries' decks, takes it for no device. Neighbouring collector
rings share implant, marker and metal, but not the diffusion: the foundries' LVS decks take the box around a ring for
the collector, so that rings in one piece would short every unit in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.bipolar_array import ArrayDrawing, Bipolar, BipolarSpec
from layoutkit.draw.bipolar_cell import CellDrawing
from layoutkit.draw.bipolar_pattern import rows_of, with_dummies
from layoutkit.draw.passive import rectangle_on_grid, spec_of_kind
from layoutkit.errors import GeometryError, sentences
from layoutkit.technology.size_limits import MAX_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.passive_sizes import PassiveSize

__all__ = ["KIND", "NPN", "Bipolar", "BipolarSpec", "bipolar", "draw_bipolars"]

KIND, NPN = "pnp", "npn"


def bipolar(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> Bipolar:
    """Return the transistor ``device_id``.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: ``pnp``, ``npn``, a device of the technology, or its model.
        size: Sides of one emitter, in either order, and the number of units. Of an NPN with several emitters in one
            unit the width is that of all.
        nets: Terminal (c, b, e; s of an NPN; g1, w, g2, bn of a varactor) to net; one left out is called
            ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If the emitter has another size than the process has, or there are too many units.
        TechnologyError: If the process has no such device.
    """
    kind = tech.passive(flavour).kind
    spec = spec_of_kind(tech, flavour, kind.name if kind.in_cells else KIND)
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, _upright(spec, size, tech.dbu_um))
    given = nets or {}
    names = (*spec.kind.terminals, spec.kind.bulk or spec.kind.optional[0])
    collector, base, emitter, substrate = (given.get(name) or f"{device_id}_{name.upper()}" for name in names)
    own = "" if spec.kind.substrate else substrate
    return Bipolar(device_id, spec, width, length, m, collector, base, emitter, own, warnings)


def draw_bipolars(layout: kdb.Layout, tech: Technology, spec: BipolarSpec) -> Module:
    """Draw the transistors into the cell ``spec.name`` and return its module; units are ``<id>_1``, ``<id>_2``, ...

    Raises:
        GeometryError: If they do not fit together, or the pattern is not one of their units.
        TechnologyError: If the technology lacks a dimension.
    """
    _check(spec)
    rows = rows_of(spec.pattern, [device.m for device in spec.devices])
    drawing = ArrayDrawing if spec.devices[0].spec.cell is None else CellDrawing
    return drawing(tech, spec, with_dummies(rows, spec.dummies)).module(layout)


def _upright(spec: PassiveSpec, size: PassiveSize, dbu_um: float) -> PassiveSize:
    """Return the size with its sides in the order in which the process has them."""
    from dataclasses import replace

    metre = dbu_um * 1e-6
    tall = spec.max_w is not None and max(size.w_m, size.l_m) > (spec.max_w + 0.5) * metre
    return replace(size, w_m=min(size.w_m, size.l_m), l_m=max(size.w_m, size.l_m)) if tall else size


def _check(spec: BipolarSpec) -> None:
    first, faults = spec.devices[0], []
    names = [device.id for device in spec.devices]
    if len(set(names)) != len(names):
        faults.append(f"transistors named twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}")
    for device in spec.devices[1:]:
        if (device.spec, device.width, device.length) != (first.spec, first.width, first.length):
            faults.append(f"{device.id} has another flavour or emitter than {first.id}; draw it by itself")
        if device.ring != first.ring:
            what = "rings" if first.substrate else "collectors"
            faults.append(
                f"the {what} of {first.id} and {device.id} are on {first.ring} and {device.ring}, "
                "but both are the substrate; connect them to one net"
            )
    total = sum(device.m for device in spec.devices)
    if total > MAX_UNITS:
        faults.append(f"there are {total} units, at most {MAX_UNITS} are drawn")
    if faults:
        raise GeometryError(sentences(faults))
