"""Replace all properties of a node of a design graph."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return what the operation answers; it is on disk when it does."""
    from designgraph.answers import perform

    return perform("kg.update_node", params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.update_node", execute))
