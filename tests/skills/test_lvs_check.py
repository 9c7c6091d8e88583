"""The tool lvs.run_check through its command line: verdicts, places and bad input."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.extract.extractor import extract
from layoutkit.layout.files import layout_bytes, write_layout
from layoutkit.lvs.lvs_result import extracted_spice
from layoutkit.technology import load, names
from layoutkit.technology.device_kinds import KINDS
from patience import WATCHDOG_S

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "layoutkit" / "extract"))
from transistor_sketch import Sketch

SCRIPT = "lvs-check/scripts/run_check.py"
ASSETS = Path(__file__).resolve().parents[2] / "skills" / "lvs-check" / "assets"
PORTS = ("inp", "inn", "outp", "outn", "bias", "vss")


def example(technology="generic", *, crossed=False):
    """Return the layout of assets/pair.spice, right or with the drains of its pair crossed."""
    sketch = Sketch(load(technology), name="pair")
    drains = ("outn", "outp") if crossed else ("outp", "outn")
    for number, gate in enumerate(("inp", "inn")):
        sketch.mos("nmos", 2000, 500, f"{drains[number]} {gate} tail vss", fingers=2, text=f"M{number + 1}")
    sketch.mos("nmos", 1500, 1000, "tail bias vss vss", fingers=4, text="M3")
    sketch.label_rails(*PORTS)
    return sketch


@pytest.fixture
def check(run_script):
    def run(*arguments, layout=ASSETS / "pair.gds", netlist=ASSETS / "pair.spice"):
        return run_script(SCRIPT, "--layout-path", layout, "--netlist-path", netlist, *arguments)

    return run


def test_the_example_matches(check):
    code, envelope = check()
    data = envelope["data"]
    assert (code, envelope["ok"], data["matched"], data["mismatches"]) == (0, True, True, [])
    assert data["devices"]["matched"] == data["devices"]["reference"] == data["devices"]["layout"] == 3
    assert [(d["name"], d["w_um"], d["l_um"], d["fingers"]) for d in data["devices"]["extracted"]] == [
        ("M1", 4.0, 0.5, 2),
        ("M2", 4.0, 0.5, 2),
        ("M3", 6.0, 1.0, 4),
    ]
    assert [port["name"] for port in data["ports"]] == list(PORTS)


def test_crossed_drains_exit_1_and_are_reported_in_words(check):
    code, envelope = check(layout=ASSETS / "pair_crossed.gds")
    (mismatch,) = envelope["data"]["mismatches"]
    assert (code, envelope["ok"], envelope["data"]["matched"]) == (1, True, False)
    assert mismatch["kind"] == "swapped_nets"
    assert mismatch["message"].startswith("Nets outn and outp are exchanged at M1.d, M2.d")
    assert all(isinstance(place["x"], float) for place in mismatch["layout"])


@pytest.mark.parametrize("crossed", [False, True])
def test_the_example_layouts_are_what_the_sketch_draws(crossed):
    shipped = ASSETS / ("pair_crossed.gds" if crossed else "pair.gds")
    assert shipped.read_bytes() == layout_bytes(example(crossed=crossed).layout, "GDS2")


def test_the_workspace_is_the_default_for_layout_and_netlist(run_script, tmp_path):
    netlist = ASSETS / "pair.spice"
    run_script("netlist-parse/scripts/parse_netlist.py", "--netlist-path", netlist, "--workspace", tmp_path)
    shutil.copy(ASSETS / "pair.gds", tmp_path / "layout.gds")
    code, envelope = run_script(SCRIPT, "--workspace", tmp_path)
    assert (code, envelope["data"]["matched"]) == (0, True)
    assert envelope["data"]["files"]["netlist"] == str(tmp_path / "circuit.json")


def test_a_report_and_the_extracted_netlist_are_written_and_are_the_same_every_time(check, tmp_path):
    written = []
    for number in (1, 2):
        files = [tmp_path / f"{number}.lvsdb", tmp_path / f"{number}.spice"]
        assert check("--report-path", files[0], "--extracted-path", files[1])[0] == 0
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]
    code, envelope = check(netlist=tmp_path / "1.spice")
    assert (code, envelope["data"]["matched"]) == (0, True)


@pytest.mark.parametrize(("width_per", "matched"), [("finger", True), ("device", False)])
def test_a_netlist_may_give_the_width_of_one_finger(check, tmp_path, width_per, matched):
    text = (ASSETS / "pair.spice").read_text()
    (tmp_path / "finger.spice").write_text(text.replace("W=4u", "W=2u").replace("W=6u", "W=1.5u"))
    _, envelope = check("--map-devices", "--width-per", width_per, netlist=tmp_path / "finger.spice")
    assert envelope["data"]["matched"] is matched


def test_the_report_opens_in_klayout(check, tmp_path):
    import klayout.db as kdb

    check("--report-path", tmp_path / "x.lvsdb", layout=ASSETS / "pair_crossed.gds")
    database = kdb.LayoutVsSchematic()
    database.read(str(tmp_path / "x.lvsdb"))
    assert [circuit.name for circuit in database.netlist().each_circuit_top_down()] == ["pair"]
    assert database.reference.circuit_by_name("pair").device_by_name("M3") is not None


@pytest.mark.parametrize(
    ("which", "content", "message"),
    [
        ("layout", None, "no such file"),
        ("layout", b"", "it is empty"),
        ("layout", b"\x7fELF" * 20, "neither GDSII nor OASIS"),
        ("netlist", None, "Netlist file not found"),
        ("netlist", b"\0\1\2", "binary"),
    ],
    ids=["missing layout", "empty layout", "no layout", "missing netlist", "binary netlist"],
)
def test_unusable_files_are_invalid_param(check, tmp_path, which, content, message):
    path = tmp_path / "input.gds"
    if content is not None:
        path.write_bytes(content)
    code, envelope = check("--report-path", tmp_path / "x.lvsdb", **{which: path})
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]
    assert not (tmp_path / "x.lvsdb").exists()


def test_an_unwritable_report_is_refused_before_any_work(check, tmp_path):
    code, envelope = check("--report-path", tmp_path / "no" / "x.lvsdb")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")


def test_an_unknown_model_proposes_mapping_and_mapping_helps(check, tmp_path):
    netlist = tmp_path / "other.spice"
    netlist.write_text((ASSETS / "pair.spice").read_text().replace(" nmos ", " nch_mac "))
    code, envelope = check(netlist=netlist)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "nch_mac (M1, M2, M3)" in envelope["error"]["message"]
    assert "map_devices" in envelope["error"]["message"]
    code, envelope = check("--map-devices", netlist=netlist)
    assert (code, envelope["data"]["matched"]) == (0, True)
    assert any("nch_mac" in warning for warning in envelope["data"]["warnings"])


def test_a_netlist_that_names_only_the_kind_is_not_simply_complete(check, tmp_path):
    layout, netlist = tmp_path / "pair.gds", tmp_path / "pair.spice"
    write_layout(example("sky130A").layout, layout)
    plain = (ASSETS / "pair.spice").read_text()
    for model, verdict in (("nmos", "complete with replaced devices"), ("nfet_01v8", "complete")):
        netlist.write_text(plain.replace(" nmos ", f" {model} "))
        code, envelope = check("--technology", "sky130A", layout=layout, netlist=netlist)
        assert (code, envelope["data"]["verdict"]) == (0, verdict)
        assert [entry["after"]["model"] for entry in envelope["data"]["replaced_devices"]] == (
            ["nfet_01v8"] * 2 if model == "nmos" else []
        )


def test_passives_are_refused_not_ignored(check, tmp_path):
    netlist = tmp_path / "r.spice"
    netlist.write_text((ASSETS / "pair.spice").read_text().replace(".ends", "R1 outp outn 10k\n.ends"))
    code, envelope = check(netlist=netlist)
    assert (code, envelope["error"]["code"]) == (2, "UNSUPPORTED_OPERATION")
    assert "R1 (resistor)" in envelope["error"]["message"]


def test_a_passive_that_states_its_value_alone_proposes_mapping(check, tmp_path):
    netlist = tmp_path / "r.spice"
    text = (ASSETS / "pair.spice").read_text().replace(" nmos ", " nfet_01v8 ")
    netlist.write_text(text.replace(".ends", "R1 outp outn res_high_po 10k\n.ends"))
    code, envelope = check("--technology", "sky130A", netlist=netlist)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "'R1'" in envelope["error"]["message"]
    assert "map_devices" in envelope["error"]["message"]


def test_a_layer_that_extraction_does_not_read_fails_the_comparison_until_it_is_waived(check, tmp_path):
    layout = kdb.Layout()
    layout.read(str(ASSETS / "pair.gds"))
    layout.top_cell().shapes(layout.layer(250, 0)).insert(kdb.Box(0, 0, 100, 100))
    layout.write(str(tmp_path / "more.gds"))
    code, envelope = check(layout=tmp_path / "more.gds")
    data = envelope["data"]
    assert (code, data["matched"], data["complete"], data["mismatches"]) == (1, False, False, [])
    assert [layer["layer"] for layer in data["layers_unchecked"]] == ["250/0"]
    code, envelope = check("--waived-layers", '["250/0"]', layout=tmp_path / "more.gds")
    data = envelope["data"]
    assert (code, data["matched"], data["complete"], data["layers_waived"]) == (0, True, True, ["250/0"])


def test_the_wrong_technology_does_not_match(check):
    code, envelope = check("--technology", "sky130A", "--map-devices")
    assert (code, envelope["data"]["matched"]) == (1, False)
    assert {"missing_device", "missing_port"} == {m["kind"] for m in envelope["data"]["mismatches"]}


def netgen_verdict(folder, layout_spice, netlist):
    (folder / "setup.tcl").write_text(
        "permute transistors\n"
        "foreach model {nmos_1v8} {\n"
        '  foreach side {1 2} { catch { property "-circuit$side $model" tolerance {w 0.001} {l 0.001} } }\n'
        "}\n"
    )
    subprocess.run(
        ["netgen-lvs", "-batch", "lvs", f"{layout_spice} pair", f"{netlist} pair", "setup.tcl", "netgen.out"],
        cwd=folder,
        capture_output=True,
        timeout=WATCHDOG_S,
        check=False,
    )
    return "Circuits match uniquely." in (folder / "netgen.out").read_text()


@pytest.mark.skipif(shutil.which("netgen-lvs") is None, reason="needs netgen-lvs")
@pytest.mark.parametrize(
    ("layout", "edit", "matches"),
    [
        ("pair.gds", ("", ""), True),
        ("pair_crossed.gds", ("", ""), False),
        ("pair.gds", ("M3 tail bias vss vss", "M3 tail bias vss tail"), False),
        ("pair.gds", ("M2 outn inn tail vss", "M2 outn inp tail vss"), False),
    ],
)
def test_netgen_agrees(check, tmp_path, layout, edit, matches):
    netlist = tmp_path / "pair.spice"
    netlist.write_text((ASSETS / "pair.spice").read_text().replace(" nmos ", " nmos_1v8 ").replace(*edit))
    code, envelope = check("--extracted-path", tmp_path / "x.spice", layout=ASSETS / layout, netlist=netlist)
    assert envelope["data"]["matched"] is matches
    assert code == (0 if matches else 1)
    assert netgen_verdict(tmp_path, "x.spice", "pair.spice") is matches


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="needs ngspice")
def test_ngspice_simulates_the_extracted_netlist(tmp_path):
    sketch = example()
    spice = extracted_spice(extract(sketch.layout, sketch.cell, sketch.technology)).replace(".end\n", "")
    deck = tmp_path / "deck.spice"
    deck.write_text(
        f"{spice}.model nmos_1v8 nmos level=1 vto=0.5 kp=200u\n"
        "X1 bias in in out out 0 pair\nVb bias 0 1\nVi in 0 1.5\nVo out 0 1.8\n.op\n.print op i(vo)\n.end\n"
    )
    done = subprocess.run(["ngspice", "-b", deck], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    # Tail transistor in saturation: kp / 2 * (W/L = 6) * (1 - 0.5)^2 = 150 uA flow out of the supply.
    (current,) = [line.split()[1] for line in done.stdout.splitlines() if line.strip().startswith("vo#branch")]
    assert float(current) == pytest.approx(-150e-6, rel=1e-2)


def test_the_answer_is_json_that_names_no_numbers_it_does_not_have(check):
    _, envelope = check(layout=ASSETS / "pair_crossed.gds")
    json.dumps(envelope, allow_nan=False)


def test_a_hierarchical_layout_counts_its_own_labels_only(check, tmp_path):
    import klayout.db as kdb

    sketch = example()
    top = sketch.layout.create_cell("wrapper")
    top.insert(kdb.CellInstArray(sketch.cell.cell_index(), kdb.Trans(0, False, 5000, 0)))
    write_layout(sketch.layout, tmp_path / "deep.gds")
    code, envelope = check(layout=tmp_path / "deep.gds")
    assert code == 1
    assert {m["kind"] for m in envelope["data"]["mismatches"]} == {"missing_port"}
    assert all(m["layout"][0]["x"] is not None for m in envelope["data"]["mismatches"])
    assert check("--cell-name", "pair", layout=tmp_path / "deep.gds")[0] == 0


@pytest.mark.skipif(shutil.which("klayout") is None, reason="needs the KLayout application")
def test_the_reports_open_in_the_klayout_application(check, tmp_path):
    lines = []
    for name in ("pair", "pair_crossed"):
        check("--report-path", tmp_path / f"{name}.lvsdb", layout=ASSETS / f"{name}.gds")
        lines += ["lvs = RBA::LayoutVsSchematic::new", f'lvs.read("{tmp_path}/{name}.lvsdb")']
        lines += ["lvs.xref.each_circuit_pair { |pair| puts pair.status.to_s }"]
    (tmp_path / "read.rb").write_text("\n".join(lines))
    done = subprocess.run(
        ["klayout", "-b", "-r", tmp_path / "read.rb"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert done.stdout.split() == ["Match", "NoMatch"], done.stderr


def test_every_kind_of_device_fits_the_answer():
    """The schema names the terminals of the device kinds; it refuses an answer with any other."""
    schema = json.loads((ASSETS.parent / "schemas/lvs.run_check.output.json").read_text(encoding="utf-8"))
    nets = schema["properties"]["devices"]["properties"]["extracted"]["items"]["properties"]["nets"]
    kinds = {spec.kind for name in names() for spec in load(name).passives.values()} | {KINDS["nmos"], KINDS["pmos"]}
    for kind in kinds:
        for terminals in (kind.terminals, kind.all_terminals):  # t is heat, which no layout has
            assert {*terminals} - {"t"} <= nets["properties"].keys(), kind.name
            assert any({*option["required"]} <= {*terminals} for option in nets["anyOf"]), kind.name
    assert {"esd_clamp", "schottky", "npn"} <= {kind.name for kind in kinds}
