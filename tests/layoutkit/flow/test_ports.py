"""Ports at the boundary of a cell, rails and rings of its supplies, judged by KLayout's geometry."""

import re
from pathlib import Path

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.drc.check import Options, check_cell
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.port_frame import PortNet, draw_frame, plan_frame, port_conductors
from layoutkit.flow.summary import faults
from layoutkit.technology import load, names

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


# A ring is drawn from the same rules as rails; test_a_frame_keeps_the_rules_... draws it in every process.
@pytest.mark.parametrize(
    ("supplies", "technology"), [*(("rails", name) for name in names()), ("ring", "sky130A"), ("ring", "sg13g2")]
)
def test_every_port_of_a_cell_lies_at_its_boundary_and_is_a_pin(tmp_path, technology, supplies):
    wanted = [{"port": "out", "side": "top"}, {"port": "bias", "side": "left"}]
    request = LayoutRequest(str(OTA), technology, str(tmp_path), supplies=supplies, constraints={"port_sides": wanted})
    report = build_layout(request)
    assert faults(report) == []
    process = load(technology)
    boundary, found = written_ports(report["files"]["gds"], process)
    assert set(found) == {"inp", "inn", "out", "bias", "vdd", "vss"}
    conductors = {conductor.name for conductor in port_conductors(process)}
    for name, (conductor, box, _) in found.items():
        assert edges(box, boundary), name
        assert conductor in conductors
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
    violations = check_cell(layout, cell, process, Options()).summary()["violations"]
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


def replaced_side(net, side):
    return PortNet(net.name, net.pins, partner=net.partner, axis=net.axis, side=side)
