"""A file has its old or its whole new content, whatever happens to its writer."""

import errno
import os
import subprocess
import sys

import pytest

from sturdy import atomic_files
from sturdy.atomic_files import remove_leftovers, replace_file

KILLED_WRITER = """
import os, signal, sys
from sturdy import atomic_files
def kill(descriptor):
    os.kill(os.getpid(), signal.SIGKILL)
atomic_files.sync_data = kill
atomic_files.replace_file(sys.argv[1], b"lost")
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_made_and_replaced(tmp_path):
    target = tmp_path / "a.txt"
    replace_file(target, b"one")
    replace_file(str(target), b"two")
    assert (target.read_bytes(), names(tmp_path)) == (b"two", ["a.txt"])


def test_a_name_without_folder_is_in_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    replace_file("a.txt", b"one")
    assert names(tmp_path) == ["a.txt"]


def test_an_existing_file_is_kept_if_it_must_not_be_replaced(tmp_path):
    target = tmp_path / "a.txt"
    replace_file(target, b"one", overwrite=False)
    with pytest.raises(FileExistsError):
        replace_file(target, b"two", overwrite=False)
    assert (target.read_bytes(), names(tmp_path)) == (b"one", ["a.txt"])


def test_so_it_is_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr(atomic_files.os, "link", refuse)
    target = tmp_path / "a.txt"
    replace_file(target, b"one", overwrite=False)
    with pytest.raises(FileExistsError):
        replace_file(target, b"two", overwrite=False)
    assert (target.read_bytes(), names(tmp_path)) == (b"one", ["a.txt"])


def test_a_file_is_written_relative_to_an_open_folder_although_the_folders_name_changes(tmp_path):
    (tmp_path / "before").mkdir()
    folder = os.open(tmp_path / "before", os.O_RDONLY)
    (tmp_path / "before").rename(tmp_path / "after")
    (tmp_path / "after/.a.txt.part").write_bytes(b"of an earlier version")
    try:
        replace_file("a.txt", b"one", folder=folder)
    finally:
        os.close(folder)
    assert names(tmp_path / "after") == ["a.txt"]


@pytest.mark.parametrize("step", ["sync_data", "write_all"])
def test_a_failing_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "a.txt"
    target.write_bytes(b"old")
    monkeypatch.setattr(atomic_files, step, fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(target, b"new")
    assert (target.read_bytes(), names(tmp_path)) == (b"old", ["a.txt"])


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")
    assert subprocess.run([sys.executable, "-c", KILLED_WRITER, str(target)], check=False).returncode == -9
    assert (target.read_bytes(), len(names(tmp_path))) == (b"old", 2)
    replace_file(target, b"new")
    assert (target.read_bytes(), names(tmp_path)) == (b"new", ["a.txt"])


def test_leftovers_of_all_files_are_removed_and_other_files_kept(tmp_path):
    for name in (".a.txt.0123456789ab.part", ".b.gds.4242-140000.part", ".mine.part", "c.part", ".d"):
        (tmp_path / name).write_bytes(b"x")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [".d", ".mine.part", "c.part"]
    remove_leftovers(tmp_path / "absent")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of Windows")
def test_a_private_file_is_private_before_anything_is_in_it(tmp_path, monkeypatch):
    """Whoever had opened it in between could read on."""
    seen = []
    opened = os.open

    def watched(path, flags, mode=0o777, **more):
        seen.append(mode)
        return opened(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", watched)
    replace_file(tmp_path / "token", b"secret", mode=0o600)
    assert [mode for mode in seen if mode != 0o777] == [0o600]
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
