"""Create a new skill that passes ``validate`` and whose tool runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from typing import TYPE_CHECKING, NamedTuple

from skillpack.authoring.skill_rules import MAX_DESCRIPTION, name_problem
from skillpack.exceptions import ScaffoldError
from skillpack.skills.strict_frontmatter import write
from skillscript.faults import sentences

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOOL_ID = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DESCRIPTION = (
    "Count the words of a text. Use when someone wants to know how many words a text has. Not for characters or lines."
)
_HOW_TO_RUN = """\
Run commands in this skill's folder, or elsewhere with full paths of its files; other relative paths start where you run
them. `uv run` installs what a script needs; without uv, use the `python` of an environment with analog-layout-skills.
Over MCP call the tool named beside the command with the same parameters."""
_HOW_TO_RUN_A_HANDLER = """\
Run commands in this skill's folder, or elsewhere with the path of that folder in place of `.`. `skillpack` is the
program of analog-layout-skills. Over MCP call the tool named beside the command with the same parameters."""


class Plan(NamedTuple):
    """The skill to create.

    Attributes:
        name: Name of the skill and of its folder.
        parent: Folder in which to create it; it need not exist.
        description: What the skill does and when to use it; "" for the description of the example.
        tool: Dotted id of its tool, or None for a skill without a tool.
        handler: Whether the tool is a ``handler.py`` with templates and tests, rather than a program in ``scripts``.
    """

    name: str
    parent: Path
    description: str = ""
    tool: str | None = None
    handler: bool = False

    @property
    def script(self) -> str:
        """Return the path of the tool's script within the skill."""
        return f"scripts/{(self.tool or '').rpartition('.')[2]}.py"


def default_tool(name: str) -> str:
    """Return the default id of the tool of a new skill: ``word_count.run`` for ``word-count``."""
    words = name.replace("-", "_")
    return f"{words if words[:1].isalpha() else f'skill_{words}'}.run"


def write_skill(plan: Plan) -> Path:
    """Create a skill and return its folder, which appears complete or not at all.

    Raises:
        ScaffoldError: If the name, description or tool id is not allowed, or the folder exists or cannot be created.
    """
    problems = _problems(plan)
    if problems:
        raise ScaffoldError(sentences(problems))
    home = plan.parent / plan.name
    if os.path.lexists(home):
        raise ScaffoldError(f"{home} exists; nothing was written")
    beside = plan.parent / f".{plan.name}.{os.getpid()}"
    try:
        for name, text in _files(plan).items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        beside.rename(home)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise ScaffoldError(f"{home} cannot be written: {error.strerror}") from error
    return home


def _problems(plan: Plan) -> list[str]:
    """Return all faults of a plan."""
    found = []
    problem = name_problem(plan.name)
    if problem is not None:
        slug = "-".join(re.findall(r"[a-z0-9]+", plan.name.casefold()))[:64].strip("-")
        found.append(problem + (f"; try {slug!r}" if slug else ""))
    if len(plan.description) > MAX_DESCRIPTION or re.search(r"[<>\x00-\x1f\x7f\ud800-\udfff]", plan.description):
        found.append(f"a description is one line of at most {MAX_DESCRIPTION} characters without '<' and '>'")
    if plan.tool is not None and not TOOL_ID.fullmatch(plan.tool):
        found.append(f"the tool id {plan.tool!r} is not lower-case words joined by dots, such as 'text.count_words'")
    return found


def _files(plan: Plan) -> dict[str, str]:
    """Return the files of the skill as texts by path."""
    files = {"SKILL.md": _skill_file(plan)}
    if plan.tool is not None and plan.handler:
        return files | _handler_files(plan.tool, plan.name.replace("-", " ").capitalize())
    if plan.tool is not None:
        files["skill.yaml"] = _declaration(plan, plan.tool)
        files[plan.script] = _script(plan.tool)
        files[f"schemas/{plan.tool}.input.json"] = _object_schema(
            {"text": {"type": "string", "description": "Text whose words are counted."}}
        )
        files[f"schemas/{plan.tool}.output.json"] = _object_schema(
            {"words": {"type": "integer", "description": "Number of words."}}
        )
    return files


