"""Resistors and capacitors over a grid of sizes: clean by every rule, and the device that was asked for."""

from itertools import pairwise

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device
from layoutkit.draw.capacitor import CapacitorSpec, draw_capacitor
from layoutkit.draw.generators import draw_plates
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize, capacitance, capacitor_size, resistor_size
from thorough import covering, processes

KINDS = {}
for technology in processes():
    for flavour, entry in load(technology).passives.items():
        KINDS.setdefault(entry.type, []).append((technology, flavour))


def drawn(technology, draw):
    tech = load(technology)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    return tech, draw(layout, tech)


def violated(tech, module):
    report = check(module.layout, module.cell, tech)
    assert not report.unchecked
    return [verdict.rule.id for verdict in report.violated]


def matched(tech, module, devices, ports):
    made = tech.made_for(device.model for device in devices)
    return compare(extract(module.layout, module.cell, made), Circuit("x", tuple(devices), ports))


@pytest.mark.parametrize(
    ("kind", "factor", "shape"),  # length of the string [um], bars in series, strings in parallel, dummies, ring
    covering(
        KINDS["resistor"],
        [1, 3.7],
        [(2, 1, 1, 0, True), (2, 1, 1, 0, False), (20, 4, 2, 1, True), (23, 3, 1, 2, True), (50, None, 1, 0, False)],
    ),
)
def test_resistors_are_clean_and_what_was_asked_for(kind, factor, shape):
    technology, flavour = kind
    length_um, segments, m, dummies, ring = shape
    tech = load(technology)
    spec = tech.passive(flavour)
    ring = (ring or spec.diffusion_of is not None) and not spec.conductor
    dummies = 0 if spec.conductor else dummies
    width = (
        spec.widths[-2 if factor > 1 else 0] if spec.widths else tech.snap(min(spec.min_w * factor, spec.max_w or 1e9))
    )
    length_um = max(length_um, (segments or 1) * tech.to_um(spec.min_l))
    size = PassiveSize(width * tech.dbu_um * 1e-6, length_um * 1e-6, m, segments)
    nets = {"p": "a", "n": "c"}
    device = resistor(tech, "R1", flavour, size, nets)
    tech, module = drawn(
        technology,
        lambda layout, tech: draw_resistors(layout, tech, ResistorSpec("X", (device,), "b", dummies, ring=ring)),
    )
    assert violated(tech, module) == []
    bulk = {"b": "b"} if ring and spec.terminals > 2 else {}
    asked = Device("R1", "resistor", spec.model_of(size.w_m * 1e6), {"w": size.w_m, "l": size.l_m, "m": m}, nets | bulk)
    result = matched(tech, module, [asked], ("a", "c", "b") if ring else ("a", "c"))
    assert [mismatch.message for mismatch in result.mismatches] == []
    assert result.matched
    # A technology whose resistors need no substrate contact still draws the ring, whose net meets no device.
    assert len(result.extraction.dummies) == 2 * dummies


MARKED = {  # the marker, and the layers that block silicide, whose common area with the body it is
    "gf180mcuD": ("RES_MK", ("SAB",)),
    "sg13g2": ("PolyRes", ("SalBlock", "RES")),
}
SLOTS = {0.35: 1, 0.69: 1, 1.41: 2, 2.85: 4, 5.73: 8}  # rpm.1g to rpm.1k


def bank_of(technology, flavour, width, shape=(20, 2, 2, 1)):
    """Return a technology and a bank of ``shape``: length of the string [um], bars in series, strings, dummies."""
    length_um, segments, m, dummies = shape
    tech = load(technology)
    size = PassiveSize(width * tech.dbu_um * 1e-6, length_um * 1e-6, m, segments)
    device = resistor(tech, "R1", flavour, size, {"p": "a", "n": "c"})
    return drawn(
        technology, lambda layout, tech: draw_resistors(layout, tech, ResistorSpec("X", (device,), "b", dummies))
    )


def shapes_of(tech, module, layer):
    return kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, layer))).merged()


@pytest.mark.parametrize(
    ("technology", "flavour"),
    [(name, f) for name, f in KINDS["resistor"] if name in MARKED and load(name).passive(f).core_markers],
)
@pytest.mark.parametrize("factor", [1, 4.2])
def test_the_marker_is_exactly_the_blocked_body(technology, flavour, factor):
    spec = load(technology).passive(flavour)
    tech, module = bank_of(technology, flavour, load(technology).snap(spec.min_w * factor))
    marker, blocks = MARKED[technology]
    blocked = kdb.Region()
    for block in blocks:
        blocked += shapes_of(tech, module, block)
    for head in spec.heads:  # over which the block reaches
        blocked -= shapes_of(tech, module, head)
    assert not blocked.is_empty()
    assert (shapes_of(tech, module, marker) ^ (blocked & shapes_of(tech, module, spec.parts["body"]))).is_empty()


