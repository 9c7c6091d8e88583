"""Installed distributions: what each requires, which one a module belongs to, and the packages a program needs."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from skillpack.skills.skill_md import SKILL_FILE
from skillscript.install import editable_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_EXTRA = re.compile(r'(?:(.*) and )?extra == "([^"]*)"(?: and (.*))?')


def parse_requirement(text: str) -> Requirement:
    """Return a PEP 508 requirement; its name is in the normal form, in which ``PyYAML`` is ``pyyaml``.

    Raises:
        ValueError: If it is none.
    """
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{text!r} is not a requirement such as 'numpy>=1.26': {reason}") from error
    found.name = canonicalize_name(found.name)
    return found


def _without_extra(requirement: Requirement) -> str:
    """Return the extra of a distribution that has a requirement, "" for none, and take it out of the marker."""
    text = str(requirement.marker or "")
    found = _EXTRA.fullmatch(text)
    if found is None:
        return text if "extra ==" in text else ""  # several extras, in a form that is not understood: never wanted
    rest = " and ".join(filter(None, (found[1], found[3])))
    requirement.marker = Marker(rest) if rest else None
    return found[2]


@cache
def distribution(name: str) -> metadata.Distribution | None:
    """Return an installed distribution, or None."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def required_by(name: str, extras: tuple[str, ...] = ()) -> tuple[Requirement, ...]:
    """Return what a distribution requires with these extras; one name may occur several times, for other Pythons."""
    own = distribution(name)
    listed: list[tuple[str, Requirement]] = []
    for text in (own.requires or []) if own else []:
        with suppress(ValueError):  # an old distribution that does not follow PEP 508
            requirement = parse_requirement(text)
            listed.append((_without_extra(requirement), requirement))
    found: list[Requirement] = []
    active = ["", *sorted(extras)]
    for extra in active:  # it grows
        for requirement in [item for wanted, item in listed if wanted == extra]:
            if requirement.name == canonicalize_name(name):
                active += sorted(requirement.extras.difference(active))
            else:
                found.append(requirement)
    return tuple(found)


