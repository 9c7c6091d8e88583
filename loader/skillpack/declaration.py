"""skill.yaml: which tools a skill has. Read as data; a tool's code is never imported."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpack.errors import FileRefusedError, SkillFileError, YamlError
from skillpack.files import inside, read_bounded
from skillpack.frontmatter import decode
from skillpack.skill import DECLARATION_FILE
from skillscript.faults import did_you_mean
from skillscript.strict_json import NotJsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillpack.skill import Skill

MAX_DECLARATION_BYTES = 1 << 18
MAX_SCHEMA_BYTES = 1 << 20
_TOOL_ID = re.compile(r"[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*")
_KNOWN: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "script": str,
    "display_name": (str, dict),
    "version": str,
    "description": str,
    "intent_tags": list,
    "input_schema": (str, dict),
    "output_schema": (str, dict),
    "models": dict,
    "context": dict,
    "cost": dict,
    "composable": bool,
    "dependencies": list,
}
_REQUIRED = ("id", "script", "input_schema", "output_schema")
_WORDS = {str: "text", dict: "a mapping", list: "a list", bool: "true or false"}


@dataclass(frozen=True)
class ToolDeclaration:
    """One callable operation of a skill.

    Attributes:
        id: Dotted id, such as ``layout.create_nmos_pcell``.
        skill: Name of its skill.
        script: Absolute path of its program.
        input_schema: JSON Schema of its parameters.
        output_schema: JSON Schema of its result's ``data``.
        version: Its version.
        description: What it does, in a sentence.
        entry: Everything its entry in skill.yaml says (display_name, intent_tags, models, cost, ...).
    """

    id: str
    skill: str
    script: str
    input_schema: Mapping[str, Any] = field(repr=False)
    output_schema: Mapping[str, Any] = field(repr=False)
    version: str = "1.0.0"
    description: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ToolFault:
    """Why a declared tool is not offered.

    Attributes:
        skill: Name of the skill.
        tool: Its id, or its place (``tools[2]``) where it has none, or "" for the whole file.
        path: The skill.yaml.
        reason: What is wrong.
    """

    skill: str
    tool: str
    path: str
    reason: str


@dataclass(frozen=True)
class Tools:
    """The tools that can be called, by id, and those that cannot.

    Attributes:
        by_id: Usable tools; of equal ids the first in the catalogue's order.
        faults: Declared tools that are left out, with reasons.
    """

    by_id: Mapping[str, ToolDeclaration]
    faults: tuple[ToolFault, ...] = ()

    def of_skill(self, name: str) -> list[ToolDeclaration]:
        """Return the usable tools of the skill ``name``."""
        return [tool for tool in self.by_id.values() if tool.skill == name]


def find_tools(skills: Iterable[Skill]) -> Tools:
    """Return the tools that ``skills`` declare; a faulty one is told and does not hide the others."""
    found: dict[str, ToolDeclaration] = {}
    faults: list[ToolFault] = []
    for skill in skills:
        tools, skill_faults = read_tools(skill)
        faults += skill_faults
        for tool in tools:
            first = found.setdefault(tool.id, tool)
            if first is not tool:
                path = _declaration_path(skill)
                faults.append(ToolFault(skill.name, tool.id, path, f"skill {first.skill!r} has a tool of the same id"))
    return Tools(found, tuple(faults))


def read_tools(skill: Skill) -> tuple[list[ToolDeclaration], list[ToolFault]]:
    """Return the usable tools of one skill and what is wrong with the rest; a skill may have none."""
    path = _declaration_path(skill)
    try:
        declared = _read_declaration(skill, path)
    except FileNotFoundError:
        return [], []
    except (FileRefusedError, SkillFileError, YamlError) as error:
        return [], [ToolFault(skill.name, "", path, str(error))]
    entries = declared.get("tools")
    if not isinstance(entries, list):
        return [], [ToolFault(skill.name, "", path, "needs a list 'tools'")]
    tools: list[ToolDeclaration] = []
    faults: list[ToolFault] = []
    for index, entry in enumerate(entries):
        try:
            tools.append(_read_tool(skill, entry, declared))
        except SkillFileError as error:  # noqa: PERF203 - one faulty tool must not hide the next
            label = entry.get("id") if isinstance(entry, dict) else None
            label = label if isinstance(label, str) and label else f"tools[{index}]"
            faults.append(ToolFault(skill.name, label, path, str(error)))
    return tools, faults


def _declaration_path(skill: Skill) -> str:
    """Return where the skill's declaration would be."""
    return str(Path(skill.dir) / DECLARATION_FILE)


