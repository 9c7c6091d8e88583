"""The suite: a line for every circuit, whatever happens to it, and every figure that gets worse is reported."""

import copy
import json
import subprocess

import klayout.db as kdb
import pytest

from forked import skillpack
from layoutkit.errors import FileError
from layoutkit.explore import scoreboard
from layoutkit.explore.netlist_suite import suite_entries
from layoutkit.explore.scoreboard import page
from layoutkit.technology import load
from patience import WATCHDOG_S

NETLIST = """
.subckt mirror in out vss
M1 in in vss vss nmos W=4u L=1u nf=2
M2 out in vss vss nmos W=4u L=1u nf=2
.ends
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return board, folder, exit code and output of a suite; one of its netlists is not for its process."""
    home = tmp_path_factory.mktemp("suite")
    (home / "in/more").mkdir(parents=True)
    (home / "in/mirror.sp").write_text(NETLIST, encoding="utf-8")
    (home / "in/more/no_netlist.cdl").write_text(".subckt nothing a b\n.ends\n", encoding="utf-8")
    (home / "in/other.sp").write_text(NETLIST, encoding="utf-8")
    (home / "in/other.options.json").write_text('{"top": "absent"}', encoding="utf-8")
    (home / "in/elsewhere.sp").write_text(NETLIST, encoding="utf-8")
    (home / "in/elsewhere.options.json").write_text('{"technologies": ["sg13g2"]}', encoding="utf-8")
    (home / "in/wrong.sp").write_text(NETLIST, encoding="utf-8")
    (home / "in/wrong.options.json").write_text('{"tops": "mirror", "seed": -1}', encoding="utf-8")
    done = suite(home / "in", "--technologies", "sky130A", "--jobs", 2, "--out", home / "out")
    return json.loads((home / "out/board.json").read_text()), home, done


def suite(*arguments):
    command = [*skillpack(), "suite", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False)


def test_every_circuit_is_a_row_and_a_bad_one_says_why(run):
    board, home, done = run
    assert done.returncode == 0, done.stderr
    assert list(board["rows"]) == [f"sky130A {name}" for name in ("mirror", "more/no_netlist", "other", "wrong")]
    assert "1 of 4 layouts are clean" in done.stdout
    assert "sky130A mirror  " in done.stderr  # a line of figures as it is finished
    assert (home / "out/sky130A/mirror/report.html").is_file()
    good = board["rows"]["sky130A mirror"]
    assert (good["status"], good["devices"], good["drc"], good["lvs"], good["unrouted"]) == ("done", 2, 0, 0, 0)
    assert set(good) >= {figure.name for figure in scoreboard.FIGURES}
    assert good["cpu_s"] > 0
    assert good["peak_mb"] > 50
    assert {"place", "route", "drc", "lvs"} < set(good["stages"])
    assert good["wire_over_bound"] is None or good["wire_over_bound"] >= 1
    empty = board["rows"]["sky130A more/no_netlist"]
    assert empty["status"] == "failed"
    assert empty["error"].endswith(
        "there is nothing to lay out: netlist/no_netlist.cdl"
    )  # no path of the job's own folder
    assert "absent" in board["rows"]["sky130A other"]["error"]  # the options beside the netlist are used
    assert "did you mean 'top'" in board["rows"]["sky130A wrong"]["error"]
    assert "seed must be a whole number" in board["rows"]["sky130A wrong"]["error"]
    html = (home / "out/board.html").read_text()
    assert "1 of 4 layouts" in html
    assert "more/no_netlist" in html
    assert "prefers-color-scheme: dark" in html
    assert "http" not in html  # nothing is loaded from elsewhere
    weak = {
        **board,
        "rows": {**board["rows"], "sky130A mirror": {**good, "error": "1 nets do not carry their <current>"}},
    }
    assert "0 of 4 layouts" in page(weak)
    assert "do not carry their &lt;current&gt;" in page(weak)


