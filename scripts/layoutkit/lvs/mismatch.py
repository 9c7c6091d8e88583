"""The differences that LVS reports; each text names both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutkit.extract.extracted import Point

# Kinds in the order of the report: causes first, possible consequences last.
KINDS = (
    "nothing_compared",
    "unrecognised_device",
    "short",
    "open",
    "floating_bulk",
    "missing_device",
    "extra_device",
    "swapped_nets",
    "swapped_ports",
    "wrong_connection",
    "wrong_parameter",
    "missing_port",
    "extra_port",
    "net_mismatch",
)


@dataclass(frozen=True)
class Mismatch:
    """One difference.

    Attributes:
        kind: One of ``KINDS``.
        message: What differs, naming net or device on both sides.
        cause: What most often is behind it, and what to look at.
        reference: Names of the netlist's nets or devices concerned.
        layout: The layout's names of nets or devices, with a place to look at where there is one.
    """

    kind: str
    message: str
    cause: str
    reference: tuple[str, ...] = ()
    layout: tuple[tuple[str, Point | None], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the mismatch as JSON data; places in micrometres."""
        return {
            "kind": self.kind,
            "message": self.message,
            "cause": self.cause,
            "reference": list(self.reference),
            "layout": [
                {"name": name, "x": None, "y": None} if place is None else {"name": name, "x": place.x, "y": place.y}
                for name, place in self.layout
            ],
        }

    @property
    def rank(self) -> tuple[int, str]:
        """Sorts mismatches: by kind, then by text."""
        return KINDS.index(self.kind), self.message


def at(place: Point | None) -> str:
    """Return `` at (x, y)`` for a sentence, nothing when there is no place."""
    return "" if place is None else f" at ({place.x:g}, {place.y:g}) um"


def fingers_text(count: int) -> str:
    """Return a number of fingers for a sentence."""
    return "1 finger" if count == 1 else f"{count} fingers"


def parts_text(count: int) -> str:
    """Return a number of bars or plates for a sentence."""
    return "1 part" if count == 1 else f"{count} parts"
