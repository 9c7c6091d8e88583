"""layout.create_current_mirror through its command line (S0.6)."""

import json

import pytest

SCRIPT = "current-mirror/scripts/create_current_mirror.py"


def device(name, kind="nmos", **changes):
    return {"device_id": name, "type": kind, "w": 1e-6, "l": 0.5e-6, **changes}


@pytest.fixture
def draw(run_script, tmp_path):
    """Return a function that draws a mirror of the given devices and returns exit code and envelope."""

    def call(devices, *arguments):
        return run_script(SCRIPT, "--devices", json.dumps(devices), "--workspace", tmp_path / "ws", *arguments)

    return call


def parents(data):
    return [unit["parent"] for unit in sorted(data["device_instances"], key=lambda unit: unit["position"])]


# ---- the test table of the specification, row by row (S0.6)


def test_one_to_one(draw):
    """1:1 镜像: 2 个相同 NMOS -> 成功, 交替排列."""
    code, envelope = draw([device("M1"), device("M2")])
    assert code == 0
    data = envelope["data"]
    assert (data["cell_name"], data["mirror_type"]) == ("current_mirror", "simple")
    assert data["pattern"] == "AB/BA"
    assert [unit["id"] for unit in data["device_instances"]] == ["M1_ref_1", "M2_out_1", "M2_out_2", "M1_ref_2"]
    assert data["matching_info"] == {"reference": "M1", "mirrors": {"M2": 1.0}, "unit_width": 5e-7}
    assert data["common_nodes"] == {"gate": "bias", "source": "vss", "bulk": "vss"}
    assert data["drc"]["passed"]


def test_one_to_two(draw):
    """1:2 镜像: M2.m = 2 * M1.m -> 成功, M2 分 2 个单元."""
    code, envelope = draw([device("M1"), device("M2", m=2)], "--arrangement", "interdigitated")
    assert code == 0
    data = envelope["data"]
    assert sorted(unit["id"] for unit in data["device_instances"]) == ["M1_ref_1", "M2_out_1", "M2_out_2"]
    assert parents(data) == ["M2", "M1", "M2"]
    assert data["matching_info"]["mirrors"] == {"M2": 2.0}
    assert data["centroid_error_um"] == 0


def test_cascode(draw):
    """Cascode: 4 个器件 -> 成功, 上下两层."""
    four = [device(f"M{i}") for i in (1, 2, 3, 4)]
    code, envelope = draw(four, "--mirror-type", "cascode", "--arrangement", "AB")
    assert code == 0
    data = envelope["data"]
    rows = {}
    for unit in data["device_instances"]:
        rows.setdefault(unit["position"][1], []).append(unit["parent"])
    assert [rows[y] for y in sorted(rows)] == [["M1", "M2"], ["M3", "M4"]]
    assert data["common_nodes"]["cascode_gate"] == "bias_cascode"
    assert data["drc"]["passed"]


# ---- beyond the table


def test_two_fingers_each_interleave_with_one_centroid(draw):
    code, envelope = draw([device("M1", w=2e-6, nf=2), device("M2", w=2e-6, nf=2)], "--dummies", "0")
    assert code == 0
    assert (envelope["data"]["pattern"], parents(envelope["data"])) == ("AB/BA", ["M1", "M2", "M2", "M1"])
    assert envelope["data"]["centroid_error_um"] == 0
    assert envelope["data"]["warnings"] == []


def test_a_centroid_error_is_reported(draw):
    _, envelope = draw([device("M1"), device("M2")], "--arrangement", "AB")
    error = envelope["data"]["centroid_error_um"]
    assert error > 0
    assert any(f"{error:g} um apart" in warning for warning in envelope["data"]["warnings"])


def test_matching_ratio_sets_the_multipliers_that_no_device_gives(draw):
    code, envelope = draw([device("M1"), device("M2")], "--matching-ratio", '{"M1": 2, "M2": 3}')
    assert code == 0
    assert {name: size["m"] for name, size in envelope["data"]["drawn"].items()} == {"M1": 2, "M2": 3}
    assert envelope["data"]["matching_info"]["mirrors"] == {"M2": 1.5}


def test_a_contradicting_ratio_is_refused(draw, tmp_path):
    code, envelope = draw([device("M1", m=1), device("M2", m=2)], "--matching-ratio", '{"M1": 1, "M2": 3}')
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "says M2 is 3 x M1, but the sizes give 2" in envelope["error"]["message"]
    assert not (tmp_path / "ws/layout.gds").exists()


