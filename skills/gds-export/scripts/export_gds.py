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
        "output_path": written.output_path,
        "cell_name": written.cell_name,
        "layout_sha256": current.sha256,
        "warnings": [*current.warnings, *notes],
        "file_size_bytes": written.file_size_bytes,
        "export_stats": {
            "cell_count": written.cell_count,
            "layer_count": written.layer_count,
            "polygon_count": written.polygon_count,
            "path_count": written.path_count,
            "text_count": written.text_count,
            "layers": list(written.layers),
        },
    }


if __name__ == "__main__":
    raise SystemExit(main(__file__, "export.gds", execute))
