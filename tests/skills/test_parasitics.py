"""The tool pex.extract_parasitics through its command line: figures, files, engines and bad input."""

import json
import os
import re
import shutil
import stat
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import map_circuit, read_netlist
from layoutkit.errors import UnsupportedOperationError
from layoutkit.parasitics.external_engines import ExternalRun, external_parasitics
from layoutkit.parasitics.parasitic_extraction import PexOptions
from layoutkit.technology import load

SCRIPT = "parasitics/scripts/extract_parasitics.py"
ASSETS = Path(__file__).resolve().parents[2] / "skills" / "parasitics" / "assets"
EXAMPLE = ("--layout-path", ASSETS / "pair.gds", "--netlist-path", ASSETS / "pair.spice", "--technology", "sky130A")


def test_the_example_has_figures_of_each_net_and_pair_and_writes_both_files(run_script, tmp_path):
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--output-dir", tmp_path)
    data = envelope["data"]
    assert (code, data["unchecked"]) == (0, [])
    nets = {net["net"]: net for net in data["nets"]}
    assert sorted(nets) == ["bias", "inn", "inp", "outn", "outp", "tail", "vss"]
    assert nets["inp"]["total_ff"] == pytest.approx(6.29, rel=0.05)  # Magic 8.3.677 says 6.278
    assert [each["device"] for each in nets["inp"]["terminals"]] == ["M1"]
    assert nets["tail"]["from"] == "M3.d"
    assert {tuple(pair["nets"]) for pair in data["pairs"]} == {("outp", "outn"), ("inp", "inn")}
    assert data["files"]["spice"] == str(tmp_path / "pair.pex.spice")
    assert data["layout_sha256"] in (tmp_path / "pair.pex.spice").read_text()
    spef = (tmp_path / "pair.spef").read_text()
    assert spef.startswith("*SPEF ")
    assert "\n// layout_sha256=" in spef


def test_an_answer_may_be_of_one_net_while_the_files_hold_all(run_script, tmp_path):
    whole = run_script(SCRIPT, *EXAMPLE)[1]["data"]
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--net-names", '["outp"]', "--output-dir", tmp_path)
    data = envelope["data"]
    assert (code, data["nets"]) == (0, [net for net in whole["nets"] if net["net"] == "outp"])
    assert [pair["nets"] for pair in data["pairs"]] == [["outp", "outn"]]
    assert data["total_ff"] == whole["total_ff"]
    assert "inn" in (tmp_path / "pair.spef").read_text()
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--net-names", '["out", "inp"]')
    assert (code, envelope["error"]["details"]["provided_value"]) == (2, ["out"])
    assert "did you mean 'outp'" in envelope["error"]["message"]


def test_the_modes_differ_in_what_the_netlist_holds(run_script):
    found = {}
    for mode in ("c", "cc", "rc"):
        _, envelope = run_script(SCRIPT, *EXAMPLE, "--mode", mode)
        found[mode] = envelope["data"]["elements"], envelope["data"]["nets"][0]["total_ff"]
    assert found["c"][0]["resistors"] == found["cc"][0]["resistors"] == 0 < found["rc"][0]["resistors"]
    assert found["c"][0]["capacitors"] < found["cc"][0]["capacitors"] < found["rc"][0]["capacitors"]
    assert len({total for _, total in found.values()}) == 1


def test_a_workspace_gets_the_files_and_they_age_with_its_layout(run_script, finished_layout, tmp_path):
    made = finished_layout((ASSETS / "pair.spice").read_text(), "sky130A")[1]
    workspace = shutil.copytree(made, tmp_path / "ws")
    code, envelope = run_script(SCRIPT, "--workspace", workspace)
    assert (code, envelope["data"]["files"]["spice"]) == (0, str(workspace / "pair.pex.spice"))
    record = json.loads((workspace / "layout_workspace.json").read_text())
    assert "pair.pex.spice" in json.dumps(record)


