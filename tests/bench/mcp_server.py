"""The MCP server over stdio: CPU from its start to the first answers, and CPU per graph call.

    python tests/bench/mcp_server.py [--runs N]

The floors are importing the SDK's server, and a server on the SDK whose one tool answers at once. The CPU of a server
is that of its whole process tree, so a tool's own process counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from knowledge_graph import make_graph, row
from run import HEADER, cpu_s

CALLS = 200
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
IMPORT = ["-c", "import mcp.server.lowlevel, mcp.server.stdio"]
SMALLEST = """
import anyio, mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def call(context, params):
    text = types.TextContent(type="text", text='{"ok": true}')
    return types.CallToolResult(content=[text], structured_content={"ok": True})

async def main():
    server = Server("smallest", on_call_tool=call)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

anyio.run(main)
"""
OURS = ["-m", "skillpack", "mcp"]
GRAPH_CALLS = {
    "kg_list": {"graphId": "design", "limit": 10},
    "kg_query": {"graphId": "design", "nodeId": "sig_7"},
    "kg_update_node": {"graphId": "design", "id": "sig_7", "properties": {"width": "1"}},
}


class Server:
    """A server over stdio, spoken to by the lines of the protocol."""

    def __init__(self, command: list[str], folder: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer or answer["result"].get("isError"):
            sys.exit(f"{method} {params}: {answer}")
        return answer

    @property
    def cpu_s(self) -> float:
        """CPU time of the server and of the processes it started that run. [s]"""
        return _tree_cpu_s(self._process.pid)

    def stop(self) -> None:
        """End the server."""
        self._process.communicate()


def _tree_cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of its children that run, theirs included. [s]"""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    lists = [*Path(f"/proc/{pid}/task").glob("*/children")]  # one a thread; not every system has them
    started = [child for path in lists for child in path.read_text().split()] if lists else _children(pid)
    return own + sum(_tree_cpu_s(int(child)) for child in started)


def _children(pid: int) -> list[str]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.split()


def start_s(folder: str) -> float:
    """Return the CPU time from the start to the answers to initialize and tools/list. [s]"""
    server = Server(OURS, folder)
    server.ask("initialize", HELLO)
    server.ask("tools/list", {})
    spent = server.cpu_s
    server.stop()
    return spent


def per_call_s(command: list[str], folder: str, name: str, arguments: dict[str, Any]) -> float:
    """Return the CPU time of a call to a warm server. [s]"""
    server = Server(command, folder)
    server.ask("initialize", HELLO)
    call = {"name": name, "arguments": arguments}
    for _ in range(20):
        server.ask("tools/call", call)
    before = server.cpu_s
    for _ in range(CALLS):
        server.ask("tools/call", call)
    spent = (server.cpu_s - before) / CALLS
    server.stop()
    return spent


def measure(runs: int) -> None:
    """Print one line a measurement."""
    with tempfile.TemporaryDirectory() as folder:
        start_s(folder)  # compiles what is not compiled yet
        pairs = [(start_s(folder), cpu_s(IMPORT, folder)) for _ in range(runs)]
        cost, floor = (statistics.median(column) for column in zip(*pairs, strict=True))
        value = statistics.median(a / b for a, b in pairs)
        row("MCP start, tools listed / import of the SDK", value, f"{cost:.2f} s", f"{floor:.2f} s", "at most 1.5 s")
        for size in (10, 10_000):
            make_graph(Path(folder, str(size), ".chipforge", "kg", "graph.json"), size, 2 * size)
            for name, arguments in GRAPH_CALLS.items():
                pairs = [
                    (
                        per_call_s(OURS, f"{folder}/{size}", name, arguments),
                        per_call_s(["-c", SMALLEST], folder, "any", {}),
                    )
                    for _ in range(runs)
                ]
                cost, floor = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
                value = statistics.median(a / b for a, b in pairs)
                what = f"MCP graph call, {name}, {size} nodes / smallest tool of the SDK"
                row(what, value, f"{cost:.2f} ms", f"{floor:.2f} ms", "at most 6 ms; a write to 10,000 nodes 100 ms")


def main() -> None:
    """Measure the server alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="pairs measured (default 5)")
    arguments = parser.parse_args()
    print(HEADER)
    measure(arguments.runs)


if __name__ == "__main__":
    main()