@pytest.mark.parametrize("flavour", ["res_high_po", "res_xhigh_po"])
@pytest.mark.parametrize("width_um", SLOTS)
def test_heads_of_sky130_have_their_slots_and_the_slots_their_distances(flavour, width_um):
    tech, module = bank_of("sky130A", flavour, round(width_um * 1000))
    heads = (shapes_of(tech, module, "poly") - shapes_of(tech, module, "poly.resistor")).merged()
    slots = shapes_of(tech, module, "licon1") & shapes_of(tech, module, "rpm" if flavour == "res_high_po" else "urpm")
    assert heads.count() == 2 * 6
    for head in heads.each():
        own = sorted(box.bbox().left for box in (slots & kdb.Region(head)).each())
        assert len(own) == SLOTS[width_um]
        assert all(right - left >= 190 + 510 for left, right in pairwise(own))
        assert own[0] - head.bbox().left == head.bbox().right - (own[-1] + 190)  # centred
    assert violated(tech, module) == []


@pytest.mark.parametrize(("factor", "shape"), [(2.6, (50, 4, 1, 0)), (1, (60, 3, 4, 0)), (6.3, (50, 2, 2, 0))])
def test_nothing_stands_nearer_to_a_long_closed_ring_than_the_deck_of_gf180_allows(factor, shape):
    """M1.2b as the shipped deck reads it: Metal1 without an edge of up to 10 um counts as wide and keeps 0.3 um."""
    spec = load("gf180mcuD").passive("ppolyf_u")
    tech, module = bank_of("gf180mcuD", "ppolyf_u", load("gf180mcuD").snap(spec.min_w * factor), shape)
    metal = shapes_of(tech, module, "Metal1")
    ring = metal.not_interacting(metal.edges().with_length(0, 10_005, False))
    assert ring.count() == 1
    assert metal.separation_check(ring, 300).count() == 0


@pytest.mark.parametrize(("technology", "flavour"), KINDS["capacitor"])
@pytest.mark.parametrize(
    ("w", "length", "m", "columns"), [(1, 1, 1, None), (1.7, 1, 4, None), (3, 2, 3, 1), (4, 4, 2, 2)]
)
def test_capacitors_are_clean_and_what_was_asked_for(technology, flavour, w, length, m, columns):
    tech = load(technology)
    spec = tech.passive(flavour)
    least = tech.snap_up(max(spec.min_w, spec.min_l, spec.min_area**0.5))
    nets = {"p": "a", "n": "b", "b": "c"} if spec.fed else {"p": "a", "n": "b"}
    unit = tech.dbu_um * 1e-6
    size = PassiveSize(tech.snap(least * w) * unit, tech.snap(least * length) * unit, m)
    device = capacitor(tech, "C1", flavour, size, nets)
    tech, module = drawn(
        technology, lambda layout, tech: draw_plates(layout, tech, CapacitorSpec("X", device, columns))
    )
    assert violated(tech, module) == []
    asked = Device("C1", "capacitor", spec.model, {"w": size.w_m, "l": size.l_m, "m": m}, nets)
    assert matched(tech, module, [asked], tuple(nets.values())).matched


@pytest.mark.parametrize(
    "wrong", [{}, {"w": 12e-6, "l": 8e-6}, {"wfeed": 4e-6}, "no marker", "two sides", "marker alone"]
)
def test_a_plate_with_feeds_is_compared_with_its_direction_and_their_width(wrong):
    asked = {"w": 8e-6, "l": 12e-6, "wfeed": 5e-6, "m": 1}
    nets = {"p": "a", "n": "b", "b": "c"}
    tech, spec = load("sg13g2"), load("sg13g2").passive("cap_rfcmim")
    device = capacitor(tech, "C1", spec.name, PassiveSize(8e-6, 12e-6, 1, feed_m=5e-6), nets)
    tech, module = drawn("sg13g2", lambda layout, tech: draw_plates(layout, tech, CapacitorSpec("X", device)))
    area, (plate,) = module.cell.bbox(), (gate.box for gate in module.gates)
    if wrong == "no marker":
        module.cell.shapes(tech.layer(module.layout, "PWell.block")).clear()
    elif wrong == "marker alone":
        box = kdb.Box(area.right + 5000, 0, area.right + 6000, 1000)
        module.cell.shapes(tech.layer(module.layout, "PWell.block")).insert(box)
    elif wrong == "two sides":
        middle = plate.center()
        box = kdb.Box(middle.x - 500, middle.y, middle.x + 500, plate.top + 3500)
        module.cell.shapes(tech.layer(module.layout, "Metal5")).insert(box)
    netlist = {**asked, **(wrong if isinstance(wrong, dict) else {})}
    result = matched(tech, module, [Device("C1", "capacitor", spec.model, netlist, nets)], tuple(nets.values()))
    assert result.matched == (not wrong)