def _read_declaration(skill: Skill, path: str) -> dict[str, Any]:
    """Return the content of skill.yaml."""
    from skillpack.strict_yaml import load_typed_mapping

    if Path(path).is_symlink() and not inside(skill.dir, path):
        raise SkillFileError("is a link to a file outside its skill")
    declared = load_typed_mapping(decode(read_bounded(path, MAX_DECLARATION_BYTES)))
    if declared.get("skill", skill.name) != skill.name:
        raise SkillFileError(f"says skill {declared['skill']!r}, but SKILL.md says {skill.name!r}")
    return declared


def _read_tool(skill: Skill, entry: Any, declared: Mapping[str, Any]) -> ToolDeclaration:
    """Return one tool; everything wrong with its fields is told at once."""
    if not isinstance(entry, dict):
        raise SkillFileError("is not a mapping")
    problems = [*_field_problems(entry), *_file_problems(skill, entry)]
    if problems:
        raise SkillFileError("; ".join(problems))
    return ToolDeclaration(
        id=entry["id"],
        skill=skill.name,
        script=str(Path(skill.dir) / entry["script"]),
        input_schema=_read_schema(skill, entry["input_schema"]),
        output_schema=_read_schema(skill, entry["output_schema"]),
        version=entry.get("version") or str(declared.get("version", "1.0.0")),
        description=entry.get("description", ""),
        entry=entry,
    )


def _field_problems(entry: Mapping[str, Any]) -> list[str]:
    """Return which fields are missing, unknown or of the wrong type."""
    problems = [f"has no {key}" for key in _REQUIRED if key not in entry]
    for key, value in entry.items():
        kinds = _KNOWN.get(key)
        if kinds is None:
            problems.append(f"has an unknown field {key!r}{did_you_mean(key, _KNOWN)}")
        elif not isinstance(value, kinds):
            allowed = " or ".join(_WORDS[kind] for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
            problems.append(f"{key} must be {allowed}, got {value!r}")
    tool_id = entry.get("id")
    if isinstance(tool_id, str) and not _TOOL_ID.fullmatch(tool_id):
        problems.append(f"id {tool_id!r} is not lower-case words joined by dots")
    return problems


def _file_problems(skill: Skill, entry: Mapping[str, Any]) -> list[str]:
    """Return which of the files an entry names are not files of this skill."""
    problems = []
    for key in ("script", "input_schema", "output_schema"):
        name = entry.get(key)
        if not isinstance(name, str):
            continue
        path = Path(skill.dir) / name
        if "\x00" in name or not inside(skill.dir, os.fspath(path)):
            problems.append(f"{key} {name!r} lies outside the skill")
        elif not path.is_file():
            problems.append(f"{key} {name!r} does not exist")
    return problems


def _read_schema(skill: Skill, source: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema that is written in place, or that lies in a file of the skill."""
    if not isinstance(source, str):
        return source
    try:
        schema = parse_json(read_bounded(str(Path(skill.dir) / source), MAX_SCHEMA_BYTES))
    except (FileNotFoundError, FileRefusedError, NotJsonError) as error:
        raise SkillFileError(f"schema {source!r}: {error}") from error
    if not isinstance(schema, dict):
        raise SkillFileError(f"schema {source!r} is not a JSON object")
    return schema
