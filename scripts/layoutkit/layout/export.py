"""Export one cell of a layout: as a file with verified content, and as LEF.

The LEF of a cell: its outline, its pins and the metal that others keep away from, for a digital top level.

Coordinates of the LEF are those of the layout; ORIGIN moves the lower left corner of the outline to (0, 0). On every
conductor that the cell draws on, the whole outline is an obstruction except for the pins and the spacing around them.
Format: LEF/DEF 5.8 Language Reference, MACRO.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import KlayoutError, LayoutkitError, UnsupportedOperationError, listed
from layoutkit.layout import files
from layoutkit.layout.cells import check_flat_size, choose_cell, copy_content, select_layers, sorted_layers
from layoutkit.templates import rendered

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.technology import Conductor, Technology


_MAX_COORDINATE = 2**31 - 1
_MICROMETRE_M = 1e-6


@dataclass(frozen=True)
class ExportOptions:
    """What to export, and in which form.

    Attributes:
        cell_name: Cell that becomes the file's top cell; ``None`` takes the layout's only top cell.
        flatten: Whether to resolve the hierarchy into that one cell.
        layer_filter: Layers to keep: a layer number (all its datatypes), "68/20", or a layer name of ``technology``.
            ``None`` keeps all.
        unit_m: User unit of the file. [m]
        precision_m: Database unit of the file. [m]
        technology: Defines the layer names that ``layer_filter`` may use.
    """

    cell_name: str | None = None
    flatten: bool = False
    layer_filter: Sequence[int | str] | None = None
    unit_m: float = 1e-6
    precision_m: float = 1e-9
    technology: Technology | None = None


def export_layout(layout: kdb.Layout, output_path: str | os.PathLike[str], options: ExportOptions) -> dict[str, Any]:
    """Write one cell of ``layout`` to ``output_path`` and return what was written, as ``export.gds`` answers it.

    Shapes are counted as stored, not as flattened.

    The bytes are read back and compared with the layout before the file appears under its name.

    Raises:
        LayoutkitError: If the cell or a layer does not exist, or a coordinate is not a multiple of the precision.
        FileError: If the file's format is unknown or it cannot be written.
        UnsupportedOperationError: If OASIS is requested with a user unit other than the micrometre.
        KlayoutError: If the written bytes differ from the layout.
    """
    layout_format, zipped = files.format_of(output_path)
    files.check_target(output_path)
    for name, value in (("unit", options.unit_m), ("precision", options.precision_m)):
        if not 1e-12 <= value <= 1.0:
            raise LayoutkitError(
                f"{name} must be from 1e-12 to 1 m, got {value:g}",
                details={"param_name": name, "provided_value": value},
            )
    if options.precision_m > options.unit_m:
        raise LayoutkitError(
            f"precision ({options.precision_m:g} m) must not be coarser than unit ({options.unit_m:g} m)",
            details={"param_name": "precision", "provided_value": options.precision_m},
        )
    if layout_format == "OASIS" and not isclose(options.unit_m, _MICROMETRE_M):
        raise UnsupportedOperationError("OASIS has no user unit: keep unit at 1e-6 or write .gds")
    picked = _picked(layout, options)
    dbu_um = options.precision_m / _MICROMETRE_M
    if isclose(dbu_um, picked.dbu, rel_tol=1e-9):
        dbu_um = picked.dbu
    _check_range(picked, dbu_um)
    data = files.layout_bytes(picked, layout_format, dbu_um=dbu_um, user_unit_um=options.unit_m / _MICROMETRE_M)
    _compare(picked, data, dbu_um)
    if zipped:
        data = files.zipped_bytes(data)
    files.write_bytes(output_path, data)
    return {
        "output_path": str(Path(output_path).resolve()),
        "cell_name": picked.top_cells()[0].name,
        "file_size_bytes": len(data),
        "export_stats": _stats(picked),
    }


def _picked(layout: kdb.Layout, options: ExportOptions) -> kdb.Layout:
    """Return a new layout with the chosen cell, its children and the chosen layers only."""
    cell = choose_cell(layout, options.cell_name)
    wanted = options.layer_filter
    kept = None if wanted is None else set(select_layers(layout, wanted, options.technology, "layer_filter"))
    picked = kdb.Layout()
    picked.dbu = layout.dbu
    originals = sorted(
        (layout.cell(index) for index in {cell.cell_index(), *cell.called_cells()}), key=lambda each: each.name
    )
    index = {original.cell_index(): picked.create_cell(original.name).cell_index() for original in originals}
    for original in originals:
        copy_content(original, picked.cell(index[original.cell_index()]), index)
    for info in sorted_layers(picked):
        if kept is not None and (info.layer, info.datatype) not in kept:
            picked.delete_layer(picked.layer(info))
    if options.flatten:
        top = picked.cell(cell.name)
        check_flat_size(top)
        top.flatten(-1, True)
    return picked


def _check_range(layout: kdb.Layout, dbu_um: float) -> None:
    """Check that all coordinates fit into GDSII's 32 bits at this precision."""
    for cell in layout.each_cell():
        box = cell.bbox()
        reach = max(abs(box.left), abs(box.right), abs(box.bottom), abs(box.top)) if not box.empty() else 0
        if reach * layout.dbu / dbu_um > _MAX_COORDINATE:
            raise LayoutkitError(
                f"precision {dbu_um * _MICROMETRE_M:g} m is too fine: cell '{cell.name}' reaches to "
                f"{reach * layout.dbu:g} um, which does not fit into 32 bits",
                details={"param_name": "precision", "cell_name": cell.name},
            )


