"""The programs of a skill in a copy: their headers, their locks and the modules beside them."""

from __future__ import annotations

import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillpack.copies.closure import closure_of
from skillpack.copies.locks import DEFAULT_PYTHON, LOCK_FILE, read_lock
from skillpack.copies.module_index import modules_of, own_distribution, project_folder
from skillpack.copies.requirements import (
    Requirement,
    distribution,
    everything_required,
    owners_of,
    parse_requirement,
    required_by,
)
from skillpack.copies.script_header import ScriptHeader, read_header, with_header
from skillpack.skills.exceptions import CopyError
from skillpack.skills.roots import bundled_root
from skillscript.tool import HANDLER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillpack.copies.closure import Closure

_IS_PROGRAM = re.compile(rb"^(# /// script\s*$|if __name__ == )", re.MULTILINE)
_RUNS_HANDLERS = "skillscript.handler"
_STARTER = '''\
"""Run the tool {tool} of this skill, whose code is {handler}."""

import sys
from pathlib import Path

from {module} import run_handler

if __name__ == "__main__":
    raise SystemExit(run_handler(str(Path(__file__).resolve().parents[1] / "{handler}"), "{tool}", sys.argv[1:]))
'''
_LOCAL_SOURCES = ("path", "editable", "workspace")


@dataclass
class Programs:
    """What the programs of one skill add to its copy.

    Attributes:
        files: Contents by paths below the skill's folder: programs with new headers, locks, modules and their data.
        distributions: The distributions whose modules were taken.
        notes: What a user may want to know, such as a program without a lock.
        faults: What cannot be made self-contained.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    distributions: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def is_program(source: bytes) -> bool:
    """Return whether a Python file seems to be a program: it has a header, or a part for being run."""
    return _IS_PROGRAM.search(source) is not None


def copied_programs(skill_dir: Path, programs: Iterable[str], handlers: Mapping[str, str]) -> Programs:
    """Return the programs of a skill as they are in a copy; those of one folder share the modules beside them.

    Args:
        skill_dir: The skill's folder.
        programs: Paths of its programs, relative to ``skill_dir``.
        handlers: Programs to write for modules ``handler.py``: ids of tools by the path of the program.
    """
    result = Programs()
    sources = {program: program for program in programs} | dict.fromkeys(handlers, HANDLER)
    for program, file in sorted(sources.items()):
        try:
            source = _text_of(skill_dir / file)
            place = _Place(skill_dir, read_header(source))
            if program in handlers:
                found = closure_of([skill_dir / file], place.modules, [_RUNS_HANDLERS])
                source = _STARTER.format(tool=handlers[program], module=_RUNS_HANDLERS, handler=HANDLER)
            else:
                found = closure_of([skill_dir / file], place.modules)
            _add(result, skill_dir, program, source, place, found)
        except CopyError as error:  # noqa: PERF203 - a few programs
            result.faults.append(f"{file}: {error}")
    return result


def _add(result: Programs, skill_dir: Path, program: str, source: str, place: _Place, found: Closure) -> None:
    """Add one program, the modules beside it, and its lock."""
    faults = [*found.faults, *place.undeclared(found), *place.source_faults()]
    result.faults += [f"{program}: {fault}" for fault in faults]
    needed = [str(requirement) for requirement in place.requirements(found)]
    result.distributions |= place.taken(found)
    folder = program.rpartition("/")[0]
    for name, path in found.files.items():
        result.files[f"{folder}/{name}".lstrip("/")] = path.read_bytes()
    result.files[program] = with_header(source, place.requires_python, needed, place.kept_tables()).encode()
    lock = _cut(skill_dir, needed, place.requires_python)
    if lock is not None:
        result.files[f"{program}.lock"] = lock.encode()
    else:
        listed = ", ".join(needed) or "nothing"
        result.notes.append(f"{program} has no lock: no {LOCK_FILE} covers {listed} for Python {place.requires_python}")


class _Place:
    """What a program may take modules and libraries from."""

    def __init__(self, skill_dir: Path, header: ScriptHeader | None) -> None:
        self._header = header
        self.requires_python = (header and header.requires_python) or DEFAULT_PYTHON
        try:
            self.declared = [parse_requirement(text) for text in (header.dependencies if header else ())]
        except ValueError as error:
            raise CopyError(f"its header: {error}") from error
        own = own_distribution()
        named = [requirement for requirement in self.declared if _ships(requirement.name, skill_dir, own)]
        self.copied = {requirement.name: requirement.extras for requirement in named}
        if own is not None:
            self.copied.setdefault(own, ())
        self.modules: dict[str, Path] = {}
        for name in self.copied:
            self.modules |= modules_of(name)

    def taken(self, found: Closure) -> set[str]:
        """Return the distributions whose modules the program needs."""
        files = set(found.files.values())
        return {name for name in self.copied if not files.isdisjoint(modules_of(name).values())}

    def requirements(self, found: Closure) -> list[Requirement]:
        """Return the distributions that the program needs from elsewhere, sorted."""
        needed = {item.name: item for item in self.declared if item.name not in self.copied}
        for library in found.libraries | set(found.own_libraries):
            requirement = self._providing(library)
            if requirement is not None:
                needed.setdefault(requirement.name, requirement)
        return [requirement for _, requirement in sorted(needed.items())]

    def _providing(self, library: str) -> Requirement | None:
        """Return the requirement of a copied distribution that brings a top-level module."""
        owners = owners_of(library)
        required = {
            name: item for copied, extras in self.copied.items() for name, item in required_by(copied, extras).items()
        }
        for name, requirement in required.items():
            if name in owners and name not in self.copied:
                return requirement
        through = [item for name, item in sorted(required.items()) if everything_required(name) & set(owners)]
        return next((item for item in through if item.name not in self.copied), None)

    def undeclared(self, found: Closure) -> list[str]:
        """Return the libraries that the skill's own code needs and that nothing declares."""
        if any(distribution(item.name) is None for item in self.declared):
            return []  # a distribution that is not installed here may provide any module
        names = {item.name for item in self.declared}
        reachable = names.union(*map(everything_required, names))
        problems = []
        for library, mandatory in sorted(found.own_libraries.items()):
            known = self._providing(library) is not None or not reachable.isdisjoint(owners_of(library))
            if mandatory and not known:
                problems.append(
                    f"imports {library}, which is not in the skill and not in the dependencies of the header "
                    "'# /// script'; add the distribution that provides it there"
                )
        return problems

    def source_faults(self) -> list[str]:
        """Return the places on this machine that the header's ``[tool.uv]`` refers to."""
        sources = self._uv().get("sources", {})
        local = [
            name
            for name, source in sources.items()
            if isinstance(source, dict) and not set(_LOCAL_SOURCES).isdisjoint(source) and name not in self.copied
        ]
        return [f"its header takes {name} from a folder of this machine" for name in local]

    def kept_tables(self) -> str:
        """Return the tables of the header that its copy keeps."""
        uv = self._uv()
        copied = uv.get("sources") and set(uv["sources"]) <= set(self.copied)
        only_sources = self._header is not None and set(self._header.tool) == {"uv"} and set(uv) == {"sources"}
        if self._header is None or (copied and only_sources):
            return ""
        return self._header.tables

    def _uv(self) -> dict[str, dict[str, object]]:
        found = self._header.tool.get("uv", {}) if self._header else {}
        return found if isinstance(found, dict) else {}


