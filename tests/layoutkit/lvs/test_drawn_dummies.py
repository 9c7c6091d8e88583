"""Dummies on shared diffusion are off transistors between two nets; off transistors of the netlist are compared."""

import klayout.db as kdb
import pytest
from transistor_sketch import Sketch

from layoutkit.circuit import Circuit, Device
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load

GENERIC = load("generic")
PORTS = ("out", "in", "pad", "vss")
INPUT = ("M1", 2000, "out in vss vss")
CLAMP = ("MC", 3000, "pad vss vss vss")
DUMMIES = [(None, 2000, "out vss vss vss"), (None, 2000, "out vss pad vss")]


def drawn(*transistors, texts=True):
    sketch = Sketch(GENERIC)
    for text, w, nets in transistors:
        sketch.mos("nmos", w, 500, nets, text=text if texts else None)
    return extract(sketch.label_rails(*PORTS).layout, sketch.cell, GENERIC)


def asked(*transistors):
    devices = tuple(
        Device(
            name or f"MD{i}", "nmos", "nmos", {"w": w * 1e-9, "l": 5e-7}, dict(zip("dgsb", nets.split(), strict=True))
        )
        for i, (name, w, nets) in enumerate(transistors)
    )
    return Circuit("top", devices, PORTS)


@pytest.mark.parametrize("texts", [True, False])
def test_off_fingers_that_the_netlist_lacks_are_dummies(texts):
    result = compare(drawn(INPUT, CLAMP, *DUMMIES, texts=texts), asked(INPUT, CLAMP))
    assert result.matched, result.mismatches
    assert [dummy["w_um"] for dummy in result.to_json()["dummies"]] == [2.0, 2.0]


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("dummies", [[], DUMMIES])
def test_an_off_transistor_of_the_netlist_must_be_there_with_its_width(texts, dummies):
    name, width, nets = CLAMP
    assert compare(drawn(INPUT, CLAMP, *dummies, texts=texts), asked(INPUT, CLAMP)).matched
    assert not compare(drawn(INPUT, *dummies, texts=texts), asked(INPUT, CLAMP)).matched
    assert not compare(drawn(INPUT, (name, width + 100, nets), *dummies, texts=texts), asked(INPUT, CLAMP)).matched
    assert not compare(drawn(INPUT, (name, width - 100, nets), *dummies, texts=texts), asked(INPUT, CLAMP)).matched


def test_a_dummy_in_parallel_to_an_off_transistor_adds_nothing_to_its_width():
    assert compare(drawn(INPUT, CLAMP, (None, 1000, CLAMP[2])), asked(INPUT, CLAMP)).matched


def test_an_off_transistor_that_bears_a_name_is_no_dummy():
    assert not compare(drawn(INPUT, CLAMP), asked(INPUT)).matched


def test_a_finger_with_its_gate_on_a_signal_is_no_dummy():
    assert not compare(drawn(INPUT, CLAMP, (None, 2000, "out in pad vss")), asked(INPUT, CLAMP)).matched


@pytest.mark.parametrize("texts", [True, False])
def test_dummies_that_the_netlist_lists_must_all_be_there(texts):
    listed = asked(INPUT, CLAMP, *DUMMIES)
    assert compare(drawn(INPUT, CLAMP, *DUMMIES, texts=texts), listed).matched
    assert not compare(drawn(INPUT, CLAMP, DUMMIES[0], texts=texts), listed).matched
    assert not compare(drawn(INPUT, CLAMP, DUMMIES[0], DUMMIES[0], texts=texts), listed).matched


def test_a_dummy_in_a_well_of_its_own_with_its_gate_on_the_substrate_is_off():
    technology = load("sky130A")
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("PAIR")
    boxes = {
        "dnwell": [(-2000, -3000, 5300, 4000)],
        "nwell": [
            (-3000, -4000, 6300, -2000), (-3000, 3000, 6300, 5000), (-3000, -4000, -1000, 5000),
            (4300, -4000, 6300, 5000),
        ],
        "diff": [(0, 0, 3300, 1000)],
        "tap": [(1500, -1000, 1900, -500), (2100, 6000, 2500, 6400)],
        "nsdm": [(-125, -125, 3425, 1125)],
        "psdm": [(1400, -1100, 2000, -400), (1900, 5900, 2700, 6500)],
        "poly": [(x, -300, x + 150, 2000) for x in (1000, 2200)] + [(x, 1600, x + 350, 2000) for x in (900, 2100)],
        "licon1": [
            (x, y, x + 170, y + 170)
            for x, y in ((400, 400), (1600, 400), (2800, 400), (990, 1715), (2190, 1715), (1600, -830), (2200, 6100))
        ],
        "li1": [
            (300, -900, 700, 700), (2700, -900, 3100, 700), (300, -900, 3100, -600), (1500, 300, 1900, 700),
            (900, 1600, 1300, 2000), (2100, 1600, 2500, 6500),
        ],
    }  # fmt: skip
    for layer, drawn in boxes.items():
        for box in drawn:
            cell.shapes(technology.layer(layout, layer)).insert(kdb.Box(*box))
    for name, x, y in (("d", 1700, 350), ("in", 950, 1650), ("t", 350, 350), ("avss", 2150, 6450)):
        cell.shapes(technology.layer(layout, "li1.label")).insert(kdb.Text(name, x, y))
    nets = dict(zip("dgsb", ("d", "in", "t", "t"), strict=True))
    device = Device("M1", "nmos", "nfet_01v8", {"w": 1e-6, "l": 1.5e-7, "nf": 1, "m": 1}, nets)
    result = compare(extract(layout, cell, technology), Circuit("pair", (device,), ("d", "in", "t", "avss")))
    assert (result.mismatches, result.matched) == ((), True)
    assert len(result.extraction.dummies) == 1
