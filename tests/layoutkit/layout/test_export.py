"""Exporting a cell: filters, flattening, units, and files that another KLayout reads (S0.9)."""

import shutil
import struct
import subprocess

import klayout.db as kdb
import pytest

from layoutkit import technology
from layoutkit.errors import LayoutkitError, UnsupportedOperationError
from layoutkit.layout import files
from layoutkit.layout.export import ExportOptions, export_layout

# CHILD spans 0 to 100 and -20 (half the path) to 200; it is placed from (10, 10) in steps of 500 and 600.
TOP_BOX = kdb.Box(10, 10 - 20, 10 + 2 * 500 + 100, 10 + 3 * 600 + 200)


def sample():
    """TOP places CHILD 3 x 4 times; CHILD has a box, a polygon, a path and a text on two layers."""
    layout = kdb.Layout()
    layout.dbu = 0.001
    poly, metal = layout.layer(66, 20), layout.layer(68, 20)
    top, child = layout.create_cell("TOP"), layout.create_cell("CHILD")
    layout.create_cell("OTHER").shapes(poly).insert(kdb.Box(0, 0, 5, 5))
    child.shapes(poly).insert(kdb.Box(0, 0, 100, 200))
    child.shapes(metal).insert(kdb.Polygon([kdb.Point(0, 0), kdb.Point(0, 100), kdb.Point(60, 150), kdb.Point(80, 0)]))
    child.shapes(metal).insert(kdb.Path([kdb.Point(0, 0), kdb.Point(100, 0)], 40))
    child.shapes(metal).insert(kdb.Text("A", kdb.Trans(0, False, 10, 20)))
    step_x, step_y = kdb.Vector(500, 0), kdb.Vector(0, 600)
    top.insert(kdb.CellInstArray(child.cell_index(), kdb.Trans(0, False, 10, 10), step_x, step_y, 3, 4))
    return layout


def exported(tmp_path, name="out.gds", **options):
    options = {"cell_name": "TOP", **options}
    result = export_layout(sample(), tmp_path / name, ExportOptions(**options))
    return result, files.read_layout(tmp_path / name)


def units(path):
    """Return GDSII's UNITS record: database unit in user units and in metres (8-byte excess-64 reals)."""
    data = path.read_bytes()
    at = data.index(struct.pack(">HH", 20, 0x0305)) + 4

    def real(raw):
        return int.from_bytes(raw[1:], "big") / 2.0**56 * 16.0 ** ((raw[0] & 127) - 64)

    return real(data[at : at + 8]), real(data[at + 8 : at + 16])


def test_a_cell_is_exported_with_what_is_below_it(tmp_path):
    result, read = exported(tmp_path)
    assert sorted(cell.name for cell in read.each_cell()) == ["CHILD", "TOP"]
    assert read.top_cell().name == result["cell_name"] == "TOP"
    assert (result["export_stats"]["cell_count"], result["export_stats"]["layer_count"]) == (2, 2)
    assert (
        result["export_stats"]["polygon_count"],
        result["export_stats"]["path_count"],
        result["export_stats"]["text_count"],
    ) == (2, 1, 1)
    assert result["file_size_bytes"] == (tmp_path / "out.gds").stat().st_size
    assert read.top_cell().bbox() == TOP_BOX


def test_flattening_keeps_the_geometry_and_leaves_one_cell(tmp_path):
    result, read = exported(tmp_path, flatten=True)
    assert (
        result["export_stats"]["cell_count"],
        result["export_stats"]["polygon_count"],
        result["export_stats"]["path_count"],
        result["export_stats"]["text_count"],
    ) == (1, 24, 12, 12)
    original = sample()
    for layer, datatype in ((66, 20), (68, 20)):
        before = kdb.Region(original.cell("TOP").begin_shapes_rec(original.layer(layer, datatype)))
        after = kdb.Region(read.top_cell().shapes(read.layer(layer, datatype)))
        assert (before ^ after).is_empty()


@pytest.mark.parametrize("layer_filter", [[68], ["68/20"], ["68"], ["met1"], ["metal1"]])
def test_only_the_filtered_layers_are_exported(tmp_path, layer_filter):
    result, read = exported(tmp_path, layer_filter=layer_filter, technology=technology.load("sky130A"))
    assert result["export_stats"]["layers"] == ["68/20"]
    assert [(info.layer, info.datatype) for info in read.layer_infos()] == [(68, 20)]
    assert (
        result["export_stats"]["cell_count"],
        result["export_stats"]["polygon_count"],
        result["export_stats"]["path_count"],
    ) == (2, 1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer_filter": [7]}, "nothing is drawn on layer 7; the layout has: 66/20, 68/20"),
        ({"layer_filter": ["68/21"]}, "nothing is drawn on layer 68/21"),
        ({"layer_filter": ["met1"]}, "specify a technology"),
        ({"cell_name": "NONE"}, "no cell 'NONE'; it has: CHILD, OTHER, TOP"),
        ({"cell_name": None}, "2 top cells, choose one with cell_name: OTHER, TOP"),
        ({"precision_m": 3e-9}, "without rounding"),
        ({"precision_m": 1e-6}, "without rounding"),
        ({"precision_m": 1e-13}, "precision must be from 1e-12"),
        ({"precision_m": 1e-5}, "must not be coarser than unit"),
        ({"unit_m": 10.0}, "unit must be from"),
    ],
)
def test_a_wrong_request_is_told_and_leaves_no_file(tmp_path, options, message):
    with pytest.raises(LayoutkitError, match=message) as caught:
        exported(tmp_path, **options)
    assert caught.value.code == "INVALID_PARAM"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("precision_m", [1e-9, 5e-10, 1e-10, 2e-9, 1e-8, 1e-12])
