"""Findings on the floorplan: sides of the rails, order of stages, room, rings, taps, and what repeats."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import cached_property
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.circuit.orientation import carries_both_ways
from layoutkit.drc.check import Options, check_cell
from layoutkit.review.finding import Unjudged
from layoutkit.review.subject import box_around, gap_between

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.circuit.supplies import Supplies
    from layoutkit.review.finding import Finding
    from layoutkit.review.subject import PlacedDevice, Subject

_RAIL_LENGTH = 0.5
"""Share of the layout's width or height from which on a straight piece of a supply is a rail. [1]"""
_RAIL_ASPECT = 4  # a rail is at least so many times as long as it is wide
_CLOSE_UM = 0.5  # gaps up to this within what is used are used [um]
_EDGE_UM = 0.5  # metal this near to the edge of the cell is at the edge [um]
_LEAST_DEVICES = 8  # from which the room of a layout is judged
_NEIGHBOUR_UM = 5.0  # rings this near to each other could be one [um]


class Floorplan:
    """The findings on the floorplan of one layout.

    Args:
        subject: The layout.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.unjudged: list[Unjudged] = []
        self.box = subject.cell.bbox()
        self.core = box_around(placed.box for placed in subject.placed if placed.device.is_mos)

    def findings(self) -> Iterator[Finding]:
        """Yield all findings."""
        yield from self.rail_side()
        yield from self.flow_order()
        yield from self.rails()
        yield from self.ports()
        yield from self.room()
        yield from self.rings()
        yield from self.well_tap()
        yield from self.repeated()

    def _rails(self, net: str) -> list[kdb.Box]:
        """Return the straight horizontal pieces of a supply that are long enough for a rail, from below."""
        found = []
        for conductor, region in self.subject.metal(net).items():
            least = self.subject.technology.conductor(conductor).width
            for polygon in region.each():
                for piece in polygon.decompose_trapezoids(kdb.Polygon.TD_htrapezoids):
                    box = piece.bbox()
                    long = box.width() >= max(_RAIL_LENGTH * self.core.width(), _RAIL_ASPECT * box.height())
                    if long and min(box.width(), box.height()) >= least:
                        found.append(box)
        return sorted(found, key=lambda box: (box.bottom, box.top, box.left))

    @cached_property
    def _side_of_power(self) -> int:
        """1 if power has the highest rail about the transistors and ground the lowest, -1 the other way, 0 for neither.

        Where the pieces near the transistors do not tell, those of the whole layout do.
        """
        core = box_around(placed.box for placed in self.subject.placed if placed.device.is_mos)
        near = core.enlarged(core.width() // 2, core.height() // 2)
        return next((side for area in (near, self.box) if (side := self._side_within(area))), 0)

    def _side_within(self, area: kdb.Box) -> int:
        ends = []
        for nets in (self.subject.supplies.power, self.subject.supplies.ground):
            rails = [rail for net in nets if net in self.subject.number for rail in self._rails(net)]
            rails = [rail for rail in rails if area.contains(rail.center())]
            if not rails:
                return 0
            ends.append((min(rail.bottom for rail in rails), max(rail.top for rail in rails)))
        power, ground = ends
        if power[1] > ground[1] and power[0] > ground[0]:
            return 1
        return -1 if power[1] < ground[1] and power[0] < ground[0] else 0

    def rail_side(self) -> Iterator[Finding]:
        """Yield the stages that lie upside down between their rails, and power devices at the wrong rail."""
        subject, supplies = self.subject, self.subject.supplies
        up = self._side_of_power
        if not up:
            if supplies.power and supplies.ground:
                reason = "power and ground are not at opposite sides of the layout"
                self.unjudged.append(Unjudged("rail-side", reason))
            return
        both_ways = carries_both_ways(subject.circuit)
        for stage in self._stages():
            wrong: dict[int, PlacedDevice] = {}
            most = 0
            one_way = [placed for placed in stage if placed.id not in both_ways]
            for above, below in _in_series(one_way, supplies):
                depth = below.box.bottom - above.box.top if up > 0 else above.box.bottom - below.box.top
                if depth >= 0:
                    wrong |= {above.index: above, below.index: below}
                    most = max(most, depth + 1)
            found = list(wrong.values())
            if found:
                yield from subject.finding(
                    "rail-side",
                    subject.um(most),
                    box_around(placed.box for placed in found),
                    f"{_names(found)}: upside down, what is nearer to ground lies nearer to the power rail",
                    "NMOS at the ground rail, PMOS at the power rail, in the order in which the current flows",
                    devices=found,
                    most="must" if any(subject.is_full(placed) for placed in found) else "should",
                )
        middle = (self.box.bottom + self.box.top) / 2
        for placed in subject.placed:
            if subject.is_full(placed):
                ends = {placed.device.terminals["s"], placed.device.terminals["d"]}
                if not ends & {*supplies.power, *supplies.ground}:
                    continue
                own = up if ends & set(supplies.power) else -up
                yield from subject.finding(
                    "rail-side",
                    subject.um(max(0.0, own * (middle - placed.centre[1]))),
                    placed.box,
                    f"{placed.id} carries much current and lies at the other rail than the one that feeds it",
                    "place power devices at their rail",
                    devices=[placed],
                )

    def _stages(self) -> list[list[PlacedDevice]]:
        """Return the devices that are joined by nets of their channels which are no supplies."""
        subject = self.subject
        on_net: dict[str, list[PlacedDevice]] = defaultdict(list)
        for placed in subject.placed:
            if placed.device.is_mos and not subject.is_idle(placed):
                for terminal in ("d", "s"):
                    if placed.device.terminals[terminal] not in subject.supplies:
                        on_net[placed.device.terminals[terminal]].append(placed)
        found, seen = [], set()
        for start in subject.placed:
            if start.index in seen or not start.device.is_mos or subject.is_idle(start):
                continue
            stage, front = [], deque([start])
            seen.add(start.index)
            while front:
                placed = front.popleft()
                stage.append(placed)
                for net in (placed.device.terminals["d"], placed.device.terminals["s"]):
                    for other in on_net.get(net, ()):
                        if other.index not in seen:
                            seen.add(other.index)
                            front.append(other)
            found.append(stage)
        return found

    def flow_order(self) -> list[Finding]:
        """Return whether the stages between input and output lie in another order than the signal passes them."""
        subject = self.subject
        stages = self._stages()
        of = {placed.index: number for number, stage in enumerate(stages) for placed in stage}
        drives: dict[int, set[int]] = defaultdict(set)
        entered: dict[int, bool] = defaultdict(bool)
        for stage in stages:
            for placed in stage:
                gate = placed.device.terminals["g"]
                if gate in subject.circuit.ports and gate not in subject.supplies:
                    entered[of[placed.index]] = True
                for other in subject.placed:
                    if other.device.is_mos and other.index in of and gate in (
                        other.device.terminals["d"], other.device.terminals["s"]
                    ) and gate not in subject.supplies and of[other.index] != of[placed.index]:  # fmt: skip
                        drives[of[other.index]].add(of[placed.index])
        depth = {number: 0 for number in range(len(stages)) if entered[number]}
        front = deque(sorted(depth))
        while front:
            number = front.popleft()
            for after in sorted(drives[number]):
                if after not in depth:
                    depth[after] = depth[number] + 1
                    front.append(after)
        levels: dict[int, list[PlacedDevice]] = defaultdict(list)
        for number, level in depth.items():
            levels[level] += stages[number]
        if len(levels) < 3:
            return []
        middles = [_centre(levels[level]) for level in sorted(levels)]
        spans = [max(middle[axis] for middle in middles) - min(middle[axis] for middle in middles) for axis in (0, 1)]
        along = spans.index(max(spans))
        steps = [after[along] - before[along] for before, after in pairwise(middles)]
        turns = min(sum(step < 0 for step in steps), sum(step > 0 for step in steps))
        every = [placed for level in sorted(levels) for placed in levels[level]]
        return subject.finding(
            "flow-order",
            turns,
            box_around(placed.box for placed in every),
            f"the {len(levels)} stages of the signal's way lie out of order: {turns} step{'s' * (turns > 1)} back",
            "place the stages in the order of the signal",
            devices=every,
        )

    def rails(self) -> Iterator[Finding]:
        """Yield signal wires outside the rails, and rails inside the cell."""
        subject = self.subject
        known = [net for net in subject.supplies.power + subject.supplies.ground if net in subject.number]
        found = {net: rails for net in known if (rails := self._rails(net))}
        reach = subject.technology.to_dbu(_EDGE_UM)
        if len(found) < 2 or not self._side_of_power:
            return
        low = min(rails[0].bottom for rails in found.values())
        high = max(rail.top for rails in found.values() for rail in rails)
        for net in subject.nets:
            if net in known:
                continue
            boxes = [region.bbox() for region in subject.metal(net).values()]
            beyond = max((max(low - box.bottom, box.top - high) for box in boxes), default=0)
            yield from subject.finding(
                "rails",
                0.0 if self._has_port_beyond(net, low, high) else subject.um(max(0, beyond)),
                box_around(boxes),
                f"{net} runs {subject.um(beyond):.3g} um outside the rails",
                "keep signals between the rails",
                nets=[net],
            )
        for net, rails in found.items():
            away = min(min(abs(r.top - self.box.top), abs(r.bottom - self.box.bottom)) for r in rails)
            others = [rail for name, each in found.items() if name != net for rail in each]
            ends = (min(other.bottom for other in others), max(other.top for other in others))
            outermost = rails[0].bottom <= ends[0] or max(rail.top for rail in rails) >= ends[1]
            yield from subject.finding(
                "rails",
                subject.um(max(0, away - reach)) if outermost else 0.0,
                box_around(rails),
                f"the rail of {net} lies {subject.um(away):.3g} um inside the cell",
                "rails at the edge of the cell",
                nets=[net],
            )

    def _has_port_beyond(self, net: str, low: int, high: int) -> bool:
        """Return whether a net leaves the rails only to its port outside of them."""
        return any(not low <= point.y <= high for _, point, _ in self.subject.labels.get(net, ()))

    def ports(self) -> Iterator[Finding]:
        """Yield the ports inside the cell, on another side than asked, or without a pin shape."""
        subject = self.subject
        asked = {} if subject.asked is None else subject.asked.sides
        core = self.box.enlarged(-subject.technology.to_dbu(_EDGE_UM), -subject.technology.to_dbu(_EDGE_UM))
        for net, labels in sorted(subject.labels.items()):
            pieces = [
                polygon.bbox()
                for conductor, point, _ in labels
                for polygon in subject.shapes(net, conductor).each()
                if polygon.bbox().contains(point)
            ]
            box = box_around(pieces)
            inside = min(
                box.left - core.left, core.right - box.right, box.bottom - core.bottom, core.top - box.top
            ) if not box.empty() else 0  # fmt: skip
            where = kdb.Box(labels[0][1], labels[0][1]).enlarged(100, 100)
            yield from subject.finding(
                "rails.port", subject.um(max(0, inside)), where,
                f"port {net} ends {subject.um(inside):.3g} um inside the cell",
                "lead the port to the edge", nets=[net], most="should",
            )  # fmt: skip
            if net in asked and self._side(labels) != asked[net]:
                yield from subject.finding(
                    "rails.port", 1.0, where, f"port {net} lies at the {self._side(labels)}, asked at the {asked[net]}",
                    "move the port to the side that was asked for", nets=[net],
                )  # fmt: skip
            if subject.extraction.pins_drawn and not any(on_pin for *_, on_pin in labels):
                yield from subject.finding(
                    "rails.port", 1.0, where, f"port {net} has no pin shape", "draw the pin", nets=[net], most="should"
                )

    def _side(self, labels: Sequence[tuple[str, kdb.Point, bool]]) -> str:
        point = labels[0][1]
        away = {
            "left": point.x - self.box.left, "right": self.box.right - point.x,
            "bottom": point.y - self.box.bottom, "top": self.box.top - point.y,
        }  # fmt: skip
        return min(away, key=lambda side: (away[side], side))

    def room(self) -> Iterator[Finding]:
        """Yield how the room of the layout is used."""
        subject = self.subject
        if len(subject.placed) < _LEAST_DEVICES:
            return
        asked = subject.asked.outline if subject.asked is not None else ()
        used, core = self._used()
        share = (used & kdb.Region(core)).area() / core.area()
        if not any(each.width or each.height for each in asked):
            yield from subject.finding(
                "room.used", share, core, f"devices and wells use {100 * share:.3g} % of the core",
                "move the devices together", devices=(),
            )  # fmt: skip
            empty = self._largest_empty()
            yield from subject.finding(
                "room.empty", empty.area() / self.box.area(), empty,
                f"an empty rectangle of {subject.um(empty.width()):.3g} x {subject.um(empty.height()):.3g} um, "
                f"{100 * empty.area() / self.box.area():.3g} % of the layout",
                "move the devices together, or fold the large ones so that they fill the gap",
            )  # fmt: skip
        aspect = _longer_side(self.box) / min(self.box.width(), self.box.height())
        wanted = max((each.aspect or 0.0 for each in asked), default=0.0)
        if aspect > wanted * 1.05 and not any(each.width and each.height for each in asked):
            yield from subject.finding(
                "room.aspect", aspect, self.box, f"the layout is {aspect:.3g} times as long as it is wide",
                "fold large devices, stack the rows",
            )  # fmt: skip

    def _used(self) -> tuple[kdb.Region, kdb.Box]:
        """Return the area of wells, diffusion, taps, poly and plates with what rings enclose, and the box around it."""
        subject = self.subject
        roles = ("nwell", "pwell", "deep_nwell", "active", "tap", "poly")
        every = kdb.Region()
        for role in roles:
            every += subject.role(role)
        for spec in subject.technology.passives.values():
            if "plate" in spec.parts:
                every += subject.layer(spec.parts["plate"])
        half = subject.technology.to_dbu(_CLOSE_UM) // 2
        closed = every.merged().sized(half).merged().sized(-half)
        filled = kdb.Region([_filled(polygon) for polygon in closed.each()])
        return filled.merged(), every.bbox()

    def _largest_empty(self) -> kdb.Box:
        """Return the largest rectangle of the layout without any shape on a mask. [dbu]"""
        subject = self.subject
        drawn = kdb.Region()
        for spec in subject.technology.layers.values():
            if spec.on_a_mask:
                drawn += subject.layer(spec.name)
        boxes = [polygon.bbox() for polygon in drawn.merged().decompose_trapezoids_to_region().each()]
        return largest_empty(self.box, boxes)

    def rings(self) -> Iterator[Finding]:
        """Yield the devices with a ring of their own beside another ring of the same net."""
        subject = self.subject
        alone: dict[str, list[tuple[kdb.Box, PlacedDevice]]] = defaultdict(list)
        for net in subject.nets:
            for layer in ("n_tap", "p_tap"):
                for ring in subject.shapes(net, layer).each():
                    for number in range(ring.holes()):
                        hole = kdb.Polygon(list(ring.each_point_hole(number)))
                        inside = [p for p in subject.placed if hole.inside(p.box.center()) and not subject.is_idle(p)]
                        if len(inside) == 1:
                            alone[f"{net} {layer}"].append((ring.bbox(), inside[0]))
        near = subject.technology.to_dbu(_NEIGHBOUR_UM)
        for name, rings in sorted(alone.items()):
            beside = [
                (box, placed)
                for box, placed in rings
                if any(other is not placed and gap_between(box, its) <= near for its, other in rings)
            ]
            net = name.split(" ")[0]
            if beside:
                yield from subject.finding(
                    "rings",
                    len(beside),
                    box_around(box for box, _ in beside),
                    f"{_names([placed for _, placed in beside])} have rings of their own, all of {net}",
                    "one ring and one well around all of them",
                    devices=[placed for _, placed in beside],
                    nets=[net],
                )

    def well_tap(self) -> Iterator[Finding]:
        """Yield what is too far from a tap, by the process's own rules of latch-up."""
        subject = self.subject
        rules = [rule.id for rule in subject.technology.rules if rule.kind == "tap_distance"]
        if not rules:
            self.unjudged.append(Unjudged("well-tap", f"{subject.technology.name} states no distance to taps"))
            return
        options = Options(rule_ids=rules, chosen_rules=True, max_violations=20)
        report = check_cell(subject.cell.layout(), subject.cell, subject.technology, options).summary()
        for rule in report["violations"]:
            place = rule["locations"][0]
            dbu = subject.technology.dbu_um
            box = kdb.DBox(*(place.get("box") or (place["x"], place["y"], place["x"], place["y"]))).to_itype(dbu)
            yield from subject.finding(
                "well-tap", 1.001, box, f"{rule['count']} places break {rule['rule_id']}: {rule['rule_description']}",
                "add taps",
            )  # fmt: skip

    def repeated(self) -> Iterator[Finding]:
        """Yield the cells that the netlist repeats and the layout draws unlike each other, or out of their order."""
        subject = self.subject
        cells: dict[str, list[dict[str, PlacedDevice]]] = defaultdict(list)
        for instance in subject.circuit.subcircuits:
            own = {
                name.rsplit(".", 1)[-1]: subject.by_name[name] for name in instance.devices if name in subject.by_name
            }
            if len(own) > 1 and len(own) == len(instance.devices):
                cells[instance.cell].append(own)
        for _, instances in sorted(cells.items()):
            if len(instances) < 2:
                continue
            first = instances[0]
            off = [(_unlike(first, other), other) for other in instances[1:]]
            worst = max(error for error, _ in off)
            wrong = [placed for error, other in off if error for placed in other.values()]
            every = [placed for own in instances for placed in own.values()]
            yield from subject.finding(
                "repeated",
                subject.um(worst),
                box_around(placed.box for placed in wrong or every),
                f"the {len(instances)} instances of one cell ({_names(list(first.values()))} and others) are drawn "
                f"unlike each other, by up to {subject.um(worst):.3g} um",
                "draw the cell once and repeat it at one pitch, in order",
                devices=every,
                most="should" if len(instances) == 2 else "must",
            )


