"""layout.create_nmos_pcell and layout.create_pmos_pcell through their command lines (S0.4)."""

import klayout.db as kdb
import pytest

from layoutkit.errors import KlayoutError
from layoutkit.technology import load

NMOS = "mos-pcell/scripts/create_nmos_pcell.py"
PMOS = "mos-pcell/scripts/create_pmos_pcell.py"
GENERIC = {"active": (1, 0), "poly": (2, 0)}


def gates(path, cell="layout", active=(1, 0), poly=(2, 0)):
    """Return the channel boxes of ``cell`` as (left, bottom, width, height) [nm], from the mask shapes alone."""
    layout = kdb.Layout()
    layout.read(str(path))
    top = layout.cell(cell)
    channels = kdb.Region(top.begin_shapes_rec(layout.layer(*active)))
    channels &= kdb.Region(top.begin_shapes_rec(layout.layer(*poly)))
    boxes = [polygon.bbox() for polygon in channels.each_merged()]
    return sorted((box.left, box.bottom, box.width(), box.height()) for box in boxes)


@pytest.fixture
def draw(run_script, tmp_path):
    """Return a function that draws device M1 in a fresh workspace and returns exit code and envelope."""

    def call(*arguments, script=NMOS, device_id="M1", w="2e-6", l="0.18e-6"):  # noqa: E741 - the tool's own name
        flags = ["--device-id", device_id, f"--w={w}", f"--l={l}", "--workspace", tmp_path / "ws"]
        return run_script(script, *flags, *arguments)

    return call


# ---- the test table of the specification, row by row (S0.4)


def test_standard_nmos(draw, tmp_path):
    """标准 NMOS: w=2um, l=0.18um, nf=2 -> 成功, 生成 2 指 NMOS."""
    code, envelope = draw("--nf", "2")
    assert code == 0
    data = envelope["data"]
    assert (data["cell_name"], data["device_id"]) == ("nmos_M1", "M1")
    assert data["bounding_box"]["x"] == data["bounding_box"]["y"] == 0
    assert sorted(data["pins"]) == ["B", "D", "G", "S"]
    assert data["geometry_stats"]["poly_count"] == 2
    assert data["drc"]["passed"]
    assert [gate[2:] for gate in gates(tmp_path / "ws/layout.gds")] == [(180, 1000)] * 2


@pytest.mark.parametrize("technology", ["generic", "sky130A"])
@pytest.mark.parametrize("script", [NMOS, PMOS])
def test_minimum_size(draw, tmp_path, technology, script):
    """最小尺寸: w=min_w, l=min_l -> 成功, 生成最小尺寸器件."""
    spec = load(technology).device("nmos" if script == NMOS else "pmos")
    arguments = ["--technology", technology]
    code, envelope = draw(*arguments, script=script, w=f"{spec.min_w}e-9", l=f"{spec.min_l}e-9")
    assert code == 0
    assert envelope["data"]["drc"] == {**envelope["data"]["drc"], "passed": True, "total_violations": 0}
    layers = {} if technology == "generic" else {"active": (65, 20), "poly": (66, 20)}
    assert [gate[2:] for gate in gates(tmp_path / "ws/layout.gds", **layers)] == [(spec.min_l, spec.min_w)]


def test_multiplier(draw, tmp_path):
    """多倍数: m=4, nf=1 -> 成功, 生成 4 个并联器件."""
    code, envelope = draw("--m", "4")
    assert code == 0
    assert [gate[2:] for gate in gates(tmp_path / "ws/layout.gds")] == [(180, 2000)] * 4
    assert envelope["data"]["drawn"] == {
        "w": 2e-6,
        "l": 0.18e-6,
        "nf": 1,
        "m": 4,
        "finger_width_um": 2.0,
        "length_um": 0.18,
    }


def test_rotated(draw, tmp_path):
    """旋转放置: orientation="R90" -> 成功, 器件旋转 90 度."""
    code, upright = draw("--nf", "2")
    assert code == 0
    code, turned = draw("--nf", "2", "--orientation", "R90", "--position", "[5, 7]")
    assert code == 0
    before, after = upright["data"]["bounding_box"], turned["data"]["bounding_box"]
    assert after == {"x": 5, "y": 7, "width": before["height"], "height": before["width"]}
    assert [gate[2:] for gate in gates(tmp_path / "ws/layout.gds")] == [(1000, 180)] * 2


def test_illegal_width(draw, tmp_path):
    """非法参数: w=-1 -> 失败, INVALID_PARAM."""
    code, envelope = draw(w="-1")
    assert code == 2
    assert envelope["error"]["code"] == "INVALID_PARAM"
    assert envelope["error"]["message"].startswith("Width -1 is below minimum ")
    assert not (tmp_path / "ws/layout.gds").exists()


