"""The places that modules keep when a circuit is built again with other sizes, and what had to move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.flow.module_blocks import rectangle
from layoutkit.flow.overlays import Overlay
from layoutkit.place.kept_places import EarlierPlaces, kept_placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.placing import PlacedModules, TriedPlacement
    from layoutkit.place import Block, Placement
    from layoutkit.technology import Technology

MAX_NAMED = 8


@dataclass(frozen=True)
class KeptPlaces:
    """What became of the places of an earlier build.

    Attributes:
        kept: Modules that are drawn as before where they were before.
        redrawn: Modules that are new or have another size.
        moved: Modules that are drawn as before, each with how far it moved in x and y. [dbu]
        reason: Why the earlier places were given up; empty where they were not.
    """

    kept: tuple[str, ...]
    redrawn: tuple[str, ...]
    moved: tuple[tuple[str, int, int], ...]
    reason: str = ""

    def to_json(self, technology: Technology) -> dict[str, Any]:
        """Return it as JSON data, lengths in micrometres."""
        um = technology.to_um
        return {
            "kept": list(self.kept),
            "redrawn": list(self.redrawn),
            "moved": [{"module": name, "by": [um(dx), um(dy)]} for name, dx, dy in self.moved],
            **({"reason": self.reason} if self.reason else {}),
        }

    def text(self, technology: Technology) -> str:
        """Return a sentence that says what had to move; empty where nothing had to."""
        if not self.moved:
            return ""
        um, more = technology.to_um, len(self.moved) - MAX_NAMED
        listed = [f"{name} by ({um(dx):g}, {um(dy):g}) um" for name, dx, dy in self.moved[:MAX_NAMED]]
        why = self.reason or f"{', '.join(self.redrawn)} needed more room"
        return f"{why}: moved {', '.join(listed)}{f' and {more} more' if more > 0 else ''}"


def earlier_places(tried: TriedPlacement, resized: Iterable[str]) -> EarlierPlaces:
    """Return the places of a placement, which a later build with other sizes of ``resized`` may keep."""
    placed = tried.placed
    return EarlierPlaces(
        placed.placement,
        {item.module.name: rectangle(item.module.bbox) for item in placed.drawn},
        {item.module.name: item.module.devices for item in placed.drawn},
        tried.room.between,
        {each.name: each.over for each in placed.overlays},
        frozenset(resized),
    )


def kept_modules(
    technology: Technology, drawn: Sequence[Drawn], blocks: Sequence[Block], earlier: EarlierPlaces
) -> tuple[Placement, tuple[Overlay, ...]] | None:
    """Return a placement that keeps earlier places, with the capacitors over other modules; None if there is none."""
    devices = {item.module.name: item.module.devices for item in drawn}
    placement = kept_placement(technology, blocks, devices, earlier)
    if placement is None or not set(earlier.overlaid) <= set(placement.placed):
        return None
    return placement, tuple(Overlay(name, over) for name, over in earlier.overlaid.items())


def compared_places(earlier: EarlierPlaces, placed: PlacedModules, reason: str = "") -> KeptPlaces:
    """Return which modules kept their earlier places."""
    kept, redrawn, moved = [], [], []
    for item in placed.drawn:
        name, box = item.module.name, rectangle(item.module.bbox)
        if earlier.boxes.get(name) != box or not earlier.resized.isdisjoint(item.module.devices):
            redrawn.append(name)
            continue
        before, now = earlier.rectangle(name), placed.placement.placed[name].rectangle(box)
        if before == now:
            kept.append(name)
        else:
            moved.append((name, now.left - before.left, now.bottom - before.bottom))
    return KeptPlaces(
        tuple(sorted(kept, key=str)), tuple(sorted(redrawn, key=str)), tuple(sorted(moved, key=str)), reason
    )
