"""The suite: a line for every circuit, whatever happens to it, and every figure that gets worse is reported."""

import copy
import json
import sys
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.technology import load

HERE = Path(__file__).parent
NETLIST = """
.subckt mirror in out vss
M1 in in vss vss nmos W=4u L=1u nf=2
M2 out in vss vss nmos W=4u L=1u nf=2
.ends
"""


@pytest.fixture(scope="module")
def bench():
    """Return the modules of the suite, which are programs beside this file."""
    sys.path.insert(0, str(HERE))
    try:
        import board_page
        import scoreboard
        import suite
    finally:
        sys.path.remove(str(HERE))
    return type("Bench", (), {"scoreboard": scoreboard, "suite": suite, "page": staticmethod(board_page.page)})


@pytest.fixture(scope="module")
def run(bench, tmp_path_factory):
    """Return the board, the folder and the exit code of a run over a good, a garbled and an endless circuit."""
    home = tmp_path_factory.mktemp("suite")
    (home / "in/more").mkdir(parents=True)
    (home / "in/mirror.sp").write_text(NETLIST, encoding="utf-8")
    (home / "in/more/no_netlist.cdl").write_text("nothing\n", encoding="utf-8")
    (home / "in/other.sp").write_text(NETLIST.replace("W=", "W='wide'*1 x="), encoding="utf-8")
    (home / "in/other.options.json").write_text('{"top": "absent"}', encoding="utf-8")
    code = _main(bench, [home / "in", "--technologies", "sky130A", "--jobs", 2, "--out", home / "out"])
    return json.loads((home / "out/board.json").read_text()), home, code


def _main(bench, arguments):
    former, sys.argv = sys.argv, ["suite.py", *map(str, arguments)]
    try:
        return bench.suite.main()
    finally:
        sys.argv = former


def test_every_circuit_is_a_row_and_a_bad_one_says_why(run, bench):
    board, home, code = run
    assert code == 0
    assert list(board["rows"]) == ["sky130A mirror", "sky130A more/no_netlist", "sky130A other"]
    good = board["rows"]["sky130A mirror"]
    assert (good["status"], good["devices"], good["drc"], good["lvs"], good["unrouted"]) == ("done", 2, 0, 0, 0)
    assert set(good) >= {figure.name for figure in bench.scoreboard.FIGURES}
    assert good["cpu_s"] > 0
    assert good["peak_mb"] > 50
    assert {"place", "route", "drc", "lvs"} < set(good["stages"])
    assert good["wire_over_bound"] is None or good["wire_over_bound"] >= 1
    assert board["rows"]["sky130A more/no_netlist"]["status"] == "failed"
    assert "absent" in board["rows"]["sky130A other"]["error"]  # the options beside the netlist are used
    html = (home / "out/board.html").read_text()
    assert "1 of 3 layouts" in html
    assert "more/no_netlist" in html
    assert "prefers-color-scheme: dark" in html
    assert "http" not in html  # nothing is loaded from elsewhere


def test_what_gets_worse_is_told_and_ends_with_an_error(run, bench):
    board, home, _ = run
    worse = bench.scoreboard.worse
    assert worse(board, board) == []
    for figure in bench.scoreboard.FIGURES:
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
    assert len(bench.scoreboard.slower(slow, board)) == 1
    slow["reference_cpu_s"] *= 100  # on a machine that is as much slower
    assert bench.scoreboard.slower(slow, board) == []
    assert "&lt;b&gt;" in bench.page({**failed, "rows": {"x <b>": {"status": "crashed", "error": "<i>"}}})
    assert home.is_dir()


def test_a_program_that_hangs_is_ended_with_its_children(bench, tmp_path):
    (tmp_path / "out").touch()
    with (tmp_path / "out").open("wb") as sink:
        endless = [sys.executable, "-c", "import os, time; os.fork(); time.sleep(600)"]
        code, usage = bench.suite._run(endless, sink, sink, 0.5)
        assert code is None
        code, usage = bench.suite._run([sys.executable, "-c", "raise SystemExit(7)"], sink, sink, 60)
    assert code == 7
    assert usage[1] > 1
    (tmp_path / "envelope.json").write_text("")
    assert bench.suite._outcome(tmp_path, -11, 1)["status"] == "crashed"


def test_symmetry_and_ports_are_measured_in_the_layout(bench):
    technology, layout = load("sky130A"), kdb.Layout()
    cell = layout.create_cell("top")

    def draw(name, *box):
        cell.shapes(technology.layer(layout, name)).insert(kdb.Box(*box))

    draw("active", -1000, 0, 1000, 500)
    draw("poly", -100, -100, 100, 600)
    draw("met1", -3000, 0, -2000, 1000)
    draw("met1", 2000, 0, 3000, 1000)
    assert bench.scoreboard._mirror_error(cell, technology) == 0
    draw("met2", 1000, 5000, 2000, 6000)  # a third of the metal has no mirror image
    assert bench.scoreboard._mirror_error(cell, technology) == round(1 / 3, 4)
    label = technology.conductor("met1").label_layer
    for name, x in (("left", -2500), ("right", 2500), ("unknown", 0)):
        cell.shapes(technology.layer(layout, label)).insert(kdb.Text(name, kdb.Trans(x, 500)))
    draw("met2", 4000, -3000, 4200, 9000)  # now only the left one reaches the edge
    assert bench.scoreboard._ports(cell, technology, ["left", "right", "absent"]) == (2, 1)
    assert bench.scoreboard._core(cell, technology) == kdb.Box(-1000, -100, 1000, 600)
