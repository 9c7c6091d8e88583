"""skill.yaml (or skill.json): which tools a skill has. Read as data; a tool's code is never imported.

The shape is a JSON Schema of its own, ``schemas/skill.schema.json``. A file that is one tool itself, with ``id`` at its
top instead of a list ``tools``, is the form of a registry entry (S4.1); it may declare a tool without a script.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpack.exceptions import FileRefusedError, MigrationError, SkillFileError, VersionError, YamlError
from skillpack.registry.migrations import Migration, check_requirement, parse_version
from skillpack.registry.schema_check import schema_problems
from skillpack.skills.skill_md import DECLARATION_FILE, JSON_DECLARATION_FILE
from skillpack.untrusted.file_access import inside, read_bounded
from skillpack.untrusted.strict_yaml import decode, load_typed_mapping
from skillscript.schema import find_faults
from skillscript.schema_references import ReferenceFault, bundle
from skillscript.tool import HANDLER, HANDLER_SCHEMAS
from sturdy.near_names import sentences
from sturdy.strict_json import NotJsonError, parse_json, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillpack.skills.skill_md import Skill

    _Read = Callable[[Skill], "tuple[list[ToolDeclaration], list[ToolFault]]"]

MAX_DECLARATION_BYTES = 1 << 18
MAX_SCHEMA_BYTES = 1 << 20
_IMPORTS_MAIN = re.compile(rb"^from\s+skillscript\s+import\s+(?:\([^)]*|[^\n(]*)\bmain\b", re.MULTILINE)
_SHAPE = Path(__file__).parents[1] / "schemas" / "skill.schema.json"


@dataclass(frozen=True)
class ToolDeclaration:
    """One callable operation of a skill.

    Attributes:
        id: Dotted id, such as ``layout.create_nmos_pcell``.
        skill: Name of its skill.
        script: Absolute path of its program; "" for a tool that is declared, but cannot be called.
        input_schema: JSON Schema of its parameters.
        output_schema: JSON Schema of its result's ``data``.
        version: Its version.
        description: What it does, in a sentence.
        entry: Its whole entry in skill.yaml (display_name, intent_tags, models, cost, ...).
        worker: Absolute path of the program that answers for it and other tools of its skill in one warm process; ""
            if its own program does.
        is_handler: Whether its script is a module with ``execute`` that ``skillscript.handler`` runs, no program.
        shared_files: Paths of the files from which its schemas take definitions; of a link, its own and its target's.
    """

    id: str
    skill: str
    script: str
    input_schema: Mapping[str, Any] = field(repr=False)
    output_schema: Mapping[str, Any] = field(repr=False)
    version: str = "1.0.0"
    description: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)
    worker: str = ""
    is_handler: bool = False
    shared_files: tuple[str, ...] = ()

    @property
    def composable(self) -> bool:
        """Whether it may be a step of a pipeline; true unless declared otherwise."""
        return bool(self.entry.get("composable", True))

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The tools it needs, each as ``id`` or ``id@requirement``."""
        return tuple(self.entry.get("dependencies", ()))

    @property
    def toolsets(self) -> tuple[str, ...]:
        """The sets by which ``skillpack mcp --toolsets`` chooses it; unless declared, the first word of its id."""
        return tuple(self.entry.get("toolsets", (self.id.partition(".")[0],)))

    @property
    def environment(self) -> tuple[str, ...]:
        """The environment variables it gets beside the basic ones; ``NAME*`` means all that start with NAME."""
        return tuple(self.entry.get("environment", ()))

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """How parameters of older versions become those of this one."""
        return tuple(Migration(item["version"], item["changes"]) for item in self.entry.get("migrations", ()))

    def to_json(self) -> dict[str, Any]:
        """Return the registry entry (S4.1) with all defaults filled in and the schemas themselves."""
        entry = dict(self.entry)
        for place in ("script", "worker"):
            entry.pop(place, None)
        models, context, cost = (entry.get(name, {}) for name in ("models", "context", "cost"))
        return {
            **entry,
            "id": self.id,
            "skill": self.skill,
            "display_name": entry.get("display_name", self.id),
            "version": self.version,
            "description": self.description,
            "intent_tags": list(entry.get("intent_tags", ())),
            "input_schema": dict(self.input_schema),
            "output_schema": dict(self.output_schema),
            "models": {"primary": "", "fallback": "", **models},
            "context": {"need_user_memory": False, "need_content_store": False, "retrieve_top_k": 0, **context},
            "cost": {"model_class": "small", "context_size": "small", "expected_rounds": 1, **cost},
            "composable": self.composable,
            "dependencies": list(self.dependencies),
        }


