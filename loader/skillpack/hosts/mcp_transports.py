"""Running the MCP server over standard input and output, or over streamable HTTP."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from skillpack.hosts.calls import Calls
from skillpack.hosts.guard import Guard
from skillpack.hosts.listening import serve
from skillpack.hosts.mcp_server import PackServer

if TYPE_CHECKING:
    from skillpack.hosts.guard import Access
    from skillpack.hosts.names import NameStyle
    from skillpack.hosts.pack import Pack

PATH = "/mcp"


def run_stdio(pack: Pack, style: NameStyle) -> None:
    """Serve one client over stdin and stdout until it leaves, or until SIGTERM or Ctrl-C."""

    async def main() -> None:
        server = PackServer(pack, Calls(pack.max_workers), style).server()
        async with anyio.create_task_group() as group, stdio_server() as (read_stream, write_stream):
            with anyio.CancelScope() as serving:
                group.start_soon(_stop_on_signal, serving)
                await server.run(read_stream, write_stream, server.create_initialization_options())
            if serving.cancel_called:
                pack.close()
                os._exit(0)  # a thread waits for stdin and cannot be woken; every tool is dead by now
            group.cancel_scope.cancel()

    anyio.run(main)


def run_http(pack: Pack, style: NameStyle, access: Access, port: int) -> None:
    """Serve any number of clients over streamable HTTP at ``/mcp``."""
    server = PackServer(pack, Calls(pack.max_workers), style).server()
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard checks
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=unchecked)
    serve(Guard(app, access), access.host, port, path=PATH)


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    """End the server when the process is asked to, so that running tools are killed first."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
