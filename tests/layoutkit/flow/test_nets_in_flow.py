"""Nets that should be mirror images, equally long, shielded or apart: what the whole flow draws and says of them."""

import json
import re
from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.flow import pair_loads, pair_shapes, placing
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.existing_metal import MetalInCell
from layoutkit.flow.matched_wires import MirroredNets, measured_mirrors
from layoutkit.flow.pair_shapes import PairShapes, PlacedCell
from layoutkit.flow.routing import find_routes, loading, metal_around, width_for_current
from layoutkit.flow.routing_job import Endpoint, RoutingJob, WantedNet
from layoutkit.flow.stage_record import Surroundings, from_data
from layoutkit.flow.summary import faults
from layoutkit.layout import files
from layoutkit.parasitics.parasitic_extraction import PexOptions, extract_parasitics
from layoutkit.route.metal import wire_rects
from layoutkit.route.net_flows import Draw
from layoutkit.technology import load

SKY = load("sky130A")
LARGEST_MISMATCH = 0.02

COMPARATOR = """* clocked comparator: PMOS pair, cross-coupled NMOS, two inverters
.subckt comparator vdd gnd inp inn clk outp outn vbias
XM2 b inp top vdd sg13_lv_pmos w=8u l=200n ng=2 m=4
XM1 a inn top vdd sg13_lv_pmos w=8u l=200n ng=2 m=4
XM4 outn a vdd vdd sg13_lv_pmos w=8u l=0.2u ng=2 m=1
XM5 outp b vdd vdd sg13_lv_pmos w=8u l=0.2u ng=2 m=1
XM11 outp b gnd gnd sg13_lv_nmos w=4u l=0.2u ng=2 m=1
XM12 outn a gnd gnd sg13_lv_nmos w=4u l=0.2u ng=2 m=1
XM6 b a gnd gnd sg13_lv_nmos w=4u l=0.2u ng=1 m=1
XM8 a b gnd gnd sg13_lv_nmos w=4u l=0.2u ng=1 m=1
XM13 top clk mid vdd sg13_lv_pmos w=18u l=0.3u ng=4 m=1
XM9 mid vbias vdd vdd sg13_lv_pmos w=18u l=0.3u ng=4 m=1
.ends
"""
STAGE = """* a pair with a cross-coupled load
.subckt stage inp inn outp outn bias vdd vss
M1 outn inp tail vss nmos W=4u L=0.5u nf=2
M2 outp inn tail vss nmos W=4u L=0.5u nf=2
M5 tail bias vss vss nmos W=4u L=0.5u nf=2
M3 outn outp vdd vdd pmos W=2u L=0.5u
M4 outp outn vdd vdd pmos W=2u L=0.5u
.ends
"""
STRONGARM = """* a latched comparator whose clock comes from one side
.subckt strongarm in1 in2 out_p out_n ckb vdd gnd
MT t ckb vdd vdd pmos W=8u L=0.18u nf=4
M1 x1 in1 t vdd pmos W=8u L=0.18u nf=4
M2 x2 in2 t vdd pmos W=8u L=0.18u nf=4
M3 out_n out_p x1 vdd pmos W=4u L=0.18u nf=2
M4 out_p out_n x2 vdd pmos W=4u L=0.18u nf=2
M5 out_n out_p gnd gnd nmos W=2u L=0.18u nf=2
M6 out_p out_n gnd gnd nmos W=2u L=0.18u nf=2
M7 out_n ckb gnd gnd nmos W=1u L=0.18u
M8 out_p ckb gnd gnd nmos W=1u L=0.18u
M9 x1 ckb gnd gnd nmos W=1u L=0.18u
M10 x2 ckb gnd gnd nmos W=1u L=0.18u
.ends
"""
AMPLIFIER = """* a pair with a mirror
.subckt amplifier inp inn out bias vdd vss
M1 tmir inp tail vss nmos W=8u L=0.5u nf=4
M2 out inn tail vss nmos W=8u L=0.5u nf=4
M3 tmir tmir vdd vdd pmos W=12u L=0.5u nf=4
M4 out tmir vdd vdd pmos W=12u L=0.5u nf=4
M5 tail bias vss vss nmos W=8u L=1u nf=4
M6 bias bias vss vss nmos W=4u L=1u nf=2
.ends
"""
RESISTIVE = """* a pair with resistors of two bars as loads
.subckt resistive inp inn outp outn bias vdd vss
M1 outn inp t vss nmos W=10u L=0.5u nf=4
M2 outp inn t vss nmos W=10u L=0.5u nf=4
MT t bias vss vss nmos W=10u L=1u nf=4
MB bias bias vss vss nmos W=5u L=1u nf=2
RL1 vdd outn 20k
RL2 vdd outp 20k
.ends
"""
BUFFERS = """* two chains of two inverters
.subckt buffers a b x y vdd vss
M1 n1 a vss vss nmos W=2u L=0.5u
M2 n2 b vss vss nmos W=2u L=0.5u
M3 n1 a vdd vdd pmos W=4u L=0.5u
M4 n2 b vdd vdd pmos W=4u L=0.5u
M5 x n1 vss vss nmos W=4u L=0.5u nf=2
M6 y n2 vss vss nmos W=4u L=0.5u nf=2
M7 x n1 vdd vdd pmos W=6u L=0.5u nf=2
M8 y n2 vdd vdd pmos W=6u L=0.5u nf=2
.ends
"""


