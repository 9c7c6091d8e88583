"""layout.create_common_centroid_pair through its command line (S0.5)."""

import json

import klayout.db as kdb
import pytest

SCRIPT = "common-centroid-pair/scripts/create_common_centroid_pair.py"


def device(name, kind="nmos", **changes):
    return {"device_id": name, "type": kind, "w": 2e-6, "l": 0.18e-6, **changes}


@pytest.fixture
def draw(run_script, tmp_path):
    """Return a function that draws a pair and returns exit code and envelope."""

    def call(*arguments, a=None, b=None):
        pair = ["--device-a", json.dumps(a or device("M1")), "--device-b", json.dumps(b or device("M2"))]
        return run_script(SCRIPT, *pair, "--workspace", tmp_path / "ws", *arguments)

    return call


def drawn_centres(path, count):
    """Return the x (and y) centres of the channels in the mask [nm], generic layers, sorted."""
    layout = kdb.Layout()
    layout.read(str(path))
    top = layout.cell("layout")
    channels = kdb.Region(top.begin_shapes_rec(layout.layer(1, 0)))
    channels &= kdb.Region(top.begin_shapes_rec(layout.layer(2, 0)))
    boxes = [polygon.bbox() for polygon in channels.each_merged()]
    assert len(boxes) == count
    return sorted(((box.left + box.right) / 2, (box.bottom + box.top) / 2) for box in boxes)


# ---- the test table of the specification, row by row (S0.5)


def test_standard_abba(draw, tmp_path):
    """标准 ABBA: 两个相同 NMOS, arrangement="ABBA" -> 成功, 4 个实例."""
    code, envelope = draw("--arrangement", "ABBA", "--dummies", "0")
    assert code == 0
    data = envelope["data"]
    assert (data["cell_name"], data["arrangement"]) == ("diff_pair_cc", "ABBA")
    assert [unit["id"] for unit in data["device_instances"]] == ["M1_A1", "M2_B1", "M2_B2", "M1_A2"]
    assert [unit["parent"] for unit in data["device_instances"]] == ["M1", "M2", "M2", "M1"]
    assert data["symmetry_info"]["matched_pairs"] == [["M1_A1", "M1_A2"], ["M2_B1", "M2_B2"]]
    assert data["symmetry_info"]["geometry_symmetric"]
    assert data["centroid_error_um"] == 0
    centres = drawn_centres(tmp_path / "ws/layout.gds", 4)
    outer, inner = centres[0][0] + centres[3][0], centres[1][0] + centres[2][0]
    assert outer == inner
    assert data["symmetry_info"]["center"] == pytest.approx([outer / 2000, centres[0][1] / 1000])
    box, anchors = data["bounding_box"], data["anchors"]
    assert anchors["left"][0] == box["x"]
    assert anchors["right"][0] == pytest.approx(box["x"] + box["width"])
    assert anchors["center"][0] == pytest.approx(box["x"] + box["width"] / 2)


def test_abab(draw):
    """ABAB 模式: arrangement="ABAB" -> 成功, 交替排列."""
    code, envelope = draw("--arrangement", "ABAB")
    assert code == 0
    units = sorted(envelope["data"]["device_instances"], key=lambda unit: unit["position"])
    assert [unit["parent"] for unit in units] == ["M1", "M2", "M1", "M2"]
    assert envelope["data"]["centroid_error_um"] > 0


def test_horizontal_symmetry(draw):
    """水平对称: symmetry_axis="horizontal" -> 成功, 上下对称."""
    code, envelope = draw("--symmetry-axis", "horizontal")
    assert code == 0
    data = envelope["data"]
    heights = [unit["position"][1] for unit in data["device_instances"]]
    assert heights == sorted(set(heights))
    assert heights[0] + heights[3] == pytest.approx(heights[1] + heights[2])
    assert len({unit["position"][0] for unit in data["device_instances"]}) == 1
    assert [unit["orientation"] for unit in data["device_instances"]] == ["R0", "MX", "R0", "MX"]
    assert data["symmetry_info"]["geometry_symmetric"]
    assert data["centroid_error_um"] == 0


