"""Every system call that durability rests on fails once: nothing acknowledged is lost, nothing refused appears."""

import errno
import os
import resource
import subprocess
import sys

import pytest

from designgraph import store
from designgraph.graph import NotStoredError
from patience import WATCHDOG_S
from sturdy import atomic_files

CALLS = (atomic_files, "write_all"), (atomic_files, "sync_data"), (os, "replace"), (store, "sync_folder")


class Failing:
    """Makes the n-th of these calls raise; ``half`` lets a write put half of its bytes down first."""

    def __init__(self, monkeypatch):
        self.count = 0
        self.at = 0
        self.code = errno.EIO
        self.names = []
        for home, name in CALLS:
            monkeypatch.setattr(home, name, self.wrapped(name, getattr(home, name)))

    def wrapped(self, name, original):
        def call(*arguments, **named):
            self.count += 1
            self.names.append(name)
            if self.count == self.at:
                if name == "write_all":
                    original(arguments[0], arguments[1][: len(arguments[1]) // 2])
                raise OSError(self.code, os.strerror(self.code))
            return original(*arguments, **named)

        return call

    def from_now(self, at):
        self.count, self.at, self.names = 0, at, []


@pytest.fixture
def failing(monkeypatch):
    return Failing(monkeypatch)


def ids(graph):
    return [node["id"] for node in graph.list_nodes("g")["nodes"]]


def attempt(graph, name):
    """Return whether the change was acknowledged."""
    try:
        graph.create_node("g", name, "Signal")
    except NotStoredError as error:
        return "was not made" not in str(error)
    return True


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_failing_call_loses_nothing_and_makes_nothing_appear(open_store, failing, at, code):
    """S2.2. The file is written, synced and renamed; after that, a folder that cannot be synced is only reported."""
    graph, other = open_store(), open_store()
    graph.create_node("g", "first", "Signal")
    assert ids(other) == ["first"]
    failing.code = code
    failing.from_now(at)
    acknowledged = attempt(graph, "second")
    failing.from_now(0)
    assert acknowledged is (at > 3)
    expected = ["first", "second"] if acknowledged else ["first"]
    for reader in (graph, other, open_store()):
        assert ids(reader) == expected
    graph.create_node("g", "third", "Signal")
    for reader in (graph, other, open_store()):
        assert ids(reader) == [*expected, "third"]


def test_a_folder_that_cannot_be_synced_is_reported(open_store, failing):
    graph = open_store()
    graph.create_node("g", "first", "Signal")
    failing.from_now(4)
    assert "could not be synced" in graph.create_node("g", "second", "Signal")["warnings"][0]


def test_the_calls_that_can_fail_are_all_made_to_fail_above(open_store, failing):
    graph = open_store()
    graph.create_node("g", "first", "Signal")
    failing.from_now(0)
    graph.create_node("g", "second", "Signal")
    assert failing.names == ["write_all", "sync_data", "replace", "sync_folder"]


@pytest.mark.parametrize("at", range(1, 8))
def test_a_first_change_that_fails_leaves_a_graph_that_works(open_store, failing, at):
    graph = open_store()
    failing.from_now(at)
    try:
        graph.create_node("g", "a", "Signal")
        acknowledged = True
    except (NotStoredError, store.GraphFileError):
        acknowledged = False
    failing.from_now(0)
    assert ids(graph) == ids(open_store()) == (["a"] if acknowledged else [])
    graph.create_node("g", "b", "Signal")
    assert ids(open_store()) == ids(graph)


def test_an_interruption_between_writing_and_acknowledging_is_read_again(open_store, monkeypatch):
    graph = open_store()
    graph.create_node("g", "a", "Signal")
    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "sync_data", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            graph.create_node("g", "b", "Signal")
    assert ids(graph) == ids(open_store())
    graph.create_node("g", "c", "Signal")
    assert {"a", "c"} <= set(ids(graph))
    assert ids(graph) == ids(open_store())


def test_an_edit_that_cannot_be_signed_refuses_the_change(path, open_store, failing):
    graph = open_store()
    graph.create_node("g", "a", "Signal")
    path.write_text(path.read_text().replace('"a"', '"mine"'))
    edited = path.read_text()
    failing.from_now(1)
    assert not attempt(graph, "b")
    assert path.read_text() == edited
    failing.from_now(0)
    assert attempt(graph, "b")
    assert ids(open_store()) == ["b", "mine"]


def test_a_file_system_without_locks_refuses_to_write(open_store, monkeypatch):
    def no_locks(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(store, "lock", no_locks)
    graph = open_store()
    with pytest.raises(NotStoredError, match="cannot be locked"):
        graph.create_node("g", "a", "Signal")


FILL = """
import resource, signal, sys
sys.path.insert(0, {scripts!r})
from designgraph.service import KnowledgeGraph
from designgraph.graph import NotStoredError
{limit}
graph = KnowledgeGraph({path!r})
known = len(graph.list_nodes("g", page=None)["nodes"])
for number in range(known, 5000):
    try:
        graph.create_node("g", f"n{{number:04}}", "Signal", {{"text": "x" * 100}})
    except NotStoredError as error:
        print(f"full after {{number}}: {{error}}")
        assert graph.list_nodes("g")["total"] == number
        break
    print("ok", flush=True)
"""


def fill(path, limit=""):
    """Write in a process of its own until the disk is full; return how many changes were acknowledged."""
    program = FILL.format(
        scripts=os.fspath(next(p for p in sys.path if p.endswith("scripts"))), path=str(path), limit=limit
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=WATCHDOG_S
    )
    assert "full after" in done.stdout, done.stdout[-500:] + done.stderr
    return done.stdout.count("ok\n")


def test_files_that_may_not_grow_refuse_the_change_and_keep_the_rest(path, open_store):
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))"
    acknowledged = fill(path, limit)
    assert acknowledged > 100
    graph = open_store()
    assert graph.list_nodes("g")["total"] == acknowledged
    graph.create_node("g", "more", "Signal")
    assert open_store().list_nodes("g")["total"] == acknowledged + 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 40_000


def test_a_full_disk_refuses_the_change_and_keeps_the_rest(tmp_path, open_store):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        acknowledged = fill(disk / "graph.json")
        assert acknowledged > 300
        graph = open_store(disk / "graph.json")
        assert graph.list_nodes("g", page=None)["total"] == acknowledged
        files = {file.name for file in disk.iterdir()}
        assert files <= {"graph.json", "graph.json.lock"}
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        graph.create_node("g", "more", "Signal")
        assert open_store(disk / "graph.json").list_nodes("g")["total"] == acknowledged + 1
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
