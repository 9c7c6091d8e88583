"""Extraction gives back what was drawn (issue: first light; S0.4 sizes)."""

import pytest
from transistor_sketch import Sketch

from layoutkit.check.extract import extract
from layoutkit.technology import load

TECHNOLOGIES = ["generic", "sky130A"]


@pytest.fixture(params=TECHNOLOGIES)
def sketch(request):
    return Sketch(load(request.param))


def extracted(sketch):
    return extract(sketch.layout, sketch.cell, sketch.technology)


def nets_of(extraction, device):
    return {terminal: extraction.nets[net].name for terminal, net in device.nets.items()}


@pytest.mark.parametrize("kind", ["nmos", "pmos"])
@pytest.mark.parametrize(("w", "l", "fingers"), [(1000, 180, 1), (2005, 500, 3), (420, 2000, 4)])
def test_width_length_and_fingers_come_back(sketch, kind, w, l, fingers):  # noqa: E741
    sketch.mos(kind, w, l, "d g s b", fingers=fingers)
    sketch.label_rails("d", "g", "s", "b")
    found = extracted(sketch)
    (device,) = found.devices
    assert (device.w_um, device.l_um, len(device.fingers)) == (w * fingers / 1000, l / 1000, fingers)
    assert found.technology.devices[device.device].type == kind
    assert {**nets_of(found, device), "d": None, "s": None} == {"d": None, "g": "g", "s": None, "b": "b"}
    assert found.nets[device.nets["d"]].name in {"d", "s"}
    assert found.ignored_gates == ()