def _skill_file(plan: Plan) -> str:
    """Return SKILL.md."""
    return write({"name": plan.name, "description": plan.description or _DESCRIPTION}, _body(plan))


def _body(plan: Plan) -> str:
    """Return the instructions in SKILL.md."""
    title = f"# {plan.name.replace('-', ' ').capitalize()}\n\n"
    if plan.tool is None:
        return title + (
            "| task | what to do |\n| --- | --- |\n"
            "| count the words of a text | split it at blanks and count the parts |\n\n"
            "## Gotchas\n\n- Several blanks in a row separate two words, not three.\n"
        )
    program, how, parameters = f"uv run {plan.script}", _HOW_TO_RUN, "`--help` lists every parameter."
    command = shlex.join([*program.split(), "--text", "three short words"])
    if plan.handler:
        program, how = f"skillpack run {plan.tool} --skills-dir .", _HOW_TO_RUN_A_HANDLER
        command = f"""{program} --params '{{"text": "three short words"}}'"""
        parameters = f"`skillpack tools {plan.tool} --skills-dir .` shows every parameter."
    served = plan.tool.replace(".", "_")
    return title + (
        f"{how}\n\n| task | command |\n| --- | --- |\n"
        f"| count the words of a text | `{program}` (MCP: `{served}`), with the text as `text` |\n\n"
        f"{parameters}\n\n## Quick start\n\n```bash\n{command}\n```\n\n"
        "The answer is one JSON envelope: `data.words` is 3.\n\n"
        "## Gotchas\n\n- Words are what blanks separate; several blanks in a row count as one.\n\n"
        "## Errors and cures\n\n| error | cure |\n| --- | --- |\n"
        "| `INVALID_PARAM: Missing required param: text` | give `text` |\n"
    )


def _declaration(plan: Plan, tool: str) -> str:
    """Return skill.yaml."""
    title = json.dumps(plan.name.replace("-", " ").capitalize())
    return f"""\
skill: {json.dumps(plan.name)}
version: "1.0.0"
tools:
  - id: {tool}
    script: {plan.script}
    display_name: {{en: {title}, zh: {title}}}
    version: "1.0.0"
    description: Count the words of a text
    intent_tags: [words, count, length]
    input_schema: schemas/{tool}.input.json
    output_schema: schemas/{tool}.output.json
    models: {{primary: "", fallback: ""}}
    context: {{need_user_memory: false, need_content_store: false, retrieve_top_k: 0}}
    cost: {{model_class: small, context_size: small, expected_rounds: 1}}
    composable: true
    dependencies: []
"""


def _script(tool: str) -> str:
    """Return the tool's script."""
    return _SCRIPT.replace("TOOL_ID", tool)


def _handler_files(tool: str, title: str) -> dict[str, str]:
    """Return the files of a skill with a handler, except SKILL.md, as texts by path.

    Args:
        tool: Id of the skill's tool.
        title: The tool's name for people.
    """
    text: dict[str, dict[str, object]] = {
        "text": {"type": "string", "minLength": 1, "description": "Text whose words are counted."}
    }
    answer: dict[str, dict[str, object]] = {
        "words": {"type": "integer", "minimum": 0, "description": "Number of words."},
        "summary": {"type": "string", "description": "One sentence about the text; empty without a model."},
    }
    return {
        "skill.yaml": _HANDLER_DECLARATION.replace("TOOL", tool).replace(
            "TITLE", json.dumps(title, ensure_ascii=False)
        ),
        "handler.py": _HANDLER.replace("TOOL_ID", tool),
        "templates/prompt.jinja": _TEMPLATE,
        "schemas/input.schema.json": _object_schema(text),
        "schemas/output.schema.json": _object_schema(answer),
        "tests/test_skill.py": _TESTS.replace("TOOL_ID", tool),
    }


def _object_schema(properties: Mapping[str, Mapping[str, object]]) -> str:
    """Return the schema of an object with exactly these properties."""
    schema = {
        "$schema": _DIALECT,
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }
    return json.dumps(schema, indent=2) + "\n"


