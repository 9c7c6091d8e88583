"""The programs of a skill in a copy: their headers, their locks and the modules beside them."""

from __future__ import annotations

import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from skillpack.copies.packages import (
    distribution,
    everything_required,
    files_of,
    needed_by,
    own_distribution,
    owners_of,
    packages_of,
    parse_requirement,
    project_folder,
    required_by,
)
from skillpack.copies.script_header import DEFAULT_PYTHON, LOCK_FILE, ScriptHeader, read_header, read_lock, with_header
from skillpack.exceptions import CopyError
from skillpack.skills.catalog import bundled_root
from skillpack.untrusted.file_access import inside
from skillscript.install import install_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from packaging.requirements import Requirement

    from skillpack.copies.packages import Needed

_IS_PROGRAM = re.compile(rb"^(# /// script\s*$|if __name__ == )", re.MULTILINE)
_RUNS_HANDLERS = "skillscript.handler"
_STARTER = Path(__file__).with_name("starter.py.txt")
_LAST = 99  # a late patch release
_PLACES = frozenset({"path", "workspace", "url", "index-url", "extra-index-url", "find-links"})


class Needs(NamedTuple):
    """The header of a program in a copy; see ``ScriptHeader``."""

    requires_python: str
    dependencies: tuple[str, ...]
    tables: str


