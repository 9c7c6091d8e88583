"""Transistors in series: stacks drawn as one gate, and stacks in parallel with inner nets of their own."""

import pytest
from transistor_sketch import Sketch

from layoutkit.circuit import Circuit, Device
from layoutkit.extract import folding
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.lvs.reference import ReferenceDevice
from layoutkit.technology import load
from layoutkit.technology.device_kinds import KINDS

PORTS = ("a", "b", "top", "vss")


@pytest.fixture(params=["generic", "sky130A"])
def technology(request):
    return load(request.param)


def judged(technology, drawn, asked, ports=PORTS):
    """Cards: name, w, l [dbu], nets d g s b."""
    sketch = Sketch(technology)
    for _, w, length, nets in drawn:
        sketch.mos("nmos", w, length, nets)
    for port in ports:
        sketch.label_rails(port)
    devices = tuple(
        Device(name, "nmos", "nmos", {"w": w * 1e-9, "l": length * 1e-9}, dict(zip("dgsb", nets.split(), strict=True)))
        for name, w, length, nets in asked
    )
    return compare(extract(sketch.layout, sketch.cell, technology), Circuit("x", devices, ports))


TWO_STACKS = (
    ("M1", 2000, 500, "top a x vss"),
    ("M2", 2000, 500, "x b vss vss"),
    ("M3", 2000, 500, "top a y vss"),
    ("M4", 2000, 500, "y b vss vss"),
)
ONE_STACK = (("M1", 4000, 500, "top a x vss"), ("M2", 4000, 500, "x b vss vss"))


def test_equal_stacks_in_parallel_are_one_stack_of_their_width(technology):
    for drawn, asked in ((TWO_STACKS, ONE_STACK), (ONE_STACK, TWO_STACKS)):
        result = judged(technology, drawn, asked)
        assert result.matched, [m.message for m in result.mismatches]
        assert any("in series folded" in warning for warning in result.warnings)


def test_what_matches_as_it_is_is_not_folded(technology):
    result = judged(technology, TWO_STACKS, TWO_STACKS)
    assert result.matched
    assert not any("folded" in warning for warning in result.warnings)


def test_stacks_of_another_order_or_ratio_are_not_one(technology):
    turned = (*TWO_STACKS[:2], ("M3", 2000, 500, "top b y vss"), ("M4", 2000, 500, "y a vss vss"))
    assert not judged(technology, turned, ONE_STACK).matched
    uneven = (*TWO_STACKS[:3], ("M4", 1000, 500, "y b vss vss"))
    assert not judged(technology, uneven, (ONE_STACK[0], ("M2", 3000, 500, "x b vss vss"))).matched


def test_a_named_inner_net_keeps_stacks_apart(technology):
    ports = (*PORTS, "y")
    assert not judged(technology, TWO_STACKS, ONE_STACK, ports).matched


def test_one_gate_over_two_channels_is_one_transistor_of_their_length(technology):
    chain = (("M1", 2000, 500, "top a x vss"), ("M2", 2000, 700, "x a vss vss"))
    single = (("M1", 2000, 1200, "top a vss vss"),)
    assert judged(technology, chain, single, ("a", "top", "vss")).matched
    assert judged(technology, single, chain, ("a", "top", "vss")).matched
    assert not judged(technology, chain, (("M1", 2000, 1100, "top a vss vss"),), ("a", "top", "vss")).matched


def test_channels_of_unequal_width_in_series_are_not_one(technology):
    chain = (("M1", 2000, 500, "top a x vss"), ("M2", 3000, 500, "x a vss vss"))
    assert not judged(technology, chain, (("M1", 2000, 1000, "top a vss vss"),), ("a", "top", "vss")).matched


def test_many_stacks_are_folded_together_and_not_one_after_the_other(monkeypatch):
    looks = []
    inner_nets = folding.inner_nets
    monkeypatch.setattr(folding, "inner_nets", lambda *given: looks.append(given) or inner_nets(*given))
    nets = [("vss", "x"), ("x", "y"), ("y", "z"), ("z", "out")]
    parts = [
        ReferenceDevice(
            id=f"M{stack}.{step}",
            device="nmos",
            kind=KINDS["nmos"],
            w_um=1.0,
            l_um=0.5,
            drawn_w_um=1.0,
            drawn_l_um=0.5,
            fingers=1,
            nets={"s": "vss" if step == 0 else f"{low}{stack}", "g": f"g{stack}", "d": f"{high}{stack}", "b": "vss"},
        )
        for stack in range(50)
        for step, (low, high) in enumerate(nets)
    ]
    folded = folding.fold_series(parts, {"vss", *(f"out{stack}" for stack in range(50))}, "stacks")
    assert [(part.id, part.l_um) for part in folded[:1]] == [("M0.0+M0.1+M0.2+M0.3", 2.0)]
    assert len(folded) == 50
    assert len(looks) <= 6
