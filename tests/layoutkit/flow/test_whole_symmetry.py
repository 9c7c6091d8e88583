"""A circuit that is symmetric as a whole is placed so where that costs little area; the oracle is KLayout's XOR."""

import re
from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.drc.check import check
from layoutkit.flow import placing
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.overlays import outline_area
from layoutkit.flow.placing import Arranged, place_modules
from layoutkit.flow.ports import with_ports
from layoutkit.flow.room import Room
from layoutkit.flow.symmetric_modules import least_area
from layoutkit.place import Block, PlacementOptions, place_blocks
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load

COMPARATOR = """* clocked comparator: input pair, cross-coupled pair, switches, output inverters, two tails and a dummy
.subckt comparator inp inn clk bias outp outn vdd vss
M1 x inp com vdd pmos W=16u L=0.2u nf=4
M2 y inn com vdd pmos W=16u L=0.2u nf=4
M3 x y vss vss nmos W=4u L=0.2u nf=2
M4 y x vss vss nmos W=4u L=0.2u nf=2
M5 x clk vss vss nmos W=4u L=0.2u nf=2
M6 y clk vss vss nmos W=4u L=0.2u nf=2
M7 outp x vdd vdd pmos W=8u L=0.2u nf=2
M8 outn y vdd vdd pmos W=8u L=0.2u nf=2
M9 outp x vss vss nmos W=4u L=0.2u nf=2
M10 outn y vss vss nmos W=4u L=0.2u nf=2
M11 com clk tail vdd pmos W=16u L=0.3u nf=4
M12 tail bias vdd vdd pmos W=16u L=0.3u nf=4
M13 vss vss vss vss nmos W=8u L=0.2u nf=4
.ends
"""
MIRRORS = """* a pair whose currents two mirrors at the supply and one at the ground bring to the output
.subckt mirrors inp inn bias out vdd vss
M1 tail bias vss vss nmos W=4u L=0.2u nf=4
M2 bias bias vss vss nmos W=4u L=0.2u nf=4
M3 x inp tail vss nmos W=8u L=0.2u nf=8
M4 y inn tail vss nmos W=8u L=0.2u nf=8
M5 x x vdd vdd pmos W=6u L=0.2u nf=6
M6 out x vdd vdd pmos W=12u L=0.2u nf=12
M7 y y vdd vdd pmos W=6u L=0.2u nf=6
M8 z y vdd vdd pmos W=12u L=0.2u nf=12
M9 z z vss vss nmos W=16u L=0.2u nf=16
M10 out z vss vss nmos W=16u L=0.2u nf=16
.ends
"""
INVERTER = """* two transistors
.subckt inverter a y vdd vss
MN y a vss vss nmos W=8u L=0.5u nf=8
MP y a vdd vdd pmos W=8u L=0.5u nf=8
.ends
"""
SECOND_STAGE = COMPARATOR.replace(".ends", "M14 late outp vss vss nmos W=4u L=0.2u nf=2\n.ends")
BIAS = "".join(
    f"M{i}p b{i} b{i} vdd vdd pmos W=16u L=0.5u nf=4\nM{i}n b{i} bias vss vss nmos W={i}u L={i - 18}u\n"
    for i in range(20, 26)
)
OPTIONS = PlacementOptions(gap_x=400, gap_y=400)


def design_of(text, name):
    technology = load(name)
    asked = LayoutRequest(netlist_text=text, technology=name)
    circuit, _ = read_circuit(asked, technology)
    return make_design(asked, technology, circuit)[0]


def drawn_without_image(placed):
    """Return the layers whose shapes are not their own mirror image about the main axis; cuts tell the two nets of a
    cross-coupled pair apart, so they are left out.
    """
    axis = placed.placement.axis_x
    about = kdb.Trans(kdb.Trans.M90) * kdb.Trans(-2 * axis, 0)
    cuts = {placed.technology.layer(placed.layout, cut.layer) for cut in placed.technology.cuts}
    found = []
    for index in set(placed.layout.layer_indexes()) - cuts:
        region = kdb.Region(placed.cell.begin_shapes_rec(index)).merged()
        if not (region ^ region.transformed(about)).is_empty():
            found.append(str(placed.layout.get_info(index)))
    return found


