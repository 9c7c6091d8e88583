"""Keeping standard output for the envelope alone, whatever a handler, a library or a child process prints.

File descriptor 1 is pointed at standard error for the rest of the process's life: C++ code prints past
``sys.stdout``, and what sits in the C library's buffer is only flushed at exit, so giving the descriptor back would let
that text out after the envelope.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


class EnvelopeStream:
    """The process's original standard output; only envelopes, ``--help`` and ``--schema`` are written to it."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def write_line(self, text: str) -> bool:
        """Write ``text`` and a newline as UTF-8; return whether somebody still listens.

        Raises:
            OSError: If writing fails for another reason than a reader that has gone, such as a full disk.
        """
        if self._descriptor is None:
            return False
        # A lone surrogate can only stand inside a JSON string here, where its backslash form is the JSON escape.
        left = memoryview((text + "\n").encode("utf-8", "backslashreplace"))
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BrokenPipeError:  # noqa: PERF203 - a few writes at most
                self._descriptor = None
                return False
            except BlockingIOError:
                from select import select

                select([], [self._descriptor], [])
        return True


def take_stdout() -> EnvelopeStream:
    """Return the original standard output, and from now on send everything else printed to standard error."""
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        descriptor: int | None = os.dup(1)
    except OSError:  # started with standard output closed
        descriptor = None
    try:
        os.dup2(2, 1)
    except OSError:  # started with standard error closed
        _point_at_null(1, os.O_WRONLY)
    sys.stdout = sys.stderr
    return EnvelopeStream(descriptor)


def tell(text: str | None) -> None:
    """Print ``text`` to standard error, if there is any text and any standard error."""
    if text and sys.stderr is not None:
        sys.stderr.write(text.rstrip() + "\n")
        sys.stderr.flush()


def take_stdin() -> BinaryIO:
    """Return the original standard input; whoever else reads standard input finds it empty from now on."""
    try:
        descriptor = os.dup(0)
    except OSError:  # started with standard input closed
        descriptor = os.open(os.devnull, os.O_RDONLY)
    _point_at_null(0, os.O_RDONLY)
    return os.fdopen(descriptor, "rb")


def _point_at_null(descriptor: int, flags: int) -> None:
    null = os.open(os.devnull, flags)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)
