"""The MCP Inspector's command line, a client of another house, over both transports and in both eras."""

import json
import subprocess
import sys

import pytest

from extras import extra
from patience import WATCHDOG_S

extra("mcp", reason="skipped: needs the extra mcp")


@pytest.fixture(scope="module")
def inspect(npm_program, pack_dir):
    """Return what the Inspector says of one method, and its exit code."""
    program, environment = npm_program("mcp-inspector")

    def run(*arguments, target=None):
        command = target or [sys.executable, "-m", "skillpack", "mcp", "--skills-dir", str(pack_dir)]
        done = subprocess.run(
            [program, "--cli", *arguments, "--format", "json", "-q", *command],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=WATCHDOG_S,
        )
        return done.returncode, done.stdout

    return run


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_its_schema_check_finds_nothing_to_object_to(inspect, era, pack_dir, tools_of_the_trade):
    folders = ["--skills-dir", str(pack_dir), "--skills-dir", str(tools_of_the_trade.ROOT / "skills")]
    target = [sys.executable, "-m", "skillpack", "mcp", *folders]
    code, out = inspect("--protocol-era", era, "--method", "tools/list", "--strict", target=target)
    assert code == 0
    answer = json.loads(out)
    assert "schemaFindings" not in answer
    assert {"bench_echo_text", "drc_run_check"} < {tool["name"] for tool in answer["result"]["tools"]}


def test_its_check_of_the_skills_extension_verifies_every_skill(inspect):
    code, out = inspect("--protocol-era", "modern", "--method", "skills/list", "--verify", "--require-digests")
    reports = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(report["name"], report["outcome"]) for report in reports] == [
        ("bench", "verified"),
        ("memory", "verified"),
    ]
    assert all(report["conformance"] == [] for report in reports)


def test_it_calls_a_tool_and_sees_an_error_as_an_error(inspect):
    call = ("--method", "tools/call", "--tool-name", "bench_echo_text", "--tool-args-json")
    code, out = inspect(*call, '{"text": "hello"}')
    assert code == 0
    assert json.loads(out)["result"]["structuredContent"]["data"]["text"] == "hello"
    code, out = inspect(*call, '{"txet": "hello"}')
    assert code == 5  # the Inspector's code for isError
    assert json.loads(out)["result"]["structuredContent"]["error"]["code"] == "INVALID_PARAM"


def test_it_speaks_to_the_http_server(inspect, pack_dir, tools_of_the_trade):
    with tools_of_the_trade.running("mcp", "--http", "--skills-dir", pack_dir) as (_, address):
        code, out = inspect("--method", "resources/read", "--uri", "skill://bench/SKILL.md", target=[address])
    assert code == 0
    assert "# bench" in json.loads(out)["result"]["contents"][0]["text"]
