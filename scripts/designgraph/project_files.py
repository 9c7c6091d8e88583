"""The YAML files that a project may keep beside its graph: ``types.yaml`` and ``rules.yaml``."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph.graph_errors import GraphFileError

if TYPE_CHECKING:
    import os

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
        content = yaml.safe_load(text)
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
    _check_numbers(path, content)
    return content


def _check_numbers(path: str, content: dict[Any, Any]) -> None:
    waiting: list[Any] = [content]
    for each in waiting:
        if isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, int | float) and not abs(each) <= MAX_NUMBER:
            raise GraphFileError(f"{path} holds a number beyond 64 bits, .inf or .nan; quote a text", {"path": path})
