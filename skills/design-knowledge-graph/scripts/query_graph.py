"""Walk through a design graph from one node, breadth first."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return what the operation answers; it is on disk when it does."""
    from designgraph.answers import perform

    return perform("kg.query", params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.query", execute))
