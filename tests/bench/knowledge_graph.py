"""The design graph at 10,000 nodes and 20,000 relations, in real server processes, beside the least it could cost.

    python tests/bench/knowledge_graph.py [--runs N]

The floors: ``json.load`` of the same file for loading, a synced line appended to a file for a write, and a call that
looks nothing up for a query; so a ratio depends little on the machine, its disk and its load.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKER = str(ROOT / "skills" / "design-knowledge-graph" / "scripts" / "graph_worker.py")
NODES, SMALLER = 10_000, 500
WRITERS, WRITES = 8, 50
PLAIN_LOAD = "import gc, json, sys; gc.disable(); json.load(open(sys.argv[1], 'rb'))"
LOAD = "import sys; from designgraph.store import Store; Store(sys.argv[1]).reading().__enter__()"
LOOK_BOTH_WAYS = """
import sys
from designgraph.service import KnowledgeGraph
KnowledgeGraph(sys.argv[1]).query("design", "sig_0", 1, direction="both")
"""


class Server:
    """A warm process that answers the tools of the skill."""

    def __init__(self, path: Path) -> None:
        pipe = subprocess.PIPE
        environment = {**os.environ, "KG_FILE": str(path)}
        self.process = subprocess.Popen([sys.executable, WORKER, "--serve"], stdin=pipe, stdout=pipe, env=environment)

    def ask(self, tool: str, **params: object) -> float:
        """Return how long one call takes, as the caller sees it. [s]."""
        start = time.perf_counter()
        self.process.stdin.write(json.dumps({"tool": tool, "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        duration = time.perf_counter() - start
        if not json.loads(line)["ok"]:
            sys.exit(f"{tool} answered {line.decode()}")
        return duration

    def stop(self) -> int:
        """End the process and return the most memory it had. [KiB]."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")  # it works in a child of its own
        working = (children.read_text().split() if children.exists() else []) or [self.process.pid]
        status = Path(f"/proc/{working[0]}/status")
        peak = re.search(r"VmHWM:\s*(\d+)", status.read_text()) if status.exists() else None
        self.process.stdin.close()
        self.process.stdout.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        # ru_maxrss begins with what this process had when it started the other.
        return int(peak[1]) if peak else usage.ru_maxrss


def make_graph(path: Path, nodes: int, relations: int) -> None:
    """Write a graph of signals with two properties each and random connections.

    In a process of its own: what is started from a large one would have its size counted as its own.
    """
    if os.fork() == 0:
        _write_graph(path, nodes, relations)
        os._exit(0)
    if os.wait()[1]:
        sys.exit("the graph to measure could not be written")


def _write_graph(path: Path, nodes: int, relations: int) -> None:
    from designgraph import KnowledgeGraph

    chance = random.Random(1)
    ends = {(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(relations)}
    signals = [
        {"id": f"sig_{i}", "type": "Signal", "properties": {"width": "8", "description": f"signal {i}"}}
        for i in range(nodes)
    ]
    relations = [{"from": f"sig_{a}", "to": f"sig_{b}", "type": "CONNECTS"} for a, b in sorted(ends)]
    KnowledgeGraph(path).init("design", signals, relations)


def cpu_s(program: str, path: Path) -> float:
    """Return the CPU time of a Python program with ``path`` as its argument, start-up included. [s]."""
    process = subprocess.Popen([sys.executable, "-c", program, str(path)])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def synced_write_s(folder: Path, count: int) -> float:
    """Return the median time of appending a synced line of 150 bytes under a lock. [s]."""
    times = []
    with (folder / "floor").open("ab", buffering=0) as file:
        for _ in range(count):
            start = time.perf_counter()
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(b"x" * 150)
            os.fdatasync(file.fileno())
            fcntl.flock(file, fcntl.LOCK_UN)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def write_s(path: Path, count: int) -> float:
    """Return the median time of a change by a server that has the graph. [s]."""
    server = Server(path)
    server.ask("kg.query", graphId="design", nodeId="sig_0")
    times = [server.ask("kg.create_node", graphId="design", id=f"new_{i}", type="Signal") for i in range(count)]
    server.stop()
    return statistics.median(times)


def together_per_s(path: Path) -> float:
    """Return the writes a second of eight processes that write at once."""
    servers = [Server(path) for _ in range(WRITERS)]
    for server in servers:
        server.ask("kg.list", graphId="design", limit=1)

    def write(index: int) -> None:
        for number in range(WRITES):
            servers[index].ask("kg.create_node", graphId="design", id=f"w{index}_{number}", type="Signal")

    threads = [threading.Thread(target=write, args=(index,)) for index in range(WRITERS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    duration = time.perf_counter() - start
    for server in servers:
        server.stop()
    return WRITERS * WRITES / duration


def row(name: str, ratio: float, measured: str, floor: str, bound: str) -> None:
    """Print one line."""
    print(f"{name:<60} {ratio:>6.2f} {measured:>10} {floor:>10}  {bound}", flush=True)


def measure(runs: int) -> None:
    """Print one line a measurement: name, ratio to its floor, both values, bound."""
    print(f"\n{'design graph, 10,000 nodes, 20,000 relations':<60} {'ratio':>6} {'value':>10} {'floor':>10}  bound")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as made:
        folder = Path(made)
        path = folder / "graph.json"
        make_graph(path, NODES, 2 * NODES)
        for name, program in (("load", LOAD), ("load and look both ways", LOOK_BOTH_WAYS)):
            pairs = [(cpu_s(program, path), cpu_s(PLAIN_LOAD, path)) for _ in range(max(runs, 3))]
            cost, floor = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            row(f"{name}, CPU of a process / json.load", ratio, f"{cost:.2f} s", f"{floor:.2f} s", "at most 0.6 s")
        smaller = folder / "smaller" / "graph.json"
        make_graph(smaller, SMALLER, 2 * SMALLER)
        for count, file, bound in ((SMALLER, smaller, "at most 5 ms"), (NODES, path, "at most 100 ms")):
            create, floor = write_s(file, 10 * runs), synced_write_s(folder, 10 * runs)
            title = f"create a node among {count:,}, p50 / synced write"
            row(title, create / floor, f"{1e3 * create:.2f} ms", f"{1e3 * floor:.2f} ms", bound)
        server = Server(path)
        server.ask("kg.query", graphId="design", nodeId="sig_0")
        query = statistics.median(
            server.ask("kg.query", graphId="design", nodeId=f"sig_{7 * i}", depth=1) for i in range(100 * runs)
        )
        call = statistics.median(server.ask("kg.list", graphId="nothing") for _ in range(100 * runs))
        row(
            "query to depth 1, p50 / empty call",
            query / call,
            f"{1e3 * query:.2f} ms",
            f"{1e3 * call:.2f} ms",
            "at most 1 ms",
        )
        memory = server.stop() / 1024
        file = path.stat().st_size / 1e6
        row(
            "memory of the server / size of the file",
            memory / file,
            f"{memory:.0f} MB",
            f"{file:.0f} MB",
            "at most 300 MB",
        )
        rate = together_per_s(smaller)
        alone = 1 / synced_write_s(folder, 200)
        row(
            "eight writers at 500 nodes / one that only syncs",
            rate / alone,
            f"{rate:.0f} /s",
            f"{alone:.0f} /s",
            "at least 50 /s",
        )


def main() -> None:
    """Print the measurements of the design graph alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="loads measured, and hundreds of calls (default 7)")
    measure(parser.parse_args().runs)


if __name__ == "__main__":
    main()