def test_precision_rescales_exactly(tmp_path, precision_m):
    """All coordinates of the sample are multiples of 10 nm."""
    _, read = exported(tmp_path, precision_m=precision_m)
    assert read.dbu == pytest.approx(precision_m * 1e6)
    assert read.top_cell().dbbox().to_s() == TOP_BOX.to_dtype(0.001).to_s()
    assert units(tmp_path / "out.gds")[1] == pytest.approx(precision_m)


def test_a_coordinate_that_needs_more_than_32_bits_is_told(tmp_path):
    layout = sample()
    layout.cell("TOP").shapes(layout.layer(66, 20)).insert(kdb.Box(0, 0, 3_000_000, 10))
    with pytest.raises(LayoutkitError, match="does not fit into 32 bits"):
        export_layout(layout, tmp_path / "x.gds", ExportOptions(cell_name="TOP", precision_m=1e-12))


def test_unit_changes_the_header_and_nothing_else(tmp_path):
    _, read = exported(tmp_path, unit_m=1e-3)
    assert units(tmp_path / "out.gds") == pytest.approx((1e-6, 1e-9))
    assert read.top_cell().dbbox().to_s() == TOP_BOX.to_dtype(0.001).to_s()


def test_oasis_has_no_user_unit(tmp_path):
    exported(tmp_path, "out.oas")
    with pytest.raises(UnsupportedOperationError, match="no user unit"):
        exported(tmp_path, "out.oas", unit_m=1e-3)


def test_polygons_that_gds_must_cut_or_resolve_still_compare_equal(tmp_path):
    layout = kdb.Layout()
    cell = layout.create_cell("BIG")
    shapes = cell.shapes(layout.layer(1, 0))
    comb = [kdb.Point(0, -100)]
    for tooth in range(5000):
        comb += [kdb.Point(20 * tooth, 100), kdb.Point(20 * tooth + 10, 100)]
        comb += [kdb.Point(20 * tooth + 10, 0), kdb.Point(20 * tooth + 20, 0)]
    comb.append(kdb.Point(100_000, -100))
    shapes.insert(kdb.Polygon(comb))
    holed = kdb.Polygon(kdb.Box(0, 1000, 1000, 2000))
    holed.insert_hole(kdb.Box(100, 1100, 200, 1200))
    shapes.insert(holed)
    export_layout(layout, tmp_path / "big.gds", ExportOptions())
    read = files.read_layout(tmp_path / "big.gds")
    assert (kdb.Region(read.top_cell().shapes(read.layer(1, 0))) ^ kdb.Region(shapes)).is_empty()


def test_a_hierarchy_that_cannot_be_flattened_in_memory_is_told(tmp_path):
    layout = kdb.Layout()
    below = layout.create_cell("L0")
    below.shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, 1, 1))
    for level in range(1, 9):
        cell = layout.create_cell(f"L{level}")
        step = kdb.Vector(1, 0), kdb.Vector(0, 1)
        cell.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans(0, False, 0, 0), *step, 100, 100))
        below = cell
    with pytest.raises(LayoutkitError, match="shapes when flattened"):
        export_layout(layout, tmp_path / "x.gds", ExportOptions(flatten=True))
    assert export_layout(layout, tmp_path / "x.gds", ExportOptions())["export_stats"]["cell_count"] == 9


@pytest.mark.skipif(shutil.which("klayout") is None, reason="needs the klayout program")
def test_the_installed_klayout_opens_the_files(tmp_path):
    """Debian's 0.28.5 refuses files with context information."""
    files = ["out.gds", "out.oas", "out.gds.gz"]
    for name in files:
        exported(tmp_path, name)
    script = tmp_path / "read.rb"
    read = "l = RBA::Layout::new\nl.read(name)\nputs l.top_cell.name, l.top_cell.bbox.to_s\n"
    script.write_text(f"$input.split.each do |name|\n{read}end\n")
    done = subprocess.run(
        ["klayout", "-b", "-rd", f"input={' '.join(files)}", "-r", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["TOP", TOP_BOX.to_s()] * len(files)
