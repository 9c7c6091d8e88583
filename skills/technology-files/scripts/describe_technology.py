"""Tell what a technology has: layers, wiring, devices with their limits, and how many rules."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return a technology in numbers a person reads."""
    from layoutkit.technology import load, names
    from layoutkit.technology.description import described

    return {"shipped": names(), **described(load(params["technology"]))}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "technology.describe", execute))
