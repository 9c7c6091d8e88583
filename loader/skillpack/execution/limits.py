"""The limits of a server on calls of its tools: which paths a call may name, and whether it may name programs.

A parameter that is a path has ``"x-path": true`` in its tool's input schema. One with a name like ``report_path``,
``file`` or ``output_dir`` counts as a path too, unless it has ``"x-path": false``. ``"x-programs"``
lists the suffixes of files that the tool runs as programs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillscript.confinement import REASON, VARIABLE, is_inside
from skillscript.envelope import ErrorCode, Fault, SkillError, invalid_params
from skillscript.schema import part_of
from skillscript.schema_references import described
from sturdy.schema_acceptance import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillpack.registry.declaration import ToolDeclaration

_PATH_NAME = re.compile(
    r"(?:^|[_-])(?:paths?|files?|filename|dir|directory|folders?|workspace)$|(?<=[a-z])(?:Path|File|Dir)$"
)
_INSIDE = frozenset({"properties", "items", "additionalProperties", "allOf", "anyOf", "oneOf"})
_MAX_DEPTH = 32


class NamedPath(NamedTuple):
    """A path that a call names.

    Attributes:
        param: The parameter, such as ``technologies[0]``.
        path: The path as it is given.
        programs: Suffixes of files that the tool would run as programs.
    """

    param: str
    path: str
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallLimits:
    """What the callers of a server's tools may do.

    Attributes:
        folder: Folder outside of which a call may name no path, or None for no such limit.
        programs: Whether a call may name a file that its tool runs as a program, such as a foundry's rule deck.
    """

    folder: str | None = None
    programs: bool = True

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that pass the limits to a tool's process."""
        return {} if self.folder is None else {VARIABLE: self.folder}

    def check(self, tool: ToolDeclaration, params: Mapping[str, Any]) -> None:
        """Refuse a call that goes beyond the limits.

        Raises:
            SkillError: UNSUPPORTED_OPERATION if it names a program, INVALID_PARAM if it names paths outside of the
                folder; all of them at once.
        """
        named = list(named_paths(tool, params))
        if not self.programs:
            for item in named:
                if _ends_in(item.path, item.programs):
                    text = (
                        f"{item.param}: {item.path!r} is a program, and this server runs no program that a call names; "
                        "its owner can start it with --allow-decks"
                    )
                    details = {"param_name": item.param, "provided_value": item.path}
                    raise SkillError(ErrorCode.UNSUPPORTED_OPERATION, text, details)
        if self.folder is not None:
            faults = [
                Fault(item.param, f"{item.param}: {item.path!r} {REASON}; name a path inside of it", item.path)
                for item in named
                if item.path.startswith("~") or not is_inside(self.folder, item.path)
            ]
            if faults:
                raise invalid_params(faults)


def named_paths(tool: ToolDeclaration, params: Mapping[str, Any]) -> Iterator[NamedPath]:
    """Yield the paths that a call's parameters name, and those that the environment or a default gives in their stead.

    Args:
        tool: The tool that is called.
        params: Parameters that its input schema accepts.
    """
    schema = dict(tool.input_schema)
    given = dict(params)
    properties = schema.get("properties")
    for name, stated in (properties if isinstance(properties, dict) else {}).items():
        rule = described(stated, schema)
        if name not in given and isinstance(rule, dict):
            instead = os.environ.get(rule.get("x-env", "")) or rule.get("default")
            if instead is not None:
                given[name] = instead
    yield from _paths(schema, given, schema, "", "")


def program_suffixes(tools: Iterable[ToolDeclaration]) -> tuple[str, ...]:
    """Return the suffixes of all files that some tool would run as programs, in lower case."""
    found: set[str] = set()
    waiting: list[Any] = [tool.input_schema for tool in tools]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict) and isinstance(part.get("x-programs"), (list, tuple)):
            found.update(suffix.lower() for suffix in part["x-programs"])
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return tuple(sorted(found))


def _ends_in(path: str, suffixes: tuple[str, ...]) -> bool:
    """Return whether a file's name ends so, however the path is written (``deck.drc/.``) and wherever it leads."""
    try:
        written = {path, str(Path(path)), os.path.normpath(path), os.path.realpath(path)}
    except (OSError, ValueError):  # a loop of links, a NUL character: nothing that can be run
        written = {path}
    return any(name.lower().endswith(tuple(suffix.lower() for suffix in suffixes)) for name in written)


def is_path(rule: Mapping[str, Any], name: str) -> bool:
    """Return whether a text is a path, according to its schema or else the name of its parameter."""
    return bool(rule["x-path"]) if "x-path" in rule else _PATH_NAME.search(name) is not None


def _paths(rule: Any, value: Any, root: dict[str, Any], name: str, where: str, depth: int = 0) -> Iterator[NamedPath]:
    """Yield the paths in one value, according to one of its schemas."""
    target = resolve(rule, root)
    if depth > _MAX_DEPTH or not isinstance(rule, dict):
        return
    if target is not None and not _INSIDE.isdisjoint(rule):  # both say what is inside
        yield from _paths(target, value, root, name, where, depth + 1)
    rule = described(rule, root)
    for branch in (part for key in ("allOf", "anyOf", "oneOf") for part in rule.get(key, ())):
        yield from _paths(branch, value, root, name, where, depth + 1)
    if isinstance(value, str) and value and is_path(rule, name):
        yield NamedPath(where, value, tuple(rule.get("x-programs", ())))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(_inside(rule, key), item, root, key, f"{where}.{key}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            inner = _inside(rule, index)
            for word in ("x-path", "x-programs"):
                if word in rule:
                    inner.setdefault(word, rule[word])
            yield from _paths(inner, item, root, name, f"{where}[{index}]", depth + 1)


def _inside(rule: dict[str, Any], step: str | int) -> dict[str, Any]:
    """Return a copy of the schema one step inside; {} where anything is allowed, whose names still tell paths."""
    part = part_of(rule, step)
    return {**part} if isinstance(part, dict) else {}
