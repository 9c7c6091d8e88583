"""The modules that an installed distribution provides, in a wheel's installation and in an editable checkout."""

from __future__ import annotations

import os
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.utils import canonicalize_name

from skillpack.copies.requirements import distribution
from skillscript.install import editable_folder

_IGNORED = ("__pycache__",)


@cache
def own_distribution() -> str | None:
    """Return the distribution that this package is part of, or None if it is not installed."""
    package = __name__.partition(".")[0]
    here = Path(__file__).resolve().parents[1] / "__init__.py"
    for own in metadata.distributions():
        record = own.read_text("RECORD") or ""
        if f"{package}/__init__.py," in record or ".pth," in record:
            name = canonicalize_name(own.metadata["Name"])
            found = modules_of(name).get(package)
            if found is not None and found.resolve() == here:
                return name
    return None


@cache
def modules_of(name: str) -> dict[str, Path]:
    """Return the Python modules of an installed distribution: files by dotted names, a package as its ``__init__``."""
    own = distribution(name)
    found: dict[str, Path] = {}
    for top in _top_level(own) if own else ():
        if top.is_dir():
            found |= _modules_below(top)
        else:
            found[top.stem] = top
    return found


def project_folder(name: str) -> Path | None:
    """Return the folder of the checkout that an editable distribution is installed from, or None."""
    own = distribution(name)
    folder = editable_folder(own) if own else ""
    return Path(folder) if folder else None


def _top_level(own: metadata.Distribution) -> list[Path]:
    """Return the packages and single modules that a distribution puts on the path of modules."""
    found: dict[str, Path] = {}
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
    return [path for _, path in sorted(found.items())]


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


def _modules_below(package: Path) -> dict[str, Path]:
    found = {}
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name not in _IGNORED and name.isidentifier())
        dotted = ".".join([package.name, *Path(folder).relative_to(package).parts])
        for name in sorted(names):
            stem, suffix = name.rpartition(".")[::2]
            if suffix == "py" and stem.isidentifier():
                found[dotted if stem == "__init__" else f"{dotted}.{stem}"] = Path(folder, name)
    return found
