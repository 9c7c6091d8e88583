"""The main job through its command line: flow.build_layout (S0.1, S0.2, S0.7-S0.10, S0.15)."""

import html
import json
import re
import shlex
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import klayout.db as kdb
import pytest
from klayout import rdb

import forked
from layoutkit.explore.layout_job import figures_of
from layoutkit.explore.scoreboard import row
from layoutkit.flow.summary import summary
from layoutkit.technology import load
from pack_tools import pack_tools
from skillpack import Call
from skillpack.execution.short_answers import in_detail
from skillscript import SkillResult, find_faults
from skillscript.envelope import to_json
from thorough import in_this_run, processes

SCRIPT = "netlist-to-gds/scripts/build_layout.py"
OTA = Path(__file__).parents[2] / "skills/netlist-to-gds/assets/ota_5t.spice"
PAIR = OTA.with_name("pair.spice")  # laid out in a third of the time
TECHNOLOGIES = processes()

# A folded-cascode amplifier: 13 transistors, five matched groups, a cascode bias.
FOLDED_CASCODE = """
.subckt folded inp inn out vbp vbn vcn vcp vdd vss
.param wn=4u wp=8u
M1 x1 inp tail vdd pmos W='2*wp' L=0.5u nf=4
M2 x2 inn tail vdd pmos W='2*wp' L=0.5u nf=4
M3 tail vbp vdd vdd pmos W=16u L=1u nf=4
M4 x1 vbn vss vss nmos W=wn L=1u nf=2
M5 x2 vbn vss vss nmos W=wn L=1u nf=2
M6 y1 vcn x1 vss nmos W=wn L=0.5u nf=2
M7 out vcn x2 vss nmos W=wn L=0.5u nf=2
M8 y1 vcp z1 vdd pmos W=wp L=0.5u nf=2
M9 out vcp z2 vdd pmos W=wp L=0.5u nf=2
M10 z1 y1 vdd vdd pmos W=wp L=1u nf=2
M11 z2 y1 vdd vdd pmos W=wp L=1u nf=2
M12 vbn vbn vss vss nmos W=wn L=1u nf=2
M13 vbp vbp vdd vdd pmos W=wp L=1u nf=2
.ends
"""
LATCH = """
.subckt latch d q qb clk vdd vss
M1 q qb vdd vdd pmos W=2u L=0.18u
M2 qb q vdd vdd pmos W=2u L=0.18u
M3 q qb n1 vss nmos W=1u L=0.18u
M4 qb q n2 vss nmos W=1u L=0.18u
M5 n1 d t vss nmos W=2u L=0.18u nf=2
M6 n2 clk t vss nmos W=2u L=0.18u nf=2
M7 t clk vss vss nmos W=3u L=0.18u m=2
.ends
"""


@pytest.fixture
def build(run_script, tmp_path):
    """Return a function that lays out netlist text (or a path) and returns exit code and envelope."""

    def run(netlist, *arguments, technology="sky130A", workspace="ws"):
        path = netlist
        if isinstance(netlist, str):
            path = tmp_path / "in.spice"
            path.write_text(netlist, encoding="utf-8")
        arguments = (
            "--netlist-path",
            path,
            "--technology",
            technology,
            "--workspace",
            tmp_path / workspace,
            *arguments,
        )
        return run_script(SCRIPT, *arguments)

    return run


NETLISTS = {"ota": OTA, "folded_cascode": FOLDED_CASCODE, "latch": LATCH}
# The OTA in all technologies, the others in two each.
CASES = [("ota", name) for name in TECHNOLOGIES]
CASES += [("folded_cascode", "sky130A"), ("folded_cascode", "sg13g2"), ("latch", "gf180mcuD"), ("latch", "generic")]
CASES = in_this_run(CASES, product(NETLISTS, TECHNOLOGIES))


