"""Matched capacitors by ratio, plates in series and MOS capacitors: clean, what was asked for, and faults are found."""

import random
import sys
from itertools import combinations_with_replacement

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device
from layoutkit.draw import array_pattern as patterns
from layoutkit.draw.array_pattern import array_pattern
from layoutkit.draw.capacitor import CapacitorSpec
from layoutkit.draw.capacitor_array import draw_capacitor_array, matched_capacitors
from layoutkit.draw.generators import draw_plates
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.draw.mos_capacitor import draw_mos_capacitor, mos_capacitor
from layoutkit.draw.passive import capacitor
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError, TechnologyError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.lvs.lvs_result import extracted_spice
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import (
    MOST_IN_SERIES,
    PassiveSize,
    capacitance,
    capacitor_size,
    common_plates,
    integer_ratio,
    mos_capacitor_size,
)
from thorough import THOROUGH, processes

EVERY_MIM = [
    (name, flavour) for name in processes() for flavour, s in load(name).passives.items() if s.type == "capacitor"
]
RINGED = [each for each in EVERY_MIM if load(each[0]).passive(each[1]).fed]  # in a ring of its own each
MIM = [each for each in EVERY_MIM if each not in RINGED]
MOS = [
    (name, flavour) for name in processes() for flavour, s in load(name).passives.items() if s.type == "mos_capacitor"
]
SHAPES = [(7, 7, (2, 2)), (5, 12.5, (1, 2, 4)), (9, 6, (3, 5)), (6, 6, (1, 1)), (20, 5, (4, 6, 2, 1))]
ARRAYS = [
    (*device, *shape)
    for number, device in enumerate(MIM)
    for place, shape in enumerate(SHAPES)
    if THOROUGH or (place - 2 * number) % len(SHAPES) < 2  # two shapes of each device
]


def made_for(technology, flavour):
    """Return the process with the options of its masks that make a capacitor."""
    tech = load(technology)
    return tech.made_for([tech.passive(flavour).model])


@pytest.mark.parametrize(("technology", "flavour"), RINGED)
def test_no_array_is_drawn_where_each_has_a_ring(technology, flavour):
    with pytest.raises(TechnologyError, match="draw each capacitor by itself"):
        array_of(technology, flavour, 8, 8, (1, 1))


@pytest.mark.parametrize(("technology", "flavour"), RINGED)
def test_plates_with_a_ring_each_are_put_in_no_series(technology, flavour):
    tech = load(technology)
    with pytest.raises(GeometryError, match=f"plates of {flavour} are put in no series"):
        capacitor(tech, "C1", flavour, PassiveSize(7e-6, 7e-6, 1, series=2), {"p": "a", "n": "b"})


def array_of(technology, flavour, w_um, l_um, counts, dummy_net="vss"):
    """Return the technology, the capacitors and the module of an array of ``counts`` plates."""
    tech = made_for(technology, flavour)
    size = [PassiveSize(w_um * 1e-6, l_um * 1e-6, m) for m in counts]
    caps = [capacitor(tech, f"C{i}", flavour, each, {"p": f"t{i}", "n": f"b{i}"}) for i, each in enumerate(size)]
    spec, _ = matched_capacitors(tech, "X", caps, dummy_net=dummy_net)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    return tech, caps, draw_capacitor_array(layout, tech, spec)


def violated(tech, module):
    report = check(module.layout, module.cell, tech)
    assert not report.unchecked
    return [verdict.rule.id for verdict in report.violated]


def lvs_of(tech, module, caps, ports=()):
    unit = tech.dbu_um * 1e-6
    devices = tuple(
        Device(
            c.id,
            c.spec.type,
            c.spec.model,
            {"w": c.width * unit, "l": c.length * unit, "m": c.m, "series": getattr(c, "series", 1)},
            {"p": c.p, "n": c.n},
        )
        for c in caps
    )
    every = sorted({net for c in caps for net in (c.p, c.n)} | set(ports))
    return compare(extract(module.layout, module.cell, tech), Circuit("x", devices, tuple(every)))


