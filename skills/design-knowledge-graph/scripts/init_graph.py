"""Replace a whole design graph in one step."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return what the operation answers; it is on disk when it does."""
    from designgraph.answers import perform

    return perform("kg.init", params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.init", execute))