def _in_series(stage: Sequence[PlacedDevice], supplies: Supplies) -> Iterator[tuple[PlacedDevice, PlacedDevice]]:
    """Yield the transistors whose current flows from the first one into the second, through a net of their channels."""
    above, below = defaultdict(list), defaultdict(list)
    for placed in stage:
        drain, source = placed.device.terminals["d"], placed.device.terminals["s"]
        into, out_of = (source, drain) if placed.device.type == "nmos" else (drain, source)
        above[into].append(placed)
        below[out_of].append(placed)
    for net in above:
        if net not in supplies:
            yield from ((one, other) for one in above[net] for other in below.get(net, ()) if one is not other)


def _unlike(one: dict[str, PlacedDevice], other: dict[str, PlacedDevice]) -> float:
    """Return by how much the places of devices in two instances differ, at the best of four reflections. [dbu]"""
    names = sorted(one.keys() & other.keys())
    here, there = ([own[name].centre for name in names] for own in (one, other))
    errors = []
    for x, y in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        moved = [(x * a, y * b) for a, b in there]
        dx, dy = (mean(p[axis] - q[axis] for p, q in zip(here, moved, strict=True)) for axis in (0, 1))
        errors.append(max(max(abs(p[0] - q[0] - dx), abs(p[1] - q[1] - dy)) for p, q in zip(here, moved, strict=True)))
    return min(errors)