@pytest.mark.parametrize(("technology", "flavour", "w_um", "l_um", "counts"), ARRAYS)
def test_arrays_are_clean_and_hold_the_ratio(technology, flavour, w_um, l_um, counts):
    tech, caps, module = array_of(technology, flavour, w_um, l_um, counts)
    assert violated(tech, module) == []
    result = lvs_of(tech, module, caps, ("vss",))
    assert result.matched, [mismatch.message for mismatch in result.mismatches]
    assert [sum(gate.device == cap.id for gate in module.gates) for cap in caps] == list(counts)
    # Centroids by hand, from the plates drawn: sums of corners are integers.
    sums = {
        tuple(
            sum(side) / m
            for side in zip(*[(g.box.left + g.box.right, g.box.bottom + g.box.top) for g in own], strict=True)
        )
        for cap, m in zip(caps, counts, strict=True)
        for own in [[gate for gate in module.gates if gate.device == cap.id]]
    }
    assert (len(sums) == 1) == (counts != (1, 1))
    assert any("no array of 1:1" in warning for warning in module.warnings) == (counts == (1, 1))
    assert len(result.extraction.dummies) == len(module.gates) - sum(counts) > 0


@pytest.mark.parametrize(("technology", "flavour"), MIM)
def test_a_row_without_dummies_keeps_wires_off_its_own_area_only(technology, flavour):
    """Beyond it may lie the pins of a neighbour, which wires then could not reach."""
    _, _, module = array_of(technology, flavour, 8, 8, (1, 1), dummy_net=None)
    kept = {keepout.layer: keepout.box for keepout in module.keepouts if not keepout.by_rule}
    assert all(box.inside(module.bbox) for box in kept.values())
    assert all(gate.box.inside(box) for box in kept.values() for gate in module.gates)


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_every_ratio_with_one_single_unit_at_most_has_one_centroid(devices):
    for counts in combinations_with_replacement(range(1, 8), devices):
        units = {f"C{i}": count for i, count in enumerate(counts)}
        pattern = array_pattern(units, 11.0, 13.0)
        flat = [device for row in pattern.rows for device in row if device]
        assert {device: flat.count(device) for device in units} == units
        assert (pattern.error < 1e-9) == (counts.count(1) <= 1), counts


def test_small_arrays_need_no_numpy_and_are_the_same_with_it(monkeypatch):
    """KLayout's window may have a Python without it; a PCell there draws what the flow draws."""
    asked = [{"A": 8, "B": 8}, {"A": 4, "B": 12, "C": 3}, {"A": 1, "B": 16}, {"A": 16, "B": 32, "C": 8}]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "numpy", None)
        plain = [array_pattern(units, 10.0, 13.0) for units in asked]
        with pytest.raises(GeometryError, match="need numpy"):
            array_pattern({"A": 64, "B": 64}, 10.0, 13.0)
    monkeypatch.setattr(patterns, "FEW_PAIRS", 0)
    assert [array_pattern(units, 10.0, 13.0) for units in asked] == plain


def test_large_arrays_spread_all_devices_alike():
    pattern = array_pattern({"A": 16, "B": 32, "C": 8}, 10, 10)
    assert pattern.error < 1e-9
    assert max(pattern.dispersion.values()) < 1.1 * min(pattern.dispersion.values())
    converter = array_pattern({"D": 1, **{f"C{bit}": 2**bit for bit in range(9)}}, 10, 10)
    large = [converter.dispersion[f"C{bit}"] for bit in range(3, 9)]
    assert max(large) < 1.1 * min(large)
    assert converter.error <= 10.0  # the two single units
    with pytest.raises(GeometryError, match="1 to 2048 units"):
        array_pattern({"A": 4000}, 10, 10)


