"""Transistors of sky130A whose drain lies beyond field oxide: what is drawn, read and compared, against the manual."""

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import check
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load

TECH = load("sky130A")
NETS = {"d": "d", "g": "g", "s": "s", "b": "b"}
NWELL, DNWELL, DIFF, TAP, POLY, MARKER = (64, 20), (64, 18), (65, 20), (65, 44), (66, 20), (81, 57)
PSDM, LICON, LI1 = (94, 20), (66, 44), (67, 20)
# Polarity to channel length, gate, gap to the drain, well over the channel's diffusion and beyond the drain. [um]
DEVICES = {"n": (0.7, 1.055, 1.585, 0.225, 0.66), "p": (0.66, 1.05, 1.19, 0.26, 0.86)}


def drawn(polarity, fingers=1, rows=1, width=5e-6):
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    length = DEVICES[polarity][0] * 1e-6
    made = transistor(TECH, "M1", f"{polarity}fet_g5v0d16v0", MosSize(width * fingers, length, fingers), NETS)
    return layout, draw_mos(layout, TECH, MosSpec(made, "LONG", rows=rows)).cell


def compared(layout, cell, polarity, fingers=1, nets=NETS):
    sizes = {"w": 5e-6 * fingers, "l": DEVICES[polarity][0] * 1e-6, "nf": fingers, "m": 1}
    device = Device("M1", f"{polarity}mos", f"{polarity}fet_g5v0d16v0", sizes, nets)
    return compare(extract(layout, cell, TECH), Circuit("LONG", (device,), ("d", "g", "s", "b")))


def region(cell, layer):
    return kdb.Region(cell.begin_shapes_rec(cell.layout().layer(*layer))).merged()


def edit(cell, layer, change):
    shapes = cell.shapes(cell.layout().layer(*layer))
    old = kdb.Region(shapes).merged()
    shapes.clear()
    shapes.insert(change(old))


@pytest.mark.parametrize("polarity", DEVICES)
def test_a_drain_is_a_bevelled_tap_as_far_from_the_gate_as_the_manual_says(polarity):
    """From left to right: source, gate with 0.13 um over the field, field, tap of 0.25 or 0.29 um, well beyond it."""
    _, gate, gap, over, beyond = (round(1000 * length) for length in DEVICES[polarity])
    _, cell = drawn(polarity)
    marker = region(cell, MARKER)
    source, drain, poly = (region(cell, layer) & marker for layer in (DIFF, TAP, POLY))
    assert (marker.bbox().left, marker.bbox().right) == (source.bbox().left, drain.bbox().right)
    assert drain.bbox().left - source.bbox().right == gap
    assert poly.bbox().width() == gate
    assert poly.bbox().right - source.bbox().right == 130
    well = region(cell, NWELL)
    wells = well.interacting(drain) if polarity == "n" else well.holes()
    box = wells.bbox()
    assert wells.count() == 1
    assert (source.bbox().right - box.left, box.right - drain.bbox().right) == (over, beyond)
    assert (box.height() - drain.bbox().height()) // 2 == beyond
    for shape, cut in ((drain, 50), (wells, 430)):
        assert shape.area() == shape.bbox().area() - 4 * cut**2 // 2


@pytest.mark.parametrize("polarity", DEVICES)
@pytest.mark.parametrize(("fingers", "rows"), [(1, 1), (2, 1), (5, 2)])
def test_what_is_drawn_matches_and_its_ends_are_not_exchanged(polarity, fingers, rows):
    layout, cell = drawn(polarity, fingers, rows)
    assert check(layout, cell, TECH).violated == ()
    assert compared(layout, cell, polarity, fingers).matched
    assert not compared(layout, cell, polarity, fingers, {**NETS, "d": "s", "s": "d"}).matched


@pytest.mark.parametrize("polarity", DEVICES)
def test_a_contact_that_ends_where_the_bevel_of_the_drain_begins_is_enclosed(polarity):
    """15 contacts of 0.17 um, 0.17 um apart, and 0.12 um beyond both ends make 5.17 um."""
    layout, cell = drawn(polarity, 2, 1, 5.17e-6)
    assert check(layout, cell, TECH).violated == ()


