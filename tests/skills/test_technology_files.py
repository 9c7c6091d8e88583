"""technology.validate and technology.describe through their command lines."""

from pathlib import Path

import pytest

from layoutkit.technology import load, names

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
