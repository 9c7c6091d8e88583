# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""One warm process for all tools of this skill, so that a large graph is in memory only once.

    uv run scripts/graph_worker.py --serve
    {"id": 1, "tool": "kg.create_node", "params": {"graphId": "uart", "id": "tx", "type": "Signal"}}

It speaks the protocol of ``--serve`` (references/envelope.md of the pack); a request names its tool.
"""

from typing import TYPE_CHECKING, Any

try:
    from skillscript import serve_tools
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

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATIONS = (
    "kg.init",
    "kg.create_node",
    "kg.create_relation",
    "kg.delete_node",
    "kg.delete_relation",
    "kg.update_node",
    "kg.query",
    "kg.list",
)
PROGRAMS = {
    "kg.check": "check_graph",
    "kg.render": "render_graph",
    "kg.import_circuit": "import_circuit",
    "kg.export": "export_graph",
}


def operation(tool: str) -> "Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]":
    """Return the function that carries out one of the eight operations."""

    def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        from designgraph.operations import perform

        return perform(tool, params)

    return execute


def program(name: str) -> tuple[Any, Any]:
    """Return ``execute`` and ``violates`` of a program beside this one."""
    from importlib import import_module

    found = import_module(name)
    return found.execute, getattr(found, "violates", None)


if __name__ == "__main__":
    handlers = {tool: (operation(tool), None) for tool in OPERATIONS}
    handlers |= {tool: program(name) for tool, name in PROGRAMS.items()}
    raise SystemExit(serve_tools(__file__, handlers))
