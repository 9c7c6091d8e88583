"""Capacitances of drawn structures against arithmetic with the published coefficients."""

from dataclasses import replace
from math import atan, pi

import klayout.db as kdb
import pytest

from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.net_shapes import GROUND, NetShapes
from layoutkit.technology import load

SKY = load("sky130A")
ONE, TWO, THREE = 1, 2, 3


def box(left, bottom, right, top):
    """Return a region of one box. [um]"""
    return kdb.Region(kdb.DBox(left, bottom, right, top).to_itype(0.001))


def found(technology=SKY, devices=None, plates=None, **levels):
    return capacitances(NetShapes(levels, devices or kdb.Region(), plates or {}), technology)


def share(distance, area):
    return 2 / pi * atan(0.02 * area * distance)


def test_a_plate_has_its_area_and_its_edges_to_the_substrate():
    one = found(met1={ONE: box(0, 0, 10, 20)})
    assert one.ground_fF == {ONE: pytest.approx((200 * 25.78 + 60 * 40.57) / 1000)}
    assert one.coupling_fF == {}
    assert one.unchecked == ()


def test_two_wires_couple_over_the_gap_and_shield_each_other_from_the_substrate():
    """Magic 8.3.677 gives 11.2821 fF and 4.615 fF for these two wires."""
    both = found(met1={ONE: box(0, 0, 100, 0.14), TWO: box(0, 0.28, 100, 0.42)})
    assert both.coupling_fF == {(ONE, TWO): pytest.approx(44 * 100 / (0.14 + 0.25) / 1000)}
    edges = 100.28 + 100 * share(0.14, 25.78)
    assert both.ground_fF[ONE] == pytest.approx((14 * 25.78 + edges * 40.57) / 1000)
    assert both.ground_fF[ONE] == pytest.approx(4.615, rel=0.01)
    assert both.ground_fF[TWO] == pytest.approx(both.ground_fF[ONE])


def test_only_the_nearest_wire_beside_an_edge_couples_with_it():
    wires = {net: box(0, (net - 1) * 0.5, 20, (net - 1) * 0.5 + 0.2) for net in (ONE, TWO, THREE)}
    three = found(met1=wires)
    assert three.coupling_fF == {
        pair: pytest.approx(44 * 20 / (0.3 + 0.25) / 1000) for pair in ((ONE, TWO), (TWO, THREE))
    }


def test_a_plate_over_a_plate_couples_by_area_and_by_both_fringes():
    """The upper one ends 1 um inside the lower one, whose field beyond its own edges goes to the substrate."""
    pair = found(met1={ONE: box(0, 0, 12, 12)}, met2={TWO: box(1, 1, 11, 11)})
    fringe = 67.05 * 40 * share(1, 133.86)
    assert pair.coupling_fF == {(ONE, TWO): pytest.approx((100 * 133.86 + fringe) / 1000)}
    assert pair.ground_fF[TWO] == pytest.approx(37.76 * 40 * (1 - share(1, 17.5)) / 1000)
    assert pair.ground_fF[ONE] == pytest.approx((144 * 25.78 + 48 * 40.57) / 1000)


def test_an_edge_below_a_plate_has_a_fringe_to_it():
    pair = found(met1={ONE: box(1, 1, 11, 11)}, met2={TWO: box(0, 0, 12, 12)})
    fringe = 48.19 * 40 * share(1, 133.86)
    assert pair.coupling_fF == {(ONE, TWO): pytest.approx((100 * 133.86 + fringe) / 1000)}


def test_what_lies_between_shields():
    """A sheet of met2 between met1 and met3 leaves no capacitance between these two."""
    levels = {"met1": {ONE: box(0, 0, 10, 10)}, "met3": {THREE: box(0, 0, 10, 10)}}
    apart = found(**levels)
    assert apart.coupling_fF == {(ONE, THREE): pytest.approx(100 * 34.54 / 1000)}
    between = found(**levels, met2={TWO: box(-20, -20, 30, 30)})
    assert set(between.coupling_fF) == {(ONE, TWO), (TWO, THREE)}
    assert between.ground_fF[THREE] == pytest.approx(40 * 40.99 * (1 - share(8, 12.37)) / 1000), "what reaches farther"


def test_metal_of_the_same_net_shields_and_couples_with_nothing():
    own = found(met1={ONE: box(0, 0, 10, 10)}, met2={ONE: box(-20, -20, 30, 30)})
    assert own.coupling_fF == {}
    assert own.ground_fF[ONE] == pytest.approx(((2500 - 100) * 17.5 + 200 * 37.76 + 100 * 25.78 + 40 * 40.57) / 1000)


def test_gates_are_left_out_and_poly_beside_them_counts():
    """The model of the transistor has what lies over diffusion; poly on field oxide is a wire."""
    poly, diffusion = box(0, -1, 0.15, 3), box(-1, 0, 1, 2)
    wire = found(devices=diffusion, poly={ONE: poly})
    field = 2 * 1.0
    assert wire.ground_fF[ONE] == pytest.approx((0.15 * field * 106.13 + (2 * field + 0.3) * 55.27) / 1000)