def _filled(polygon: kdb.Polygon) -> kdb.Polygon:
    """Return a polygon without its holes."""
    return kdb.Polygon(list(polygon.each_point_hull()))


def _centre(devices: Sequence[PlacedDevice]) -> tuple[float, float]:
    area = sum(placed.area for placed in devices)
    x, y = (sum(placed.area * placed.centre[axis] for placed in devices) / area for axis in (0, 1))
    return x, y


def _longer_side(box: kdb.Box) -> int:
    return 0 if box.empty() else max(box.width(), box.height())


def _names(devices: Sequence[PlacedDevice]) -> str:
    names = [placed.id for placed in devices]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def largest_empty(area: kdb.Box, boxes: Sequence[kdb.Box]) -> kdb.Box:
    """Return the largest rectangle in an area that no box overlaps, by the largest rectangle under a histogram.

    Args:
        area: Where to look. [dbu]
        boxes: What is in the way. [dbu]
    """
    steps = 128  # both sides are divided into so many strips; a strip that a box enters is taken
    width, height = max(1, area.width() // steps), max(1, area.height() // steps)
    columns, rows = -(-area.width() // width), -(-area.height() // height)
    taken = [bytearray(columns) for _ in range(rows)]
    for box in boxes:
        left, right = (box.left - area.left) // width, -(-(box.right - area.left) // width)
        for row in range((box.bottom - area.bottom) // height, min(rows, -(-(box.top - area.bottom) // height))):
            taken[row][left:right] = b"\x01" * (min(right, columns) - left)
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
    left, bottom = area.left + found[0] * width, area.bottom + found[1] * height
    right, top = area.left + found[2] * width, area.bottom + found[3] * height
    beside = [box for box in boxes if box.bottom < top and box.top > bottom]
    left = max((box.right for box in beside if box.right <= left), default=area.left)
    right = min((box.left for box in beside if box.left >= right), default=area.right)
    over = [box for box in boxes if box.left < right and box.right > left]
    bottom = max((box.top for box in over if box.top <= bottom), default=area.bottom)
    top = min((box.bottom for box in over if box.bottom >= top), default=area.top)
    return kdb.Box(left, bottom, right, top)
