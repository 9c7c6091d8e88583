"""A tool: its id, its schemas and the function that does its work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .envelope import ErrorCode, SkillError
from .strict_json import NotJsonError, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Handler = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
    Verdict = Callable[[dict[str, Any]], bool]


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
    """

    id: str
    execute: Handler
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    violates: Verdict | None = None
    skill_dir: Path | None = None

    def version(self) -> str | None:
        """Return the version that the skill declares for this tool, ``None`` if it cannot be read."""
        if self.skill_dir is None:
            return None
        declared, entry = _declaration(self.skill_dir, self.id)
        return _version_text(entry) or _version_text(declared)


def load_tool(script_file: str, tool_id: str, execute: Handler, violates: Verdict | None = None) -> Tool:
    """Return the tool of a script at ``<skill>/scripts/x.py`` with the schemas in ``<skill>/schemas``.

    Raises:
        SkillError: INTERNAL_ERROR if a schema is missing or is no JSON object.
    """
    skill_dir = Path(script_file).resolve().parent.parent
    schemas = skill_dir / "schemas"
    return Tool(
        id=tool_id,
        execute=execute,
        input_schema=_read_schema(schemas / f"{tool_id}.input.json"),
        output_schema=_read_schema(schemas / f"{tool_id}.output.json"),
        violates=violates,
        skill_dir=skill_dir,
    )


def declared_models(script_file: str, tool_id: str) -> dict[str, str]:
    """Return ``models`` of a tool's entry in skill.yaml: ``primary`` and ``fallback``, "" where none is named."""
    _, entry = _declaration(Path(script_file).resolve().parent.parent, tool_id)
    models = entry.get("models")
    named = models if isinstance(models, dict) else {}
    return {role: str(named.get(role) or "") for role in ("primary", "fallback")}


def _read_schema(path: Path) -> dict[str, Any]:
    try:
        schema = parse_json(path.read_bytes())
    except OSError as error:
        message = f"the tool's schema {path.name} cannot be read: {error.strerror}; reinstall the skill"
        raise SkillError(ErrorCode.INTERNAL_ERROR, message) from error
    except NotJsonError as error:
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"the tool's schema {path.name}: {error}") from error
    if not isinstance(schema, dict):
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"the tool's schema {path.name} is not a JSON object")
    return schema


def _declaration(skill_dir: Path, tool_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a skill declares and its entry for one tool; {} for what cannot be read."""
    declared = _read_declaration(skill_dir)
    if declared.get("id") == tool_id:
        return declared, declared
    tools = declared.get("tools")
    for entry in tools if isinstance(tools, list) else []:
        if isinstance(entry, dict) and entry.get("id") == tool_id:
            return declared, entry
    return declared, {}


def _read_declaration(skill_dir: Path) -> dict[str, Any]:
    """Return the content of skill.yaml, or else of skill.json."""
    try:
        import yaml
    except ImportError:
        return {}
    for name in ("skill.yaml", "skill.json"):
        try:
            declared = yaml.safe_load((skill_dir / name).read_text(encoding="utf-8"))  # JSON is YAML
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        return declared if isinstance(declared, dict) else {}
    return {}


def _version_text(entry: dict[str, Any]) -> str | None:
    version = entry.get("version")
    return None if version is None else str(version)
