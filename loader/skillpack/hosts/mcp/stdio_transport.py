"""Run the MCP server over standard input and output."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, NoReturn

from skillpack.hosts.calls import Calls
from skillpack.hosts.mcp.pack_server import PackServer
from skillpack.hosts.mcp.stdio_session import StdioSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillpack.hosts.pack import Pack
    from skillpack.hosts.served_schemas import NameStyle


def run_stdio(pack: Pack, style: NameStyle) -> None:
    """Serve one client over stdin and stdout until it disconnects, or until SIGTERM or Ctrl-C."""
    server = PackServer(pack, Calls(pack.max_workers), style)
    with _standard_streams() as (lines, answers):
        session = StdioSession(server, lines, answers)
        with suppress(_StoppedError), _stopping_on_signals():
            session.serve()
        if not session.end():
            pack.close()
            os._exit(0)  # a thread writes to a client that does not read; every tool has ended by now


class _StoppedError(Exception):
    """A signal asks the server to end."""


@contextmanager
def _stopping_on_signals() -> Iterator[None]:
    """Within the block, the first SIGTERM, SIGINT or SIGHUP raises in the main thread, which waits for messages.

    Later signals, and those after the block, do nothing.
    """

    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    def stop(_number: int, _frame: object) -> NoReturn:
        ignore()
        raise _StoppedError

    numbers = [signal.SIGTERM, signal.SIGINT]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants it ignored
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        ignore()  # a client may close the input and signal at the same time; answers are written meanwhile


@contextmanager
def _standard_streams() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Yield the client's streams. Within the block, other output goes to stderr, and stdin is empty."""
    sys.stdout.flush()
    with os.fdopen(os.dup(0), "rb") as lines, os.fdopen(os.dup(1), "wb") as answers:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        yield lines, answers
