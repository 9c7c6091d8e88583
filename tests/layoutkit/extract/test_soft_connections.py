"""A net that a well or the substrate alone holds together is open, with a place for every piece."""

import klayout.db as kdb
import pytest
from transistor_sketch import Sketch

from layoutkit.circuit import Circuit, Device
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load

TECHNOLOGIES = ["generic", "sky130A", "gf180mcuD"]  # the sketch draws n implants, which sg13g2 has not


def inverter(technology, *, low="vss", high="vdd"):
    """An inverter whose sources are on the rails ``low`` and ``high``; its bulks are tied to vss and vdd."""
    sketch = Sketch(load(technology))
    for net in ("lost", "vss", "in", "out", "vdd"):
        sketch.rail(net)
    sketch.mos("nmos", 1000, 500, f"out in {low} vss")
    sketch.mos("pmos", 2000, 500, f"out in {high} vdd")
    return sketch.label_rails("in", "out", "vss", "vdd")


def circuit(technology, length=500):
    process = load(technology)
    cards = (("M1", "nmos", 1000, "out in vss vss"), ("M2", "pmos", 2000, "out in vdd vdd"))
    devices = tuple(
        Device(
            name,
            kind,
            process.device(kind).name,
            {"w": w * 1e-9, "l": length * 1e-9},
            dict(zip("dgsb", nets.split(), strict=True)),
        )
        for name, kind, w, nets in cards
    )
    return Circuit("inverter", devices, ("in", "out", "vss", "vdd"))


def tap_in_the_body(sketch):
    """Tie the rail "lost" to the body of the nmos: the substrate, or its p well where the process draws one."""
    sketch.tap("nmos", "lost", -3000)
    if sketch.technology.device("nmos").well is not None:
        sketch.box(sketch.technology.device("nmos").well, -4000, -1000, 1000, 2000)


def judged(sketch):
    return compare(extract(sketch.layout, sketch.cell, sketch.technology), circuit(sketch.technology.name))


def bridge(sketch, one, other):
    """Join two neighbouring rails by a piece of metal 3."""
    low, high = sorted((sketch.rail(one), sketch.rail(other)))
    sketch.box(sketch.metal[2], -5000, low - 300, -4800, high)


technologies = pytest.mark.parametrize("technology", TECHNOLOGIES)


@technologies
def test_metal_from_the_sources_to_the_taps_matches(technology):
    assert judged(inverter(technology)).matched


@technologies
def test_a_source_that_reaches_its_rail_only_through_the_substrate_is_open(technology):
    sketch = inverter(technology, low="lost")
    tap_in_the_body(sketch)
    result = judged(sketch)
    assert not result.matched
    (found,) = result.mismatches
    assert (found.kind, found.reference) == ("open", ("vss",))
    assert "nothing but a well or the substrate joins 2 pieces" in found.message
    (label, place), (tap, there) = found.layout
    assert label == "vss"
    assert place.x == -4.0
    assert tap == "p+ tap"
    assert abs(there.x + 3.0) < 0.5
    assert abs(there.y) < 0.5


@technologies
def test_a_source_that_reaches_its_rail_only_through_the_well_is_open(technology):
    sketch = inverter(technology, high="lost")
    well = sketch.technology.device("pmos").well
    right = sketch.next_x
    sketch.box(well, right - 8000, -1000, right + 3000, 3000)
    sketch.tap("pmos", "lost", right + 1000)
    (found,) = judged(sketch).mismatches
    assert (found.kind, found.reference) == ("open", ("vdd",))
    assert "n+ tap" in found.message


@technologies
def test_the_missing_wire_mends_it(technology):
    sketch = inverter(technology, low="lost")
    tap_in_the_body(sketch)
    bridge(sketch, "lost", "vss")
    assert judged(sketch).matched


def test_a_source_that_abuts_a_tap_without_contact_needs_a_wire_to_the_rest_of_the_net():
    """Silicide joins source and tap, the substrate that tap and the net's other one."""
    sketch = inverter("sky130A", low="-")
    sketch.box("tap", -300, 0, 0, 1000)
    sketch.box(sketch.technology.device("nmos").bulk_implant, -500, -200, 0, 1200)
    implant = sketch.cell.shapes(sketch.technology.layer(sketch.layout, sketch.technology.device("nmos").implant))
    region = kdb.Region(implant) - kdb.Region(kdb.Box(-500, -200, 0, 1200))
    implant.clear()
    implant.insert(region)
    assert [found.kind for found in judged(sketch).mismatches] == ["open"]


@technologies
@pytest.mark.parametrize("kind", ["nmos", "pmos"])
def test_silicide_joins_a_source_to_the_contacted_tap_that_it_abuts(technology, kind):
    """The source has no wire: only the tap beside it is contacted and wired to the supply."""
    low, high = ("-", "vdd") if kind == "nmos" else ("vss", "-")
    sketch = inverter(technology, low=low, high=high)
    spec = sketch.technology.device(kind)
    left, width, net = (0, 1000, "vss") if kind == "nmos" else (6500, 2000, "vdd")
    sketch.box("tap", left - 400, 0, left, width)
    sketch.box(spec.bulk_implant, left - 600, -200, left, width + 200)
    implant = sketch.cell.shapes(sketch.technology.layer(sketch.layout, spec.implant))
    rest = kdb.Region(implant) - kdb.Region(kdb.Box(left - 600, -200, left, width + 200))
    implant.clear()
    implant.insert(rest)
    sketch.join(net, left - 200, width // 2)
    if spec.well is not None:
        sketch.box(spec.well, left - 700, -1000, left, width + 1000)
    result = judged(sketch)
    assert result.matched, [mismatch.message for mismatch in result.mismatches]


def test_a_bare_tap_without_contact_is_left_out():
    sketch = inverter("sky130A")
    sketch.square("tap", -3000, 0, 300)
    sketch.square(sketch.technology.device("nmos").bulk_implant, -3000, 0, 400)
    assert judged(sketch).matched


def test_a_guard_ring_with_contacts_that_no_wire_reaches_is_open():
    sketch = inverter("sky130A")
    sketch.tap("nmos", None, -3000)
    assert [found.kind for found in judged(sketch).mismatches] == ["open"]


def test_rings_of_one_net_that_metal_joins_match():
    sketch = inverter("sky130A")
    for x in (-3000, -6000, -9000):
        sketch.tap("nmos", "vss", x)
    sketch.box(sketch.metal[2], -12_000, sketch.rail("vss") - 300, -5000, sketch.rail("vss"))
    assert judged(sketch).matched


def test_a_well_between_two_named_nets_is_a_short_not_an_open():
    sketch = inverter("sky130A")
    right = sketch.next_x
    sketch.box(sketch.technology.device("pmos").well, right - 8000, -1000, right + 3000, 3000)
    sketch.tap("pmos", "in", right + 1000)
    found = [mismatch for mismatch in judged(sketch).mismatches if mismatch.kind in {"open", "short"}]
    assert [mismatch.kind for mismatch in found] == ["short"]


def test_a_cell_without_taps_has_no_soft_connections():
    sketch = Sketch(load("sky130A"))
    sketch.mos("nmos", 1000, 500, "out in vss -")
    assert extract(sketch.layout, sketch.cell, sketch.technology).soft_connections == ()
    empty = kdb.Layout()
    assert extract(empty, empty.create_cell("E"), sketch.technology).soft_connections == ()