def _compare(layout: kdb.Layout, data: bytes, dbu_um: float) -> None:
    """Read ``data`` back in the layout's own database unit, and check that it equals ``layout``."""
    written = _parsed(data)
    if dbu_um != layout.dbu:
        written = _parsed(files.layout_bytes(written, "GDS2", dbu_um=layout.dbu))
    if isclose(written.dbu, layout.dbu, rel_tol=1e-9):
        written.dbu = layout.dbu
    difference = _difference(layout, written)
    if difference is None:
        return
    if dbu_um != layout.dbu:
        raise LayoutkitError(
            f"precision {dbu_um * _MICROMETRE_M:g} m cannot hold this layout without rounding ({difference}); "
            f"the layout's own is {layout.dbu * _MICROMETRE_M:g} m",
            details={"param_name": "precision", "layout_precision_m": layout.dbu * _MICROMETRE_M},
        )
    raise KlayoutError(f"the written file differs from the layout ({difference}); nothing was written")


def _parsed(data: bytes) -> kdb.Layout:
    options = kdb.LoadLayoutOptions()
    options.warn_level = 0
    layout = kdb.Layout()
    layout.read_bytes(data, options)
    return layout


def _difference(layout: kdb.Layout, written: kdb.Layout) -> str | None:
    """Return where the two layouts differ, ``None`` if they are equal.

    GDSII splits polygons of more than 8000 points and resolves holes, so shapes that differ are compared by area.
    """
    flags = kdb.LayoutDiff.NoLayerNames | kdb.LayoutDiff.NoProperties | kdb.LayoutDiff.BoxesAsPolygons
    if kdb.LayoutDiff().compare(layout, written, flags):
        return None
    names = sorted(cell.name for cell in layout.each_cell())
    if names != sorted(cell.name for cell in written.each_cell()):
        return "cell names"
    for name in names:
        ours, theirs = layout.cell(name), written.cell(name)
        if _instances(ours) != _instances(theirs):
            return f"instances in cell '{name}'"
        for info in sorted_layers(layout):
            mine, other = ours.shapes(layout.layer(info)), theirs.shapes(written.layer(info))
            if kdb.Region(mine) ^ kdb.Region(other) or _texts(mine) != _texts(other):
                return f"layer {info.layer}/{info.datatype} of cell '{name}'"
    return None


def _instances(cell: kdb.Cell) -> list[str]:
    layout = cell.layout()
    placed = []
    for instance in cell.each_inst():
        array = instance.cell_inst
        steps = sorted([(str(array.a), array.na), (str(array.b), array.nb)])
        placed.append(f"{layout.cell(array.cell_index).name} {array.cplx_trans} {steps}")
    return sorted(placed)


def _texts(shapes: kdb.Shapes) -> list[str]:
    return sorted(str(shape.text) for shape in shapes.each(kdb.Shapes.STexts))


def _stats(layout: kdb.Layout) -> dict[str, Any]:
    polygons = paths = texts = 0
    drawn = []
    cells = list(layout.each_cell())
    for info in sorted_layers(layout):
        layer = layout.layer(info)
        for cell in cells:
            shapes = cell.shapes(layer)
            path_count = sum(1 for _ in shapes.each(kdb.Shapes.SPaths))
            text_count = sum(1 for _ in shapes.each(kdb.Shapes.STexts))
            polygons += sum(1 for _ in shapes.each(kdb.Shapes.SPolygons | kdb.Shapes.SBoxes))
            paths += path_count
            texts += text_count
        if any(not cell.shapes(layer).is_empty() for cell in cells):
            drawn.append(f"{info.layer}/{info.datatype}")
    return {
        "cell_count": len(cells),
        "layer_count": len(drawn),
        "polygon_count": polygons,
        "path_count": paths,
        "text_count": texts,
        "layers": drawn,
    }


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
    text = rendered(
        "cell.lef",
        name=cell.name,
        outline=outline,
        pins={
            name: sorted(((each.name, box) for each, box in at), key=lambda entry: (entry[0], str(entry[1])))
            for name, at in pins.items()
        },
        uses=uses or {},
        obstructions=dict(_obstructions(cell, technology, outline, pins)),
        um=lambda length: f"{technology.to_um(length):.6f}".rstrip("0").rstrip("."),  # without an exponent
    )
    inside = [name for name, boxes in sorted(pins.items()) if not any(_touches(box, outline) for _, box in boxes)]
    return Lef(str(text), tuple(sorted(pins)), tuple(inside), tuple(warnings))


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
) -> Iterator[tuple[str, list[kdb.Box]]]:
    """Yield the obstructions by conductor: the outline wherever it has metal, less pins and their spacing."""
    layout = cell.layout()
    for conductor in technology.conductors:
        index = layout.find_layer(*technology.spec(conductor.layer).gds)
        if index is None or cell.bbox(index).empty():
            continue
        space = conductor.spacing()
        blocked = kdb.Region(outline)
        for box in (box for boxes in pins.values() for at, box in boxes if at.name == conductor.name):
            blocked -= kdb.Region(box.enlarged(space, space))
        pieces = blocked.merged().decompose_trapezoids_to_region(kdb.Polygon.TD_htrapezoids)
        yield conductor.name, sorted((piece.bbox() for piece in pieces.each()), key=str)


def _touches(box: kdb.Box, outline: kdb.Box) -> bool:
    return any(getattr(box, side) == getattr(outline, side) for side in ("left", "bottom", "right", "top"))
