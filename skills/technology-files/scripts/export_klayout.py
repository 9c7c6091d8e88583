"""Write a technology for KLayout's window: layer names and colours, wiring, and the devices as PCells."""

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict, context: dict) -> dict:
    """Return the folder that KLayout can use as a package, and what it holds."""
    from importlib.metadata import PackageNotFoundError, version
    from pathlib import Path

    from layoutkit.layout.klayout_package import write_package

    try:
        release = version("analog-layout-skills")
    except PackageNotFoundError:  # a copied skill
        release = "0"
    folder = str(Path(params["output_dir"]).resolve())
    written = write_package(params["technologies"], folder, version=release, pcells=params["pcells"])
    return {
        "output_dir": written.folder,
        "files": list(written.files),
        "libraries": list(written.libraries),
        "layer_properties": [f"{folder}/{name}" for name in written.files if name.endswith(".lyp")],
        "technology_files": [f"{folder}/{name}" for name in written.files if name.endswith(".lyt")],
    }


if __name__ == "__main__":
    raise SystemExit(main(__file__, "technology.export_klayout", execute))
