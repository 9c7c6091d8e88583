"""The tool netlist.parse through its real command line (S0.3)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forked import run_program

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills" / "netlist-parse"
SCRIPT = SKILL / "scripts" / "parse_netlist.py"
EXAMPLE = SKILL / "assets" / "opamp_diff_stage.json"
SPICE_EXAMPLE = SKILL / "assets" / "folded_stage.spice"


def run(*arguments, cwd=ROOT, stdin="", **environment):
    """Return the exit code and the envelope of one call."""
    done = run_program(SCRIPT, *arguments, cwd=cwd, stdin=stdin, **environment)
    envelope = json.loads(done.stdout)
    assert set(envelope) == {"ok", "error", "data", "duration_ms"}
    return done.returncode, envelope


def refused(*arguments):
    code, envelope = run(*arguments)
    assert (code, envelope["ok"], envelope["data"], envelope["error"]["code"]) == (2, False, None, "INVALID_PARAM")
    return envelope["error"]["message"]


def test_seed_row_1_a_standard_differential_opamp_gives_6_devices_and_a_differential_pair():
    """正常解析: 标准差分运放网表 -> 成功, 器件数=6, 识别出差分对."""
    code, envelope = run("--netlist-path", EXAMPLE)
    assert (code, envelope["ok"], envelope["error"]) == (0, True, None)
    data = envelope["data"]
    assert data["parse_info"]["device_count"] == 6
    pairs = [module for module in data["circuit"]["modules"] if module["type"] == "differential_pair"]
    for pair in pairs:
        pair["devices"].sort()  # the order of the cards does not decide which is the left one
    assert pairs == [
        {
            "id": "diff_pair_1",
            "type": "differential_pair",
            "devices": ["M1", "M2"],
            "properties": {"matched": True, "common_source": "tail"},
        }
    ]


def test_seed_row_2_an_empty_netlist_gives_0_devices(tmp_path):
    """空网表: {"cells": [], "top": ""} -> 成功, 器件数=0."""
    path = tmp_path / "empty.json"
    path.write_text('{"cells": [], "top": ""}')
    code, envelope = run("--netlist-path", path)
    assert (code, envelope["ok"]) == (0, True)
    assert envelope["data"]["parse_info"]["device_count"] == 0
    assert envelope["data"]["circuit"]["devices"] == envelope["data"]["circuit"]["modules"] == []


def test_seed_row_3_a_path_that_does_not_exist_is_an_invalid_parameter():
    """无效路径: 不存在的文件路径 -> 失败, INVALID_PARAM."""
    assert refused("--netlist-path", "/no/such/netlist.json") == "Netlist file not found: /no/such/netlist.json"


@pytest.mark.parametrize("name", ["netlist.json", "netlist.txt", "netlist"])
def test_seed_row_4_a_file_that_is_not_json_is_an_invalid_parameter(tmp_path, name):
    """格式错误: 非 JSON 文件 -> 失败, INVALID_PARAM."""
    path = tmp_path / name
    path.write_text("this is not a netlist\n")
    assert refused("--netlist-path", path).startswith("Invalid JSON format: ")


def test_the_answer_has_the_shape_of_the_seed():
    circuit = run("--netlist-path", EXAMPLE)[1]["data"]["circuit"]
    assert circuit["name"] == "opamp_diff_stage"
    assert circuit["devices"][0] == {
        "id": "M1",
        "type": "nmos",
        "model": "nmos_1v8",
        "params": {"w": 4e-06, "l": 3.6e-07, "nf": 2, "m": 1},
        "terminals": {"d": "mirror", "g": "vinp", "s": "tail", "b": "vss"},
    }
    assert {"name": "vinp", "connections": [{"device": "M1", "terminal": "g"}]} in circuit["nets"]
    info = run("--netlist-path", EXAMPLE)[1]["data"]["parse_info"]
    assert (info["net_count"], info["module_count"]) == (len(circuit["nets"]), len(circuit["modules"]))


def test_a_schema_fault_and_an_unknown_type_have_the_seeds_messages(tmp_path):
    path = tmp_path / "bad.json"
    device = json.loads(EXAMPLE.read_text())["cells"][0]["devices"][0]
    path.write_text(json.dumps({"name": "x", "devices": [{**device, "type": "tunnel"}]}))
    assert refused("--netlist-path", path) == "Unknown device type: tunnel"
    path.write_text(json.dumps({"cells": [{"name": "x", "devices": [{**device, "terminals": {"g": {"deep": 1}}}]}]}))
    message = refused("--netlist-path", path)
    assert message.startswith(
        "Schema validation failed: cells[0].devices[0].terminals.g - must be a string, got object"
    )


def test_recognition_can_be_left_out():
    data = run("--netlist-path", EXAMPLE, "--no-identify-modules")[1]["data"]
    assert data["circuit"]["modules"] == []
    assert data["parse_info"]["module_count"] == 0


def test_spice_is_read_with_its_hierarchy_and_parameters():
    data = run("--netlist-path", SPICE_EXAMPLE)[1]["data"]
    assert data["parse_info"]["device_count"] == 12
    assert (data["parse_info"]["power_nets"], data["parse_info"]["ground_nets"]) == (["vdd"], ["vss"])
    inner = next(device for device in data["circuit"]["devices"] if device["id"] == "X1.M1")
    assert inner["params"] == {"l": 1e-06, "m": 1, "nf": 4, "w": 8e-06}


def test_the_top_can_be_chosen():
    assert run("--netlist-path", SPICE_EXAMPLE, "--top", "branch")[1]["data"]["circuit"]["name"] == "branch"
    assert "defines branch, folded_stage" in refused("--netlist-path", SPICE_EXAMPLE, "--top", "none")


def test_the_format_can_be_forced(tmp_path):
    path = tmp_path / "spice.json"
    path.write_text(SPICE_EXAMPLE.read_text())
    assert refused("--netlist-path", path).startswith("Invalid JSON format: ")
    assert run("--netlist-path", path, "--format", "spice")[0] == 0


def test_a_workspace_receives_the_circuit_as_a_netlist(tmp_path):
    data = run("--netlist-path", EXAMPLE, "--workspace", tmp_path / "design")[1]["data"]
    written = tmp_path / "design" / "circuit.json"
    assert data["circuit_path"] == str(written)
    assert json.loads(written.read_text()) == data["circuit"]
    assert run("--netlist-path", written)[1]["data"]["circuit"] == data["circuit"]
    first = written.read_bytes()
    run("--netlist-path", EXAMPLE, ANALOG_LAYOUT_WORKSPACE=str(tmp_path / "design"))
    assert written.read_bytes() == first


def test_without_a_workspace_nothing_is_written(tmp_path):
    run("--netlist-path", EXAMPLE, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_fault_leaves_the_workspace_alone(tmp_path):
    refused("--netlist-path", "/no/such.sp", "--workspace", tmp_path / "design")
    assert not (tmp_path / "design").exists()
    (tmp_path / "file").write_text("x")
    refused("--netlist-path", EXAMPLE, "--workspace", tmp_path / "file" / "design")


def test_parameters_may_come_as_json_on_stdin():
    code, envelope = run("--params", "-", stdin=json.dumps({"netlist_path": str(EXAMPLE)}))
    assert (code, envelope["data"]["parse_info"]["device_count"]) == (0, 6)


def test_the_json_example_follows_the_schema_beside_it():
    import jsonschema

    schema = json.loads((SKILL / "assets" / "netlist.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(EXAMPLE.read_text()))
    validator.validate({"cells": [], "top": ""})
    validator.validate(run("--netlist-path", SPICE_EXAMPLE)[1]["data"]["circuit"])


def test_reading_a_netlist_imports_nothing_heavy():
    program = (
        "import sys; from layoutkit.circuit import read_netlist; "
        f"read_netlist({str(SPICE_EXAMPLE)!r}); "
        "print([m for m in ('klayout', 'numpy', 'jsonschema', 'yaml', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_direction_of_the_current_is_told(run_script, tmp_path):
    """M1 is written source first, M2 and M3 are a transmission gate."""
    text = "M1 vss a y vss nmos w=1u l=1u\nM2 y c z vss nmos w=1u l=1u\nM3 y cb z vdd pmos w=1u l=1u\n"
    (tmp_path / "n.spice").write_text(f".subckt n a c cb y z vdd vss\n{text}.ends\n")
    _, envelope = run_script("netlist-parse/scripts/parse_netlist.py", "--netlist-path", tmp_path / "n.spice")
    info = envelope["data"]["parse_info"]
    assert "M1" in info["drain_source_exchanged"]
    assert info["carry_both_ways"] == ["M2", "M3"]
