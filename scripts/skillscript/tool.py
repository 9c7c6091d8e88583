"""A tool: its id, its schemas, its context and the function that does its work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sturdy.strict_json import NotJsonError, parse_json

from .envelope import ErrorCode, SkillError
from .schema_references import ReferenceFault, bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Handler = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
    Verdict = Callable[[dict[str, Any]], bool]


DECLARATIONS = ("skill.yaml", "skill.json")
HANDLER = "handler.py"  # a module with execute, at the top of a skill's folder
HANDLER_SCHEMAS = ("schemas/input.schema.json", "schemas/output.schema.json")  # unless the declaration says otherwise

# The context that a handler gets beside its parameters, with types and defaults.
CONTEXT_SCHEMA: dict[str, Any] = parse_json(Path(__file__).with_name("context.schema.json").read_bytes())


@dataclass(frozen=True)
class Tool:
    """One callable operation.

    Attributes:
        id: Dotted id, such as ``layout.create_nmos_pcell``.
        execute: ``execute(params, context) -> data``.
        input_schema: JSON Schema 2020-12 of the parameters.
        output_schema: JSON Schema 2020-12 of the answer's ``data``.
        violates: Returns from ``data`` whether the design violates something (exit code 1); ``None`` if it never does.
        skill_dir: The skill's folder; ``None`` for a tool that lives in no skill.
        script: Its script, which distinguishes the versions of a tool that a skill declares.
        shared_files: Paths of the files from which its schemas take definitions.
    """

    id: str
    execute: Handler
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    violates: Verdict | None = None
    skill_dir: Path | None = None
    script: Path | None = None
    shared_files: tuple[str, ...] = ()

    def version(self) -> str | None:
        """Return the version that the skill declares for this tool, ``None`` if it cannot be read."""
        if self.skill_dir is None:
            return None
        declared, entry = _declaration(self.skill_dir, self.id, self.script)
        return _version_text(entry) or _version_text(declared)


def load_tool(script_file: str, tool_id: str, execute: Handler, violates: Verdict | None = None) -> Tool:
    """Return the tool of a script, with the schemas that its skill declares for it.

    Of ``<skill>/scripts/x.py`` they are ``<skill>/schemas/<tool id>.input.json`` and ``.output.json``. skill.yaml is
    read only if these are missing or if it declares several versions of the tool. Of a ``handler.py`` they are where
    skill.yaml states, else at ``HANDLER_SCHEMAS``.

    Raises:
        SkillError: INTERNAL_ERROR if a schema is missing, is not a JSON object or has a reference that cannot be used.
        ModuleNotFoundError: If skill.yaml must be read and this Python cannot read YAML.
    """
    script = Path(script_file).resolve()
    skill_dir = skill_dir_of(script)
    is_handler = script.name == HANDLER
    names = HANDLER_SCHEMAS if is_handler else [f"schemas/{tool_id}.{part}.json" for part in ("input", "output")]
    usual = [(skill_dir if is_handler else script.parent.parent) / name for name in names]
    schemas: list[Any] = list(usual)
    are_there = all(path.is_file() for path in usual)
    if is_handler or not are_there or _has_versions(skill_dir, tool_id):
        _, entry = _declaration(skill_dir, tool_id, script, needed=not are_there)
        declared = [entry.get(f"{part}_schema") for part in ("input", "output")]
        named = [skill_dir / place if isinstance(place, str) else place for place in declared]
        schemas = [path if place is None else place for place, path in zip(named, usual, strict=True)]
    (input_schema, input_files), (output_schema, output_files) = (_read_schema(each, skill_dir) for each in schemas)
    shared = (*input_files, *output_files)
    return Tool(tool_id, execute, input_schema, output_schema, violates, skill_dir, script, shared)


def declared_models(script_file: str, tool_id: str) -> dict[str, str]:
    """Return ``models`` of a tool's entry in skill.yaml: ``primary`` and ``fallback``, "" where none is named."""
    script = Path(script_file).resolve()
    _, entry = _declaration(skill_dir_of(script), tool_id, script)
    models = entry.get("models")
    named = models if isinstance(models, dict) else {}
    return {role: str(named.get(role) or "") for role in ("primary", "fallback")}


def skill_dir_of(script: Path) -> Path:
    """Return the folder of the skill that ``script`` is part of: the nearest one with a declaration."""
    homes = (folder for folder in script.parents[:3] if any((folder / name).is_file() for name in DECLARATIONS))
    return next(homes, script.parent.parent)


def _has_versions(skill_dir: Path, tool_id: str) -> bool:
    """Return whether a skill seems to declare several versions of a tool; judged by its text, as YAML is slow."""
    for name in DECLARATIONS:
        try:
            text = (skill_dir / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        return len(re.findall(rf"""\bid["']?\s*:\s*["']?{re.escape(tool_id)}(?![\w.])""", text)) > 1
    return False


def _read_schema(source: Path | dict[str, Any], skill_dir: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a schema, an object or the content of a file, with the definitions that it takes from these files."""
    folder, name = (source.parent, f" {source.name}") if isinstance(source, Path) else (skill_dir, "")
    try:
        schema = parse_json(source.read_bytes()) if isinstance(source, Path) else source
        if isinstance(schema, dict):
            return bundle(schema, folder, skill_dir.parent)
    except OSError as error:
        message = f"the tool's schema{name} cannot be read: {error.strerror}; reinstall the skill"
        raise SkillError(ErrorCode.INTERNAL_ERROR, message) from error
    except (NotJsonError, ReferenceFault) as error:
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"the tool's schema{name}: {error}") from error
    raise SkillError(ErrorCode.INTERNAL_ERROR, f"the tool's schema{name} is not a JSON object")


def _declaration(
    skill_dir: Path, tool_id: str, script: Path | None = None, *, needed: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a skill declares and its entry for one tool; {} for what cannot be read.

    Of several versions it is the one with this ``script``, else the first.

    Raises:
        ModuleNotFoundError: If the declaration is ``needed`` and this Python cannot read YAML.
    """
    declared = _read_declaration(skill_dir, needed=needed)
    tools = [declared] if "id" in declared else declared.get("tools")
    entries = [entry for entry in tools if isinstance(entry, dict)] if isinstance(tools, list) else []
    entries = [entry for entry in entries if entry.get("id") == tool_id]
    own = [entry for entry in entries if script and (skill_dir / str(entry.get("script", ""))).resolve() == script]
    return declared, next(iter([*own, *entries]), {})


def _read_declaration(skill_dir: Path, *, needed: bool = False) -> dict[str, Any]:
    """Return the content of skill.yaml, or else of skill.json."""
    try:
        import yaml
    except ImportError:
        if needed and any((skill_dir / name).is_file() for name in DECLARATIONS):
            raise
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, but not in every build of PyYAML
    for name in DECLARATIONS:
        try:
            declared = yaml.load((skill_dir / name).read_text(encoding="utf-8"), loader)  # noqa: S506  # JSON is YAML
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        return declared if isinstance(declared, dict) else {}
    return {}


def _version_text(entry: dict[str, Any]) -> str | None:
    version = entry.get("version")
    return None if version is None else str(version)
