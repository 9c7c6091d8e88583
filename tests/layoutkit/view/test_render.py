"""Pictures: the right colour at the right place, the same bytes twice."""

import multiprocessing

import klayout.db as kdb
import pytest
from klayout import lay, rdb

from layoutkit import technology
from layoutkit.errors import FileError, LayoutkitError
from layoutkit.view.drawing_data import marker_color, markers_at, read_markers
from layoutkit.view.render import BACKGROUND, INK, MARGIN, STRIP, ViewOptions, render, save

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
    picture = render(sample(), GENERIC, ViewOptions(600, 600, region=(-1, -1, 11, 11), **BARE))
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
    view = ViewOptions(400, 300)
    assert render(sample(), GENERIC, view).png == render(sample(), GENERIC, view).png


def test_a_forked_process_draws_the_same_bytes():
    """Scripts work in a child of the process that was started."""
    view = ViewOptions(400, 300)
    expected = render(sample(), GENERIC, view).png
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply(png_of_sample, [view]) == expected


def png_of_sample(view):
    return render(sample(), GENERIC, view).png


def test_the_layout_stays_within_its_frame():
    """Poly fills the region of 2 x 1 um. The legend needs 11 letters, 136 pixels; 600 - 136 - 2 * 10 = 444."""
    buffer = pixels(render(sample(), GENERIC, ViewOptions(600, 400, region=(1, 2, 3, 3), labels=False)))
    assert (buffer.width(), buffer.height()) == (600, 222 + 60)
    left, top, right, bottom = 10, 30, 454, 252

    def red(columns, rows):
        values = (buffer.pixel(x, y) for x in columns for y in rows)
        return sum((value >> 16 & 255) > (value & 255) + 30 for value in values)

    for corner in ((left, top), (left, bottom - 20), (right - 20, top), (right - 20, bottom - 20)):
        assert red(*(range(start, start + 20) for start in corner))
    assert not red(range(600), range(top))
    assert not red(range(600), range(bottom, 282))
    assert not red(range(left), range(282))
    assert not red(range(right, right + 10), range(282))
    assert red(range(right + 10, right + 32), range(top, top + 12))  # the legend's swatch


def test_the_layout_survives_being_drawn():
    """A LayoutView destroys the layout it shows."""
    top = sample()
    render(top, GENERIC, ViewOptions(100, 100, **BARE))
    assert top.layout().cell("CHILD") is not None


def test_only_the_wanted_layers_are_drawn():
    picture = render(sample(), GENERIC, ViewOptions(200, 200, layers=["poly"], **BARE))
    assert picture.layers_drawn == ("poly",)
    with pytest.raises(LayoutkitError, match="nothing is drawn on layer metal4"):
        render(sample(), GENERIC, ViewOptions(layers=["metal4"]))


def test_layers_that_no_technology_knows_are_named_by_number():
    assert render(sample(), None, ViewOptions(200, 200)).layers_drawn == ("2/0", "4/0", "9/0")


def test_labels_and_legend_are_dark_on_light():
    with_labels = render(sample(), GENERIC, ViewOptions(600, 600, region=(-1, -1, 11, 11), legend=False))
    assert with_labels.labels_drawn == 1
    buffer = pixels(with_labels)
    around = {buffer.pixel(x, y) & 0xFFFFFF for x in range(435, 466) for y in range(292, 309)}
    assert INK in around
    assert BACKGROUND in around  # the rim of the letters


@pytest.mark.parametrize(
    ("region", "size"),
    [((0, 0, 2, 2), (200, 200)), ((0, 0, 9, 3), (400, 133)), (None, (200, 200)), ((0, 0, 1, 5), (40, 200))],
)
def test_a_picture_is_cropped_to_what_it_shows(region, size):
    """At most 400 x 200 pixels. The sample is 10 x 10 um; a pixel may be left over."""
    picture = render(sample(), GENERIC, ViewOptions(400, 200, region=region, **BARE))
    buffer = pixels(picture)
    assert (buffer.width(), buffer.height()) == size
    if region is not None:
        pixel = (region[2] - region[0]) / size[0]
        assert picture.region == pytest.approx(region, abs=pixel / 2)