def test_metal_over_a_gate_couples_with_the_gate():
    diffusion = box(-1, 0, 1, 2)
    over = found(
        devices=diffusion,
        diffusion={THREE: diffusion - box(0, -1, 0.15, 3)},
        poly={ONE: box(0, -1, 0.15, 3)},
        met1={TWO: box(-0.5, 0.5, 0.5, 1.5)},
    )
    assert over.coupling_fF[ONE, TWO] > 0.15 * 1 * 44.81 / 1000
    assert over.coupling_fF[TWO, THREE] > 0.85 * 1 * 33.6 / 1000
    assert over.ground_fF[TWO] < 40.57 * 4 / 1000, "its area is over the transistor"


def test_capacitance_over_a_well_is_that_to_its_net():
    over = found(well={TWO: box(-20, -20, 30, 30)}, met1={ONE: box(0, 0, 10, 10)})
    assert over.coupling_fF == {(ONE, TWO): pytest.approx((100 * 25.78 + 40 * 40.57 * share(8, 25.78)) / 1000)}


def test_an_n_well_has_a_junction_with_the_substrate_and_with_a_p_well_in_it():
    wells = NetShapes({}, n_wells={ONE: box(0, 0, 20, 10)}, p_wells={TWO: box(5, 2, 10, 6)})
    one = capacitances(wells, SKY)
    assert one.ground_fF == {ONE: pytest.approx(200 * 120 / 1000)}
    assert one.coupling_fF == {(ONE, TWO): pytest.approx(20 * 120 / 1000)}
    assert capacitances(wells, load("sg13g2")).unchecked == (
        "junctions of wells: technology sg13g2 states no capacitance",
    )


def test_the_plate_of_a_capacitor_hides_its_bottom_from_above():
    levels = {"met3": {ONE: box(0, 0, 20, 20)}, "met4": {TWO: box(5, 5, 15, 15)}}
    bare = found(**levels)
    assert bare.coupling_fF[ONE, TWO] > 100 * 84.03 / 1000
    covered = found(**levels, plates={"met3": {TWO: box(1, 1, 19, 19)}})
    assert covered.coupling_fF[ONE, TWO] < 0.2 * bare.coupling_fF[ONE, TWO]
    assert any("plates of capacitors" in text for text in covered.unchecked)


def test_metal_on_no_net_is_grounded():
    beside = found(met1={ONE: box(0, 0, 100, 0.14), GROUND: box(0, 0.28, 100, 0.42)})
    assert beside.coupling_fF == {}
    assert beside.ground_fF[ONE] == pytest.approx(11.2821 + 4.595, rel=0.01)
    assert set(beside.ground_fF) == {ONE}


def test_a_turned_layout_has_the_same_capacitances():
    wires = {ONE: box(0, 0, 9, 1), TWO: box(2, 1.3, 4, 9), THREE: box(5, 1.5, 12, 2)}
    over = {ONE: box(3, -3, 3.5, 12)}
    plain = found(met1=wires, met2=over)
    for code in range(1, 8):
        turn = kdb.Trans(code)
        other = found(
            met1={net: region.transformed(turn) for net, region in wires.items()},
            met2={net: region.transformed(turn) for net, region in over.items()},
        )
        assert other.coupling_fF == pytest.approx(plain.coupling_fF)
        assert other.ground_fF == pytest.approx(plain.ground_fF)


def test_pieces_sum_up_to_the_capacitances_and_lie_where_they_come_from():
    wires = {ONE: box(0, 0, 100, 0.14), TWO: box(0, 0.28, 50, 0.42)}
    both = found(met1=wires)
    coupling = [piece for piece in both.pieces if piece.other is not None]
    assert sum(piece.fF for piece in coupling) == pytest.approx(both.coupling_fF[ONE, TWO])
    assert sum(piece.fF for piece in both.pieces if piece.net == ONE and piece.other is None) == pytest.approx(
        both.ground_fF[ONE]
    )
    assert len(coupling) >= 10
    assert all(0 < piece.x < 50_000 and 140 <= piece.y <= 280 for piece in coupling)
    beyond = [piece for piece in both.pieces if piece.net == ONE and piece.x > 60_000]
    assert {piece.other for piece in beyond} == {None}


def test_what_the_technology_does_not_state_is_unchecked():
    without = replace(SKY, parasitics=replace(SKY.parasitics, pairs={}, profiles={}))
    both = found(without, met1={ONE: box(0, 0, 10, 1), TWO: box(0, 1.2, 10, 2)}, met2={TWO: box(0, 0, 10, 1)})
    assert both.unchecked == (
        "capacitance between met2 and met1: technology sky130A states none",
        "sidewalls of met1: technology sky130A states no coupling",
    )
    nothing = replace(SKY, conductors=tuple(replace(each, area_af_um2=None) for each in SKY.conductors))
    assert found(nothing, met1={ONE: box(0, 0, 1, 1)}).unchecked == (
        "capacitance of met1: technology sky130A states none",
    )


def test_slanted_edges_are_steps_of_the_same_area():
    corner = kdb.Region(kdb.DPolygon([kdb.DPoint(0, 0), kdb.DPoint(0, 10), kdb.DPoint(10, 0)]).to_itype(0.001))
    slanted = found(met1={ONE: corner})
    low, high = 50 * 25.78 + 34.14 * 40.57, 50 * 25.78 + 40 * 40.57
    assert low / 1000 < slanted.ground_fF[ONE] <= high / 1000 * 1.001
    assert slanted.unchecked == ("edges of slanted met1 are counted as steps, at most 1.41 times as long",)
