"""A netlist given as text instead of a file: the same answers, within the same bounds, in every tool that reads one."""

import json
from pathlib import Path

import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import MAX_NETLIST_BYTES, NetlistText
from layoutkit.errors import FileError, NetlistError
from pack_tools import pack_tools
from skillpack import Runner
from skillscript import find_faults

pytestmark = pytest.mark.usefixtures("forked_tools")
SKILLS = Path(__file__).parents[2] / "skills"
TOOLS = pack_tools().by_id
READERS = {name: tool for name, tool in TOOLS.items() if "netlist_path" in tool.input_schema["properties"]}
# Without a netlist these take the circuit of the workspace.
HAVE_A_CIRCUIT = (
    *("lvs.run_check", "kg.import_circuit", "pex.extract_parasitics"),
    *("sim.compare_post_layout", "review.check_layout"),
)
SPECTRE = """simulator lang=spectre
subckt follower (in out vdd vss)
M1 (vdd in out vss) nch w=4u l=0.5u
ends follower
"""
INCLUDING = """.subckt top a b
.include "inner.sp"
R1 a b 1k
.ends
.lib /pdk/models.lib tt
"""


@pytest.fixture(scope="module")
def runner():
    with Runner(TOOLS) as runner:
        yield runner


def test_every_tool_with_a_netlist_takes_it_as_text_and_not_twice():
    assert set(READERS) == {
        *("netlist.parse", "flow.build_layout", "layout.place_modules"),
        *("lvs.run_check", "plan.suggest_constraints", "kg.import_circuit"),
        *("pex.extract_parasitics", "sim.compare_post_layout", "flow.explore_layouts", "review.check_layout"),
    }
    for name, tool in READERS.items():
        other = {"graphId": "g"} if name == "kg.import_circuit" else {}
        assert find_faults({**other, "netlist_text": "R1 a b 1k"}, tool.input_schema) == []
        (fault,) = find_faults({**other, "netlist_path": "n.sp", "netlist_text": "R1 a b 1k"}, tool.input_schema)
        assert "one of netlist_path, netlist_text" in fault.message, name
        assert "received netlist_path, netlist_text" in fault.message
        without = find_faults(other, tool.input_schema)
        if name in HAVE_A_CIRCUIT:
            assert without == []
        elif name == "flow.build_layout":  # a build that resumes has it from the workspace
            assert "give at least one of netlist_path, netlist_text, from" in without[0].message
            assert find_faults({"from": "route"}, tool.input_schema) == []
        elif name == "flow.explore_layouts":  # folders have netlists
            assert "give at least one of netlist_path, netlist_text, netlist_folders" in without[0].message
            assert find_faults({"netlist_folders": ["cells"]}, tool.input_schema) == []
        else:
            assert "give exactly one of netlist_path, netlist_text" in without[0].message
            assert "received none of them" in without[0].message


@pytest.mark.parametrize(
    "name", ["opamp_diff_stage.json", "folded_stage.spice", "inverter.cdl", "follower.scs", "flat.sp"]
)
def test_every_format_reads_as_from_a_file(name, tmp_path):
    texts = {
        "inverter.cdl": "*.SCALE MICRON\n.SUBCKT inv a y vdd vss\nMN y a vss vss nch W=1u L=0.15u\n.ENDS\n",
        "follower.scs": SPECTRE,
        "flat.sp": "\ufeff* a flat deck\r\nM1 d g s b nmos w=2u l=0.5u\r\n",
    }
    text = texts.get(name) or (SKILLS / "netlist-parse/assets" / name).read_text(encoding="utf-8")
    home = tmp_path / f"netlist{Path(name).suffix}"
    home.write_text(text, encoding="utf-8", newline="")
    read = read_netlist(NetlistText(text))
    assert read == read_netlist(home)
    assert read.devices


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_ends_in_a_newline_and_in_nothing_else(end, tmp_path):
    """In cp1252, which is read as Latin-1, 0x85 is an ellipsis; Unicode has a line separator that people paste."""
    text = "* a\x85 b\u2028 c\x0b d\x1c e\nM1 d g s b nmos w=2u l=0.5u\n+ m=2\n".replace("\n", end)
    circuit = read_netlist(NetlistText(text))
    assert [(device.id, device.params["m"]) for device in circuit.devices] == [("M1", 2)]
    (tmp_path / "n.sp").write_bytes(text.replace("\u2028", "").encode("latin-1"))
    assert read_netlist(tmp_path / "n.sp").devices == circuit.devices


def test_includes_that_may_hold_devices_are_refused_by_their_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("inner.sp").write_text("R2 a b 1k\n", encoding="utf-8")
    with pytest.raises(NetlistError) as caught:
        read_netlist(NetlistText(INCLUDING))
    assert "line 2: netlist_text cannot include 'inner.sp': a text has no folder" in caught.value.message
    assert "Not read, because the netlist's folder does not hold them: /pdk/models.lib" in caught.value.message


def test_a_text_has_the_bounds_of_a_file():
    with pytest.raises(FileError, match=f"netlist_text is too large: it has {MAX_NETLIST_BYTES + 2} bytes"):
        read_netlist(NetlistText("é" * (MAX_NETLIST_BYTES // 2 + 1)))
    with pytest.raises(FileError, match="netlist_text is binary"):
        read_netlist(NetlistText("R1 a b 1k\0"))
    with pytest.raises(NetlistError, match="'netlist_text' is not a netlist"):
        read_netlist(NetlistText("Dear reader,\nthis is a letter.\n"))
    with pytest.raises(NetlistError, match="line 2: "):
        read_netlist(NetlistText("* t\nM1 a b\n.end\n"))


def test_lvs_compares_with_a_text_as_with_a_file(runner, tmp_path):
    assets = SKILLS / "lvs-check/assets"
    params = {"layout_path": str(assets / "pair.gds"), "report_path": str(tmp_path / "a.lvsdb")}
    by_path = runner.run("lvs.run_check", {**params, "netlist_path": str(assets / "pair.spice")}).envelope["data"]
    report = (tmp_path / "a.lvsdb").read_bytes()
    text = (assets / "pair.spice").read_text(encoding="utf-8")
    by_text = runner.run("lvs.run_check", {**params, "netlist_text": text}).envelope["data"]
    assert by_text["files"].pop("netlist") == "netlist_text"
    assert by_path["files"].pop("netlist") == str(assets / "pair.spice")
    assert by_text == by_path
    assert by_text["matched"] is True
    assert (tmp_path / "a.lvsdb").read_bytes() == report
    wrong = runner.run("lvs.run_check", {**params, "netlist_text": text.replace("outp", "outq", 1)}).envelope["data"]
    assert wrong["matched"] is False


def test_a_circuit_is_planned_and_imported_from_a_text(runner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (SKILLS / "netlist-to-gds/assets/ota_5t.spice").read_text(encoding="utf-8")
    plan = runner.run("plan.suggest_constraints", {"netlist_text": text, "source": "recognition"}).envelope["data"]
    assert ["M1", "M2"] in [sorted(pair) for group in plan["constraints"]["symmetry"] for pair in group["pairs"]]
    imported = runner.run("kg.import_circuit", {"graphId": "ota", "netlist_text": text}).envelope
    assert imported["ok"], imported
    assert "netlist_text" in json.dumps(json.loads((tmp_path / ".chipforge/kg/graph.json").read_text()))
