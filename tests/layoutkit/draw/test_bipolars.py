"""Vertical bipolar transistors: patterns by arithmetic, drawn clean, found again, and planted errors that LVS finds."""

from collections import Counter

import klayout.db as kdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device
from layoutkit.draw.bipolar import BipolarSpec, as_text, bipolar, common_centroid, draw_bipolars, drawn_as
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize
from thorough import THOROUGH, processes

FLAVOURS = [(name, spec.name) for name in processes() for spec in load(name).passives.values() if spec.type == "pnp"]
SMALL = {"sky130A": "pnp_05v5_W0p68L0p68", "gf180mcuD": "pnp_05p00x00p42", "sg13g2": "pnpMPA"}


def sides(technology, flavour):
    """Return width and length of the emitter. [um]"""
    spec = load(technology).passive(flavour)
    return tuple(round(side * 1e-3, 3) for side in (spec.only_size or spec.usual_size))


def drawn(technology, flavour, counts, *, bases=(), dummies=1, size=None, pattern=()):
    """Return the technology, the module and its netlist: transistors on one collector, of these units and bases."""
    tech = load(technology)
    w, l_ = size or sides(technology, flavour)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    nets = [{"c": "sub", "b": bases[index] if bases else "sub", "e": f"e{index}"} for index, _ in enumerate(counts)]
    transistors = tuple(
        bipolar(tech, f"Q{index}", flavour, PassiveSize(w * 1e-6, l_ * 1e-6, count), nets[index])
        for index, count in enumerate(counts)
    )
    module = draw_bipolars(layout, tech, BipolarSpec("X", transistors, dummies, tuple(pattern)))
    devices = tuple(
        Device(f"Q{index}", "pnp", flavour, {"w": w * 1e-6, "l": l_ * 1e-6, "m": count}, nets[index])
        for index, count in enumerate(counts)
    )
    ports = tuple(dict.fromkeys(net for each in nets for net in each.values()))
    return tech, module, Circuit("x", devices, ports)


def judged(tech, module, netlist):
    return compare(extract(module.layout, module.cell, tech), netlist)


def assert_clean(tech, module, netlist):
    report = check(module.layout, module.cell, tech)
    assert (report.complete, [verdict.rule.id for verdict in report.violated]) == (True, [])
    result = judged(tech, module, netlist)
    assert [mismatch.message for mismatch in result.mismatches] == []
    assert (result.matched, result.complete) == (True, True)
    return result


def centres(rows):
    """Return the centre of the places of each transistor."""
    places = {}
    for y, row in enumerate(rows):
        for x, index in enumerate(row):
            if index is not None:
                places.setdefault(index, []).append((x, y))
    return {
        index: tuple(sum(place[axis] for place in found) / len(found) for axis in (0, 1))
        for index, found in places.items()
    }


@settings(deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=4))
@example([1, 3, 3, 3])  # three triples and their opposite places need room
def test_every_ratio_is_arranged_and_exact_where_at_most_one_transistor_has_one_unit(counts):
    rows = common_centroid(counts)
    assert Counter(index for row in rows for index in row if index is not None) == dict(enumerate(counts))
    assert len(rows) * len(rows[0]) <= max(2 * sum(counts), 9)
    assert drawn_as(as_text(rows), counts) == rows
    found = {tuple(round(value, 6) for value in centre) for centre in centres(rows).values()}
    odd = sum(count % 2 for count in counts)
    if odd <= 1 or (odd <= 3 and counts.count(1) <= 1 and sum(counts) >= 9):
        assert len(found) == 1
    if counts.count(1) > 1:
        assert len(found) > 1


def test_a_bandgap_pair_has_its_single_unit_in_the_middle():
    assert as_text(common_centroid([1, 8])) == ["BBB", "BAB", "BBB"]
    assert as_text(common_centroid([1, 24]))[2] == "BBABB"
    assert centres(common_centroid([1, 3])) == {0: (1, 1), 1: (1, 1)}


