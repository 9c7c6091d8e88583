# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""One warm process for all tools of this skill, so that a large graph is in memory only once.

    uv run scripts/graph_worker.py --serve
    {"id": 1, "tool": "kg.create_node", "params": {"graphId": "uart", "id": "tx", "type": "Signal"}}

It speaks the protocol of ``--serve`` (references/envelope.md of the pack); a request names its tool.
"""

from typing import Any

try:
    from skillscript import serve_tools
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None

# The tools, each with the program beside this one.
PROGRAMS = {
    "kg.init": "init_graph",
    "kg.create_node": "create_node",
    "kg.create_relation": "create_relation",
    "kg.delete_node": "delete_node",
    "kg.delete_relation": "delete_relation",
    "kg.update_node": "update_node",
    "kg.query": "query_graph",
    "kg.list": "list_nodes",
    "kg.check": "check_graph",
    "kg.render": "render_graph",
    "kg.import_circuit": "import_circuit",
    "kg.export": "export_graph",
}


def program(name: str) -> tuple[Any, Any]:
    """Return ``execute`` and ``violates`` of a program beside this one."""
    from importlib import import_module

    found = import_module(name)
    return found.execute, getattr(found, "violates", None)


if __name__ == "__main__":
    raise SystemExit(serve_tools(__file__, {tool: program(name) for tool, name in PROGRAMS.items()}))
