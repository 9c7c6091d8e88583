"""What wires inside resistors and above their bodies have counts to the nets at the ends, against arithmetic."""

from dataclasses import replace
from math import atan, pi

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device
from layoutkit.draw.passive import resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.extract.extractor import extract
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.external_engines import figures_of_elements, with_pins
from layoutkit.parasitics.net_shapes import GROUND, NetShapes, inner_nets, net_shapes
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize

PROCESSES = ("sky130A", "gf180mcuD", "sg13g2")
SKY = load("sky130A")
ONE, TWO, THREE, BODY = 1, 2, 3, 7


def box(left, bottom, right, top):
    return kdb.Region(kdb.DBox(left, bottom, right, top).to_itype(0.001))


def string_of_four_bars(name):
    """Return an extraction of four bars in series from net a to net c, each 10 um long, and the numbers of a and c."""
    technology, layout = load(name), kdb.Layout()
    layout.dbu = technology.dbu_um
    spec = technology.passive("resistor")
    width = (spec.widths or (spec.min_w,))[0] * technology.dbu_um * 1e-6
    device = resistor(technology, "R1", "resistor", PassiveSize(width, 40e-6, 1, 4), {"p": "a", "n": "c"})
    module = draw_resistors(layout, technology, ResistorSpec("X", (device,), "b"))
    extraction = extract(layout, module.cell, technology)
    numbers = {net.name: number for number, net in extraction.nets.items()}
    return extraction, numbers["a"], numbers["c"]


def test_each_end_of_a_string_has_the_share_of_an_inner_net_by_which_the_voltage_follows():
    """Four equal resistors: between them there are 3, 2 and 1 quarters of the voltage across the string."""
    extraction, a, c = string_of_four_bars("sky130A")
    shares = inner_nets(extraction)
    assert not shares.keys() & extraction.nets.keys()
    assert sorted(dict(ends)[a] for ends in shares.values()) == pytest.approx([0.25, 0.5, 0.75])
    for ends in shares.values():
        assert set(dict(ends)) == {a, c}
        assert sum(dict(ends).values()) == pytest.approx(1)


@pytest.mark.parametrize("name", PROCESSES)
def test_what_inner_nets_have_to_the_substrate_goes_to_the_ends_by_their_shares(name):
    extraction, a, c = string_of_four_bars(name)
    shapes = net_shapes(extraction)
    assert shapes.floating == ()
    whole = capacitances(shapes, extraction.technology)
    apart = capacitances(replace(shapes, inner={}), extraction.technology)
    inner = {net: fF for net, fF in apart.ground_fF.items() if net in shapes.inner}
    assert len(inner) == 3
    assert min(inner.values()) > 0
    for end in (a, c):
        expected = apart.ground_fF[end] + sum(fF * dict(shapes.inner[net])[end] for net, fF in inner.items())
        assert whole.ground_fF[end] == pytest.approx(expected)
    assert not {net for pair in whole.coupling_fF for net in pair} & shapes.inner.keys()
    assert {piece.net for piece in whole.pieces} <= extraction.nets.keys()


def test_a_coupling_of_two_inner_nets_is_divided_among_all_ends():
    wires = {ONE: box(0, 0, 10, 0.2), TWO: box(0, 0.5, 10, 0.7), THREE: box(50, 0, 51, 1), BODY: box(60, 0, 61, 1)}
    shares = {ONE: ((THREE, 0.25), (BODY, 0.75)), TWO: ((THREE, 0.5), (BODY, 0.5))}
    found = capacitances(NetShapes({"met1": wires}, inner=shares), SKY)
    side = 44 * 10 / (0.3 + 0.25) / 1000
    assert found.coupling_fF == {(THREE, BODY): pytest.approx(side * (0.25 * 0.5 + 0.75 * 0.5))}
    alone = capacitances(NetShapes({"met1": wires}), SKY)
    assert sum(found.ground_fF.values()) == pytest.approx(sum(alone.ground_fF.values()))


def test_a_wire_over_the_body_of_a_resistor_couples_with_both_ends():
    """The body itself has nothing to the substrate: the model of the resistor has that."""
    body = box(-10, 0, 10, 2)
    found = capacitances(
        NetShapes(
            {"poly": {BODY: body}, "met1": {ONE: box(-1, 0.5, 1, 1.5)}},
            devices=body,
            inner={BODY: ((TWO, 0.5), (THREE, 0.5))},
        ),
        SKY,
    )
    reached = 2 * 2 * 2 / pi * atan(0.02 * 44.81 * 0.5) + 2 * 1 * 2 / pi * atan(0.02 * 44.81 * 8)
    half = (2 * 44.81 + 46.72 * reached) / 2 / 1000
    assert found.coupling_fF == {(ONE, TWO): pytest.approx(half), (ONE, THREE): pytest.approx(half)}
    assert set(found.ground_fF) == {ONE}


