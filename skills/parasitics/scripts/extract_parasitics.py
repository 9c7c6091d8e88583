# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Extract resistance and capacitance of the nets of a layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the parasitics of each net and pair, and the netlists that hold them."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.post_layout_requests import ParasiticsRequest

    current = CurrentLayout(params)
    request = ParasiticsRequest(params, current)
    found = request.run()
    files = request.write(found)
    warnings = [*request.comparison.circuit.warnings, *current.warnings]
    return {
        **request.data(found),
        **request.replaced(),
        "files": files,
        "layout_sha256": current.sha256,
        "warnings": warnings,
    }


if __name__ == "__main__":
    raise SystemExit(main(__file__, "pex.extract_parasitics", execute))
