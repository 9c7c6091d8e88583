"""The one command that installs what this Python lacks."""

from __future__ import annotations

import os
import sys

from .envelope import ErrorCode, SkillError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import Distribution

DISTRIBUTION = "analog-layout-skills"
# What the package itself requires, by the name of the import.
_REQUIRED = frozenset({"click", "jinja2", "jsonschema", "klayout", "networkx", "numpy", "referencing", "yaml"})


def install_command(extra: str = "") -> str:
    """Return the one command that installs the package, with an extra, and all its requirements into this Python.

    A clone that is installed as editable stays so: the command names its folder.
    """
    from importlib.metadata import PackageNotFoundError, distribution
    from importlib.util import find_spec
    from shlex import join
    from shutil import which

    try:
        folder = editable_folder(distribution(DISTRIBUTION))
    except PackageNotFoundError:
        folder = ""
    suffix = f"[{extra}]" if extra else ""
    package = ["-e", folder + suffix] if folder else [DISTRIBUTION + suffix]
    if find_spec("pip") is None and which("uv"):  # uv makes environments without pip
        return join(["uv", "pip", "install", "--python", sys.executable, *package])
    return join([sys.executable, "-m", "pip", "install", *package])


def copied_requirements() -> list[str]:
    """Return the libraries that the running script of a copied skill requires; none if it is not in such a copy.

    In a copied skill this package lies beside the script. The script's header (PEP 723) lists the libraries to install.
    """
    import json
    from itertools import dropwhile, islice, takewhile
    from pathlib import Path

    script = _running_script()
    if not script or Path(script).resolve().parent != Path(__file__).resolve().parents[1]:
        return []
    text = Path(script).read_text(encoding="utf-8", errors="replace")
    header = dropwhile(lambda line: line != "# /// script", text.splitlines())
    listed = islice(dropwhile(lambda line: line != "# dependencies = [", header), 1, None)
    return [str(json.loads(line[1:].strip(" ,"))) for line in takewhile(lambda line: line.startswith('#   "'), listed)]


def _running_script() -> str:
    """Return the path of the program that runs, as it was given, or "" if there is none."""
    script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    given = sys.argv[0] if sys.argv else ""
    return given if os.path.realpath(given) == os.path.realpath(script) else script


def copy_command(requirements: list[str]) -> str:
    """Return the one command that makes a script of a copied skill run.

    It repeats the call with uv, which installs what the script requires, or installs that into this Python. A Python
    without pip, or one that the system manages and that refuses installations (PEP 668), gets an environment.
    """
    from importlib.util import find_spec
    from pathlib import Path
    from shlex import join, quote
    from shutil import which
    from sysconfig import get_path

    is_worker = "--serve" in sys.argv  # started by a program, which cannot start it in another way
    if which("uv") and not is_worker:
        return join(["uv", "run", _running_script(), *sys.argv[1:]])
    is_managed = sys.prefix == sys.base_prefix and Path(get_path("stdlib"), "EXTERNALLY-MANAGED").is_file()
    if (is_managed or find_spec("pip") is None) and not is_worker:
        own = f"~/.{DISTRIBUTION}/bin/python"
        make = f"{quote(sys.executable)} -m venv ~/.{DISTRIBUTION} && {own} -m pip install {join(requirements)}"
        return f"{make} && {own} {join([_running_script(), *sys.argv[1:]])}"
    if which("uv"):
        return join(["uv", "pip", "install", "--python", sys.executable, *requirements])
    return join([sys.executable, "-m", "pip", "install", *requirements])


def editable_folder(installed: Distribution) -> str:
    """Return the folder of a clone that is installed as editable, else "". It is recorded as PEP 610 describes."""
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        record = json.loads(installed.read_text("direct_url.json") or "{}")
        editable = record.get("dir_info", {}).get("editable", False)
        return url2pathname(urlsplit(record["url"]).path) if editable else ""
    except (ValueError, AttributeError, KeyError):  # a record of another form
        return ""


def missing_library(library: str, purpose: str) -> SkillError:
    """Return the error for a library of an extra that is not installed."""
    return _missing(library, f"{purpose} need the Python library {library}", "models")


def missing_requirement(problem: BaseException) -> SkillError | None:
    """Return the error for a failed import of a library that the package requires."""
    library = (problem.name or "").partition(".")[0] if isinstance(problem, ModuleNotFoundError) else ""
    if library not in _REQUIRED and not (library and copied_requirements()):
        return None
    return _missing(library, f"this Python lacks the library {library}, which the package requires")


def _missing(library: str, what: str, extra: str = "") -> SkillError:
    requirements = copied_requirements()
    command = copy_command(requirements) if requirements else install_command(extra)
    details = {"missing": library, "command": command}
    return SkillError(ErrorCode.SERVICE_UNAVAILABLE, f"{what}; run: {command}", details)
