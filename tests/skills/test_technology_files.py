"""technology.validate and technology.describe through their command lines."""

from pathlib import Path

import pytest

from layoutkit.technology import load, names
from pack_tools import pack_tools
from skillpack import Call
from skillpack.execution.short_answers import SHORT_BYTES, in_detail
from skillscript import SkillResult
from skillscript.envelope import to_json

VALIDATE = "technology-files/scripts/validate_technology.py"
DESCRIBE = "technology-files/scripts/describe_technology.py"


@pytest.mark.parametrize("name", names())
def test_a_shipped_technology_is_valid_and_described(run_script, name):
    process = load(name)
    code, envelope = run_script(VALIDATE, "--technology", name)
    data = envelope["data"]
    assert code == 0
    assert (data["valid"], data["technology"], data["faults"]) == (True, name, [])
    assert data["counts"]["rules"] == len(process.rules)
    told = run_script(DESCRIBE, "--technology", name)[1]["data"]
    assert {device["name"] for device in told["transistors"]} == set(process.devices)
    assert {device["name"] for device in told["passives"]} == set(process.passives)
    assert told["shipped"] == names()
    tool = pack_tools().by_id["technology.describe"]
    whole = Call(SkillResult.success(told, 300), tool=tool)
    short = in_detail(whole, "short").envelope
    listed = {device for found in short["data"]["device_names"].values() for device in found}
    assert listed == {*process.devices, *process.passives}
    assert len(to_json(short).encode()) <= SHORT_BYTES


def test_a_faulty_file_is_reported_with_every_fault_and_exit_code_1(run_script, tmp_path):
    text = Path(load("generic").path).read_text(encoding="utf-8")
    text = text.replace("gate_space: POLY_MIN_SPACE", "gate_space: POLY_MIN_SPCE").replace(
        "poly: poly,", "poly: pooly,"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    code, envelope = run_script(VALIDATE, "--technology", path)
    assert (code, envelope["ok"]) == (1, True)
    places = {fault["place"]: fault["message"] for fault in envelope["data"]["faults"]}
    assert "POLY_MIN_SPACE" in places["dimensions.gate_space"]
    assert "poly" in places["roles.poly"]
    assert envelope["data"]["counts"] is None


@pytest.mark.parametrize("script", [VALIDATE, DESCRIBE])
def test_a_technology_that_is_none_is_bad_input(run_script, script):
    code, envelope = run_script(script, "--technology", "nowhere")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")


def test_every_fault_of_the_names_of_devices_is_reported(run_script, tmp_path):
    text = Path(load("sg13g2").path).read_text(encoding="utf-8")
    planted = """
  prefix: sg13_
  other_names: {nmos_lv: sg13_lv_nfet}
  variants:
    rfmode: {sg13_lv_nfet: rfnmos}
  undrawn:
    - {type: nmoss, names: [rfnmos]}
    - {type: resistor, names: [rppd, res_metal1, lv_pmos]}
    - {type: resistor, names: [RES_METAL1], ohm_per_square: -1}
    - {type: other, names: []}
deep_well:"""
    begin, end = text.index("device_names:") + len("device_names:"), text.index("\ndeep_well:")
    path = tmp_path / "mine.yaml"
    path.write_text(text[:begin] + planted + text[end + len("\ndeep_well:") :], encoding="utf-8")
    code, envelope = run_script(VALIDATE, "--technology", path)
    faults = [(fault["place"], fault["message"]) for fault in envelope["data"]["faults"]]
    assert code == 1
    for place, words in (
        ("device_names.other_names.nmos_lv", "sg13_lv_nfet"),
        ("device_names.variants.rfmode", "sg13_lv_nfet"),
        ("device_names.undrawn[0]", "type must be one of"),
        ("device_names.undrawn[1]", "'rppd' is a device of this file that has a drawing"),
        ("device_names.undrawn[1]", "'lv_pmos' is a device of this file that has a drawing"),
        ("device_names.undrawn[2]", "'RES_METAL1' is listed twice"),
        ("device_names.undrawn[2].ohm_per_square", "0"),
        ("device_names.undrawn[3].names", ""),
    ):
        assert any(at == place and words in message for at, message in faults), (place, words, faults)
    assert run_script(DESCRIBE, "--technology", "sg13g2")[1]["data"]["undrawn_devices"][0]["type"] == "npn"
