"""A full disk and a file that needs too much memory: one clear error, and a design that is as it was."""

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.errors import FileError
from layoutkit.layout import files
from layoutkit.layout.history import DRAWINGS
from layoutkit.layout.workspace import Workspace


def draw(workspace, name):
    with workspace.update_layout(0.001, operation=f"draw {name}") as layout:
        layout.create_cell(name)
        files.write_text(workspace.path(DRAWINGS), name)  # as the tools do, before the layout is saved


def names(workspace):
    return sorted(cell.name for cell in workspace.read_layout().each_cell())


@pytest.mark.parametrize("room", range(12))
def test_undo_after_a_draw_that_failed_on_a_full_disk_undoes_the_last_change(tmp_path, monkeypatch, room):
    """The disk is full after ``room`` more files, and has room again when undo runs."""
    for name in ("A", "B"):
        draw(Workspace(tmp_path), name)
    written, replace = [], files.replace_file

    def until_full(target, data):
        written.append(target)
        if len(written) > room:
            raise OSError(28, os.strerror(28))
        replace(target, data)

    monkeypatch.setattr(files, "replace_file", until_full)
    try:
        draw(Workspace(tmp_path), "C")
    except FileError:
        undone = "draw B", ["A"], "A"
        if "C" in names(Workspace(tmp_path)):  # saved, and there was no room to restore the layout of before
            undone = "draw C", ["A", "B"], "B"
    else:
        undone = "draw C", ["A", "B"], "B"
    monkeypatch.setattr(files, "replace_file", replace)
    assert Workspace(tmp_path).undo()[0] == [undone[0]]
    assert (names(Workspace(tmp_path)), Path(tmp_path, DRAWINGS).read_text()) == undone[1:]


def test_the_operations_of_a_workspace_are_listed_without_a_write(tmp_path):
    draw(Workspace(tmp_path), "A")
    (tmp_path / ".lock").unlink()
    before = sorted(tmp_path.rglob("*"))
    assert Workspace(tmp_path).operations() == ["draw A"]
    assert sorted(tmp_path.rglob("*")) == before


def record(kind, content=b""):
    return struct.pack(">HH", 4 + len(content), kind) + content


IN_LITTLE_MEMORY = """
import resource, sys
from layoutkit.errors import FileError
from layoutkit.layout import files
files.MAX_MEMORY, before = 80 << 20, resource.getrlimit(resource.RLIMIT_AS)
try:
    files.read_layout(sys.argv[1])
except FileError as error:
    assert "memory" in str(error), error
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    print("refused, and the limit is as before")
"""


def test_a_small_file_that_needs_much_memory_is_refused(tmp_path):
    """Read in a process of its own: another thread of this one may need memory meanwhile."""
    pytest.importorskip("resource")
    layout = kdb.Layout()
    layout.create_cell("TOP")
    path = tmp_path / "plain.gds"
    layout.write(str(path))
    plain = path.read_bytes()
    end = plain.rindex(record(0x0700))
    corners = struct.pack(">10i", 0, 0, 0, 9, 9, 9, 9, 0, 0, 0)
    box = record(0x0800) + record(0x0D02, b"\0\1") + record(0x0E02, b"\0\0") + record(0x1003, corners) + record(0x1100)
    path = tmp_path / "large.gds.gz"
    path.write_bytes(gzip.compress(plain[:end] + box * 700_000 + plain[end:]))
    assert path.stat().st_size < 300_000
    run = subprocess.run(
        [sys.executable, "-c", IN_LITTLE_MEMORY, str(path)], capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.stderr) == ("refused, and the limit is as before\n", "")
