"""Write a technology for KLayout's window: layer names and colours, wiring, and the devices as PCells."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the folder that KLayout can use as a package, and what it holds."""
    from importlib.metadata import PackageNotFoundError, version
    from pathlib import Path

    from layoutkit.klayout_package import write_package

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
