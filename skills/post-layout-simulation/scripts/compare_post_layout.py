# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Simulate a circuit and what its layout made of it on one test bench, side by side."""

from typing import Any

try:
    from skillscript import ErrorCode, SkillError, main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return both sides of each measurement; raise with the same data where a limit is broken."""
    from layoutkit.tools.post_layout_requests import compare

    data = compare(params)
    if data["faults"]:
        raise SkillError(ErrorCode.LAYOUT_CONFLICT, "; ".join(data["faults"]), {"faults": data["faults"]}, data)
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "sim.compare_post_layout", execute))
