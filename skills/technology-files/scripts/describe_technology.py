# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Describe a technology: layers, wiring, devices with their limits, and how many rules."""

from typing import Any

try:
    from skillscript import main
except ImportError as problem:  # the same lines in every script: any Python 3 without the package answers an envelope
    if problem.name != "skillscript":
        raise
    import json
    import sys
    from pathlib import Path
    from shlex import quote
    from shutil import which
    from sysconfig import get_path

    TREE = next((str(home) for home in Path(__file__).resolve().parents if (home / "loader/skillpack").is_dir()), "")
    COMMAND = " ".join(["uv run", *([f"--project {quote(TREE)} python"] if TREE else []), *map(quote, sys.argv)])
    MANAGED = sys.prefix == sys.base_prefix and Path(get_path("stdlib"), "EXTERNALLY-MANAGED").is_file()
    if not which("uv") and (MANAGED or sys.version_info < (3, 10)):  # pip installs nothing, or not this package, here
        OWN = "~/.analog-layout-skills/bin/python -m"
        COMMAND = f"{quote(sys.executable)} -m venv ~/.analog-layout-skills && {OWN} pip install uv && {OWN} {COMMAND}"
    elif not which("uv"):
        COMMAND = f"{quote(sys.executable)} -m pip install {f'-e {quote(TREE)}' if TREE else 'analog-layout-skills'}"
    HELP = f"Python {sys.version.split()[0]} here lacks analog-layout-skills, which needs 3.10 or newer; run: {COMMAND}"
    ERROR = {"code": "SERVICE_UNAVAILABLE", "message": HELP, "details": {"missing": "skillscript", "command": COMMAND}}
    print(json.dumps({"ok": False, "error": ERROR, "data": None, "duration_ms": 0}))
    raise SystemExit(3) from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return a technology in numbers a person reads."""
    from layoutkit.tools.technology_file import describe

    return describe(params["technology"])


if __name__ == "__main__":
    raise SystemExit(main(__file__, "technology.describe", execute))
