"""Find tools again without reading the declarations and schemas of skills whose files have not changed."""

# Paths stay strings, for speed: each call gets the status of every file of every skill's declaration.
# ruff: noqa: PTH116, PTH118, PTH120, PTH208

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from skillpack.registry.declaration import find_tools, read_tools
from skillscript.file_state import file_state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillpack.registry.declaration import ToolDeclaration, ToolFault, Tools
    from skillpack.skills.skill_md import Skill
    from skillscript.file_state import FileState

SETTLED_SECONDS = 2.0  # a file that changed since then may change again at the same time stamp
_FOLDERS = ("", "scripts", "schemas")
_PATHS = ("script", "worker", "input_schema", "output_schema")
_State = tuple[tuple[str, int, int, int], ...]


class _Known(NamedTuple):
    """What was read of a skill, and the state of the files it was read from."""

    state: _State
    others: tuple[str, ...]
    tools: list[ToolDeclaration]
    faults: list[ToolFault]


class KnownTools:
    """The tools found last time; a skill is read again when one of its files has changed."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def find(self, skills: Iterable[Skill]) -> Tools:
        """Return what ``find_tools`` returns."""
        before, self._known = self._known, {}
        return find_tools(skills, lambda skill: self._read(skill, before.get(f"{skill.dir}\0{skill.name}")))

    def _read(self, skill: Skill, known: _Known | None) -> tuple[list[ToolDeclaration], list[ToolFault]]:
        """Return what ``read_tools`` returns."""
        if known is None or _state(skill, known.others) != known.state:
            tools, faults = read_tools(skill)
            others = _others(skill, tools)
            known = _Known(_state(skill, others), others, tools, faults)
        if not known.faults and _is_settled(known.state):  # what a faulty declaration depends on is not known
            self._known[f"{skill.dir}\0{skill.name}"] = known
        return known.tools, known.faults


def _others(skill: Skill, tools: Iterable[ToolDeclaration]) -> tuple[str, ...]:
    """Return the files of the tools' declarations that are outside of ``_FOLDERS``."""
    found = {file for tool in tools for file in tool.shared_files}
    for tool in tools:
        named = [tool.entry[key] for key in _PATHS if isinstance(tool.entry.get(key), str)]
        found.update(os.path.join(skill.dir, name) for name in named if os.path.dirname(name) not in _FOLDERS)
    return tuple(sorted(found))


def _state(skill: Skill, others: Iterable[str]) -> _State:
    """Return the state of each file in the folders of a skill that declare its tools, and of these others."""
    paths = list(others)
    for name in _FOLDERS:
        with contextlib.suppress(OSError):
            folder = f"{skill.dir}/{name}"
            # Python itself changes the folder of its compiled files
            paths += [f"{folder}/{file}" for file in os.listdir(folder) if file != "__pycache__"]
    return tuple((path, *_change(path)) for path in sorted(paths))


def _change(path: str) -> FileState:
    """Return the state of the file that a path leads to; zeros if none."""
    try:
        return file_state(os.stat(path))
    except OSError:
        return 0, 0, 0


def _is_settled(state: _State) -> bool:
    """Return whether the last change is so old that a further one would have a later time stamp."""
    return max((changed for _, changed, _, _ in state), default=0) < time.time_ns() - SETTLED_SECONDS * 1e9
