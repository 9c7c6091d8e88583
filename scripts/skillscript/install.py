"""State how to install what is missing. The package is installed from a clone or a wheel, not from a registry."""

from __future__ import annotations

from .envelope import ErrorCode, SkillError

DISTRIBUTION = "analog-layout-skills"
# What the package itself requires, by the name of the import.
_REQUIRED = frozenset({"click", "jsonschema", "klayout", "numpy", "referencing", "yaml"})


def install_command(extra: str = "") -> str:
    """Return how to install the package with an extra, in a clone and from a wheel."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version(DISTRIBUTION)
    except PackageNotFoundError:
        number = "VERSION"
    wheel, suffix = f"{DISTRIBUTION.replace('-', '_')}-{number}-py3-none-any.whl", f"[{extra}]" if extra else ""
    clone = f"pip install -e '.{suffix}' in a clone of {DISTRIBUTION}"
    return f"{clone}, or pip install '{wheel}{suffix}' in the folder of its wheel"


def missing_library(library: str, purpose: str) -> SkillError:
    """Return the error for a library of an extra that is not installed."""
    text = f"{purpose} need the Python library {library}: {install_command('models')}"
    return SkillError(ErrorCode.SERVICE_UNAVAILABLE, text, {"missing": library})


def missing_requirement(problem: BaseException) -> SkillError | None:
    """Return the error for a failed import of a library that the package requires."""
    library = (problem.name or "").partition(".")[0] if isinstance(problem, ModuleNotFoundError) else ""
    if library not in _REQUIRED:
        return None
    text = f"this Python lacks the library {library}, which the package requires: {install_command()}"
    return SkillError(ErrorCode.SERVICE_UNAVAILABLE, text, {"missing": library})
