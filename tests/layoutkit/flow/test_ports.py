"""Ports at the boundary of a cell, rails and rings of its supplies, judged by KLayout's geometry."""

import re
from dataclasses import replace
from pathlib import Path

import klayout.db as kdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from layoutkit.drc.check import check
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.placing import find_placement, place_modules
from layoutkit.flow.port_frame import PortNet, draw_frame, plan_frame, port_conductors
from layoutkit.flow.ports import with_ports
from layoutkit.flow.room import Room
from layoutkit.flow.summary import faults
from layoutkit.place import PlacementOptions
from layoutkit.technology import load
from thorough import processes

OTA = Path(__file__).parents[3] / "skills/netlist-to-gds/assets/ota_5t.spice"
SIDES = ("left", "right", "bottom", "top")


def edges(box, boundary):
    """Return the sides of the boundary that a box inside of it touches."""
    assert box.inside(boundary)
    return {side for side in SIDES if getattr(box, side) == getattr(boundary, side)}


def written_ports(path, process):
    """Return what a file says: its boundary, and port -> conductor, pin boxes and metal below its label."""
    layout = kdb.Layout()
    layout.read(str(path))
    top = layout.top_cell()
    outline = process.role("boundary")
    boundary = top.bbox(process.layer(layout, outline)) if outline else top.bbox()
    found = {}
    for conductor in process.conductors:
        metal = kdb.Region(top.begin_shapes_rec(process.layer(layout, conductor.layer))).merged()
        pins = kdb.Region(top.shapes(process.layer(layout, conductor.pin_layer))) if conductor.pin_layer else metal
        for shape in top.shapes(process.layer(layout, conductor.label_layer)).each(kdb.Shapes.STexts):
            spot = kdb.Region(kdb.Box(shape.text.x - 1, shape.text.y - 1, shape.text.x + 1, shape.text.y + 1))
            pin = pins.interacting(spot)
            assert not pin.is_empty(), shape.text
            assert (pin - metal).is_empty()
            found[shape.text.string] = (conductor.name, pin.bbox(), pins.is_empty())
    return boundary, found


def modules(path, process):
    """Return the box of all diffusion in a file."""
    layout = kdb.Layout()
    layout.read(str(path))
    layers = {process.layer(layout, process.resolve(role)) for role in ("active", "tap")}
    return sum((layout.top_cell().bbox(layer) for layer in sorted(layers)), kdb.Box())