@pytest.mark.parametrize(("netlist", "technology"), CASES)
def test_a_netlist_becomes_a_clean_layout(run_once, technology, netlist):
    code, envelope, _ = run_once(SCRIPT, NETLISTS[netlist], "--technology", technology)
    data = envelope["data"]
    assert (code, envelope["error"]) == (0, None)
    assert data["drc"]["passed"]
    assert data["drc"]["total_violations"] == 0
    assert data["drc"]["rules_unchecked"] == []
    assert data["drc"]["rules_checked"] == len([rule for rule in load(technology).rules if "scope" not in rule.options])
    lvs = data["lvs"]
    assert (lvs["matched"], lvs["complete"], lvs["mismatches"]) == (True, True, [])
    matched = [module for module in data["modules"] if len(module["devices"]) > 1]
    assert matched
    assert all(module["dummies"]["reason"] for module in matched)
    assert (lvs["dummies"] > 0) == any(module["dummies"]["at_each_end"] for module in matched)
    assert (lvs["not_compared"], lvs["layers_unchecked"], lvs["layers_waived"]) == ([], [], [])
    assert data["routing"]["failed"] == []
    assert data["routing"]["routed"] == data["routing"]["total_nets"]
    assert [stage["name"] for stage in data["stages"]] == [
        "parse", "recognise", "place", "route", "currents", "export", "drc", "lvs", "metrics", "view",
    ]  # fmt: skip


@pytest.mark.parametrize(("netlist", "technology"), CASES)
def test_the_short_answer_of_a_clean_build_has_two_kilobytes_and_the_rest_is_in_its_file(run_once, technology, netlist):
    _, envelope, workspace = run_once(SCRIPT, NETLISTS[netlist], "--technology", technology)
    tool = pack_tools().by_id["flow.build_layout"]
    answer = in_detail(Call(SkillResult.from_dict(envelope), tool=tool), "short").envelope
    data, left_out = answer["data"], answer["left_out"]
    assert len(to_json(answer).encode()) <= 2048
    assert find_faults(data, dict(tool.output_schema)) == find_faults(envelope["data"], dict(tool.output_schema)) == []
    assert (data["drc"]["passed"], data["lvs"]["matched"], data["review"]["must"]) == (
        True, True, envelope["data"]["review"]["must"],
    )  # fmt: skip
    assert {"gds", "png", "report"} == set(data["files"])
    assert data["next"]
    assert set(data) | set(left_out["fields"]) == {
        name for name, value in envelope["data"].items() if value or name == "remaining_stages"
    }
    whole = json.loads((workspace / "summary.json").read_text(encoding="utf-8"))
    assert {**whole, "next": data["next"]} == envelope["data"]
    assert left_out["whole_answer"].endswith("/summary.json")


@pytest.mark.parametrize(("netlist", "technology"), CASES)
def test_every_place_tells_the_size_aspect_and_filling_that_are_drawn(run_once, technology, netlist):
    """Only the GDS file says what is drawn: summary, answer, page, LEF, board, search and Python agree with it."""
    _, envelope, workspace = run_once(SCRIPT, NETLISTS[netlist], "--technology", technology)
    data = envelope["data"]
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    cell, first = layout.top_cell(), load(technology).conductors[0].name
    box = cell.dbbox()
    width, height = box.width(), box.height()
    aspect = max(width, height) / min(width, height)
    modules = {module["name"] for module in data["modules"]}
    filled = kdb.Region([each.bbox() for each in cell.each_inst() if each.cell.name in modules])
    for ring in (each for each in cell.each_inst() if each.cell.name.startswith("ring_")):
        metal = kdb.Region(ring.cell.begin_shapes_rec(load(technology).layer(layout, first))).merged()
        filled += kdb.Region(ring.bbox()) - metal.transformed(ring.trans).holes()
    used = filled.merged().area() / cell.bbox().area()

    placement, sizes = data["placement"], data["metrics"]["metrics"]
    assert (placement["width"], placement["height"]) == pytest.approx((width, height), abs=1e-6)
    assert (sizes["width"], sizes["height"]) == pytest.approx((width, height), abs=1e-6)
    assert sizes["total_area"] == pytest.approx(width * height, rel=1e-6)
    assert sizes["aspect_ratio"] == pytest.approx(width / height, abs=1e-6)
    assert placement["aspect"] == figures_of(data)["aspect"] == pytest.approx(aspect, abs=1e-3)
    assert placement["utilisation"] == pytest.approx(used, abs=1e-3)
    assert figures_of(data)["area"] == pytest.approx(width * height, rel=1e-6)
    assert row(workspace)["aspect"] == pytest.approx(aspect, abs=1e-3)
    (line,) = (line for line in summary(data).splitlines() if line.startswith("  size"))
    sides, fill = f"sides {round(aspect, 3):g} : 1", f"modules fill {100 * round(used, 3):.3g} %"
    told = f"{width:g} x {height:g} um, {width * height:.6g} um2, {sides}, {fill}"
    assert line == f"  size      {told}"
    page = (workspace / "report.html").read_text(encoding="utf-8")
    assert f"<dd>{width:g} \N{MULTIPLICATION SIGN} {height:g}<" in page
    assert f"sides {round(aspect, 3):g} : 1" in page
    if (workspace / "layout.lef").exists():
        assert f"SIZE {width:g} BY {height:g} ;" in (workspace / "layout.lef").read_text(encoding="utf-8")


