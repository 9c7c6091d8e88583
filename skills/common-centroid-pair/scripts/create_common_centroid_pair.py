# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw two matched transistors with a common centroid into the workspace's layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the units, their symmetry, the pins and how far the drawn centroids are apart."""
    from layoutkit.tools.transistor_requests import create_common_centroid_pair

    return create_common_centroid_pair(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.create_common_centroid_pair", execute))
