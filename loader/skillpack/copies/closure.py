"""The modules and data files of distributions that scripts need, found by following their imports."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from skillpack.copies.imports import Import, use_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from skillpack.copies.imports import ModuleUse, OwnFile

# Modules of the standard library of other supported Pythons than the one that runs this.
_OTHER_STANDARD = frozenset(
    (
        "annotationlib",
        "asynchat",
        "asyncore",
        "cgi",
        "cgitb",
        "compression",
        "distutils",
        "imghdr",
        "imp",
        "lib2to3",
        "pipes",
        "smtpd",
        "telnetlib",
        "tomllib",
    )
)


@dataclass
class Closure:
    """What scripts need.

    Attributes:
        files: The files to place beside the scripts, by their paths there.
        libraries: Top-level modules of other distributions that the placed modules import.
        own_libraries: The same for the scripts and the modules beside them, each with whether it is mandatory: the code
            does not handle its absence.
        faults: What cannot be placed beside a script.
    """

    files: dict[str, Path] = field(default_factory=dict)
    libraries: set[str] = field(default_factory=set)
    own_libraries: dict[str, bool] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def closure_of(home: Path, script: Path, modules: Mapping[str, Path], more: Iterable[str] = ()) -> Closure:
    """Return what a program needs of ``modules``.

    Imports are followed wherever they are written, also inside functions, but not those for type checkers. A package
    whose ``__getattr__`` imports names lazily contributes the names that are used, if its ``if TYPE_CHECKING`` block
    declares where they are, else all of its modules.

    Args:
        home: The folder of its skill. A module that is nowhere else is searched in it: the program may add to
            ``sys.path``.
        script: The program; modules beside it have precedence over all others, as when Python runs it.
        modules: Modules that may be placed beside the program: files by dotted names.
        more: Modules that are needed in any case.
    """
    walk = _Walk(home, modules)
    walk.enter_own(script)
    for name in more:
        walk.need(name)
    walk.finish()
    return walk.found


class _Walk:
    """The modules found so far and those that are still to be read."""

    def __init__(self, home: Path, modules: Mapping[str, Path]) -> None:
        self.found = Closure()
        self._home = home
        self._modules = modules
        self._packages = {name for name, path in modules.items() if path.name == "__init__.py"}
        self._needed: set[str] = set()
        self._own: set[Path] = set()
        self._waiting: list[tuple[Path, str, Path | None]] = []  # file, dotted name, folder of the scripts

    def enter_own(self, file: Path, package: str = "", folder: Path | None = None) -> None:
        """Read a file of the skill itself.

        Args:
            file: A script, or a module beside it.
            package: The dotted name of the package that it is part of.
            folder: Where modules beside the script are; by default the file's own folder.
        """
        if file not in self._own:
            self._own.add(file)
            self._waiting.append((file, package, folder or file.parent))

    def need(self, name: str) -> None:
        """Add a module and the packages around it."""
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            module = ".".join(parts[:count])
            if module in self._modules and module not in self._needed:
                self._needed.add(module)
                path = self._modules[module]
                self.found.files[_place_of(module, path)] = path
                package = module if module in self._packages else module.rpartition(".")[0]
                self._waiting.append((path, package, None))

    def finish(self) -> None:
        """Read every file that waits, and what these need."""
        while self._waiting:
            file, package, folder = self._waiting.pop()
            try:
                use = use_of(file)
            except (SyntaxError, ValueError, MemoryError, RecursionError) as error:  # the last two: nested too deeply
                reason = str(error) or "too deeply nested"
                version = f"{sys.version_info[0]}.{sys.version_info[1]}"
                self.found.faults.append(f"{file.name} is not valid Python {version}: {reason}")
                continue
            for wanted in use.imports:
                self._follow(wanted, package, folder)
            if folder is None:
                self._add_data(use, file, package)
            if use.is_dynamic and not use.is_lazy:
                self._follow_texts(use, package, folder)

    def _follow(self, wanted: Import, package: str, folder: Path | None) -> None:
        """Add what one import leads to."""
        module = _absolute(wanted.module, package)
        if module is None:
            return
        top = module.partition(".")[0]
        if folder is not None and _beside(folder, top) is not None:
            self._enter_beside(folder, module, wanted.name)
        elif top in self._modules:
            self.need(module)
            self._need_name(module, wanted.name)
        elif top and top not in sys.stdlib_module_names and top not in _OTHER_STANDARD:
            if folder is not None and top in self._elsewhere:
                self._enter_beside(self._elsewhere[top], module, wanted.name)
            elif folder is None:
                self.found.libraries.add(top)
            else:
                before = self.found.own_libraries.get(top, False)
                self.found.own_libraries[top] = before or not wanted.optional

    @cached_property
    def _elsewhere(self) -> dict[str, Path]:
        """Return the folders of the skill in which there are modules, by the names of these."""
        found: dict[str, Path] = {}
        for path in sorted(self._home.rglob("*.py")):
            is_package = path.name == "__init__.py"
            found.setdefault(path.parent.name if is_package else path.stem, path.parents[is_package])
        return found

    def _need_name(self, module: str, name: str) -> None:
        """Add what ``from module import name`` needs beyond the module itself."""
        if not name or module not in self._packages:
            return
        is_module = f"{module}.{name}" in self._modules
        if is_module:
            self.need(f"{module}.{name}")
        use = use_of(self._modules[module])
        if not use.is_lazy or name.startswith("__"):
            return
        home = _absolute(use.lazy.get(name, ""), module)
        if home:  # also of a module: the package may make it callable
            self._follow(Import(home, name), module, None)
        elif is_module:
            return
        elif name == "*" or not _binds(self._modules[module], name):
            for other in self._modules:
                if other.startswith(f"{module}."):
                    self.need(other)

    def _enter_beside(self, folder: Path, module: str, name: str) -> None:
        """Read the modules beside a script that an import executes."""
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            found = _beside(folder, *parts[:count])
            if found is not None:
                dotted = ".".join(parts[: count if found.name == "__init__.py" else count - 1])
                self.enter_own(found, dotted, folder)
        if name and (found := _beside(folder, *parts, name)) is not None:
            dotted = ".".join([*parts, name] if found.name == "__init__.py" else parts)
            self.enter_own(found, dotted, folder)

    def _follow_texts(self, use: ModuleUse, package: str, folder: Path | None) -> None:
        """Add the modules that strings name; computed names mean all that fit: ``layers.*`` all below ``layers``."""
        for text in use.texts:
            head, star, _ = text.partition("*")
            named = _absolute(text, package)
            if named is not None and named in self._modules and "." in text:
                self.need(named)
            elif folder is not None and named and text.replace(".", "").isidentifier():
                self._enter_beside(folder, named, "")
            prefix = _absolute(head.rstrip("."), package) if head.startswith(".") else head.rstrip(".")
            if star and head.endswith(".") and prefix in self._packages:
                for other in self._modules:
                    if other.startswith(f"{prefix}."):
                        self.need(other)

    def _add_data(self, use: ModuleUse, file: Path, package: str) -> None:
        """Add the files that a module finds by its own ``__file__``."""
        top = file.parents[len(package.split(".")) - 1] if package else file.parent
        for place in use.own_files:
            folder = file.parents[place.levels - 1]
            if folder != top and top not in folder.parents:
                continue  # above the package
            for path in _data_files(folder, place, use):
                self.found.files[path.relative_to(top.parent).as_posix()] = path


def _data_files(folder: Path, place: OwnFile, use: ModuleUse) -> list[Path]:
    """Return the files that a place computed from ``__file__`` may mean."""
    if place.pattern and set(place.pattern) != {"*"}:
        target = folder / place.pattern
        if target.is_dir():
            return _plain_files(target.rglob("*"))
        if found := _matching(folder, place.pattern):
            return found
    found = [path for text in use.texts if _names_file(text) for path in _matching(folder, text)]
    return found or [path for path in _plain_files(folder.iterdir()) if path.suffix != ".py"]


def _names_file(text: str) -> bool:
    """Return whether a string may be a file's name, or a pattern for some."""
    return "." in text.strip(".") and not text.startswith("*.py") and any(map(str.isalnum, text))