# A ring is drawn from the same rules as rails; test_a_frame_keeps_the_rules_... draws it in every process.
@pytest.mark.parametrize(
    ("supplies", "technology"), [*(("rails", name) for name in processes()), ("ring", "sky130A"), ("ring", "sg13g2")]
)
def test_every_port_of_a_cell_lies_at_its_boundary_and_is_a_pin(tmp_path, technology, supplies):
    wanted = [{"port": "out", "side": "top"}, {"port": "bias", "side": "left"}]
    request = LayoutRequest(str(OTA), technology, str(tmp_path), supplies=supplies, constraints={"port_sides": wanted})
    seed = 3 if technology == "sky130A" else 1  # one with which a rail has room over modules
    report = build_layout(replace(request, last_stage="lvs", seed=seed))
    assert faults(report) == []
    process = load(technology)
    boundary, found = written_ports(report["files"]["gds"], process)
    assert set(found) == {"inp", "inn", "out", "bias", "vdd", "vss"}
    conductors = {conductor.name for conductor in port_conductors(process)}
    wired = process.conductors[1:5]  # rails may lie over modules, on a conductor above those of the other ports
    rails = {each.name for each in wired if each.pin_layer or not any(c.pin_layer for c in process.conductors)}
    for name, (conductor, box, _) in found.items():
        assert edges(box, boundary), name
        assert conductor in (rails if name in {"vdd", "vss"} else conductors)
    if supplies == "rails":
        over = [(box & modules(report["files"]["gds"], process)).height() for box in (found["vdd"][1], found["vss"][1])]
        assert max(over) * process.dbu_um >= 0.7, over  # beside the modules they reach their tap rings only
    assert "top" in edges(found["out"][1], boundary)
    assert "left" in edges(found["bias"][1], boundary)
    listed = report["placement"]["ports"]
    assert {port["port"] for port in listed} == set(found)
    assert all(port["at_boundary"] for port in listed)
    least = {(port["port"], port["side"]): min(port["pin"][2] - port["pin"][0], port["pin"][3] - port["pin"][1])
             for port in listed if port["use"] != "signal"}  # fmt: skip
    sides = SIDES if supplies == "ring" else ("bottom", "top")
    assert {side for _, side in least} == set(sides)
    assert min(least.values()) >= 1.0 - 1e-9
    joined = {entry["net"]: entry for entry in report["routing"]["supplies"]}
    assert set(joined) == {"vdd", "vss"}
    assert all(each["routed"] and each["modules"] and each["rail_width"] >= 1 for each in joined.values())
    assert all(each["least_cuts"] != 1 for each in joined.values()), joined
    lef = Path(report["files"]["lef"]).read_text(encoding="utf-8")
    assert set(re.findall(r"  PIN (\S+)\n", lef)) == set(found)
    assert f"# layout_sha256={report['layout_sha256']}" in lef
    directions = {port["port"]: port["direction"] for port in listed}
    assert (directions["inp"], directions["inn"], directions["out"]) == ("input", "input", "output")


@settings(max_examples=25)
@given(
    technology=st.sampled_from(["sky130A", "gf180mcuD", "sg13g2", "generic"]),
    sides=st.lists(st.sampled_from([*SIDES, None]), min_size=1, max_size=12),
    order=st.permutations(range(12)),
    style=st.sampled_from(["rails", "ring", "ports"]),
    size=st.tuples(st.integers(200, 4000), st.integers(200, 4000)),
    current=st.sampled_from([None, 0.002]),
)
def test_a_frame_keeps_the_rules_for_all_sides_orders_and_supplies(technology, sides, order, style, size, current):
    process = load(technology)
    core = kdb.Box(0, 0, size[0] * process.grid, size[1] * process.grid)
    middle = (kdb.Box(core.center(), core.center()),)
    nets = [PortNet(f"s{i}", middle, side=side, order=order[i]) for i, side in enumerate(sides)]
    nets += [PortNet("vdd", middle, "power", current=current), PortNet("vss", middle, "ground", current=current)]
    frame = plan_frame(process, core, nets, 1000, style)
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    cell = layout.create_cell("frame")
    draw_frame(layout, cell, process, frame)
    violations = check(layout, cell, process).summary()["violations"]
    assert [v["rule_id"] for v in violations] == []
    assert {port.name for port in frame.ports} == {net.name for net in nets}
    metal = {}
    for port in frame.ports:
        assert port.side in edges(port.pin, frame.boundary) or port.rail
        assert edges(port.pin, frame.boundary)
        assert not port.box.overlaps(core)
        for other in metal.setdefault(port.layer, []):
            assert other.name == port.name or not other.box.touches(port.box)
        metal[port.layer].append(port)
    for side in SIDES:
        along = "y" if side in {"left", "right"} else "x"
        here = [(getattr(p.pin.center(), along), p.name) for p in frame.ports if p.side == side and not p.rail]
        steps = [b - a for (a, _), (b, _) in zip(sorted(here), sorted(here)[1:], strict=False)]
        assert not steps or max(steps) - min(steps) <= 2 * process.grid
        kept = [order[int(name[1:])] for _, name in sorted(here) if name.startswith("s")]
        assert kept == sorted(kept)
    for index, side in enumerate(sides):
        assert side is None or {port.side for port in frame.of(f"s{index}")} == {side}


