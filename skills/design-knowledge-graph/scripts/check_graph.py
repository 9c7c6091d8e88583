"""Check a design graph: is the design it describes consistent?"""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the findings, each with the nodes concerned and a suggestion."""
    from designgraph import open_graph
    from designgraph.check import check_graph

    return check_graph(open_graph(), params["graphId"], params["limit"])


def violates(data: dict) -> bool:
    """Return whether the design is inconsistent."""
    return not data["passed"]


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.check", execute, violates=violates))
