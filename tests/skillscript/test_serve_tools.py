"""One process that serves several tools: each request names its tool."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from patience import WATCHDOG_S

PROGRAM = """
from skillscript import serve_tools
count = [0]
def add(params, context):
    count[0] += params.get("n", 1)
    return {"count": count[0]}
def show(params, context):
    return {"count": count[0]}
raise SystemExit(serve_tools(__file__, {"t.add": (add, None), "t.show": (show, lambda data: data["count"] > 5)}))
"""


@pytest.fixture
def ask(tmp_path):
    """Return a function that sends requests to one process of such a program and returns the answers."""
    for name in ("scripts", "schemas"):
        (tmp_path / name).mkdir()
    for tool in ("t.add", "t.show"):
        (tmp_path / "schemas" / f"{tool}.input.json").write_text(
            '{"type": "object", "additionalProperties": {"type": "integer"}}'
        )
        (tmp_path / "schemas" / f"{tool}.output.json").write_text('{"type": "object"}')
    script = tmp_path / "scripts" / "worker.py"
    script.write_text(textwrap.dedent(PROGRAM))

    def run(*requests, arguments=("--serve",)):
        text = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=WATCHDOG_S,
        )
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_tools_of_one_process_share_what_it_keeps(ask):
    code, answers = ask(
        {"id": 1, "tool": "t.add", "params": {"n": 4}},
        {"id": 2, "tool": "t.show"},
        {"id": 3, "tool": "t.add", "params": {"n": 2}},
        {"id": 4, "tool": "t.show", "params": {}},
    )
    assert code == 0
    assert [(a["id"], a["data"]["count"], a["exit_code"]) for a in answers] == [
        (1, 4, 0),
        (2, 4, 0),
        (3, 6, 0),
        (4, 6, 1),
    ]


@pytest.mark.parametrize("request_", [{"id": 1}, {"id": 1, "tool": "t.sho"}, {"id": 1, "tool": 3}])
def test_a_request_has_to_name_one_of_the_tools(ask, request_):
    _, answers = ask(request_, {"id": 2, "tool": "t.show"})
    assert answers[0]["error"]["code"] == "INVALID_PARAM"
    assert answers[1]["ok"] is True


def test_each_tool_checks_its_own_parameters(ask):
    error = ask({"id": 1, "tool": "t.add", "params": {"n": "1"}})[1][0]["error"]
    assert error["code"] == "INVALID_PARAM"


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--serve", "--serve")])
def test_it_takes_nothing_but_serve(ask, arguments):
    code, answers = ask(arguments=arguments)
    assert (code, answers[0]["error"]["code"]) == (2, "INVALID_PARAM")