def everything_required(name: str) -> set[str]:
    """Return the names of all distributions that an installed one requires, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = {needed.name for needed in required_by(waiting.pop())} - found
        found |= new
        waiting += new
    return found


@cache
def providers() -> dict[str, tuple[str, ...]]:
    """Return the installed distributions by the top-level modules that they provide."""
    return {
        module: tuple(sorted({canonicalize_name(name) for name in names}))
        for module, names in metadata.packages_distributions().items()
    }


def owners_of(module: str) -> tuple[str, ...]:
    """Return the installed distributions that provide a top-level module; if there is none, its name as a guess."""
    return providers().get(module) or (canonicalize_name(module),)


# Modules of the standard library of other supported Pythons than the one that runs this.
_OTHER_STANDARD = frozenset(
    {"annotationlib", "asynchat", "asyncore", "cgi", "cgitb", "compression", "distutils", "imghdr", "imp", "lib2to3"}
    | {"pipes", "smtpd", "telnetlib", "tomllib"}
)
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_DYNAMIC = re.compile(rb"\b(import_module|__import__|run_module|find_spec|executable)\b")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CODE = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)


@dataclass
class Needed:
    """What a program needs.

    Attributes:
        packages: The packages to place beside it, by their names.
        libraries: Top-level modules of other distributions that these packages import.
        own_libraries: The same for the program and the skill's own modules, each with whether it is mandatory: the code
            does not handle its absence.
        faults: What cannot be read.
    """

    packages: dict[str, Path] = field(default_factory=dict)
    libraries: set[str] = field(default_factory=set)
    own_libraries: dict[str, bool] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class _Import(NamedTuple):
    """A module that is imported.

    Attributes:
        top: Its top-level package; "" for a relative import.
        names: The names below it.
        optional: Whether the code handles its absence.
        by_text: Whether only a string names it.
    """

    top: str
    names: tuple[str, ...]
    optional: bool
    by_text: bool = False


def needed_by(home: Path, script: Path, packages: Mapping[str, Path], more: Iterable[str] = ()) -> Needed:
    """Return what a program needs of ``packages``: those that it, the skill's own modules or needed packages import.

    Args:
        home: The folder of its skill; an own module is any file in it that is imported by its name.
        script: The program; modules beside it have precedence over all others, as when Python runs it.
        packages: Packages and single modules that may be placed beside the program, by name.
        more: Packages that are needed in any case.
    """
    found = Needed()
    own: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(home.rglob("*.py")):
        own[path.parent.name if path.name == "__init__.py" else path.stem].append(path)
    wanted, waiting, read = {*more}, [script], set()
    while waiting:
        file = waiting.pop()
        if file in read:
            continue
        read.add(file)
        try:
            imports = _imports_in(file.read_bytes())
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:  # the last two: nested too deeply
            version, reason = f"{sys.version_info[0]}.{sys.version_info[1]}", str(error) or "too deeply nested"
            found.faults.append(f"{file.name} is not valid Python {version}: {reason}")
            continue
        for top, names, optional, by_text in imports:
            is_beside = any((script.parent / place).exists() for place in (top, f"{top}.py")) if top else True
            if not is_beside and top in packages:
                wanted.add(top)
            elif top in own or is_beside:
                waiting += [path for name in (top, *names) for path in own.get(name, ())]
            elif not _is_standard(top) and not by_text:
                found.own_libraries[top] = found.own_libraries.get(top, False) or not optional
    while wanted:
        name = wanted.pop()
        if name in packages and name not in found.packages:
            found.packages[name] = packages[name]
            imported = _imported_by(packages[name])
            wanted |= imported & packages.keys()
            found.libraries |= {top for top in imported - packages.keys() if not _is_standard(top)}
    return found


def _is_standard(module: str) -> bool:
    """Return whether a top-level module belongs to the standard library of a supported Python."""
    return module in sys.stdlib_module_names or module in _OTHER_STANDARD


@cache
def _imported_by(package: Path) -> frozenset[str]:
    """Return the top-level modules that a package imports anywhere."""
    files = (path for path in files_of(package).values() if path.suffix == ".py")
    imports = (each for file in files for each in _imports_in(file.read_bytes()))
    return frozenset(each.top for each in imports if each.top and not each.by_text)


def files_of(package: Path) -> dict[str, Path]:
    """Return the files of a package or of a single module, by their paths beside a program.

    Caches, hidden files and folders of skills are left out.
    """
    if package.is_file():
        return {package.name: package}
    found = {}
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if not _is_left_out(Path(folder, name)))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith((".pyc", ".typed")):
                path = Path(folder, name)
                found[path.relative_to(package.parent).as_posix()] = path
    return found


def _is_left_out(folder: Path) -> bool:
    has_skills = (folder / SKILL_FILE).is_file() or next(folder.glob(f"*/{SKILL_FILE}"), None) is not None
    return folder.name == "__pycache__" or folder.name.startswith(".") or has_skills


def _imports_in(source: bytes) -> list[_Import]:
    """Return what a module imports, also inside functions, but not for type checkers.

    In one that imports dynamically, or starts Python, strings count too.

    Raises:
        SyntaxError: If it is not Python of this version.
    """
    found: list[_Import] = []
    by_text = _DYNAMIC.search(source) is not None
    searched = ast.AST if by_text else (ast.stmt, ast.ExceptHandler, ast.match_case)  # no expression holds an import
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while waiting:
        node, optional = waiting.pop()
        found += _imported(node, optional=optional)
        if by_text and isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = [node.value] if _MODULE.fullmatch(node.value) else _CODE.findall(node.value)
            found += [_Import(parts[0], (*parts[1:],), True, True) for parts in (name.split(".") for name in named)]
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += [(child, optional) for child in node.orelse]
            continue
        guarded = isinstance(node, ast.Try) and any(map(_handles_absence, node.handlers))
        body = {id(child) for child in node.body} if isinstance(node, ast.Try) and guarded else set()
        children = (child for child in ast.iter_child_nodes(node) if isinstance(child, searched))
        waiting += [(child, optional or id(child) in body) for child in children]
    return found


def _imported(node: ast.AST, *, optional: bool) -> Iterator[_Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top, *rest = alias.name.split(".")
            yield _Import(top, tuple(rest), optional)
    elif isinstance(node, ast.ImportFrom):
        parts = [*filter(None, (node.module or "").split(".")), *(alias.name for alias in node.names)]
        yield _Import("", tuple(parts), optional) if node.level else _Import(parts[0], tuple(parts[1:]), optional)


def _handles_absence(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {kind.id for kind in kinds if isinstance(kind, ast.Name)}
    return handler.type is None or not names.isdisjoint(_IMPORT_ERRORS)


@cache
def own_distribution() -> str | None:
    """Return the distribution that this package is part of, or None if it is not installed."""
    package = __name__.partition(".")[0]
    here = Path(__file__).resolve().parents[1]
    for own in metadata.distributions():
        record = own.read_text("RECORD") or ""
        if f"{package}/__init__.py," in record or ".pth," in record:
            name = canonicalize_name(own.metadata["Name"])
            found = packages_of(name).get(package)
            if found is not None and found.resolve() == here:
                return name
    return None


@cache
def packages_of(name: str) -> dict[str, Path]:
    """Return the packages, as folders, and the single modules, as files, of an installed distribution, by name."""
    own = distribution(name)
    found: dict[str, Path] = {}
    if own is None:
        return found
    for file in own.files or ():
        place = Path(str(own.locate_file(file)))
        top = file.parts[0]
        if file.suffix == ".pth" and len(file.parts) == 1:
            for folder in _folders_named(place):
                found |= {entry.stem: entry for entry in sorted(folder.iterdir()) if _is_module(entry)}
        elif file.suffix == ".py" and not top.endswith(".dist-info") and top != "..":
            entry = Path(str(own.locate_file(top)))
            if Path(top).stem not in found or _is_module(entry):  # a folder without __init__.py hides no package
                found[Path(top).stem] = entry
    for top in (own.read_text("top_level.txt") or "").split():
        if top not in found and (spec := find_spec(top)) is not None and spec.origin not in {None, "built-in"}:
            origin = Path(str(spec.origin))
            found[top] = origin.parent if origin.name == "__init__.py" else origin
    return found


def project_folder(name: str) -> Path | None:
    """Return the folder of the checkout that an editable distribution is installed from, or None."""
    own = distribution(name)
    folder = editable_folder(own) if own else ""
    return Path(folder) if folder else None


def _folders_named(path_file: Path) -> list[Path]:
    """Return the folders that a ``.pth`` file adds to the path of modules."""
    try:
        lines = path_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    named = [Path(line.strip()) for line in lines if line.strip() and not line.startswith(("#", "import"))]
    return [folder for folder in named if folder.is_dir()]


def _is_module(entry: Path) -> bool:
    return (entry / "__init__.py").is_file() or (entry.suffix == ".py" and entry.stem.isidentifier())