@settings(max_examples=25)
@example(technology="sky130A", bars=[(0, "vdd", 92, 6), (1, "vdd", 92, 6)], ports=0)
@given(
    technology=st.sampled_from(["sky130A", "gf180mcuD", "sg13g2", "generic"]),
    bars=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from(["vdd", "vss", "x", ""]), st.integers(0, 99), st.integers(6, 99)),
        max_size=8,
    ),
    ports=st.integers(0, 5),
)
def test_rails_lie_over_modules_as_far_as_their_metal_leaves_room(technology, bars, ports):
    process = load(technology)
    core = kdb.Box(0, 0, 20000, 10000)
    conductors = [each for each in process.conductors[1:5] if each.name in rail_conductors(process)]
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    cell = layout.create_cell("core")
    metal = {conductor.name: {} for conductor in conductors}
    for index, (level, net, low, length) in enumerate(bars):
        conductor = conductors[min(level, len(conductors) - 1)]
        bottom = min(low * 100, core.top - length * 100)
        bar = kdb.Box(500 + 2400 * index, bottom, 1500 + 2400 * index, bottom + length * 100)
        cell.shapes(process.layer(layout, conductor.layer)).insert(bar)
        metal[conductor.name].setdefault(net, kdb.Region()).insert(bar)

    def metal_in(conductor, box):
        return {net: region & kdb.Region(box) for net, region in metal[conductor.name].items()}

    middle = (kdb.Box(core.center(), core.center()),)
    nets = [PortNet(f"s{i}", middle) for i in range(ports)]
    nets += [PortNet("vdd", middle, "power"), PortNet("vss", middle, "ground")]
    frame = plan_frame(process, core, nets, 1000, "rails", metal_in)
    draw_frame(layout, cell, process, frame)
    assert check(layout, cell, process).summary()["violations"] == []
    for port in frame.ports:
        assert port.box.inside(frame.boundary)
        around = kdb.Region(port.box)
        assert all(r.interacting(around).is_empty() for n, r in metal.get(port.layer, {}).items() if n != port.name)
        assert not any(p.layer == port.layer and p.name != port.name and p.box.touches(port.box) for p in frame.ports)
        if port.rail:
            own = metal.get(port.layer, {}).get(port.name, kdb.Region())
            assert own.inside(around).is_empty()
            assert min(port.box.width(), port.box.height()) == 1000
            overlap = port.box & core
            free = [c.name for c in conductors if not metal[c.name]]
            assert overlap.height() == 1000 or not free


@pytest.mark.parametrize("sides", [("bottom", "top"), ("left", "right")])
@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
def test_rails_keep_the_spaces_that_the_plates_of_capacitors_ask(technology, sides):
    """capm.11 of sky130A, MIMTM.1 of gf180mcuD, M5.f of sg13g2: keepouts around plates reach beyond the modules."""
    process = load(technology)
    wanted = [{"port": port, "side": side} for port, side in zip(("vss", "vdd"), sides, strict=True)]
    text = ".subckt decoupling vdd vss\nC1 vdd vss 0.2p\n.ends\n"
    request = LayoutRequest(netlist_text=text, technology=technology, constraints={"port_sides": wanted})
    design, _ = make_design(request, process, read_circuit(request, process)[0])
    framed, _ = with_ports(place_modules(design, PlacementOptions()), design, Room(0, {}))
    assert {(port.name, port.side) for port in framed.frame.ports} == set(zip(("vss", "vdd"), sides, strict=True))
    violations = check(framed.layout, framed.cell, process).summary()["violations"]
    assert [violation["rule_id"] for violation in violations] == []
    keepouts = [
        (keepout.layer, framed.place_of(m, keepout.box)) for m in framed.modules.values() for keepout in m.keepouts
    ]
    for port in framed.frame.ports:
        assert port.rail
        assert not [box for layer, box in keepouts if layer == port.layer and box.overlaps(port.box)]


