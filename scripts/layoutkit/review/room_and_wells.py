"""Findings on room and wells: how full the layout is, its shape, rings that could be one, distances to taps."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.check import Options, check_cell
from layoutkit.review.finding import Unjudged
from layoutkit.review.subject import box_around, gap_between, longer_side, names_of, region_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.review.finding import Finding
    from layoutkit.review.subject import PlacedDevice, Subject

    Devices = list[PlacedDevice]

_CLOSE_UM = 0.5  # gaps up to this within what is used are used [um]
_LEAST_DEVICES = 8  # from which the room of a layout is judged
_BUNDLE = 3  # wires on fewer tracks than this cross a place without filling it
_BESIDE_UM = 2.0  # from a transistor to its dummies [um]
_NEIGHBOUR_UM = 5.0  # rings this near to each other could be one [um]


def room_and_wells(subject: Subject) -> Iterator[Finding]:
    """Yield all findings."""
    yield from room(subject)
    yield from shape(subject)
    yield from rings(subject)
    yield from lone_dummies(subject)
    yield from well_tap(subject)
    yield from domains(subject)


def room(subject: Subject) -> Iterator[Finding]:
    """Yield how the room of the layout is used."""
    if len(subject.placed) < _LEAST_DEVICES:
        return
    asked = subject.asked.outline if subject.asked is not None else ()
    if any(each.width or each.height for each in asked):
        return
    used, core = _used(subject)
    share = (used & kdb.Region(core)).area() / core.area()
    packed = subject.finding("room.used", share, f"devices and wells use {100 * share:.3g} % of the core", where=core)
    whole = used.area() / subject.box.area()
    yield from packed or subject.finding(
        "room.box", whole, f"devices and wells use {100 * whole:.3g} % of the layout, wires the rest", where=subject.box
    )
    for crossed in (False, True):  # by a few wires: the hands have such places, too
        empty = _largest_empty(subject, crossed=crossed)
        share = empty.area() / subject.box.area()
        found = subject.finding(
            "room.empty",
            share,
            f"an empty rectangle of {subject.um(empty.width()):.3g} x {subject.um(empty.height()):.3g} um, "
            f"{100 * share:.3g} % of the layout{', but for wires that cross it' * crossed}",
            where=empty,
            most="should" if crossed else "must",
        )
        if found and (crossed or found[0].severity == "must"):
            yield from found
            return


def shape(subject: Subject) -> list[Finding]:
    """Return whether the layout exceeds the requested outline or, if none is requested, is too long."""
    box = subject.box
    sizes = {
        "width": subject.um(box.width()),
        "height": subject.um(box.height()),
        "aspect": longer_side(box) / min(box.width(), box.height()),
    }
    asked = {
        name: getattr(each, name)
        for each in (subject.asked.outline if subject.asked is not None else ())
        for name in sizes
        if getattr(each, name)
    }
    if asked:
        name = max(asked, key=lambda each: sizes[each] / asked[each])
        return subject.finding(
            "room.asked",
            sizes[name] / asked[name],
            f"the layout has {name} {sizes[name]:.3g}, asked for at most {asked[name]:.3g}",
            where=box,
        )
    if len(subject.placed) < _LEAST_DEVICES:
        return []
    return subject.finding(
        "room.aspect", sizes["aspect"], f"the layout is {sizes['aspect']:.3g} times as long as it is wide", where=box
    )


def _used(subject: Subject) -> tuple[kdb.Region, kdb.Box]:
    """Return the area of wells, diffusion, taps, poly and plates with what rings enclose, and the box around it."""
    roles = ("nwell", "pwell", "deep_nwell", "active", "tap", "poly")
    every = kdb.Region()
    for role in roles:
        every += subject.role(role)
    for spec in subject.technology.passives.values():
        if "plate" in spec.parts:
            every += subject.layer(spec.parts["plate"])
    half = subject.technology.to_dbu(_CLOSE_UM) // 2
    closed = every.merged().sized(half).merged().sized(-half)
    return closed.hulls().merged(), every.bbox()


def _largest_empty(subject: Subject, *, crossed: bool) -> kdb.Box:
    """Return the largest rectangle without any shape on a mask, or without any but a few wires. [dbu]"""
    drawn, pitches = kdb.Region(), {each.layer: each.width + each.space for each in subject.technology.conductors}
    for spec in subject.technology.layers.values():
        if spec.on_a_mask:
            shapes, pitch = subject.layer(spec.name), pitches.get(spec.name)
            if crossed and pitch is not None:
                bundles = shapes.sized(pitch // 2).merged()
                shapes = bundles.sized(-_BUNDLE * pitch // 2).merged().sized((_BUNDLE - 1) * pitch // 2)
            drawn += shapes
    return largest_empty(subject.box, drawn)


def rings(subject: Subject) -> Iterator[Finding]:
    """Yield the devices with a ring of their own beside another ring of the same net."""
    near = subject.technology.to_dbu(_NEIGHBOUR_UM)
    for net in subject.nets:
        for layer in ("n_tap", "p_tap"):
            found = [
                (box, [p for p in subject.placed if hole.inside(p.box.center()) and not subject.is_idle(p)])
                for box, hole in _rings(subject, net, layer)
            ]
            beside = [
                (box, inside[0])
                for box, inside in found
                if len(inside) == 1 and any(_joins(box, inside, other, its, near) for other, its in found)
            ]
            devices = [placed for _, placed in beside]
            yield from subject.finding(
                "rings",
                len(beside),
                f"{names_of(devices)} {'has a ring' if len(devices) == 1 else 'have rings'} of "
                f"{'its' if len(devices) == 1 else 'their'} own beside others of {net}",
                where=box_around(box for box, _ in beside),
                devices=devices,
                nets=[net],
            )


def _joins(box: kdb.Box, alone: Devices, other: kdb.Box, its: Devices, near: int) -> bool:
    """Return whether a device could be in the ring beside its own: that of one, or, if a transistor, a larger one."""
    larger = alone[0].device.is_mos and other.area() > box.area()
    return bool(its) and its != alone and (len(its) == 1 or larger) and gap_between(box, other) <= near


def _rings(subject: Subject, net: str, layer: str) -> Iterator[tuple[kdb.Box, kdb.Polygon]]:
    """Yield the rings of taps of a net: its box and what each encloses."""
    for ring in subject.shapes(net, layer).each():
        for number in range(ring.holes()):
            yield ring.bbox(), kdb.Polygon(list(ring.each_point_hole(number)))


def domains(subject: Subject) -> Iterator[Finding]:
    """Yield the supply domains, where there are several, whose transistors no ring of their own encloses."""
    domains: dict[str, dict[str, list[PlacedDevice]]] = defaultdict(lambda: defaultdict(list))
    for placed in subject.placed:
        bulk = placed.device.terminals.get("b")
        if placed.device.is_mos and bulk in subject.supplies:
            domains[placed.device.type][str(bulk)].append(placed)
    for wells in domains.values():
        for net, devices in wells.items() if len(wells) > 1 else ():
            holes = [hole for layer in ("n_tap", "p_tap") for _, hole in _rings(subject, net, layer)]
            bare = [placed for placed in devices if not any(hole.inside(placed.box.center()) for hole in holes)]
            yield from subject.finding(
                "well-tap.domain",
                len(bare),
                f"no ring of {net} encloses {names_of(bare)}, which {'lies' if len(bare) == 1 else 'lie'} "
                "beside another supply domain",
                devices=bare,
                nets=[net],
            )


def lone_dummies(subject: Subject) -> list[Finding]:
    """Return the transistors that are off for good and lie beside no other transistor: they guard nothing."""
    reach = subject.technology.to_dbu(_BESIDE_UM)
    used = kdb.Shapes()
    for placed in subject.placed:
        if placed.device.is_mos and not subject.is_idle(placed):
            used.insert(region_of(placed.boxes))
    # A row of dummies beside a transistor guards it, too.
    rows = region_of(box.enlarged(reach // 2, reach // 2) for box in subject.idle_boxes).merged()
    near = ((row.bbox(), row.bbox().enlarged(reach // 2, reach // 2)) for row in rows.each())
    lone = [row for row, around in near if next(used.each_touching(around), None) is None]
    count = sum(any(box.inside(row) for row in lone) for box in subject.idle_boxes)
    return subject.finding(
        "rings.dummies",
        count,
        f"{count} {'transistors that are' if count > 1 else 'transistor that is'} off for good "
        f"{'lie beside none that they' if count > 1 else 'lies beside none that it'} could guard",
        where=box_around(lone),
    )


def well_tap(subject: Subject) -> Iterator[Finding]:
    """Yield what is too far from a tap, by the process's own rules of latch-up."""
    rules = [rule.id for rule in subject.technology.rules if rule.kind == "tap_distance"]
    if not rules:
        subject.unjudged.append(
            Unjudged("well-tap", f"{subject.technology.name} states no distance to taps", matters=True)
        )
        return
    options = Options(rule_ids=rules, chosen_rules=True, max_violations=20)
    report = check_cell(subject.cell.layout(), subject.cell, subject.technology, options).summary()
    for rule in report["violations"]:
        place = rule["locations"][0]
        dbu = subject.technology.dbu_um
        box = kdb.DBox(*(place.get("box") or (place["x"], place["y"], place["x"], place["y"]))).to_itype(dbu)
        yield from subject.finding(
            "well-tap", 1.001, f"{rule['count']} places break {rule['rule_id']}: {rule['rule_description']}", where=box
        )


