"""Run the MCP server over standard input and output, or over streamable HTTP."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from skillpack.hosts.calls import Calls
from skillpack.hosts.guard import Guard
from skillpack.hosts.listening import serve
from skillpack.hosts.mcp.pack_server import PackServer

if TYPE_CHECKING:
    from skillpack.hosts.guard import Access
    from skillpack.hosts.pack import Pack
    from skillpack.hosts.served_schemas import NameStyle

PATH = "/mcp"


def run_stdio(pack: Pack, style: NameStyle) -> None:
    """Serve one client over stdin and stdout until it disconnects, or until SIGTERM or Ctrl-C."""

    async def main() -> None:
        server = PackServer(pack, Calls(pack.max_workers), style).server()
        async with anyio.create_task_group() as group, stdio_server() as (read_stream, write_stream):
            with anyio.CancelScope() as serving:
                group.start_soon(_stop_on_signal, serving)
                send, receive = anyio.create_memory_object_stream[Any](0)
                group.start_soon(_without_malformed, read_stream, send, write_stream)
                await server.run(receive, write_stream, server.create_initialization_options())
            if serving.cancel_called:
                pack.close()
                os._exit(0)  # a thread waits for stdin and cannot be interrupted; every tool has ended by now
            group.cancel_scope.cancel()

    anyio.run(main)


def run_http(pack: Pack, style: NameStyle, access: Access, port: int) -> None:
    """Serve any number of clients over streamable HTTP at ``/mcp``."""
    server = PackServer(pack, Calls(pack.max_workers), style).server()
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard checks
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=unchecked)
    serve(Guard(app, access), access, port, path=PATH)


async def _without_malformed(lines: Any, messages: Any, answers: Any) -> None:
    """Pass messages on; answer a line that is not a message, which the SDK would drop while its sender waits."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the server has ended
        async with messages:
            async for item in lines:
                if isinstance(item, SessionMessage):
                    await messages.send(item)
                elif isinstance(item, ValidationError):
                    refusal = _refusal(item)
                    if refusal is not None:
                        await answers.send(SessionMessage(refusal))


def _refusal(error: ValidationError) -> types.JSONRPCError | None:
    """Return the answer to a line that is no JSON-RPC message; None if it is blank or expects no answer."""
    faults = error.errors(include_url=False)
    line = faults[0]["input"]
    code, text = types.INVALID_REQUEST, "Invalid request"
    if faults[0]["type"] == "json_invalid":
        if not line.strip():
            return None
        code, text = types.PARSE_ERROR, f"Parse error: {faults[0]['ctx']['error']}"
        try:  # takes what pydantic refuses, such as half of a surrogate pair, and so has the id
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
    else:
        whole = (fault["input"] for fault in faults if fault["type"] == "missing" and len(fault["loc"]) == 2)
        message = next(whole, None)
    if isinstance(message, dict) and ("method" not in message or "id" not in message):
        return None
    given = message["id"] if isinstance(message, dict) else None
    known = given if type(given) in (int, str) and _is_text(given) else None
    return types.JSONRPCError(jsonrpc="2.0", id=known, error=types.ErrorData(code=code, message=text))


def _is_text(value: object) -> bool:
    """Return whether a value can be written as UTF-8."""
    try:
        str(value).encode()
    except (UnicodeEncodeError, ValueError):
        return False
    return True


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    """Stop the server on a signal, so that running tools are killed first."""
    if sys.platform == "win32":
        return
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)  # nohup wants it ignored
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, *hangup) as signals:
        async for _ in signals:
            scope.cancel()
            return