@dataclass(frozen=True)
class ToolFault:
    """Why a declared tool is not offered, or another fault of a declaration.

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
        by_id: Usable tools, each in its latest version; of equal ids the first skill's in the catalogue's order.
        faults: Declared tools that are left out, with reasons.
        older: Further versions of the tools in ``by_id``, by id.
    """

    by_id: Mapping[str, ToolDeclaration]
    faults: tuple[ToolFault, ...] = ()
    older: Mapping[str, tuple[ToolDeclaration, ...]] = field(default_factory=dict)

    def of_skill(self, name: str) -> list[ToolDeclaration]:
        """Return the usable tools of the skill ``name``."""
        return [tool for tool in self.by_id.values() if tool.skill == name]

    def versions(self, tool_id: str) -> tuple[ToolDeclaration, ...]:
        """Return every usable version of a tool, the latest first; none for an unknown id."""
        tool = self.by_id.get(tool_id)
        return () if tool is None else (tool, *self.older.get(tool_id, ()))


def find_tools(skills: Iterable[Skill], read: _Read | None = None) -> Tools:
    """Return the tools that ``skills`` declare; a faulty one is reported and hides no other.

    Args:
        skills: The skills, those that come first having precedence.
        read: Returns the tools and faults of one skill. Default: ``read_tools``.
    """
    found: dict[str, ToolDeclaration] = {}
    older: dict[str, tuple[ToolDeclaration, ...]] = {}
    faults: list[ToolFault] = []
    for skill in skills:
        tools, skill_faults = (read or read_tools)(skill)
        faults += skill_faults
        grouped: dict[str, list[ToolDeclaration]] = {}
        for tool in sorted(tools, key=lambda tool: parse_version(tool.version), reverse=True):
            grouped.setdefault(tool.id, []).append(tool)
        for tool_id in dict.fromkeys(tool.id for tool in tools):
            versions = grouped[tool_id]
            first = found.setdefault(tool_id, versions[0])
            if first is not versions[0]:
                reason = f"skill {first.skill!r} has a tool of the same id"
                faults.append(ToolFault(skill.name, tool_id, _declaration_path(skill), reason))
            elif len(versions) > 1:
                older[tool_id] = tuple(versions[1:])
    return Tools(found, tuple(faults), older)


def read_tools(skill: Skill) -> tuple[list[ToolDeclaration], list[ToolFault]]:
    """Return the usable tools of one skill and what is wrong with the rest; a skill may have none."""
    path = _declaration_path(skill)
    try:
        declared = _read_declaration(skill, path)
    except FileNotFoundError:
        return [], []
    except (FileRefusedError, SkillFileError, YamlError) as error:
        return [], [ToolFault(skill.name, "", path, str(error))]
    single = "id" in declared and "tools" not in declared
    entries = [{key: value for key, value in declared.items() if key != "skill"}] if single else declared.get("tools")
    faults = [ToolFault(skill.name, "", path, reason) for reason in _file_reasons(skill, path, declared, single)]
    tools: dict[tuple[str, str], ToolDeclaration] = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        try:
            tool = _read_tool(skill, entry, declared, needs_script=not single)
            is_second = (tool.id, tool.version) in tools
            reason = f"is declared twice in version {tool.version}" if is_second else ""
        except SkillFileError as error:
            reason = str(error)
        if reason:
            label = entry.get("id") if isinstance(entry, dict) else None
            label = label if isinstance(label, str) and label else f"tools[{index}]"
            faults.append(ToolFault(skill.name, label, path, reason))
        else:
            tools[tool.id, tool.version] = tool
    return list(tools.values()), faults


