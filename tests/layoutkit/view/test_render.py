"""Pictures: the right colour at the right place, the same bytes twice."""

import multiprocessing

import klayout.db as kdb
import pytest
from klayout import lay, rdb

from layoutkit import technology
from layoutkit.errors import FileError, LayoutkitError
from layoutkit.view.markers import markers_at, read_markers
from layoutkit.view.render import BACKGROUND, INK, MARKER_COLOR, View, render, save

GENERIC = technology.load("generic")
BARE = {"legend": False, "labels": False}
ALIVE = []  # KLayout cells die with their layout


def sample():
    """Poly on the left and metal1 on the right half of 10 x 10 um, 2 um apart; CHILD placed twice in TOP."""
    layout = kdb.Layout()
    ALIVE.append(layout)
    layout.dbu = 0.001
    top, child = layout.create_cell("TOP"), layout.create_cell("CHILD")
    top.shapes(layout.layer(2, 0)).insert(kdb.Box(0, 0, 4000, 10_000))
    top.shapes(layout.layer(4, 0)).insert(kdb.Box(6000, 0, 10_000, 10_000))
    top.shapes(layout.layer(4, 5)).insert(kdb.Text("out", kdb.Trans(0, False, 8000, 5000)))
    child.shapes(layout.layer(9, 0)).insert(kdb.Box(0, 0, 100, 100))
    for x, y in ((1000, 1000), (7000, 7000)):
        top.insert(kdb.CellInstArray(child.cell_index(), kdb.Trans(1, False, x, y)))
    return layout.cell("TOP")


def pixels(picture):
    """Return the picture as KLayout's own PNG reader sees it."""
    return lay.PixelBuffer.from_png_data(picture.png)


def color(buffer, x, y):
    """Return red, green and blue averaged over 20 x 20 pixels, more than a fill pattern repeats after."""
    values = [buffer.pixel(column, row) for column in range(x - 10, x + 10) for row in range(y - 10, y + 10)]
    return tuple(sum(value >> shift & 255 for value in values) / len(values) for shift in (16, 8, 0))


def is_background(buffer, x, y):
    return buffer.pixel(x, y) & 0xFFFFFF == BACKGROUND


def test_layers_appear_where_they_are_in_their_own_colours():
    """The window of 12 x 12 um is 600 pixels wide: 50 pixels a um, y downwards."""
    picture = render(sample(), GENERIC, View(600, 600, region=(-1, -1, 11, 11), **BARE))
    buffer = pixels(picture)
    assert (buffer.width(), buffer.height()) == (600, 600)
    assert is_background(buffer, 10, 10)
    assert is_background(buffer, 300, 300)  # x = 5 um, between the two
    red, green, blue = color(buffer, 150, 300)  # pale, because a pattern fills only a part of the pixels
    assert red > max(green, blue) + 20  # poly is red
    red, green, blue = color(buffer, 450, 400)
    assert blue > max(red, green) + 20  # metal1 is blue
    assert picture.layers_drawn == ("poly", "metal1", "via1")


def test_the_same_layout_gives_the_same_bytes():
    view = View(400, 300)
    assert render(sample(), GENERIC, view).png == render(sample(), GENERIC, view).png


def test_a_forked_process_draws_the_same_bytes():
    """Scripts work in a child of the process that was started."""
    view = View(400, 300)
    expected = render(sample(), GENERIC, view).png
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply(png_of_sample, [view]) == expected


def png_of_sample(view):
    return render(sample(), GENERIC, view).png


def test_the_layout_stays_within_its_frame():
    """Poly fills the region. The 12 letters of metal1.label need 144 pixels of legend; 600 - 144 - 2 * 10 = 436."""
    buffer = pixels(render(sample(), GENERIC, View(600, 400, region=(1, 2, 3, 3), labels=False)))
    left, top, right, bottom = 10, 30, 446, 370

    def red(columns, rows):
        values = (buffer.pixel(x, y) for x in columns for y in rows)
        return sum((value >> 16 & 255) > (value & 255) + 30 for value in values)

    for corner in ((left, top), (left, bottom - 20), (right - 20, top), (right - 20, bottom - 20)):
        assert red(*(range(start, start + 20) for start in corner))
    assert not red(range(600), range(top))
    assert not red(range(600), range(bottom, 400))
    assert not red(range(left), range(400))
    assert not red(range(right, right + 10), range(400))
    assert red(range(right + 10, right + 32), range(top, top + 12))  # the legend's swatch


def test_the_layout_survives_being_drawn():
    """A LayoutView destroys the layout it shows."""
    top = sample()
    render(top, GENERIC, View(100, 100, **BARE))
    assert top.layout().cell("CHILD") is not None


