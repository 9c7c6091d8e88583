"""Create a new skill that passes ``validate`` and whose tool runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillpack.authoring.skill_rules import MAX_DESCRIPTION, name_problem
from skillpack.exceptions import ScaffoldError
from skillpack.skills.strict_frontmatter import write
from skillscript.faults import sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL_ID = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")
_EXAMPLE = Path(__file__).with_name("new_skill")
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
    files = {"SKILL.md": write({"name": plan.name, "description": plan.description or _DESCRIPTION}, _body(plan))}
    if plan.tool is None:
        return files
    text = {"type": "string", "description": "Text whose words are counted."}
    words = {"type": "integer", "description": "Number of words."}
    if not plan.handler:
        return files | {
            "skill.yaml": _written("skill.yaml", plan),
            plan.script: _written("script.py", plan),
            f"schemas/{plan.tool}.input.json": _object_schema({"text": text}),
            f"schemas/{plan.tool}.output.json": _object_schema({"words": words}),
        }
    summary = {"type": "string", "description": "One sentence about the text; empty without a model."}
    return files | {
        "skill.yaml": _written("handler_skill.yaml", plan),
        "handler.py": _written("handler.py", plan),
        "templates/prompt.jinja": _written("prompt.jinja", plan),
        "schemas/input.schema.json": _object_schema({"text": {"type": "string", "minLength": 1, **text}}),
        "schemas/output.schema.json": _object_schema(
            {"words": {"type": "integer", "minimum": 0, **words}, "summary": summary}
        ),
        "tests/test_skill.py": _written("of_tests.py", plan),
    }


def _written(name: str, plan: Plan) -> str:
    """Return a file of the example in ``new_skill``, written for this plan."""
    text = (_EXAMPLE / f"{name}.txt").read_text(encoding="utf-8")
    words = {
        "TITLE": json.dumps(_title(plan), ensure_ascii=False),
        "NAME": json.dumps(plan.name),
        "TOOL_ID": plan.tool or "",
        "SCRIPT": plan.script,
    }
    return re.sub(r"\b(?:TITLE|NAME|TOOL_ID|SCRIPT)\b", lambda match: words[match[0]], text)


def _title(plan: Plan) -> str:
    """Return the name of the skill for people."""
    return plan.name.replace("-", " ").capitalize()


def _body(plan: Plan) -> str:
    """Return the instructions in SKILL.md."""
    title = f"# {_title(plan)}\n\n"
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