def test_different_sizes(draw):
    """不同尺寸: device_a.w != device_b.w -> 成功 (或警告)."""
    code, envelope = draw(b=device("M2", w=3e-6))
    assert code == 0
    assert any("differ in total width" in warning for warning in envelope["data"]["warnings"])
    symmetry = envelope["data"]["symmetry_info"]
    assert not symmetry["geometry_symmetric"]
    assert "centroid_error_um is the measure" in symmetry["asymmetry"]
    assert envelope["data"]["drc"]["passed"]
    assert envelope["data"]["drawn"]["M2"]["w"] == pytest.approx(3e-6)


def test_type_mismatch(draw, tmp_path):
    """类型不匹配: NMOS + PMOS -> 失败, INVALID_PARAM."""
    code, envelope = draw(b=device("M2", "pmos"))
    assert code == 2
    assert envelope["error"]["code"] == "INVALID_PARAM"
    assert envelope["error"]["message"] == "Devices must be same type for matching"
    assert not (tmp_path / "ws/layout.gds").exists()


# ---- the error table of the specification


@pytest.mark.parametrize(("dummies", "channels"), [([], 12), (["--dummies", "0"], 4)])
def test_the_default_is_chosen_by_its_figures_and_has_two_dummies_at_each_end(draw, tmp_path, dummies, channels):
    code, envelope = draw(*dummies)
    data = envelope["data"]
    assert (code, data["pattern"]) == (0, "AB/BA")
    assert data["figures"] == {
        "centroid_error_x_um": 0, "centroid_error_y_um": 0, "junctions": 0, "stress_spread": 0, "dispersion": 1,
        "one_direction": True,
    }  # fmt: skip
    drawn_centres(tmp_path / "ws/layout.gds", channels)


@pytest.mark.parametrize(
    ("pattern", "order"),
    [("A2B2/B2A2", ["M1", "M1", "M2", "M2"] * 2), ("AB/BA", ["M1", "M2"] * 2), ("BABA", ["M2", "M1"] * 2)],
)
def test_a_stated_pattern_is_drawn_as_stated(draw, pattern, order):
    size = {"w": 8e-6, "nf": 4}
    data = draw("--arrangement", pattern, a=device("M1", **size), b=device("M2", **size))[1]["data"]
    units = sorted(data["device_instances"], key=lambda unit: (unit["position"][1], unit["position"][0]))
    half = len(order) // 2 if "/" in pattern else len(order)
    lower, upper = order[:half], order[half:]
    assert [unit["parent"] for unit in units] == lower + upper[::-1]


def test_more_devices_make_a_matched_group_of_any_ratio(draw):
    more = json.dumps([device("M3", w=8e-6, nf=4), device("M4", w=4e-6, nf=2)])
    pair = {"a": device("M1", w=4e-6, nf=2), "b": device("M2", w=4e-6, nf=2)}
    data = draw("--more-devices", more, "--technology", "sky130A", **pair)[1]["data"]
    assert set(data["pattern"]) - {"/"} <= set("ABCD0123456789")
    assert (data["centroid_error_um"], data["drc"]["passed"]) == (0, True)
    assert {name: size["w"] for name, size in data["drawn"].items()} == pytest.approx(
        {"M1": 4e-6, "M2": 4e-6, "M3": 8e-6, "M4": 4e-6}
    )


def test_a_pattern_that_the_fingers_do_not_allow_is_refused_with_what_is_possible(draw):
    narrow = {"w": 0.42e-6}  # the narrowest of sky130A
    pair = {"a": device("M1", **narrow), "b": device("M2", **narrow)}
    code, envelope = draw("--arrangement", "ABBA", "--technology", "sky130A", **pair)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert envelope["error"]["details"]["possible"] == ["auto", "AB"]


def test_invalid_arrangement(draw):
    code, envelope = draw("--arrangement", "baba")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "Invalid arrangement: baba" in envelope["error"]["message"]


