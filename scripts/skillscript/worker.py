"""``--serve``: a warm worker that answers one JSON request a line with one envelope a line.

Request: ``{"id": text or integer, "params": {...}, "context": {...}, "timeout_s": number}``. Answer: ``{"id": the same,
ok, error, data, duration_ms, exit_code}``. A line that is no such request is answered with INVALID_PARAM and the worker
lives on. It ends when its input ends, when nobody reads its answers any more, or on SIGTERM or Ctrl-C; and, so that no
call works on what another left behind, after a call that left threads or child processes: that answer has
``"last": true``. Working folder, environment variables and ``sys.path`` are put back after each call.

When the file of a module it has loaded was edited, it carries nothing out any more: it answers SERVICE_UNAVAILABLE with
``"stale": true, "last": true`` and ends, so that the same request can be given to a new one.

A call that takes longer than its ``timeout_s`` and a little more ends the process, whatever it hangs in: whoever asked
has given up by then, or is gone.

A program may serve several tools in one process (``serve_tools``), so that they share what they keep warm; each request
then names its ``tool``.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager

from .envelope import ErrorCode, SkillError, SkillResult, to_json
from .faults import Fault, invalid_params
from .runtime import Stopped, call
from .schema import find_faults
from .sources import LoadedSources
from .standard_streams import take_stdin
from .strict_json import MAX_BYTES, NotJsonError, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, BinaryIO

    from .standard_streams import EnvelopeStream
    from .tool import Tool

_GRACE_SECONDS = 2.0
_REQUEST_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": ["string", "integer", "null"]},
        "tool": {"type": "string"},
        "params": {"type": "object"},
        "context": {"type": ["object", "null"]},
        "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6},
    },
}


def serve(tools: Mapping[str, Tool], stdout: EnvelopeStream, log: str | None) -> int:
    """Answer the requests on standard input until it ends; return the exit code 0.

    Args:
        tools: The tools served, by id. A request need not name the only one.
        stdout: Where the answers go.
        log: File to append call records to.
    """
    requests = take_stdin()
    surroundings = _Surroundings()
    sources = LoadedSources()
    try:
        while True:
            line = _next_line(requests)
            if line == b"":
                return 0
            if line is not None and not line.strip():
                continue
            begin = time.time_ns()
            stale = sources.edited()
            request_id, result = _answer(tools, line, None if stale else log, stale=stale)
            answer = {"id": request_id, **result.to_dict(), "exit_code": result.exit_code}
            last = stale or not surroundings.restore()
            sources.take_note(begin)
            if stale:
                answer["stale"] = True
            if last:
                answer["last"] = True
            if not stdout.write_line(to_json(answer)) or result.stopped or last:
                return 0
    except (Stopped, KeyboardInterrupt):
        return 0


class _Surroundings:
    """What of the process a call may change and the next must not see."""

    def __init__(self) -> None:
        self._folder = os.getcwd()  # noqa: PTH109 - compared as text
        self._environment = dict(os.environ)
        self._path = list(sys.path)

    def restore(self) -> bool:
        """Put everything back; return whether that was possible."""
        sys.path[:] = self._path
        if dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        try:
            os.chdir(self._folder)
        except OSError:
            return False
        return not _has_threads() and not _has_children()


def _has_threads() -> bool:
    """Return whether Python threads run beside the main one."""
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def _has_children() -> bool:
    """Return whether child processes run; those that have ended are put to rest."""
    if not hasattr(os, "waitpid") or not hasattr(os, "WNOHANG"):
        return False
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _next_line(requests: BinaryIO) -> bytes | None:
    """Return the next line, ``b""`` at the end of the input, ``None`` for a line longer than allowed."""
    line = requests.readline(MAX_BYTES + 1)
    if len(line) <= MAX_BYTES or line.endswith(b"\n"):
        return line
    while line and not line.endswith(b"\n"):
        line = requests.readline(MAX_BYTES)
    return None


def _answer(tools: Mapping[str, Tool], line: bytes | None, log: str | None, *, stale: bool) -> tuple[Any, SkillResult]:
    """Return the request's id and its result; a stale worker carries nothing out."""
    if line is None:
        return None, _refused(Fault("", f"the request is longer than the {MAX_BYTES} bytes allowed on one line"))
    try:
        request = parse_json(line)
    except NotJsonError as fault:
        return None, _refused(Fault("", f"the request: {fault}"))
    faults = find_faults(request, _REQUEST_SCHEMA)
    request_id = request.get("id") if isinstance(request, dict) else None
    if faults:
        return request_id if isinstance(request_id, (str, int)) else None, _refused(*faults)
    wanted = request.get("tool", next(iter(tools)) if len(tools) == 1 else "")
    tool = tools.get(wanted)
    if tool is None:
        known = sorted(tools)
        return request_id, _refused(Fault("tool", f"tool must be one of {', '.join(known)}", wanted, known))
    if stale:
        text = "the program has been edited since this process started; ask a new one"
        return request_id, SkillResult.failure(SkillError(ErrorCode.SERVICE_UNAVAILABLE, text))
    with _time_limit(request.get("timeout_s")):
        return request_id, call(tool, request.get("params", {}), request.get("context"), log=log)


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """End the process when the block takes ``seconds`` and a grace; a C thread does it, which no lock holds up."""
    try:
        descriptor = sys.stderr.fileno() if seconds is not None else None
    except (AttributeError, OSError, ValueError):  # standard error is closed
        descriptor = None
    if seconds is None or descriptor is None:
        yield
        return
    import faulthandler

    faulthandler.dump_traceback_later(seconds + _GRACE_SECONDS, exit=True, file=descriptor)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _refused(*faults: Fault) -> SkillResult:
    return SkillResult.failure(invalid_params(faults))
