# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Write a technology for KLayout's window: layer names and colours, wiring, and the devices as PCells."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the folder that KLayout can use as a package, and what it holds."""
    from layoutkit.tools.technology_file import export_klayout

    return export_klayout(params["technologies"], params["output_dir"], pcells=params["pcells"])


if __name__ == "__main__":
    raise SystemExit(main(__file__, "technology.export_klayout", execute))
