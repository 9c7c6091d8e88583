"""Black boxes: instances of empty or undefined subcircuits, kept only if the caller lists the subcircuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.errors import MAX_NAME, NetlistError, listed, sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.circuit.circuit import BlackBox

BLACK_BOX_HINT = (
    "add its content to the netlist, or list it in black_boxes, so that its instances are neither drawn nor compared"
)
_SHOWN = 5


def refuse_empty(empty: Mapping[str, Sequence[str]], hint: str = "") -> None:
    """Refuse the instances of empty subcircuits that are not listed as black boxes.

    Args:
        empty: Name of an empty subcircuit to the instances of it.
        hint: What to do about some of them, as the end of the message.

    Raises:
        NetlistError: If there is any; it names all of them.
    """
    if not empty:
        return
    raise NetlistError(
        f"Empty subcircuits, whose devices are unknown: {with_users(empty)}. For each, {BLACK_BOX_HINT}{hint}",
        details={"empty": {name: list(users[:100]) for name, users in sorted(empty.items())}},
    )


def with_users(cells: Mapping[str, Sequence[str]]) -> str:
    """Return cells with their instances for a message, the first ones of both."""
    return sentences(
        f"'{name[:MAX_NAME]}' (used by {listed(users[:_SHOWN])}{' and more' if len(users) > _SHOWN else ''})"
        for name, users in sorted(cells.items())
    )


def check_listed(names: Collection[str], found: Sequence[BlackBox]) -> None:
    """Refuse listed names that are not black boxes of the circuit, since they may be misspelt.

    Raises:
        NetlistError: If the circuit has no instance of an empty or undefined subcircuit of a listed name.
    """
    used = {box.cell.lower() for box in found}
    unused = sorted(name for name in names if name.lower() not in used)
    if unused:
        raise NetlistError(
            f"black_boxes lists {listed(unused)}: the circuit has no instance of an empty or undefined subcircuit "
            f"of that name; it has {listed(sorted({box.cell for box in found})) or 'none'}",
            details={"param_name": "black_boxes", "provided_value": unused},
        )
