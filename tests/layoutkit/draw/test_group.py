"""Matched groups of any ratio, in one row or folded (S0.5, S0.6; design: engine's idea 2)."""

import klayout.db as kdb
import pytest

from layoutkit.draw.group import GroupSpec, draw_group
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError
from layoutkit.technology import load
from thorough import processes


def group(technology, fingers, arrangement):
    """Return the module of a mirror whose devices M1, M2, ... have the given finger counts."""
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    devices = tuple(
        transistor(
            technology,
            f"M{i}",
            "nmos",
            MosSize(count * 1e-6, 0.5e-6, count),
            {"d": "ref" if i == 1 else f"out{i}", "g": "ref", "s": "vss", "b": "vss"},
        )
        for i, count in enumerate(fingers, start=1)
    )
    return draw_group(layout, technology, GroupSpec("group", devices, arrangement, dummies=0))


@pytest.mark.parametrize("name", ["generic", "sky130A"])
@pytest.mark.parametrize(
    ("fingers", "arrangement"),
    [
        ((4, 8, 12), "ABBCCC/CCCBBA"),
        ((2, 2, 6), "CABCC/CCBAC"),
        ((8, 4, 16, 4), "AC/BC/CD/AC/CA/DC/CB/CA"),
        ((6, 6), "ABBA"),
    ],
)
def test_a_folded_group_is_clean_and_its_centroids_coincide_in_both_directions(name, fingers, arrangement):
    technology = load(name)
    rows = arrangement.count("/") + 1
    module = group(technology, fingers, arrangement)
    report = check(module.layout, module.cell, technology)
    assert report.passed, [(v.rule.id, v.count) for v in report.violated]
    assert module.centroid_error() == 0
    assert len({gate.box.bottom for gate in module.gates}) == rows
    for i, count in enumerate(fingers, start=1):
        assert sum(gate.device == f"M{i}" for gate in module.gates) == count


def test_fingers_that_do_not_divide_into_the_units_are_refused_by_name():
    with pytest.raises(GeometryError, match=r"M1 has 3 fingers for 8 units, M2 has 4 .*Possible here: [A-C/]+"):
        group(load("sky130A"), (3, 4, 5), "A4B8A4/C5")


@pytest.mark.parametrize("name", processes())
@pytest.mark.parametrize("flavour", ["nmos", "pmos"])
@pytest.mark.parametrize("length_m", [0.5e-6, 8e-6])
def test_a_gate_tied_to_its_ring_keeps_its_contact_clear_of_the_rings_contacts(name, flavour, length_m):
    technology = load(name)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    nets = {"d": "out", "g": "rail", "s": "rail", "b": "rail"}
    device = transistor(technology, "M1", flavour, MosSize(1e-6, length_m, 1), nets)
    module = draw_mos(layout, technology, MosSpec(device, "off"))
    report = check(layout, module.cell, technology)
    assert report.passed, [(v.rule.id, v.count) for v in report.violated]
