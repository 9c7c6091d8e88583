"""What became of the constraints on places: measured on the placed modules, whatever placed them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraint_faults import AXES, EDGES, contradictions
from layoutkit.circuit.constraints import Outcome
from layoutkit.errors import LayoutkitError
from layoutkit.place.problem import OPEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from layoutkit.circuit.constraints import Constraints, Outline
    from layoutkit.place import PlacementOptions
    from layoutkit.rectangle import Rectangle
    from layoutkit.technology import Technology

    Gap = Callable[[str, str], int]
    RoomBetween = Callable[[str, str], tuple[int, int]]


def check_modules(constraints: Constraints, owner: Mapping[str, str]) -> None:
    """Check that the modules of the devices can be placed as the constraints say.

    Args:
        constraints: Of a circuit that they fit.
        owner: Device to the module that holds it.

    Raises:
        LayoutkitError: If constraints contradict one another because of the devices that share modules.
    """
    found = contradictions(constraints, owner.__getitem__)
    if found:
        errors = [{"path": each.paths[-1], "message": each.text} for each in found]
        text = "; ".join(each.text for each in found)
        message = f"the constraints contradict one another once devices share modules: {text}"
        raise LayoutkitError(message, details={"param_name": "constraints", "errors": errors})


def with_relations(
    technology: Technology, options: PlacementOptions, constraints: Constraints, owner: Mapping[str, str]
) -> PlacementOptions:
    """Return the options with what the constraints want of places; those that the options state themselves stay.

    Args:
        technology: Gives the database unit.
        options: How to place.
        constraints: Proximity, alignment, ordering, abutment, outline and sides of ports. A matched group that is drawn
            in several modules is one of proximity, too.
        owner: Device to the module that holds it.
    """

    def modules(devices: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(owner[device] for device in devices))

    mirrored = {frozenset(pair) for group in constraints.symmetry for pair in group.pairs}
    in_parts = [
        parts
        for group in constraints.matching
        if len(parts := modules(group.devices)) > 1 and frozenset(group.devices) not in mirrored
    ]
    if constraints.outline and options.outline is None:
        (limit,) = constraints.outline
        sides = [None if side is None else technology.to_dbu(side) for side in (limit.width, limit.height)]
        if sides != [None, None]:
            width, height = (OPEN if side is None else side for side in sides)
            options = replace(options, outline=(width, height))
        if limit.aspect is not None:
            options = replace(options, max_aspect=min(options.max_aspect, limit.aspect))
    return replace(
        options,
        near=(*(modules(group.devices) for group in constraints.proximity), *in_parts),
        aligned=tuple((wanted.edge, modules(wanted.devices)) for wanted in constraints.alignment),
        ordered=tuple((line.direction, modules(line.devices)) for line in constraints.ordering),
        abutting=tuple(modules(row.devices) for row in constraints.abutment),
        sides=options.sides or constraints.sides,
    )


def place_outcomes(
    technology: Technology,
    constraints: Constraints,
    owner: Mapping[str, str],
    boxes: Mapping[str, Rectangle],
    least_gap: Gap,
    room: RoomBetween,
) -> list[Outcome]:
    """Return what became of proximity, alignment, ordering, abutment and outline.

    Args:
        technology: Gives the units of lengths in messages.
        constraints: What was wanted.
        owner: Device to the module that holds it.
        boxes: Module to its box as placed. [dbu]
        least_gap: Returns the least distance of two modules side by side, the left one first. [dbu]
        room: Returns the room for wires between two modules side by side, and one above the other. [dbu]
    """
    judge = _Judge(technology, boxes, room)
    checks: tuple[tuple[str, str, Callable[[Any, Sequence[str]], str]], ...] = (
        ("proximity", "the modules are neighbours", lambda _, names: judge.apart(names)),
        ("alignment", "the modules are aligned", lambda wanted, names: judge.unaligned(names, wanted.edge)),
        ("ordering", "the modules lie in this order", lambda wanted, names: judge.unordered(names, wanted.direction)),
        (
            "abutment",
            "the modules lie as close as the rules and the room for wires allow",
            lambda _, names: judge.separate(names, least_gap),
        ),
    )
    found = []
    for kind, how, fault_of in checks:
        for index, wanted in enumerate(getattr(constraints, kind)):
            names = list(dict.fromkeys(owner[device] for device in wanted.devices))
            fault = fault_of(wanted, names) if len(names) > 1 else ""
            how = judge.in_line(names, wanted.edge) if kind == "alignment" else how  # noqa: PLW2901
            reason = fault or (how if len(names) > 1 else "drawn in one module")
            if kind == "ordering" and not fault and len(names) < len(wanted.devices):
                fault = reason = "the order of devices that share a module is that of its pattern"
            found.append(Outcome(f"{kind}[{index}]", wanted.devices, not fault, reason))
    return [*found, *(judge.outline(f"outline[{index}]", limit) for index, limit in enumerate(constraints.outline))]


class _Judge:
    """Measures modules as placed; each method returns what is wrong, an empty string where nothing is."""

    def __init__(self, technology: Technology, boxes: Mapping[str, Rectangle], room: RoomBetween) -> None:
        self._um, self._grid = technology.to_um, technology.grid
        self._boxes, self._room = boxes, room

    def apart(self, names: Sequence[str]) -> str:
        """Return which modules are no neighbours of the others, directly or through one of them."""
        reached, waiting = {names[0]}, set(names[1:])
        while joining := {name for name in waiting if any(self._adjacent(name, other) for other in reached)}:
            reached |= joining
            waiting -= joining
        if not waiting:
            return ""
        gap = min(self._gap(name, other) for name in waiting for other in reached)
        return (
            f"{', '.join(sorted(waiting))} lie apart from {', '.join(sorted(reached))}: {self._um(gap):g} um between "
            "the nearest two, other modules or too much room in between"
        )

    def unaligned(self, names: Sequence[str], edge: str) -> str:
        """Return how far apart the edges or middles are that should be one; edges may lie between grid points."""
        axis, place = EDGES[edge]
        places = [self._place(name, axis, place) for name in names]
        apart = max(places) - min(places)
        return f"their {edge} differs by up to {self._um(apart):g} um" if apart >= self._grid else ""

    def in_line(self, names: Sequence[str], edge: str) -> str:
        """Return how well edges or middles that count as one are aligned, in words."""
        axis, place = EDGES[edge]
        places = [self._place(name, axis, place) for name in names]
        apart = max(places) - min(places)
        if not apart:
            return "the modules are aligned"
        return (
            f"the modules are aligned but for {self._um(apart):g} um: their sizes differ by an odd number of grid steps"
        )

    def unordered(self, names: Sequence[str], direction: str) -> str:
        """Return the first two modules in another order."""
        axis = AXES[direction]
        for before, after in pairwise(names):
            if self._place(before, axis, "high") > self._place(after, axis, "low"):
                word = "left of" if axis == "x" else "below"
                return f"{before} does not lie wholly {word} {after}"
        return ""

    def separate(self, names: Sequence[str], least_gap: Gap) -> str:
        """Return the first two modules that are farther apart than they must be, or not side by side."""
        for left, right in pairwise(names):
            one, other = self._boxes[left], self._boxes[right]
            gap = other.left - one.right
            if gap < 0 or min(one.top, other.top) <= max(one.bottom, other.bottom):
                return f"{right} does not lie at the right side of {left}"
            least = least_gap(left, right) + self._room(left, right)[0]
            if gap > least:
                apart, needed = self._um(gap), self._um(least)
                return f"{left} and {right} are {apart:g} um apart, the rules and wires need {needed:g} um"
        return ""

    def outline(self, path: str, limit: Outline) -> Outcome:
        """Return whether the placed modules fit into an outline."""
        sides = {
            "width": max(box.right for box in self._boxes.values()) - min(box.left for box in self._boxes.values()),
            "height": max(box.top for box in self._boxes.values()) - min(box.bottom for box in self._boxes.values()),
        }
        size = {name: self._um(side) for name, side in sides.items()}
        size["aspect"] = max(sides.values()) / min(sides.values())
        wanted = {name: getattr(limit, name) for name in size if getattr(limit, name) is not None}
        over = [f"{name} {size[name]:.4g} instead of {most:g}" for name, most in wanted.items() if size[name] > most]
        how = ", ".join(f"{name} {size[name]:.4g}" for name in wanted)
        return Outcome(path, (), not over, f"the placed modules have {', '.join(over) or how}")

    def _place(self, name: str, axis: str, place: str) -> float:
        box = self._boxes[name]
        low, high = (box.left, box.right) if axis == "x" else (box.bottom, box.top)
        return {"low": low, "middle": (low + high) / 2, "high": high}[place]

    def _gap(self, one: str, other: str, room: tuple[int, int] = (0, 0)) -> int:
        """Return how far two modules are apart where they are farther apart, without the room. [dbu]"""
        a, b = self._boxes[one], self._boxes[other]
        gaps = max(a.left, b.left) - min(a.right, b.right), max(a.bottom, b.bottom) - min(a.top, b.top)
        return max(gap - less for gap, less in zip(gaps, room, strict=True))

    def _adjacent(self, one: str, other: str) -> bool:
        """Return whether no module lies between two, and they are no farther apart than the smaller one is long.

        The room for wires, which the flow keeps between any two neighbours, does not count.
        """
        a, b = self._boxes[one], self._boxes[other]
        length = min(max(box.right - box.left, box.top - box.bottom) for box in (a, b))
        if self._gap(one, other, self._room(one, other)) > length:
            return False
        left, right = sorted((max(a.left, b.left), min(a.right, b.right)))
        bottom, top = sorted((max(a.bottom, b.bottom), min(a.top, b.top)))
        return not any(
            box.left < right and box.right > left and box.bottom < top and box.top > bottom
            for name, box in self._boxes.items()
            if name not in (one, other)
        )
