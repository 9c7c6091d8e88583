"""``--serve``: a warm worker that answers one JSON request a line with one envelope a line.

Request: ``{"id": text or integer, "params": {...}, "context": {...}}``. Answer: ``{"id": the same, ok, error, data,
duration_ms, exit_code}``. A line that is no such request is answered with INVALID_PARAM and the worker lives on. It
ends when its input ends, when nobody reads its answers any more, or on SIGTERM or Ctrl-C.
"""

from __future__ import annotations

from .envelope import SkillResult, to_json
from .faults import Fault, invalid_params
from .runtime import Stopped, call
from .schema import find_faults
from .standard_streams import take_stdin
from .strict_json import MAX_BYTES, NotJsonError, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from .standard_streams import EnvelopeStream
    from .tool import Tool

_REQUEST_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": ["string", "integer", "null"]},
        "params": {"type": "object"},
        "context": {"type": ["object", "null"]},
    },
}


def serve(tool: Tool, stdout: EnvelopeStream, log: str | None) -> int:
    """Answer the requests on standard input until it ends; return the exit code 0."""
    requests = take_stdin()
    try:
        while True:
            line = _next_line(requests)
            if line == b"":
                return 0
            if line is not None and not line.strip():
                continue
            request_id, result = _answer(tool, line, log)
            answer = {"id": request_id, **result.to_dict(), "exit_code": result.exit_code}
            if not stdout.write_line(to_json(answer)) or result.stopped:
                return 0
    except (Stopped, KeyboardInterrupt):
        return 0


def _next_line(requests: BinaryIO) -> bytes | None:
    """Return the next line, ``b""`` at the end of the input, ``None`` for a line longer than allowed."""
    line = requests.readline(MAX_BYTES + 1)
    if len(line) <= MAX_BYTES or line.endswith(b"\n"):
        return line
    while line and not line.endswith(b"\n"):
        line = requests.readline(MAX_BYTES)
    return None


def _answer(tool: Tool, line: bytes | None, log: str | None) -> tuple[Any, SkillResult]:
    """Return the request's id and its result."""
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
    return request_id, call(tool, request.get("params", {}), request.get("context"), log=log)


def _refused(*faults: Fault) -> SkillResult:
    return SkillResult.failure(invalid_params(faults))