def _matching(folder: Path, pattern: str) -> list[Path]:
    if ".." in pattern.split("/"):
        return []
    return _plain_files(folder.glob(pattern) if "*" in pattern else [folder / pattern])


def _plain_files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file() and path.suffix not in {".pyc", ".typed"})


def _place_of(module: str, path: Path) -> str:
    return module.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")


def _absolute(module: str, package: str) -> str | None:
    """Return the absolute name of a module that is imported in ``package``; None if it leads out of it."""
    name = module.lstrip(".")
    levels = len(module) - len(name)
    if not levels:
        return module
    parts = package.split(".") if package else []
    if levels > len(parts):
        return None
    base = parts[: len(parts) - levels + 1]
    return ".".join([*base, name] if name else base)


def _beside(folder: Path, *parts: str) -> Path | None:
    """Return the file of a module below ``folder``, or None."""
    place = folder.joinpath(*parts)
    for candidate in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if candidate.is_file():
            return candidate
    return None


def _binds(path: Path, name: str) -> bool:
    """Return whether a module itself defines or imports a name at its top level."""
    import ast

    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and node.name == name:
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom)) and name in {
            alias.asname or alias.name.partition(".")[0] for alias in node.names
        }:
            return True
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(
            isinstance(part, ast.Name) and part.id == name for target in targets if target for part in ast.walk(target)
        ):
            return True
    return False
