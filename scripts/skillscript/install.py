"""The one command that installs what this Python lacks."""

from __future__ import annotations

import sys

from .envelope import ErrorCode, SkillError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import Distribution

DISTRIBUTION = "analog-layout-skills"
# What the package itself requires, by the name of the import.
_REQUIRED = frozenset({"click", "jsonschema", "klayout", "numpy", "referencing", "yaml"})


def install_command(extra: str = "") -> str:
    """Return the one command that installs the package, with an extra, and all its requirements into this Python.

    A clone that is installed as editable stays so: the command names its folder.
    """
    from importlib.metadata import PackageNotFoundError, distribution
    from importlib.util import find_spec
    from shlex import join
    from shutil import which

    try:
        folder = _editable_folder(distribution(DISTRIBUTION))
    except PackageNotFoundError:
        folder = ""
    suffix = f"[{extra}]" if extra else ""
    package = ["-e", folder + suffix] if folder else [DISTRIBUTION + suffix]
    if find_spec("pip") is None and which("uv"):  # uv makes environments without pip
        return join(["uv", "pip", "install", "--python", sys.executable, *package])
    return join([sys.executable, "-m", "pip", "install", *package])


def _editable_folder(installed: Distribution) -> str:
    """Return the folder of a clone that is installed as editable, else "". It is recorded as PEP 610 describes."""
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    record = json.loads(installed.read_text("direct_url.json") or "{}")
    editable = record.get("dir_info", {}).get("editable", False)
    return url2pathname(urlsplit(record["url"]).path) if editable else ""


def missing_library(library: str, purpose: str) -> SkillError:
    """Return the error for a library of an extra that is not installed."""
    return _missing(library, f"{purpose} need the Python library {library}", "models")


def missing_requirement(problem: BaseException) -> SkillError | None:
    """Return the error for a failed import of a library that the package requires."""
    library = (problem.name or "").partition(".")[0] if isinstance(problem, ModuleNotFoundError) else ""
    if library not in _REQUIRED:
        return None
    return _missing(library, f"this Python lacks the library {library}, which the package requires")


def _missing(library: str, what: str, extra: str = "") -> SkillError:
    command = install_command(extra)
    details = {"missing": library, "command": command}
    return SkillError(ErrorCode.SERVICE_UNAVAILABLE, f"{what}; run: {command}", details)
