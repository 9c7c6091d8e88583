"""Write the current layout, or one cell or some layers of it, as a GDSII or OASIS file."""

from typing import Any

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the file that was written and what it holds."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_outputs import export

    current = CurrentLayout(params)
    written = export(params, current)
    return {
        "output_path": written.output_path,
        "cell_name": written.cell_name,
        "layout_sha256": current.sha256,
        "warnings": current.warnings,
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
