"""Cells of a layout: create or empty them, copy them between layouts, count their flattened shapes, select layers."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from layoutkit.errors import FileError, LayoutkitError, listed
from layoutkit.layout.bounds import MAX_FLAT_SHAPES, cell_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.technology import Technology

LONGEST_NAME = 60  # characters of the names that the flow gives its cells
_NAME_LIMIT = 32000  # KLayout cuts longer GDSII names


def check_cell_name(name: str) -> None:
    """Check that GDSII can hold a cell name; KLayout would silently replace other characters by ``$``.

    Raises:
        LayoutkitError: If ``name`` is empty, too long, or contains spaces or characters other than printable ASCII.
    """
    wrong = sorted({character for character in name if not "!" <= character <= "~"})
    if wrong or not 0 < len(name) <= _NAME_LIMIT:
        raise LayoutkitError(
            f"cell name {name!r} cannot be stored in GDSII: use 1 to {_NAME_LIMIT} printable ASCII characters "
            "without spaces",
            details={"cell_name": name, "not_allowed": wrong},
        )


def choose_cell(layout: kdb.Layout, name: str | None = None) -> kdb.Cell:
    """Return the cell ``name`` of ``layout``, or the only top cell if ``name`` is None.

    Raises:
        LayoutkitError: If there is no such cell, no cell at all, or more than one top cell; the message lists them.
    """
    names = sorted(cell.name for cell in layout.each_cell())
    if not names:
        raise LayoutkitError("the layout holds no cells")
    if name is not None:
        if name not in names:
            raise LayoutkitError(
                f"the layout has no cell '{name}'; it has: {listed(names)}",
                details={"param_name": "cell_name", "provided_value": name, "available_cells": names},
            )
        return layout.cell(name)
    tops = sorted(layout.top_cells(), key=lambda cell: cell.name)
    if len(tops) > 1:
        available = [cell.name for cell in tops]
        raise LayoutkitError(
            f"the layout has {len(tops)} top cells, choose one with cell_name: {listed(available)}",
            details={"param_name": "cell_name", "available_cells": available},
        )
    return tops[0]


def to_unit(layout: kdb.Layout, dbu_um: float) -> None:
    """Give a layout the database unit ``dbu_um``, as engines that count in a technology's unit need it.

    Places stay where they are; those between units of a coarser grid are rounded to it. [um]
    """
    import klayout.db as kdb

    if abs(layout.dbu - dbu_um) > 1e-9 * dbu_um:
        layout.transform(kdb.ICplxTrans(layout.dbu / dbu_um))
        layout.dbu = dbu_um


def short_name(text: str) -> str:
    """Return a text as the name of a cell; a long one ends with its digest, so that two stay two."""
    digest = sha256(text.encode()).hexdigest()[:8]
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 9]}_{digest}"


def fresh_cell(layout: kdb.Layout, name: str) -> kdb.Cell:
    """Return the empty cell ``name`` of ``layout``, ready to be drawn into.

    An existing cell of this name is emptied in place, so that its instances in other cells stay; cells that only it
    used are removed.

    Raises:
        LayoutkitError: If GDSII cannot hold ``name``.
    """
    check_cell_name(name)
    cell = layout.cell(name)
    if cell is None:
        return layout.create_cell(name)
    children = sorted(layout.cell(index).name for index in cell.each_child_cell())
    cell.clear()
    for child_name in children:
        child = layout.cell(child_name)
        if child is not None and child.is_top():
            layout.prune_cell(child.cell_index(), -1)
    return cell


def store_cell(layout: kdb.Layout, source: kdb.Cell) -> kdb.Cell:
    """Copy ``source`` and the cells below it from another layout into ``layout``; return the copy.

    Existing cells of the same names are replaced, as by ``fresh_cell``.

    Raises:
        FileError: If the two layouts differ in database unit.
        LayoutkitError: If GDSII cannot hold a cell's name.
    """
    origin = source.layout()
    if abs(origin.dbu - layout.dbu) > 1e-6 * layout.dbu:
        raise FileError(f"cannot copy cell {source.name}: database units differ ({origin.dbu:g}, {layout.dbu:g} um)")
    originals = sorted(
        (origin.cell(index) for index in {source.cell_index(), *source.called_cells()}), key=lambda cell: cell.name
    )
    for original in originals:
        fresh_cell(layout, original.name)
    # Emptying a cell may remove a cell made before; in a second pass all are empty and nothing is removed.
    copies = {original.cell_index(): fresh_cell(layout, original.name) for original in originals}
    index = {original: copy.cell_index() for original, copy in copies.items()}
    for original in originals:
        copy_content(original, copies[original.cell_index()], index)
    return copies[source.cell_index()]


def copy_content(source: kdb.Cell, target: kdb.Cell, index: Mapping[int, int]) -> None:
    """Add the shapes, instances and properties of ``source`` to ``target`` of another layout, in sorted order.

    Args:
        source: Cell to copy from.
        target: Cell to copy to.
        index: Cell index in the source's layout -> in the target's layout, for the cells that ``source`` uses.
    """
    origin, layout = source.layout(), target.layout()
    for info in sorted_layers(origin):
        shapes = source.shapes(origin.layer(info))
        if not shapes.is_empty():
            target.shapes(layout.layer(info)).insert(shapes)
    if source.prop_id:
        target.prop_id = layout.properties_id(origin.properties(source.prop_id))
    placed = []
    for instance in source.each_inst():
        array = instance.cell_inst.dup()
        array.cell_index = index[array.cell_index]
        properties = origin.properties(instance.prop_id) if instance.prop_id else {}
        name = layout.cell(array.cell_index).name
        placed.append(((name, str(array), sorted(map(str, properties.items()))), array, properties))
    for _, array, properties in sorted(placed, key=lambda item: item[0]):
        if properties:
            target.insert(array, layout.properties_id(properties))
        else:
            target.insert(array)


def sorted_layers(layout: kdb.Layout) -> list[kdb.LayerInfo]:
    """Return the layers of ``layout`` by layer number, datatype and name."""
    return sorted(layout.layer_infos(), key=lambda info: (info.layer, info.datatype, info.name))


def select_layers(
    layout: kdb.Layout, wanted: Sequence[int | str], technology: Technology | None, param_name: str
) -> list[tuple[int, int]]:
    """Return the (layer, datatype) pairs of ``layout`` that ``wanted`` selects, sorted.

    Args:
        layout: Layout to choose from.
        wanted: Layer numbers (all datatypes), strings such as "68/20", or layer names of ``technology``.
        technology: Defines layer names; ``None`` allows numbers only.
        param_name: Parameter to name in an error.

    Raises:
        LayoutkitError: If an entry matches no layer of the layout; the message lists what it has.
    """
    present = [(info.layer, info.datatype) for info in sorted_layers(layout)]
    selected: set[tuple[int, int]] = set()
    for entry in wanted:
        matching = [pair for pair in present if _matches(entry, pair, technology)]
        if not matching:
            available = [f"{layer}/{datatype}" for layer, datatype in present]
            raise LayoutkitError(
                f"{param_name}: nothing is drawn on layer {entry}; the layout has: {', '.join(available) or 'none'}",
                details={"param_name": param_name, "provided_value": entry, "available_layers": available},
            )
        selected.update(matching)
    return sorted(selected)


def _matches(wanted: int | str, pair: tuple[int, int], technology: Technology | None) -> bool:
    if isinstance(wanted, int):
        return pair[0] == wanted
    parts = wanted.split("/")
    if len(parts) <= len(pair) and all(part.isascii() and part.isdigit() for part in parts):
        return tuple(map(int, parts)) == pair[: len(parts)]
    if technology is None:
        raise LayoutkitError(f"'{wanted}' is not a layer number; to use layer names, specify a technology")
    return pair == technology.spec(wanted).gds


def check_flat_size(cell: kdb.Cell) -> None:
    """Check that a cell does not hold more shapes than fit into memory when flattened.

    A file of a few kilobytes can describe more shapes than fit into memory (arrays of arrays), so operations on flat
    shapes call this first.

    Raises:
        LayoutkitError: If the flat cell would hold more than ``MAX_FLAT_SHAPES``.
    """
    count = flat_shape_count(cell)
    if count > MAX_FLAT_SHAPES:
        raise LayoutkitError(
            f"cell '{cell.name}' holds {count} shapes when flattened, more than the allowed {MAX_FLAT_SHAPES}; "
            "choose a smaller cell",
            details={"cell_name": cell.name, "flat_shapes": count, "limit": MAX_FLAT_SHAPES},
        )


def flat_shape_count(cell: kdb.Cell) -> int:
    """Return how many shapes the flattened ``cell`` would hold, without flattening it."""
    return cell_counts(cell.layout(), cell)[cell.cell_index()].shapes