@pytest.mark.parametrize("pattern", [["AB"], ["AB", "B"], ["ABC"], ["AAB"], []])
def test_a_pattern_of_other_units_is_refused(pattern):
    with pytest.raises(GeometryError, match="1 x A, 2 x B"):
        drawn_as(pattern, [1, 2])


@pytest.mark.parametrize(("technology", "flavour"), FLAVOURS)
def test_every_flavour_is_clean_as_a_pair_around_one_centroid(technology, flavour):
    """One to eight for the smallest flavour of each process, one to two for the others."""
    ratio, dummies = (8, 25 - 9) if THOROUGH or flavour in SMALL.values() else (2, 5 * 3 - 3)
    tech, module, netlist = drawn(technology, flavour, [1, ratio])
    result = assert_clean(tech, module, netlist)
    assert module.centroid_error() == 0
    assert len(result.extraction.dummies) == dummies
    w, l_ = sorted(sides(technology, flavour))
    areas = {device.id: device.w_um * device.l_um for device in result.extraction.devices}
    assert areas == {"Q0": pytest.approx(w * l_), "Q1": pytest.approx(ratio * w * l_)}


@pytest.mark.parametrize("technology", sorted(SMALL) if THOROUGH else ["gf180mcuD", "sky130A"])
@pytest.mark.parametrize(
    ("counts", "bases", "dummies"),
    [([1], (), 0), ([2, 1], ("vb", "vb"), 1), ([1, 1, 2], ("b0", "b1", "b2"), 0)],
)
def test_other_ratios_and_bases_are_clean(technology, counts, bases, dummies):
    tech, module, netlist = drawn(technology, SMALL[technology], counts, bases=bases, dummies=dummies)
    assert_clean(tech, module, netlist)


@pytest.mark.parametrize("size", [(0.3, 0.68), (0.71, 1.0), (2.0, 5.0), (8.88, 9.91)])
def test_emitters_of_other_sizes_are_clean_where_the_process_has_them(size):
    assert_clean(*drawn("sg13g2", "pnpMPA", [2], size=size, dummies=0))


def test_a_size_that_the_process_lacks_is_refused():
    with pytest.raises(GeometryError, match="above maximum"):
        drawn("sky130A", "pnp_05v5_W0p68L0p68", [1], size=(1.0, 1.0))
    with pytest.raises(GeometryError, match="above maximum"):
        drawn("sg13g2", "pnpMPA", [1], size=(10.5, 12.0))


def test_all_of_a_wide_base_ring_is_near_its_contacts():
    tech, module, _ = drawn("sg13g2", "pnpMPA", [1], size=(8.88, 9.91), dummies=0)
    emitter, layer = module.gates[0].box, tech.region
    ring = layer(module.cell, "Activ").merged().inside(layer(module.cell, "NWell")) - kdb.Region(emitter)
    contacts = layer(module.cell, "Cont") & ring
    assert (ring - contacts.sized(tech.to_dbu(6.0))).is_empty()
    change(module, tech, "Cont", contacts.inside(kdb.Region(emitter.enlarged(2300, 2300))))  # those of the emitter stay
    failed = {v.rule.id for v in check(module.layout, module.cell, tech).verdicts if v.status == "failed"}
    assert "LU.d" in failed


@pytest.mark.parametrize("turn", range(4))
def test_an_emitter_that_is_wider_than_long_is_read_in_any_direction(turn):
    tech, layout = load("sg13g2"), kdb.Layout()
    layout.dbu, cell = tech.dbu_um, layout.create_cell("TOP")

    def frame(name, x, y, inner=None):  # half of the sides of the foundry's cell at w = 4, l = 2.5 um
        hole = kdb.Region(kdb.Box(-inner[0], -inner[1], *inner)) if inner else kdb.Region()
        cell.shapes(tech.layer(layout, name)).insert(kdb.Region(kdb.Box(-x, -y, x, y)) - hole)

    frame("Activ", 2000, 1250)
    frame("pSD", 2210, 1430)
    frame("Activ", 4390, 1900, (2390, 1610))
    frame("nBuLay", 4440, 1950)
    frame("NWell", 4700, 2210)
    frame("pSD", 5950, 3460, (5200, 2710))
    frame("Activ", 5750, 3260, (5400, 2910))
    for x in (-80, -5650, -3500):
        cell.shapes(tech.layer(layout, "Cont")).insert(kdb.Box(x, -80, x + 160, 80))
    cell.transform(kdb.Trans(turn, False, 0, 0))
    found = extract(layout, cell, tech)
    assert [each.device for each in (*found.devices, *found.dummies)] == ["pnpMPA"]