def declared_version(skill: Skill) -> str | None:
    """Return the version at the top of a skill's declaration; None if there is none that can be read."""
    try:
        found = _read_declaration(skill, _declaration_path(skill)).get("version")
    except (FileNotFoundError, FileRefusedError, SkillFileError, YamlError):
        return None
    return found if isinstance(found, str) else None


def _file_reasons(skill: Skill, path: str, declared: dict[str, Any], single: bool) -> list[str]:
    """Return what is wrong with a declaration apart from its tools."""
    reasons = []
    if path.endswith(DECLARATION_FILE) and Path(skill.dir, JSON_DECLARATION_FILE).exists():
        reasons.append(f"{JSON_DECLARATION_FILE} beside it is not read; keep one of the two")
    if not single:
        tools = [] if isinstance(declared.get("tools"), list) else declared.get("tools")  # each is reported on its own
        top = {**declared, "tools": tools} if "tools" in declared else declared
        try:
            reasons += _problems(plain(top), _definition("file"))
        except NotJsonError as error:
            reasons.append(f"{error}; quote it if it is meant as text")
    return reasons


def _declaration_path(skill: Skill) -> str:
    """Return where the skill's declaration is, or would be."""
    path = Path(skill.dir) / DECLARATION_FILE
    other = Path(skill.dir) / JSON_DECLARATION_FILE
    return str(other if not os.path.lexists(path) and os.path.lexists(other) else path)


def _read_declaration(skill: Skill, path: str) -> dict[str, Any]:
    """Return the content of skill.yaml or skill.json."""
    if Path(path).is_symlink() and not inside(skill.dir, path):
        raise SkillFileError("is a link to a file outside its skill")

    content = read_bounded(path, MAX_DECLARATION_BYTES)
    try:
        declared = parse_json(content) if path.endswith(".json") else load_typed_mapping(decode(content))
    except NotJsonError as error:
        raise SkillFileError(str(error)) from error
    if not isinstance(declared, dict):
        raise SkillFileError("is not a JSON object")
    if declared.get("skill", skill.name) != skill.name:
        raise SkillFileError(f"says skill {declared['skill']!r}, but the skill is called {skill.name!r}")
    return declared


def _read_tool(skill: Skill, entry: Any, declared: Mapping[str, Any], *, needs_script: bool) -> ToolDeclaration:
    """Return one tool; all faults of its fields are reported at once."""
    if not isinstance(entry, dict):
        raise SkillFileError("is not a mapping")
    try:
        entry = plain(entry)
    except NotJsonError as error:
        raise SkillFileError(f"{error}; quote it if it is meant as text") from error
    entry = {**_handler_defaults(skill, entry), **entry}
    problems = _problems(entry, _definition("tool"))
    if needs_script and "script" not in entry:
        problems.append("has no script")
    problems += [*_meaning_problems(entry), *_file_problems(skill, entry)]
    if problems:
        raise SkillFileError(sentences(problems))
    version = entry.get("version") or declared.get("version", "1.0.0")
    if _problems(version, _definition("version")):
        raise SkillFileError(f'the file\'s version {version!r} is no version; quote it, such as "1.2.0"')
    if "toolsets" in declared:
        entry = {"toolsets": declared["toolsets"], **entry}
        if _problems(entry["toolsets"], _definition("toolsets")):
            raise SkillFileError("the file's toolsets are not a list of lower-case words")
    input_schema, input_files = _read_schema(skill, "input_schema", entry["input_schema"])
    output_schema, output_files = _read_schema(skill, "output_schema", entry["output_schema"])
    return ToolDeclaration(
        id=entry["id"],
        skill=skill.name,
        script=str(Path(skill.dir) / entry["script"]) if "script" in entry else "",
        input_schema=input_schema,
        output_schema=output_schema,
        version=version,
        description=entry.get("description", ""),
        entry=entry,
        worker=str(Path(skill.dir) / entry["worker"]) if "worker" in entry else "",
        is_handler=Path(entry.get("script", "")).name == HANDLER and not _is_program(Path(skill.dir) / entry["script"]),
        shared_files=tuple(sorted({*input_files, *output_files})),
    )