def test_commands_edit_and_check_what_was_built(tmp_path):
    """A size as in a netlist, one word for each job; a second change keeps the first."""

    def skillpack(*words, folder=tmp_path):
        command = [*forked.skillpack(), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)

    (tmp_path / "pair.sp").write_text(
        ".subckt pair a b c d t vss\nM1 c a t vss nfet_01v8 w=4u l=0.5u nf=2\nM2 d b t vss nfet_01v8 w=4u l=0.5u nf=2\n"
        "M3 t t vss vss nfet_01v8 w=4u l=1u nf=2\n.ends\n"
    )
    built = skillpack("build", "pair.sp", "-t", "sky130", "--to", "ws")
    assert (built.returncode, built.stdout) == (0, f"{Path('ws/report.html')}\n")
    page = built.stderr.partition("\n\n")[2].splitlines()  # after the stages
    assert page[0] == "pair in sky130A: clean"
    assert [line.split()[0] for line in page[1:5]] == ["DRC", "LVS", "review", "finding"]
    assert len(page) <= 24
    for sizes, folder in (('{"M3": {"w": "6u"}}', tmp_path), ('{"M3": {"l": "2u"}}', tmp_path / "ws")):
        edited = skillpack("edit", sizes, "--to", str(tmp_path / "ws"), folder=folder)
        assert edited.returncode == 0, edited.stderr
        assert sum("out of date" in line for line in edited.stderr.splitlines()) <= 1
    assert "so that they differ" in (tmp_path / "ws/report.html").read_text(encoding="utf-8")
    devices = json.loads((tmp_path / "ws/circuit.json").read_text())["circuit"]["devices"]
    assert {each["id"]: (each["params"]["w"], each["params"]["l"]) for each in devices} == {
        "M1": (4e-6, 0.5e-6), "M2": (4e-6, 0.5e-6), "M3": (6e-6, 2e-6),
    }  # fmt: skip
    checked = skillpack("check", "ws/layout.gds", "--netlist", "ws/reference.spice")
    *verdicts, page = [line for line in checked.stdout.splitlines() if line[0] != " "]
    assert [line.split()[0] for line in verdicts] == ["DRC", "LVS", "review"]
    assert Path(page) == tmp_path / "ws/layout.html"
    checked = skillpack("check", "ws/layout.gds", "--netlist", "pair.sp")
    assert "DRC     clean in sky130A: 0 violations" in checked.stdout
    assert "LVS     not matched: 2 of 3 devices" in checked.stdout
    assert "review.check_layout was left out, since lvs.run_check found faults" in checked.stdout
    assert checked.returncode == 1


def test_every_file_is_what_its_name_says(finished_layout):
    data, _ = finished_layout(OTA, "sky130A")
    files = {kind: Path(path) for kind, path in data["files"].items()}
    layout = kdb.Layout()
    layout.read(str(files["gds"]))
    assert layout.top_cell().name == "ota_5t"
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert files["report"].read_bytes().startswith(b"<!DOCTYPE html>")
    assert ".subckt ota_5t inp inn out bias vdd vss" in files["reference_netlist"].read_text()
    report = rdb.ReportDatabase("r")
    report.load(str(files["drc_report"]))
    assert report.num_items() == 0
    lvs = kdb.LayoutVsSchematic()
    lvs.read(str(files["lvs_report"]))
    assert lvs.xref() is not None
    assert json.loads(files["summary"].read_text()) == data


