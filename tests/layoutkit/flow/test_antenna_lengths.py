"""Wires of nets with gates and no diffusion under antenna rules; lengths by arithmetic, wires by the router."""

import json
from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.circuit import map_circuit, read_netlist
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.net_wishes import antenna_lengths, hops_over_plates, with_antenna_wishes
from layoutkit.flow.port_frame import PortNet, plan_frame
from layoutkit.flow.routing_job import Endpoint, WantedNet
from layoutkit.route import NetRequest, Terminal, route
from layoutkit.route.router import cuts_of
from layoutkit.technology import load

WIDE = """* a small gate beside a wide capacitor
.subckt far_enable en out vdd vss
M1 out en vss vss sky130_fd_pr__nfet_01v8 w=0.84u l=0.15u
M2 out en vdd vdd sky130_fd_pr__pfet_01v8 w=0.84u l=0.15u
C1 out vss sky130_fd_pr__cap_mim_m3_1 w=30u l=60u
.ends
"""


def circuit(tmp_path, text):
    path = tmp_path / "circuit.spice"
    path.write_text(text)
    return path, read_netlist(str(path))


def test_only_a_net_without_diffusion_is_bounded_and_by_the_sidewalls_of_its_wires(tmp_path):
    technology = load("sky130A")
    _, read = circuit(tmp_path, WIDE)
    lengths = antenna_lengths(technology, read, technology.conductors[1:5])
    assert set(lengths) == {"en"}
    gates = 2 * 0.84 * 0.15  # um2
    # ANT.met1 and ANT.met3: 400 um2 of sidewall for 1 um2 of gate; two sidewalls of 0.36 and of 0.845 um
    assert lengths["en"]["met1"] == lengths["en"]["met2"] == round(400 * gates / (2 * 0.36) * 1000)
    assert lengths["en"]["met3"] == lengths["en"]["met4"] == round(400 * gates / (2 * 0.845) * 1000)


def test_a_net_with_diffusion_is_bounded_by_its_smallest_gate_until_that_is_connected(tmp_path):
    text = ".subckt a en out vss\nM1 mid en vss vss sg13_lv_nmos w=1u l=0.13u\n"
    text += "M2 out mid vss vss sg13_lv_nmos w=9u l=1u\nM3 out mid vss vss sg13_lv_nmos w=0.15u l=0.13u\n.ends\n"
    technology = load("sg13g2")
    metal2, read = technology.conductors[1], circuit(tmp_path, text)[1]
    driven = antenna_lengths(technology, read, [metal2], driven=True)
    assert driven == {"mid": {metal2.name: round(200 * 0.15 * 0.13 / 0.2 * 1000)}}
    assert set(antenna_lengths(technology, read, [metal2])) == {"en"}


def test_where_a_rule_counts_area_the_width_of_the_wire_bounds_its_length(tmp_path):
    technology = load("sg13g2")
    text = ".subckt a en out vss\nM1 out en vss vss sg13_lv_nmos w=1u l=0.13u\n.ends\n"
    metal2 = technology.conductors[1]
    lengths = antenna_lengths(technology, circuit(tmp_path, text)[1], [metal2])
    # Ant.b: 200 um2 of metal for 1 um2 of gate; Metal2 is 0.2 um wide
    assert lengths == {"en": {metal2.name: round(200 * 0.13 / 0.2 * 1000)}}


def test_a_wire_takes_another_layer_than_those_that_its_net_avoids():
    technology = load("sky130A")
    ends = tuple(Terminal("met3", kdb.Box(x - 200, -200, x + 200, 200)) for x in (0, 50000))
    area, layers = kdb.Box(-2000, -4000, 52000, 4000), ["met1", "met2", "met3", "met4"]

    def lengths(**wish):
        found = dict.fromkeys(layers, 0)
        for wire in route(technology, [NetRequest("en", ends, **wish)], {}, area, layers).net("en").wires:
            (x1, y1), (x2, y2) = wire.points[0], wire.points[-1]
            found[wire.layer] += abs(x1 - x2) + abs(y1 - y2)
        return found

    assert lengths()["met3"] > 45000
    avoiding = lengths(avoid_layers=("met3", "met4"))
    assert avoiding["met3"] + avoiding["met4"] < 3000
    assert avoiding["met1"] > 45000


