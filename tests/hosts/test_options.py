"""The server commands without their extras, and with options that cannot be."""

import json
import os
import subprocess
import sys

import pytest

from forked import run_server_command
from patience import WATCHDOG_S
from skillscript.install import install_command

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({packages!r}))
sys.argv = ["skillpack", {command!r}, *{arguments!r}]
from skillpack.__main__ import main
main()
"""


def run(command, packages, *arguments):
    """Run a command where these packages are not installed."""
    code = WITHOUT.format(packages=packages.split(), command=command, arguments=[*arguments])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SKILLPACK_TOKEN": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=WATCHDOG_S,
    )


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("mcp", "mcp", "mcp"), ("mcp --http", "anyio", "mcp"), ("http", "fastapi", "http")],
)
def test_a_missing_extra_is_named_in_one_line(command, package, extra):
    command, *options = command.split()
    done = run(command, package, *options)
    assert done.returncode == 2
    assert install_command(extra) in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_needs_no_extra():
    assert run("mcp", "mcp", "--help").returncode == 0
    assert run("http", "fastapi", "--help").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "99999"], "--port"),
        (["--timeout", "0"], "--timeout"),
        (["--directory", "/nowhere/at/all"], "--directory"),
        (["--skills-dir", "/nowhere/at/all"], "no such skills directory"),
        (["--host", "no.such.host.invalid", "--token-file", __file__], "token"),
        (["--token-file", "/nowhere/at/all"], "cannot be read"),
    ],
)
def test_an_option_that_cannot_be_is_reported_and_nothing_starts(arguments, said):
    pytest.importorskip("fastapi", reason="skipped: needs the extra http")
    done = run_server_command("http", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_reported(tools_of_the_trade, pack_dir):
    pytest.importorskip("fastapi", reason="skipped: needs the extra http")
    with tools_of_the_trade.running("http", "--skills-dir", pack_dir) as (_, address):
        done = run_server_command("http", "--skills-dir", pack_dir, "--port", address.rpartition(":")[2])
    assert done.returncode == 2
    assert "cannot listen" in done.stderr


@pytest.mark.parametrize("command", ["mcp", "http"])
def test_a_timeout_that_is_no_number_is_refused(command):
    pytest.importorskip(command if command == "mcp" else "fastapi", reason="skipped: needs the extra")
    done = run_server_command(command, "--timeout", "nan")
    assert done.returncode == 2
    assert "must be a number of seconds" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["--toolsets", "bench,memry,x"], {}, "no toolset 'memry'; did you mean 'memory'?; no toolset 'x'"),
        (["--toolsets", "bench,"], {}, "no toolset ''"),
        ([], {"SKILLPACK_TOOLSETS": "banch"}, "no toolset 'banch'; did you mean 'bench'?"),
    ],
)
def test_an_unknown_toolset_is_reported_with_those_that_there_are(pack_dir, arguments, environment, said):
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    done = run_server_command("mcp", "--skills-dir", pack_dir, *arguments, **environment)
    assert done.returncode == 2
    assert said in done.stderr
    assert "there are: bench, memory" in done.stderr


def test_a_tool_that_cannot_have_its_plain_name_is_reported_at_the_start(tmp_path, tools_of_the_trade):
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    root = tools_of_the_trade.write_pack(tmp_path, ["bench.crash"])
    declared = json.loads((root / "bench/skill.yaml").read_text())
    declared["tools"].append({**declared["tools"][0], "id": "bench_crash.x"})
    declared["tools"].append({**declared["tools"][0], "id": "bench.crash.x"})
    (root / "bench/skill.yaml").write_text(json.dumps(declared))
    done = run_server_command("mcp", "--skills-dir", root)
    assert done.returncode == 0
    assert "bench.crash.x is served as bench_crash_x_" in done.stderr
    assert done.stderr.count("is served as") == 1
