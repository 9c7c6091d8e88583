"""Ring styles: open sides, a second ring, tap strips. Taps are near enough to all diffusion, or it is refused."""

import klayout.db as kdb
import pytest

from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.draw.ring import RingStyle, TapRing, tap_distance
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load
from thorough import processes

STYLES = [
    RingStyle("double"),
    RingStyle("none"),
    RingStyle("none", ("top",)),
    RingStyle("open", ("left",)),
    RingStyle("open", ("bottom", "top")),
    RingStyle("open", ("bottom", "left", "right")),
]


def drawn(tech, style, flavour="nmos", size=(4, 1.0), *, nf=2, dummies=1):
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    spec = tech.device(flavour)
    length_um = min(max(size[1], tech.to_um(spec.min_l)), tech.to_um(spec.max_l or 10**9))
    size = (max(size[0], nf * tech.to_um(spec.min_w)), length_um)
    size_m = MosSize(size[0] * 1e-6, length_um * 1e-6, nf)
    made = transistor(tech, "M1", flavour, size_m, {terminal: terminal for terminal in "dgsb"})
    return draw_mos(layout, tech, MosSpec(made, "cell", dummies=dummies, ring=style))


def diffusion(module, tech):
    shapes = kdb.Region()
    for role in ("active", "tap"):
        shapes += kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, role)))
    return shapes.merged()


@pytest.mark.parametrize("name", sorted(set(processes()) - {"generic", "sky130A"}))  # test_stack draws those two
@pytest.mark.parametrize("style", STYLES, ids=lambda style: "-".join((style.kind, *style.open_sides)))
def test_every_style_keeps_the_rules_around_every_type_and_oxide(name, style):
    tech = load(name)
    flavours = sorted(tech.devices)[::2] if style.open_sides else sorted(tech.devices)
    for flavour in flavours:
        if tech.device(flavour).block and len(style.sides) == 1:
            continue  # its fingers, 20 um wide at least, are too wide for taps at one side
        module = drawn(tech, style, flavour)
        report = check(module.layout, module.cell, tech)
        assert [verdict.rule.id for verdict in report.violated] == [], flavour


@pytest.mark.parametrize(("kind", "closed"), [("full", 1), ("double", 2), ("open", 0), ("none", 0), ("later", 0)])
def test_the_number_of_closed_rings_is_that_of_the_style(sky130, kind, closed):
    style = RingStyle(kind, ("left",) if kind == "open" else ())
    module = drawn(sky130, style)
    assert sum(polygon.holes() > 0 for polygon in diffusion(module, sky130).each()) == closed


@pytest.mark.parametrize(("flavour", "net"), [("nmos", "VDD"), ("pmos", "VSS")])
def test_the_outer_ring_is_of_the_opposite_type_on_its_own_net(sky130, flavour, net):
    module = drawn(sky130, RingStyle("double"), flavour)
    (pin,) = module.pins_of(net)
    well = kdb.Region(module.cell.begin_shapes_rec(sky130.layer(module.layout, "nwell"))).merged()
    tap = diffusion(module, sky130) & kdb.Region(pin.box)
    assert tap.area() > 0
    assert ((tap - well).is_empty(), (tap & well).is_empty()) == ((True, False) if net == "VDD" else (False, True))
    (own,) = drawn(sky130, RingStyle("double", outer_net="guard"), flavour).pins_of("guard")
    assert own.box == pin.box


def test_the_outer_ring_needs_a_net_of_its_own(sky130):
    with pytest.raises(GeometryError, match="needs another net than the bulk's, b"):
        drawn(sky130, RingStyle("double", outer_net="b"))


def test_a_finger_that_only_a_closed_ring_reaches_is_refused_with_open_sides(sky130):
    """15 um of tap distance (LU.2): a finger of 30 um between two strips, or of 15 um beside one, ends too far away."""
    one_side = RingStyle("open", ("top", "left", "right"))
    for style, fits, fails in ((one_side, 12, 15), (RingStyle("none"), 24, 30)):
        module = drawn(sky130, style, size=(fits, 1.0), nf=1)
        assert check(module.layout, module.cell, sky130).violated == ()
        with pytest.raises(GeometryError, match=r"15 um are allowed.* or close a side of the ring"):
            drawn(sky130, style, size=(fails, 1.0), nf=1)


@pytest.mark.parametrize(
    ("kind", "sides", "message"),
    [
        ("open", (), "one to three open sides"),
        ("open", ("bottom", "top", "left", "right"), "one to three open sides"),
        ("open", ("middle",), "the sides of a ring are bottom, top, left, right, got middle"),
        ("none", ("left",), "tap strips at the bottom, the top or both"),
        ("full", ("left",), "open sides belong to an open ring"),
    ],
)
def test_sides_that_do_not_fit_the_style_are_refused(kind, sides, message):
    with pytest.raises(GeometryError, match=message):
        RingStyle(kind, sides)


def test_only_a_double_ring_has_an_outer_net():
    with pytest.raises(GeometryError, match="only a double ring has an outer net"):
        RingStyle("full", outer_net="VDD")


def test_the_tap_distance_is_that_of_the_farthest_point():
    inner, row = Rectangle(0, 0, 100, 60), Rectangle(10, 10, 90, 50)
    assert tap_distance(row, inner, ("bottom",)) == 50
    assert tap_distance(row, inner, ("bottom", "top")) == 30
    assert tap_distance(row, inner, ("right",)) == 90
    assert tap_distance(row, inner, ("bottom", "right")) == 50
    assert tap_distance(Rectangle(10, 5, 90, 20), inner, TapRing(inner).sides) == 20
