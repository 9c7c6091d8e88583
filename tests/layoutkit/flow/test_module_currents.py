"""Modules and stated currents: warnings about modules that are too weak, and parallel devices.

The oracle is the check of currents of the whole layout, and LVS.
"""

import klayout.db as kdb
import pytest

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.modules import ModuleDrawings
from layoutkit.technology import load

SWITCH = ".subckt switch g out vss\nM1 out g vss vss nmos W={width}u L=0.5u nf={fingers}\n.ends\n"
LOADS = ".subckt loads d g s\n" + "".join(f"M{i} d g s s nmos W=20u L=0.5u nf=4\n" for i in (1, 2, 3)) + ".ends\n"


def design_of(text, currents, technology="sg13g2", **more):
    stated = {"net_currents": [{"net": net, "current": current / 1e3} for net, current in currents.items()], **more}
    request, process = LayoutRequest(netlist_text=text, technology=technology, constraints=stated), load(technology)
    circuit, _ = read_circuit(request, process)
    return make_design(request, process, circuit)[0]


def warnings_of(fingers, width, current):
    design = design_of(SWITCH.format(fingers=fingers, width=width), {"out": current, "vss": current})
    return [text for each in ModuleDrawings(design).copy()[1] for text in each.module.warnings if "fingers" in text]


def test_what_no_shape_of_a_transistor_carries_is_warned_of_with_fingers_that_do():
    """A contact of sg13g2 carries 0.3 mA, and one finger of 2 um has room for five in each column."""
    [text] = warnings_of(2, 4, 10)
    assert "M1" in text
    assert "of 10 mA with 2 fingers" in text
    assert "divide the width into more fingers" in text  # four times as many do not carry it
    [text] = warnings_of(10, 100, 40)
    assert "divide the same width into " in text
    enough = int(text.split("divide the same width into ")[1].split()[0])
    assert enough > 10
    assert warnings_of(enough, 100, 40) == []


def test_parallel_transistors_with_a_stated_current_are_one_module(tmp_path):
    design = design_of(LOADS, {"d": 6, "s": 6})
    assert [tuple(d.id for d in group.devices) for group in design.groups] == [("M1", "M2", "M3")]
    stated = {"net_currents": [{"net": net, "current": 0.006} for net in "ds"]}
    request = LayoutRequest(
        netlist_text=LOADS, technology="sg13g2", workspace=str(tmp_path), constraints=stated, last_stage="lvs"
    )
    report = build_layout(request)
    assert report["lvs"]["matched"]
    assert report["drc"]["total_violations"] == 0
    verdicts = {entry["net"]: entry["verdict"] for entry in report["currents"]["nets"]}
    assert (verdicts["d"], verdicts["s"]) == ("passed", "passed")


@pytest.mark.parametrize(
    ("currents", "more"),
    [({}, {}), ({"d": 6, "s": 6}, {"proximity": [{"devices": ["M1", "M2", "M3"]}]})],
)
def test_parallel_transistors_without_a_current_or_with_a_place_stay_apart(currents, more):
    design = design_of(LOADS, currents, **more)
    assert sorted(len(group.devices) for group in design.groups) == [1, 1, 1]


def test_modules_are_drawn_once_and_each_placement_has_its_own_copy():
    design = design_of(LOADS, {})
    drawings = ModuleDrawings(design)
    (one, first), (other, second) = drawings.copy(), drawings.copy()
    layer = design.technology.layer(one, "Metal1")
    for a, b in zip(first, second, strict=True):
        assert a.module.layout is one
        assert b.module.layout is other
        metal = [kdb.Region(each.module.cell.begin_shapes_rec(layer)) for each in (a, b)]
        assert (metal[0] ^ metal[1]).is_empty()
        b.module.cell.clear()
    assert not any(kdb.Region(each.module.cell.begin_shapes_rec(layer)).is_empty() for each in first)
    assert not any(each.module.cell.is_empty() for each in drawings.copy()[1])


HIGH_RAILS = """.subckt mirror iref iout vdd vss
M1 iref iref vdd vdd sg13_lv_pmos w=8u l=0.5u ng=2
M2 iout iref vdd vdd sg13_lv_pmos w=16u l=0.5u ng=4
.ends
"""


def test_cuts_between_a_ring_and_a_high_rail_keep_the_space_of_arrays_beside_those_of_straps(tmp_path):
    request = LayoutRequest(netlist_text=HIGH_RAILS, technology="sg13g2", workspace=str(tmp_path), last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["total_violations"], report["lvs"]["matched"]) == (0, True)
