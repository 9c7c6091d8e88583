"""Part files: those of killed writers are cleared, those of live writers never."""

import subprocess
import sys
import threading

import pytest

from layoutkit.layout import files
from layoutkit.layout.workspace import Workspace
from patience import WATCHDOG_S

SLOW_WRITER = """
import os, sys
from layoutkit.layout import files
from sturdy import atomic_files
def wait(descriptor):
    print("writing", flush=True)
    sys.stdin.readline()
atomic_files.sync_data = wait
files.write_bytes(sys.argv[1], b"slow")
"""


def parts(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


@pytest.fixture
def writer(tmp_path):
    """Return a process that is in the middle of writing ``file.txt``."""
    command = [sys.executable, "-c", SLOW_WRITER, str(tmp_path / "file.txt")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    assert len(parts(tmp_path)) == 1
    yield process
    process.kill()
    process.communicate()


def test_the_part_file_of_a_killed_writer_is_removed_by_the_next(tmp_path, writer):
    writer.kill()
    writer.wait()
    assert len(parts(tmp_path)) == 1
    files.write_bytes(tmp_path / "other.txt", b"x")
    assert len(parts(tmp_path)) == 1  # another file's: in an ordinary folder it is left alone
    files.write_bytes(tmp_path / "file.txt", b"new")
    assert parts(tmp_path) == []
    assert (tmp_path / "file.txt").read_bytes() == b"new"


def test_the_part_file_of_a_live_writer_is_left_alone(tmp_path, writer):
    files.write_bytes(tmp_path / "file.txt", b"quick")
    with Workspace(tmp_path).lock():
        assert len(parts(tmp_path)) == 1
    writer.communicate(b"\n", timeout=WATCHDOG_S)
    assert writer.returncode == 0
    assert parts(tmp_path) == []
    assert (tmp_path / "file.txt").read_bytes() == b"slow"


def test_a_workspace_clears_every_part_file_of_dead_writers(tmp_path, writer):
    writer.kill()
    writer.wait()
    (tmp_path / ".layout.gds.4242-140000.part").write_bytes(b"as earlier versions named them")
    (tmp_path / "mine.part").write_bytes(b"the user's")
    with Workspace(tmp_path).lock():
        assert parts(tmp_path) == ["mine.part"]


def test_writers_of_one_file_at_once_leave_one_whole_content_and_no_part_file(tmp_path):
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    threads = [threading.Thread(target=files.write_bytes, args=(tmp_path / "f", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