@pytest.mark.parametrize(("feed_um", "bounds"), [(1.63, "1.64 to 6.8"), (6.805, "1.64 to 6.8"), (6.8, "")])
def test_the_feeds_of_a_plate_have_bounds(feed_um, bounds):
    size = PassiveSize(8e-6, 12e-6, 1, feed_m=feed_um * 1e-6)
    if not bounds:
        assert capacitor(load("sg13g2"), "C1", "cap_rfcmim", size).feed == 6800
        return
    with pytest.raises(GeometryError, match=f"feeds of C1 are {feed_um:g} um wide; allowed are {bounds} um"):
        capacitor(load("sg13g2"), "C1", "cap_rfcmim", size)


@pytest.mark.parametrize(("count", "own"), [(4, 1), (5, 5)])
def test_plates_that_are_too_large_for_one_bottom_plate_have_their_own(count, own):
    """MIMTM.11 of gf180mcuD: all plates on one bottom plate have 10,000 um2 at most; each has 2,500 um2 here."""
    device = capacitor(load("gf180mcuD"), "C1", "capacitor", PassiveSize(50e-6, 50e-6, count), {"p": "a", "n": "b"})
    tech, module = drawn("gf180mcuD", lambda layout, tech: draw_plates(layout, tech, CapacitorSpec("X", device)))
    bottoms = shapes_of(tech, module, "Metal4").interacting(shapes_of(tech, module, "FuseTop"))
    assert bottoms.count() >= own
    assert violated(tech, module) == []
    size = {"w": 50e-6, "l": 50e-6}
    dummies = [
        Device(f"D{i}", "capacitor", device.spec.model, size, {"p": "b", "n": "b"}) for i in range(len(module.dummies))
    ]
    asked = Device("C1", "capacitor", device.spec.model, {**size, "m": count}, {"p": "a", "n": "b"})
    assert matched(tech, module, [asked, *dummies], ("a", "b")).matched


@pytest.mark.parametrize(("technology", "flavour"), KINDS["resistor"])
def test_matched_resistors_share_a_centre_and_keep_their_own_nets(technology, flavour):
    tech = load(technology)
    spec = tech.passive(flavour)
    width = (spec.widths or (spec.min_w,))[0] * tech.dbu_um * 1e-6
    length = max(20e-6, 2 * spec.min_l * tech.dbu_um * 1e-6)
    pair = [
        resistor(tech, name, flavour, PassiveSize(width, length, 1, 2), {"p": f"{name}p", "n": f"{name}n"})
        for name in ("R1", "R2")
    ]
    tech, module = drawn(
        technology, lambda layout, tech: draw_resistors(layout, tech, ResistorSpec("X", tuple(pair), "b", 1))
    )
    # The terminals of metal resistors are on the metal itself, on both sides of each, so that they lie side by side.
    assert spec.conductor or module.centroid_error() == 0
    order = ["R1", "R1", "R2", "R2"] if spec.conductor else ["R1", "R2", "R2", "R1"]
    assert [instance.parent for instance in module.instances] == order
    assert violated(tech, module) == []
    devices = [Device(r.id, "resistor", flavour, {"w": width, "l": length}, {"p": r.p, "n": r.n}) for r in pair]
    ports = ("R1p", "R1n", "R2p", "R2n")
    result = matched(tech, module, devices, ports if spec.conductor else (*ports, "b"))
    assert result.matched, [m.message for m in result.mismatches]


@pytest.mark.parametrize(("technology", "flavour"), KINDS["resistor"])
@pytest.mark.parametrize("ohm", [20.0, 1234.0, 56_000.0])
def test_a_resistance_becomes_the_size_that_has_it(technology, flavour, ohm):
    tech = load(technology)
    spec = tech.passive(flavour)
    size = resistor_size(tech, spec, ohm)
    squares = size.l_m / size.w_m / size.m
    assert squares * spec.value == pytest.approx(ohm, rel=tech.grid / spec.min_l)
    assert size.l_m >= spec.min_l * tech.dbu_um * 1e-6 * (1 - 1e-9)


