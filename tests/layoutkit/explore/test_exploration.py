"""A search by its tool: a front of clean layouts, each of which its parameters make again byte for byte."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from clusters import Cluster
from forked import run_program
from layoutkit.errors import FileError, LayoutkitError, MissingProgramError
from layoutkit.explore import exploration
from layoutkit.explore.front_page import front_page, scatter
from layoutkit.explore.jobs import JobOutcome
from layoutkit.tools.explore_layouts import run
from layoutkit.tools.post_layout_requests import compare
from layoutkit.tools.whole_flow import build
from patience import WATCHDOG_S

pytestmark = pytest.mark.usefixtures("forked_jobs")
OTA = Path(__file__).parents[3] / "skills/layout-exploration/assets/ota_5t.spice"
SCRIPT = Path(__file__).parents[3] / "skills/layout-exploration/scripts/explore_layouts.py"
PAIR = """
.subckt stage inp inn outp outn tail vss
M1 outp inp tail vss nmos W=4u L=1u nf=2
M2 outn inn tail vss nmos W=4u L=1u nf=2
.ends
"""
ASKED = {
    "netlist_text": PAIR,
    "technologies": ["sky130A"],
    "space": {"pattern M1 M2": ["ABBA", "AB/BA", "ABABA"], "nf M1 M2": [2, 4], "side outp": ["left", "right"]},
    "objectives": ["area", "wire_length", "capacitance outp"],
    "layouts": 5,
}


def search(folder, **changes):
    lines = []
    answer, faults = run({**ASKED, "workspace": str(folder), **changes}, lines.append)
    return answer, faults, lines


@pytest.fixture(scope="module")
def found(once):
    """Return the answer of a search and its folder."""

    def make(folder):
        answer, faults, lines = search(folder)
        return [answer, faults, lines]

    pytest.importorskip("scipy", reason="skipped: needs the extra explore")
    (answer, faults, lines), folder = once(make, "exploration", json.dumps(ASKED))
    return answer, faults, lines, folder


def test_the_front_holds_clean_layouts_and_the_others_say_why_not(found):
    answer, faults, lines, folder = found
    assert (answer["space_size"], answer["sampling"], faults) == (12, "sobol", [])
    assert len(answer["front"]) + len(answer["others"]) == 5
    assert len(lines) == 5
    assert all(re.match(r"layout \d+: ", line) for line in lines)
    for layout in answer["front"]:
        workspace = Path(layout["workspace"])
        summary = json.loads((workspace / "summary.json").read_text())
        assert all((workspace / name).is_file() for name in summary["files"].values())
        assert not [name for name in summary["files"].values() if Path(name).is_absolute()]
        assert summary["drc"]["passed"]
        assert summary["lvs"]["matched"]
        assert summary["routing"]["failed"] == []
        assert summary["layout_sha256"] == layout["layout_sha256"]
        assert layout["figures"]["wire_length"] == summary["routing"]["total_wire_length"]
        assert layout["figures"]["capacitance outp"] > 0
        assert Path(layout["report"]).is_file()
    everything = json.loads((folder / "exploration.json").read_text())
    assert everything["front"] == [layout["number"] for layout in answer["front"]]
    bad = [each for each in answer["others"] if each["point"]["pattern M1 M2"] == "ABABA"]
    assert {each["status"] for each in bad} <= {"failed", "refused"}  # a pattern that no pair can have
    assert bad
    assert all(each["reason"] for each in answer["others"])


def test_the_parameters_of_a_layout_make_the_same_bytes_again(found, tmp_path):
    answer, _, _, folder = found
    layout = answer["front"][-1]
    stored = json.loads((folder / "parameters" / f"{layout['number']}.json").read_text())
    assert stored == layout["parameters"]
    report, faults = build({**stored, "workspace": str(tmp_path)}, lambda _: None)
    assert faults == []
    again, first = tmp_path / "layout.gds", Path(layout["workspace"]) / "layout.gds"
    assert again.read_bytes() == first.read_bytes()
    assert hashlib.sha256(first.read_bytes()).hexdigest() == layout["layout_sha256"] == report["layout_sha256"]


def test_a_search_is_the_same_whatever_ends_first_and_continues_where_it_was_stopped(found, tmp_path, monkeypatch):
    """What was done before is not done again: here nothing can be done, and the order is another."""
    _, _, _, folder = found
    first = json.loads((folder / "exploration.json").read_text())
    outcomes = {}
    for text in (folder / "journal.jsonl").read_text().splitlines()[1:]:
        outcome = JobOutcome(**json.loads(text))
        outcomes[outcome.key] = outcome

    class Progress:
        def to_json(self):
            return {}

    pages = []

    def backwards(jobs, folder, _options, on_result):
        for job in reversed(list(jobs)):
            on_result(outcomes[job.key], Progress())
            pages.append((folder / "front.html").read_text())
            assert json.loads((folder / "exploration.json").read_text())["format"] == first["format"]
            assert json.loads((folder / "parameters/1.json").read_text())["technology"] == "sky130A"
            yield outcomes[job.key]

    (tmp_path / "layouts").symlink_to(folder / "layouts")
    with monkeypatch.context() as patched:
        patched.setattr(exploration, "run_jobs", backwards)
        search(tmp_path)
    second = json.loads((tmp_path / "exploration.json").read_text().replace(str(tmp_path), str(folder)))
    assert second == first
    assert pages[0].count("not finished yet.</b>") == 1  # what a killed search leaves
    assert len(set(pages[:-1])) == 1  # not written anew within a few seconds
    assert "not finished yet" not in (tmp_path / "front.html").read_text()
    with pytest.raises(FileError, match="resume"):
        search(folder)
    answer, _, _ = search(folder, resume=True)
    assert answer["progress"]["resumed"] == sum(each["status"] != "refused" for each in first["layouts"])


def test_a_workspace_that_holds_a_search_is_refused_before_anything_in_it_changes(found, tmp_path):
    *_, folder = found
    for name in ("journal.jsonl", "netlist"):
        (shutil.copytree if (folder / name).is_dir() else shutil.copy)(folder / name, tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(LayoutkitError, match="holds a run already"):
        search(tmp_path, netlist_text=PAIR.replace("4u", "5u"))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_layout_that_a_time_limit_ended_is_reported_and_nothing_is_in_the_front(tmp_path):
    space = {"seed": [1, 2]}
    answer, faults, _ = search(tmp_path, space=space, objectives=["area"], layouts=2, seconds=0.01)
    assert {each["status"] for each in answer["others"]} == {"not run"}
    assert len(answer["others"]) == 2
    assert faults == ["no layout is clean and has all figures; others says why"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objectives": ["arae"]}, "did you mean 'area'"),
        ({"space": {"colour": ["red"]}}, "'colour' cannot be varied"),
        ({"space": {"pattern M1 M3": ["ABBA"]}}, "M1 M3 is no matched group; the matched groups are: M1 M2"),
        ({"space": {"w M9": [1e-6]}}, "no device 'M9'"),
        ({"objectives": ["capacitance outq"]}, "no net 'outq', whose capacitance is wanted (did you mean 'outp'?)"),
        ({"workspace": f"{OTA}/below"}, "cannot create the folder"),
        ({"space": {"c M1": [1e-15]}}, "M1 has no size 'c'; it has l, m, nf, w"),
        ({"space": {"side tale": ["left"]}}, "no port 'tale' (did you mean 'tail'?)"),
        ({"options": {"workspaces": "x"}}, "option 'workspaces' cannot be given"),
        ({"against": "board.json"}, "with those"),
        ({"tls_ca": "ca.pem"}, "give its scheduler"),
        ({"scheduler": "tcp://127.0.0.1:1", "workers": 2}, "workers is of this machine"),
        ({"scheduler": "tls://127.0.0.1:1"}, "needs the TLS files"),
        ({"netlist_folders": ["."]}, "netlist_text and netlist_folders: give one"),
    ],
)
def test_a_request_that_cannot_be_run_is_refused(changes, words, tmp_path):
    with pytest.raises(LayoutkitError) as raised:
        search(tmp_path, **{"layouts": 1, **changes})
    assert words in raised.value.message


def test_objectives_that_nothing_here_can_simulate_are_refused_before_the_first_layout(tmp_path, monkeypatch):
    monkeypatch.delenv("PDK_ROOT", raising=False)
    wanted = {"netlist_path": str(OTA), "objectives": ["area", "post_layout gbw"], "space": {"seed": [1, 2]}}
    request = {"technologies": ["sky130A", "gf180mcuD"], "layouts": 4, "workspace": str(tmp_path), **wanted}
    with pytest.raises(MissingProgramError) as raised:
        run(request, lambda _: None)
    missing = "ngspice" if shutil.which("ngspice") is None else "the models of {} are not installed"
    assert all(missing.format(name) in raised.value.message for name in ("sky130A", "gf180mcuD"))
    assert not (tmp_path / "layouts").exists()
    assert not (tmp_path / "journal.jsonl").exists()


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
def test_an_objective_that_the_test_bench_does_not_measure_is_refused_with_those_that_it_does(tmp_path):
    request = {"netlist_path": str(OTA), "technologies": ["generic"], "objectives": ["post_layout gain_bandwidth"]}
    with pytest.raises(LayoutkitError, match=r"measures no gain_bandwidth, but dc_gain, .*gbw") as raised:
        run({**request, "workspace": str(tmp_path)}, lambda _: None)
    assert raised.value.code == "INVALID_PARAM"


def test_a_figure_that_a_layout_does_not_have_keeps_it_out_of_the_front(tmp_path):
    request = {"netlist_text": PAIR, "technologies": ["sky130A"], "objectives": ["mirror_error"], "layouts": 1}
    done = run_program(SCRIPT, "--params", json.dumps({**request, "workspace": str(tmp_path)}), cwd=tmp_path)
    envelope = json.loads(done.stdout)
    assert (done.returncode, envelope["error"]["code"]) == (1, "LAYOUT_CONFLICT")
    (left_out,) = envelope["data"]["others"]
    assert left_out["status"] == "not measured"
    assert "it has no mirror_error" in left_out["reason"]
    assert "layout 1" in done.stderr


def test_the_counts_of_the_review_are_objectives_and_no_layout_is_reviewed_without_them(found, tmp_path):
    others = [Path(layout["workspace"], "summary.json").read_text() for layout in found[0]["front"]]
    assert not any("review" in json.loads(each) for each in others)
    space = {"pattern M1 M2": ["ABBA"]}
    answer, _, _ = search(tmp_path, space=space, objectives=["review_must", "review_should"], layouts=1)
    (layout,) = answer["front"]
    review = json.loads(Path(layout["workspace"], "summary.json").read_text())["review"]
    figures = [layout["figures"][name] for name in ("review_must", "review_should")]
    assert figures == [review["must"], review["should"]]


def test_a_cluster_makes_the_same_layouts_as_this_machine(found, tmp_path):
    """Its worker has a folder of its own; a smaller budget makes the first layouts of a larger one."""
    pytest.importorskip("distributed", reason="skipped: needs dask.distributed")
    _, _, _, folder = found
    here = json.loads((folder / "exploration.json").read_text())["layouts"][:2]
    cluster = Cluster(tmp_path)
    try:
        cluster.worker()
        search(tmp_path / "out", layouts=2, seconds=WATCHDOG_S, scheduler=cluster.address)
    finally:
        cluster.close()
    there = json.loads((tmp_path / "out/exploration.json").read_text())["layouts"]
    assert [(each["key"], each.get("layout_sha256")) for each in there] == [
        (each["key"], each.get("layout_sha256")) for each in here
    ]
    made = next(each for each in there if "layout_sha256" in each)
    layout = tmp_path / "out" / made["folder"] / "layout.gds"
    assert hashlib.sha256(layout.read_bytes()).hexdigest() == made["layout_sha256"]


def test_a_server_takes_no_scheduler_from_a_call(tmp_path):
    request = {"netlist_text": PAIR, "scheduler": "tcp://127.0.0.1:1", "workspace": str(tmp_path / "out")}
    command = [sys.executable, str(SCRIPT), "--params", json.dumps(request)]
    environment = {**os.environ, "SKILLPACK_CONFINE": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=WATCHDOG_S, check=False)
    assert done.returncode == 2
    assert "connects to no scheduler" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
def test_post_layout_figures_are_those_of_the_simulation_with_parasitics(tmp_path):
    wanted = ["max post_layout gbw", "post_layout_change gbw", "post_layout offset"]
    changes = {"netlist_path": str(OTA), "technologies": ["generic"], "space": {}, "layouts": 1, "objectives": wanted}
    request = {**{name: value for name, value in ASKED.items() if name != "netlist_text"}, **changes}
    answer, _ = run({**request, "workspace": str(tmp_path), "seconds": WATCHDOG_S}, lambda _: None)
    (layout,) = answer["front"]
    compared = compare({"workspace": layout["workspace"]})
    found = {each["name"]: each for each in compared["corners"][0]["measurements"]}
    assert layout["figures"]["post_layout gbw"] == pytest.approx(found["gbw"]["extracted"])
    assert layout["figures"]["post_layout_change gbw"] == pytest.approx(abs(found["gbw"]["change_percent"]))
    assert layout["figures"]["post_layout offset"] == pytest.approx(abs(found["offset"]["extracted"]))


# The page of the front.


def test_the_page_holds_plots_pictures_parameters_and_reasons_and_loads_nothing(found):
    answer, _, _, folder = found
    html = (folder / "front.html").read_text()
    assert html.count("<svg") == 3  # each two of three objectives
    assert html.count("data:image/png;base64,") == len(answer["front"])
    assert "<script" not in html
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", html)
    for layout in answer["front"]:
        link = f"layouts/{Path(layout['workspace']).name}/report.html"
        assert f'href="{link}"' in html
        assert (folder / link).is_file()
        assert layout["layout_sha256"] in html
    assert all(f'id="layout-{number}"' in html for number in range(1, 6))
    assert all(f'href="#layout-{layout["number"]}"' in html for layout in answer["front"])


def test_the_numbers_of_near_points_do_not_cover_each_other():
    """Twenty points within a few pixels, each a step of the front; two have the same place."""
    points = [(min(n, 19) / 10, 40 - min(n, 19) / 10) for n in range(1, 21)] + [(0, 140), (100, 0)]
    layouts = [
        {"number": n, "status": "front", "figures": {"a": a, "b": b}, "point": {"technology": "t"}}
        for n, (a, b) in enumerate(points, 1)
    ]
    axes = [{"name": name, "unit": "", "goal": "min"} for name in ("a", "b")]
    found = re.findall(r'class="number" x="([\d.]+)" y="([\d.]+)"[^>]*>(\d+)<', scatter(layouts, axes, ["t"]))
    places = [(float(x), float(y), 6.5 * len(number)) for x, y, number in found]  # 11 px digits are 6.5 px wide
    assert {number for *_, number in found} == {str(n) for n in range(1, 23)}
    for (x, y, width), (other_x, other_y, other_width) in combinations(places, 2):
        assert abs(x - other_x) >= (width + other_width) / 2 or abs(y - other_y) >= 11
    assert all(x > width / 2 and x + width / 2 < 460 and 11 < y < 340 for x, y, width in places)


def test_names_are_never_read_as_markup(tmp_path):
    layout = {"number": 1, "point": {"technology": "<b>", "x <i>": "<u>"}, "status": "failed", "reason": "<script>"}
    result = {
        "netlist": "netlist/<s>.sp",
        "axes": {"technology": ["<b>"], "x <i>": ["<u>"]},
        "options": {},
        "space_size": 1,
        "sampling": "all",
        "seed": 1,
        "objectives": [{"name": "<em>", "unit": "<q>", "goal": "min", "text": ""}],
        "front": [],
        "layouts": [layout],
    }
    html = front_page(result, tmp_path)
    for tag in ("<b>", "<i>", "<u>", "<script>", "<s>", "<em>", "<q>"):
        assert tag not in html
    assert "No layout is clean" in html


def test_the_page_is_used_by_keyboard_on_light_dark_and_small_screens(found, browser):
    answer, _, _, folder = found
    number = answer["front"][0]["number"]
    for scheme, dark in (("light", False), ("dark", True)):
        browser.prefer(scheme)
        browser.open(folder / "front.html")
        paper = browser.run("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) is dark
    browser.size(390, 800)
    browser.open(folder / "front.html")
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.run(f"""document.querySelector('svg a[href="#layout-{number}"]').focus()""")
    browser.press("Enter")
    assert browser.run("location.hash") == f"#layout-{number}"
    assert browser.run("document.querySelector(':target').localName") == "article"
    top = browser.run("document.querySelector(':target').getBoundingClientRect().top")
    assert 0 <= top < 800
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
