"""Straps of transistors are as wide as their currents need.

The oracle is the check of currents, which finds the bottleneck of the drawn metal by a maximum flow, and the DRC.
"""

import klayout.db as kdb
import pytest

from layoutkit.draw import stack
from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.drc.check import check
from layoutkit.extract.current_limits import NetLoad, judge_currents
from layoutkit.technology import load

GATE_LENGTH = 500
ROLES = {"d": "out of", "s": "into"}


def drawn(name, fingers, finger_width, rows, current):
    technology = load(name)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    spec = technology.device("nmos")
    device = Transistor("M1", spec, finger_width, GATE_LENGTH, fingers, 1, "d", "g", "s", "s", current=current)
    return technology, draw_mos(layout, technology, MosSpec(device, "m1", rows=rows))


def violations(technology, module):
    return [each for each in check(module.layout, module.cell, technology).verdicts if each.status == "failed"]


def verdict(technology, module, net, devices, current_ma):
    """Return the judgement of a net whose wires start at the middle of every pin that carries current."""
    pins = [pin for pin in module.pins_of(net) if pin.share > 0]
    ports = tuple((pin.layer, pin.box.center().x, pin.box.center().y) for pin in pins)
    return judge_currents(module.cell, technology, {net: NetLoad(ports, ports, devices, current_ma)}, singles=False)[0]


@pytest.mark.parametrize(("name", "current"), [("sky130A", 16.0), ("gf180mcuD", 8.0), ("sg13g2", 8.0)])
def test_gates_move_apart_where_straps_need_more_width(name, current, monkeypatch):
    """Each of the two inner columns carries what two of the four fingers draw: half of the current."""

    def module_of():
        technology, module = drawn(name, fingers=4, finger_width=20_000, rows=1, current=current / 1e3)
        judged = {net: verdict(technology, module, net, {"M1": role}, current) for net, role in ROLES.items()}
        return technology, module, judged

    technology, module, judged = module_of()
    assert violations(technology, module) == []
    assert all(each.verdict == "passed" for each in judged.values())
    monkeypatch.setattr(stack, "wider_spread", lambda _: 0)
    _, narrow, judged = module_of()
    assert narrow.bbox.width() < module.bbox.width()
    assert any(each.verdict == "failed" for each in judged.values())
