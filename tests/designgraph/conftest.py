"""What the tests of the design graph share."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from designgraph import KnowledgeGraph

SCRIPTS = Path(__file__).resolve().parents[2] / "skills" / "design-knowledge-graph" / "scripts"


@pytest.fixture
def path(tmp_path):
    """Return where a graph file is to be."""
    return tmp_path / "kg" / "graph.json"


@pytest.fixture
def open_store(path):
    """Return a function that opens the graph as a new process would."""
    return lambda file=path: KnowledgeGraph(file)


@pytest.fixture
def graph(open_store):
    """Return an empty graph file's service."""
    return open_store()


class Worker:
    """A real server process; ``ask`` waits for its answer, ``send`` and ``receive`` do not."""

    def __init__(self, path, *, program=(str(SCRIPTS / "graph_worker.py"), "--serve")):
        environment = {**os.environ, "KG_FILE": str(path)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, *program], stdin=pipe, stdout=pipe, env=environment)

    def send(self, tool, **params):
        self.process.stdin.write(json.dumps({"tool": f"kg.{tool}", "params": params}).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def ask(self, tool, **params):
        self.send(tool, **params)
        return self.receive()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        with suppress(BrokenPipeError):
            self.process.stdin.close()


@pytest.fixture
def start_worker(path):
    """Return a function that starts a server process on the graph."""
    started = []

    def start(**options):
        started.append(Worker(path, **options))
        return started[-1]

    yield start
    for worker in started:
        worker.stop()
