"""Many real server processes on one graph, some of them killed: nothing acknowledged is lost, no read is torn (S2.2).

``KG_TEST_SCALE`` (default 1) multiplies how much is written and how often is killed.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from itertools import chain
from pathlib import Path

import pytest

from designgraph import store
from patience import WATCHDOG_S
from sturdy import atomic_files
from thorough import in_this_run

SCALE = int(os.environ.get("KG_TEST_SCALE", "1"))


def in_parallel(work, arguments):
    """Run ``work`` for each argument in a thread of its own and return the results; the first failure is raised."""
    results, failures = {}, []

    def run(index, argument):
        try:
            results[index] = work(argument)
        except BaseException as problem:  # noqa: BLE001 - shown by the test below
            failures.append(problem)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(arguments)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[index] for index in range(len(threads))]


def all_ids(graph, graph_id="g"):
    return [node["id"] for node in graph.list_nodes(graph_id, page=everything())["nodes"]]


def everything():
    from designgraph import Page

    return Page(limit=10_000)


def fill_up(graph, count=700):
    """Make a graph that is not read and written within one system call."""
    nodes = [{"id": f"old{i:05}", "type": "Signal", "properties": {"text": "x" * 80}} for i in range(count)]
    graph.init("g", nodes)
    assert graph.store.path.stat().st_size > 1 << 16
    return [node["id"] for node in nodes]


@pytest.mark.parametrize("count", in_this_run([2, 8], [2, 4, 8]))
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_processes_that_write_at_once_lose_nothing(start_worker, open_store, count, large):
    graph = open_store()
    before = fill_up(graph) if large else []
    workers = [start_worker() for _ in range(count)]
    each = 40 * SCALE

    def write(index):
        acknowledged = []
        for number in range(each):
            name = f"w{index}_{number}"
            answered = workers[index].ask("create_node", graphId="g", id=name, type="Signal", properties={"n": number})
            assert answered["ok"], answered
            acknowledged.append(name)
        return acknowledged

    acknowledged = list(chain.from_iterable(in_parallel(write, range(count))))
    assert len(acknowledged) == count * each
    assert all_ids(graph) == all_ids(open_store()) == sorted(before + acknowledged)
    for worker in workers:  # every process sees what the others wrote
        assert worker.ask("list", graphId="g", limit=1)["data"]["total"] == len(before) + len(acknowledged)


def test_of_processes_that_want_the_same_id_exactly_one_gets_it(start_worker):
    workers = [start_worker() for _ in range(4)]

    def write(worker):
        answers = [worker.ask("create_node", graphId="g", id=f"n{i}", type="Signal") for i in range(30 * SCALE)]
        return [a["ok"] or a["error"]["code"] for a in answers]

    results = in_parallel(write, workers)
    for outcome in zip(*results, strict=True):
        assert sorted(outcome, key=str) == ["NODE_EXISTS"] * 3 + [True]


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_reader_sees_each_change_wholly_or_not_at_all(start_worker, open_store, large):
    """A writer replaces graph r again and again, all of its nodes of one generation; readers look meanwhile."""
    if large:
        fill_up(open_store())
    writer, *readers = (start_worker() for _ in range(4))
    rounds, looks = 60 * SCALE, []
    finished = threading.Event()

    def write():
        for generation in range(100 * rounds):
            if generation >= rounds and len(looks) > 10:
                break
            nodes = [{"id": f"n{i}", "type": "Signal", "properties": {"of": generation}} for i in range(12)]
            relations = [{"from": "n0", "to": f"n{i}", "type": "DRIVES"} for i in range(1, 1 + generation % 12)]
            assert writer.ask("init", graphId="r", nodes=nodes, relations=relations)["ok"]
        finished.set()

    def read(worker):
        last = -1
        while not finished.is_set():
            answered = worker.ask("query", graphId="r", nodeId="n0", depth=1)
            listed = worker.ask("list", graphId="r")
            if not answered["ok"]:
                assert answered["error"]["code"] == "NODE_NOT_FOUND"
                continue
            generation = {node["properties"]["of"] for node in answered["data"]["nodes"]}
            later = {node["properties"]["of"] for node in listed["data"]["nodes"]}
            assert len(generation) == len(later) == 1
            assert len(answered["data"]["relations"]) == min(generation) % 12
            assert len(listed["data"]["nodes"]) == 12
            assert last <= min(generation) <= min(later)
            last = min(later)
            looks.append(last)

    in_parallel(lambda work: work(), [write, *(lambda worker=worker: read(worker) for worker in readers)])
    assert len(looks) > 10


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_process_killed_while_it_writes_loses_nothing_it_acknowledged(start_worker, open_store, large):
    """10 kills each, at random moments after the first write; a second process writes on between them."""
    graph = open_store()
    if large:
        fill_up(graph)
    chance = random.Random(7)
    survivor = start_worker()
    acknowledged, asked = set(), set()
    for kill in range(10 * SCALE):
        victim = start_worker()
        killer = threading.Timer(chance.random() * 0.04, victim.process.kill)
        for number in range(2000):
            name = f"k{kill}_{number}"
            if number == 1:
                killer.start()
            try:
                asked.add(name)
                victim.send("create_node", graphId="g", id=name, type="Signal", properties={"k": kill})
                answered = victim.receive()
            except BrokenPipeError:
                break
            if answered is None:
                break
            assert answered["ok"], answered
            acknowledged.add(name)
        killer.join()
        name = f"s{kill}"
        asked.add(name)
        assert survivor.ask("create_node", graphId="g", id=name, type="Signal")["ok"]
        acknowledged.add(name)
    stored = {name for name in all_ids(open_store()) if not name.startswith("old")}
    assert acknowledged <= stored <= asked
    assert len(acknowledged) >= 20 * SCALE
    assert stored == {name for name in all_ids(graph) if not name.startswith("old")}


def test_a_process_that_is_stopped_while_it_holds_the_lock_is_waited_for(start_worker, open_store):
    graph = open_store()
    graph.create_node("g", "a", "Signal")
    worker = start_worker()
    assert worker.ask("list", graphId="g")["ok"]
    path = graph.store.path
    with path.with_name(f"{path.name}.lock").open("r+b") as held:
        atomic_files.lock(held.fileno())
        worker.send("create_node", graphId="g", id="b", type="Signal")
        time.sleep(0.3)
    assert worker.receive()["ok"]
    assert all_ids(graph) == ["a", "b"]


def test_threads_of_one_process_share_a_graph(graph):
    def write(index):
        return [graph.create_node("g", f"t{index}_{i}", "Signal")["id"] for i in range(25)]

    made = list(chain.from_iterable(in_parallel(write, range(6))))
    assert all_ids(graph) == sorted(made)


WINDOWS = """
import fcntl, os, sys, types
sys.path.insert(0, {scripts!r})
from sturdy import atomic_files