def largest_empty(area: kdb.Box, drawn: kdb.Region) -> kdb.Box:
    """Return the largest rectangle in an area without any shape, by the largest rectangle under a histogram.

    Args:
        area: Where to look. [dbu]
        drawn: What is in the way. [dbu]
    """
    steps = 128  # both sides are divided into so many strips; a strip that a shape enters is taken
    width, height = max(1, area.width() // steps), max(1, area.height() // steps)
    columns, rows = -(-area.width() // width), -(-area.height() // height)
    taken = drawn.rasterize(area.p1, kdb.Vector(width, height), columns, rows)
    best, found = 0, (0, 0, 0, 0)
    free = [0] * columns
    for row in range(rows):
        free = [0 if taken[row][column] else free[column] + 1 for column in range(columns)]
        stack: list[tuple[int, int]] = []
        for column, tall in enumerate([*free, 0]):
            start = column
            while stack and stack[-1][1] >= tall:
                start, depth = stack.pop()
                size = depth * height * (column - start) * width
                if size > best:
                    best, found = size, (start, row - depth + 1, column, row + 1)
            stack.append((start, tall))
    if not best:
        return kdb.Box(area.p1, area.p1)
    left, bottom = area.left + found[0] * width, area.bottom + found[1] * height
    right, top = min(area.right, area.left + found[2] * width), min(area.top, area.bottom + found[3] * height)
    before = drawn & kdb.Region(kdb.Box(area.left, bottom, left, top))
    after = drawn & kdb.Region(kdb.Box(right, bottom, area.right, top))
    left = area.left if before.is_empty() else before.bbox().right
    right = area.right if after.is_empty() else after.bbox().left
    below = drawn & kdb.Region(kdb.Box(left, area.bottom, right, bottom))
    above = drawn & kdb.Region(kdb.Box(left, top, right, area.top))
    bottom = area.bottom if below.is_empty() else below.bbox().top
    top = area.top if above.is_empty() else above.bbox().bottom
    return kdb.Box(left, bottom, right, top)