@pytest.mark.parametrize("polarity", DEVICES)
def test_a_channel_of_another_length_is_a_mismatch(polarity):
    """The well of the drain ends 0.1 um nearer to the source: so much shorter is the channel."""
    layout, cell = drawn(polarity)
    left = (region(cell, NWELL) if polarity == "n" else region(cell, NWELL).holes()).interacting(region(cell, MARKER))
    box = left.bbox()
    more = kdb.Region(kdb.Box(box.left - 100, box.bottom + 430, box.left + 100, box.top - 430))
    edit(cell, NWELL, lambda old: old + more if polarity == "n" else old - more)
    (mismatch,) = compared(layout, cell, polarity).mismatches
    assert mismatch.kind == "wrong_parameter"
    assert f"is {DEVICES[polarity][0] - 0.1:g} um in the layout" in mismatch.message


def test_without_a_deep_well_below_the_hole_the_drain_meets_the_substrate():
    layout, cell = drawn("p", 2)
    cell.shapes(layout.layer(*DNWELL)).clear()
    beside = cell.bbox().right + 5000
    for layer, inset in ((TAP, 0), (PSDM, -200), (LICON, 400), (LI1, 200)):  # a tap of the substrate
        box = kdb.Box(0, 0, 970, 970).enlarged(-inset, -inset)
        cell.shapes(layout.layer(*layer)).insert(box.moved(beside, 0))
    cell.shapes(layout.layer(67, 5)).insert(kdb.Text("vss", beside + 485, 485))
    (mismatch,) = compared(layout, cell, "p", 2).mismatches
    assert "nothing but a well or the substrate joins 2 pieces of it" in mismatch.message
    assert {"denmos.1", "denmos.13"} <= {verdict.rule.id for verdict in check(layout, cell, TECH).violated}


@pytest.mark.parametrize("polarity", DEVICES)
def test_without_the_marker_it_is_no_transistor(polarity):
    layout, cell = drawn(polarity)
    edit(cell, MARKER, lambda old: old - old)
    assert extract(layout, cell, TECH).devices == ()
    assert not compared(layout, cell, polarity).matched


@pytest.mark.parametrize("polarity", DEVICES)
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_device_as_magic_exports_it_is_read(polarity, mirrored):
    """Shapes of a device painted in Magic 8.3.677 and written as GDS: no bevels, and no contacts here."""
    n = polarity == "n"
    gap, edge, gate = (1585, 1925, 2055) if n else (1190, 1920, 2050)
    drain = (edge + gap, 0, edge + gap + 260, 5000)
    over, beyond = (225, 660) if n else (260, 860)
    well = kdb.Region(kdb.Box(edge - over, -beyond, drain[2] + beyond, 5000 + beyond))
    around = kdb.Region(kdb.Box(-3000, -3000, 9000, 8000))
    shapes = {DIFF: (0, 0, edge, 5000), TAP: drain, POLY: (1000, -300, gate, 5300), MARKER: (0, 0, drain[2], 5000)}
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    cell = layout.create_cell("MAGIC")
    for layer, box in shapes.items():
        cell.shapes(layout.layer(*layer)).insert(kdb.Box(*box))
    cell.shapes(layout.layer(*NWELL)).insert(well if n else around - well)
    cell.shapes(layout.layer(*((93, 44) if n else PSDM))).insert(kdb.Box(-125, -125, drain[2] + 125, 5125))
    for layer in ((75, 20), *(() if n else (DNWELL,))):
        cell.shapes(layout.layer(*layer)).insert(around)
    if mirrored:
        layout.transform(kdb.Trans(kdb.Trans.M90))
    found = extract(layout, cell, TECH)
    (device,) = [*found.devices, *found.dummies]
    assert (device.device, device.w_um, device.l_um) == (f"{polarity}fet_g5v0d16v0", 5.0, DEVICES[polarity][0])
