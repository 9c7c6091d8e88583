"""Find the tool and version that a call means, and check its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillpack.exceptions import MigrationError, VersionError
from skillpack.registry.migrations import SkillVersionManager, parse_version
from skillscript.envelope import ErrorCode, SkillError
from skillscript.faults import invalid_params
from skillscript.schema import as_declared, find_faults
from sturdy.near_names import did_you_mean
from sturdy.strict_json import NotJsonError, plain

if TYPE_CHECKING:
    from skillpack.registry.declaration import ToolDeclaration, Tools


@dataclass(frozen=True)
class Choice:
    """The tool a call means.

    Attributes:
        tool: The tool in the version that answers.
        migrated_from: The older compatible version the caller named, or None.
    """

    tool: ToolDeclaration
    migrated_from: str | None = None


def choose(tools: Tools, name: str) -> Choice:
    """Return the tool that ``name`` means: ``id`` the latest, ``id@version`` that one or a later compatible one.

    Raises:
        SkillError: INVALID_PARAM if there is none.
    """
    tool_id, _, version = name.partition("@")
    versions = tools.versions(tool_id)
    if not versions:
        hint = did_you_mean(tool_id, tools.by_id)
        details = {"param_name": "tool", "provided_value": tool_id, "available": sorted(tools.by_id)}
        raise SkillError(ErrorCode.INVALID_PARAM, f"unknown tool {tool_id!r}{hint}", details)
    if not version:
        return Choice(versions[0])
    try:
        wanted = parse_version(version)
    except VersionError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, str(error), {"param_name": "tool", "provided_value": name}) from error
    for tool in versions:
        if parse_version(tool.version) == wanted:
            return Choice(tool)
    compatible = SkillVersionManager().is_compatible
    for tool in versions:
        if compatible(version, tool.version) and parse_version(tool.version) > wanted:
            return Choice(tool, version)
    available = [tool.version for tool in versions]
    text = (
        f"tool {tool_id} has no version {version} or a later one compatible with it; available: {', '.join(available)}"
    )
    raise SkillError(
        ErrorCode.INVALID_PARAM, text, {"param_name": "tool", "provided_value": name, "available": available}
    )


def checked_params(choice: Choice, params: Any) -> dict[str, Any]:
    """Return the parameters as plain JSON, carried over from the version they were written for, and checked.

    Raises:
        SkillError: INVALID_PARAM with all faults at once.
    """
    tool = choice.tool
    try:
        value = plain(params)
        if choice.migrated_from is not None and isinstance(value, dict):
            known = SkillVersionManager({tool.id: tool.migrations})
            value = plain(known.migrate_params(value, choice.migrated_from, tool.version, tool.id))
    except NotJsonError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, f"params: {error}") from error
    except MigrationError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, str(error)) from error
    value = as_declared(value, dict(tool.input_schema))
    faults = find_faults(value, dict(tool.input_schema))
    if faults:
        raise invalid_params(faults)
    if not isinstance(value, dict):
        raise SkillError(ErrorCode.INVALID_PARAM, "params must be an object")
    return value


MAX_TIMEOUT_S = 1_000_000  # the system's calls that wait take 2^31 ms at most


def checked_timeout(seconds: float) -> float:
    """Return a duration that makes sense. [s]

    Raises:
        SkillError: INVALID_PARAM if it does not.
    """
    if not 0 < seconds <= MAX_TIMEOUT_S:
        text = f"timeout must be a positive number of seconds and at most {MAX_TIMEOUT_S}, got {seconds:g}"
        raise SkillError(ErrorCode.INVALID_PARAM, text)
    return seconds