def joined_to(box, layer, metal, cuts, layers):
    """Return the length of the metal of each of ``layers`` that is joined to a box through these layers only. [um]"""
    found = {name: kdb.Region() for name in layers}
    found[layer] = kdb.Region(box)
    while True:
        before = sum(region.merged().area() for region in found.values())
        for name in layers:
            found[name] += kdb.Region([kdb.Box(*rect) for at, rect in metal if at == name]).interacting(found[name])
        for low, high, cut in zip(layers, layers[1:], cuts, strict=False):
            both = cuts[cut].interacting(found[low]) + cuts[cut].interacting(found[high])
            for name in (low, high):
                found[name] += kdb.Region([kdb.Box(*rect) for at, rect in metal if at == name]).interacting(both)
        if sum(region.merged().area() for region in found.values()) == before:
            return {name: region.merged().perimeter() / 2000 for name, region in found.items()}


@pytest.mark.parametrize("above", [(), ("met3",), ("met3", "met4")])
@pytest.mark.parametrize("name", ["sky130A", "sg13g2", "gf180mcuD"])
def test_long_wires_reach_a_gate_only_through_a_hop_also_where_others_lie_above_it(name, above):
    technology = load(name)
    layers = [conductor.name for conductor in technology.conductors[1:5]]
    gate, port = kdb.Box(-300, -300, 300, 300), kdb.Box(60000, -300, 61000, 300)
    ends = Terminal(layers[0], gate), Terminal(layers[0], port)
    covered = {layers[int(each[-1]) - 1]: [(kdb.Box(-800, -2000, 800, 2000), "other")] for each in above}

    def wired(**wish):
        area = kdb.Box(-20000, -20000, 61000, 20000)
        return route(technology, [NetRequest("en", ends, **wish)], covered, area, layers).net("en")

    def joined(net, levels):
        cuts = {cut.name: kdb.Region() for cut in technology.cuts[1:5]}
        for cut, rect in cuts_of(technology, net):
            cuts[cut].insert(kdb.Box(*rect))
        return joined_to(gate, layers[0], net.metal, cuts, layers[:levels])

    hopping = wired(hop_layer=layers[3])
    assert max(joined(wired(), 4).values()) > 55
    assert max(joined(hopping, 3).values()) < 10
    assert joined(hopping, 4)[layers[3]] < 16
    assert max(joined(hopping, 4).values()) > 45


def test_a_net_hops_on_the_conductor_that_allows_most_where_none_allows_its_length():
    def wish(to, allowed):
        ends = tuple(Endpoint("m1", x, 0, (x, 0, x + 100, 100)) for x in (0, to))
        net = WantedNet("en", ends, None, 1)
        return with_antenna_wishes([net], {"en": allowed} if allowed else {}, ["m1", "m2", "m3", "m4"])[0]

    thin, thick = {"m1": 40000, "m2": 40000, "m3": 40000, "m4": 10000}, {"m1": 40000, "m2": 40000, "m3": 9000}
    assert wish(15000, thin).hop_layer is None
    assert wish(15000, thin).avoid_layers == ("m4",)
    assert wish(30000, thin).hop_layer == "m3"
    assert wish(30000, {**thin, "m4": 40000}).hop_layer == "m4"
    assert wish(30000, thick).hop_layer == "m3"
    assert wish(30000, {}).hop_layer is None
    ends = tuple(Endpoint("m1", x, 0, (x, 0, x + 100, 100)) for x in (0, 30000))
    nets = [WantedNet("mid", ends, None, 1)]
    hops = [
        with_antenna_wishes(nets, {}, ["m1", "m2", "m3"], {"mid": {"m3": at_most}})[0].hop_layer
        for at_most in (37000, 38000)
    ]
    assert hops == ["m3", None]  # 0.8 of 37 um is less than the 30.2 um of the pins' box