@pytest.mark.parametrize(("technology", "aspect"), [("sky130A", None), ("gf180mcuD", None), ("sky130A", 1.8)])
def test_a_cell_is_no_longer_than_asked_where_its_rails_lie_over_the_modules(tmp_path, technology, aspect):
    """The sides that ports and wires need made two transistors 2.04 times as wide as high."""
    text = ".subckt inverter in out vdd vss\n" + "".join(
        f"M{kind} out in {supply} {supply} {kind} w=270n l=20n nfin=6 nf=2\n"
        for kind, supply in (("pmos", "vdd"), ("nmos", "vss"))
    )
    request = LayoutRequest(
        netlist_text=text + ".ends\n", technology=technology, workspace=str(tmp_path), aspect=aspect
    )
    report = build_layout(replace(request, last_stage="lvs"))
    assert faults(report) == []
    boundary, _ = written_ports(report["files"]["gds"], load(technology))
    assert 0.95 < boundary.width() / boundary.height() / (aspect or 2) <= 1


def test_a_port_without_devices_is_metal_at_the_boundary(tmp_path):
    netlist = ".subckt cell a y test vdd vss\nM1 y a vss vss nmos w=1u l=0.5u\n.ends\n"
    report = build_layout(LayoutRequest(None, "sky130A", str(tmp_path), netlist_text=netlist, last_stage="lvs"))
    assert faults(report) == []
    boundary, found = written_ports(report["files"]["gds"], load("sky130A"))
    assert set(found) == {"a", "y", "test", "vdd", "vss"}
    assert all(edges(box, boundary) for _, box, _ in found.values())
    assert [text for text in report["warnings"] if "no device" in text] == [
        f"port {port} connects to no device; it is metal with a label at the boundary" for port in ("test", "vdd")
    ]
    vdd = next(each for each in report["routing"]["supplies"] if each["net"] == "vdd")
    assert (vdd["modules"], vdd["routed"]) == ([], True)


def rail_conductors(process):
    """Return the conductors on which rails may lie over modules: above that of the ports at the left and right."""
    first = next(i for i, each in enumerate(process.conductors) if each.name == port_conductors(process)[0].name)
    return [each.name for each in process.conductors[first + 2 : 5 : 2]]


def test_ports_that_mirror_each_other_lie_at_equal_heights_on_both_sides_of_their_axis():
    process = load("sky130A")
    core, axis = kdb.Box(0, 0, 20000, 8000), 9000
    left, right = kdb.Box(3000, 2000, 3400, 2400), kdb.Box(14600, 2000, 15000, 2400)
    pair = [PortNet("a", (right,), partner="b", axis=axis), PortNet("b", (left,), partner="a", axis=axis)]
    single = [PortNet(f"s{i}", (kdb.Box(0, 900 * i, 100, 900 * i + 100),), side="left") for i in range(4)]
    frame = plan_frame(process, core, [*pair, *single], 1000)
    (a,), (b,) = frame.of("a"), frame.of("b")
    assert (a.side, b.side) == ("right", "left")
    assert a.box == kdb.Box(2 * axis - b.box.right, b.box.bottom, 2 * axis - b.box.left, b.box.top)
    tops = [PortNet("a", (right,), partner="b", axis=axis, side="top"), replaced_side(pair[1], "top")]
    frame = plan_frame(process, core, [*tops, *single], 1000)
    (a,), (b,) = frame.of("a"), frame.of("b")
    assert a.box == kdb.Box(2 * axis - b.box.right, b.box.bottom, 2 * axis - b.box.left, b.box.top)


