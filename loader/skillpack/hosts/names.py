"""Names under which tools are served: every host takes them, none stands for two tools.

Dots are legal in MCP, yet several hosts refuse a name with a dot and with it every other tool of the server.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

NameStyle = Literal["underscored", "dotted"]
MAX_NAME = 64  # the least that a widespread host takes
_DIGITS = 8


def served_names(tool_ids: Iterable[str], style: NameStyle, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return the tool ids by the names they are served under, in the order given.

    ``layout.create_nmos_pcell`` becomes ``layout_create_nmos_pcell``, or stays as it is where ``style`` is dotted. A
    name that is too long, or that is another's already, ends in a digest of the id instead.

    Args:
        tool_ids: Unique ids; of two that would get one name, the first has it.
        style: How to write them.
        taken: Names that are not free.
    """
    names: dict[str, str] = {}
    used = set(taken)
    for tool_id in tool_ids:
        name = tool_id if style == "dotted" else tool_id.replace(".", "_")
        if len(name) > MAX_NAME or name in used:
            digest = hashlib.sha256(tool_id.encode()).hexdigest()[:_DIGITS]
            name = f"{name[: MAX_NAME - _DIGITS - 1]}_{digest}"
        used.add(name)
        names[name] = tool_id
    return names