_SCRIPT = '''\
# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Count the words of a text."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the number of words in ``params["text"]``."""
    return {"words": len(params["text"].split())}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "TOOL_ID", execute))
'''

_HANDLER_DECLARATION = """\
id: TOOL
display_name: TITLE
version: "1.0.0"
description: Count the words of a text and summarise it
intent_tags: [words, count, length, summary]
input_schema: schemas/input.schema.json
output_schema: schemas/output.schema.json
models: {primary: "", fallback: ""}
context: {need_user_memory: false, need_content_store: false, retrieve_top_k: 0}
cost: {model_class: small, context_size: small, expected_rounds: 1}
composable: true
dependencies: []
environment: ["SKILL_MODEL_*"]
"""

_HANDLER = '''\
"""Count the words of a text and, where a model is configured, summarise it."""

from typing import Any

from skillscript import Task, ask_model, declared_models, model_settings, prompt_variables, render_file

SUMMARY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary"],
    "properties": {"summary": {"type": "string", "minLength": 1}},
}


class Skill:
    """The skill; the caller checks params and the answer against the schemas in schemas/."""

    def execute(self, params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        """Return the number of words in ``params["text"]`` and a summary, which is empty without a model."""
        words = len(params["text"].split())
        settings = model_settings(declared_models(__file__, "TOOL_ID"))
        if settings is None:
            return {"words": words, "summary": ""}
        prompt = render_file(__file__, "templates/prompt.jinja", prompt_variables(params, context))
        return {"words": words, **ask_model(Task(prompt, SUMMARY), settings).value}
'''

_TEMPLATE = """\
You summarise texts.
{% if memory_summary %}
About the reader: {{ memory_summary }}
{% endif %}
Text: {{ text | tojson }}

Answer with JSON and nothing else: {"summary": "one sentence"}
"""

_TESTS = '''\
"""Tests of the skill: parameters, what a model answers, the answer, use in a pipeline. Run: python -m pytest tests"""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from skillscript import call, find_faults, load_handler, load_tool

HANDLER = Path(__file__).parents[1] / "handler.py"
TOOL = load_tool(HANDLER, "TOOL_ID", load_handler(HANDLER))


@pytest.fixture(autouse=True)
def no_model(monkeypatch):
    monkeypatch.delenv("SKILL_MODEL_URL", raising=False)


@pytest.fixture
def model(monkeypatch):
    """Serve a model on this machine; it answers with the text that the test puts into the list."""
    pytest.importorskip("httpx")
    says = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            message = {"role": "assistant", "content": says[0]}
            body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("SKILL_MODEL_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("SKILL_MODEL_PRIMARY", "test")
    yield says
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("params", [{}, {"text": 3}, {"text": ""}, {"text": "a", "more": 1}])
def test_wrong_parameters_are_refused(params):
    assert call(TOOL, params).error.code == "INVALID_PARAM"


def test_words_are_counted_without_a_model():
    assert call(TOOL, {"text": "three short words"}).data == {"words": 3, "summary": ""}


def test_the_summary_is_the_models(model):
    model.append(json.dumps({"summary": "Short."}))
    assert call(TOOL, {"text": "three short words"}).data == {"words": 3, "summary": "Short."}


@pytest.mark.parametrize("said", ["no JSON", "{}", '{"summary": {"text": "nested"}}', '{"summary": 1}'])
def test_an_answer_that_is_no_summary_is_refused(model, said):
    model.append(said)
    assert call(TOOL, {"text": "a"}).error.code == "SERVICE_UNAVAILABLE"


def test_the_answer_satisfies_its_object_schema():
    assert find_faults(call(TOOL, {"text": "a b"}).data, TOOL.output_schema) == []


def test_it_takes_the_text_of_a_step_before_it():
    """In a pipeline: params: {text: {$from: /steps/before/summary}}."""
    before = call(TOOL, {"text": "a"}).data
    assert find_faults({"text": before["summary"] or "none"}, TOOL.input_schema) == []
'''
