"""technology.export_klayout through its command line."""

import json
import os
import shutil
import signal
import subprocess
import time

import klayout.db as kdb
import pytest

from layoutkit.technology.technology_files import SHIPPED
from patience import eventually

SCRIPT = "technology-files/scripts/export_klayout.py"


def test_a_package_is_written_and_reported(tmp_path, run_script):
    code, envelope = run_script(SCRIPT, "--technologies", '["sky130A", "generic"]', "--output-dir", "package")
    assert code == 0
    data = envelope["data"]
    assert data["output_dir"] == str(tmp_path / "package")
    assert data["libraries"] == ["analog_sky130A", "analog_generic"]
    for name in data["files"]:
        assert (tmp_path / "package" / name).is_file()
    assert [p.rsplit("/", 1)[1] for p in data["layer_properties"]] == ["generic.lyp", "sky130A.lyp"]


def test_unknown_technologies_and_bad_folders_are_refused(tmp_path, run_script):
    (tmp_path / "file").write_text("x")
    for technology, folder, words in (("gf13", "p", "unknown technology"), ("generic", "file", "file")):
        code, envelope = run_script(SCRIPT, "--technologies", f'["{technology}"]', "--output-dir", folder)
        assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
        assert words in envelope["error"]["message"]


def test_a_technology_whose_name_is_a_path_writes_no_file_elsewhere(tmp_path, run_script):
    text = (SHIPPED / "generic.yaml").read_text(encoding="utf-8")
    for name in ("../../../elsewhere/evil", "/evil", "..", "a/b", ""):
        (tmp_path / "own.yaml").write_text(text.replace("technology: generic", f"technology: {name!r}", 1))
        code, envelope = run_script(SCRIPT, "--technologies", '["own.yaml"]', "--output-dir", "deep/package")
        assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
        assert "technology: must be a name" in envelope["error"]["message"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.yaml"]


_WATCHED_WINDOW = """
import json
import pya

def tell():
    window = pya.Application.instance().main_window()
    views = [window.view(number) for number in range(window.views())]
    if len(views) < 3:
        return
    if not told:
        views[0].zoom_box(pya.DBox(0.2, 0.2, 0.4, 0.4))
        edited = views[2].cellview(0).layout()
        edited.top_cell().shapes(edited.layer(1, 0)).insert(pya.Box(0, 0, 10, 5000))
    told.append([[view.cellview(0).layout().top_cell().bbox().to_s(), view.box().width()] for view in views])
    print(json.dumps(told[-1]), flush=True)

told = []
telling = pya.QTimer()
telling.timeout = tell
telling.start(300)
"""


def _write_box(path, width):
    layout = kdb.Layout()
    layout.create_cell("TOP").shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, width, 1000))
    layout.write(str(path.with_name("part.gds")))
    path.with_name("part.gds").replace(path)


def _told(log):
    lines = log.read_text().splitlines()
    return next((json.loads(line) for line in reversed(lines) if line.startswith("[[")), [[None, 1.0]] * 3)


@pytest.mark.skipif(shutil.which("klayout") is None, reason="skipped: needs klayout")
@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="skipped: needs xvfb-run")
def test_the_installed_macro_lets_the_window_follow_files_and_leaves_unsaved_edits(tmp_path, run_script):
    code, _ = run_script(SCRIPT, "--technologies", '["generic"]', "--output-dir", "home/salt/analog-layout-skills")
    assert code == 0
    for name in ("followed.gds", "edited.gds"):
        _write_box(tmp_path / name, 1000)
    (tmp_path / "watched.py").write_text(_WATCHED_WINDOW)
    window = ("klayout", "-e", "-rm", "watched.py", "followed.gds", "followed.gds", "edited.gds")
    log = tmp_path / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ("xvfb-run", "-a", *window),
            cwd=tmp_path,
            env={**os.environ, "KLAYOUT_HOME": str(tmp_path / "home"), "QT_QPA_PLATFORM": "xcb"},
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(lambda: _told(log)[0][1] < 0.5)
        before = _told(log)
        assert [box for box, _ in before] == ["(0,0;1000,1000)", "(0,0;1000,1000)", "(0,0;1000,5000)"]
        time.sleep(2)  # the macro sees the files as they are
        for name in ("followed.gds", "edited.gds"):
            _write_box(tmp_path / name, 9000)
        eventually(lambda: _told(log)[0][0] == _told(log)[1][0] == "(0,0;9000,1000)")
        after = _told(log)
        assert [box for box, _ in after] == ["(0,0;9000,1000)", "(0,0;9000,1000)", "(0,0;1000,5000)"]
        assert after[0][1] == pytest.approx(before[0][1])
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
