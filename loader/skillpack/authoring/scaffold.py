"""Create a new skill that passes ``validate`` and whose tool runs."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from skillpack.authoring.skill_rules import MAX_DESCRIPTION, name_problem
from skillpack.exceptions import ScaffoldError
from skillpack.untrusted.strict_yaml import write
from sturdy.near_names import sentences

TOOL_ID = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")
_EXAMPLE = Path(__file__).with_name("new_skill")
_DESCRIPTION = (
    "Count the words of a text. Use when someone wants to know how many words a text has. Not for characters or lines."
)


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
    tool, body = plan.tool, "body.md"
    if tool is None:
        templates, body = {}, "plain_body.md"
    elif plan.handler:
        body = "handler_body.md"
        templates = {
            "skill.yaml": "handler_skill.yaml",
            "handler.py": "handler.py",
            "templates/prompt.jinja": "prompt.jinja",
            "schemas/input.schema.json": "handler_input.json",
            "schemas/output.schema.json": "handler_output.json",
            "tests/test_skill.py": "of_tests.py",
        }
    else:
        templates = {
            "skill.yaml": "skill.yaml",
            plan.script: "script.py",
            f"schemas/{tool}.input.json": "input.json",
            f"schemas/{tool}.output.json": "output.json",
        }
    fields = {"name": plan.name, "description": plan.description or _DESCRIPTION}
    files = {path: _written(template, plan) for path, template in templates.items()}
    return {"SKILL.md": write(fields, _written(body, plan)), **files}


def _written(name: str, plan: Plan) -> str:
    """Return a file of the example in ``new_skill``, written for this plan."""
    text = (_EXAMPLE / f"{name}.txt").read_text(encoding="utf-8")
    title = plan.name.replace("-", " ").capitalize()
    words = {
        "TITLE": json.dumps(title, ensure_ascii=False),
        "HEADING": title,
        "NAME": json.dumps(plan.name),
        "TOOL_ID": plan.tool or "",
        "SERVED": (plan.tool or "").replace(".", "_"),
        "SCRIPT": plan.script,
    }
    return re.sub(rf"\b(?:{'|'.join(words)})\b", lambda match: words[match[0]], text)
