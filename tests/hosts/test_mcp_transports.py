"""``skillpack mcp`` as a process of its own, spoken to by the official client over stdio and streamable HTTP."""

import json
import os
import signal
import subprocess
import sys

import anyio
import pytest
from jsonschema import Draft202012Validator

from extras import extra
from forked import run_server_command
from patience import WATCHDOG_S

mcp = extra("mcp", reason="skipped: needs the extra mcp")
httpx2 = extra("httpx2", reason="skipped: needs the extra mcp")

pytestmark = pytest.mark.anyio
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc"), reason="skipped: needs /proc")  # noqa: PTH112
TOKEN = "a-token-of-some-length"  # noqa: S105


def stdio(pack_dir, *arguments, cwd=None):
    command = ["-m", "skillpack", "mcp", "--skills-dir", str(pack_dir), *arguments]
    environment = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "PATH", "VIRTUAL"))}
    return mcp.StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=cwd)


@pytest.fixture(scope="module")
def address(pack_dir, tools_of_the_trade):
    with tools_of_the_trade.running("mcp", "--http", "--skills-dir", pack_dir) as (_, address):
        yield address


@pytest.fixture(params=["stdio", "http"])
def target(request, pack_dir, address):
    return stdio(pack_dir) if request.param == "stdio" else address


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_lists_calls_and_reads(target, mode, tmp_path):
    told = []

    async def on_progress(_, __, message):
        told.append(message)

    async with mcp.Client(target, mode=mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert client.server_capabilities.extensions == {"io.modelcontextprotocol/skills": {"directoryRead": True}}
        assert "skill_request" in client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        good = await client.call_tool("bench_echo_text", {"text": "hello"})
        bad = await client.call_tool("bench_echo_text", {"text": "hello", "volume": 11})
        body = await client.call_tool("skill_request", {"name": "bench"})
        picture = await client.call_tool("bench_draw", {"output_path": str(tmp_path / "a.png")})
        await client.call_tool(
            "bench_wait", {"pids": str(tmp_path / "pids"), "steps": 2}, progress_callback=on_progress
        )
        text = await client.read_resource("skill://bench/SKILL.md")
    for name, result in (("bench_echo_text", good), ("bench_echo_text", bad), ("bench_draw", picture)):
        Draft202012Validator(tools[name].output_schema).validate(result.structured_content)
    assert good.structured_content["data"]["text"] == "hello"
    assert bad.is_error
    assert "volume" in bad.structured_content["error"]["message"]
    assert "# bench" in body.content[0].text
    assert [block.type for block in picture.content] == ["text", "resource_link", "image"]
    assert "\n".join(told).split("\n") == ["step 0", "step 1"]
    assert text.contents[0].text.startswith("---\nname: bench\n")


@needs_proc
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_cancelled_call_is_killed_whatever_lies_between(target, mode, tmp_path, tools_of_the_trade):
    pids = tmp_path / "pids"
    async with mcp.Client(target, mode=mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "bench_wait", {"pids": str(pids), "seconds": 50})
            await tools_of_the_trade.written(pids)
            group.cancel_scope.cancel()
        alive = [int(pid) for pid in pids.read_text().split()]
        assert await anyio.to_thread.run_sync(
            tools_of_the_trade.eventually, lambda: not any(map(tools_of_the_trade.is_alive, alive))
        )
        assert not (await client.call_tool("bench_echo_text", {"text": "still there"})).is_error


@needs_proc
@pytest.mark.parametrize("ending", ["stdin closes", "SIGTERM", "SIGHUP"])
def test_a_stdio_server_that_ends_leaves_no_tool_behind(pack_dir, tmp_path, tools_of_the_trade, ending):
    pids = tmp_path / "pids"
    parameters = stdio(pack_dir)
    process = subprocess.Popen([parameters.command, *parameters.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        arguments = {"pids": str(pids), "seconds": 50}
        for message in (
            {"id": 1, "method": "initialize", "params": client},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "bench_wait", "arguments": arguments}},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        assert tools_of_the_trade.eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        alive = [int(pid) for pid in pids.read_text().split()]
        if ending.startswith("SIG"):
            process.send_signal(signal.Signals[ending])
        else:
            process.stdin.close()
        assert process.wait(WATCHDOG_S) == 0
        assert tools_of_the_trade.eventually(lambda: not any(map(tools_of_the_trade.is_alive, alive)))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_line_that_is_no_message_is_answered_and_the_server_goes_on(pack_dir):
    """A model's broken emoji (half of a surrogate pair) must not leave the host waiting for its timeout."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "bench_echo_text", "text": "\ud83d"}},
        {"jsonrpc": "2.0", "id": "three", "method": "ping", "params": ["x"]},
        {"jsonrpc": "2.0", "method": 4},
        [{"jsonrpc": "2.0", "id": 5, "method": "ping"}],
        {"jsonrpc": "2.0", "id": "\ud83d", "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 6, "method": "ping"},
    ]
    sent = "\n".join(["", *map(json.dumps, lines[:5]), "no JSON", *map(json.dumps, lines[5:]), ""]).encode()
    parameters = stdio(pack_dir)
    process = subprocess.Popen([parameters.command, *parameters.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdin.write(sent)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(9)]
    finally:
        process.stdin.close()
        process.wait(WATCHDOG_S)
        process.stdout.close()
    told = [(answer["id"], answer.get("error", {}).get("code")) for answer in answers]
    refused = [
        (2, -32700),
        ("three", -32600),
        (None, -32700),
        (None, -32600),
        (None, -32700),
        (None, -32600),
        (None, -32600),
    ]
    assert [entry for entry in told if entry[1]] == refused
    assert sorted(entry[0] for entry in told if not entry[1]) == [1, 6]


async def test_tools_work_in_the_folder_that_the_server_is_given(pack_dir, tmp_path):
    async with mcp.Client(stdio(pack_dir, "--directory", str(tmp_path))) as client:
        result = await client.call_tool("bench_draw", {"output_path": "here.png"})
    assert not result.is_error
    assert (tmp_path / "here.png").exists()
    assert "image" in [block.type for block in result.content]


def test_nothing_but_messages_goes_to_stdout(pack_dir):
    parameters = stdio(pack_dir)
    done = subprocess.run(
        [parameters.command, *parameters.args], input=b"", capture_output=True, check=True, timeout=WATCHDOG_S
    )
    assert done.stdout == b""


async def test_a_token_is_required_where_one_is_set(pack_dir, tools_of_the_trade):
    environment = {"SKILLPACK_TOKEN": TOKEN}
    with tools_of_the_trade.running("mcp", "--http", "--skills-dir", pack_dir, environment=environment) as (_, address):
        async with httpx2.AsyncClient() as plain:
            assert (await plain.post(address, json={})).status_code == 401
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as bearing,
            mcp.Client(streamable_http_client(address, http_client=bearing)) as client,
        ):
            assert not (await client.call_tool("bench_echo_text", {"text": "a"})).is_error


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
async def test_a_page_in_a_browser_cannot_reach_the_server(address, headers, status):
    async with httpx2.AsyncClient() as client:
        answer = await client.post(address, content=b"{}", headers={"Content-Type": "application/json", **headers})
    assert answer.status_code == status


@pytest.mark.parametrize(("command", "host"), [("mcp --http", "0.0.0.0"), ("http", "192.0.2.1")])  # noqa: S104
def test_a_server_that_others_can_reach_does_not_start_without_a_token(pack_dir, command, host):
    done = run_server_command(*command.split(), "--skills-dir", pack_dir, "--host", host)
    assert done.returncode == 2
    assert "token" in done.stderr