def build(folder, text, technology, constraints=None):
    (folder / "in.spice").write_text(text, encoding="utf-8")
    more = {"last_stage": "lvs"}
    if constraints is not None:
        (folder / "constraints.json").write_text(json.dumps(constraints), encoding="utf-8")
        more["constraints"] = str(folder / "constraints.json")
    return build_layout(LayoutRequest(str(folder / "in.spice"), technology, str(folder / "ws"), **more))


@pytest.fixture(scope="module")
def comparator(tmp_path_factory):
    return build(tmp_path_factory.mktemp("comparator"), COMPARATOR, "sg13g2")


def test_pairs_of_a_comparator_are_mirror_images_or_say_how_little_they_differ(comparator):
    assert faults(comparator) == []
    pairs = [entry for entry in comparator["routing"]["mirrored"] if len(entry["nets"]) == 2]
    assert len(pairs) == 3
    for pair in pairs:
        assert pair["exact"] or pair["reason"]
        assert pair["mismatch"]["length"] <= 0.02, pair
        assert pair["mismatch"]["vias"] <= 0.02, pair
    assert any(pair["exact"] for pair in pairs)


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Return what the flow reports of the stage, and its workspace."""
    folder = tmp_path_factory.mktemp("stage")
    return build(folder, STAGE, "generic"), folder / "ws"


def test_capacitances_of_pairs_are_those_of_extraction_and_nearly_equal(stage):
    """The oracle extracts the layout that was written."""
    report, workspace = stage
    assert faults(report) == []
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    circuit = read_netlist(workspace / "circuit.json")
    found = extract_parasitics(layout, circuit, load("generic"), PexOptions("c"))
    nets = {net.net: net.total_fF for net in found.nets}
    pairs = [entry for entry in report["routing"]["mirrored"] if len(entry["nets"]) == 2]
    assert pairs
    assert not any(pair["exact"] for pair in pairs)
    for pair in pairs:
        whole = [nets[name] for name in pair["nets"]]
        assert pair["total_ff"] == pytest.approx(whole, rel=0.005)
        assert 1 - min(whole) / max(whole) <= LARGEST_MISMATCH


@pytest.fixture
def unequal(stage):
    """Return the placed cell of the stage, the job and the routes before metal was added, and what keeps the cell."""
    technology = load("generic")
    layout = files.read_layout(stage[1] / "placed.gds")
    data = json.loads((stage[1] / "placement.json").read_text(encoding="utf-8"))
    tried = from_data(data, Surroundings(technology, layout))
    cell = tried.placed.cell
    return cell, tried.job, find_routes(layout, cell, tried.job), layout


def test_without_added_metal_pairs_that_are_no_images_differ(unequal, monkeypatch):
    monkeypatch.setattr(pair_loads, "MOST_ROUNDS", 0)
    cell, job, wired, _ = unequal
    routes = pair_loads.with_equal_pairs(MetalInCell(cell, job), job, wired)
    pairs = [pair for pair in routes.mirrored if len(pair.nets) == 2]
    assert max(1 - min(pair.totals) / max(pair.totals) for pair in pairs) > LARGEST_MISMATCH
    assert all("no room" in pair.text for pair in pairs if pair.lacks)
    for before, now in zip(wired.result.nets, routes.result.nets, strict=True):
        assert (now.wires, now.vias) == (before.wires, before.vias)
        removed = {(stub.layer, rect) for stub in before.stubs for rect in wire_rects(stub)}
        gone = {(patch.layer, patch.rect) for patch in {*before.patches} - {*now.patches}}
        assert {*now.patches} <= {*before.patches}
        assert gone in (set(), removed)


def test_stubs_that_the_router_gave_the_heavier_net_of_a_pair_are_removed_first(unequal, monkeypatch):
    cell, job, before, _ = unequal
    heavy = next(pair.nets[0] for pair in before.mirrored if pair.nets == ("inp", "inn"))
    monkeypatch.setattr(pair_loads, "MOST_ROUNDS", 0)
    metal = MetalInCell(cell, job)
    nets = loading(job, before, metal_around(metal, before)[0])
    net = nets.net(heavy)
    net.add_load(4 * net.load())
    assert nets.stubs[heavy]
    after = pair_loads.with_equal_pairs(metal, job, replace(before, result=nets.result()))
    assert after.result.net(heavy).stubs == ()
    assert len(after.result.net(heavy).patches) < len(nets.result().net(heavy).patches)
    measured = dict(
        zip(("inp", "inn"), next(p.totals for p in after.mirrored if p.nets == ("inp", "inn")), strict=True)
    )
    anew = PairShapes(
        PlacedCell(cell, job.technology, *metal_around(metal, after)), after.result, tuple(measured)
    ).totals
    assert measured == pytest.approx(anew, rel=1e-9)


def test_a_pair_whose_wires_are_images_keeps_them_where_its_modules_load_it_unequally(tmp_path):
    """The oracle extracts the layout that was written: the inputs differ by 3 %, which is reported."""
    pairs = [["M1", "M2"], ["M3", "M4"]]
    constraints = {
        "matching": [*({"devices": pair, "arrangement": "ABBA"} for pair in pairs), {"devices": ["M6", "M5"]}],
        "symmetry": [{"pairs": pairs, "net_pairs": [["inp", "inn"], ["tmir", "out"]], "self_symmetric": ["M5"]}],
    }
    report = build(tmp_path, AMPLIFIER, "gf180mcuD", constraints)
    assert faults(report) == []
    technology, layout = load("gf180mcuD"), kdb.Layout()
    layout.read(str(tmp_path / "ws" / "layout.gds"))
    circuit = read_netlist(tmp_path / "ws" / "circuit.json")
    nets = {net.net: net.total_fF for net in extract_parasitics(layout, circuit, technology, PexOptions("c")).nets}
    whole = nets["inp"], nets["inn"]
    assert 1 - min(whole) / max(whole) > LARGEST_MISMATCH
    (found,) = [entry for entry in report["routing"]["mirrored"] if entry["nets"] == ["inp", "inn"]]
    assert (found["exact"], found["wires_error"]) == (True, 0.0)
    assert found["total_ff"] == pytest.approx(whole, rel=0.005)


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
def test_outputs_on_resistors_are_measured_with_the_wires_inside_these(tmp_path, technology):
    """The oracle extracts the layout that was written, where wires between bars count to the ends of a resistor."""
    report = build(tmp_path, RESISTIVE, technology)
    assert faults(report) == []
    layout = kdb.Layout()
    layout.read(str(tmp_path / "ws" / "layout.gds"))
    circuit = read_netlist(tmp_path / "ws" / "circuit.json")
    nets = {
        net.net: net.total_fF for net in extract_parasitics(layout, circuit, load(technology), PexOptions("c")).nets
    }
    (found,) = [entry for entry in report["routing"]["mirrored"] if entry["nets"] == ["outn", "outp"]]
    assert found["total_ff"] == pytest.approx([nets["outn"], nets["outp"]], rel=0.002)


def test_a_clock_is_routed_again_where_it_couples_to_one_of_two_mirrored_nets_only(tmp_path, monkeypatch):
    """The oracle extracts the layout that was written, and what the first routes had is what makes the case.

    So it is in a second build, with other widths, which keeps the places of the first.
    """
    first = []
    decide = placing.with_pairs_apart

    def watched(metal, job, routes, lacks):
        first.append({pair.nets: pair.unlike_coupling / max(pair.totals) for pair in routes.mirrored if pair.totals})
        return decide(metal, job, routes, lacks)

    monkeypatch.setattr(placing, "with_pairs_apart", watched)
    wide, wider = (re.sub(r"^(M(?:9|10) .*)W=1u", rf"\1W={w}", STRONGARM, flags=re.MULTILINE) for w in ("1.2u", "1.3u"))
    assert faults(build(tmp_path, wide, "sky130A")) == []
    _check_that_pairs_load_alike(tmp_path / "ws", first[0])
    again = build_layout(
        LayoutRequest(netlist_text=wider, workspace=str(tmp_path / "ws"), first_stage="place", last_stage="lvs")
    )
    assert faults(again) == []
    assert again["placement"]["earlier_places"]["redrawn"] == ["nmos_M10", "nmos_M9"]
    assert len(first) == 2
    _check_that_pairs_load_alike(tmp_path / "ws", first[1])


def _check_that_pairs_load_alike(workspace, before):
    """Compare the nets of pairs in a layout of STRONGARM; ``before`` has what the first routes coupled unlike."""
    assert max(before.values()) > LARGEST_MISMATCH
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    circuit = read_netlist(workspace / "circuit.json")
    nets = {net.net: net for net in extract_parasitics(layout, circuit, load("sky130A"), PexOptions("c")).nets}
    for pair in before:
        one, other = (nets[name] for name in pair)
        to_signals = sum(abs(one.coupling_fF.get(s, 0.0) - other.coupling_fF.get(s, 0.0)) for s in ("ckb", "t"))
        assert to_signals <= LARGEST_MISMATCH * max(one.total_fF, other.total_fF), pair
        assert abs(one.total_fF - other.total_fF) <= LARGEST_MISMATCH * max(one.total_fF, other.total_fF), pair


@pytest.mark.parametrize(("totals", "told"), [((10.0, 9.9), False), ((10.0, 9.7), True), ((), False)])
def test_images_that_modules_load_unequally_say_how_much_they_differ(totals, told):
    both = (100, 100)
    pair = MirroredNets(("p", "n"), True, "", both, both, both, (1.0, 1.0), 0.0, 0.0, totals)
    assert ("their capacitance differs by 3.00%" in pair.text) == told


@pytest.mark.parametrize("known", [True, False])
def test_nets_on_which_different_devices_hang_are_neither_measured_nor_changed(unequal, monkeypatch, known):
    """The netlist states the devices on a net. Where no netlist is known, the drawing does."""
    monkeypatch.setattr(PairShapes, "drives_alike", lambda *_: known)
    monkeypatch.setattr(pair_shapes, "capacitances", lambda *_: pytest.fail("measured"))
    cell, job, wired, _ = unequal
    job = replace(job, nets=tuple(replace(net, load=(net.name,) if known else None) for net in job.nets))
    routes = pair_loads.with_equal_pairs(MetalInCell(cell, job), job, wired)
    assert routes.result == wired.result
    for pair in routes.mirrored:
        if len(pair.nets) == 2:
            assert pair_loads.UNLIKE in pair.reason
            assert pair.totals == ()
            assert not pair.alike


def test_gates_and_channels_tell_nets_with_different_devices_apart(unequal):
    cell, job, routes, _ = unequal
    metal, passives = metal_around(MetalInCell(cell, job), routes)
    shapes = PairShapes(
        PlacedCell(cell, job.technology, metal, passives), routes.result, ("inp", "inn", "outp", "outn", "bias")
    )
    assert shapes.drives_alike("inp", "inn")
    assert shapes.drives_alike("outp", "outn")
    assert not shapes.drives_alike("inp", "outp")  # drains and other gates
    assert not shapes.drives_alike("bias", "outp")


def test_no_foreign_metal_lies_over_matched_gates_of_a_comparator(comparator):
    """Supplies become as narrow as their rails before they cross matched gates."""
    assert comparator["routing"]["unequal_metal"] == []


def test_few_vias_have_one_cut_and_each_says_why(comparator):
    routing = comparator["routing"]
    assert len(routing["single_cuts"]) <= 0.05 * routing["via_count"]
    assert all(single["reason"] for single in routing["single_cuts"])


def test_lengths_shields_and_separations_of_a_file_are_drawn_and_reported_with_figures(tmp_path):
    wishes = {
        "net_lengths": [{"nets": ["n1", "n2"], "tolerance": 0.02}],
        "net_shields": [{"net": "a", "shield": "vss"}],
        "net_separations": [{"nets": ["b", "y"]}],
    }
    report = build(tmp_path, BUFFERS, "sky130A", wishes)
    assert faults(report) == []
    found = {entry["constraint"]: entry for entry in report["constraints"]["outcomes"]}
    assert found["net_lengths[0]"]["obeyed"], found["net_lengths[0]"]
    assert "they differ by" in found["net_lengths[0]"]["reason"]
    assert "have vss at both sides" in found["net_shields[0]"]["reason"]
    assert "side by side" in found["net_separations[0]"]["reason"]


def test_the_exact_pair_of_a_comparator_is_exact_in_the_finished_layout(comparator):
    """KLayout traces the whole nets of the outputs, which lie in modules that mirror each other."""
    technology = load("sg13g2")
    layout = kdb.Layout()
    layout.read(comparator["files"]["gds"])
    cell = layout.top_cell()
    trace = kdb.LayoutToNetlist(kdb.RecursiveShapeIterator(layout, cell, []))
    metal = {c.name: trace.make_layer(technology.layer(layout, c.layer), c.name) for c in technology.conductors}
    for layer in metal.values():
        trace.connect(layer)
    for cut in technology.cuts:
        via = trace.make_layer(technology.layer(layout, cut.layer), cut.name)
        trace.connect(via)
        trace.connect(metal[cut.below], via)
        trace.connect(via, metal[cut.above])
    for conductor in technology.conductors:
        labels = trace.make_text_layer(technology.layer(layout, conductor.label_layer), f"{conductor.name} names")
        trace.connect(metal[conductor.name], labels)
    trace.extract_netlist()
    circuit = trace.netlist().circuit_by_name(cell.name)
    nets = {net.name: net for net in circuit.each_net()}
    (pair,) = [e for e in comparator["routing"]["mirrored"] if set(e["nets"]) == {"outp", "outn"}]
    axis = round(comparator["placement"]["axis_x"] / layout.dbu)
    mirror = kdb.Trans(kdb.Trans.M90) * kdb.Trans(0, 0)
    differs = sum(
        (
            trace.shapes_of_net(nets["outp"], layer, True).transformed(mirror).moved(2 * axis, 0)
            ^ trace.shapes_of_net(nets["outn"], layer, True)
        ).area()
        for layer in metal.values()
    )
    assert pair["exact"] is (differs == 0 or pair["mirror_error"] > 0)
    assert (differs == 0) is (pair["mirror_error"] == 0)


def mirrored_pair():
    """Return a cell with pins of two nets at both sides of x = 0, and the nets, of which one carries more current."""
    layout = kdb.Layout()
    layout.dbu = SKY.dbu_um
    cell = layout.create_cell("TOP")
    nets = []
    for name, sign, current in (("p", -1, 2e-3), ("n", 1, 0.5e-3)):
        ends = []
        for x, y in ((3000 * sign, 0), (6000 * sign, 8000)):
            rect = (x - 1500, y - 500, x + 1500, y + 500)
            cell.shapes(SKY.layer(layout, "met2")).insert(kdb.Box(*rect))
            ends.append(Endpoint("met2", x, y, rect))
        nets.append(WantedNet(name, tuple(ends), None, 1, current=current))
    pair = nets[0], replace(nets[1], mirror_of="p")
    area = kdb.Box(-12000, -6000, 12000, 14000)
    return layout, cell, RoutingJob(SKY, pair, ("met2", "met3"), area, (), axis_x=0)


def test_nets_of_different_currents_mirror_each_other_as_wide_as_the_larger_current_needs():
    layout, cell, job = mirrored_pair()
    routes = find_routes(layout, cell, job)
    assert [(each.nets, each.exact, each.wires_error) for each in routes.mirrored] == [(("p", "n"), True, 0)]
    needed = {net.name: width_for_current(job, net)[0] for net in job.nets}
    assert needed["p"] > needed["n"]
    assert {wire.width for net in routes.result.nets for wire in net.wires} == {needed["p"]}


def test_an_endpoint_that_states_more_than_the_current_of_its_net_draws_that_current():
    layout = kdb.Layout()
    layout.dbu = SKY.dbu_um
    cell = layout.create_cell("two_rails")
    rails = [(-5000, -250, 5000, 250), (35000, 19750, 45000, 20250)]
    for rail in rails:
        cell.shapes(SKY.layer(layout, "met2")).insert(kdb.Box(*rail))

    def routed(milliamperes):
        draw = Draw(milliamperes, milliamperes)
        ends = tuple(Endpoint("met2", (a + c) // 2, (b + d) // 2, (a, b, c, d), draw) for a, b, c, d in rails)
        net = WantedNet("n", ends, None, 1, current=0.004)
        return find_routes(layout, cell, RoutingJob(SKY, (net,), ("met1", "met2", "met3"), None, ())).result

    assert routed(100) == routed(4)


def test_nets_that_are_no_images_when_all_is_drawn_are_not_called_exact():
    layout, cell, job = mirrored_pair()
    result = find_routes(layout, cell, job).result
    net = result.net("n")
    moved = replace(net, metal=tuple((layer, (a + 5, b, c + 5, d)) for layer, (a, b, c, d) in net.metal))
    (found,) = measured_mirrors(SKY, replace(result, nets=(result.net("p"), moved)), 0, {})
    assert not found.exact
    assert found.reason
    assert found.wires_error > 0


def test_vias_have_room_for_their_current_where_usual_wires_carry_it(tmp_path):
    """In sg13g2 a wire of a supply carries 1.125 mA, and a cut of Via2 0.4 mA: a third cut fits at some places only."""
    mirror = """.subckt mir iref iout vss
M1 iref iref vss vss n w=5u l=1u nf=2
M2 iout iref vss vss n w=40u l=1u nf=16
.ends
"""
    loads = {"iref": 0.125e-3, "iout": 1e-3, "vss": 1.125e-3}
    constraints = {
        "matching": [{"devices": ["M1", "M2"], "arrangement": "auto"}],
        "net_priorities": [{"net": net, "priority": 2 + i} for i, net in enumerate(("iout", "iref", "vss"))],
        "net_currents": [{"net": net, "current": current} for net, current in loads.items()],
    }
    assert faults(build(tmp_path, mirror, "sg13g2", constraints)) == []