# What msvcrt does, made of POSIX byte-range locks: mandatory there, per process here.
def locking(descriptor, mode, count):
    try:
        fcntl.lockf(descriptor, mode, count, os.lseek(descriptor, 0, os.SEEK_CUR), os.SEEK_SET)
    except BlockingIOError:
        raise PermissionError

atomic_files.msvcrt = types.SimpleNamespace(locking=locking, LK_NBLCK=fcntl.LOCK_EX | fcntl.LOCK_NB)
atomic_files.sys = types.SimpleNamespace(platform="win32")
from designgraph.service import KnowledgeGraph
graph = KnowledgeGraph({path!r})
for number in range(40):
    graph.create_node("g", f"{{sys.argv[1]}}_{{number}}", "Signal")
"""


def test_the_way_of_windows_loses_nothing_either(path, open_store):
    scripts = str(Path(store.__file__).parents[1])
    program = WINDOWS.format(scripts=scripts, path=str(path))
    running = [subprocess.Popen([sys.executable, "-c", program, name]) for name in ("a", "b", "c")]
    assert [process.wait(WATCHDOG_S) for process in running] == [0, 0, 0]
    assert len(all_ids(open_store())) == 120


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="skipped: needs the byte counters in /proc")
def test_a_server_keeps_the_graph_warm(start_worker, open_store, path):
    """The first look has to read the file; further ones do not."""
    graph = open_store()
    fill_up(graph, 2000)
    worker = start_worker()

    def bytes_read():
        counters = Path(f"/proc/{worker.process.pid}/io").read_text()
        return int(counters.split("rchar:")[1].split()[0])

    def look():
        before = bytes_read()
        assert worker.ask("query", graphId="g", nodeId="old00001", depth=1)["ok"]
        return bytes_read() - before

    size = path.stat().st_size
    assert look() >= size
    assert sum(look() for _ in range(5)) < size / 10


def test_the_snapshot_is_readable_json_at_every_moment(start_worker, path):
    """An editor or ``git add`` may read it without any lock."""
    worker = start_worker()
    worker.ask("create_node", graphId="g", id="a", type="Signal")
    finished = threading.Event()
    looks = []

    def look():
        while not finished.is_set():
            document = json.loads(path.read_bytes())
            looks.append(len(document["graphs"]["g"]["nodes"]))

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(80):
        worker.ask("create_node", graphId="g", id=f"n{number}", type="Signal")
    finished.set()
    reader.join()
    assert looks == sorted(looks)
    assert len(looks) > 20
