"""What a layout may hold: missing cells and bombs are refused by name when a file is read, in time and memory."""

import struct

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.errors import FileError
from layoutkit.layout import bounds, files

FULL = 2**31 - 1


def new(dbu=0.001):
    layout = kdb.Layout()
    layout.dbu = dbu
    return layout, layout.layer(68, 20), layout.create_cell("TOP")


def chain(links, repeat=(1, 1), twice=False, empty=False, magnification=1.0):
    """A chain of cells, each placed in the one above once, twice or as an array, with one box in the last."""
    layout, layer, cell = new()
    for number in range(links):
        below = layout.create_cell(f"C{number}")
        trans = kdb.ICplxTrans(magnification, 0, False, 3, 4)
        cell.insert(kdb.CellInstArray(below.cell_index(), trans, kdb.Vector(10, 0), kdb.Vector(0, 10), *repeat))
        if twice:
            cell.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans(0, False, 50, 0)))
        cell = below
    if not empty:
        cell.shapes(layer).insert(kdb.Box(0, 0, 5, 5))
    return layout


def drawn(*shapes):
    layout, layer, cell = new()
    for shape in shapes:
        cell.shapes(layer).insert(shape)
    return layout


def texts():
    layout, layer, cell = new()
    below = layout.create_cell("TEXT")
    below.shapes(layer).insert(kdb.Text("a", kdb.Trans()))
    pitch = kdb.Vector(10, 0), kdb.Vector(0, 10)
    cell.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans(), *pitch, 3000, 3000))
    return layout


ZIGZAG = [kdb.Point(x, 10 * (x % 2)) for x in range(bounds.MAX_POINTS)] + [kdb.Point(4000, 9000)]
BOMBS = {
    "one box over all coordinates": (lambda: drawn(kdb.Box(-FULL, -FULL, FULL, FULL)), "from its origin"),
    "two boxes far apart": (
        lambda: drawn(kdb.Box(-FULL, -FULL, 9 - FULL, 9 - FULL), kdb.Box(FULL - 9, FULL - 9, FULL, FULL)),
        "from its origin",
    ),
    "a box far from the origin": (lambda: drawn(kdb.Box(2 * 10**9, 0, 2 * 10**9 + 5, 5)), "from its origin"),
    "a path as wide as all coordinates": (
        lambda: drawn(kdb.Path([kdb.Point(0, 0), kdb.Point(99, 0)], FULL - 1)),
        "from its origin",
    ),
    "a polygon of many points": (lambda: drawn(kdb.Polygon(ZIGZAG, True)), "vertices"),
    "arrays of arrays": (lambda: chain(4, (3000, 3000)), "shapes when flattened"),
    "texts in an array": (texts, "shapes when flattened"),
    "a tree that doubles": (lambda: chain(60, twice=True), "shapes when flattened"),
    "a tree that doubles and draws nothing": (lambda: chain(60, twice=True, empty=True), "instances"),
    "a long chain": (lambda: chain(bounds.MAX_DEPTH), "levels deep"),
    "cells magnified again and again": (lambda: chain(40, magnification=100.0), "from its origin"),
}


def saved(layout, path):
    options = kdb.SaveLayoutOptions()
    options.format = "OASIS" if path.suffix == ".oas" else "GDS2"
    options.oasis_compression_level = 10
    options.gds2_multi_xy_records = True
    path.write_bytes(layout.write_bytes(options))
    return path


def reason(path):
    with pytest.raises(FileError) as caught:
        files.read_layout(path)
    assert caught.value.code == "INVALID_PARAM"
    return caught.value.details["reason"]


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_when_it_is_read_as_gds(tmp_path, name):
    make, expected = BOMBS[name]
    assert expected in reason(saved(make(), tmp_path / "bomb.gds"))


@pytest.mark.parametrize("name", ["arrays of arrays", "a path as wide as all coordinates"])
def test_a_bomb_is_refused_when_it_is_read_as_oasis(tmp_path, name):
    make, expected = BOMBS[name]
    assert expected in reason(saved(make(), tmp_path / "bomb.oas"))


def test_a_chain_of_cells_too_long_for_klayouts_reader_is_refused_before_it_reads(monkeypatch, tmp_path):
    path = saved(chain(bounds.MAX_DEPTH), tmp_path / "chain.gds")
    monkeypatch.setattr(bounds, "MANY_CELLS", 10)
    assert bounds.gds_faults(path.read_bytes()) == ["its cells are nested 101 levels deep; at most 100 are read"]


def test_more_layers_than_klayouts_reader_can_take_are_refused_before_it_reads(monkeypatch, tmp_path):
    layout = drawn(kdb.Box(0, 0, 5, 5))
    for number in range(20):
        layout.top_cell().shapes(layout.layer(1000, number)).insert(kdb.Text("t", kdb.Trans()))
    path = saved(layout, tmp_path / "layers.gds")
    assert files.read_layout(path).layers() == 21
    monkeypatch.setattr(bounds, "MAX_LAYERS", 20)
    assert reason(path) == "it has 21 layers; at most 20 are read"


