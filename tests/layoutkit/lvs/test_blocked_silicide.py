"""Transistors with blocked silicide: LVS does not exchange their drain and source, and compares both lengths."""

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device, map_circuit
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.errors import GeometryError, NetlistError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load

TECH = load("gf180mcuD")
NETS = {"d": "pad", "g": "g", "s": "vss", "b": "vss"}
SAB, LVS_SOURCE, CONTACT, POLY, COMP = (49, 0), (100, 8), (33, 0), (30, 0), (22, 0)


def drawn(blocks, rows=1, flavour="nfet_03v3_dss"):
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    made = transistor(TECH, "M1", flavour, MosSize(100e-6, 0.4e-6, 5, 1, blocks), NETS)
    module = draw_mos(layout, TECH, MosSpec(made, "ESD", rows=rows))
    return layout, module.cell


def compared(layout, cell, blocks, nets=NETS):
    device = Device("M1", "nmos", "nfet_03v3_dss", {"w": 100e-6, "l": 0.4e-6, "nf": 5, "m": 1, **blocks}, nets)
    return compare(extract(layout, cell, TECH), Circuit("ESD", (device,), ("pad", "g", "vss")))


def region(cell, layer):
    return kdb.Region(cell.begin_shapes_rec(cell.layout().layer(*layer))).merged()


@pytest.mark.parametrize("rows", [1, 2])
def test_contacts_lie_beyond_the_block_at_drain_and_source(rows):
    """gf180mcu: a contact 0.22 um beyond SAB; 2.2 um at the drain and 0.5 um at the source as stated below."""
    _, cell = drawn({"drain_block": 2.2e-6, "source_block": 0.5e-6}, rows)
    gates = region(cell, POLY) & region(cell, COMP)
    contacts = region(cell, CONTACT) & region(cell, COMP).interacting(gates)
    assert gates.count() == 5
    for side, distance in ((contacts - region(cell, LVS_SOURCE), 2420), (contacts & region(cell, LVS_SOURCE), 720)):
        found = gates.separation_check(side, distance + 1, False, kdb.Region.Projection)
        assert {pair.distance() for pair in found.each()} == {distance}
    assert region(cell, SAB).count() == 5
    assert (gates - region(cell, SAB)).is_empty()
    assert (gates & region(cell, LVS_SOURCE)).is_empty()


def test_lengths_of_the_block_are_compared_and_ends_are_not_exchanged():
    layout, cell = drawn({"drain_block": 2.2e-6, "source_block": 0.5e-6})
    assert compared(layout, cell, {"drain_block": 2.2e-6, "source_block": 0.5e-6}).matched
    for other in ({"drain_block": 2.205e-6, "source_block": 0.5e-6}, {"drain_block": 2.2e-6}):
        (mismatch,) = compared(layout, cell, other).mismatches
        assert mismatch.kind == "wrong_parameter"
        assert "blocked 2.2 and 0.5 um beside its gates at drain and source in the layout" in mismatch.message
    turned = {"d": "vss", "g": "g", "s": "pad", "b": "vss"}
    assert not compared(layout, cell, {"drain_block": 2.2e-6, "source_block": 0.5e-6}, turned).matched


def test_a_block_beyond_the_limits_of_the_process_is_refused():
    for blocks in ({"drain_block": 0.775e-6}, {"drain_block": 3.785e-6}, {"source_block": 0.785e-6}):
        with pytest.raises(
            GeometryError, match=r"M1: (drain|source)_block of nfet_03v3_dss is 0.\d+ to \d.\d+ um, got"
        ):
            drawn(blocks)
        device = Device("M1", "nmos", "nfet_03v3_dss", {"w": 100e-6, "l": 0.4e-6, "nf": 5, "m": 1, **blocks}, NETS)
        with pytest.raises(NetlistError, match=r"'M1': (drain|source)_block of nfet_03v3_dss"):
            map_circuit(Circuit("ESD", (device,)), TECH)
