"""Find layers with shapes that a check does not understand, so that it never reports them as clean.

DRC understands a layer if a rule judges it, LVS if extraction reads it. Layers that leave nothing on the wafer (labels,
pins, outlines) need neither. Every other layer with shapes is reported as unchecked, also if the technology does not
name it, and the verdict is then not complete, unless the caller waives the layer by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import MAX_LISTED, LayoutkitError, TechnologyError
from layoutkit.technology.expressions import Numbered, parse
from layoutkit.technology.inspection import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from layoutkit.technology.technology import Technology

    Gds = tuple[int, int]


@dataclass(frozen=True)
class UncheckedLayer:
    """A layer with shapes that a check does not understand.

    Attributes:
        gds: GDS layer and datatype.
        name: Its name in the technology, None where it has none.
        reason: Why it is not understood.
    """

    gds: tuple[int, int]
    name: str | None
    reason: str

    @property
    def shown(self) -> str:
        """Its name and number, as a message shows it."""
        number = f"{self.gds[0]}/{self.gds[1]}"
        return number if self.name is None else f"{self.name} ({number})"

    def to_data(self) -> dict[str, str | None]:
        """Return the layer as JSON data."""
        return {"layer": f"{self.gds[0]}/{self.gds[1]}", "name": self.name, "reason": self.reason}


@dataclass(frozen=True)
class Coverage:
    """What a check understands of the drawn layers.

    Attributes:
        unchecked: Layers with shapes that it does not understand and that are not waived, by number.
        waived: Layers of this kind that the caller waived, as ``layer/datatype``.
    """

    unchecked: tuple[UncheckedLayer, ...] = ()
    waived: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """Return the layers as JSON data, in the form of every verdict: the first unchecked ones, and their number."""
        return {
            "layers_unchecked": [layer.to_data() for layer in self.unchecked[:MAX_LISTED]],
            "layers_unchecked_count": len(self.unchecked),
            "layers_waived": list(self.waived),
        }


def drawn_layers(cell: kdb.Cell) -> Iterator[tuple[int, int]]:
    """Yield the GDS layers that hold polygons, boxes or paths in ``cell`` or below it, by number."""
    layout = cell.layout()
    for info in sorted(layout.layer_infos(), key=lambda info: (info.layer, info.datatype)):
        shapes = cell.begin_shapes_rec(layout.layer(info))
        shapes.shape_flags = kdb.Shapes.SRegions
        if not shapes.at_end():
            yield info.layer, info.datatype


def coverage(
    cell: kdb.Cell, technology: Technology, understood: Collection[Gds], waived: Sequence[str], why: str
) -> Coverage:
    """Return which layers of ``cell`` a check understands.

    Args:
        cell: What is checked, with all below it.
        technology: Names the layers.
        understood: The layers that the check judges or reads.
        waived: Layers that the caller waives: names of the technology, or ``layer/datatype``.
        why: Why the check does not understand a layer that the technology names.

    Raises:
        LayoutkitError: If an entry of ``waived`` is neither a layer's name nor a number; all are named.
    """
    allowed = waived_layers(waived, technology)
    unchecked, spared = [], []
    for gds in drawn_layers(cell):
        spec = technology.layer_at(gds)
        if gds in understood or (spec is not None and not spec.on_a_mask):
            continue
        if gds in allowed:
            spared.append(f"{gds[0]}/{gds[1]}")
            continue
        reason = f"{technology.name} names no such layer" if spec is None else f"{why} ({_meaning(spec.purpose)})"
        unchecked.append(UncheckedLayer(gds, None if spec is None else spec.name, reason))
    return Coverage(tuple(unchecked), tuple(spared))


def _meaning(purpose: str) -> str:
    """Return in words what layers of a purpose are for."""
    return str(SCHEMA.content["$defs"]["purpose"]["x-meanings"][purpose])


def waived_layers(waived: Sequence[str], technology: Technology) -> set[Gds]:
    """Return the GDS layers that the entries of ``waived`` name.

    Raises:
        LayoutkitError: If an entry is neither a layer's name nor ``layer/datatype``; all such are named.
    """
    numbers = {entry: _number_of(entry, technology) for entry in waived}
    unknown = [entry for entry, number in numbers.items() if number is None]
    if unknown:
        raise LayoutkitError(
            f"waived_layers: {', '.join(map(repr, unknown))}: {technology.name} has no such layer; "
            "give a layer's name, or layer/datatype such as 200/3",
            details={"param_name": "waived_layers", "unknown": unknown},
        )
    return {number for number in numbers.values() if number is not None}


def _number_of(entry: str, technology: Technology) -> Gds | None:
    try:
        tree = None if technology.resolve(entry) in technology.other_layers else parse(entry)
        return (tree.layer, tree.datatype) if isinstance(tree, Numbered) else technology.spec(entry).gds
    except TechnologyError:
        return None


def made_for_plates(cell: kdb.Cell, technology: Technology) -> Technology:
    """Return the process with the options of its masks that the drawn plates of capacitors need, as far as they tell.

    Plates that lie in the bottom metal of another option only are that option's.
    """
    specs = [spec for _, spec in sorted(technology.passives.items()) if spec.options and "plate" in spec.parts]
    specs.sort(key=lambda spec: sum(technology.options.get(name) != spec.options[name] for name in spec.options))
    for spec in specs:
        plates = technology.region(cell, spec.parts["plate"])
        bottom = technology.region(cell, technology.conductor(spec.parts["bottom"]).layer)
        if not plates.is_empty() and not plates.inside(bottom).is_empty():
            return technology.made_for([spec.name])
    return technology