@dataclass
class Programs:
    """What the programs of one skill add to its copy.

    Attributes:
        files: Contents by paths below the skill's folder: programs with new headers, locks, modules and their data.
        distributions: The distributions whose modules were taken.
        notes: Notes for the user, such as a program without a lock.
        faults: What cannot be made self-contained.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    distributions: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def is_program(source: bytes) -> bool:
    """Return whether a Python file seems to be a program: it has a header, or a part for being run."""
    return _IS_PROGRAM.search(source) is not None


def copied_programs(skill_dir: Path, programs: Iterable[str], handlers: Mapping[str, tuple[str, str]]) -> Programs:
    """Return the programs of a skill as they are in a copy; those of one folder share the modules beside them.

    Args:
        skill_dir: The skill's folder.
        programs: Paths of its programs, relative to ``skill_dir``.
        handlers: Programs to write for modules ``handler.py``: the tool's id and the module's path, by the path of the
            program.
    """
    result = Programs()
    places = {program: program for program in programs} | {program: path for program, (_, path) in handlers.items()}
    for program, path in sorted(places.items()):
        _add_program(result, skill_dir, program, path, handlers.get(program, ("", ""))[0])
    return result


def _add_program(result: Programs, skill_dir: Path, program: str, path: str, tool: str) -> None:
    """Add one program; that of a tool in a ``handler.py``, which is at ``path``, is written."""
    try:
        source = _text_of(skill_dir / path)
        place = _Place(skill_dir, skill_dir / path, read_header(source))
        found = needed_by(skill_dir, skill_dir / path, place.packages, ["skillscript"] if tool else [])
        _add(result, program, place, found)
        needs = place.needs(found)
        if tool:
            if place.header is not None:
                result.files[path] = with_header(source, *needs).encode()
            source = _STARTER.read_text(encoding="utf-8").format(
                tool=tool, module=_RUNS_HANDLERS, handler=path, up=program.count("/")
            )
        _add_header(result, skill_dir, program, source, needs, has_modules=bool(found.packages))
    except CopyError as error:
        result.faults.append(f"{path}: {error}")


def _add(result: Programs, program: str, place: _Place, found: Needed) -> None:
    """Add the modules beside one program, and what is wrong with it."""
    faults = [*found.faults, *place.undeclared(found), *place.header_faults()]
    result.faults += [f"{program}: {fault}" for fault in faults]
    folder = program.rpartition("/")[0]
    taken = place.taken(found)
    result.distributions |= taken
    for name, content in [item for distributed in taken for item in _about(distributed).items()]:
        result.files[f"{folder}/{name}".lstrip("/")] = content
    for package in found.packages.values():
        for name, path in files_of(package).items():
            result.files[f"{folder}/{name}".lstrip("/")] = path.read_bytes()


def _add_header(
    result: Programs, skill_dir: Path, program: str, source: str, needs: Needs, *, has_modules: bool = True
) -> None:
    """Add one program with its header and its lock.

    A header that stays the same keeps its lock, and its form unless the program has modules of skillscript beside it,
    which reads the form that is written here.
    """
    before = read_header(source)
    is_same = before is not None and (before.requires_python, before.dependencies, before.tables) == needs
    if has_modules or not is_same:
        result.files[program] = with_header(source, *needs).encode()
    before_lock = skill_dir / f"{program}.lock"
    lock = before_lock.read_text("utf-8") if is_same and before_lock.is_file() else _cut(skill_dir, needs)
    if lock is not None:
        result.files[f"{program}.lock"] = lock.encode()
    else:
        listed = ", ".join(needs.dependencies) or "nothing"
        result.notes.append(f"{program} has no lock: no {LOCK_FILE} covers {listed} for Python {needs.requires_python}")


class _Place:
    """What a program may take modules and libraries from."""

    def __init__(self, skill_dir: Path, script: Path, header: ScriptHeader | None) -> None:
        self.header = header
        self._home, self._folder = skill_dir, script.parent
        try:
            self.declared = [parse_requirement(text) for text in (header.dependencies if header else ())]
        except ValueError as error:
            raise CopyError(f"its header: {error}") from error
        own = own_distribution()
        if own is None:
            raise CopyError(f"skillpack is not installed here as pip records it; run: {install_command()}")
        named = [requirement for requirement in self.declared if _ships(requirement.name, skill_dir, own)]
        self.copied = {requirement.name: tuple(sorted(requirement.extras)) for requirement in named}
        for requirement in named:
            version = _version(requirement.name)
            if not requirement.specifier.contains(version, prereleases=True):
                raise CopyError(f"its header needs {requirement}, but {requirement.name} {version} is installed here")
        self.copied.setdefault(own, ())
        self.packages: dict[str, Path] = {}
        for name in self.copied:
            self.packages |= packages_of(name)

    def taken(self, found: Needed) -> set[str]:
        """Return the distributions whose packages the program needs."""
        return {name for name in self.copied if not found.packages.keys().isdisjoint(packages_of(name))}

    def needs(self, found: Needed) -> Needs:
        """Return the header of the copied program: what it needs from elsewhere."""
        kept = [item for item in self.declared if item.name not in self.copied]
        names = {item.name for item in kept}
        more = [item for library in found.libraries | set(found.own_libraries) for item in self._providing(library)]
        python = self._python(found)
        if self.header is not None and len(kept) == len(self.declared) and all(item.name in names for item in more):
            return Needs(python, self.header.dependencies, self._kept_tables())
        texts = {str(item) for item in kept} | {str(item) for item in more if item.name not in names}
        return Needs(python, tuple(sorted(texts)), self._kept_tables())

    def _python(self, found: Needed) -> str:
        """Return the Pythons that the header allows and that the modules beside the program run on."""
        python = (self.header and self.header.requires_python) or DEFAULT_PYTHON
        try:
            allowed = _releases(python)
        except InvalidSpecifier as error:
            raise CopyError(f"its header has requires-python = {python!r}, which is no range of versions") from error
        for name in sorted(self.taken(found)):
            installed = distribution(name)
            stated = installed is not None and "Requires-Python" in installed.metadata  # some raise where it is absent
            own = (installed.metadata["Requires-Python"] if installed and stated else None) or python
            if not allowed <= _releases(own):
                python = own if _releases(own) <= allowed else f"{own},{python}"
                allowed = _releases(python)
        return python

    def _providing(self, library: str) -> list[Requirement]:
        """Return the requirements of the copied distributions that bring a top-level module."""
        owners = owners_of(library)
        required = [item for copied, extras in self.copied.items() for item in required_by(copied, extras)]
        required = [item for item in required if item.name not in self.copied]
        direct = [item.name for item in required if item.name in owners]
        through = sorted(item.name for item in required if not everything_required(item.name).isdisjoint(owners))
        return [item for item in required if item.name == next(iter([*direct, *through]), None)]

    def undeclared(self, found: Needed) -> list[str]:
        """Return the libraries that the skill's own code needs and that nothing declares."""
        if any(distribution(item.name) is None for item in self.declared):
            return []  # a distribution that is not installed here may provide any module
        names = {item.name for item in self.declared}
        reachable = names.union(*map(everything_required, names))
        problems = []
        for library, mandatory in sorted(found.own_libraries.items()):
            known = bool(self._providing(library)) or not reachable.isdisjoint(owners_of(library))
            if mandatory and not known:
                problems.append(
                    f"imports {library}, which is not in the skill and not in the dependencies of the header "
                    "'# /// script'; add the distribution that provides it there"
                )
        return problems

    def header_faults(self) -> list[str]:
        """Return what the header takes from this machine."""
        uv = self.header.tool.get("uv", {}) if self.header else {}
        others = {
            name: source for name, source in self._sources().items() if canonicalize_name(name) not in self.copied
        }
        places = [("url", item.url) for item in self.declared if item.url and item.name not in self.copied]
        places += [*_places({**uv, "sources": others})]
        local = [(key, place) for key, place in places if "://" not in place or place.startswith("file:")]
        return [
            f"its header takes libraries from this machine: {key} = {place!r}"
            for key, place in local
            if not self._is_inside(place)
        ]

    def _is_inside(self, place: str) -> bool:
        """Return whether a place named in the header is a folder or file of the skill."""
        path = self._folder / place
        return not Path(place).is_absolute() and path.exists() and inside(str(self._home), str(path))

    def _kept_tables(self) -> str:
        """Return the tables of the header that its copy keeps: not those that only say where the copied modules are."""
        sources = self._sources()
        if self.header is None or (
            self.header.tool == {"uv": {"sources": sources}}
            and {canonicalize_name(name) for name in sources} <= self.copied.keys()
        ):
            return ""
        return self.header.tables

    def _sources(self) -> dict[str, object]:
        """Return where uv takes libraries from, by their names as written."""
        found: dict[str, object] = self.header.tool.get("uv", {}).get("sources", {}) if self.header else {}
        return found