# ---- the error table of the specification


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"w": "1e-7"}, "Width 1e-07 is below minimum 2.4e-07"),
        ({"l": "1e-7"}, "Length 1e-07 is below minimum 1.8e-07"),
        (["--nf", "0"], "Number of fingers must be positive integer"),
        (["--nf", "1.5"], "Number of fingers must be positive integer"),
        (["--orientation", "R45"], "Invalid orientation: R45"),
        (["--layer-map", '{"active": 1, "poly": 2, "metal1": 4, "pwell": 6}'], "Missing layer mapping for: contact"),
        (["--layer-map", '{"active": 1, "poly": 2, "contact": 3, "metal1": 4}'], "Missing layer mapping for: pwell"),
    ],
)
def test_the_seed_s_error_messages(draw, arguments, message):
    code, envelope = draw(**arguments) if isinstance(arguments, dict) else draw(*arguments)
    assert code == 2
    assert envelope["error"]["code"] == "INVALID_PARAM"
    assert message in envelope["error"]["message"]


def test_a_failing_klayout_call_is_a_klayout_error(monkeypatch, tmp_path):
    """KLAYOUT_ERROR `Failed to create cell: {error}`; provoked by a KLayout that refuses to make cells."""
    from layoutkit.draw import stack
    from layoutkit.tools import transistor_requests as requests

    def refuse(*_):
        raise RuntimeError("no more cells")

    monkeypatch.setattr(stack, "fresh_cell", refuse)
    params = {
        "device_id": "M1",
        "w": 2e-6,
        "l": 1e-6,
        "technology": "generic",
        "workspace": str(tmp_path),
        "position": [0, 0],
        "orientation": "R0",
        "dummies": 0,
        "ring": "full",
        "ring_open_sides": [],
        "labels": True,
        "check": False,
    }
    with pytest.raises(KlayoutError, match="Failed to create cell: no more cells") as raised:
        requests.create_mos("nmos", params)
    assert raised.value.code == "KLAYOUT_ERROR"


# ---- beyond the tables


