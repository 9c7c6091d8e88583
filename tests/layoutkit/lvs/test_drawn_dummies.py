"""Dummies on shared diffusion are off transistors between two nets; off transistors of the netlist are compared."""

import pytest
from transistor_sketch import Sketch

from layoutkit.circuit.circuit import Circuit, Device
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