@pytest.mark.parametrize(("technology", "output_ff"), [("sky130A", 10.5), ("gf180mcuD", 9.2), ("sg13g2", 9.8)])
def test_the_output_of_the_example_amplifier_has_little_capacitance_and_its_inputs_are_alike(
    run_script, finished_layout, technology, output_ff
):
    """With risers at the ends of the rows the output had 15.4 and 13.0 fF in the first two processes."""
    netlist = ASSETS.parents[1] / "netlist-to-gds" / "assets" / "ota_5t.spice"
    workspace = finished_layout(netlist, technology)[1]
    layout = "--layout-path", workspace / "layout.gds", "--netlist-path", netlist, "--technology", technology
    _, envelope = run_script(SCRIPT, *layout)
    assert {net["net"]: net["total_ff"] for net in envelope["data"]["nets"]}["out"] < output_ff
    pairs = {frozenset(pair["nets"]): pair["c_mismatch_percent"] for pair in envelope["data"]["pairs"]}
    assert pairs[frozenset({"inp", "inn"})] < 2.0


@pytest.mark.parametrize("engine", ["magic", "kpex"])
def test_a_missing_engine_is_exit_code_3_with_a_hint(run_script, engine, tmp_path):
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--engine", engine, PATH=str(tmp_path))
    assert (code, envelope["error"]["code"]) == (3, "SERVICE_UNAVAILABLE")
    assert f"install {'Magic 8.3' if engine == 'magic' else 'KLayout-PEX'}" in envelope["error"]["message"]


def test_a_missing_process_kit_is_exit_code_3_with_a_hint(run_script, program):
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--engine", "magic", PATH=program("magic", ""), PDK_ROOT="/nowhere")
    assert (code, envelope["error"]["code"]) == (3, "SERVICE_UNAVAILABLE")
    assert "set PDK_ROOT to the folder that holds sky130A" in envelope["error"]["message"]


NETLIST = """.subckt pair vss inp inn outp
+ outn bias tail
C1 inp inn 2f
C2 inp vss 1.5f
R1 outp outp.n1 3
C3 outp.n1 VSUBS 4f
.ends
"""
WHOLE_NETS = """.subckt pair vss inp inn outp outn bias
C1 inp inn 2f
C2 inp vss 1.5f
C3 outp VSUBS 4f
C4 inn vss 2.5f
C5 tail vss 6f
.ends
"""


def test_magics_netlist_gets_the_pins_of_the_input_and_figures_are_those_without_resistors(
    run_script, program, tmp_path
):
    """With resistors Magic leaves out couplings; its hierarchical writer moves the capacitance of gates elsewhere.

    Inner nets get labels, which Magic may read as ports.
    """
    kit = tmp_path / "kits" / "sky130A" / "libs.tech" / "magic"
    kit.mkdir(parents=True)
    (kit / "sky130A.magicrc").touch()
    files = (("out.spice", NETLIST), ("whole_nets.spice", WHOLE_NETS))
    written = "".join(f"cat > {name} <<'E'\n{text}E\n" for name, text in files)
    path = program("magic", f"{written}cp pex.tcl layout.gds {tmp_path}\n")
    arguments = (*EXAMPLE, "--engine", "magic", "--output-dir", tmp_path)
    code, envelope = run_script(SCRIPT, *arguments, PATH=path, PDK_ROOT=str(tmp_path / "kits"))
    assert code == 0, envelope
    nets = {net["net"]: net for net in envelope["data"]["nets"]}
    assert [nets[net]["total_ff"] for net in ("inp", "inn", "outp", "tail")] == [3.5, 4.5, 4.0, 6.0]
    labelled = kdb.Layout()
    labelled.read(str(tmp_path / "layout.gds"))
    li1_label = labelled.top_cell().shapes(labelled.layer(67, 5))
    assert [shape.text_string for shape in li1_label.each(kdb.Shapes.STexts)] == ["tail"]
    written = (tmp_path / "pair.pex.spice").read_text()
    assert ".subckt pair inp inn outp outn bias vss\n" in written
    script = (tmp_path / "pex.tcl").read_text()
    assert "ext2spice hierarchy off" in script[: script.index("whole_nets")]
    assert "extresist" in script[script.index("whole_nets") :]
    assert "spef" not in envelope["data"]["files"]
    assert any("extresist drops and repeats some" in each for each in envelope["data"]["unchecked"])


