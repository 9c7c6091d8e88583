"""The diffusion-row primitive: any list of fingers, any nets, any stack of rows is clean and the circuit asked for."""

from itertools import combinations

import klayout.db as kdb
import pytest
from drawn_circuit import channels_of
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from layoutkit.draw.ring import SIDES, RingStyle
from layoutkit.draw.row import Finger, Row
from layoutkit.draw.stack import RowStack, draw_row_module
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError, LayoutkitError
from layoutkit.technology import load
from thorough import examples

OPEN = [RingStyle("open", sides) for number in (1, 2, 3) for sides in combinations(SIDES, number)]
STRIPS = [RingStyle("none", sides) for sides in ((), ("bottom",), ("top",))]
RINGS = st.sampled_from([RingStyle(), RingStyle("double"), *STRIPS, *OPEN])
NETS = st.sampled_from(["a", "b", "c", "e", "f"])  # b is the bulk


@st.composite
def rows(draw, spec):
    fingers = []
    for i in range(draw(st.integers(1, 5))):
        width = draw(st.sampled_from([spec.min_w, spec.min_w + 5, 700, 2005]))
        length = draw(st.sampled_from([spec.min_l, spec.min_l + 5, 300, 505, 1000]))
        left = fingers[-1].right if fingers and draw(st.booleans()) else draw(NETS)
        fingers.append(Finger(f"M{i}", draw(NETS), left, draw(NETS), width, length, f"M{i}"))
    breaks = draw(st.frozensets(st.integers(0, 4), max_size=2)) & set(range(len(fingers) - 1))
    return Row(tuple(fingers), frozenset(breaks), draw(st.sampled_from([0, 500])), draw(st.booleans()))


@st.composite
def stacks(draw):
    tech = load(draw(st.sampled_from(["generic", "sky130A"])))
    spec = tech.device(draw(st.sampled_from(["nmos", "pmos"])))
    drawn = draw(st.lists(rows(spec), min_size=1, max_size=3))
    rails = draw(st.sampled_from(["bottom", "both"]))
    twins = draw(st.sampled_from([(), (("a", "c"),), (("a", "c"), ("f", "e")), (("c", "a"), ("c", "b"))]))
    return tech, RowStack("cell", spec, "b", tuple(drawn), bulk_rails=rails, ring=draw(RINGS), twins=twins)


@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(stacks())
def test_any_stack_of_fingers_is_clean_and_connected_as_asked(case):
    tech, stack = case
    layout = kdb.Layout()
    try:
        module = draw_row_module(layout, tech, stack)
    except GeometryError as error:  # a ring that is open at sides may leave a tall stack too far from its taps
        if set(stack.ring.sides) == set(SIDES) or "from the nearest tap" not in str(error):
            raise
        reject()
    report = check(layout, module.cell, tech)
    assert not report.unchecked
    assert {verdict.rule.id: verdict.count for verdict in report.violated} == {}
    asked = sorted(
        (finger.width, finger.length, finger.gate, sorted({finger.left, finger.right}))
        for row in stack.rows
        for finger in row.fingers
    )
    channels = channels_of(module.cell, tech.name)
    assert sorted((c.width, c.length, c.gate, sorted(c.sides)) for c in channels) == asked


def finger(name, left, right, width=1000):
    return Finger(name, "g", left, right, width, 500, name)


def islands(module, tech, device="nmos"):
    """Return how many separate diffusions lie inside the tap ring."""
    implant = kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, tech.device(device).implant)))
    active = kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, "active")))
    return (active & implant).merged().count()


@pytest.mark.parametrize(
    ("fingers", "breaks", "count"),
    [
        ([finger("A", "s", "d"), finger("B", "d", "s")], (), 1),
        ([finger("A", "s", "d"), finger("B", "s", "d")], (), 2),
        ([finger("A", "s", "d"), finger("B", "d", "s", 1500)], (), 2),
        ([finger("A", "s", "d"), finger("B", "d", "s")], (0,), 2),
    ],
)
def test_diffusion_is_shared_where_neighbours_agree_on_net_and_height(tech, layout, fingers, breaks, count):
    row = Row(tuple(fingers), frozenset(breaks))
    module = draw_row_module(layout, tech, RowStack("cell", tech.device("nmos"), "b", (row,)))
    assert islands(module, tech) == count


def test_the_tap_ring_is_closed_and_contacted_on_all_sides(tech, layout):
    row = Row((finger("A", "s", "d"),))
    module = draw_row_module(layout, tech, RowStack("cell", tech.device("nmos"), "b", (row,)))
    implant = kdb.Region(module.cell.begin_shapes_rec(tech.layer(layout, tech.device("nmos").bulk_implant)))
    taps = kdb.Region(module.cell.begin_shapes_rec(tech.layer(layout, "tap"))) & implant
    assert taps.merged().count() == 1
    ring = next(taps.each_merged())
    assert ring.holes() == 1
    contacts = kdb.Region(module.cell.begin_shapes_rec(tech.layer(layout, "contact"))) & taps
    box = ring.bbox()
    for x, y in ((0, -1), (0, 1), (-1, 0), (1, 0)):
        half = kdb.Box(box).moved(x * box.width() * 9 // 10, y * box.height() * 9 // 10)
        assert (contacts & kdb.Region(half)).count() >= 2


def test_nets_on_several_rails_are_joined_by_risers_at_both_ends(tech, layout):
    row = Row((Finger("A", "d", "s", "d", 1000, 500, "A"), Finger("A", "d", "d", "s", 1000, 500, "A")))
    module = draw_row_module(layout, tech, RowStack("cell", tech.device("nmos"), "b", (row,)))
    above_rails = {"generic": "metal3", "sky130A": "met3"}[tech.name]
    risers = kdb.Region(module.cell.begin_shapes_rec(tech.layer(layout, above_rails)))
    assert risers.merged().count() == 2
    assert len(module.pins_of("d")) == 2
    assert module.symmetry_axis_x is not None


def test_empty_modules_and_names_that_gdsii_cannot_hold_are_refused(tech, layout):
    spec = tech.device("nmos")
    with pytest.raises(GeometryError, match="at least one row"):
        draw_row_module(layout, tech, RowStack("cell", spec, "b", ()))
    with pytest.raises(GeometryError, match="at least one finger"):
        draw_row_module(layout, tech, RowStack("cell", spec, "b", (Row(()),)))
    with pytest.raises(LayoutkitError, match="cannot be stored in GDSII"):
        draw_row_module(layout, tech, RowStack("a cell", spec, "b", (Row((finger("A", "s", "d"),)),)))
