"""Netlists as people write them, from file to checked layout: open parameters, odd fingers, taps as resistors."""

import json

import pytest

BUILD = "netlist-to-gds/scripts/build_layout.py"
PARSE = "netlist-parse/scripts/parse_netlist.py"
PLACE = "module-placement/scripts/place_modules.py"
PLAN = "constraint-planning/scripts/suggest_constraints.py"
LVS = "lvs-check/scripts/run_check.py"
AMPLIFIER = """
.subckt amp in out vdd vss
M1 out in vss sub! sg13_lv_nmos w=w0 l=l0 ng=3
M2 out in vdd well sg13_lv_pmos w=2u l=l0
R1 vss sub! ptap1 A=24.01p Perim=19.6u
R2 vdd well ntap1 r=262.8
.ends
"""
GIVEN = json.dumps({"w0": "2u", "l0": 0.5e-6})


@pytest.fixture
def amplifier(tmp_path):
    path = tmp_path / "amp.spice"
    path.write_text(AMPLIFIER)
    return path


def test_an_open_odd_tapped_netlist_becomes_a_layout_that_matches_it(run_script, amplifier, tmp_path):
    common = ("--netlist-path", amplifier, "--technology", "sg13g2", "--workspace", tmp_path / "ws")
    code, built = run_script(BUILD, *common, "--parameters", GIVEN)
    assert code == 0, built["error"]
    told = "; ".join(built["data"]["warnings"])
    for text in ("nf: 3 became 4): M1", "port sub! is vss", "well is vdd", "layout: R2 (ntap1)"):
        assert text in told

    # 2 um stay 2 um: LVS compares with the netlist as it is written.
    code, compared = run_script(LVS, *common, "--parameters", GIVEN)
    assert (code, compared["data"]["matched"]) == (0, True)
    widths = {each["name"]: each["w_um"] for each in compared["data"]["devices"]["extracted"]}
    assert widths == {"M1": 2.0, "M2": 2.0}
    code, other = run_script(LVS, *common, "--parameters", json.dumps({"w0": "2.2u", "l0": "0.5u"}))
    assert (code, other["data"]["matched"]) == (1, False)


@pytest.mark.parametrize("script", [BUILD, PLACE, LVS])
def test_every_tool_that_needs_sizes_names_all_open_parameters(run_script, amplifier, tmp_path, script):
    code, envelope = run_script(script, "--netlist-path", amplifier, "--workspace", tmp_path / "ws")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert envelope["error"]["details"]["missing_parameters"] == ["w0", "l0"]
    assert not (tmp_path / "ws" / "layout.gds").exists()


@pytest.mark.parametrize("script", [PARSE, PLAN])
def test_a_circuit_with_open_parameters_is_understood_with_a_warning(run_script, amplifier, script):
    code, envelope = run_script(script, "--netlist-path", amplifier)
    assert code == 0
    told = envelope["data"].get("parse_info", envelope["data"])["warnings"]
    assert [text for text in told if text.endswith("set values with 'parameters': w0, l0")]


def test_a_circuit_with_open_parameters_is_not_stored(run_script, amplifier, tmp_path):
    """A stored circuit has no place for what is unknown, and a build would take a missing number of units for one."""
    code, envelope = run_script(PARSE, "--netlist-path", amplifier, "--workspace", tmp_path / "ws")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "not stored" in envelope["error"]["message"]
    assert not (tmp_path / "ws" / "circuit.json").exists()


def test_parameters_reach_the_constraints_and_a_misspelt_one_is_refused(run_script, amplifier):
    code, _ = run_script(PLAN, "--netlist-path", amplifier, "--parameters", GIVEN)
    assert code == 0
    misspelt = json.dumps({"w0": "2u", "l0": "0.5u", "w1": 1})
    code, envelope = run_script(PARSE, "--netlist-path", amplifier, "--parameters", misspelt)
    assert code == 2
    assert "uses no parameter 'w1' (did you mean 'w0'?)" in envelope["error"]["message"]


def test_a_file_that_mixes_readings_of_w_is_refused_before_anything_is_drawn(run_script, tmp_path):
    path = tmp_path / "mixed.spice"
    sizes = ("w=0.42 l=0.15 nf=16", "w=2 l=0.15 nf=2")
    cards = "\n".join(f"M{i} a b c vss sky130_fd_pr__nfet_01v8 {size}" for i, size in enumerate(sizes, start=1))
    path.write_text(f".subckt t a b c vss\n{cards}\n.ends\n")
    code, envelope = run_script(
        BUILD, "--netlist-path", path, "--technology", "sky130A", "--workspace", tmp_path / "ws"
    )
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    for text in ("'M1'", "0.02625 um", "6.72 um", "width_per 'finger'", "width_per 'device'"):
        assert text in envelope["error"]["message"]
    code, parsed = run_script(PARSE, "--netlist-path", path)
    assert code == 0
    assert any("too narrow" in text and "M1" in text for text in parsed["data"]["parse_info"]["warnings"])


NMOS = "mos-pcell/scripts/create_nmos_pcell.py"
PAIR = "common-centroid-pair/scripts/create_common_centroid_pair.py"
MIRROR = "current-mirror/scripts/create_current_mirror.py"


def test_drawing_tools_keep_a_total_width_by_another_number_of_fingers(run_script, tmp_path):
    # 2 um / 3 is off the grid of 5 nm: 4 fingers of 0.5 um, for M2 of twice the width and fingers 8 of them.
    one = {"type": "nmos", "w": 2e-6, "l": 5e-7, "nf": 3}
    params = {"devices": [{**one, "device_id": "M1"}, {**one, "device_id": "M2", "w": 4e-6, "nf": 6}]}
    requests = {
        NMOS: {"device_id": "M1", "w": 2e-6, "l": 5e-7, "nf": 3},
        PAIR: {"device_a": {**one, "device_id": "M1"}, "device_b": {**one, "device_id": "M2"}},
        MIRROR: params,
    }
    for script, request in requests.items():
        code, envelope = run_script(script, "--params", json.dumps(request), "--workspace", tmp_path / script[:5])
        assert code == 0, envelope
        assert any("nf 3 became 4, which keeps w 2 um" in text for text in envelope["data"]["warnings"])
        drawn = envelope["data"]["drawn"]
        first = drawn if script == NMOS else drawn["M1"]
        assert (first["w"], first["nf"]) == (2e-6, 4)