@pytest.mark.parametrize("orientation", ["R0", "R90", "R180", "R270", "MX", "MY"])
def test_pins_are_reported_where_the_metal_lies(draw, tmp_path, orientation):
    code, envelope = draw("--orientation", orientation, "--position", "[-3, 10.005]", "--nf", "3")
    assert code == 0
    layout = kdb.Layout()
    layout.read(str(tmp_path / "ws/layout.gds"))
    metal = kdb.Region(layout.cell("layout").begin_shapes_rec(layout.layer(10, 0)))
    for pin in envelope["data"]["pins"].values():
        box = pin["box"]
        drawn = kdb.DBox(box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"])
        assert (kdb.Region(drawn.to_itype(0.001)) - metal).is_empty()
        assert pin["center"] == pytest.approx([drawn.center().x, drawn.center().y])
        assert pin["layer"] == 10
    box = envelope["data"]["bounding_box"]
    assert (box["x"], box["y"]) == (-3, 10.005)


def test_a_second_device_beside_the_first(draw):
    draw()
    code, envelope = draw(script=PMOS, device_id="M2")
    assert (code, envelope["error"]["code"]) == (1, "LAYOUT_CONFLICT")
    code, envelope = draw("--position", "[20, 0]", script=PMOS, device_id="M2")
    assert code == 0
    assert envelope["data"]["cell_name"] == "pmos_M2"


def test_the_same_call_gives_the_same_bytes(draw, run_script, tmp_path):
    draw("--nf", "3", "--dummies", "1")
    first = (tmp_path / "ws/layout.gds").read_bytes()
    draw("--nf", "3", "--dummies", "1")
    assert (tmp_path / "ws/layout.gds").read_bytes() == first
    run_script(
        NMOS, "--params", '{"device_id":"M1","w":2e-6,"l":1.8e-7,"nf":3,"dummies":1}', "--workspace", tmp_path / "b"
    )
    assert (tmp_path / "b/layout.gds").read_bytes() == first


def test_nets_come_from_the_call_else_from_the_circuit_else_from_the_name(draw, tmp_path):
    assert draw()[1]["data"]["pins"]["D"]["net"] == "M1_D"
    (tmp_path / "ws/circuit.json").write_text(
        '{"name": "c", "devices": [{"id": "M1", "terminals": {"d": "out", "g": "in", "s": "vss", "b": "vss"}}]}'
    )
    _, envelope = draw("--nets", '{"g": "bias"}')
    assert {key: pin["net"] for key, pin in envelope["data"]["pins"].items()} == {
        "G": "bias",
        "D": "out",
        "S": "vss",
        "B": "vss",
    }


def test_a_layer_map_moves_the_masks(draw, tmp_path):
    given = '{"active": 41, "poly": [42, 7], "contact": 43, "metal1": 44, "pwell": 46}'
    code, envelope = draw("--layer-map", given)
    assert code == 0
    assert envelope["data"]["drc"]["passed"]
    assert len(gates(tmp_path / "ws/layout.gds", active=(41, 0), poly=(42, 7))) == 1


def test_a_layer_map_that_shorts_two_layers_is_refused(draw):
    code, envelope = draw("--layer-map", '{"active": 1, "poly": 2, "contact": 2, "metal1": 4, "pwell": 6}')
    assert code == 2
    assert "both on GDS layer 2/0" in envelope["error"]["message"]


def test_a_flavour_of_the_other_type_is_refused(draw):
    code, envelope = draw("--device", "pmos")
    assert code == 2
    assert "is of type pmos" in envelope["error"]["message"]


def test_rounding_is_reported_with_the_old_and_the_new_width(draw):
    # 2.002 um is off the grid of 5 nm, so no number of fingers keeps it.
    _, envelope = draw("--nf", "3", w="2.002e-6")
    (warning,) = envelope["data"]["warnings"]
    assert "width 2.002e-06 m is off the 0.005 um grid" in warning
    assert "0.665 um in each of 3 fingers, 1.995 um in all" in warning
    assert envelope["data"]["drawn"]["w"] == pytest.approx(1.995e-6)


def test_a_failed_call_leaves_the_layout_as_it_was(draw, tmp_path):
    draw()
    before = (tmp_path / "ws/layout.gds").read_bytes()
    code, _ = draw("--position", "[0.001, 0]", device_id="M2")
    assert code == 2
    assert (tmp_path / "ws/layout.gds").read_bytes() == before


# ---- guard rings


def test_the_outer_ring_of_a_double_ring_is_a_pin_of_its_own_net(draw):
    code, envelope = draw("--ring", "double", "--ring-outer-net", "guard")
    assert code == 0
    assert "guard" in {pin["net"] for pin in envelope["data"]["net_pins"]}
    assert envelope["data"]["drc"]["passed"]


@pytest.mark.parametrize("ring", ["full", "none"])
def test_a_large_transistor_is_folded_into_rows_unless_one_row_is_asked_for(draw, ring):
    def aspect(*arguments):
        code, envelope = draw("--nf", "60", "--ring", ring, *arguments, w="300e-6", l="0.5e-6")
        assert code == 0
        assert envelope["data"]["drawn"]["nf"] == 60
        box = envelope["data"]["bounding_box"]
        return max(box["width"] / box["height"], box["height"] / box["width"])

    assert aspect() <= 4
    assert aspect("--rows", "1") > 4


def test_open_sides_that_leave_diffusion_too_far_from_the_taps_are_refused(draw):
    """LU.2 of sky130A: 15 um at most. The finger of 20 um is near enough to a closed ring only."""
    wide = ("--technology", "sky130A", "--ring", "open")
    code, envelope = draw(*wide, "--ring-open-sides", '["left"]', w="20e-6", l="1e-6")
    assert (code, envelope["error"]) == (0, None)
    code, envelope = draw(*wide, "--ring-open-sides", '["bottom", "left"]', w="20e-6", l="20e-6")
    assert code == 2
    assert "15 um are allowed" in envelope["error"]["message"]
    assert "close a side of the ring" in envelope["error"]["message"]


# ---- isolated bodies


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
def test_an_isolated_nmos_has_a_deep_well_with_a_pin_of_its_net(draw, tmp_path, technology):
    code, envelope = draw("--technology", technology, "--isolated", "--deep-well-net", "avdd", l="0.5e-6")
    assert code == 0
    data = envelope["data"]
    assert data["drc"]["passed"]
    nets = {pin["net"] for pin in data["net_pins"]}
    assert "avdd" in nets
    assert ("VSS" in nets) == (technology == "gf180mcuD"), "its rules ask for substrate taps around a deep well"
    layout = kdb.Layout()
    layout.read(str(tmp_path / "ws/layout.gds"))
    tech = load(technology)
    cell = layout.cell(data["cell_name"])
    assert not cell.bbox(tech.layer(layout, "deep_nwell")).empty()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--technology", "generic", "--isolated"], "generic has no deep well"),
        (["--technology", "sky130A", "--deep-well-net", "vdd"], "set isolated as well"),
        (["--technology", "sky130A", "--isolated", "--ring", "double"], "has an n well"),
    ],
)
def test_a_deep_well_that_cannot_be_drawn_is_refused(draw, arguments, message):
    code, envelope = draw(*arguments, l="0.5e-6")
    assert code == 2
    assert message in envelope["error"]["message"]
