# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Compare two layouts, or two builds, in words and as one picture."""

from typing import Any

try:
    from skillscript import main
except ImportError as problem:  # the same lines in every script: any Python 3 without the package answers an envelope
    if problem.name != "skillscript":
        raise
    import json, pathlib, shlex, shutil, sys, sysconfig  # noqa: E401, I001 - in one line to stay short

    THIS, MARK = shlex.quote(sys.executable), pathlib.Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    TREE = next((str(up) for up in pathlib.Path(__file__).resolve().parents if (up / "loader/skillpack").is_dir()), "")
    UV = " ".join(map(shlex.quote, ["uv", "run", *(["--project", TREE, "python"] if TREE else []), *sys.argv]))
    PIP = f"{THIS} -m pip install {'-e ' + shlex.quote(TREE) if TREE else 'analog-layout-skills'}"
    OWN = f"{THIS} -m venv ~/.analog-layout-skills && PATH=~/.analog-layout-skills/bin:$PATH && pip install uv && {UV}"
    UNFIT = sys.version_info < (3, 10) or (sys.prefix == sys.base_prefix and MARK.is_file())  # for pip and the package
    COMMAND = UV if shutil.which("uv") else OWN if UNFIT else PIP
    HELP = f"Python {sys.version.split()[0]} here lacks analog-layout-skills, which needs 3.10 or newer (uv and pip "
    HELP += f"find it in the package index or in the folder that UV_FIND_LINKS or PIP_FIND_LINKS names); run: {COMMAND}"
    ERROR = {"code": "SERVICE_UNAVAILABLE", "message": HELP, "details": {"missing": "skillscript", "command": COMMAND}}
    print(json.dumps({"ok": False, "error": ERROR, "data": None, "duration_ms": 0}))
    raise SystemExit(3) from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return what differs between the layouts, and where the picture of both is."""
    from layoutkit.tools.layout_outputs import compare_two

    return compare_two(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.compare_layouts", execute))
