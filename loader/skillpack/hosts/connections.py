"""The connections of a server that listens on a port; imports uvicorn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

REQUEST_SECONDS = 20.0


class PromptConnection(H11Protocol):
    """A connection that is closed when the head of a request has not come in time, be it the first or a later one.

    Otherwise clients that say nothing, or a little now and then, would hold every place for ever. Heads are bounded
    (64 KiB) by h11, which is why this is not the parser that uvicorn would choose.
    """

    _end_of_patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_watching()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait from the first byte on, or from the beginning, until the head of a request is there."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_watching()
        elif self._end_of_patience is None:
            self._end_of_patience = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_watching(self) -> None:
        if self._end_of_patience is not None:
            self._end_of_patience.cancel()
            self._end_of_patience = None
