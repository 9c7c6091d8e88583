"""Resistors in series as one: bars of one width, joined by nets that lead nowhere else.

Folding alternates with the parallel kind until nothing changes, so that strings of bars in parallel become one device
whichever way they are joined. What the netlist has in series is folded the same way before it is compared.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_WIDTH_TOLERANCE_UM = 1e-6


class Foldable(Protocol):
    """A device that can be folded with others."""

    @property
    def device(self) -> str:
        """Name of its type."""

    @property
    def nets(self) -> Mapping[str, Any]:
        """Its nets by terminal."""

    @property
    def w_um(self) -> float:
        """Width. [um]"""

    @property
    def l_um(self) -> float:
        """Length. [um]"""

    def in_series(self, other: Any, nets: Mapping[str, Any]) -> Any:
        """Return both as one device on ``nets`` whose lengths add up."""

    def in_parallel(self, other: Any) -> Any:
        """Return both as one device whose widths add up."""


Part = TypeVar("Part", bound=Foldable)


def fold_series(devices: Sequence[Part], resistors: Collection[str], named: Collection[Any]) -> tuple[Part, ...]:
    """Return ``devices`` with resistors in series and in parallel made one; others stay as they are, where they are.

    Args:
        devices: Devices, those in parallel and of one length combined already.
        resistors: Names of the types that fold.
        named: Nets that lead out and stay: labelled nets of a layout, ports of a circuit.
    """
    parts = _paralleled(list(devices), resistors)
    while True:
        joined = _chained(parts, resistors, named)
        if len(joined) == len(parts):
            return tuple(parts)
        parts = _paralleled(joined, resistors)


def _paralleled(parts: list[Part], resistors: Collection[str]) -> list[Part]:
    """Return the parts with resistors of one length between the same nets made one."""
    found: dict[Any, Part] = {}
    for index, part in enumerate(parts):
        key: Any = index
        if part.device in resistors:
            ends = frozenset((part.nets["p"], part.nets["n"]))
            key = (part.device, part.nets.get("b"), ends, round(part.l_um, 6))
        found[key] = found[key].in_parallel(part) if key in found else part
    return list(found.values())


def _chained(parts: list[Part], resistors: Collection[str], named: Collection[Any]) -> list[Part]:
    """Return the parts with those made one that a net joins which meets nothing else."""
    meeting = Counter(net for part in parts for net in part.nets.values())
    ends: dict[Any, list[int]] = {}
    for index, part in enumerate(parts):
        if part.device in resistors:
            for end in ("p", "n"):
                ends.setdefault(part.nets[end], []).append(index)
    found: list[Part | None] = list(parts)
    holder = list(range(len(parts)))

    def root(index: int) -> int:
        while holder[index] != index:
            holder[index] = holder[holder[index]]
            index = holder[index]
        return index

    for net, indexes in ends.items():
        if net in named or meeting[net] != 2 or len(indexes) != 2:
            continue
        first, second = sorted(root(index) for index in indexes)
        one, other = found[first], found[second]
        if first == second or one is None or other is None or not _alike(one, other):
            continue
        outer = [part.nets["n"] if part.nets["p"] == net else part.nets["p"] for part in (one, other)]
        found[first] = one.in_series(other, {**one.nets, "p": outer[0], "n": outer[1]})
        found[second] = None
        holder[second] = first
    return [part for part in found if part is not None]


def _alike(one: Foldable, other: Foldable) -> bool:
    same = one.device == other.device and one.nets.get("b") == other.nets.get("b")
    return same and abs(one.w_um - other.w_um) <= _WIDTH_TOLERANCE_UM