def test_matched_rows_lie_exactly_on_one_axis_and_their_centroids_coincide(finished_layout):
    """S0.5: centroid distance 0 of the input pair and of the mirrors, computed by the metrics from the drawn gates.

    The axis is that of the island of the pair, which is beside the main one where that makes the layout smaller.
    """
    data, _ = finished_layout(OTA, "sky130A")
    assert [m["centroid_error"] for m in data["modules"]] == [0, 0, 0]
    assert all(pair["centroid_distance"] == 0 for pair in data["metrics"]["matching_metrics"])
    layout = kdb.Layout()
    layout.read(data["files"]["gds"])
    technology = load("sky130A")
    pair = next(i for i in layout.top_cell().each_inst() if "differential_pair" in i.cell.name)
    (axis,) = (i["axis_x"] for i in data["placement"]["islands"] if pair.cell.name in i["modules"])
    for name in ("poly", "diff", "licon1", "tap"):
        shapes = kdb.Region(pair.cell.begin_shapes_rec(technology.layer(layout, name))).transformed(pair.trans)
        mirrored = shapes.transformed(kdb.Trans(2, True, 2 * round(axis * 1000), 0))
        assert not shapes.is_empty() or name == "tap"
        assert (shapes ^ mirrored).is_empty(), name


def test_the_same_input_gives_the_same_bytes(build, finished_layout, tmp_path):
    _, one = finished_layout(OTA, "sky130A")
    build(OTA.read_text(encoding="utf-8"), workspace="two")
    for name in ("layout.gds", "reference.spice", "extracted.spice", "layout.png", "circuit.json"):
        assert (one / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


@pytest.mark.skipif(shutil.which("klayout") is None, reason="skipped: needs klayout")
def test_the_klayout_application_opens_the_gds(finished_layout, tmp_path):
    data, _ = finished_layout(OTA, "sky130A")
    script = tmp_path / "count.py"
    script.write_text(f"import pya\nl = pya.Layout()\nl.read({data['files']['gds']!r})\nprint('cells', l.cells())\n")
    done = subprocess.run(["klayout", "-b", "-r", str(script)], capture_output=True, text=True, check=True)
    assert f"cells {1 + len(data['modules']) + len(data['placement']['rings'])}\n" in done.stdout


def test_a_violated_rule_is_a_failure_in_words_with_the_report_beside_it(build, tmp_path):
    """Never a success with violations: a planted rule that no layout can keep."""
    text = Path(load("sky130A").path).read_text(encoding="utf-8")
    planted = "rules:\n  - {id: planted.1, kind: forbidden, layer: poly, description: No poly at all, source: test}\n"
    technology = tmp_path / "planted.yaml"
    technology.write_text(text.replace("rules:\n", planted, 1), encoding="utf-8")
    code, envelope = build(PAIR, technology=technology)
    assert (code, envelope["ok"], envelope["error"]["code"]) == (1, False, "DRC_VIOLATION")
    assert "planted.1" in envelope["error"]["message"]
    assert not envelope["data"]["drc"]["passed"]
    assert envelope["data"]["drc"]["total_violations"] > 0
    assert envelope["data"]["lvs"]["matched"]


def test_a_layer_that_no_check_understands_is_not_clean_until_it_is_waived(build, tmp_path):
    """Pins of an own process that end up on the wafer, with no rule for them and no device that has them."""
    lines = Path(load("generic").path).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if "id: PIN_IN_METAL" not in line)
    technology = tmp_path / "own.yaml"
    technology.write_text(text.replace("purpose: pin", "purpose: marker"), encoding="utf-8")
    code, envelope = build(PAIR, technology=technology)
    assert (code, envelope["error"]["code"]) == (1, "DRC_VIOLATION")
    assert "no design rule judges what is drawn on metal" in envelope["error"]["message"]
    assert "LVS does not read what is drawn on metal" in envelope["error"]["message"]
    drc, lvs = envelope["data"]["drc"], envelope["data"]["lvs"]
    assert (drc["passed"], drc["complete"], drc["total_violations"]) == (False, False, 0)
    assert (lvs["matched"], lvs["complete"], lvs["mismatches"]) == (False, False, [])
    pins = [layer["name"] for layer in drc["layers_unchecked"]]
    code, envelope = build(PAIR, "--waived-layers", json.dumps(pins), technology=technology)
    assert (code, envelope["ok"]) == (0, True)
    waived = envelope["data"]["drc"]["layers_waived"]
    assert waived == envelope["data"]["lvs"]["layers_waived"] != []
    lines = [line for line in summary(envelope["data"]).splitlines() if line.startswith(("  DRC ", "  LVS "))]
    assert [line.endswith(f", without {', '.join(waived)}") for line in lines] == [True, True]


