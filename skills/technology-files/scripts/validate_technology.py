"""Check a technology file and report everything that is wrong with it."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the verdict on one technology file, with all its faults."""
    from layoutkit.check.technology_file import validate

    found = validate(params["technology"])
    technology = found.technology
    return {
        "valid": found.valid,
        "technology": found.name,
        "faults": [{"place": fault.place, "message": fault.message} for fault in found.faults],
        "warnings": [{"place": fault.place, "message": fault.message} for fault in found.warnings],
        "counts": None
        if technology is None
        else {
            "layers": len(technology.layers),
            "conductors": len(technology.conductors),
            "transistors": len(technology.devices),
            "passives": len(technology.passives),
            "rules": len(technology.rules),
        },
    }


if __name__ == "__main__":
    raise SystemExit(main(__file__, "technology.validate", execute, violates=lambda data: not data["valid"]))