@pytest.mark.parametrize("region", [(0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 1, 1)])
def test_an_empty_region_is_told(region):
    with pytest.raises(LayoutkitError, match="left < right and bottom < top"):
        render(sample(), GENERIC, ViewOptions(region=region))


def test_an_empty_cell_is_told():
    layout = kdb.Layout()
    with pytest.raises(LayoutkitError, match="cell 'E' is empty"):
        render(layout.create_cell("E"), GENERIC, ViewOptions())


@pytest.mark.parametrize(("width", "height"), [(64, 64), (64, 4096), (4096, 64)])
def test_extreme_sizes_are_drawn(width, height):
    buffer = pixels(render(sample(), GENERIC, ViewOptions(width, height, title="x" * 200)))
    assert 1 <= buffer.width() <= width
    assert 1 <= buffer.height() <= height


def test_a_violation_smaller_than_a_pixel_is_seen():
    markers = markers_at([{"rule_id": "M1", "locations": [{"x": 5.0, "y": 5.0}, {"x": 500.0, "y": 5.0}]}])
    picture = render(sample(), GENERIC, ViewOptions(600, 600, region=(-1, -1, 11, 11), **BARE), markers)
    assert picture.markers_drawn == 1  # the other lies outside
    buffer = pixels(picture)
    ours = marker_color(GENERIC)
    seen = sum(buffer.pixel(x, y) & 0xFFFFFF == ours for x in range(285, 316) for y in range(285, 316))
    assert seen > 40


@pytest.mark.parametrize("name", ["generic", "sky130A", "gf180mcuD", "sg13g2"])
def test_markers_have_a_colour_of_their_own_and_every_cut_another(name):
    process = technology.load(name)
    colors = {spec.name: int(spec.color[1:], 16) for spec in process.layers.values()}
    channels = [tuple(color >> shift & 255 for shift in (16, 8, 0)) for color in colors.values()]
    ours = tuple(marker_color(process) >> shift & 255 for shift in (16, 8, 0))
    assert min(max(abs(a - b) for a, b in zip(ours, other, strict=True)) for other in channels) > 60
    cuts = [colors[process.resolve(cut.layer)] for cut in (process.contact, *process.cuts)]
    assert len(set(cuts)) == len({process.resolve(cut.layer) for cut in (process.contact, *process.cuts)})


def test_each_marker_has_the_id_of_its_rule_and_the_legend_lists_the_rules():
    """A flag above the ring and a swatch in the legend have the markers' colour; the same without an id has neither."""
    places = [{"x": 5.0, "y": 5.0, "box": [4.5, 4.5, 5.5, 5.5]}, {"x": 5.0, "y": 8.0}]
    ours = marker_color(GENERIC)

    def counted(rule):
        markers = markers_at([{"rule_id": rule, "locations": places}])
        assert markers[0].box.to_s() == "(4.5,4.5;5.5,5.5)"
        buffer = pixels(
            render(sample(), GENERIC, ViewOptions(600, 600, region=(0, 0, 10, 10), labels=False, legend=False), markers)
        )
        columns, rows = range(buffer.width()), range(buffer.height())
        return sum(buffer.pixel(x, y) & 0xFFFFFF == ours for x in columns for y in rows)

    assert counted("M1.space") > counted("") + 2 * 300
    with_legend = pixels(
        render(sample(), GENERIC, ViewOptions(600, 600), markers_at([{"rule_id": "M1", "locations": places}]))
    )
    assert with_legend.pixel(with_legend.width() - 136 + MARGIN + 5, STRIP + 5) & 0xFFFFFF == ours


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
    picture = render(sample(), GENERIC, ViewOptions(64, 64, **BARE))
    save(picture, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes() == picture.png
    with pytest.raises(FileError):
        save(picture, tmp_path / "none" / "x.png")
