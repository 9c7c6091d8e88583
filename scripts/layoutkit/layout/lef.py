"""The LEF of a cell: its outline, its pins and the metal that others keep away from, for a digital top level.

Coordinates are those of the layout; ORIGIN moves the lower left corner of the outline to (0, 0). On every conductor
that the cell draws on, the whole outline is an obstruction except for the pins and the spacing around them.
Format: LEF/DEF 5.8 Language Reference, MACRO.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.errors import LayoutkitError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.technology import Conductor, Technology

_UNUSABLE = frozenset(' \t\r\n;"#')


@dataclass(frozen=True)
class Lef:
    """A LEF file.

    Attributes:
        text: Its content.
        pins: Names of the pins, sorted.
        inside: Those of them that do not touch the outline.
        warnings: What was assumed, in words.
    """

    text: str
    pins: tuple[str, ...]
    inside: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def lef_of(cell: kdb.Cell, technology: Technology, uses: Mapping[str, tuple[str, str]] | None = None) -> Lef:
    """Return the LEF of a cell.

    Pins are the shapes of the pin layers below the cell's own labels; where the process has no pin layer, the smallest
    drawn shape of the conductor below the label.

    Args:
        cell: A finished layout.
        technology: Its process.
        uses: Use (signal, power, ground) and direction (input, output, inout) of ports; others are INOUT.

    Raises:
        LayoutkitError: If the cell is empty, has no label on metal, or a name that LEF cannot hold.
    """
    outline, warnings = _outline(cell, technology)
    pins: dict[str, list[tuple[Conductor, kdb.Box]]] = {}
    for conductor in technology.conductors:
        for name, box in _pins_on(cell, technology, conductor, outline):
            pins.setdefault(name, []).append((conductor, box & outline))
    _check(cell, pins)
    uses = uses or {}
    left, bottom, width, height = (
        _um(length, technology) for length in (-outline.left, -outline.bottom, outline.width(), outline.height())
    )
    lines = ["VERSION 5.8 ;", 'BUSBITCHARS "[]" ;', 'DIVIDERCHAR "/" ;', f"MACRO {cell.name}", "  CLASS BLOCK ;"]
    lines += [f"  ORIGIN {left} {bottom} ;", f"  SIZE {width} BY {height} ;"]
    for name in sorted(pins):
        use, direction = uses.get(name, ("", "inout"))
        lines += [
            f"  PIN {name}",
            f"    DIRECTION {direction.upper()} ;",
            *([f"    USE {use.upper()} ;"] if use else []),
        ]
        for conductor, box in sorted(pins[name], key=lambda entry: (entry[0].name, str(entry[1]))):
            lines += ["    PORT", f"      LAYER {conductor.name} ;", f"        {_rect(box, technology)}", "    END"]
        lines.append(f"  END {name}")
    lines += ["  OBS", *_obstructions(cell, technology, outline, pins), "  END", f"END {cell.name}", "END LIBRARY", ""]
    inside = [name for name, boxes in sorted(pins.items()) if not any(_touches(box, outline) for _, box in boxes)]
    return Lef("\n".join(lines), tuple(sorted(pins)), tuple(inside), tuple(warnings))


def _outline(cell: kdb.Cell, technology: Technology) -> tuple[kdb.Box, list[str]]:
    layout, role = cell.layout(), technology.role("boundary")
    box = cell.bbox()
    if box.empty():
        raise LayoutkitError(f"cell {cell.name} is empty; there is nothing to describe in LEF")
    if role is None:
        return box, []
    index = layout.find_layer(*technology.spec(role).gds)
    drawn = kdb.Box() if index is None else kdb.Region(cell.shapes(index)).bbox()
    if drawn.empty():
        return box, [f"cell {cell.name} has no shape on {role}; the outline in LEF is the box of all its shapes"]
    if not box.inside(drawn):
        beyond = max(drawn.left - box.left, drawn.bottom - box.bottom, box.right - drawn.right, box.top - drawn.top)
        text = f"shapes of cell {cell.name} lie up to {technology.to_um(beyond):g} um outside of its outline in LEF"
        return drawn, [f"{text}; keep neighbours away by that, too"]
    return drawn, []


def _pins_on(
    cell: kdb.Cell, technology: Technology, conductor: Conductor, outline: kdb.Box
) -> Iterator[tuple[str, kdb.Box]]:
    """Yield name and box of each pin on a conductor; one at the outline counts before others."""
    layout = cell.layout()
    labels, drawn = (
        layout.find_layer(*technology.spec(layer).gds)
        for layer in (conductor.label_layer, conductor.pin_layer or conductor.layer)
    )
    if labels is None or drawn is None:
        return
    for shape in sorted(cell.shapes(labels).each(kdb.Shapes.STexts), key=lambda each: str(each.text)):
        spot = kdb.Box(shape.text.x, shape.text.y, shape.text.x, shape.text.y)
        below = [each for each in cell.shapes(drawn).each_touching(spot) if each.is_box() or each.is_polygon()]
        boxes = [each.bbox() for each in below if kdb.Region(each.polygon).bbox().area() == each.area()]
        if boxes:
            yield shape.text.string, min(boxes, key=lambda box: (not _touches(box, outline), box.area(), str(box)))


def _check(cell: kdb.Cell, pins: Mapping[str, object]) -> None:
    unusable = sorted(name for name in [cell.name, *pins] if not name or _UNUSABLE & set(name))
    if unusable:
        shown = listed(map(repr, unusable))
        raise LayoutkitError(f"LEF cannot hold the names {shown}: they have a space, quote, ; or #; rename them")
    if not pins:
        raise LayoutkitError(
            f"cell {cell.name} has no label on a pin; label its ports on their metal, or draw it with flow.build_layout"
        )


def _obstructions(
    cell: kdb.Cell, technology: Technology, outline: kdb.Box, pins: Mapping[str, list[tuple[Conductor, kdb.Box]]]
) -> Iterator[str]:
    """Yield the lines of the obstructions: the outline on every conductor with metal, less pins and their spacing."""
    layout = cell.layout()
    for conductor in technology.conductors:
        index = layout.find_layer(*technology.spec(conductor.layer).gds)
        if index is None or cell.bbox(index).empty():
            continue
        space = max(conductor.space, conductor.wide_space or 0)
        blocked = kdb.Region(outline)
        for box in (box for boxes in pins.values() for at, box in boxes if at.name == conductor.name):
            blocked -= kdb.Region(box.enlarged(space, space))
        yield f"    LAYER {conductor.name} ;"
        pieces = blocked.merged().decompose_trapezoids_to_region(kdb.Polygon.TD_htrapezoids)
        for box in sorted((piece.bbox() for piece in pieces.each()), key=str):
            yield f"      {_rect(box, technology)}"


def _rect(box: kdb.Box, technology: Technology) -> str:
    return f"RECT {' '.join(_um(side, technology) for side in (box.left, box.bottom, box.right, box.top))} ;"


def _um(length: int, technology: Technology) -> str:
    """Return a length in micrometres without an exponent."""
    return f"{technology.to_um(length):.6f}".rstrip("0").rstrip(".")


def _touches(box: kdb.Box, outline: kdb.Box) -> bool:
    return any(getattr(box, side) == getattr(outline, side) for side in ("left", "bottom", "right", "top"))
