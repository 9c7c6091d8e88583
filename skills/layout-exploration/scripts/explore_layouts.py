# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills[explore]"]
# ///
"""Make many layouts of one netlist and compare them, or lay out folders of netlists."""

import sys
from typing import Any

try:
    from skillscript import ErrorCode, SkillError, main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the front of a search, or the board of a suite; raise with the same data where nothing is clean."""
    import os

    from layoutkit.tools.explore_layouts import run
    from skillscript.confinement import VARIABLE

    if "scheduler" in params and os.environ.get(VARIABLE):
        text = "this server connects to no scheduler that a call names, because a scheduler can run programs here"
        raise SkillError(ErrorCode.UNSUPPORTED_OPERATION, text, {"param_name": "scheduler"})
    data, faults = run(params, _print_progress)
    if faults:
        raise SkillError(ErrorCode.LAYOUT_CONFLICT, "; ".join(faults), {"faults": faults}, data)
    return data


def _print_progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main(__file__, "flow.explore_layouts", execute))
