"""Single cuts of a net where the rules leave room for two.

A joint is a place where metal of two neighbouring conductors of the net overlaps. A joint with one cut has room for two
if a pair of cuts, beside or about the drawn one, finds room with the metal that the rules ask for around it: clear of
other nets, of other cuts and of channels, inside the layout, and without a gap, neck, small hole or wide part in the
net's own metal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.technology import Conductor, Cut, Technology


_CHANNELS = ""


class SinglePlace(NamedTuple):
    """A single cut where two fit. [dbu]

    Attributes:
        cut: Name of the cut.
        box: The drawn cut.
        second: Another cut beside it; None where both cuts would lie beside its place.
        pads: Name of each conductor and the metal around both cuts.
    """

    cut: str
    box: kdb.Box
    second: kdb.Box | None
    pads: tuple[tuple[str, kdb.Box], ...]


@dataclass
class WholeLayout:
    """The metal of a whole layout.

    Attributes:
        technology: Its process.
        regions: Name to shapes of each conductor and cut, of all nets.
        channels: Channels of transistors, over which no metal is added. [dbu]
        area: Where metal may be. [dbu]
    """

    technology: Technology
    regions: Mapping[str, kdb.Region]
    channels: kdb.Region
    area: kdb.Box
    _shapes: dict[str, kdb.Shapes] = field(default_factory=dict)

    def near(self, name: str, box: kdb.Box) -> kdb.Region:
        """Return the merged shapes of a conductor or cut that touch ``box``, of all nets."""
        return kdb.Region([shape.polygon for shape in self.touching(name, box)])

    def touching(self, name: str, box: kdb.Box) -> Iterator[kdb.Shape]:
        """Yield the merged shapes of a conductor or cut that touch ``box``, of all nets."""
        if name not in self._shapes:
            self._shapes[name] = kdb.Shapes()
            self._shapes[name].insert(self.regions[name].merged())
        return self._shapes[name].each_touching(box)

    def covers_channel(self, metal: kdb.Region) -> bool:
        """Return whether metal lies over a channel."""
        if _CHANNELS not in self._shapes:
            self._shapes[_CHANNELS] = kdb.Shapes()
            self._shapes[_CHANNELS].insert(self.channels)
        near = [shape.polygon for shape in self._shapes[_CHANNELS].each_touching(metal.bbox())]
        return bool(near) and not (metal & kdb.Region(near)).is_empty()

    def add(self, name: str, box: kdb.Box) -> None:
        """Add metal or a cut."""
        self.touching(name, box)
        self._shapes[name].insert(box)


def single_places(around: WholeLayout, metal: Mapping[str, kdb.Region]) -> list[SinglePlace]:
    """Return the single cuts of a net where two fit, sorted by cut and place.

    Args:
        around: The layout.
        metal: Name to merged shapes of each conductor and cut of the net.
    """
    own = WholeLayout(around.technology, metal, around.channels, around.area)
    singles = _singles(around, metal)
    found = [place for cut, levels, box in singles if (place := _place(around, own, cut, levels, box))]
    return sorted(found, key=lambda each: (each.cut, each.box.left, each.box.bottom))


def with_second_cuts(around: WholeLayout, metal: Mapping[str, kdb.Region]) -> list[SinglePlace]:
    """Return the single cuts of a net that get a second one beside them, one after the other; ``around`` gets all."""
    found, own = [], dict(metal)
    for cut, levels, box in sorted(_singles(around, metal), key=lambda each: (each[0].name, str(each[2]))):
        index = WholeLayout(around.technology, own, around.channels, around.area)
        place = _place(around, index, cut, levels, box)
        if place is None or place.second is None:
            continue
        found.append(place)
        for name, added in ((cut.name, place.second), *place.pads):
            own[name] = (own[name] + kdb.Region(added)).merged()
            around.add(name, added)
    return found


def _singles(
    around: WholeLayout, metal: Mapping[str, kdb.Region]
) -> Iterator[tuple[Cut, tuple[Conductor, Conductor], kdb.Box]]:
    """Yield the cuts of a net that are alone where two of its conductors overlap, with these."""
    technology = around.technology
    conductors = {each.name: each for each in technology.conductors}
    for cut in technology.cuts:
        below, above = (conductors[technology.resolve(name)] for name in (cut.below, cut.above))
        cuts = kdb.Shapes()
        cuts.insert(metal[cut.name])
        for joint in (metal[below.name] & metal[above.name]).merged().each():
            near = [shape.bbox() for shape in cuts.each_touching(joint.bbox())]
            if len(near) > 1 and not joint.is_box():
                near = [box for box in near if joint.touches(box)]
            if len(near) == 1:
                yield cut, (below, above), near[0]


def _place(
    around: WholeLayout,
    metal: WholeLayout,
    cut: Cut,
    levels: tuple[Conductor, Conductor],
    box: kdb.Box,
) -> SinglePlace | None:
    """Return where the cut at ``box`` can be two; None where it cannot."""
    enclosures = (cut.enclose_below, cut.enclose_below_end), (cut.enclose_above, cut.enclose_above_end)
    reach = cut.size + cut.space + max(max(its) for its in enclosures) + max(level.space for level in levels)
    window = box.enlarged(reach, reach)
    close = [_close(around, metal, level.name, window) for level in levels]
    for pair in _pairs(around.technology, cut, box):
        if not _cuts_apart(around, cut, pair, box):
            continue
        hull = pair[0] + pair[1]
        pads: list[tuple[str, kdb.Box]] = []
        for level, its, near in zip(levels, enclosures, close, strict=True):
            pad = next((pad for pad in _pads(hull, *its) if _fits(around, metal, level, pad, *near)), None)
            if pad is None:
                break
            pads.append((level.name, pad))
        else:
            second = next((each for each in pair if each != box), None) if box in pair else None
            return SinglePlace(cut.name, box, second, tuple(pads))
    return None


def _pairs(technology: Technology, cut: Cut, box: kdb.Box) -> Iterator[tuple[kdb.Box, kdb.Box]]:
    """Yield two cuts side by side or above each other: the drawn one and another, or one on each side of its place."""
    pitch, grid = cut.size + cut.space, technology.grid
    for start in (0, -pitch, -(pitch // (2 * grid) * grid)):
        for dx, dy in ((1, 0), (0, 1)):
            first = box.moved(start * dx, start * dy)
            yield first, first.moved(pitch * dx, pitch * dy)


def _pads(hull: kdb.Box, side: int, end: int) -> Iterator[kdb.Box]:
    """Yield the metal around two cuts, with the larger enclosure along one direction or the other."""
    most = max(side, end)
    yield hull.enlarged(side, most)
    yield hull.enlarged(most, side)


def _cuts_apart(around: WholeLayout, cut: Cut, pair: tuple[kdb.Box, kdb.Box], drawn: kdb.Box) -> bool:
    """Return whether two cuts keep their distance from all cuts but the drawn one."""
    space = cut.spacing()
    return all(
        near.bbox().inside(drawn)
        for box in pair
        for near in around.touching(cut.name, box.enlarged(space - 1, space - 1))
    )


def _fits(
    around: WholeLayout, metal: WholeLayout, conductor: Conductor, pad: kdb.Box, own: kdb.Region, foreign: kdb.Region
) -> bool:
    """Return whether ``pad`` can be added to a net; ``own`` and ``foreign`` are its metal near it, and of others."""
    added = kdb.Region(pad) - own
    if added.is_empty():
        return True
    if not pad.inside(around.area) or around.covers_channel(added):
        return False
    space = conductor.space
    if not foreign.is_empty() and not (foreign & added.sized(space, 2)).is_empty():
        return False  # the usual reason, told from the fewest shapes
    wide, most = conductor.wide_width, conductor.spacing()
    reach = 2 * max(most, wide or 0)
    window = pad.enlarged(reach, reach)
    nearby = metal.near(conductor.name, window) & kdb.Region(window)
    if wide is not None:
        _, close = _close(around, metal, conductor.name, pad.enlarged(most, most))
        if not close.is_empty() and not (added.sized(most, 2) & close).is_empty():
            _, others = _close(around, metal, conductor.name, window)
            if not (_core(others, wide) + _core(nearby + added, wide)).is_empty():
                return False  # too near for wide metal
    after, euclidean = (nearby + added).merged(), kdb.Region.Euclidian
    return not (
        _meets(after.width_check(conductor.width, False, euclidean).polygons(), added)
        or _meets(after.space_check(conductor.space, False, euclidean).polygons(), added)
        or _meets(after.holes().with_area(0, reach * reach, False), added)
        or (wide is not None and _meets(_core_added(nearby, after, wide), added))
    )


def _close(around: WholeLayout, metal: WholeLayout, name: str, window: kdb.Box) -> tuple[kdb.Region, kdb.Region]:
    """Return the metal of a net in a window, and the shapes of other nets that touch it."""
    whole, own = around.near(name, window), metal.near(name, window)
    has_more = whole.count() > own.count() or whole.bbox() != own.bbox()
    return own & kdb.Region(window), whole - own if has_more else kdb.Region()


def _meets(region: kdb.Region, added: kdb.Region) -> bool:
    return not region.is_empty() and not region.interacting(added).is_empty()


def _core(region: kdb.Region, wide: int) -> kdb.Region:
    """Return the parts of a region that are at least ``wide``."""
    region = region.merged()
    if all(min(polygon.bbox().width(), polygon.bbox().height()) < wide - 2 for polygon in region.each()):
        return kdb.Region()
    return region.sized(-(wide // 2) + 1).sized(wide // 2 - 1)


def _core_added(before: kdb.Region, after: kdb.Region, wide: int) -> kdb.Region:
    """Return the parts of a region that are at least ``wide`` and were not."""
    core = _core(after, wide)
    return core if core.is_empty() else core - _core(before, wide)