def _handler_defaults(skill: Skill, entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the defaults of an entry in a folder with a ``handler.py``: its script and its schemas."""
    if entry.get("script", HANDLER) != HANDLER or not (Path(skill.dir) / HANDLER).is_file():
        return {}
    found = {"script": HANDLER}
    schemas = zip(("input_schema", "output_schema"), HANDLER_SCHEMAS, strict=True)
    return found | {key: name for key, name in schemas if (Path(skill.dir) / name).is_file()}


def _is_program(script: Path) -> bool:
    """Return whether a ``handler.py`` is a skill script itself, which imports skillscript's ``main``."""
    try:
        return _IMPORTS_MAIN.search(read_bounded(str(script), MAX_DECLARATION_BYTES)) is not None
    except (OSError, FileRefusedError):
        return False


@cache
def _definition(name: str) -> dict[str, Any]:
    """Return one of the definitions in the JSON Schema of skill.yaml as a schema of its own."""
    definitions = parse_json(_SHAPE.read_bytes())["$defs"]
    return {**definitions[name], "$defs": definitions}


def _problems(value: Any, shape: dict[str, Any]) -> list[str]:
    """Return what is wrong with plain ``value`` in words."""
    return [fault.message for fault in find_faults(value, shape)]


def _meaning_problems(entry: Mapping[str, Any]) -> list[str]:
    """Return the faults that the JSON Schema cannot express: in requirements and migrations."""
    found = []
    for dependency in _listed(entry, "dependencies", str):
        try:
            check_requirement(dependency.partition("@")[2])
        except VersionError as error:  # noqa: PERF203 - all faults are reported at once
            found.append(f"dependency {dependency!r}: {error}")
    for migration in _listed(entry, "migrations", dict):
        try:
            Migration(migration["version"], migration["changes"])
        except (MigrationError, VersionError) as error:  # noqa: PERF203
            found.append(str(error))
        except (KeyError, TypeError):  # the JSON Schema reports it
            continue
    return found


def _listed(entry: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    """Return the items of a list that are of ``kind``."""
    value = entry.get(name)
    return [item for item in value if isinstance(item, kind)] if isinstance(value, list) else []


def _file_problems(skill: Skill, entry: Mapping[str, Any]) -> list[str]:
    """Return which of the files an entry names are not files of this skill."""
    problems = []
    for key in ("script", "worker", "input_schema", "output_schema"):
        name = entry.get(key)
        if not isinstance(name, str):
            continue
        path = Path(skill.dir) / name
        if "\x00" in name or not inside(skill.dir, os.fspath(path)):
            problems.append(f"{key} {name!r} lies outside the skill")
        elif not path.is_file():
            problems.append(f"{key} {name!r} does not exist")
    return problems


def _read_schema(skill: Skill, key: str, source: str | Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a self-contained schema, and the files it takes definitions from.

    It is written in place, or lies in a file of the skill.
    """
    label, schema, home = key, source, Path(skill.dir).resolve()
    folder = home
    if isinstance(source, str):
        label, folder = f"schema {source!r}", (home / source).parent
        try:
            schema = parse_json(read_bounded(str(home / source), MAX_SCHEMA_BYTES))
        except (FileNotFoundError, FileRefusedError, NotJsonError) as error:
            raise SkillFileError(f"{label}: {error}") from error
    if not isinstance(schema, dict):
        raise SkillFileError(f"{label} is not a JSON object")
    problems: list[str] = []
    files: tuple[str, ...] = ()
    try:
        schema, files = bundle(schema, folder, home.parent)
    except ReferenceFault as error:
        problems.append(str(error))
    problems += [problem for problem in schema_problems(schema) if not (problems and problem.startswith("$ref"))]
    if problems:
        raise SkillFileError(f"{label} is not a valid JSON Schema: {'; '.join(problems[:3])}")
    return schema, files