@pytest.mark.parametrize("technology", sorted(SMALL))
def test_collector_rings_stay_apart_so_that_foundry_decks_tell_units_apart(technology):
    tech, module, _ = drawn(technology, SMALL[technology], [1, 8])
    layer = module.layout.find_layer(*tech.spec("tap").gds)
    taps = kdb.Region(module.cell.begin_shapes_rec(layer)).merged()
    rings = [polygon for polygon in taps.each() if polygon.holes()]
    outer = [
        ring for ring in rings if not any(other.bbox().enlarged(-1, -1).contains(ring.bbox().p1) for other in rings)
    ]
    assert len(outer) == 25  # one per unit
    assert not kdb.Region([ring.bbox() for ring in outer]).merged().count() < 25


def change(module, tech, layer, box, *, draw=False):
    """Add ``box`` [dbu] to a layer or erase it there."""
    shapes = module.cell.shapes(tech.layer(module.layout, layer))
    region = kdb.Region(shapes)
    shapes.clear()
    area = box if isinstance(box, kdb.Region) else kdb.Region(box)
    shapes.insert(region + area if draw else region - area)


def a_unit(module, device):
    return next(gate.box for gate in module.gates if gate.device == device)


def wrong_emitter(tech, module):
    box = a_unit(module, "Q1")
    change(module, tech, "active", kdb.Box(box.left, box.top, box.right, box.top + 20), draw=True)


def no_marker(tech, module):
    for marker in tech.passive(SMALL[tech.name]).markers:
        change(module, tech, marker, a_unit(module, "Q1").enlarged(1000, 1000))


def open_base(tech, module):
    box = a_unit(module, "Q1")
    change(module, tech, tech.contact.layer, kdb.Region(box.enlarged(750, 750)) - kdb.Region(box.enlarged(100, 100)))


def untied_collector(tech, module):
    box = a_unit(module, "Q1")
    ring = kdb.Region(box.enlarged(2200, 2200)) - kdb.Region(box.enlarged(900, 900))
    change(module, tech, tech.contact.layer, ring)


def unit_missing(tech, module):
    change(module, tech, "active", a_unit(module, "Q1"))


def open_emitter(tech, module):
    change(module, tech, tech.cuts[0].layer, a_unit(module, "Q1"))


def collector_ring_cut(tech, module):
    box = a_unit(module, "Q1")
    change(module, tech, "tap", kdb.Box(box.left + 100, box.top + 900, box.left + 300, box.top + 2200))


@pytest.mark.parametrize("technology", sorted(SMALL))
@pytest.mark.parametrize(
    "plant",
    [wrong_emitter, no_marker, open_base, untied_collector, unit_missing, open_emitter, collector_ring_cut],
    ids=lambda plant: plant.__name__,
)
def test_planted_errors_are_found(technology, plant):
    tech, module, netlist = drawn(technology, SMALL[technology], [1, 2], dummies=0)
    assert judged(tech, module, netlist).matched
    plant(tech, module)
    result = judged(tech, module, netlist)
    assert not result.matched
    assert any("Q1" in mismatch.message or "bipolar" in mismatch.message for mismatch in result.mismatches)


def test_a_netlist_of_another_ratio_does_not_match():
    tech, module, _ = drawn("sky130A", SMALL["sky130A"], [1, 8])
    _, _, other = drawn("sky130A", SMALL["sky130A"], [1, 7])
    (mismatch,) = judged(tech, module, other).mismatches
    assert "8 parts" in mismatch.message
    assert "m = 7" in mismatch.message
