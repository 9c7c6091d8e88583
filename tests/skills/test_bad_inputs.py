"""What tools answer to bad input: golden messages, each with what is wrong, what was received and what is allowed.

The texts are what users and agents read. Whoever changes one writes the better text into ``bad_inputs.json``.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pack_tools import pack_tools
from patience import WATCHDOG_S
from skillscript import Tool, call

SKILLS = Path(__file__).resolve().parents[2] / "skills"
TOOLS = pack_tools().by_id
ROWS = json.loads((Path(__file__).parent / "bad_inputs.json").read_text(encoding="utf-8"))


def is_as_stated(message, stated):
    """Return whether a message is the stated one, which ends in dots where a long list of names follows."""
    return message.startswith(stated.removesuffix("...")) if stated.endswith("...") else message == stated


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["tool"])
def test_a_bad_input_is_explained(row):
    declared = TOOLS[row["tool"]]

    def never(_params, _context):
        raise AssertionError("a bad input reached the tool")

    error = call(Tool(declared.id, never, declared.input_schema, declared.output_schema), row["params"]).error
    assert error.code == "INVALID_PARAM"
    assert is_as_stated(error.message, row["message"]), error.message


def test_the_program_of_a_tool_answers_the_same():
    rows = [row for row in ROWS if row["tool"] == "layout.create_nmos_pcell" and row["params"] != []]
    requests = "".join(json.dumps({"id": n, "params": row["params"]}) + "\n" for n, row in enumerate(rows))
    program = [sys.executable, SKILLS / "mos-pcell/scripts/create_nmos_pcell.py", "--serve"]
    done = subprocess.run(program, input=requests, capture_output=True, text=True, timeout=WATCHDOG_S, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(rows) > 5
    for answer, row in zip(answers, rows, strict=True):
        assert is_as_stated(answer["error"]["message"], row["message"])


def test_the_comparison_finds_another_text():
    assert not is_as_stated("Unknown param: a; allowed: b", "Unknown param: c; allowed: ...")
    assert not is_as_stated("'w' must be a number", "'w' must be a number, got 1")
