"""Running the HTTP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpack.hosts.calls import Calls
from skillpack.hosts.guard import Guard
from skillpack.hosts.http_app import PackApi
from skillpack.hosts.listening import serve

if TYPE_CHECKING:
    from skillpack.hosts.guard import Access
    from skillpack.hosts.pack import Pack


def run(pack: Pack, access: Access, port: int, max_body: int) -> None:
    """Serve the HTTP API until the process is asked to stop."""
    api = PackApi(pack, Calls(pack.max_workers), needs_token=access.token is not None)
    serve(Guard(api.app(), access, max_body=max_body), access, port)
