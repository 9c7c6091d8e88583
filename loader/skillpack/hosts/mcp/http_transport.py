"""Run the MCP server over streamable HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings

from skillpack.hosts.calls import Calls
from skillpack.hosts.guard import Guard
from skillpack.hosts.listening import serve
from skillpack.hosts.mcp.pack_server import PackServer
from skillpack.hosts.mcp.sdk_server import sdk_server

if TYPE_CHECKING:
    from skillpack.hosts.guard import Access
    from skillpack.hosts.options import Listening
    from skillpack.hosts.pack import Pack
    from skillpack.hosts.served_schemas import NameStyle

PATH = "/mcp"


def run_http(pack: Pack, style: NameStyle, access: Access, listening: Listening) -> None:
    """Serve any number of clients over streamable HTTP at ``/mcp``."""
    server = sdk_server(PackServer(pack, Calls(pack.max_workers), style))
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard checks
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=unchecked, max_request_body_size=listening.max_body
    )
    serve(Guard(app, access, max_body=listening.max_body), access, listening.port, path=PATH)
