"""Functions that numba compiles, once for all processes on a machine.

numba keeps what it has compiled in ``__pycache__`` or, where that cannot be written, in the user's cache folder. The
search of placement takes about ten seconds, so processes that need it at the same time wait for the first of them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sturdy.atomic_files import lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function that numba compiles, or takes from its cache, when it is first called.

    Raises:
        ImportError: If numba is not installed.
    """
    import numba

    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # no writable place for the cache
        return numba.njit(function)


class CompiledByOne:
    """A compiled function that at most one process compiles at a time, with all functions it calls.

    Attributes:
        function: What ``compiled`` returned.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self._is_ready = False

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function returns."""
        if not self._is_ready:
            import numba

            with _alone(self.function.stats.cache_path):
                self.function.compile(tuple(map(numba.typeof, arguments)))
            self._is_ready = True
        return self.function(*arguments)


@contextmanager
def _alone(folder: str | None) -> Iterator[None]:
    """Hold an exclusive lock on a folder, if one is given and the system has locks; it also ends with the process."""
    descriptor = None
    with suppress(OSError, TypeError):
        descriptor = os.open(folder, os.O_RDONLY)  # type: ignore[arg-type]
        lock(descriptor)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