@pytest.mark.parametrize(("technology", "flavour"), MIM)
def test_equal_units_have_equal_wires(technology, flavour):
    """Around every plate of a device everything is drawn alike, up to the cuts that join stubs to tracks."""
    tech, _, module = array_of(technology, flavour, 8, 8, (2, 4))
    spec = tech.passive(flavour)
    layers = [spec.parts["plate"], spec.parts["cut"], *(tech.conductor(spec.parts[p]).layer for p in ("bottom", "top"))]
    plates = [gate.box for gate in module.gates if gate.device]
    reach = min(abs(a.left - b.left) or 10**9 for a in plates for b in plates) // 2
    for layer in layers:
        drawn = kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, layer)))
        around = {
            str((drawn & kdb.Region(box.enlarged(reach - box.width() // 2, 0))).merged().moved(-box.left, -box.bottom))
            for box in plates
        }
        assert len(around) == 1, layer


def edited(module, tech, layer, change):
    """Redraw ``layer`` of a module with its boxes as ``change`` returns them."""
    shapes = module.cell.shapes(tech.layer(module.layout, layer))
    boxes = [change(shape.box) for shape in shapes.each()]
    shapes.clear()
    for box in boxes:
        if box is not None:
            shapes.insert(box)


def plate_of(module, device, number=0):
    return [gate.box for gate in module.gates if gate.device == device][number]


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
@pytest.mark.parametrize("fault", ["size", "missing", "floating dummy", "shorted dummy", "swapped"])
def test_planted_faults_are_found(technology, fault):
    tech, caps, module = array_of(technology, "capacitor", 8, 8, (2, 4))
    spec = tech.passive("capacitor")
    assert lvs_of(tech, module, caps, ("vss",)).matched
    victim, dummy = plate_of(module, "C1"), plate_of(module, "", 5)
    cut = tech.cuts[1].layer  # joins stubs to tracks
    if fault == "size":
        edited(module, tech, spec.parts["plate"], lambda box: box.enlarged(0, -500) if box == victim else box)
    elif fault == "missing":
        cuts = kdb.Box(victim.left, victim.bottom, victim.right, victim.top)
        edited(module, tech, spec.parts["cut"], lambda box: None if box.inside(cuts) else box)
    elif fault == "floating dummy":
        low = kdb.Box(dummy.left - 3000, 0, dummy.right + 4000, dummy.bottom)
        below = max((p.top for g in module.gates for p in [g.box] if p.top < dummy.bottom), default=0)
        low = kdb.Box(low.left, below, low.right, low.top)
        edited(module, tech, tech.cuts[1].layer, lambda box: None if box.inside(low) else box)
    elif fault == "shorted dummy":
        top = tech.conductor(spec.parts["top"]).layer
        module.cell.shapes(tech.layer(module.layout, top)).insert(dummy + plate_of(module, "C0") + victim)
    else:  # one terminal of a unit on the other capacitor's track
        pitch = _track_pitch(module)
        stub = min(
            (s.box for s in module.cell.shapes(tech.layer(module.layout, cut)).each()),
            key=lambda b: abs(b.left - victim.left),
        )
        column = kdb.Box(stub.left - 2000, 0, stub.right + 2000, module.bbox.top)
        edited(
            module,
            tech,
            cut,
            lambda box: box.moved(0, -pitch) if box.inside(column) and box.top < victim.bottom else box,
        )
    result = lvs_of(tech, module, caps, ("vss",))
    assert not result.matched
    assert result.mismatches


def _track_pitch(module):
    lows = sorted({pin.box.bottom for pin in module.pins})
    return lows[1] - lows[0]


@pytest.mark.parametrize(("technology", "flavour"), MIM)
@pytest.mark.parametrize("part", [0.7, 0.31, 0.14])
def test_a_value_below_the_smallest_plate_is_plates_in_series(technology, flavour, part):
    tech = made_for(technology, flavour)
    spec = tech.passive(flavour)
    side = tech.to_um(tech.snap_up(max(spec.min_w, spec.min_l, spec.min_area**0.5)))
    farad = part * capacitance(spec, side, side)
    size = capacitor_size(tech, spec, farad)
    assert 1 < size.series <= MOST_IN_SERIES
    device = capacitor(tech, "C1", flavour, size, {"p": "a", "n": "b"})
    assert device.farad(tech.dbu_um) == pytest.approx(farad, rel=6e-3)  # half a grid step on each side
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    module = draw_plates(layout, tech, CapacitorSpec("X", device))
    assert violated(tech, module) == []
    result = lvs_of(tech, module, [device])
    assert result.matched, [mismatch.message for mismatch in result.mismatches]
    assert {pin.net for pin in module.pins} == {"a", "b"}
    fewer = [Device("C1", "capacitor", spec.model, {"w": size.w_m, "l": size.l_m}, {"p": "a", "n": "b"})]
    assert not compare(result.extraction, Circuit("x", tuple(fewer), ("a", "b"))).matched


@pytest.mark.parametrize(("technology", "flavour"), MIM)
def test_values_that_no_plates_have_are_refused_with_what_is_possible(technology, flavour):
    tech = load(technology)
    spec = tech.passive(flavour)
    with pytest.raises(GeometryError, match=f"{MOST_IN_SERIES} of them in series"):
        capacitor_size(tech, spec, 1e-17)
    least = spec.min_w * tech.dbu_um * 1e-6
    with pytest.raises(GeometryError, match=r"plates of .* in series: state the value c"):
        capacitor(tech, "C1", flavour, PassiveSize(least * 0.6, least * 0.6))
    if spec.max_area is not None:
        with pytest.raises(GeometryError, match=r"plates of .* in parallel: state the value c"):
            capacitor(tech, "C1", flavour, PassiveSize(95e-6, 240e-6))


def test_integer_ratios_are_found_and_others_refused():
    assert integer_ratio([1e-12, 3e-12, 1.5e-12]) == [2, 6, 3]
    with pytest.raises(GeometryError, match=r"no ratio of integers.*nearest is 21:34"):
        integer_ratio([1e-12, 1.6180339887e-12])
    tech = load("sky130A")
    size, counts = common_plates(tech, tech.passive("capacitor"), [1e-12, 1e-12])
    assert counts == [2, 2]  # two single plates have no common centroid
    assert capacitance(tech.passive("capacitor"), size.w_m * 1e6, size.l_m * 1e6) == pytest.approx(5e-13, rel=2e-3)


def mos_capacitor_of(technology, flavour, size):
    tech = load(technology)
    device = mos_capacitor(tech, "C1", flavour, size, {"p": "g", "n": "w"})
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    return tech, device, draw_mos_capacitor(layout, tech, "X", device)


@pytest.mark.parametrize(("technology", "flavour"), MOS)
def test_mos_capacitors_are_clean_and_what_was_asked_for(technology, flavour):
    rng = random.Random(f"{technology} {flavour}")
    for _ in range(2):
        size = PassiveSize(rng.randint(200, 5000) * 5e-9, rng.randint(160, 1200) * 5e-9, rng.randint(1, 7))
        tech, _, module = mos_capacitor_of(technology, flavour, size)
        assert violated(tech, module) == [], size
        whole = Device(
            "C1", "mos_capacitor", flavour, {"w": size.w_m, "l": size.l_m, "m": size.m}, {"p": "g", "n": "w"}
        )
        found = extract(module.layout, module.cell, tech)
        assert compare(found, Circuit("x", (whole,), ("g", "w"))).matched, size
        swapped = Device("C1", "mos_capacitor", flavour, whole.params, {"p": "w", "n": "g"})
        assert not compare(found, Circuit("x", (swapped,), ("g", "w"))).matched
        area = sum(gate.box.area() for gate in module.gates) * tech.dbu_um**2
        assert area == pytest.approx(size.w_m * size.l_m * size.m * 1e12, rel=1e-3)
        assert max(gate.box.height() for gate in module.gates) * tech.dbu_um <= 10.0


def test_a_mos_capacitor_in_a_well_states_the_net_of_the_substrate():
    """sky130's varactors have three terminals; the taps of any transistor name the substrate below their wells."""
    size = PassiveSize(5e-6, 2e-6, 2)
    tech, _, module = mos_capacitor_of("sky130A", "cap_var_lvt", size)
    nets = dict(zip("dgsb", ("d", "x", "s", "ground"), strict=True))
    neighbour = draw_mos(module.layout, tech, MosSpec(transistor(tech, "M1", "nmos", MosSize(2e-6, 5e-7), nets), "N"))
    top = module.layout.create_cell("TOP")
    top.insert(kdb.CellInstArray(module.cell.cell_index(), kdb.Trans()))
    top.insert(kdb.CellInstArray(neighbour.cell.cell_index(), kdb.Trans(module.bbox.right + 10000, 0)))
    text = extracted_spice(extract(module.layout, top, tech))
    ends = {line.split()[0]: line.split()[1:6] for line in text.splitlines() if line[:1] == "X"}
    assert ends["XC1"][2] == ends["XM1"][3]
    assert "leaves open" not in text


@pytest.mark.parametrize(("technology", "flavour"), MOS)
def test_a_mos_capacitor_by_value_has_it_and_its_faults_are_found(technology, flavour):
    tech = load(technology)
    spec = tech.passive(flavour)
    size = mos_capacitor_size(tech, spec, 4e-13)
    tech, device, module = mos_capacitor_of(technology, flavour, size)
    assert device.farad(tech.dbu_um) == pytest.approx(4e-13, rel=2e-3)
    assert lvs_of(tech, module, [device]).matched
    gate, taps = module.gates[0].box, tech.contact.layer
    # Without the contacts beside a gate its diffusion is joined to the body by silicon alone, or by nothing.
    edited(
        module,
        tech,
        taps,
        lambda box: (
            None
            if box.bottom > gate.bottom
            and box.top < gate.top
            and box.right > gate.right
            and box.left - gate.right < 2000
            else box
        ),
    )
    result = lvs_of(tech, module, [device])
    assert spec.accumulates or not result.matched
    for marker in spec.markers:
        module.cell.clear(tech.layer(module.layout, marker))
        assert not lvs_of(tech, module, [device]).matched