@pytest.mark.parametrize(
    ("spacing", "told"), [(1000.001, "at most 1000"), (1e300, "at most 1000"), (0, "greater than 0")]
)
def test_a_spacing_beyond_any_chip_is_refused_before_anything_is_drawn(draw, tmp_path, spacing, told):
    code, envelope = draw("--spacing", spacing)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "spacing" in envelope["error"]["message"]
    assert told in envelope["error"]["message"]
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize(("spacing", "passes"), [(0.28, True), (0.275, False)])
def test_spacing_below_the_minimum_is_a_drc_violation(draw, spacing, passes):
    """ACTIVE_MIN_SPACE of generic is 0.28 um; one grid step of 5 nm on either side."""
    code, envelope = draw("--spacing", spacing, "--no-interdigitate")
    assert code == (0 if passes else 1)
    if not passes:
        assert envelope["error"]["code"] == "DRC_VIOLATION"
        assert envelope["error"]["message"] == "Spacing 0.275 violates min spacing 0.28"


def test_missing_parameter(draw):
    incomplete = device("M2")
    del incomplete["w"]
    code, envelope = draw(b=incomplete)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "Missing required param: device_b.w" in envelope["error"]["message"]


# ---- beyond the tables


def test_both_devices_keep_their_width_when_fingers_are_halved(draw):
    data = draw()[1]["data"]
    assert data["drawn"]["M1"] == {**data["drawn"]["M1"], "w": 2e-6, "nf": 2, "finger_width_um": 1.0}
    assert any("split into 2" in warning for warning in data["warnings"])


@pytest.mark.parametrize("orientation", ["R90", "MY"])
def test_places_are_reported_as_placed(draw, tmp_path, orientation):
    code, envelope = draw(
        "--technology", "generic", "--orientation", orientation, "--position", "[10, 20]", "--dummies", "0"
    )
    assert code == 0
    told = sorted(tuple(unit["position"]) for unit in envelope["data"]["device_instances"])
    drawn = [(x / 1000, y / 1000) for x, y in drawn_centres(tmp_path / "ws/layout.gds", 4)]
    assert [x for point in told for x in point] == pytest.approx([x for point in drawn for x in point])


def test_a_second_pair_gets_a_cell_of_its_own(draw, tmp_path):
    draw("--dummies", "0")
    code, envelope = draw("--dummies", "0", "--position", "[30, 0]", a=device("M3"), b=device("M4"))
    assert code == 0
    assert envelope["data"]["cell_name"] == "diff_pair_cc_M3_M4"
    drawn_centres(tmp_path / "ws/layout.gds", 8)


def test_the_same_call_gives_the_same_bytes(draw, tmp_path):
    draw("--technology", "sky130A", "--dummies", "1")
    first = (tmp_path / "ws/layout.gds").read_bytes()
    (tmp_path / "ws/layout.gds").unlink()
    draw("--technology", "sky130A", "--dummies", "1")
    assert (tmp_path / "ws/layout.gds").read_bytes() == first


def test_the_ring_around_a_pair_is_the_one_asked_for(draw):
    code, envelope = draw("--ring", "double")
    assert code == 0
    assert "VDD" in {pin["net"] for pin in envelope["data"]["pins"]}


def test_an_isolated_pair_has_a_pin_of_its_deep_well_and_keeps_its_centroids(draw):
    devices = {name: device(name, l=0.5e-6) for name in ("M1", "M2")}
    code, envelope = draw(
        "--technology", "sky130A", "--isolated", "--deep-well-net", "vddh", a=devices["M1"], b=devices["M2"]
    )
    assert code == 0
    assert envelope["data"]["drc"]["passed"]
    assert envelope["data"]["centroid_error_um"] == 0
    assert "vddh" in {pin["net"] for pin in envelope["data"]["pins"]}


def test_all_faults_of_a_pattern_are_told_with_the_devices_names(run_script, tmp_path):
    devices = [json.dumps({"device_id": f"M{i}", "type": "nmos", "w": 4e-6, "l": 0.5e-6, "nf": 2}) for i in (1, 2)]
    pair = ("--device-a", devices[0], "--device-b", devices[1], "--workspace", tmp_path / "ws")
    code, envelope = run_script(SCRIPT, *pair, "--arrangement", "AXYA", "--symmetry-axis", "horizontal")
    assert code == 2
    message = envelope["error"]["message"]
    assert message.endswith("X is no device, Y is no device, B has no unit. The devices are A = M1, B = M2")
