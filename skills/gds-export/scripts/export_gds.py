# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Write the current layout, or one cell or some layers of it, as a GDSII or OASIS file."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the file that was written and what it holds."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_outputs import export, export_lef

    current = CurrentLayout(params)
    written = export(params, current)
    lef, notes = export_lef(params, current)
    return {
        **lef,
        **written,
        "layout_sha256": current.sha256,
        "warnings": [*current.warnings, *notes],
    }


if __name__ == "__main__":
    raise SystemExit(main(__file__, "export.gds", execute))
