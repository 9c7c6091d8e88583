"""Black boxes in the tools a user runs: refused by name, or listed, and then the verdict is not complete."""

import pytest

TEXT = """.subckt BIAS a vss
.ends
.subckt pair inp inn out1 out2 tail vss
M1 out1 inp tail vss nmos W=2u L=0.5u
M2 out2 inn tail vss nmos W=2u L=0.5u
XB tail vss BIAS
.ends
"""
FLOW, LVS = "netlist-to-gds/scripts/build_layout.py", "lvs-check/scripts/run_check.py"
LISTED = ("--black-boxes", '["bias"]')


@pytest.fixture
def netlist(tmp_path):
    path = tmp_path / "pair.spice"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("script", [FLOW, "module-placement/scripts/place_modules.py"])
def test_a_tool_refuses_a_black_box_by_name(run_script, netlist, script):
    code, envelope = run_script(script, "--netlist-path", netlist, "--workspace", "work")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "'BIAS' (used by XB)" in envelope["error"]["message"]


@pytest.mark.parametrize(
    "script", ["netlist-parse/scripts/parse_netlist.py", "constraint-planning/scripts/suggest_constraints.py"]
)
def test_an_unknown_cell_does_not_stop_understanding_the_rest(run_script, netlist, script):
    code, envelope = run_script(script, "--netlist-path", netlist)
    assert (code, envelope["ok"]) == (0, True)
    data = envelope["data"]
    if "parse_info" in data:
        assert data["circuit"]["instances"] == [{"id": "XB", "cell": "BIAS", "terminals": {"a": "tail", "vss": "vss"}}]
        assert [module["type"] for module in data["circuit"]["modules"]] == ["differential_pair"]
        (warning,) = (text for text in data["parse_info"]["warnings"] if "does not define" in text)
        assert "XB (BIAS on tail vss)" in warning
    else:
        assert data["constraints"]["symmetry"][0]["pairs"] == [["M1", "M2"]]


def test_a_listed_black_box_is_kept_in_the_verdict(run_script, netlist, tmp_path):
    code, envelope = run_script(FLOW, "--netlist-path", netlist, "--workspace", "work", *LISTED)
    data = envelope["data"]
    assert data["drc"]["passed"]
    boxes = [{"instance": "XB", "cell": "BIAS"}]
    assert (data["lvs"]["matched"], data["lvs"]["complete"], data["lvs"]["not_compared"]) == (True, False, boxes)
    assert code == 1  # not a complete match
    assert any("XB (BIAS)" in warning for warning in data["warnings"])
    assert "XB tail vss BIAS" in (tmp_path / "work/reference.spice").read_text()

    code, envelope = run_script(LVS, "--workspace", "work")
    assert code == 2
    assert "'BIAS'" in envelope["error"]["message"]
    code, envelope = run_script(LVS, "--workspace", "work", *LISTED)
    data = envelope["data"]
    assert (code, data["matched"], data["complete"], data["not_compared"]) == (1, True, False, boxes)


def test_netlist_parse_lists_the_instances(run_script, netlist):
    code, envelope = run_script("netlist-parse/scripts/parse_netlist.py", "--netlist-path", netlist, *LISTED)
    assert code == 0
    expected = [{"id": "XB", "cell": "BIAS", "terminals": {"a": "tail", "vss": "vss"}}]
    assert envelope["data"]["circuit"]["instances"] == expected
