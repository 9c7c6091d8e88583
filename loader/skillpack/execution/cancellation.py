"""Telling work in another thread to stop."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Cancellation:
    """A request to stop that may come from any thread, once and for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` has been called."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop whatever work is under way with this object, and any that would begin later."""
        with self._lock:
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Within the block, have ``cancel`` call ``callback`` in its own thread; at once if it was called before."""
        with self._lock:
            late = self._cancelled
            if not late:
                self._callbacks.append(callback)
        if late:
            callback()
        try:
            yield
        finally:
            with self._lock, contextlib.suppress(ValueError):  # called already
                self._callbacks.remove(callback)
