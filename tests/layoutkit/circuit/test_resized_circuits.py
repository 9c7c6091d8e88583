"""Sizes in a request replace those of the netlist; what does not fit is refused, all of it at once."""

import json

import pytest

from layoutkit.circuit import resized
from layoutkit.circuit.circuit import OTHER_SIZE
from layoutkit.errors import NetlistError
from layoutkit.flow.design import LayoutRequest, read_circuit
from layoutkit.technology import load

NETLIST = """
.subckt stage in out vdd vss
M1 out in vss vss nmos W=2u L=1u nf=2
R1 vdd out 2k
.ends
"""


def circuit(**options):
    request = LayoutRequest(netlist_text=NETLIST, **options)
    return read_circuit(request, load("sky130A"))[0]


def test_a_stated_width_is_the_total_whatever_the_netlist_means_by_w():
    for reading, before in (("device", 2e-6), ("finger", 4e-6)):
        assert circuit(width_per=reading).device("M1").w == pytest.approx(before)
        wide = circuit(width_per=reading, sizes={"M1": {"w": 6e-6, "nf": 3}}).device("M1")
        assert (wide.w, wide.nf, wide.l) == (pytest.approx(6e-6), 3, pytest.approx(1e-6))


def test_stated_junctions_hold_for_one_size():
    """A device that keeps its size keeps them, also in the stored circuit; new sizes and the grid drop them."""
    text = """
    .subckt stage a b vss
    M1 a b vss vss nmos W=2u L=1u nf=2 ad=0.29p as=0.58p
    M2 a b vss vss nmos W=2u L=1.001u ad=0.58p
    M3 a b vss vss nmos W=2.0012u L=1u ad=0.58p
    .ends
    """
    sky130, stated = load("sky130A"), {"ad": 0.29e-12, "as": 0.58e-12}
    plain, told = read_circuit(LayoutRequest(netlist_text=text), sky130)
    assert [device.junctions for device in plain.devices] == [stated, {}, {}]
    assert f"{OTHER_SIZE}: M2, M3" in told
    stored = json.dumps(plain.to_json())
    assert read_circuit(LayoutRequest(netlist_text=stored), sky130)[0].devices == plain.devices
    for size, kept in ({"w": 4e-6}, {}), ({"l": 2e-6}, {}), ({"nf": 1}, {}), ({"m": 2}, stated), ({"w": 2e-6}, stated):
        other, told = read_circuit(LayoutRequest(netlist_text=text, sizes={"M1": size}), sky130)
        assert other.device("M1").junctions == kept
        assert (f"{OTHER_SIZE}: M1" in told) is not bool(kept)


def test_other_devices_and_a_passive_keep_what_is_not_stated():
    usual = circuit()
    longer = circuit(sizes={"R1": {"l": usual.device("R1").l * 2}})
    assert longer.device("M1") == usual.device("M1")
    assert longer.device("R1").l == pytest.approx(2 * usual.device("R1").l)
    assert longer.device("R1").w == usual.device("R1").w


def test_every_size_that_does_not_fit_is_reported():
    faults = {"M1": {"width": 1e-6, "w": -1.0, "nf": 1.5}, "M2": {"w": 1e-6}}
    with pytest.raises(NetlistError) as raised:
        resized(circuit(), faults)
    texts = raised.value.details["errors"]
    assert len(texts) == 4
    for words in ("M1 has no size 'width'", "above 0, got -1", "whole number, got 1.5", "no device 'M2'"):
        assert any(words in text for text in texts), words
