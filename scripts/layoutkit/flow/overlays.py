"""Plate capacitors over other modules: which may lie over which, and where they are put.

A plate capacitor consists of its plates, which use two upper conductors only, and of a foot beside them, where vias
lead down to its rails. The plates may lie over other modules; the foot lies beside all of them::

    +----------------+
    |  plates        |      the plates lie over resistors and other modules that nothing is matched to,
    |  +----------+  |      never over matched or symmetric devices
    |  | resistor |  |
    |  +----------+  |
    +----------------+
       ==[foot]==
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.constraints import OF_PLACES
from layoutkit.draw.capacitor import wide_space
from layoutkit.flow.groups import PARALLEL
from layoutkit.flow.passive_modules import PassiveGroup
from layoutkit.flow.rings import transformation
from layoutkit.place import Placed, Placement
from layoutkit.rectangle import Rectangle
from layoutkit.technology.expressions import Boolean, names, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.constraints import Constraints
    from layoutkit.draw.module import Module
    from layoutkit.flow.modules import Drawn
    from layoutkit.place import Block
    from layoutkit.technology import PassiveSpec, Technology

LEAST_PART = 0.1
"""A capacitor is laid over other modules if it takes at least this part of the area of all modules."""
_FREE_LEVELS = 2  # conductors for wires that must be left below a bottom plate, besides the lowest one
_STEPS = 6  # to both sides of a place where a capacitor's name would be written on another device
_WORD = re.compile(r"[\w.]+")
_ORIENTATIONS = (
    Placed("", 0, 0),
    Placed("", 0, 0, upside_down=True),
    Placed("", 0, 0, turned=True),
    Placed("", 0, 0, mirrored=True, upside_down=True, turned=True),
)


@dataclass(frozen=True)
class Overlay:
    """A capacitor over other modules.

    Attributes:
        name: Module of the capacitor.
        over: Modules that lie below its plates, at least in part.
    """

    name: str
    over: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"module": self.name, "over": list(self.over)}


@dataclass(frozen=True)
class _Cover:
    """A capacitor that may lie over others: its plates and its foot in its own coordinates, foot below. [dbu]"""

    name: str
    plates: kdb.Box
    foot: kdb.Box
    layers: frozenset[str]  # that a module below must not have
    names: tuple[kdb.Point, ...]  # where its name is written, which must not name another device


@dataclass(frozen=True)
class Below:
    """What limits capacitors over placed modules.

    Attributes:
        closed: Names of the modules over which nothing may lie.
        named: Channels, bars and plates as placed, which a name written on them names. [dbu]
        max_aspect: Largest ratio of the longer to the shorter side that costs nothing.
    """

    closed: frozenset[str]
    named: kdb.Region
    max_aspect: float


def rules_allow_overlay(technology: Technology, spec: PassiveSpec) -> bool:
    """Return whether no design rule restricts the layers below a capacitor's bottom plate.

    Cuts that would meet the bottom plate from below count as part of it: wires keep clear of it in any case.
    """
    if not {"plate", "bottom", "top", "cut"} <= set(spec.parts):
        return False
    level = [conductor.name for conductor in technology.conductors].index(spec.parts["bottom"])
    if level <= _FREE_LEVELS:
        return False
    own = {spec.parts["plate"], *spec.markers}
    own |= {conductor.layer for conductor in technology.conductors[level:]}
    own |= {cut.layer for cut in technology.cuts[level - 1 :]}
    plate = technology.resolve(spec.parts["plate"])
    for rule in technology.rules:
        # With layers, a rule judges each of its layers alone.
        if "layers" in rule.options or rule.options.get("scope") == "chip":
            continue
        common = {name: value for name, value in rule.options.items() if name not in {"cases", "reason"}}
        for case in rule.options.get("cases", [{}]):
            # An antenna rule judges nets: its metal and its diodes lie where they like.
            judged = [rule.options["gate"]] if rule.kind == "antenna" else [*{**common, **case}.values()]
            if rule.kind == "max_width":
                judged = [_without_cuts({**common, **case}["layer"])]
            used = {name for text in map(str, judged) for name in _base_layers(technology, text)}
            if plate in used and used - {technology.resolve(layer) for layer in own}:
                return False
    return True


def _without_cuts(text: str) -> str:
    """Return the layers of an expression but those that it takes off the rest: these make nothing wider."""
    expression = parse(text)
    while isinstance(expression, Boolean) and expression.operator == "-":
        expression = expression.left
    return " ".join(names(expression))


def _base_layers(technology: Technology, text: str) -> set[str]:
    """Return the drawn layers that an expression of a rule names, through derived layers."""
    found, waiting, seen = set(), set(_WORD.findall(text)), set[str]()
    while waiting:
        word = waiting.pop()
        if word in seen:
            continue
        seen.add(word)
        if word in technology.derived:
            waiting |= set(_WORD.findall(str(technology.derived[word])))
        elif word in technology.layers:
            found.add(word)
    return found


def covers(drawn: Sequence[Drawn], technology: Technology, constraints: Constraints) -> list[_Cover]:
    """Return the capacitors that may lie over other modules and are large enough for it, the largest first."""
    critical = critical_devices(constraints) | constraints.devices_in("proximity", *OF_PLACES)
    total = sum(item.module.bbox.area() for item in drawn)
    found = []
    for item in drawn:
        if not isinstance(item.group, PassiveGroup) or item.group.type not in {"single", PARALLEL}:
            continue
        if item.group.spec.type != "capacitor" or critical & set(item.module.devices):
            continue
        spec = technology.passive(item.group.spec.name)
        if item.module.bbox.area() >= LEAST_PART * total and rules_allow_overlay(technology, spec):
            cover = _cover(technology, item.module, spec)
            if cover is not None:
                found.append((item.module.bbox.area(), cover))
    return [cover for _, cover in sorted(found, key=lambda each: (-each[0], each[1].name))]


def critical_devices(constraints: Constraints) -> set[str]:
    """Return the devices over which nothing may lie: those that are matched or symmetric."""
    return constraints.devices_in("matching", "symmetry")


def _cover(technology: Technology, module: Module, spec: PassiveSpec) -> _Cover | None:
    """Return the plates and the foot of a capacitor; None where its lower conductors do not end below the plates."""
    level = [conductor.name for conductor in technology.conductors].index(spec.parts["bottom"])
    lower = [conductor.layer for conductor in technology.conductors[:level]]
    lower += [cut.layer for cut in technology.cuts[:level]]
    low = kdb.Box()
    for layer in lower:
        low += module.cell.bbox(technology.layer(module.layout, layer))
    bottom, plate = (
        technology.region(module.cell, layer).merged()
        for layer in (technology.conductors[level].layer, spec.parts["plate"])
    )
    high = bottom.interacting(plate).bbox()
    box = module.bbox
    if low.empty() or high.empty() or low.top > high.bottom:
        return None
    above = {technology.conductors[index].layer for index in range(level, len(technology.conductors))}
    above |= {cut.layer for cut in technology.cuts[level - 1 :]}
    return _Cover(
        module.name,
        kdb.Box(box.left, high.bottom, box.right, box.top),
        kdb.Box(box.left, box.bottom, box.right, high.bottom),
        frozenset(technology.resolve(layer) for layer in above),
        tuple(gate.box.center() for gate in module.gates),
    )


def lay_over(
    technology: Technology,
    found: Sequence[_Cover],
    blocks: Sequence[Block],
    placement: Placement,
    below: Below,
    room: int,
) -> tuple[Placement, tuple[Overlay, ...]]:
    """Return the placement with the capacitors added over other blocks, and which blocks each one covers.

    A capacitor that would lie over too much lies beside the others.

    Args:
        technology: Gives the spaces of wide metal.
        found: The capacitors, as ``covers`` returns them.
        blocks: All blocks.
        placement: Of the blocks without these capacitors.
        below: What limits them.
        room: Room for wires between a foot and the other modules. [dbu]
    """
    by_name = {block.name: block for block in blocks}
    gap = max(wide_space(conductor) for conductor in technology.conductors) + room
    wells = max(technology.dim("well_space", spec) for spec in technology.devices.values())
    placed = dict(placement.placed)
    boxes: dict[str, kdb.Box] = {}
    for name, place in placed.items():
        shape = place.shape(by_name[name])
        boxes[name] = kdb.Box(*place.rectangle(shape.ring.outside.box if shape.ring else shape.box))
    layers = {name: set(place.shape(by_name[name]).layer_boxes) for name, place in placed.items()}
    overlays = []
    for cover in found:
        closed = {name for name in boxes if name in below.closed or layers[name] & cover.layers}
        place = _best(
            cover,
            boxes,
            replace(below, closed=frozenset(closed)),
            -(-max(gap, wells) // technology.grid) * technology.grid,
        )
        placed[cover.name] = replace(place, name=cover.name)
        plates = cover.plates.transformed(transformation(place))
        overlays.append(Overlay(cover.name, tuple(name for name, box in boxes.items() if box.overlaps(plates))))
        boxes[cover.name] = plates + cover.foot.transformed(transformation(place))
        layers[cover.name] = set(cover.layers)
    whole = kdb.Box()
    for name, place in placed.items():
        whole += kdb.Box(*place.box(by_name[name]))
    box = Rectangle(whole.left, whole.bottom, whole.right, whole.top)
    return replace(placement, placed=placed, box=box), tuple(overlays)


def _best(cover: _Cover, boxes: Mapping[str, kdb.Box], below: Below, gap: int) -> Placed:
    """Return the place of a capacitor that makes the layout least large; its foot lies beside all other modules."""
    best: tuple[tuple[int, int], Placed] | None = None
    for number, orientation in enumerate(_ORIENTATIONS):
        turn = transformation(orientation)
        back = turn.inverted()
        others = {name: back * box for name, box in boxes.items()}
        around = kdb.Box()
        for box in others.values():
            around += box
        for x, top in product(*_candidates(cover, others, below.closed, around, gap)):
            y = top - cover.foot.top
            plates = cover.plates.moved(x, y)
            if any(others[name].enlarged(gap, gap).overlaps(plates) for name in below.closed):
                continue
            moved = turn * kdb.Vector(x, y)
            key = (outline_area(around + plates + cover.foot.moved(x, y), below.max_aspect), number)
            if (best is None or key < best[0]) and not _misnames(cover, below.named, kdb.Trans(moved) * turn):
                best = key, replace(orientation, x=moved.x, y=moved.y)
    assert best is not None  # noqa: S101 - beside everything there is always a place
    return best[1]


def outline_area(box: kdb.Box, max_aspect: float) -> int:
    """Return the area of a box made wider or higher until its sides have an allowed ratio. [dbu2]"""
    short, long = sorted((box.width(), box.height()))
    return int(max(short, long / max_aspect) * long)


def _misnames(cover: _Cover, named: kdb.Region, trans: kdb.Trans) -> bool:
    """Return whether the name of a capacitor would be written on another device."""
    points = kdb.Region()
    for point in cover.names:
        at = trans * point
        points.insert(kdb.Box(at.x - 1, at.y - 1, at.x + 1, at.y + 1))
    return not points.interacting(named).is_empty()


def _candidates(
    cover: _Cover, others: Mapping[str, kdb.Box], closed: frozenset[str], around: kdb.Box, gap: int
) -> tuple[list[int], list[int]]:
    """Return x of the capacitor and the upper edge of its foot to try: flush with the others, or beside closed ones."""
    plates = cover.plates
    xs = {around.left - plates.left, around.right - plates.right, around.right + gap - plates.left}
    xs |= {around.left - gap - plates.right}
    xs |= {x + step * gap for x in tuple(xs) for step in range(-_STEPS, _STEPS + 1)}
    tops = {around.bottom - gap}
    for name in closed:
        xs |= {others[name].right + gap - plates.left, others[name].left - gap - plates.right}
        tops.add(min(around.bottom - gap, others[name].bottom - gap - plates.height()))
    return sorted(xs), sorted(tops, reverse=True)