def test_reference_and_its_diode_connection(draw):
    code, envelope = draw([device("M1"), device("M2")], "--reference-device", "M2")
    assert code == 0
    assert envelope["data"]["matching_info"]["reference"] == "M2"
    nets = [pin["net"] for pin in envelope["data"]["pins"]]
    assert "bias" in nets  # gate and drain, joined inside
    assert "M1_D" in nets
    assert "M2_D" not in nets


def test_an_unknown_reference_is_a_device_not_found(draw):
    code, envelope = draw([device("M1"), device("M2")], "--reference-device", "M9")
    assert (code, envelope["error"]["code"]) == (2, "DEVICE_NOT_FOUND")
    assert envelope["error"]["details"]["available_devices"] == ["M1", "M2"]


def test_stacked_units_lie_above_each_other(draw):
    code, envelope = draw([device("M1", "pmos"), device("M2", "pmos", m=2)], "--arrangement", "stacked")
    assert code == 0
    units = sorted(envelope["data"]["device_instances"], key=lambda unit: unit["position"][1])
    assert [unit["parent"] for unit in units] == ["M2", "M1", "M2"]
    assert envelope["data"]["common_nodes"]["source"] == "vdd"
    assert envelope["data"]["centroid_error_um"] == 0


def test_nets_tell_which_devices_are_the_cascodes(draw):
    nets = {
        "M1": {"d": "out", "g": "c", "s": "m", "b": "vss"},
        "M2": {"d": "ref", "g": "c", "s": "r", "b": "vss"},
        "M3": {"d": "m", "g": "r", "s": "vss", "b": "vss"},
        "M4": {"d": "r", "g": "r", "s": "vss", "b": "vss"},
    }
    devices = [device(name) for name in nets]
    arguments = ["--mirror-type", "cascode", "--reference-device", "M4", "--nets", json.dumps(nets)]
    code, envelope = draw(devices, *arguments, "--technology", "sky130A")
    assert code == 0
    data = envelope["data"]
    assert data["matching_info"]["reference"] == "M4"
    assert data["common_nodes"] == {"gate": "r", "source": "vss", "bulk": "vss", "cascode_gate": "c"}
    rows = {}
    for unit in data["device_instances"]:
        rows.setdefault(unit["position"][1], []).append(unit["id"])
    assert [sorted(rows[y]) for y in sorted(rows)] == [
        ["M3_out_1", "M4_ref_1"], ["M3_out_2", "M4_ref_2"], ["M1_cas_1", "M2_cas_1"], ["M1_cas_2", "M2_cas_2"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ([device("M1")], "at least 2 devices"),
        ([device("M1"), device("M2", "pmos")], "Devices must be same type for matching"),
        ([device("M1"), device("M2", w=1.505e-6)], "must have the same finger width"),
        ([device("M1"), device("M1")], "ids must differ"),
    ],
)
def test_no_mirror_is_refused_in_words(draw, devices, message):
    code, envelope = draw(devices)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]


def test_a_ratio_in_the_widths_becomes_units_of_one_finger_width(draw):
    code, envelope = draw([device("M1", w=2e-6), device("M2", w=8e-6)])
    data = envelope["data"]
    assert (code, data["drc"]["passed"]) == (0, True)
    assert data["matching_info"]["mirrors"] == {"M2": 4.0}
    parents_ = [unit["parent"] for unit in data["device_instances"]]
    assert parents_.count("M2") == 4 * parents_.count("M1")
    assert any("M2: drawn with fingers of 2 um" in warning for warning in data["warnings"])


def test_three_devices_are_no_cascode(draw):
    code, envelope = draw([device("M1"), device("M2"), device("M3")], "--mirror-type", "cascode")
    assert code == 2
    assert "even number of devices" in envelope["error"]["message"]


def test_the_same_call_gives_the_same_bytes(draw, tmp_path):
    devices = [device("M1", m=2), device("M2", m=6)]
    draw(devices, "--technology", "sky130A")
    first = (tmp_path / "ws/layout.gds").read_bytes()
    (tmp_path / "ws/layout.gds").unlink()
    draw(devices, "--technology", "sky130A")
    assert (tmp_path / "ws/layout.gds").read_bytes() == first


def test_the_ring_around_a_mirror_is_the_one_asked_for(draw):
    code, envelope = draw([device("M1"), device("M2")], "--ring", "double")
    assert code == 0
    assert "VDD" in {pin["net"] for pin in envelope["data"]["pins"]}


def test_an_isolated_mirror_has_a_pin_of_its_deep_well(draw):
    code, envelope = draw([device("M1"), device("M2")], "--technology", "sg13g2", "--isolated")
    assert code == 0
    assert envelope["data"]["drc"]["passed"]
    assert "VDD" in {pin["net"] for pin in envelope["data"]["pins"]}