def sides(placed, device):
    """Return the middle of each module that holds ``device``, from the axis. [dbu]"""
    names = [item.module.name for item in placed.drawn if device in item.module.devices]
    boxes = [placed.place_of(placed.modules[name], placed.modules[name].bbox) for name in names]
    return sorted((box.left + box.right) // 2 - placed.placement.axis_x for box in boxes)


@pytest.fixture(scope="module")
def comparator():
    return place_modules(design_of(COMPARATOR, "sg13g2"), PlacementOptions())


def test_every_ring_well_and_module_of_a_symmetric_circuit_has_its_mirror_image(comparator):
    assert len(comparator.placement.islands) == 1
    assert {name for island in comparator.placement.islands for name in island.members} == {
        item.module.name for item in comparator.drawn
    }
    wells = [index for index in comparator.layout.layer_indexes() if str(comparator.layout.get_info(index)) == "31/0"]
    assert wells
    assert drawn_without_image(comparator) == []
    assert not check(comparator.layout, comparator.cell, comparator.technology).violated


def test_a_transistor_outside_of_the_pairs_lies_on_the_axis_or_in_two_halves_beside_it(comparator):
    assert [sides(comparator, device) for device in ("M11", "M12")] == [[0], [0]]  # the tail and what feeds it
    middles = sides(comparator, "M13")
    assert middles == [0] or (len(middles) == 2 and middles[0] == -middles[1] < 0)
    assert not [cell for cell in comparator.layout.top_cells() if cell.cell_index() != comparator.cell.cell_index()]


def test_a_stage_at_one_output_only_leaves_the_others_free():
    placed = place_modules(design_of(SECOND_STAGE, "sg13g2"), OPTIONS)
    assert all(len(sides(placed, device)) == 1 for device in ("M12", "M13", "M14"))


def test_area_decides(monkeypatch):
    monkeypatch.setattr(placing, "MOST_AREA", 0.0)
    free = place_modules(design_of(COMPARATOR, "sg13g2"), OPTIONS)
    assert all(len(sides(free, device)) == 1 for device in ("M12", "M13"))


def test_a_symmetric_arrangement_that_is_too_long_is_not_taken(monkeypatch):
    monkeypatch.setattr(Arranged, "aspect", property(lambda each: 2.1 if "main" in each.plan.islands.values() else 1.0))
    free = place_modules(design_of(COMPARATOR, "sg13g2"), OPTIONS)
    assert all(len(sides(free, device)) == 1 for device in ("M12", "M13"))


def test_an_arrangement_that_cannot_be_small_enough_is_not_searched(monkeypatch):
    """Twelve transistors of the bias, 16 um wide, would all be centred above one another, which makes a tall stack."""
    searched = []
    monkeypatch.setattr(placing, "place_blocks", lambda *a, **b: searched.append(a) or place_blocks(*a, **b))
    place_modules(design_of(COMPARATOR, "sg13g2"), replace(OPTIONS, moves=100))
    assert len(searched) > 1
    searched.clear()
    place_modules(design_of(COMPARATOR.replace(".ends", f"{BIAS}.ends"), "sg13g2"), replace(OPTIONS, moves=100))
    assert len(searched) == 1


def test_no_placement_of_centred_blocks_is_smaller_than_the_least_area():
    """Oracle: placements of three seeds; two blocks of 10 by 20 um make 40 um of height, 800 um2 at a ratio of 2."""

    def block(name, width, height, **other):
        box = Rectangle(-width // 2, 0, width // 2, height)
        return Block(name, "nmos", box, (), {"tap": box}, **other)

    blocks = [block("a", 10_000, 20_000, symmetric=True), block("b", 10_000, 20_000, symmetric=True)]
    assert least_area(blocks, 2.0) == pytest.approx(40_000**2 / 2)
    assert least_area([replace(each, turns=True) for each in blocks], 2.0) == 2 * 10_000 * 20_000
    blocks += [block("l", 6000, 9000, partner="r"), block("r", 6000, 9000, partner="l")]
    for seed in (1, 2, 3):
        placement = place_blocks(load("sky130A"), blocks, PlacementOptions(seed=seed, moves=2000))
        assert outline_area(kdb.Box(*placement.box), 2.0) >= least_area(blocks, 2.0)


def test_the_metal_of_the_whole_cell_is_a_mirror_image_to_five_per_cent(tmp_path):
    request = LayoutRequest(netlist_text=COMPARATOR, technology="sg13g2", workspace=str(tmp_path), last_stage="lvs")
    report = build_layout(request)
    assert report["lvs"]["matched"]
    assert report["drc"]["total_violations"] == 0
    layout = kdb.Layout()
    layout.read(str(tmp_path / "layout.gds"))
    cell = layout.top_cell()

    def drawn(layer):
        return kdb.Region(cell.begin_shapes_rec(layout.layer(layer, 0))).merged()

    gates = (drawn(1) & drawn(5)).bbox()
    about = kdb.Trans(kdb.Trans.M90) * kdb.Trans(-gates.left - gates.right, 0)
    metals = [drawn(layer) for layer in (8, 10, 30, 50, 67)]
    wrong = sum((metal ^ metal.transformed(about)).area() for metal in metals) / 2
    assert wrong <= 0.05 * sum(metal.area() for metal in metals)


def test_a_frame_with_ports_that_mirror_each_other_is_little_wider_than_the_modules():
    design = design_of(MIRRORS, "sky130A")
    placed, _ = with_ports(place_modules(design, OPTIONS), design, Room(0, {}))
    assert placed.frame.wiring.width() < 1.4 * placed.frame.core.width()


@pytest.mark.parametrize("technology", ["gf180mcuD", "sg13g2", "sky130A"])
def test_transistors_lie_at_the_rail_of_their_supply(technology):
    design = design_of(INVERTER, technology)
    for seed in (1, 2, 3):
        placed = place_modules(design, replace(OPTIONS, seed=seed))
        places = {item.kind: placed.place_of(item.module, item.module.bbox) for item in placed.drawn}
        assert places["pmos"].bottom > places["nmos"].top


FACING = """* two mirrors that load a pair and face each other
.subckt ota inp inn zo bias vdd vss
M0 bias bias vss vss nmos W=4u L=0.5u nf=2
M1 tail bias vss vss nmos W=4u L=0.5u nf=2
M2 x inp tail vss nmos W=8u L=0.5u nf=4
M3 y inn tail vss nmos W=8u L=0.5u nf=4
M4 x x vdd vdd pmos W=4u L=0.5u nf=2
M5 z x vdd vdd pmos W=8u L=0.5u nf=4
M6 y y vdd vdd pmos W=4u L=0.5u nf=2
M7 zo y vdd vdd pmos W=8u L=0.5u nf=4
M8 z z vss vss nmos W=4u L=0.5u nf=2
M9 zo z vss vss nmos W=4u L=0.5u nf=2
.ends
"""


@pytest.mark.parametrize("others", [{}, {"x": "a", "y": "b", "z": "c", "zo": "out", r"nf=\d": ""}])
def test_two_mirrors_that_face_each_other_are_placed_as_images(others):
    text = FACING
    for name, other in others.items():  # of nets; devices of one finger are split
        text = re.sub(rf"\b{name}\b", other, text)
    placed = place_modules(design_of(text, "sky130A"), OPTIONS)
    mirrors = [module for module in placed.modules.values() if {"M4", "M6"} & set(module.devices)]
    boxes = [placed.place_of(module, module.bbox) for module in mirrors]
    assert len(boxes) == 2
    for layer in placed.layout.layer_indexes():
        one, other = (kdb.Region(module.cell.begin_shapes_rec(layer)) for module in mirrors)
        assert (one ^ other).is_empty()
    assert boxes[0].transformed(kdb.Trans(kdb.Trans.M90, 2 * placed.placement.axis_x, 0)) == boxes[1]
