"""DRC kinds against arithmetic on rectangles, and a few rules against the KLayout application's own rule engine."""

import random
import shutil
import subprocess
from collections import Counter
from itertools import combinations
from math import hypot

import klayout.db as kdb
import numpy as np
import pytest
from drc_sketch import Sketch, with_rule
from hypothesis import example, given, settings
from hypothesis import strategies as st
from klayout import rdb

from layoutkit.drc.check import Options, check
from layoutkit.technology import load
from patience import WATCHDOG_S

GENERIC = load("generic")
SETTINGS = settings(max_examples=80, deadline=None, derandomize=True)
STEP = 50  # everything is drawn on a lattice, so that equal distances occur often
sides = st.integers(1, 12).map(lambda n: n * STEP)
places = st.integers(0, 30).map(lambda n: n * STEP)


@st.composite
def rectangles(draw, most=6):
    found = []
    for _ in range(draw(st.integers(1, most))):
        x, y = draw(places), draw(places)
        found.append((x, y, x + draw(sides), y + draw(sides)))
    return found


def gap(a, b):
    """Return the Euclidean distance of two rectangles; 0 where they touch or overlap."""
    return hypot(max(a[0] - b[2], b[0] - a[2], 0), max(a[1] - b[3], b[1] - a[3], 0))


def violated(sketch, **rule):
    technology, own = with_rule(GENERIC, **rule)
    layout, cell = sketch.layout()
    verdict = check(layout, cell, technology, Options(rule_ids=[own.id])).verdicts[0]
    assert verdict.status != "unchecked", verdict.reason
    return verdict.status == "failed"


def drawn(**rectangles_of):
    sketch = Sketch(GENERIC)
    for layer, boxes in rectangles_of.items():
        for box in boxes:
            sketch.box(layer, *box)
    return sketch


@SETTINGS
@given(rectangles(8), sides)
def test_space_is_violated_where_two_rectangles_are_nearer_than_the_value(boxes, value):
    apart = []
    for box in boxes:  # only rectangles that stay polygons of their own: what touches is one polygon
        if all(gap(box, other) > 0 for other in apart):
            apart.append(box)
    expected = any(gap(a, b) < value for a, b in combinations(apart, 2))
    assert violated(drawn(metal1=apart), kind="space", layer="metal1", value=value / 1000) == expected


@SETTINGS
@given(rectangles(), rectangles(), sides)
def test_separation_is_violated_where_layers_are_near_touch_or_overlap(some, others, value):
    expected = any(gap(a, b) < value for a in some for b in others)
    sketch = drawn(metal1=some, metal2=others)
    assert violated(sketch, kind="separation", layer="metal1", other="metal2", value=value / 1000) == expected


@SETTINGS
@given(sides, sides, sides, sides, st.data(), sides)
def test_width_counts_the_neck_between_two_inner_corners(w1, h1, w2, h2, data, value):
    dx = data.draw(st.integers(1, min(w1, w2) // STEP)) * STEP
    dy = data.draw(st.integers(1, min(h1, h2) // STEP)) * STEP
    lower, upper = (0, 0, w1, h1), (w1 - dx, h1 - dy, w1 - dx + w2, h1 - dy + h2)
    if dx in (w1, w2) or dy in (h1, h2):  # then they share a side: another shape than two corners overlapping
        return
    expected = min(w1, h1, w2, h2, hypot(dx, dy)) < value
    assert violated(drawn(metal1=[lower, upper]), kind="width", layer="metal1", value=value / 1000) == expected


def cells(boxes):
    return {(x, y) for x1, y1, x2, y2 in boxes for x in range(x1, x2, STEP) for y in range(y1, y2, STEP)}


@SETTINGS
@given(rectangles(5), st.integers(4, 20), st.integers(4, 20), st.integers(1, 4))
def test_enclosure_on_all_sides_is_the_distance_to_what_is_not_outer(outer, column, row, margin):
    inner = (column * STEP, row * STEP, (column + 2) * STEP, (row + 2) * STEP)
    metal = cells(outer)
    near = range(-margin - 1, margin + 3)
    outside = [
        (x, y, x + STEP, y + STEP)
        for x, y in ((inner[0] + i * STEP, inner[1] + j * STEP) for i in near for j in near)
        if (x, y) not in metal
    ]
    expected = any(gap(inner, square) < margin * STEP for square in outside)
    sketch = drawn(via1=[inner], metal1=outer)
    rule = {"kind": "enclosure", "outer": "metal1", "inner": "via1", "value": margin * STEP / 1000}
    assert violated(sketch, **rule) == expected


@SETTINGS
@given(rectangles(5), st.lists(st.tuples(st.integers(2, 22), st.integers(2, 22)), min_size=1, max_size=4),
       st.integers(1, 4))  # fmt: skip
def test_enclosure_on_opposite_sides_needs_both_of_one_pair(outer, corners, margin):
    metal = cells(outer)
    cuts = []
    for column, row in corners:
        cut = (column * STEP, row * STEP, (column + 2) * STEP, (row + 2) * STEP)
        if all(gap(cut, other) > 0 for other in cuts):
            cuts.append(cut)

    def reaches(cut, dx, dy):
        return cells([(cut[0] - dx, cut[1] - dy, cut[2] + dx, cut[3] + dy)]) <= metal

    reach = margin * STEP
    expected = not all(reaches(cut, reach, 0) or reaches(cut, 0, reach) for cut in cuts)
    sketch = drawn(via1=cuts, metal1=outer)
    rule = {"kind": "enclosure", "outer": "metal1", "inner": "via1", "sides": "opposite", "value": reach / 1000}
    assert violated(sketch, **rule) == expected


@SETTINGS
@given(rectangles(5), st.integers(1, 40))
def test_area_is_that_of_the_union(boxes, tens):
    # Overlapping or not: cells of the union, grouped into polygons by shared sides or corners.
    left, groups = cells(boxes), []
    while left:
        group, todo = set(), [left.pop()]
        while todo:
            x, y = todo.pop()
            group.add((x, y))
            around = {(x + i * STEP, y + j * STEP) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= around
            todo += around
        groups.append(len(group) * STEP * STEP)
    corner_contacts = any(gap(a, b) == 0 and not _share_side(a, b) for a, b in combinations(boxes, 2))
    if corner_contacts:  # one polygon or two: no process answers that by its area rule
        return
    value = tens * 10 * STEP * STEP
    assert violated(drawn(metal1=boxes), kind="area", layer="metal1", value=value / 1e6) == (min(groups) < value)


def _share_side(a, b):
    return (min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])) > (0, 0) or (
        min(a[2], b[2]) > max(a[0], b[0]) or min(a[3], b[3]) > max(a[1], b[1])
    )


@SETTINGS
@given(rectangles(1), rectangles(4), st.integers(2, 30))
def test_tap_distance_is_that_of_the_farthest_corner(layer, taps, steps):
    value = steps * STEP
    box = layer[0]
    if len(taps) > 1:  # with several taps the farthest point need not be a corner; one decides exactly
        taps = taps[:1]
    tap = taps[0]
    corners = [(x, y, x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    farthest = max(gap(corner, tap) for corner in corners)
    if 0.998 * value < farthest <= value and farthest != value:
        return  # the circle is a polygon of 64 corners, 0.12 % too small between them
    sketch = drawn(nplus=[box], pplus=[tap])
    rule = {"kind": "tap_distance", "layer": "nplus", "other": "pplus", "value": value / 1000}
    straight = any(gap(c, tap) == farthest and (c[0] in range(tap[0], tap[2] + 1) or c[1] in range(tap[1], tap[3] + 1))
                   for c in corners)  # fmt: skip
    if farthest == value and not straight:
        return
    assert violated(sketch, **rule) == (farthest > value)


@SETTINGS
@given(rectangles(4), st.integers(-4, 4), st.integers(-4, 4))
def test_moving_a_layout_moves_its_violations(boxes, dx, dy):
    def places_of(shift_x, shift_y):
        moved = [(x1 + shift_x, y1 + shift_y, x2 + shift_x, y2 + shift_y) for x1, y1, x2, y2 in boxes]
        layout, cell = drawn(metal1=moved).layout()
        report = check(layout, cell, GENERIC, Options(rule_ids=["M1_MIN_WIDTH", "M1_MIN_SPACE", "M1_MIN_AREA"]))
        return [
            (entry["rule_id"], entry["count"], sorted((place["x"], place["y"]) for place in entry["locations"]))
            for entry in report.to_data()["violations"]
        ]

    x, y = dx * 1000, dy * 1000
    shifted = [
        (rule_id, count, [(round(px + dx, 6), round(py + dy, 6)) for px, py in where])
        for rule_id, count, where in places_of(0, 0)
    ]
    assert [(r, c, [(round(px, 6), round(py, 6)) for px, py in w]) for r, c, w in places_of(x, y)] == shifted


# Arrays of cuts, drawn and judged on a raster of 20 nm: 13 is the size of a cut, 18 the rule, 20 the reach.
CUT, APART, REACH, SIDE = 13, 18, 20, 93
SHORT, SQUARE = 16, 61
gaps = st.sampled_from([13, 14, 16, 17, 18, 19, 20, 21])


@st.composite
def cut_arrays(draw):
    """Return lower left corners of 3 by 3 to 5 by 6 cuts, perhaps with one missing or a column shifted."""
    columns, rows = draw(st.integers(3, 5)), draw(st.integers(3, 6))
    xs, ys = [0], [0]
    for places, count in ((xs, columns), (ys, rows)):
        alternate = draw(st.tuples(gaps, gaps))
        for number in range(count - 1):
            places.append(places[-1] + CUT + alternate[number % 2])
    shifted, shift = draw(st.sampled_from(xs)), draw(st.sampled_from([0, 0, 1, 2, 20]))
    cuts = [(x, y + shift * (x == shifted)) for x in xs for y in ys]
    missing = draw(st.integers(0, 3 * len(cuts)))
    return [cut for number, cut in enumerate(cuts) if number != missing]


def grown(raster, left, right):
    """Return the raster with each pixel spread over so many on both sides, along both axes."""
    for axis in (0, 1):
        total = np.cumsum(np.insert(raster.astype(int), 0, 0, axis=axis), axis=axis)
        size = raster.shape[axis]
        high = np.minimum(np.arange(size) + left + 1, size)
        low = np.maximum(np.arange(size) - right, 0)
        raster = np.take(total, high, axis) - np.take(total, low, axis) > 0
    return raster


def pieces(raster, *, corners=True):
    """Return the sets of pixels that share sides or, unless told otherwise, corners."""
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if corners or not i * j]
    left, found = set(zip(*np.nonzero(raster), strict=True)), []
    while left:
        piece, todo = set(), [left.pop()]
        while todo:
            x, y = todo.pop()
            piece.add((x, y))
            around = {(x + i, y + j) for i, j in steps} & left
            left -= around
            todo += around
        found.append(piece)
    return found


def has_arm(piece):
    """Return whether two sides less than SIDE apart face each other over SIDE and more, in x or in y."""
    for axis in (0, 1):
        lines = {}
        for pixel in sorted(piece, key=lambda pixel: (pixel[1 - axis], pixel[axis])):
            lines.setdefault(pixel[1 - axis], []).append(pixel[axis])
        run, before = {}, {}
        for along in sorted(lines):
            row = set(lines[along])
            starts = [n for n in lines[along] if n - 1 not in row]
            ends = [n for n in lines[along] if n + 1 not in row]
            run = {span: before.get(span, 0) + 1 for span in zip(starts, ends, strict=True)}
            if any(length >= SIDE and end - start + 1 < SIDE for (start, end), length in run.items()):
                return True
            before = run
    return False


def rastered(cuts, margin):
    """Return the raster of cuts with so many pixels around."""
    extent = [max(cut[axis] for cut in cuts) + CUT + 2 * margin for axis in (0, 1)]
    raster = np.zeros(extent, dtype=bool)
    for x, y in cuts:
        raster[x + margin : x + margin + CUT, y + margin : y + margin + CUT] = True
    return raster


def closed(raster, gap):
    """Return the raster with gaps of so many pixels and less filled."""
    return ~grown(~grown(raster, gap // 2, gap // 2), gap // 2, gap // 2)


def closely_packed(cuts):
    """Return whether cuts of one array of 16 and more lie beside each other with less than APART between them."""
    margin = 2 * REACH
    for piece in pieces(closed(rastered(cuts, margin), REACH)):
        sides = [max(pixel[axis] for pixel in piece) - min(pixel[axis] for pixel in piece) + 1 for axis in (0, 1)]
        own = [(x, y) for x, y in cuts if (x + margin, y + margin) in piece]
        if min(sides) < SIDE or len(own) < 16 or has_arm(piece):
            continue
        for (x1, y1), (x2, y2) in combinations(own, 2):
            dx, dy = abs(x1 - x2), abs(y1 - y2)
            if (dx == 0 and dy < CUT + APART) or (dy == 0 and dx < CUT + APART):
                return True
    return False


@SETTINGS
@given(cut_arrays())
def test_cuts_within_reach_are_one_array_whatever_wire_they_lie_on(cuts):
    sketch = drawn(via1=[(20 * x, 20 * y, 20 * (x + CUT), 20 * (y + CUT)) for x, y in cuts])
    rule = {"kind": "array_space", "layer": "via1", "array_um": 1.86, "reach_um": 0.4, "count": 16}
    assert violated(sketch, **rule, min_projection_um=0.26, value=0.36) == closely_packed(cuts)


def crossing_gaps(cuts):
    """Return whether gaps of SHORT and less cross between cuts in an array of SQUARE by SQUARE."""
    margin = SQUARE
    raster = rastered(cuts, margin)
    core = ~grown(~closed(raster, APART), SQUARE // 2, SQUARE // 2)
    square = grown(core, SQUARE // 2, SQUARE // 2)
    places = [(slice(x + margin, x + margin + CUT), slice(y + margin, y + margin + CUT)) for x, y in cuts]
    own = np.zeros_like(raster)
    for place in places:
        own[place] = square[place].all()
    for piece in pieces(closed(own, SHORT) & ~own, corners=False):
        sides = [max(pixel[axis] for pixel in piece) - min(pixel[axis] for pixel in piece) + 1 for axis in (0, 1)]
        if len(piece) < sides[0] * sides[1]:
            return True
    return False


@SETTINGS
@given(cut_arrays())
@example([(x, y) for x in (0, 31, 62, 91) for y in (0, 31, 62, 91) if x + y < 182])  # near gaps meet at one corner
def test_rows_of_an_array_may_be_near_where_columns_are_not(cuts):
    sketch = drawn(via1=[(20 * x, 20 * y, 20 * (x + CUT), 20 * (y + CUT)) for x, y in cuts])
    rule = {"kind": "array_space", "layer": "via1", "array_um": 1.22, "crossing_um": 0.32, "value": 0.36}
    assert violated(sketch, **rule) == crossing_gaps(cuts)


DECK = """
source($input)
report("deck", $output)
m1 = input(68, 20)
v = input(68, 44)
poly = input(66, 20)
diff = input(65, 20)
npc = input(95, 20)
m1.width(0.14.um, euclidian).output("m1.1")
m1.space(0.14.um, euclidian).output("m1.2")
m1.with_area(0, 0.083.um).output("m1.6")
m1.holes.with_area(0, 0.14.um).output("m1.7")
m1.enclosing(v, 0.055.um, euclidian).output("via.4a")
(v - m1).output("via.4a")
npc.separation(poly & diff, 0.09.um, euclidian).output("npc.4")
(npc & (poly & diff)).output("npc.4")
v.space(0.17.um, euclidian).output("via.2")
"""


@pytest.mark.skipif(shutil.which("klayout") is None, reason="needs klayout")
def test_the_klayout_application_finds_the_same_items(tmp_path):
    sky = load("sky130A")
    rng = random.Random(7)
    layout = kdb.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell("RANDOM")
    for name, count in (("met1", 300), ("via", 250), ("poly", 200), ("diff", 200), ("npc", 200)):
        shapes = cell.shapes(sky.layer(layout, name))
        for _ in range(count):
            x, y = rng.randrange(0, 20000, 5), rng.randrange(0, 20000, 5)
            w, h = (150, 150) if name == "via" else (rng.randrange(50, 900, 5), rng.randrange(50, 900, 5))
            shapes.insert(kdb.Box(x, y, x + w, y + h))
    for x in range(0, 20000, 1000):  # rings with holes of 300 by 400 to 600
        hole = kdb.Box(x + 150, 21150, x + 450, 21550 + x // 100)
        cell.shapes(sky.layer(layout, "met1")).insert(kdb.Region(kdb.Box(x, 21000, x + 600, 22000)) - kdb.Region(hole))
    layout.write(str(tmp_path / "random.gds"))
    (tmp_path / "deck.drc").write_text(DECK)
    done = subprocess.run(
        ["klayout", "-b", "-r", "deck.drc", "-rd", "input=random.gds", "-rd", "output=deck.lyrdb"],
        cwd=tmp_path, capture_output=True, text=True, timeout=WATCHDOG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rules = ["m1.1", "m1.2", "m1.6", "m1.7", "via.4a", "npc.4", "via.2"]
    report = check(layout, cell, sky, Options(rule_ids=rules))
    report.write_lyrdb(tmp_path / "own.lyrdb")
    theirs, ours = items(tmp_path / "deck.lyrdb"), items(tmp_path / "own.lyrdb")
    for rule in rules:
        assert len(ours[rule]) > 5, rule
        assert not Counter(ours[rule]) - Counter(theirs[rule]), rule
        # 0.28 reports some pairs of edges in two pieces where 0.30 reports one
        for extra in Counter(theirs[rule]) - Counter(ours[rule]):
            assert any(kdb.Box(*extra).inside(kdb.Box(*own)) for own in ours[rule]), (rule, extra)


def items(path):
    """Return the markers of a report by category, each as its bounding box in nanometres."""
    database = rdb.ReportDatabase("read")
    database.load(str(path))
    found = {}
    for category in database.each_category():
        boxes = found.setdefault(category.name(), [])
        for item in category.each_item():
            for value in item.each_value():
                shape = next(shape for kind, shape in kinds(value) if kind)
                box = shape.bbox()
                boxes.append(tuple(round(side * 1000) for side in (box.left, box.bottom, box.right, box.top)))
    return {name: sorted(boxes) for name, boxes in found.items()}


def kinds(value):
    yield value.is_polygon(), value.polygon()
    yield value.is_edge_pair(), value.edge_pair()
    yield value.is_edge(), value.edge()
    yield value.is_box(), value.box()
