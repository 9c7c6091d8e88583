"""Doing without Python's garbage collector while much is made that is to stay."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def collector_off() -> Iterator[None]:
    """Switch the garbage collector off for a block: it would walk a growing heap again and again and free nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