@pytest.mark.parametrize(
    ("netlist", "code", "words"),
    [
        (".subckt a b c\nL1 b c 1n\nM1 b c b b nmos W=1u L=0.18u\n.ends", "UNSUPPORTED_OPERATION", "L1"),
        (".subckt a b\n.ends", "INVALID_PARAM", "no devices"),
        ("", "INVALID_PARAM", ""),
        (
            ".subckt a d g s b1 b2\nM1 d g s b1 nmos W=1u L=0.18u\nM2 d g s b2 nmos W=1u L=0.18u\n.ends",
            "UNSUPPORTED_OPERATION",
            "name one with deep_well_net",  # of the supplies, none of which this circuit has
        ),
    ],
    ids=["inductor", "no devices", "empty file", "two substrates"],
)
def test_what_cannot_be_laid_out_is_refused_and_leaves_nothing(build, tmp_path, netlist, code, words):
    exit_code, envelope = build(netlist)
    assert (exit_code, envelope["error"]["code"]) == (2, code)
    assert words in envelope["error"]["message"]
    assert not (tmp_path / "ws").exists()


def test_a_size_below_the_minimum_is_drawn_legal_and_reported(build):
    _, envelope = build(".subckt a d g s b\nM1 d g s b nmos W=0.1u L=0.05u\n.ends")
    assert "minimum" in " ".join(envelope["data"]["warnings"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--netlist-path", "missing.spice"),
        ("--netlist-path", "."),
        ("--netlist-path", str(OTA), "--technology", "nosuch"),
        ("--netlist-path", str(OTA), "--top", "nosuch"),
        ("--netlist-path", str(OTA), "--workspace", "/dev/null/x"),
        ("--netlist-path", str(OTA), "--dummies", "-1"),
        ("--netlist-path", str(OTA), "--dummies", "two"),
        ("--netlist-path", str(OTA), "--speed", "9"),
        (),
    ],
    ids=lambda a: " ".join(Path(x).name if "/" in x else x for x in a) or "nothing",
)
def test_bad_input_is_one_envelope_and_exit_2(run_script, tmp_path, arguments):
    code, envelope = run_script(SCRIPT, *arguments)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert [path for path in tmp_path.iterdir() if path.name != "workspace"] == []


def test_dummies_are_drawn_and_reported_and_lvs_still_matches(build):
    counts = []
    for dummies in ("0", "1"):
        code, envelope = build(PAIR, "--dummies", dummies)
        assert code == 0
        counts.append(envelope["data"]["lvs"]["dummies"])
    rows = len(envelope["data"]["matching"]["groups"])
    assert counts[1] - counts[0] >= 2 * rows > 0


@pytest.mark.parametrize(
    ("card", "told"),
    [
        ("C1 d q 1u", "'C1': its bars or plates would cover"),
        ("R1 d q 1M", "'R1': 0.001 ohm would be more than 5000 units"),
        ("R1 d q 1Mohm", "'R1': 0.001 ohm would be more than 5000 units"),
    ],
)
def test_a_value_of_the_wrong_unit_is_reported_by_its_device(build, card, told):
    code, envelope = build(LATCH.replace(".ends", f"{card}\n.ends"))
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert told in envelope["error"]["message"]
    assert "in SPICE" in envelope["error"]["message"]


@pytest.mark.parametrize(("aspect", "told"), [(1000.001, "at most 1000"), (1e300, "at most 1000"), (0.9, "at least 1")])
def test_an_aspect_that_no_layout_has_is_refused_before_anything_is_written(build, tmp_path, aspect, told):
    code, envelope = build(LATCH, "--aspect", aspect)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert f"'aspect' must be {told}" in envelope["error"]["message"]
    assert not (tmp_path / "ws").exists()


DIVIDER = """
.subckt divider vdd vss out
XM1 out out vss vss nfet_03v3 w=2u l=0.5u nf=1
XR1 vdd out vss pplus_u_m1 r_width=1u r_length=20u
.ends
"""


def test_a_device_without_a_drawing_is_refused_before_anything_is_written(build, tmp_path):
    code, envelope = build(DIVIDER, technology="gf180mcuD")
    assert (code, envelope["error"]["code"]) == (2, "UNSUPPORTED_OPERATION")
    assert "pplus_u_m1 (XR1): 185 ohm/sq" in envelope["error"]["message"]
    assert not (tmp_path / "ws").exists()