@pytest.mark.parametrize(("longest", "side"), [(None, "left"), (60000, "left"), (30000, "right")])
def test_the_port_of_a_small_gate_lies_at_the_nearest_side_where_its_wire_would_be_too_long(longest, side):
    technology = load("sky130A")
    core = kdb.Box(0, 0, 50000, 40000)
    gate = PortNet("en", (kdb.Box(45000, 20000, 45200, 20200),), direction="input", longest=longest)
    frame = plan_frame(technology, core, [gate], 1000, "rails")
    assert [port.side for port in frame.ports] == [side]


def test_the_port_of_a_small_gate_lies_before_it_and_the_channel_counts_as_wire():
    technology = load("sky130A")
    core = kdb.Box(0, 0, 50000, 40000)
    nets = [PortNet(f"n{i}", (kdb.Box(100, 39000, 300, 39200),), side="top") for i in range(5)]
    gate = PortNet("en", (kdb.Box(20000, 38000, 20200, 38200),), direction="input", longest=22000)

    def places(channel, longest):
        wanted = [*nets, replace(gate, longest=longest)]
        ports = {port.name: port for port in plan_frame(technology, core, wanted, channel, "rails").ports}
        return ports["en"].side, ports["en"].pin.center().x

    assert places(1000, 60000)[0] == places(1000, 22000)[0] == "left"  # 20.4 um inside, and the channel
    assert places(8000, 22000)[0] == "top"
    assert abs(places(8000, 22000)[1] - 20100) < 2000


def test_a_build_keeps_the_wires_of_small_gates_off_thick_metal(tmp_path):
    path, _ = circuit(tmp_path, WIDE)
    build_layout(LayoutRequest(str(path), "sky130A", str(tmp_path / "w"), last_stage="place"))
    nets = {net["name"]["at"][0]: net for net in json.loads((tmp_path / "w/placement.json").read_text())["job"]["nets"]}
    assert nets["en"]["avoid_layers"] == ["met3", "met4"]
    assert not nets["out"].get("avoid_layers")


HELD = """* the plates of a capacitor and two small gates, without diffusion
.subckt held out bottom vdd vss
C1 {ends} {model} w=30u l={length}u
M1 out top vss vss sky130_fd_pr__nfet_01v8 w=0.84u l=0.15u
M2 out top vdd vdd sky130_fd_pr__pfet_01v8 w=0.84u l=0.15u
.ends
"""


@pytest.mark.parametrize("ends", ["top bottom", "bottom top"])
def test_plates_that_charge_a_gate_too_much_are_joined_to_it_above_them(tmp_path, ends):
    technology = load("sky130A")

    def hops(length, model="sky130_fd_pr__cap_mim_m3_1"):
        text = HELD.format(ends=ends, model=model, length=length)
        return hops_over_plates(technology, map_circuit(circuit(tmp_path, text)[1], technology))

    # 400 um2 of sidewall, 0.845 um high, for each um2 of 2 * 0.84 * 0.15 um2: 0.8 of it are 95.4 um of circumference
    assert hops(17.6) == {}
    assert hops(17.8) == {"top": "met5"}
    assert hops(100, "sky130_fd_pr__cap_mim_m3_2") == {}  # its plates are met5, above which nothing is


def test_a_build_joins_large_plates_to_small_gates_through_a_hop(tmp_path):
    path, _ = circuit(tmp_path, HELD.format(ends="top bottom", model="sky130_fd_pr__cap_mim_m3_1", length=35))
    report = build_layout(LayoutRequest(str(path), "sky130A", str(tmp_path / "w"), last_stage="lvs"))
    assert report["drc"]["total_violations"] == 0
    assert report["lvs"]["matched"]