def test_magics_spelling_of_names_becomes_that_of_the_input(run_script, program, tmp_path):
    """Magic writes the net Bias! as Bias."""
    kit = tmp_path / "kits" / "sky130A" / "libs.tech" / "magic"
    kit.mkdir(parents=True)
    (kit / "sky130A.magicrc").touch()
    extracted = NETLIST.replace(" bias", " Bias").replace(".ends", "R2 Bias Bias.n1 3\nC4 Bias.n1 vss 7f\n.ends")
    given = re.sub(r"\bbias\b", "Bias!", (ASSETS / "pair.spice").read_text())
    path = program("magic", f"cat > out.spice <<'E'\n{extracted}E\n")
    drawn = kdb.Layout()
    drawn.read(str(ASSETS / "pair.gds"))
    for layer in drawn.layer_indexes():
        for shape in drawn.top_cell().shapes(layer).each(kdb.Shapes.STexts):
            shape.text_string = shape.text_string.replace("bias", "Bias!")
    drawn.write(str(tmp_path / "pair.gds"))
    layout = ("--layout-path", tmp_path / "pair.gds", "--netlist-text", given, "--technology", "sky130A")
    code, envelope = run_script(
        SCRIPT, *layout, "--engine", "magic", "--output-dir", tmp_path, PATH=path, PDK_ROOT=str(tmp_path / "kits")
    )
    assert code == 0, envelope
    assert {net["net"]: net["total_ff"] for net in envelope["data"]["nets"]}["Bias!"] == 7.0
    written = (tmp_path / "pair.pex.spice").read_text()
    assert ".subckt pair inp inn outp outn Bias! vss\n" in written
    assert "R2 Bias! Bias!.n1 3\n" in written
    assert not any("order of pins" in each for each in envelope["data"]["unchecked"])


def test_an_engine_that_does_not_end_is_stopped(run_script, program, tmp_path):
    kit = tmp_path / "sky130A" / "libs.tech" / "magic"
    kit.mkdir(parents=True)
    (kit / "sky130A.magicrc").touch()
    arguments = (*EXAMPLE, "--engine", "magic", "--timeout-s", "0.2")
    code, envelope = run_script(SCRIPT, *arguments, PATH=program("magic", "sleep 60"), PDK_ROOT=str(tmp_path))
    assert (code, envelope["error"]["code"]) == (4, "TIMEOUT")


def test_a_program_that_writes_too_much_is_stopped(program, monkeypatch):
    monkeypatch.setenv("PATH", program("kpex", "head -c 2000000 /dev/zero > big; sleep 60"))
    layout, technology = kdb.Layout(), load("sky130A")
    layout.read(str(ASSETS / "pair.gds"))
    circuit = map_circuit(read_netlist(str(ASSETS / "pair.spice")), technology)
    with pytest.raises(UnsupportedOperationError, match="kpex wrote more than 1000000 bytes and was stopped"):
        external_parasitics(layout, circuit, technology, PexOptions(), ExternalRun("kpex", max_bytes=1_000_000))


def test_another_circuit_is_refused_with_its_differences(run_script):
    netlist = (ASSETS / "pair.spice").read_text().replace("M2 outn", "M2 outp")
    code, envelope = run_script(
        SCRIPT, "--layout-path", ASSETS / "pair.gds", "--netlist-text", netlist, "--technology", "sky130A"
    )
    assert code == 2
    assert "is not the circuit pair" in envelope["error"]["message"]


def test_all_faults_of_the_constraints_are_told_at_once(run_script):
    wrong = {"symmetry": [{"net_pairs": [["inp", "no"], ["nowhere", "inn"]]}]}
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--constraints", json.dumps(wrong))
    assert code == 2
    assert "'no'" in envelope["error"]["message"]
    assert "'nowhere'" in envelope["error"]["message"]


@pytest.fixture
def program(tmp_path):
    """Return a function that makes a program of a shell script; it returns a PATH on which it is first."""

    def make(name, script):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(stat.S_IRWXU)
        return f"{folder}{os.pathsep}{os.environ['PATH']}"

    return make