def _places(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the addresses and folders in the settings of uv, each with its key."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _places(item, key)
    elif key in _PLACES:
        yield key, str(value)


def _releases(specifier: str) -> set[int]:
    """Return the minor releases of Python 3 that a range of versions has.

    Raises:
        InvalidSpecifier: If it is no such range.
    """
    return {minor for minor in range(40) if f"3.{minor}.{_LAST}" in SpecifierSet(specifier)}


def _version(name: str) -> str:
    found = distribution(name)
    return found.version if found else ""


def _about(name: str) -> dict[str, bytes]:
    """Return the files that state a distribution's version, for ``importlib.metadata``, and its licence."""
    found = distribution(name)
    version = _version(name)
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    about = {f"{folder}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n".encode()}
    listed = [file for file in (found.files or ()) if "licenses" in file.parts] if found else []
    licences = {f"{folder}/licenses/{file.name}": Path(str(file.locate())) for file in listed}
    return about | {place: path.read_bytes() for place, path in sorted(licences.items()) if path.is_file()}


def _ships(name: str, skill_dir: Path, own: str) -> bool:
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


def _cut(skill_dir: Path, needs: Needs) -> str | None:
    """Return the lock of a program, cut from the lock file of its pack, or else of this one."""
    for folder in (skill_dir.parent, Path(bundled_root())):
        try:
            text = (folder / LOCK_FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        try:
            found = read_lock(text).cut(needs.dependencies, needs.requires_python)
        except (ValueError, KeyError, TypeError) as error:
            raise CopyError(f"the lock file {folder / LOCK_FILE} is not a lock of uv: {error}") from error
        if found is not None:
            return found
    return None
