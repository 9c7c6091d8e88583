"""Vectors of instances and of nets: ``XM1<1:0>``, ``a[3:0]``, ``<*2>a``, ``2*(a)``; bits are in the order of writing.

::

    XM1<1:0> y a<1:0> n vss nch    becomes    XM1<1> y a<1> n vss nch
                                              XM1<0> y a<0> n vss nch
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.errors import NetlistError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.circuit.readers.spice_lines import Statement

MAX_BITS = 4096
VECTOR = re.compile(r"[<\[]\d+:\d+(?::\d+)?[>\]]")
"""What only the name of a vector contains."""

_BITS = re.compile(r"(?P<stem>[^<>\[\]]+)(?P<open>[<\[])(?P<first>\d{1,6}):(?P<last>\d{1,6})[>\]]")
_REPEATED = re.compile(r"(?:<\*(\d{1,6})>|(\d{1,6})\*)(.*)")


def is_vector(word: str) -> bool:
    """Return whether a word stands for several nets or instances."""
    return _BITS.fullmatch(word) is not None or _REPEATED.fullmatch(word) is not None


def bits(word: str) -> list[str]:
    """Return the single names that a word stands for: the word itself if it is no vector.

    Raises:
        NetlistError: If it stands for more than ``MAX_BITS``.
    """
    again = _REPEATED.fullmatch(word)
    found = _BITS.fullmatch(word)
    if again is not None and again[3]:
        count, names = int(again[1] or again[2]), bits(again[3])
        if not 0 < count * len(names) <= MAX_BITS:
            raise NetlistError(f"'{word}' has {'no' if count == 0 else f'more than {MAX_BITS}'} bits")
        return names * count
    if found is None:
        return [word]
    first, last = int(found["first"]), int(found["last"])
    if abs(first - last) >= MAX_BITS:
        raise NetlistError(f"'{word}' has more than {MAX_BITS} bits")
    step = 1 if last >= first else -1
    close = ">" if found["open"] == "<" else "]"
    return [f"{found['stem']}{found['open']}{number}{close}" for number in range(first, last + step, step)]


def with_bits(words: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the single names of all words, and how many each word stands for."""
    each = [bits(word) for word in words]
    return [name for names in each for name in names], [len(names) for names in each]


def _joined(words: Sequence[str]) -> list[str]:
    """Return words with ``2*`` and ``a``, which ``2*(a)`` was split into, as one."""
    joined: list[str] = []
    for word in words:
        if joined and re.fullmatch(r"\d+\*", joined[-1]):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def single_instances(statement: Statement, widths: Sequence[int] | None) -> list[Statement]:
    """Return a card as one card for each instance that its name stands for, with the nodes of each.

    A node as wide as its port leads to every instance; one as wide as the ports of all instances is divided among them,
    in the order of its bits, as in CDL.

    Args:
        statement: The card.
        widths: Bits of each port of the subcircuit that it instantiates; None where it is a device.

    Raises:
        NetlistError: If a node has another width.
    """
    name, *nodes = statement.words if widths is None else _joined(statement.words)
    names = bits(name)
    if len(names) == 1 and widths is not None:
        return [replace(statement, words=(name, *with_bits(nodes[:-1])[0], nodes[-1]))]
    if len(names) == 1:
        return [statement]
    if not nodes:
        raise NetlistError(f"'{name}' has no nodes")
    if statement.pins:
        raise NetlistError(f"'{name}': a vector of instances needs its nodes in order, without $PINS")
    if widths is not None and len(widths) != len(nodes) - 1:
        raise NetlistError(f"'{name}' connects {len(nodes) - 1} nodes to a subcircuit of {len(widths)} ports")
    shared: list[list[list[str]]] = []
    for node, width in zip(nodes, [*(widths or [1] * (len(nodes) - 1)), 1], strict=True):
        found = bits(node) if widths is not None or VECTOR.search(node) else [node]
        if len(found) == width:
            shared.append([found] * len(names))
        elif len(found) == width * len(names):
            shared.append([found[start : start + width] for start in range(0, len(found), width)])
        else:
            allowed = f"{width} or {width * len(names)}"
            raise NetlistError(f"'{name}': '{node}' has {len(found)} bits; {len(names)} instances need {allowed}")
    cards = []
    for number, single in enumerate(names):
        words = (word for node in shared for word in node[number])
        cards.append(replace(statement, words=(single, *words)))
    return cards
