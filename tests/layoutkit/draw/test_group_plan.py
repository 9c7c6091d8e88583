"""Plans of matched groups: exact patterns, and figures that a second calculation from the drawn shapes confirms."""

from itertools import pairwise

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.draw.group import GroupSpec, draw_group
from layoutkit.draw.group_plan import GroupWish, plan_group, plan_shapes
from layoutkit.draw.mos import MosSize, transistor
from layoutkit.draw.pattern import parse_pattern
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError
from layoutkit.technology import load
from thorough import examples, processes


def devices(tech, counts, *, w_um=2.0, l_um=0.5, flavour="nmos", nets="d{i} g{i} s b"):
    """Return devices M1, M2, ... with ``counts`` fingers of ``w_um`` each."""
    return tuple(
        transistor(
            tech,
            f"M{i}",
            flavour,
            MosSize(w_um * 1e-6 * count, l_um * 1e-6, count),
            dict(zip("dgsb", nets.format(i=i).split(), strict=True)),
        )
        for i, count in enumerate(counts, 1)
    )


def plan(tech, counts, arrangement="auto", *, dummies=2, split=True, **options):
    wish = GroupWish(devices(tech, counts, **options), arrangement, dummies, split=split)
    return plan_group(tech, wish)


def order(row):
    """Return the devices of the fingers of a row, dummies left out."""
    return "".join(finger.device.removeprefix("M") for finger in row.fingers if finger.device)


def measured(module, tech):
    """Return device to its mean S and its AD, AS per gate width, computed from the masks of ``module``.

    Diffusions are the pieces of active that poly leaves, each shared by the gates beside it; their nets follow from
    the plan's alternation of source and drain. Only the geometry is used here: S and the summed junction area.
    """
    active = kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, "active"))).merged()
    found = {}
    for gate in module.gates:
        island = next(p.bbox() for p in active.each() if gate.box.inside(p.bbox()))
        half = gate.box.width() / 2
        sa, sb = gate.box.left - island.left, island.right - gate.box.right
        row = sorted(g.box.left for g in module.gates if g.box.bottom == gate.box.bottom and g.box.inside(island))
        place = row.index(gate.box.left)
        reaches = [
            (gate.box.left - row[place - 1] - gate.box.width()) / 2 if place else sa,
            (row[place + 1] - gate.box.right) / 2 if place + 1 < len(row) else sb,
        ]
        if gate.device:
            found.setdefault(gate.device, []).append((1 / (sa + half) + 1 / (sb + half), sum(reaches)))
    return {
        name: (sum(s for s, _ in values) / len(values), sum(r for _, r in values) / len(values))
        for name, values in found.items()
    }


COUNTS = st.lists(st.integers(1, 6), min_size=2, max_size=4)


@settings(max_examples=15, deadline=None)
@given(COUNTS, st.sampled_from(processes()), st.sampled_from([0, 2]), st.sampled_from(["nmos", "pmos"]))
def test_auto_keeps_every_width_and_brings_the_centroids_together_where_it_is_possible(counts, name, dummies, flavour):
    tech = load(name)
    found = plan(tech, counts, dummies=dummies, flavour=flavour)
    widths = {}
    for row in found.rows:
        for finger in row.fingers:
            widths[finger.device] = widths.get(finger.device, 0) + finger.width
    assert [widths[f"M{i}"] for i in range(1, len(counts) + 1)] == [count * tech.to_dbu(2.0) for count in counts]
    apart = max(found.figures.centroid_error_x, found.figures.centroid_error_y)
    if 1 in counts:
        assert apart == 0  # one finger of 2 um can be split
    else:
        pitch = found.figures.width / max(len(row.fingers) for row in found.rows)
        assert apart <= 0.75 * pitch
        assert found.transistors[0].finger_width == tech.to_dbu(2.0) or apart == 0
    assert found.figures.junctions <= 0.01 or not dummies
    assert {f.width for row in found.rows for f in row.fingers} == {found.transistors[0].finger_width}
    rows = parse_pattern(found.pattern, [f"M{i}" for i in range(1, len(counts) + 1)])
    lengths = [len(row) for row in rows]
    assert lengths == lengths[::-1]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("name", processes())
@pytest.mark.parametrize("counts", [(1, 16), (1, 100), (5, 8, 4)])
@pytest.mark.parametrize("splits", [True, False])
def test_numbers_of_units_that_no_number_of_rows_divides_are_folded_as_well(name, counts, splits):
    tech = load(name)
    w_um = 2.0 if splits else tech.to_um(tech.device("nmos").min_w)
    found = plan(tech, counts, nets="d{i} g s b", w_um=w_um)
    sizes = found.figures.width, found.figures.height
    assert max(sizes) <= 4 * min(sizes)
    assert (found.figures.centroid_error_x, found.figures.centroid_error_y) == (0, 0)


@pytest.mark.parametrize("name", ["sky130A", "gf180mcuD"])
def test_rows_of_different_lengths_are_clean(name):
    tech = load(name)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    module = draw_group(layout, tech, GroupSpec("group", devices(tech, (1, 16), nets="d{i} g s b", w_um=0.42)))
    assert len({len(row) for row in module.pattern.split("/")}) == 2
    assert check(layout, module.cell, tech).passed


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=2, max_size=3), st.sampled_from(processes()), st.sampled_from([0, 2]))
def test_the_stress_of_the_plan_is_that_of_the_drawn_masks(counts, name, dummies):
    tech = load(name)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    module = draw_group(layout, tech, GroupSpec("group", devices(tech, counts), dummies=dummies))
    oracle = measured(module, tech)
    for device, stress in module.figures.stress.items():
        assert stress == pytest.approx(oracle[device][0], rel=1e-6)
    assert check(layout, module.cell, tech).passed


@pytest.mark.parametrize("name", processes())
def test_the_choice_for_an_input_pair_has_equal_stress_junctions_and_directions(name):
    found = plan(load(name), (4, 4))
    assert len(found.rows) == 2
    assert found.figures.stress_spread == pytest.approx(0, abs=1e-12)
    assert found.figures.junctions == pytest.approx(0, abs=1e-12)
    assert found.figures.one_direction
    assert found.warnings == ()


@pytest.mark.parametrize("name", processes())
def test_a_pair_has_a_device_in_each_half_of_its_rows_so_that_two_fingers_share_each_drain_and_rails_are_short(name):
    """Arithmetic: half of the fingers of ABBABAAB share no drain; each of these has a whole column instead of half."""
    tech = load(name)
    found, apart = plan(tech, (4, 4), dummies=1), plan(tech, (4, 4), "ABBABAAB", dummies=1)
    assert [order(row) for row in found.rows] in (["1122", "2211"], ["2211", "1122"])
    assert found.figures.drain_span == 0.0
    assert apart.figures.drain_depth == pytest.approx(1.5 * found.figures.drain_depth)
    assert apart.excess > found.excess
    assert plan(tech, (8, 8), "ABBA/BAAB", dummies=1).figures.drain_span > 0.3


@pytest.mark.parametrize("name", processes())
@pytest.mark.parametrize("counts", [(4, 4), (25, 25), (2, 4), (2, 2, 6)])
@pytest.mark.parametrize("split", [True, False])
def test_equal_fingers_stay_unless_another_shape_of_the_block_says_what_splitting_buys(name, counts, split):
    tech = load(name)
    first, *others = plan_shapes(tech, GroupWish(devices(tech, counts), dummies=1, split=split), 4)
    for shape in (first, *others):
        pitch = shape.figures.width / max(len(row.fingers) for row in shape.rows)
        assert shape.figures.centroid_error_x <= 0.75 * pitch
        said = [text for text in shape.warnings if "split" in text]
        if {t.finger_width for t in shape.transistors} == {tech.to_dbu(2.0)}:
            assert said == []
        else:
            assert split
            assert shape is not first
            assert "fingers were split into 2, for a block of about " in said[0]


def test_a_shape_with_split_fingers_has_a_penalty():
    tech = load("sky130A")
    wish = GroupWish(devices(tech, (4, 4)), dummies=1)
    shapes = plan_shapes(tech, wish, 4)
    split = [shape for shape in shapes if any("split" in text for text in shape.warnings)]
    assert split
    assert shapes[0].excess == 0.0
    assert all(shape.excess > 0.5 for shape in split)


def test_single_fingers_are_split_for_one_centroid_and_a_warning_says_so():
    found = plan(load("sky130A"), (1, 1))
    assert {t.fingers for t in found.transistors} == {2}
    (said,) = [text for text in found.warnings if "split" in text]
    assert (
        f"so that the pattern {found.pattern} has whole units and one centroid: M1 as 2 x 1 um, M2 as 2 x 1 um" in said
    )


@pytest.mark.parametrize(
    ("arrangement", "counts", "rows"),
    [
        ("ABBA", (4, 4), ["11222211"]),
        ("ABAB", (2, 2), ["1212"]),
        ("AABB", (2, 2), ["1122"]),
        ("A2B4A2", (4, 4), ["11222211"]),
        ("AB/BA", (4, 4), ["1122", "2211"]),
        ("B2A1B2", (2, 8), ["2222112222"]),
        ("BBB/BAB/BBB", (2, 16), ["222222", "221122", "222222"]),
        ("ABC/CBA", (2, 2, 2), ["123", "321"]),
    ],
)
def test_a_stated_pattern_is_drawn_exactly(arrangement, counts, rows):
    found = plan(load("sky130A"), counts, arrangement)
    assert [order(row) for row in found.rows] == rows
    devices_ = [f"M{i}" for i in range(1, len(counts) + 1)]
    assert parse_pattern(found.pattern, devices_) == parse_pattern(arrangement, devices_)


def test_single_fingers_are_split_for_a_stated_pattern_and_it_is_told():
    found = plan(load("sky130A"), (1, 1), "ABBA")
    assert order(found.rows[0]) == "1221"
    assert any("split into 2" in text and "M1 as 2 x 1 um" in text for text in found.warnings)


@pytest.mark.parametrize("options", [{"w_um": 0.42}, {"split": False}])
def test_a_pattern_that_the_fingers_do_not_allow_is_refused_with_what_is_possible(options):
    with pytest.raises(GeometryError, match="M1 has 1 fingers for 2 units") as raised:
        plan(load("sky130A"), (1, 1), "ABBA", **options)
    assert raised.value.details["possible"] == ["auto", "AB"]


def test_units_with_different_drains_are_isolated_by_dummies_so_that_the_diffusion_goes_on():
    found = plan(load("sky130A"), (2, 2), "ABAB", nets="d{i} g{i} s b")
    (row,) = found.rows
    assert row.broken() == frozenset()
    inner = [f for f in row.fingers[2:-2] if not f.device]
    assert [(f.gate, {f.left, f.right}) for f in inner] == [("b", {"d1", "d2"})]


def test_without_dummies_different_drains_break_the_diffusion():
    (row,) = plan(load("sky130A"), (2, 2), "ABAB", dummies=0).rows
    assert all(f.device for f in row.fingers)
    assert len(row.broken()) == 1


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["auto", "AB/BA", "ABBA", "stacked"]))
def test_rows_have_no_short_and_every_finger_its_own_nets(first, second, arrangement):
    tech = load("sky130A")
    found = plan(tech, (2 * first, 2 * second), arrangement)
    for row in found.rows:
        for i, (a, b) in enumerate(pairwise(row.fingers)):
            assert a.right == b.left or i in row.broken()
        for finger in row.fingers:
            number = finger.device.removeprefix("M")
            assert not number or {finger.left, finger.right} == {f"d{number}", "s"}
            assert finger.gate == (f"g{number}" if number else "b")


def test_what_remains_unequal_is_told():
    found = plan(load("sky130A"), (2, 2), "AB", split=False)
    assert found.figures.centroid_error_x > 0
    outer = plan(load("sky130A"), (4, 4), "ABBA")
    assert outer.figures.stress_spread > 0.02
    assert any(f"by {outer.figures.stress_spread:.1%}: M1, M2" in text for text in outer.warnings)