@pytest.mark.parametrize(("technology", "flavour"), KINDS["capacitor"])
@pytest.mark.parametrize("farad", [1e-13, 1e-12, 5e-11])
def test_a_capacitance_becomes_the_plates_that_have_it(technology, flavour, farad):
    tech = load(technology)
    spec = tech.passive(flavour)
    size = capacitor_size(tech, spec, farad)
    by_hand = spec.value * (size.w_m * 1e6) * (size.l_m * 1e6) + spec.edge_value * 2e6 * (size.w_m + size.l_m)
    assert capacitance(spec, size.w_m * 1e6, size.l_m * 1e6) == pytest.approx(by_hand)
    assert by_hand * size.m == pytest.approx(farad, rel=2e-3)
    if spec.max_area is not None:
        assert (size.w_m * size.l_m) <= spec.max_area * (tech.dbu_um * 1e-6) ** 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: resistor(t, "R", "res_high_po", PassiveSize(0.5e-6, 10e-6)), "exists 0.35, 0.69"),
        (lambda t: resistor(t, "R", "res_high_po", PassiveSize(0.35e-6, 0.1e-6)), "below minimum"),
        (lambda t: resistor(t, "R", "res_high_po", PassiveSize(0.35e-6, 10e-6, 1, 40)), "each of 40 segments"),
        (lambda t: resistor(t, "R", "res_high_po", PassiveSize(0.35e-6, 10e-6, 0)), "Multiplier must be positive"),
        (lambda t: resistor(t, "R", "cap_mim_m3_1", PassiveSize(1e-6, 1e-6)), "is a capacitor, not a resistor"),
        (lambda t: capacitor(t, "C", "capacitor", PassiveSize(1e-6, 5e-6)), "below minimum"),
        (lambda t: capacitor_size(t, t.passive("capacitor"), 1e-16), "less than the smallest"),
        (lambda t: resistor_size(t, t.passive("resistor"), -1), "must be positive"),
    ],
)
def test_what_cannot_be_made_is_refused(call, words):
    with pytest.raises(GeometryError, match=words):
        call(load("sky130A"))


def test_unequal_resistors_do_not_share_a_bank():
    tech = load("sky130A")
    pair = tuple(resistor(tech, f"R{w}", "resistor", PassiveSize(w * 1e-6, 10e-6, 1, 1)) for w in (0.35, 0.69))
    layout = kdb.Layout()
    with pytest.raises(GeometryError, match="one width"):
        draw_resistors(layout, tech, ResistorSpec("X", pair, "b"))
    with pytest.raises(GeometryError, match="ring"):
        draw_resistors(layout, tech, ResistorSpec("X", pair[:1], "b", dummies=1, ring=False))


@pytest.mark.parametrize(("side", "distance"), [(8e-6, 240), (20e-6, 600)])
def test_wires_stay_away_from_a_plate_that_is_very_wide_metal(side, distance):
    """M5.f of sg13g2: 0.6 um to Metal5 wider than 10 um; M5.e: 0.24 um to any that is wider than 0.39 um."""
    spec = load("sg13g2").passive("cap_cmim")
    device = capacitor(load("sg13g2"), "C1", "cap_cmim", PassiveSize(side, side, 1), {"p": "a", "n": "b"})
    tech, module = drawn("sg13g2", lambda layout, tech: draw_capacitor(layout, tech, CapacitorSpec("X", device)))
    drawn_there = shapes_of(tech, module, spec.parts["bottom"]).bbox()  # with the foot, which lies lower
    (around,) = [each.box for each in module.keepouts if each.layer == spec.parts["bottom"]]
    assert (around.left, around.top) == (drawn_there.left - distance, drawn_there.top + distance)


def test_metal_is_left_out_where_a_row_of_large_plates_ends_early():
    """Slt.c of sg13g2: metal that is wider than 30 um needs slits, unless plates lie on it."""
    tech = load("sg13g2")
    device = capacitor(tech, "C1", "cap_cmim", PassiveSize(40e-6, 40e-6, 8), {"p": "a", "n": "b"})
    _, module = drawn("sg13g2", lambda layout, tech: draw_capacitor(layout, tech, CapacitorSpec("X", device)))
    assert violated(tech, module) == []
    sized = Device("C1", "capacitor", "cap_cmim", {"w": 40e-6, "l": 40e-6, "m": 8}, {"p": "a", "n": "b"})
    assert matched(tech, module, (sized,), ("a", "b"))