def test_what_gets_worse_is_told_and_ends_with_an_error(run):
    board, home, _ = run
    worse = scoreboard.worse
    assert worse(board, board) == []
    for figure in scoreboard.FIGURES:
        later = copy.deepcopy(board)
        found = later["rows"]["sky130A mirror"]
        found[figure.name] = (
            (found[figure.name] or 0.0) * 1.031 + 1.01 * figure.floor + (found[figure.name] in (0, None))
        )
        before = copy.deepcopy(board)
        before["rows"]["sky130A mirror"][figure.name] = board["rows"]["sky130A mirror"][figure.name] or 0
        assert [text.count(figure.title) for text in worse(later, before)] == [1] * figure.judged, figure.name
        assert worse(before, later) == []
    fewer, failed = copy.deepcopy(board), copy.deepcopy(board)
    del fewer["rows"]["sky130A mirror"]
    failed["rows"]["sky130A mirror"] = {"status": "time limit", "error": "not finished after 1 s"}
    assert worse(fewer, board) == ["sky130A mirror: not in this board"]
    assert worse(failed, board) == ["sky130A mirror: time limit: not finished after 1 s"]
    assert worse(board, failed) == []
    slow = copy.deepcopy(board)
    slow["rows"]["sky130A mirror"]["cpu_s"] += 5
    assert len(scoreboard.slower(slow, board)) == 1
    slow["reference_cpu_s"] *= 100  # on a machine that is as much slower
    assert scoreboard.slower(slow, board) == []
    assert "&lt;b&gt;" in page({**failed, "rows": {"x <b>": {"status": "crashed", "error": "<i>"}}})
    assert home.is_dir()


def test_a_suite_is_compared_with_an_earlier_one_and_resumed(run, tmp_path):
    board, home, _ = run
    better = copy.deepcopy(board)
    better["rows"]["sky130A mirror"]["area_um2"] *= 0.5
    (tmp_path / "board.json").write_text(json.dumps(better))
    again = [home / "in", "--technologies", "sky130A", "--out", home / "out", "--against", tmp_path / "board.json"]
    refused = suite(*again)
    assert refused.returncode == 2
    assert "resume" in refused.stderr
    before = (home / "out/sky130A/mirror/layout.gds").stat().st_mtime_ns
    done = suite(*again, "--resume")
    assert done.returncode == 1
    assert "WORSE   sky130A mirror: area um2" in done.stdout
    assert (home / "out/sky130A/mirror/layout.gds").stat().st_mtime_ns == before  # not made again


def test_a_suite_needs_netlists_with_names_of_their_own(tmp_path):
    for name in ("a/one.sp", "b/one.cdl"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(NETLIST)
    out = tmp_path / "out"
    both = ["sky130A a/one", "sky130A b/one"]
    assert [each.key for each in suite_entries([tmp_path], ["sky130A"], out)] == both
    assert [each.key for each in suite_entries([tmp_path, tmp_path], ["sky130A", "sky130A"], out)] == both
    for folders, technologies in (
        ([tmp_path / "a", tmp_path / "b"], ["sky130A"]),
        ([tmp_path], ["sky130A", "mine/sky130A.yaml"]),
    ):
        with pytest.raises(FileError, match="same name in the board"):
            suite_entries(folders, technologies, out)
    with pytest.raises(FileError, match="is not a folder"):
        suite_entries([tmp_path / "c"], ["sky130A"], out)
    (tmp_path / "a--one.sp").write_text(NETLIST)  # its workspace would be that of a/one
    with pytest.raises(FileError, match="same name in the board"):
        suite_entries([tmp_path], ["sky130A"], out)


def test_a_suite_does_not_read_the_netlists_that_it_wrote(tmp_path):
    for name in ("one.sp", "build/suite/sky130A/one/extracted.spice"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(NETLIST)
    assert [each.name for each in suite_entries([tmp_path], ["sky130A"], tmp_path / "build/suite")] == ["one"]


def test_symmetry_and_ports_are_measured_in_the_layout():
    technology, layout = load("sky130A"), kdb.Layout()
    cell = layout.create_cell("top")

    def draw(name, *box):
        cell.shapes(technology.layer(layout, name)).insert(kdb.Box(*box))

    draw("active", -1000, 0, 1000, 500)
    draw("poly", -100, -100, 100, 600)
    draw("met1", -3000, 0, -2000, 1000)
    draw("met1", 2000, 0, 3000, 1000)
    assert scoreboard.asymmetry(cell, technology) == 0
    draw("met2", 1000, 5000, 2000, 6000)  # a third of the metal has no mirror image
    assert scoreboard.asymmetry(cell, technology) == round(1 / 3, 4)
    label = technology.conductor("met1").label_layer
    for name, x in (("left", -2500), ("right", 2500), ("unknown", 0)):
        cell.shapes(technology.layer(layout, label)).insert(kdb.Text(name, kdb.Trans(x, 500)))
    draw("met2", 4000, -3000, 4200, 9000)  # now only the left one reaches the edge
    assert scoreboard.ports_at_edge(cell, technology, ["left", "right", "absent"]) == (2, 1)
    assert scoreboard.device_box(cell, technology) == kdb.Box(-1000, -100, 1000, 600)