@pytest.mark.parametrize("x", [3000, 14000])
def test_ports_whose_pins_mirror_each_other_about_no_axis_lie_beside_each_other_near_them(x):
    process = load("sky130A")
    core = kdb.Box(0, 0, 20000, 30000)
    pins = {name: kdb.Box(x, y, x + 400, y + 140) for name, y in (("a", 20000), ("b", 20700), ("c", 20300))}
    pair = [PortNet("a", (pins["a"],), partner="b"), PortNet("b", (pins["b"],), partner="a")]
    side = "left" if x < 10000 else "right"
    frame = plan_frame(process, core, [*pair, PortNet("c", (pins["c"],), side=side)], 1000)
    (a,), (b,), (c,) = (frame.of(name) for name in "abc")
    assert (a.side, b.side, c.side) == (side, side, side)
    assert 0 < b.box.center().y - a.box.center().y < 1500
    assert abs(a.box.center().y - 20070) < 1500
    assert abs(c.box.center().y - a.box.center().y) > 1500
    spaces = kdb.Region([a.box, b.box, c.box]).space_check(process.conductor(a.layer).space)
    assert spaces.is_empty()


@pytest.mark.parametrize(("axis", "wide"), [(13000, True), (13100, False)])  # 26 of 20 um is 1.3 times the core
def test_ports_mirror_each_other_only_where_no_side_becomes_much_wider_for_it(axis, wide):
    core = kdb.Box(0, 0, 20000, 8000)
    left, right = kdb.Box(axis - 3400, 2000, axis - 3000, 2400), kdb.Box(axis + 3000, 2000, axis + 3400, 2400)
    pair = [PortNet("a", (left,), partner="b", axis=axis), PortNet("b", (right,), partner="a", axis=axis)]
    frame = plan_frame(load("sky130A"), core, pair, 1000)
    assert (frame.boundary.width() > 26000) is wide
    (a,), (b,) = frame.of("a"), frame.of("b")
    assert (a.side != b.side) is wide


def replaced_side(net, side):
    return PortNet(net.name, net.pins, partner=net.partner, axis=net.axis, side=side)


def test_netlists_call_the_circuit_as_the_layout_does_where_gds_cannot_hold_its_name(tmp_path):
    text = ".subckt buf[1:0] in[0] out vdd vss\nM1 out in[0] vss vss nmos w=1u l=0.5u\n.ends\n"
    (tmp_path / "buf.spice").write_text(text)
    request = LayoutRequest(str(tmp_path / "buf.spice"), "sg13g2", str(tmp_path / "w"), last_stage="export")
    build_layout(request)
    layout = kdb.Layout()
    layout.read(str(tmp_path / "w/layout.gds"))
    assert layout.top_cell().name == "buf_1_0_"
    for name in ("reference.spice", "reference.cdl"):
        cards = (tmp_path / "w" / name).read_text().splitlines()
        assert [line for line in cards if line.startswith(".subckt")] == [".subckt buf_1_0_ in[0] out vdd vss"]
    assert "MACRO buf_1_0_\n" in (tmp_path / "w/layout.lef").read_text()


def test_ports_stay_out_of_what_a_bottom_plate_on_their_metal_keeps_clear():
    """MIMTM.1 of gf180mcuD: 1.2 um between a bottom plate, here on Metal2, and other metal of its layer."""
    plate = "cap_mim_2f0_m2m3_noshield c_width=10u c_length=10u"
    text = f".subckt plates a b c d\nXC1 a b {plate}\nXC2 c d {plate}\n.ends\n"
    request = LayoutRequest(netlist_text=text, technology="gf180mcuD")
    circuit, _ = read_circuit(request, load("gf180mcuD"))
    technology = load("gf180mcuD").made_for(device.model for device in circuit.devices)
    placed = find_placement(make_design(request, technology, circuit)[0], request).placed
    clear = [
        placed.place_of(module, keepout.box)
        for module in placed.modules.values()
        for keepout in module.keepouts
        if keepout.by_rule and keepout.layer == "Metal2"
    ]
    stubs = [port.box for port in placed.frame.ports if port.layer == "Metal2"]
    assert clear
    assert stubs
    assert not [stub for stub in stubs for box in clear if stub.overlaps(box)]
