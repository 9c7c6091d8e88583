"""Tries of several placements, one after the other in a process of their own: ``python -m layoutkit.flow.one_try``.

Each line of its standard input names a folder, which holds the request and the workspace of a try, and receives its
outcome.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from layoutkit.errors import LayoutkitError
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.tries import OUTCOME, REQUEST, figures
from sturdy.atomic_files import replace_file
from sturdy.child_process import end_with_pipe


def run_try(folder: Path) -> None:
    """Do the try in ``folder`` and write its outcome there."""
    options = json.loads(folder.joinpath(REQUEST).read_text(encoding="utf-8"))
    asked = options.pop("asked")
    request = LayoutRequest(workspace=str(folder), first_stage="place", last_stage="metrics", reviewed=False, **options)
    outcome: dict[str, Any]
    try:
        outcome = {"figures": figures(build_layout(request), asked)}
    except LayoutkitError as error:
        outcome = {"error": error.message}
    replace_file(folder / OUTCOME, json.dumps(outcome).encode())


if __name__ == "__main__":
    end_with_pipe(os.dup(1))  # the process that started this one closes it as it ends
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin.buffer:
        run_try(Path(os.fsdecode(line.removesuffix(b"\n"))))
