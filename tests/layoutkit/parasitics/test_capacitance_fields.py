"""Capacitances against the electric field of the same cross-section, solved in two dimensions.

The coefficients of a small stack are taken from the fields of its simplest structures: one wire, and a comb of three.
What extraction makes of them is then compared with the fields of other structures.
"""

from dataclasses import replace
from functools import cache
from math import pi, tan

import klayout.db as kdb
import numpy as np
import pytest
from field_solver import VACUUM, capacitance_matrix

from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.net_shapes import NetShapes
from layoutkit.technology import load
from layoutkit.technology.parasitic_data import FringeShielding, Overlap, ParasiticData, WireProfile

PERMITTIVITY = 4.0
LOWER, UPPER = (1.0, 0.4), (2.0, 0.5)  # bottom and thickness [um]
WIDTH = SPACE = 0.2
LENGTH = 1000.0
NAMES = ("metal1", "metal2")


def wire(left, width, level):
    bottom, thickness = level
    return left, bottom, left + width, bottom + thickness


def comb(count, times, level, width=WIDTH):
    pitch = width + times * SPACE
    return [wire(number * pitch, width, level) for number in range(count)]


def solved(*conductors):
    return capacitance_matrix(conductors, PERMITTIVITY)


@cache
def stack():
    """Return a technology of two conductors whose coefficients are from fields of a plate, a wire, a comb of three."""
    technology = load("generic")
    conductors, profiles, steepness = [], {}, []
    for own, level in zip(technology.conductors[:2], (LOWER, UPPER), strict=True):
        area = PERMITTIVITY * VACUUM / level[0]
        combs = {times: solved(*comb(3, times, level)) for times in (1, 3)}
        near, far = (coupling[0, 1] for _, coupling in combs.values())
        offset = (far * 3 * SPACE - near * SPACE) / (near - far)
        # One fringe for all widths: the narrowest wire and a plate are equally far from their fields.
        wide = {width: solved(wire(0, width, level))[0][0] for width in (WIDTH, 10)}
        parts = sum(area * width / total for width, total in wide.items())
        fringe = (2 - parts) / sum(2 / total for total in wide.values())
        share = (combs[3][0][1] - area * WIDTH) / (2 * fringe)
        steepness.append(tan(share * pi / 2) / (area * 3 * SPACE))
        profiles[own.name] = WireProfile(*level, near * (SPACE + offset), offset)
        conductors.append(replace(own, area_af_um2=area, fringe_af_um=fringe))
    area = PERMITTIVITY * VACUUM / (UPPER[0] - sum(LOWER))
    over = solved(wire(0, WIDTH, UPPER), wire(-20, 40, LOWER))[1][0, 1]
    under = solved(wire(0, WIDTH, LOWER), wire(-20, 40, UPPER))[1][0, 1]
    pair = Overlap(area, (over - area * WIDTH) / 2, (under - area * WIDTH) / 2)
    data = ParasiticData(profiles, {(NAMES[1], NAMES[0]): pair}, FringeShielding(8.0, sum(steepness) / 2))
    return replace(technology, conductors=(*conductors, *technology.conductors[2:]), parasitics=data)


def extracted(conductors, technology=None):
    """Return the same as the solver from the rules of extraction. [aF/um]"""
    levels = {name: {} for name in NAMES}
    for net, (left, bottom, right, _) in enumerate(conductors):
        shape = kdb.Region(kdb.DBox(left, 0, right, LENGTH).to_itype(0.001))
        levels[NAMES[bottom == UPPER[0]]][net] = shape
    found = capacitances(NetShapes({name: nets for name, nets in levels.items() if nets}), technology or stack())
    coupling = np.zeros((len(conductors), len(conductors)))
    for (one, other), value in found.coupling_fF.items():
        coupling[one, other] = coupling[other, one] = value * 1000 / LENGTH
    ground = np.array([found.ground_fF.get(net, 0.0) * 1000 / LENGTH for net in range(len(conductors))])
    return ground, coupling


def totals(matrix):
    ground, coupling = matrix
    return ground + coupling.sum(axis=1)


def test_the_solver_finds_the_capacitance_of_a_plate_and_of_a_wire():
    """Two plates differ by their area alone; of a wire over a plane Sakurai and Tamaru give 6 % (1983)."""
    per_area = (solved(wire(0, 30, LOWER))[0][0] - solved(wire(0, 20, LOWER))[0][0]) / 10
    assert per_area == pytest.approx(PERMITTIVITY * VACUUM / LOWER[0], rel=0.03)
    for width, bottom, thickness in ((0.3, 1.0, 0.5), (1.0, 1.0, 0.5), (3.0, 1.0, 1.0)):
        ground, _ = solved(wire(0, width, (bottom, thickness)))
        formula = PERMITTIVITY * VACUUM * (1.15 * width / bottom + 2.8 * (thickness / bottom) ** 0.222)
        assert ground[0] == pytest.approx(formula, rel=0.06)


