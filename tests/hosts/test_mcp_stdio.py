"""Stdin and stdout as a transport: odd lines, long lines, the end of the input, and a client that does not read."""

import io
import json
import subprocess
import sys
import threading

import pytest

from extras import extra
from patience import WATCHDOG_S, eventually

extra("mcp", reason="skipped: needs the extra mcp")

pytestmark = pytest.mark.anyio
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
LONGEST = 100_000


def request(number, method, params=None):
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}


def written(messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


OPENING = [request("open", "initialize", HELLO), {"jsonrpc": "2.0", "method": "notifications/initialized"}]
READ = {"uri": "skill://bench/SKILL.md"}


async def answers_of(mcp_server, messages):
    """Return what a server answers to these lines, read until their end."""
    from skillpack.hosts.mcp.sdk_server import Pipe

    answers = io.BytesIO()
    await Pipe(io.BytesIO(messages), answers, LONGEST).carry(mcp_server)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


async def test_requests_that_run_no_tool_are_answered_though_the_input_has_ended(mcp_server):
    requests = [request(number, "resources/read", READ) for number in range(200)]
    found = await answers_of(mcp_server, written([*OPENING, *requests]).rstrip())
    assert sorted((str(answer["id"]), "result" in answer) for answer in found) == sorted(
        (str(each), True) for each in ("open", *range(200))
    )


@pytest.mark.parametrize("ids", [["long"], ["7", 7]], ids=["one", "two with the same id"])
def test_a_call_that_runs_when_the_input_ends_is_answered_with_an_error(pack_dir, tmp_path, ids):
    command = [sys.executable, "-m", "skillpack", "mcp", "--skills-dir", str(pack_dir)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pids = [tmp_path / str(index) for index in range(len(ids))]
    calls = [
        request(number, "tools/call", {"name": "bench_wait", "arguments": {"pids": str(path), "seconds": 600}})
        for number, path in zip(ids, pids, strict=True)
    ]
    process.stdin.write(written([*OPENING, *calls]))
    process.stdin.flush()
    assert eventually(lambda: all(path.exists() for path in pids))
    answers, _ = process.communicate(timeout=WATCHDOG_S)
    ended = [json.loads(line) for line in answers.splitlines()[1:]]
    assert sorted((str(answer["id"]), answer["error"]["code"]) for answer in ended) == [
        (str(each), -32000) for each in ids
    ]


async def test_a_client_that_reads_nothing_does_not_keep_the_server_from_ending(mcp_server, monkeypatch):
    from skillpack.hosts.mcp import sdk_server

    monkeypatch.setattr(sdk_server, "END_SECONDS", 0.1)
    reads = threading.Event()

    class Full(io.BytesIO):
        def write(self, _):
            reads.wait(WATCHDOG_S)

    requests = written([*OPENING, *(request(number, "resources/read", READ) for number in range(200))])
    await sdk_server.Pipe(io.BytesIO(requests), Full(), LONGEST).carry(mcp_server)
    reads.set()


async def test_the_longest_line_is_taken_and_no_longer_one_is_kept(mcp_server):
    frame = len(json.dumps(request("longest", "ping", {"text": ""}))) + 1
    longest = request("longest", "ping", {"text": "a" * (LONGEST - frame)})
    longer = request("longer", "ping", {"text": "a" * (LONGEST - frame + 2)})
    far_longer = request("far longer", "ping", {"text": "a" * (4 * LONGEST)})
    messages = written([*OPENING, longest, longer, far_longer, request("after", "ping")])
    found = await answers_of(mcp_server, messages)
    assert sorted((str(answer["id"]), "result" in answer) for answer in found) == [
        ("None", False),
        ("None", False),
        ("after", True),
        ("longest", True),
        ("open", True),
    ]
    assert {answer["error"]["message"] for answer in found if "error" in answer} == {
        f"Parse error: the line is longer than {LONGEST} bytes"
    }


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": null, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": true, "method": "ping"}',
        '{"jsonrpc": "1.0", "id": 3, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": [1]}',
        '[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]',
        "no JSON",
        "[" * 100_000,
        '{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"a": "\\ud83d"}}',
        '{"jsonrpc": "2.0", "id": ' + "9" * 5000 + ', "method": "ping"}',
    ],
    ids=lambda line: line[:60],
)
async def test_a_line_that_is_no_message_is_answered_with_an_error_and_the_next_is_served(mcp_server, line):
    found = await answers_of(mcp_server, f"{line}\n\n".encode() + written([request("after", "ping")]))
    refused, after = found
    assert refused["error"]["code"] in {-32700, -32600}
    assert after == {"jsonrpc": "2.0", "id": "after", "result": {}}


@pytest.mark.parametrize("number", ["--5", "007", "", " 1 ", "\u0661", -1, 10**30])
async def test_an_odd_id_is_repeated_in_the_answer(mcp_server, number):
    assert [answer["id"] for answer in await answers_of(mcp_server, written([request(number, "ping")]))] == [number]


async def test_a_client_that_is_gone_stops_nothing(mcp_server):
    from skillpack.hosts.mcp.sdk_server import Pipe

    class Gone(io.BytesIO):
        def write(self, _):
            raise BrokenPipeError

    await Pipe(io.BytesIO(written(OPENING)), Gone(), LONGEST).carry(mcp_server)
    assert threading.main_thread().is_alive()
