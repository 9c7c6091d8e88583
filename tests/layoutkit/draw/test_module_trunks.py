"""Modules whose currents need more than usual rails: trunks, wider straps, and as many cuts as the currents need.

The oracle is the check of currents, which finds the bottleneck of the drawn metal by a maximum flow, and the DRC.
"""

from itertools import pairwise

import klayout.db as kdb
import pytest

from layoutkit.draw import stack, trunks
from layoutkit.draw.group import MirrorSpec, draw_mirror
from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.draw.row_metal import Metal
from layoutkit.draw.trunks import heavy_nets, plan_trunks
from layoutkit.drc.check import check
from layoutkit.extract.current_limits import NetLoad, judge_currents
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load

PROCESSES = ("sky130A", "gf180mcuD", "sg13g2")
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


@pytest.mark.parametrize("name", PROCESSES)
def test_trunks_carry_what_one_rail_of_each_row_does_not(name, monkeypatch):
    technology, module = drawn(name, fingers=32, finger_width=5000, rows=4, current=20e-3)
    assert violations(technology, module) == []
    assert module.symmetry_axis_x is not None
    for net, role in ROLES.items():
        [bar] = [pin for pin in module.pins_of(net) if pin.share > 0]
        assert bar.share == 1
        assert verdict(technology, module, net, {"M1": role}, 20.0).verdict == "passed"
    monkeypatch.setattr(stack, "heavy_nets", lambda *_: [])
    technology, module = drawn(name, fingers=32, finger_width=5000, rows=4, current=20e-3)
    one = max(module.pins_of("d"), key=lambda pin: pin.share)
    ports = ((one.layer, one.box.center().x, one.box.center().y),)
    load_ = NetLoad(ports, ports, {"M1": "out of"}, 20.0)
    assert judge_currents(module.cell, technology, {"d": load_}, singles=False)[0].verdict == "failed"


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


def test_rails_are_high_enough_for_the_cuts_below_few_straps(monkeypatch):
    """sky130: a cut of via2 carries 0.48 mA; the rails of M2 carry 1 mA each, so that each needs three cuts."""
    technology = load("sky130A")
    spec = technology.device("nmos")

    def mirror():
        layout = kdb.Layout()
        layout.dbu = technology.dbu_um
        devices = tuple(
            Transistor(name, spec, 2000, GATE_LENGTH, fingers, 1, drain, "in", "vss", "vss", current=current)
            for name, fingers, drain, current in (
                ("M1", 2, "in", 2e-3),
                ("M2", 4, "tail", 2e-3),
                ("M3", 8, "out", 2e-3),
            )
        )
        return draw_mirror(layout, technology, MirrorSpec("mirror", devices, arrangement="BB/CC/CC/AA/CC/CC/BB"))

    module = mirror()
    assert violations(technology, module) == []
    devices = {"M2": "out of"}
    assert verdict(technology, module, "tail", devices, 2.0).verdict == "passed"
    monkeypatch.setattr(stack, "HIGHER_ROUNDS", 0)
    assert verdict(technology, mirror(), "tail", devices, 2.0).verdict == "failed"


@pytest.mark.parametrize("currents", [{"a": 4.0}, {"a": 9.0, "b": 20.0}, {"a": 9.0, "b": 5.0, "c": 3.0}])
@pytest.mark.parametrize("name", PROCESSES)
def test_straps_and_bars_are_the_mirror_image_of_themselves_and_keep_their_space(name, currents):
    metal = Metal(load(name))
    room = Rectangle(-15_000, 0, 15_000, 40_000)
    rails = [
        (net, metal.rail, room._replace(bottom=y, top=y + 1000)) for net in currents for y in (5000, 15_000, 25_000)
    ]
    trunks = plan_trunks(metal, currents, room, rails)
    assert trunks.lack == 0
    straps = [(strap.net, strap.area.left, strap.area.right) for strap in trunks.straps]
    step = 2 * metal.grid
    assert all(abs(left + other) <= step for (_, left, _), (_, _, other) in zip(straps, straps[::-1], strict=True))
    assert [net for net, _, _ in straps] == [net for net, _, _ in straps[::-1]]
    assert {net for net, _, _ in straps} == set(trunks.bars) == set(currents)
    conductor = metal.conductors[metal.riser]
    for (_, _, right), (_, left, _) in pairwise(straps):
        assert left - right >= conductor.space
    for net, current in currents.items():
        bar = trunks.bars[net]
        assert (bar.top - bar.bottom) * metal.tech.dbu_um * metal.conductors[metal.riser + 1].current_ma_um >= current
        width = sum(right - left for own, left, right in straps if own == net) * metal.tech.dbu_um
        beside = sum(not (bar.bottom <= area.bottom and area.top <= bar.top) for name, _, area in rails if name == net)
        assert width * conductor.current_ma_um >= current * beside / 3 * 0.999
    tops = [bar.top for bar in trunks.bars.values()]
    assert all(bar.bottom > top for bar, top in zip(list(trunks.bars.values())[1:], tops, strict=False))


@pytest.mark.parametrize("currents", [{"a": 2e4}, {"a": 2e4, "b": 4e4}, {"a": 5.0, "b": 2e4, "c": 4e4}])
def test_straps_for_amperes_are_as_few_as_their_widest_allows_and_found_in_a_few_steps(currents, monkeypatch):
    """The search began with one strap, and looked through all of them for each more: minutes for 10 A in a module."""
    metal, steps, space = Metal(load("sg13g2")), [], trunks.strap_space
    monkeypatch.setattr(trunks, "strap_space", lambda each: steps.append(1) or space(each))
    room = Rectangle(-15_000, 0, 15_000, 40_000)
    rails = [(net, metal.rail, room._replace(bottom=30_000, top=31_000)) for net in currents]
    plan = plan_trunks(metal, currents, room, rails)
    assert plan.lack > 0
    assert len(steps) < len(plan.straps) + 100
    step, widest = 2 * metal.grid, metal.tech.to_dbu(metal.widest(metal.riser))
    widths = {net: [each.area.right - each.area.left for each in plan.straps if each.net == net] for net in currents}
    assert max(map(max, widths.values())) <= widest
    most = max(widths, key=lambda net: max(widths[net]))
    assert sum(widths[most]) > (len(widths[most]) - 2) * (widest - step)  # with a unit less, these would be too wide


def test_usual_currents_and_two_conductors_need_no_trunks():
    assert heavy_nets(Metal(load("sky130A")), {"d": 0.1, "s": 1.0}) == []
    assert heavy_nets(Metal(load("sky130A")), {"d": 10.0, "s": 10.0, "b": 0.1}) == ["d", "s"]