def test_missing_cells_are_refused_by_name(tmp_path):
    layout = chain(1)
    layout.cell("C0").clear()
    data = files.layout_bytes(layout, "GDS2")
    name = struct.pack(">HH", 6, 0x1206)
    path = tmp_path / "ghost.gds"
    path.write_bytes(data.replace(name + b"C0", name + b"PA"))
    assert "cells that it does not contain: PA" in reason(path)


def test_a_cell_that_is_empty_but_there_is_no_missing_cell(tmp_path):
    assert files.read_layout(saved(chain(1, empty=True), tmp_path / "empty.gds")).cells() == 2


def test_what_is_at_the_limits_is_read(tmp_path):
    edge = bounds.MAX_COORDINATE
    layout = drawn(kdb.Box(-edge, -edge, 5 - edge, 5 - edge), kdb.Box(edge - 5, edge - 5, edge, edge))
    assert files.read_layout(saved(layout, tmp_path / "wide.gds")).cells() == 1
    assert files.read_layout(saved(chain(bounds.MAX_DEPTH - 1), tmp_path / "deep.gds")).cells() == bounds.MAX_DEPTH
    assert files.read_layout(saved(chain(1, (2000, 2000)), tmp_path / "many.gds")).cells() == 2


orientations = st.builds(
    kdb.ICplxTrans,
    st.sampled_from([0.5, 1.0, 1.0, 2.0]),
    st.sampled_from([0, 90, 180, 270]),
    st.booleans(),
    st.integers(-999, 999),
    st.integers(-999, 999),
)
arrays = st.lists(st.tuples(orientations, st.integers(1, 3), st.integers(1, 3), st.integers(-50, 50)), max_size=4)


@settings(max_examples=60, deadline=None)
@given(arrays, arrays)
def test_counts_and_extents_are_those_of_the_flattened_cell(lower, upper):
    layout, layer, top = new()
    middle, leaf = layout.create_cell("MIDDLE"), layout.create_cell("LEAF")
    leaf.shapes(layer).insert(kdb.Box(-20, 0, 40, 60))
    leaf.shapes(layer).insert(kdb.Polygon([kdb.Point(0, 0), kdb.Point(80, 40), kdb.Point(0, 100)]))
    middle.shapes(layer).insert(kdb.Text("t", kdb.Trans(500, 0)))
    for cell, below, placed in ((middle, leaf, lower), (top, middle, upper)):
        for trans, across, along, step in placed:
            pitch = kdb.Vector(step, 7), kdb.Vector(-9, 2 * step)
            cell.insert(kdb.CellInstArray(below.cell_index(), trans, *pitch, across, along))
    found = bounds.cell_counts(layout)[top.cell_index()]
    box = top.bbox()
    expected = None if box.empty() else (box.left, box.bottom, box.right, box.top)
    extent = found.extent
    sides = None if extent.empty() else (extent.left, extent.bottom, extent.right, extent.top)
    assert sides == (expected and pytest.approx(expected, abs=1.01))
    top.flatten(-1, True)
    assert found.shapes == top.shapes(layer).size()
    assert found.points == sum(shape.polygon.num_points() for shape in top.shapes(layer).each(kdb.Shapes.SPolygons))


@pytest.mark.parametrize("angle", [0, 90])
def test_crossing_arrays_of_long_bars_are_refused_and_parallel_ones_are_not(angle):
    """A mesh of 8000 bars has 16 million crossings, and 400 bytes; KLayout keeps each of them."""
    count, pitch = 4000, 400
    long, across, along = count * pitch, kdb.Vector(pitch, 0), kdb.Vector(0, pitch)
    found = {}
    for name, directions in {"crossing": (0, 90), "parallel": (0, 0)}.items():
        layout = kdb.Layout()
        bar, top = layout.create_cell("BAR"), layout.create_cell("TOP")
        bar.shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, long, 100))
        for turn in directions:
            upright = (turn + angle) % 180 == 90
            trans = kdb.Trans(1, False, kdb.Vector()) if upright else kdb.Trans()
            step, other = (across, along) if upright else (along, across)
            top.insert(kdb.CellInstArray(bar.cell_index(), trans, step, other, count, 1))
        found[name] = bounds.layout_faults(layout)
    assert found["parallel"] == []
    assert "crossings" in " ".join(found["crossing"])


@pytest.mark.parametrize("magnification", [1e28, 1e40, 1e60])
def test_a_label_that_a_magnification_moves_far_away_is_refused(magnification):
    layout = kdb.Layout()
    top, cell = layout.create_cell("T"), layout.create_cell("C")
    cell.shapes(layout.layer(1, 0)).insert(kdb.Text("a", 100, 100))
    top.insert(kdb.CellInstArray(cell.cell_index(), kdb.ICplxTrans(magnification, 0, False, 0, 0)))
    (fault,) = bounds.layout_faults(layout)
    assert "reaches 1e+27 um from its origin" in fault
