"""The types of nodes and relations that a graph may use: built-in ones and those in the project's ``types.yaml``."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph.graph import GraphError, GraphFileError, is_id
from sturdy.near_names import near_names, sentences
from sturdy.strict_json import RepeatedKeyError, refusing_repeated_keys

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

MAX_BYTES = 1 << 18
MAX_NUMBER = 2**63
_cache: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {}


def read_yaml(path: str) -> dict[str, Any]:
    """Return the mapping in the YAML file ``path``, which is empty if the file is empty or does not exist.

    A file that has not changed is not read again.

    Raises:
        GraphFileError: If the file cannot be read, is larger than 256 KiB, or is not a YAML mapping.
    """
    try:
        status = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise GraphFileError(f"{path} cannot be read: {error.strerror}", {"path": path}) from error
    key = (status.st_ino, status.st_size, status.st_mtime_ns)
    if path not in _cache or _cache[path][0] != key:
        _cache[path] = (key, _read(path, status))
    return _cache[path][1]


def _read(path: str, status: os.stat_result) -> dict[str, Any]:
    import yaml

    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise GraphFileError(f"{path} is not a regular file of at most {MAX_BYTES} bytes", {"path": path})
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise GraphFileError(f"{path} uses a YAML alias (*name); write out the value", {"path": path})
        content = yaml.load(text, Loader=refusing_repeated_keys(yaml.SafeLoader))  # noqa: S506 - a safe loader
    except RepeatedKeyError as error:
        raise GraphFileError(f"{path}: {error}", {"path": path}) from None
    except (OSError, UnicodeDecodeError) as error:
        raise GraphFileError(f"{path} cannot be read: {error}", {"path": path}) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: 2026-99-99, or an integer too long
        mark = getattr(error, "problem_mark", None)  # the error itself quotes the file
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise GraphFileError(f"{path} is not valid YAML{place}", {"path": path}) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise GraphFileError(f"{path} must be a mapping", {"path": path})
    waiting: list[Any] = [content]
    for each in waiting:
        if isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, int | float) and not abs(each) <= MAX_NUMBER:
            raise GraphFileError(f"{path} holds a number beyond 64 bits, .inf or .nan; quote a text", {"path": path})
    return content


FILE = "types.yaml"
_LISTS = ("node_types", "relation_types")
_SWITCHES = ("open", "only")
_FIELDS = {"description": str, "color": str, "acyclic": bool}


@dataclass(frozen=True)
class TypeRule:
    """The types that one graph may use.

    Attributes:
        node_types: Description and color of each node type.
        relation_types: The same for relation types; with ``acyclic``, relations of the type must not form a cycle.
        is_open: Whether any well-formed name is a type.
        path: The project's own file, which need not exist.
    """

    node_types: Mapping[str, Mapping[str, Any]]
    relation_types: Mapping[str, Mapping[str, Any]]
    is_open: bool
    path: str

    def check_node(self, name: Any) -> str:
        """Return ``name``, or the node type that differs from it only in case.

        Raises:
            GraphError: INVALID_TYPE if there is none.
        """
        return self._check(name, self.node_types, "node_types")

    def check_relation(self, name: Any) -> str:
        """Return ``name``, or the relation type that differs from it only in case.

        Raises:
            GraphError: INVALID_TYPE if there is none.
        """
        return self._check(name, self.relation_types, "relation_types")

    def _check(self, name: Any, known: Mapping[str, Any], which: str) -> str:
        if isinstance(name, str) and (name in known or (self.is_open and is_id(name))):
            return name
        meant = [each for each in known if isinstance(name, str) and each.casefold() == name.casefold()]
        if len(meant) == 1:
            return meant[0]
        kind = which.removesuffix("_types")
        close = near_names(str(name), known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        cure = f"add it under {which} in {self.path}" if not self.is_open else "use letters, digits, '_' and '-'"
        raise GraphError(
            f"{name!r} is not a {kind} type of this graph{hint} (known: {', '.join(known)}); to use another, {cure}",
            {"param_name": "type", "provided_value": name, "allowed": list(known), "types_file": self.path},
            "INVALID_TYPE",
        )


def type_rule(folder: str, graph_id: str) -> TypeRule:
    """Return the rule of a graph whose file is in ``folder``.

    Raises:
        GraphFileError: If the project's ``types.yaml`` cannot be used; all its faults are reported.
    """
    path = f"{folder}/{FILE}"
    written = read_yaml(path)
    known = known_types()
    if not written:
        return TypeRule(known["node_types"], known["relation_types"], is_open=False, path=path)
    faults: list[str] = []
    _check_part(written, "", faults, (*_LISTS, *_SWITCHES, "graphs"))
    graphs = written.get("graphs") or {}
    if not isinstance(graphs, dict):
        faults.append("graphs must be a mapping of graph ids")
        graphs = {}
    for name, part in graphs.items():
        _check_part(part, f"graphs.{name}.", faults, (*_LISTS, *_SWITCHES))
    if faults:
        raise GraphFileError(f"{path} cannot be used: {sentences(faults)}", {"path": path, "faults": faults})
    parts = [written, *([graphs[graph_id]] if graph_id in graphs else [])]
    only = any(part.get("only") for part in parts)
    merged = {
        which: {**({} if only else known[which]), **{k: v for part in parts for k, v in _entries(part, which).items()}}
        for which in _LISTS
    }
    is_open = any(part.get("open") for part in parts)
    return TypeRule(merged["node_types"], merged["relation_types"], is_open, path)


@cache
def known_types() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the types that every graph may use unless its project sets ``only``."""
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(Path(__file__).with_name("types.json").read_bytes())
    return found


def _entries(part: Mapping[str, Any], which: str) -> dict[str, dict[str, Any]]:
    listed = part.get(which) or {}
    return {name: {} for name in listed} if isinstance(listed, list) else {k: v or {} for k, v in listed.items()}


def _check_part(part: Any, path: str, faults: list[str], known: tuple[str, ...]) -> None:
    if not isinstance(part, dict):
        faults.append(f"{path.rstrip('.')} must be a mapping")
        return
    faults += [f"{path}{name} is unknown; known are {', '.join(known)}" for name in part if name not in known]
    faults += [
        f"{path}{name} must be true or false" for name in _SWITCHES if not isinstance(part.get(name, False), bool)
    ]
    for which in _LISTS:
        listed = part.get(which) or {}
        if not isinstance(listed, (list, dict)):
            faults.append(f"{path}{which} must be a list of names, or a mapping of names")
            continue
        for name in listed:
            if not isinstance(name, str) or not is_id(name):
                faults.append(f"{path}{which}: {name!r} is not a name of letters, digits, '_' and '-'")
            elif isinstance(listed, dict):
                faults += _field_faults(listed[name], f"{path}{which}.{name}")


def _field_faults(fields: Any, path: str) -> list[str]:
    if fields is None:
        return []
    if not isinstance(fields, dict):
        return [f"{path} must be a mapping of {', '.join(_FIELDS)}"]
    return [
        f"{path}.{name} is unknown; known are {', '.join(_FIELDS)}"
        if name not in _FIELDS
        else f"{path}.{name} must be a {_FIELDS[name].__name__}"
        for name, value in fields.items()
        if name not in _FIELDS or not isinstance(value, _FIELDS[name])
    ]