def test_only_the_wanted_layers_are_drawn():
    picture = render(sample(), GENERIC, View(200, 200, layers=["poly"], **BARE))
    assert picture.layers_drawn == ("poly",)
    with pytest.raises(LayoutkitError, match="nothing is drawn on layer metal4"):
        render(sample(), GENERIC, View(layers=["metal4"]))


def test_layers_that_no_technology_knows_are_named_by_number():
    assert render(sample(), None, View(200, 200)).layers_drawn == ("2/0", "4/0", "9/0")


def test_labels_and_legend_are_dark_on_light():
    with_labels = render(sample(), GENERIC, View(600, 600, region=(-1, -1, 11, 11), legend=False))
    assert with_labels.labels_drawn == 1
    buffer = pixels(with_labels)
    around = {buffer.pixel(x, y) & 0xFFFFFF for x in range(435, 466) for y in range(292, 309)}
    assert INK in around
    assert BACKGROUND in around  # the rim of the letters


def test_a_region_is_grown_to_the_pictures_proportions():
    picture = render(sample(), GENERIC, View(400, 200, region=(0, 0, 2, 2), **BARE))
    assert picture.region == (-1, 0, 3, 2)


@pytest.mark.parametrize("region", [(0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 1, 1)])
def test_an_empty_region_is_told(region):
    with pytest.raises(LayoutkitError, match="left < right and bottom < top"):
        render(sample(), GENERIC, View(region=region))


def test_an_empty_cell_is_told():
    layout = kdb.Layout()
    with pytest.raises(LayoutkitError, match="cell 'E' is empty"):
        render(layout.create_cell("E"), GENERIC, View())


@pytest.mark.parametrize(("width", "height"), [(64, 64), (64, 4096), (4096, 64)])
def test_extreme_sizes_are_drawn(width, height):
    buffer = pixels(render(sample(), GENERIC, View(width, height, title="x" * 200)))
    assert (buffer.width(), buffer.height()) == (width, height)


def test_a_violation_smaller_than_a_pixel_is_seen():
    markers = markers_at([{"rule_id": "M1", "locations": [{"x": 5.0, "y": 5.0}, {"x": 500.0, "y": 5.0}]}])
    picture = render(sample(), GENERIC, View(600, 600, region=(-1, -1, 11, 11), **BARE), markers)
    assert picture.markers_drawn == 1  # the other lies outside
    buffer = pixels(picture)
    seen = sum(buffer.pixel(x, y) & 0xFFFFFF == MARKER_COLOR for x in range(290, 311) for y in range(290, 311))
    assert seen > 40


def report(path):
    database = rdb.ReportDatabase("drc")
    category = database.create_category("M1.space")
    top, child = database.create_cell("TOP"), database.create_cell("CHILD")
    first, second = kdb.DEdge(4, 0, 4, 1), kdb.DEdge(6, 1, 6, 0)
    for cell, value in (
        (top, kdb.DEdgePair(first, second)),
        (top, kdb.DPolygon(kdb.DBox(1, 1, 2, 2))),
        (top, first),
        (top, kdb.DBox(3, 3, 4, 4)),
        (child, kdb.DPolygon(kdb.DBox(0, 0, 0.1, 0.1))),
    ):
        database.create_item(cell.rdb_id(), category.rdb_id()).add_value(rdb.RdbItemValue(value))
    database.save(str(path))


def test_a_report_is_read_with_the_items_of_cells_below_at_every_placement(tmp_path):
    report(tmp_path / "drc.lyrdb")
    found = read_markers(tmp_path / "drc.lyrdb", sample())
    boxes = sorted(marker.box.to_s() for marker in found)
    assert boxes == sorted(
        [
            kdb.DBox(3.995, -0.005, 6.005, 1.005).to_s(),
            kdb.DBox(1, 1, 2, 2).to_s(),
            kdb.DBox(3.995, -0.005, 4.005, 1.005).to_s(),
            kdb.DBox(3, 3, 4, 4).to_s(),
            kdb.DBox(0.9, 1, 1, 1.1).to_s(),  # CHILD is placed turned by 90 degrees
            kdb.DBox(6.9, 7, 7, 7.1).to_s(),
        ]
    )
    assert {marker.rule_id for marker in found} == {"M1.space"}


@pytest.mark.parametrize("content", ["", "no report", "<report-database>", "<?xml version='1.0'?><a/>"])
def test_what_is_no_report_is_told(tmp_path, content):
    (tmp_path / "x.lyrdb").write_text(content)
    with pytest.raises(FileError):
        read_markers(tmp_path / "x.lyrdb", sample())


def test_a_picture_is_written_whole_or_not_at_all(tmp_path):
    picture = render(sample(), GENERIC, View(64, 64, **BARE))
    save(picture, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes() == picture.png
    with pytest.raises(FileError):
        save(picture, tmp_path / "none" / "x.png")