@pytest.mark.parametrize("name", PROCESSES)
def test_every_bar_is_seen_from_above_and_its_model_has_what_it_has_to_the_substrate(name):
    extraction, a, _ = string_of_four_bars(name)
    shapes = net_shapes(extraction)
    bodies = sorted(set(shapes.levels["poly"]) - set(extraction.nets) - set(inner_nets(extraction)))
    spec = extraction.technology.passive("resistor")
    width = extraction.devices[0].w_um
    assert [shapes.levels["poly"][body].area() * extraction.technology.dbu_um**2 for body in bodies] == pytest.approx(
        [10 * width] * 4, rel=0.02
    ), spec.name
    assert sorted(dict(shapes.inner[body])[a] for body in bodies) == pytest.approx([0.125, 0.375, 0.625, 0.875])
    apart = capacitances(replace(shapes, inner={}), extraction.technology)
    assert not set(bodies) & set(apart.ground_fF)


def head_length_um(extraction, net):
    """Return the length of the poly of a net along a bar beyond its core."""
    poly = extraction.shapes(net, "poly").bbox()
    return max(poly.width(), poly.height()) * extraction.technology.dbu_um


def ground_of_poly(technology, shapes, net):
    found = capacitances(replace(shapes, inner={}), technology)
    return sum(piece.fF for piece in found.pieces if (piece.net, piece.layer, piece.other) == (net, "poly", None))


def test_heads_whose_capacitance_the_model_contains_are_left_out_at_the_ends_of_a_device():
    """Models of sky130A count l + 2 * 2.08 um, those of gf180mcuD the core; between bars in series heads are wires."""
    sky, a, c = string_of_four_bars("sky130A")
    shapes = net_shapes(sky)
    assert all(head_length_um(sky, end) <= 2.08 for end in (a, c))
    assert [ground_of_poly(SKY, shapes, end) for end in (a, c)] == [0, 0]
    inner = inner_nets(sky)
    width, poly = sky.devices[0].w_um, SKY.silicon["poly"]
    for net in inner:
        heads = sky.shapes(net, "poly").merged()
        assert heads.count() == 2
        area = heads.area() * 1e-6
        outline = heads.perimeter() * 1e-3 - 2 * width  # not the sides at the bodies
        most = (area * poly.area_af_um2 + outline * poly.fringe_af_um) / 1000
        assert 0.6 * most < ground_of_poly(SKY, shapes, net) <= most * 1.001
    gf180, a, c = string_of_four_bars("gf180mcuD")
    assert all(ground_of_poly(gf180.technology, net_shapes(gf180), end) > 0 for end in (a, c))


def test_metal_that_is_on_no_net_is_still_grounded():
    extraction, _, _ = string_of_four_bars("sky130A")
    cell = extraction.layout.cell(extraction.cell_name)
    cell.shapes(SKY.layer(extraction.layout, "met1")).insert(kdb.Box(-50_000, 0, -40_000, 1000))
    shapes = net_shapes(extract(extraction.layout, cell, SKY))
    assert shapes.floating == ("met1",)
    assert set(shapes.levels["met1"]) >= {GROUND}


def test_figures_of_another_program_are_divided_among_the_ends_as_well():
    """Nets inside a resistor got labels, and are no pins; net 0 is one of the circuit, not the program's substrate."""
    circuit = Circuit("x", (Device("R1", "resistor", "r", {}, {"p": "a", "n": "0"}),), ("a", "0"))
    text = "C1 a inner_7 2f\nC2 inner_7 VSUBS 8f\nC3 a 0 1f\nC4 inner_7 0 4f\n"
    nets, _ = figures_of_elements(text, circuit, {"inner_7": (("a", 0.25), ("0", 0.75))})
    found = {net.net: net for net in nets}
    assert found["a"].ground_fF == 2.0
    assert found["0"].ground_fF == 6.0
    assert found["a"].coupling_fF == {"0": 1 + 0.75 * 2 + 0.25 * 4} == {"0": found["0"].coupling_fF["a"]}
    spice, unchecked = with_pins(".subckt x 0 inner_7 a\n.ends\n", "x", circuit, {"inner_7"})
    assert (spice.splitlines()[0], unchecked) == (".subckt x a 0", [])
