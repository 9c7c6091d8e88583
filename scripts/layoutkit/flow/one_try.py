"""One try of several placements, in a process of its own: ``python -m layoutkit.flow.one_try FOLDER``.

FOLDER holds the request and the workspace of the try, and receives its outcome.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from layoutkit.errors import LayoutkitError
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.tries import OUTCOME, REQUEST, figures


def run_try(folder: Path) -> None:
    """Do the try in ``folder`` and write its outcome there."""
    options = json.loads(folder.joinpath(REQUEST).read_text(encoding="utf-8"))
    request = LayoutRequest(workspace=str(folder), first_stage="place", last_stage="metrics", **options)
    outcome: dict[str, Any]
    try:
        outcome = {"figures": figures(build_layout(request))}
    except LayoutkitError as error:
        outcome = {"error": error.message}
    part = folder / f"{OUTCOME}.part"
    part.write_text(json.dumps(outcome), encoding="utf-8")
    part.replace(folder / OUTCOME)


def _end_with_parent() -> None:
    """Have this process end when the one that started it does, which closes the pipe on standard input."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | fcntl.FASYNC)


if __name__ == "__main__":
    _end_with_parent()
    run_try(Path(sys.argv[1]))
