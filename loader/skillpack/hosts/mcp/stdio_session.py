"""The MCP server over standard input and output, in both eras of the protocol.

The first request decides the era. ``initialize``, or a request without the envelope of revision 2026-07-28 in its
``_meta``, opens a session of the revisions before it; a request with that envelope opens one in which every request has
it. The SDK's server answers the same (a test compares them); this one starts without the SDK, which takes several times
as long to import as everything else here.

One thread reads the messages. Each request is answered in another, so that a tool can be cancelled and the client's
messages are read even while it does not read answers.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, TypeGuard

from skillpack.hosts.calls import MAX_WAITING
from skillpack.hosts.mcp.pack_server import INSTRUCTIONS, REPORT_SECONDS, Asking, Progress
from skillpack.hosts.mcp.protocol import (
    CONNECTION_CLOSED,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    PARSE_ERROR,
    SERVER_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_KEY,
    RequestError,
)
from skillpack.hosts.mcp.request_checks import check_envelope, check_params

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillpack.hosts.mcp.pack_server import PackServer

MORE_THREADS = 8  # for short requests; calls that run or wait have their own
MAX_UNANSWERED = 4096  # requests; no more messages are read until one of them is answered
MAX_ESCAPED = 6  # bytes of JSON for one byte of a text, as in \\u0000; a line can hold the longest uploaded file
MORE_BYTES = 1 << 16  # of a line, besides such a file
END_SECONDS = 5.0  # time for the last answers when the session ends
_CLOSED = RequestError(CONNECTION_CLOSED, "Connection closed")
_MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")  # fields of results that revisions before 2026-07-28 do not know


class StdioSession:
    """One client's session.

    Args:
        server: Answers the requests.
        lines: Where messages come from, one per line.
        answers: Where messages go; not buffered.
    """

    def __init__(self, server: PackServer, lines: IO[bytes], answers: IO[bytes]) -> None:
        self._server = server
        self._longest = MAX_ESCAPED * server.pack.max_upload + MORE_BYTES
        self._lines = lines
        self._answers = answers
        self._writing = threading.Lock()
        self._threads = ThreadPoolExecutor(server.calls.max_running + MAX_WAITING + MORE_THREADS)
        self._running: set[_Running] = set()
        self._places = threading.Semaphore(MAX_UNANSWERED)
        self._modern: bool | None = None
        self._initialized = False
        self._revision = HANDSHAKE_VERSIONS[-1]

    def serve(self) -> None:
        """Answer messages until the input ends. What a line has beyond the longest that is taken is not kept."""
        while line := self._lines.readline(self._longest + 1):
            self._receive(line)
            while len(line) > self._longest and not line.endswith(b"\n"):
                line = self._lines.readline(self._longest + 1)

    def end(self) -> bool:
        """Kill the running tools, whose calls are answered with an error; return whether every answer was written."""
        unanswered = [*self._running]
        for running in unanswered:
            running.close()
        self._threads.shutdown(wait=False)
        closing = threading.Thread(target=self._close, args=(unanswered,), daemon=True)  # the client may not read
        closing.start()
        closing.join(END_SECONDS)
        return not closing.is_alive()

    def _close(self, unanswered: list[_Running]) -> None:
        """Answer the calls that no thread has begun to answer, and wait for the others."""
        for running in unanswered:
            if running.future.cancel():
                self._answer_error(running, _CLOSED)
        wait([running.future for running in unanswered])

    def _receive(self, line: bytes) -> None:
        """Handle one line; a line that is not a message is answered with an error."""
        if not line.strip():
            return
        try:
            message = _parsed(line, self._longest)
        except _NotAMessageError as problem:
            if problem.answered:
                self._write({"jsonrpc": "2.0", "id": problem.request_id, "error": problem.error})
            return
        method = message.get("method")
        if method is None:
            return  # an answer, though this server asks nothing
        params = message.get("params")
        if "id" in message:
            self._begin(message["id"], method, params)
        elif method == "notifications/initialized":
            self._initialized = True
        elif method == "notifications/cancelled":
            key = _key((params or {}).get("requestId"))
            for running in [*self._running]:
                if _key(running.request_id) == key:
                    running.cancel()

    def _begin(self, request_id: str | int, method: str, params: dict[str, Any] | None) -> None:
        """Begin to answer a request; ``initialize`` at once, so that what a client sends next finds it done."""
        if self._modern is None:
            self._modern = method != "initialize" and _has_envelope(params)
        revision = MODERN_VERSIONS[-1] if self._modern else self._revision
        self._places.acquire()
        running = _Running(request_id, method, params, Asking(revision))
        self._running.add(running)
        if running.method == "initialize":
            self._answer(running)
        else:
            running.future = self._threads.submit(self._answer, running)

    def _answer(self, running: _Running) -> None:
        """Write the answer to a request, unless it was cancelled."""
        try:
            with self._reporting(running):
                result = self._modern_result(running) if self._modern else self._handshake_result(running)
            if running.closed and running.method == "tools/call":
                raise _CLOSED
            if not running.cancelled:
                self._write({"jsonrpc": "2.0", "id": running.request_id, "result": result})
        except RequestError as error:
            self._answer_error(running, error)
        finally:
            self._running.discard(running)
            self._places.release()

    def _answer_error(self, running: _Running, error: RequestError) -> None:
        if not running.cancelled:
            data = {} if error.data is None else {"data": error.data}
            shown = {"code": error.code, "message": error.message, **data}
            self._write({"jsonrpc": "2.0", "id": running.request_id, "error": shown})

    @contextmanager
    def _reporting(self, running: _Running) -> Iterator[None]:
        """Within the block, report the progress of a call to a client that asked for it."""
        if running.token is None or running.method != "tools/call":
            yield
            return
        ended = threading.Event()
        reporter = threading.Thread(target=self._report, args=(running, ended), daemon=True)
        reporter.start()
        try:
            yield
        finally:
            ended.set()
            reporter.join()

    def _report(self, running: _Running, ended: threading.Event) -> None:
        progress = Progress(running.asking.output)
        last = False
        while not last:
            last = ended.wait(REPORT_SECONDS)
            due = progress.due(ended=last)
            if due is not None and not running.cancelled:
                params = {"progressToken": running.token, "progress": due[0], "message": due[1]}
                self._write({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def _handshake_result(self, running: _Running) -> dict[str, Any]:
        """Return the result of a request in a session that ``initialize`` opens."""
        method, params = running.method, running.params
        if method == "initialize":
            check_params(method, params)
            return self._initialize(params or {})
        if _has_envelope(params):
            text = f"this session was opened by initialize; it takes no request of revision {MODERN_VERSIONS[-1]}"
            raise RequestError(INVALID_REQUEST, text)
        check_params(method, params)
        if method == "ping":
            return {}
        if method not in self._server.methods:
            raise RequestError(METHOD_NOT_FOUND, "Method not found", method)
        if not self._initialized:
            raise RequestError(INVALID_PARAMS, "Invalid request parameters", "")
        result = self._server.answer(method, params or {}, running.asking)
        if method.startswith("skills/") or method == "resources/directory/read":
            return result  # the extension defines its results for every revision
        return {key: value for key, value in result.items() if key not in _MODERN_ONLY}

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        requested = params["protocolVersion"]
        self._revision = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        self._initialized = True
        return {
            "protocolVersion": self._revision,
            "capabilities": self._capabilities(),
            "serverInfo": self._server.identity,
            "instructions": INSTRUCTIONS,
        }

    def _capabilities(self) -> dict[str, Any]:
        return {
            "extensions": self._server.extensions,
            "resources": {"subscribe": False, "listChanged": False},
            "tools": {"listChanged": False},
        }

    def _modern_result(self, running: _Running) -> dict[str, Any]:
        """Return the result of a request in a session in which every request states its revision."""
        method, params = running.method, running.params
        if method == "initialize":
            requested = (params or {}).get("protocolVersion")
            facts = {
                "supported": [*MODERN_VERSIONS],
                **({"requested": requested} if isinstance(requested, str) else {}),
            }
            text = f"this session was opened by a request of revision {MODERN_VERSIONS[-1]}, which has no initialize"
            raise RequestError(UNSUPPORTED_PROTOCOL_VERSION, text, facts)
        check_envelope(params)
        check_params(method, params)
        if method == "server/discover":
            result = {
                "supportedVersions": [*MODERN_VERSIONS],
                "capabilities": self._capabilities(),
                "instructions": INSTRUCTIONS,
                "ttlMs": 0,
                "cacheScope": "private",
            }
        elif method in self._server.methods:
            result = self._server.answer(method, params or {}, running.asking)
        else:
            raise RequestError(METHOD_NOT_FOUND, "Method not found", method)
        return {"resultType": "complete", **result, "_meta": {SERVER_KEY: self._server.identity}}

    def _write(self, message: dict[str, Any]) -> None:
        """Write a message. If the client is gone, this does nothing: the end of its input ends the session."""
        try:
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            text = json.dumps(message, separators=(",", ":")).encode()
        with self._writing:
            try:
                self._answers.write(text + b"\n")
                self._answers.flush()
            except (OSError, ValueError):
                return


class _Running:
    """A request that is being answered."""

    def __init__(self, request_id: str | int, method: str, params: dict[str, Any] | None, asking: Asking) -> None:
        self.request_id = request_id
        self.method = method
        self.params = params
        self.asking = asking
        self.future: Future[None] = Future()
        self.cancelled = False
        self.closed = False
        meta = (params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        self.token = token if _is_id(token) else None

    def cancel(self) -> None:
        """Kill what runs; the request is not answered."""
        self.cancelled = True
        self.asking.cancellation.cancel()

    def close(self) -> None:
        """Kill what runs, as the session ends; the call is answered with an error."""
        self.closed = True
        self.asking.cancellation.cancel()


class _NotAMessageError(ValueError):
    """A line is not a message.

    Attributes:
        error: The error to answer with.
        request_id: Id of the request, as far as it can be read.
        answered: Whether its sender waits for an answer.
    """

    def __init__(self, code: int, text: str, message: Any) -> None:
        super().__init__(text)
        self.error = {"code": code, "message": text}
        given = message.get("id") if isinstance(message, dict) else None
        self.request_id = given if _is_id(given) and _is_text(given) else None
        self.answered = not isinstance(message, dict) or ("method" in message and "id" in message)


def _parsed(line: bytes, longest: int) -> dict[str, Any]:
    """Return the message in a line.

    Raises:
        _NotAMessageError: If there is none.
    """
    if len(line) > longest:
        raise _NotAMessageError(PARSE_ERROR, f"Parse error: the line is longer than {longest} bytes", None)
    text = line.decode("utf-8", "replace")
    try:
        message: Any = json.loads(text)
    except RecursionError:
        raise _NotAMessageError(PARSE_ERROR, "Parse error: nested too deep", None) from None
    except ValueError as error:
        raise _NotAMessageError(PARSE_ERROR, f"Parse error: {error}", None) from None
    if "\\ud" in text.lower() and not _is_text(message):
        raise _NotAMessageError(PARSE_ERROR, "Parse error: lone surrogate, which is not Unicode text", message)
    if not _is_message(message):
        raise _NotAMessageError(INVALID_REQUEST, "Invalid request", message)
    return message


def _is_message(message: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a request, a notification or an answer."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    if isinstance(message.get("method"), str):
        return isinstance(message.get("params"), (dict, type(None))) and ("id" not in message or _is_id(message["id"]))
    return "method" not in message and ("result" in message or "error" in message)


def _is_id(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _key(request_id: Any) -> Any:
    """Return an id in the form for comparing: some clients write a number as text when they cancel."""
    if isinstance(request_id, str):
        with suppress(ValueError):
            return int(request_id)
    return request_id if _is_id(request_id) else None


def _is_text(value: object) -> bool:
    """Return whether a value can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _has_envelope(params: Mapping[str, Any] | None) -> bool:
    """Return whether the parameters state a revision, as those of 2026-07-28 and later do."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta
