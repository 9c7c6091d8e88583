"""layout.watch through its command line: who may read the page, what it shows, and that it follows the file."""

import os
import shutil
import signal
import urllib.error
import urllib.request
from pathlib import Path

import klayout.db as kdb
import pytest
from klayout import rdb

from layoutkit.errors import FileError
from layoutkit.tools.watched_layout import WatchedLayout
from patience import WATCHDOG_S, eventually

pytest.importorskip("uvicorn", reason="skipped: needs the extra http")
SCRIPT = "layout-view/scripts/watch_layout.py"


def draw(path, *widths):
    """Write a layout of one metal1 box a width. [um]"""
    layout = kdb.Layout()
    cell = layout.create_cell("TOP")
    metal = layout.layer(4, 0)
    for number, width in enumerate(widths):
        cell.shapes(metal).insert(kdb.DBox(0, 3 * number, width, 3 * number + 1))
    part = path.with_name("part.gds")
    layout.write(str(part))
    part.replace(path)


@pytest.fixture
def source(tmp_path):
    draw(tmp_path / "a.gds", 2)
    return tmp_path / "a.gds"


def answer(url, **headers):
    """Return status and text."""
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - of a server that the test started
        with urllib.request.urlopen(request, timeout=WATCHDOG_S) as got:  # noqa: S310
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.fixture
def served(source, run_script):
    """Return the answer of layout.watch on the file."""
    code, envelope = run_script(SCRIPT, "--layout-path", source)
    assert code == 0
    yield envelope["data"]
    os.kill(envelope["data"]["process"], signal.SIGKILL)


def test_only_who_has_the_token_and_names_this_machine_reads_the_page(served):
    url = served["url"]
    assert url.startswith("http://127.0.0.1:")
    status, text = answer(url)
    assert status == 200
    assert "<title>TOP: live</title>" in text
    bare = url.partition("?")[0]
    assert [answer(each)[0] for each in (bare, f"{bare}?token=x", f"{bare}state", f"{bare}docs")] == [
        401,
        401,
        401,
        404,
    ]
    assert answer(url, Host="example.org")[0] == 400


def test_the_page_in_a_browser_follows_the_file_and_keeps_the_view(served, source, browser):
    browser.visit(served["url"])
    browser.wait("window.layoutView && window.layoutView.state().view.scale !== 1")
    browser.run("document.getElementById('zoom-in').click()")
    scale = browser.run("window.layoutView.state().view.scale")
    draw(source, 2, 2, 2)
    boxes = "JSON.parse(document.getElementById('data').textContent).cells[0].shapes[0].boxes.length"
    loaded = "document.readyState === 'complete' && window.layoutView"
    browser.wait(f"{loaded} && {boxes} === 12 && Math.abs(window.layoutView.state().view.scale - {scale}) < 1e-9")
    source.unlink()
    told = "document.getElementById('told').textContent"
    browser.wait(f"{told}.includes('last layout that could be read')")
    assert browser.run(boxes) == 12
    assert browser.problems == []


def test_half_a_file_and_no_file_are_told_and_the_last_drawing_stays(source):
    watched = WatchedLayout({"layout_path": str(source)})
    before = watched.state()["version"]
    whole = source.read_bytes()
    for change in (lambda: source.write_bytes(whole[:100]), source.unlink):
        change()
        state = watched.state()
        assert (state["version"], state["kind"]) == (before, "warn")
        assert str(source) in state["told"]
        assert "<title>TOP: live</title>" in watched.page()
    source.write_bytes(whole)
    assert "read" not in watched.state()["told"]
    draw(source, 7)
    assert watched.state()["version"] != before


def test_a_workspace_that_is_not_there_yet_shows_up_when_it_is_drawn(tmp_path, source):
    watched = WatchedLayout({"workspace": str(tmp_path / "w")})
    assert "holds no layout yet" in watched.state()["told"]
    (tmp_path / "w").mkdir()
    shutil.copy(source, tmp_path / "w" / "layout.gds")
    assert watched.state()["told"] == "not checked"
    with pytest.raises(FileError, match="is a file"):
        WatchedLayout({"workspace": str(source)})


def test_findings_are_those_of_reports_on_this_very_layout(tmp_path, source):
    from hashlib import sha256

    def report(layout):
        database = rdb.ReportDatabase("drc")
        database.description = f"layout_sha256={layout}"
        cell, category = database.create_cell("TOP"), database.create_category("M1.1")
        item = database.create_item(cell.rdb_id(), category.rdb_id())
        item.add_value(rdb.RdbItemValue(kdb.DPolygon(kdb.DBox(0.5, 0, 1, 1))))
        database.save(str(tmp_path / "drc.lyrdb"))

    watched = WatchedLayout({"layout_path": str(source)})
    report(sha256(source.read_bytes()).hexdigest())
    assert watched.state()["told"] == "1 fault"
    assert '"rule":"M1.1","text":"DRC","fault":true,"box":[0.5,0.0,1.0,1.0]' in watched.page()
    draw(source, 5)
    assert watched.state()["told"] == "not checked"
    assert "out of date" in watched.page()


def test_a_clean_report_is_said_beside_what_is_not_checked(tmp_path, source, run_script):
    watched = WatchedLayout({"layout_path": str(source)})
    arguments = ("--layout-path", source, "--rule-ids", '["M1_MIN_AREA"]', "--report-path", tmp_path / "drc.lyrdb")
    _, envelope = run_script("drc-check/scripts/run_check.py", *arguments)
    assert envelope["data"]["passed"], envelope
    told = watched.state()
    assert (told["told"], told["kind"]) == ("no faults found by DRC; the rest is not checked", "warn")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path, source):
    home = tmp_path / "w"
    home.mkdir()
    (home / "layout.gds").symlink_to(source)
    assert "is a link to another folder" in WatchedLayout({"workspace": str(home)}).state()["told"]


def test_a_port_that_is_taken_is_said(served, source, run_script):
    port = served["url"].split(":")[2].partition("/")[0]
    code, envelope = run_script(SCRIPT, "--layout-path", source, "--port", port)
    assert code != 0
    assert f"port {port}" in envelope["error"]["message"]


def test_the_server_ends_when_no_page_asks(source, run_script):
    data = run_script(SCRIPT, "--layout-path", source, "--minutes", "0.02")[1]["data"]
    command = Path(f"/proc/{data['process']}/cmdline")
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("skipped: needs /proc")
    assert eventually(lambda: not command.exists() or not command.read_bytes())
