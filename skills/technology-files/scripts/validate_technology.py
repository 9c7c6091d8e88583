"""Check a technology file and report everything that is wrong with it."""

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict, context: dict) -> dict:
    """Return the verdict on one technology file, with all its faults."""
    from layoutkit.tools.technology_file import validate

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