def test_the_solver_knows_layers_of_dielectrics():
    """Two layers in series: a plate over 0.5 um of each of two permittivities."""
    rows = [(0.5, 2.0), (25.0, 6.0)]
    wide, narrow = (capacitance_matrix([wire(0, width, LOWER)], rows)[0][0] for width in (30, 20))
    assert (wide - narrow) / 10 == pytest.approx(VACUUM / (0.5 / 2 + 0.5 / 6), rel=0.03)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("level", [LOWER, UPPER], ids=["lower", "upper"])
def test_parallel_wires_and_combs_are_within_a_tenth_of_their_field(count, times, level):
    conductors = comb(count, times, level)
    field, ours = solved(*conductors), extracted(conductors)
    assert totals(ours) == pytest.approx(totals(field), rel=0.1)
    for one in range(count - 1):
        assert ours[1][one, one + 1] == pytest.approx(field[1][one, one + 1], rel=0.1)


def test_plates_are_within_a_tenth_of_their_field():
    for conductors in (
        [wire(0, 10, LOWER)],
        [wire(0, 10, UPPER)],
        [wire(-1, 12, LOWER), wire(0, 10, UPPER)],
        [wire(0, 10, LOWER), wire(-1, 12, UPPER)],
        [wire(0, 10, LOWER), wire(0, 10, UPPER)],
        [wire(0, 10, LOWER), wire(5, 10, UPPER)],
    ):
        field, ours = solved(*conductors), extracted(conductors)
        assert totals(ours) == pytest.approx(totals(field), rel=0.1)
        if len(conductors) == 2:
            assert ours[1][0, 1] == pytest.approx(field[1][0, 1], rel=0.1)


def test_metal_on_the_plate_of_a_capacitor_has_nothing_to_the_bottom_below_it():
    """The plate is on the net of the metal above, and takes its field: not what metal2 over metal1 would have there."""
    plate, beyond = (sum(LOWER) + 0.1, 0.1), 2
    conductors = [wire(-beyond, 20 + 2 * beyond, LOWER), wire(0, 20, plate), wire(0, 20, UPPER)]
    field = solved(*conductors)[1]
    bare = solved(conductors[0], conductors[2])[1][0, 1]
    assert field[0, 2] < 0.15 * bare
    shapes = [kdb.Region(kdb.DBox(left, 0, right, LENGTH).to_itype(0.001)) for left, _, right, _ in conductors]
    levels = {NAMES[0]: {0: shapes[0]}, NAMES[1]: {1: shapes[2]}}
    found = capacitances(NetShapes(levels, plates={NAMES[0]: {1: shapes[1]}}), stack())
    assert found.coupling_fF.get((0, 1), 0.0) * 1000 / LENGTH == pytest.approx(field[0, 2], abs=0.05 * bare)


def test_a_comb_over_a_plate_is_within_a_fifth_of_its_field():
    """With magic's shielding. The plate weakens the coupling of neighbours, which no coefficient states (0018)."""
    conductors = [*comb(3, 3, UPPER), wire(-4, 10, LOWER)]
    data = stack().parasitics
    magic = replace(stack(), parasitics=replace(data, shielding=FringeShielding(8.0, 0.02)))
    field, ours = solved(*conductors), extracted(conductors, magic)
    assert totals(ours)[:3] == pytest.approx(totals(field)[:3], rel=0.2)
    assert ours[1][1, 3] == pytest.approx(field[1][1, 3], rel=0.15)


@pytest.mark.parametrize(("name", "permittivity"), [("sky130A", 4.0), ("gf180mcuD", 4.0), ("sg13g2", 4.1)])
def test_published_areas_are_those_of_the_published_heights(name, permittivity):
    """Plates between metals: the coefficient is the permittivity over the distance, within a tenth."""
    technology = load(name)
    profiles = technology.parasitics.profiles
    metals = {conductor.name for conductor in technology.conductors}
    for (upper, lower), pair in technology.parasitics.pairs.items():
        if lower in metals:
            distance = profiles[upper].bottom_um - profiles[lower].bottom_um - profiles[lower].thickness_um
            assert pair.area_af_um2 == pytest.approx(permittivity * VACUUM / distance, rel=0.1), (upper, lower)
    for conductor in technology.conductors:
        distance = profiles[conductor.name].bottom_um
        assert conductor.area_af_um2 == pytest.approx(permittivity * VACUUM / distance, rel=0.1), conductor.name
