"""The files of a new skill whose code is a ``handler.py``: with a prompt template and tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def handler_files(tool: str, title: str) -> dict[str, str]:
    """Return the text of every file but SKILL.md by its path.

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
        "skill.yaml": _DECLARATION.replace("TOOL", tool).replace("TITLE", json.dumps(title, ensure_ascii=False)),
        "handler.py": _HANDLER.replace("TOOL_ID", tool),
        "templates/prompt.jinja": _TEMPLATE,
        "schemas/input.schema.json": _schema(text),
        "schemas/output.schema.json": _schema(answer),
        "tests/test_skill.py": _TESTS.replace("TOOL_ID", tool),
    }


def _schema(properties: Mapping[str, Mapping[str, object]]) -> str:
    """Return the schema of an object that has all of these properties and no other."""
    schema = {
        "$schema": _DIALECT,
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }
    return json.dumps(schema, indent=2) + "\n"


_DECLARATION = """\
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
    pytest.importorskip("jinja2")
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


def test_the_answer_satisfies_its_schema():
    assert find_faults(call(TOOL, {"text": "a b"}).data, TOOL.output_schema) == []


def test_it_takes_the_text_of_a_step_before_it():
    """In a pipeline: params: {text: {$from: /steps/before/summary}}."""
    before = call(TOOL, {"text": "a"}).data
    assert find_faults({"text": before["summary"] or "none"}, TOOL.input_schema) == []
'''
