"""Every coefficient of every process matters: a tenth more of it changes the capacitance by a tenth of its share."""

from dataclasses import replace
from math import atan, pi

import klayout.db as kdb
import pytest

from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.net_shapes import NetShapes
from layoutkit.technology import load

PROCESSES = ("sky130A", "gf180mcuD", "sg13g2")
ONE, TWO = 1, 2
INNER, OUTER = (2, 2, 12, 12), (0, 0, 14, 14)


def box(left, bottom, right, top):
    return kdb.Region(kdb.DBox(left, bottom, right, top).to_itype(0.001))


def coupling(technology, **levels):
    found = capacitances(NetShapes(levels), technology)
    return found.coupling_fF.get((ONE, TWO), 0.0) * 1000


def ground(technology, **levels):
    return capacitances(NetShapes(levels), technology).ground_fF[ONE] * 1000


def with_parasitics(technology, **parts):
    return replace(technology, parasitics=replace(technology.parasitics, **parts))


def share(distance, area):
    return 2 / pi * atan(0.02 * area * distance)


@pytest.mark.parametrize("name", PROCESSES)
def test_each_number_of_a_pair_of_conductors_changes_their_capacitance(name):
    technology = load(name)
    pairs = technology.parasitics.pairs
    for (upper, lower), pair in pairs.items():
        inside = {upper: {ONE: box(*INNER)}, lower: {TWO: box(*OUTER)}}
        outside = {upper: {ONE: box(*OUTER)}, lower: {TWO: box(*INNER)}}
        reached = 40 * share(2, pair.area_af_um2)
        before = coupling(technology, **inside)
        assert before == pytest.approx(pair.area_af_um2 * 100 + pair.fringe_upper_af_um * reached), (upper, lower)
        below = pair.area_af_um2 * 100 + pair.fringe_lower_af_um * reached
        assert coupling(technology, **outside) == pytest.approx(below), (upper, lower)
        numbers = {number: getattr(pair, number) * 1.1 for number in ("fringe_upper_af_um", "fringe_lower_af_um")}
        more = with_parasitics(technology, pairs={**pairs, (upper, lower): replace(pair, **numbers)})
        change = coupling(more, **inside) - before
        assert change == pytest.approx(0.1 * pair.fringe_upper_af_um * reached), (upper, lower)


@pytest.mark.parametrize("name", PROCESSES)
def test_each_sidewall_changes_the_coupling_of_neighbours(name):
    technology = load(name)
    profiles = technology.parasitics.profiles
    for layer, profile in profiles.items():
        levels = {layer: {ONE: box(0, 0, 100, 2), TWO: box(0, 4, 100, 6)}}
        assert coupling(technology, **levels) == pytest.approx(
            profile.sidewall_af * 100 / (2 + profile.sidewall_offset_um)
        )
        more = replace(profile, sidewall_af=profile.sidewall_af * 1.1, sidewall_offset_um=profile.sidewall_offset_um)
        farther = replace(profile, sidewall_offset_um=profile.sidewall_offset_um + 1)
        changed = with_parasitics(technology, profiles={**profiles, layer: more})
        assert coupling(changed, **levels) == pytest.approx(1.1 * coupling(technology, **levels)), layer
        changed = with_parasitics(technology, profiles={**profiles, layer: farther})
        assert coupling(changed, **levels) == pytest.approx(
            profile.sidewall_af * 100 / (3 + profile.sidewall_offset_um)
        ), layer


@pytest.mark.parametrize("name", PROCESSES)
def test_each_capacitance_to_the_substrate_changes_that_of_a_plate(name):
    technology = load(name)
    for level in (*technology.conductors, "poly"):
        layer = level if isinstance(level, str) else level.name
        own = technology.silicon["poly"] if layer == "poly" else level
        plate = {layer: {ONE: box(*INNER)}}
        assert ground(technology, **plate) == pytest.approx(100 * own.area_af_um2 + 40 * own.fringe_af_um)
        for number, times in (("area_af_um2", 100), ("fringe_af_um", 40)):
            value = getattr(own, number)
            more = replace(own, **{number: value * 1.1})
            if layer == "poly":
                changed = replace(technology, silicon={**technology.silicon, "poly": more})
            else:
                changed = replace(technology, conductors=tuple(more if c is own else c for c in technology.conductors))
            change = ground(changed, **plate) - ground(technology, **plate)
            assert change == pytest.approx(0.1 * value * times), (layer, number)


def test_reach_steepness_and_wells_change_what_they_should():
    technology = load("sky130A")
    data = technology.parasitics
    apart = {"met1": {ONE: box(0, 0, 100, 1), TWO: box(0, 6, 100, 7)}}
    assert coupling(technology, **apart) > 0
    near = with_parasitics(technology, shielding=replace(data.shielding, reach_um=4.0))
    assert coupling(near, **apart) == 0
    steep = with_parasitics(technology, shielding=replace(data.shielding, steepness_um_af=0.04))
    stated = 100 * 25.78 + 40.57 * (102 + 100 * 2 / pi * atan(0.04 * 25.78 * 5))
    assert ground(steep, **apart) == pytest.approx(stated)
    for value in (120.0, 132.0):
        wells = NetShapes({}, n_wells={ONE: box(*INNER)})
        found = capacitances(wells, with_parasitics(technology, well_af_um2=value))
        assert found.ground_fF[ONE] * 1000 == pytest.approx(100 * value)
