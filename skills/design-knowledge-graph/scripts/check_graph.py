"""Check whether the design in a graph is consistent."""

from typing import Any

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the findings, each with the nodes concerned and a suggestion."""
    from designgraph import open_graph
    from designgraph.consistency import check_graph

    return check_graph(open_graph(), params["graphId"], params["limit"])


def violates(data: dict[str, Any]) -> bool:
    """Return whether the design is inconsistent."""
    return not data["passed"]


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.check", execute, violates=violates))