def test_a_replaced_device_is_told_in_every_verdict(build, run_script, tmp_path):
    code, envelope = build(DIVIDER, "--device-map", '{"pplus_u_m1": "ppolyf_u"}', technology="gf180mcuD")
    data = envelope["data"]
    assert (code, data["lvs"]["matched"], data["lvs"]["complete"]) == (0, True, True)
    assert data["lvs"]["verdict"] == "complete with replaced devices"
    (entry,) = data["replaced_devices"]
    # 20 squares of 185 and of 350 ohm
    assert (entry["devices"], entry["before"]["ohm"], entry["after"]["ohm"]) == (["XR1"], 3700, 7000)
    page = Path(data["files"]["report"]).read_text(encoding="utf-8")
    assert "clean, complete with replaced devices" in page
    assert "pplus_u_m1 (1 x 20 um, 3700 ohm)" in page

    compare = ("lvs-check/scripts/run_check.py", "--workspace", tmp_path / "ws")
    given = (*compare, "--netlist-path", tmp_path / "in.spice")
    for arguments in (compare, (*given, "--device-map", '{"pplus_u_m1": "ppolyf_u"}')):
        code, envelope = run_script(*arguments)
        assert (code, envelope["data"]["verdict"]) == (0, "complete with replaced devices")
        assert envelope["data"]["replaced_devices"] == data["replaced_devices"]
    code, envelope = run_script(*given, "--device-map", '{"pplus_u_m1": "npolyf_u"}')
    assert (code, envelope["data"]["verdict"]) == (1, "not matched")
    code, envelope = run_script(*given)
    assert (code, envelope["error"]["code"]) == (2, "UNSUPPORTED_OPERATION")


def test_a_netlist_drawn_as_it_names_its_devices_is_complete(build):
    code, envelope = build(DIVIDER.replace("pplus_u_m1", "ppolyf_u"), technology="gf180mcuD")
    data = envelope["data"]
    assert (code, data["lvs"]["verdict"], data["replaced_devices"]) == (0, "complete", [])


@pytest.mark.parametrize(
    ("model", "process"),
    [
        ("sky130_fd_pr__nfet_01v8", "sky130A"),
        ("nfet_03v3", "gf180mcuD"),
        ("sg13_lv_nmos", "sg13g2"),
        ("nmos", "generic"),
    ],
)
def test_a_netlist_that_names_its_process_is_drawn_and_its_layout_judged_in_it(run_script, tmp_path, model, process):
    netlist = tmp_path / "one.spice"
    netlist.write_text(f".subckt one d g s b\nM1 d g s b {model} w=2u l=0.5u\n.ends\n")
    call = ("--netlist-path", netlist, "--workspace", tmp_path / "ws")
    assert run_script(SCRIPT, *call, "--until", "export")[1]["data"]["technology"] == process
    shutil.copy(tmp_path / "ws/layout.gds", tmp_path / "alone.gds")
    code, envelope = run_script("drc-check/scripts/run_check.py", "--layout-path", tmp_path / "alone.gds")
    assert (code, envelope["data"]["technology"]) == (0, process)


@pytest.mark.parametrize("given", ["path", "text"])
def test_the_command_on_the_report_page_runs_as_printed_and_gives_the_same_bytes(run_script, tmp_path, given):
    text = ".subckt one d g s b\nM1 d g s b nfet_03v3 w='2u' l=0.5u\n.ends\n"
    (tmp_path / "one.spice").write_text(text)
    netlist = ("--netlist-path", tmp_path / "one.spice") if given == "path" else ("--netlist-text", text)
    assert run_script(SCRIPT, *netlist, "--workspace", tmp_path / "ws", "--seed", "3")[0] == 0
    page = (tmp_path / "ws/report.html").read_text(encoding="utf-8")
    command = html.unescape(re.search(r"How to reproduce.*?<pre>(.*?)</pre>", page, re.DOTALL)[1])
    words = [sys.executable, "-m", *shlex.split(command)]
    (tmp_path / "elsewhere").mkdir()
    subprocess.run(words, capture_output=True, check=True, cwd=tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere/workspace/layout.gds").read_bytes() == (tmp_path / "ws/layout.gds").read_bytes()