def _ships(name: str, skill_dir: Path, own: str | None) -> bool:
    """Return whether a distribution is this package's, or the one that contains the skill."""
    if name == own:
        return True
    found = distribution(name)
    if found is None:
        return False
    home = skill_dir.resolve()
    project = project_folder(name)
    if project is not None:
        return home.is_relative_to(project.resolve())
    skill_file = home / "SKILL.md"
    return any(
        file.name == "SKILL.md" and Path(str(found.locate_file(file))).resolve() == skill_file
        for file in found.files or ()
    )


def _text_of(path: Path) -> str:
    """Return the text of a Python file."""
    try:
        with tokenize.open(path) as stream:
            encoding = stream.encoding
        if encoding not in {"utf-8", "utf-8-sig"}:
            raise CopyError(f"is written in {encoding}; write it in UTF-8")
        return path.read_bytes().decode("utf-8")
    except (SyntaxError, UnicodeDecodeError) as error:
        raise CopyError(f"is not Python in UTF-8: {error}") from error


def _cut(skill_dir: Path, requirements: list[str], python: str) -> str | None:
    """Return the lock of a program, cut from the lock file of its pack, or else of this one."""
    for folder in (skill_dir.parent, Path(bundled_root())):
        try:
            lock = read_lock((folder / LOCK_FILE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError) as error:
            raise CopyError(f"the lock file {folder / LOCK_FILE} is not a lock of uv: {error}") from error
        if (found := lock.cut(requirements, python)) is not None:
            return found
    return None
