"""Plate capacitors over other modules: where the rules allow, never over matched devices, and reported."""

from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.drc.check import check
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.overlays import rules_allow_overlay
from layoutkit.flow.placing import place_modules
from layoutkit.place import PlacementOptions
from layoutkit.technology import load

PROCESSES = ("sky130A", "gf180mcuD", "sg13g2")
FILTER = """* a filter: four resistors, a capacitor over them, and a pair
.subckt filter a b inp inn x y vss
R1 a m 40k
R2 m n 40k
R3 n o 40k
R4 o b 40k
C1 b vss 2p
M1 x inp vss vss nmos W=8u L=1u nf=2
M2 y inn vss vss nmos W=8u L=1u nf=2
.ends
"""
MATCHED = {"matching": [{"devices": ["M1", "M2"]}]}


def placed(name, constraints=MATCHED, text=FILTER, **options):
    technology = load(name)
    request = LayoutRequest(netlist_text=text, technology=name, constraints=constraints)
    circuit, _ = read_circuit(request, technology)
    design, _ = make_design(request, technology, circuit)
    return technology, place_modules(design, PlacementOptions(gap_x=500, gap_y=500, moves=300), **options)


def shapes(technology, modules, name, layers):
    """Return what a module draws on some layers, in the layout."""
    module, found = modules.modules[name], kdb.Region()
    for layer in layers:
        index = technology.layer(modules.layout, layer)
        found += kdb.Region(module.cell.begin_shapes_rec(index)).transformed(modules.trans[name])
    return found.merged()


@pytest.mark.parametrize("name", PROCESSES)
def test_a_capacitor_lies_over_resistors_and_not_over_matched_devices(name):
    technology, modules = placed(name)
    (overlay,) = modules.overlays
    devices = {item.module.name: set(item.module.devices) for item in modules.drawn}
    assert devices[overlay.name] == {"C1"}
    assert any(device.startswith("R") for module in overlay.over for device in devices[module])
    plate = technology.passive(next(i.group.spec.name for i in modules.drawn if i.module.name == overlay.name)).parts[
        "plate"
    ]
    plates = shapes(technology, modules, overlay.name, [plate])
    under = {
        module
        for module in devices
        if module != overlay.name
        and plates.overlapping(kdb.Region(modules.modules[module].bbox.transformed(modules.trans[module])))
    }
    assert under <= set(overlay.over)
    assert not under & {module for module, names in devices.items() if names & {"M1", "M2"}}
    assert {violation.rule.id for violation in check(modules.layout, modules.cell, technology).violated} == set()


def test_no_capacitor_lies_over_a_divider_whose_resistors_share_a_centroid():
    taps = "\n".join(f"M{index} x {tap} vss vss nmos W=8u L=1u nf=2" for index, tap in enumerate("mno", start=3))
    _, modules = placed("sky130A", text=FILTER.replace(".ends", f"{taps}\n.ends"))
    (bank,) = (item.module for item in modules.drawn if "R1" in item.module.devices)
    assert set(bank.devices) == {"R1", "R2", "R3", "R4"}
    assert all(bank.name not in overlay.over for overlay in modules.overlays)


def test_the_layout_is_smaller_than_with_the_capacitor_beside():
    _, over = placed("sky130A")
    _, beside = placed("sky130A", cover=False)
    assert beside.overlays == ()
    assert over.cell.bbox().area() < beside.cell.bbox().area()


def test_a_matched_capacitor_lies_over_nothing():
    _, modules = placed("sky130A", {"symmetry": [{"self_symmetric": ["C1"]}]})
    assert modules.overlays == ()


def test_a_rule_between_the_plates_and_lower_layers_forbids_it(tmp_path):
    """A copy of the process with one more rule: no gate below a capacitor."""
    technology = load("gf180mcuD")
    spec = technology.passive("cap_mim_2f0fF")
    assert rules_allow_overlay(technology, spec)
    text = Path(technology.path).read_text(encoding="utf-8")
    rule = "  - {id: OWN, kind: separation, layer: mim_bottom, other: Poly2, value: 1, description: x, source: own}\n"
    place = text.index("  - {id: MIMTM.1,")
    (tmp_path / "own.yaml").write_text(text[:place] + rule + text[place:], encoding="utf-8")
    own = load(str(tmp_path / "own.yaml"))
    assert not rules_allow_overlay(own, own.passive("cap_mim_2f0fF"))


def test_wells_meet_below_a_capacitor():
    """Two rows of p channels, too many for one ring, stand too close for wells of their own (NW.b1 of sg13g2)."""
    text = """* two transistors with a well of their own each, and a capacitor over both
.subckt below a b c x vdd vss
M1 a x vdd vdd pmos W=38u L=26u nf=2
M2 b x vdd vdd pmos W=42u L=16u nf=2
C1 c vss 5p
.ends
"""
    technology, modules = placed("sg13g2", constraints={}, text=text)
    (overlay,) = modules.overlays
    assert len(modules.rings) > 1
    assert {"pmos_M1", "pmos_M2"} <= set(overlay.over)
    assert {violation.rule.id for violation in check(modules.layout, modules.cell, technology).violated} == set()
