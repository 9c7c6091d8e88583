"""Rule kinds about cuts that stand in arrays.

::

    # # # #
    # # # #     an array: shapes that run together when gaps below the value are closed, and then fill a square of
    # # # #     array_um; inside it, all of them keep the value
    # # # #
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.drc.kind_register import Case, rule_kind

if TYPE_CHECKING:
    from layoutkit.drc.kind_register import Found

_SQUARE = 2  # KLayout's size mode that keeps corners


@rule_kind("array_space", "layer", lengths=("array_um",), needed_lengths=("array_um",))
def array_space(case: Case) -> Found:
    """Where shapes of ``layer`` form an array that fills a square of ``array_um``, they are ``value`` apart."""
    layer = case.region("layer")
    closing, opening = case.value // 2, case.length("array_um") // 2
    blocks = layer.sized(closing, _SQUARE).sized(-closing, _SQUARE)
    arrays = blocks.sized(1 - opening, _SQUARE).sized(opening - 1, _SQUARE)
    yield layer.interacting(arrays).space_check(case.value)
