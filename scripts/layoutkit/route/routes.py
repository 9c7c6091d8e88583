"""What the router receives and returns, and the least length that its wires can have. Lengths are database units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import Rect
    from layoutkit.route.net_flows import Draw


Point = tuple[int, int]


def rect_of(box: kdb.Box) -> Rect:
    """Return the sides of a box. [dbu]"""
    return box.left, box.bottom, box.right, box.top


@dataclass(frozen=True)
class Terminal:
    """Drawn metal of a net that may be connected to anywhere along its box.

    Args:
        layer: Conductor of the technology's stack (its name or an alias).
        box: The metal. [dbu]
        group: Terminals of one net with the same non-empty group are already joined; reaching one is enough.
            Terminals of a net that touch on one layer count as joined, whatever their group.
        draw: What flows through the terminal; None where that is not known: any part of the net's current.
        divided: Whether it is a part of a rail that is too weak for its current: no wire runs along it on its layer.
    """

    layer: str
    box: kdb.Box
    group: str = ""
    draw: Draw | None = None
    divided: bool = False


@dataclass(frozen=True)
class Gauge:
    """The width of a net's wires, and the current that its vias carry.

    Attributes:
        width: Width of the wires; None for each layer's minimum. [dbu]
        current_ma: What each via carries; None for vias of one cut. [mA]
        lowest: Height of the lowest terminal that such a via lands on, which its rows of cuts fit into. [dbu]
    """

    width: int | None
    current_ma: float | None = None
    lowest: int = 0


@dataclass(frozen=True)
class NetRequest:
    """One net to route.

    Args:
        name: Net name; unique in a request.
        terminals: What must be joined; one terminal (or one group) needs no wire.
        width: Wire width on every layer; None takes each layer's minimum. It is raised to each layer's minimum
            and to an even number of grid steps. [dbu]
        priority: Nets with a smaller number are routed first and give way last; ties go to the shorter net.
        mirror_of: Name of the net whose route this net should mirror about ``RouteOptions.axis_x``.
        symmetric: Whether the net's own route should be its mirror image about that axis, as far as its terminals are.
        apart_from: Names of nets beside whose wires this net's cost more.
        shield: Net of this request whose wires are drawn at both sides of this net's, where there is room.
        current_ma: Largest direct current; vias get cuts for it. [mA]
        least_cuts: With 2, no terminal should depend on a single cut: other nets give way to a second one.
        avoid_layers: Conductors on which this net's wires cost more.
        hop_layer: Conductor on which its wires leave each terminal inside the area; elsewhere they lie below it, so
            that no terminal is connected to what is long before that conductor is etched. None for wires on any.
        shares: Currents in rising order, each with the gauge of wires that carry it; the last is that of the whole net.
            Each wire is as wide as its share of the current needs. Empty: all wires have ``width``. [mA]
        own_gauge: Gauge of wires that carry the whole current; None for wires of ``width`` and vias of one cut.
    """

    name: str
    terminals: tuple[Terminal, ...]
    width: int | None = None
    priority: int = 1
    mirror_of: str | None = None
    symmetric: bool = False
    apart_from: tuple[str, ...] = ()
    shield: str | None = None
    current_ma: float | None = None
    least_cuts: int = 1
    avoid_layers: tuple[str, ...] = ()
    hop_layer: str | None = None
    shares: tuple[tuple[float, Gauge], ...] = ()
    own_gauge: Gauge | None = None

    @property
    def gauge(self) -> Gauge:
        """That of its wires: ``own_gauge``, or that of ``width``."""
        return self.own_gauge or Gauge(self.width)

    @property
    def gauges(self) -> set[Gauge]:
        """Those that its wires may have."""
        return {self.gauge, *(gauge for _, gauge in self.shares)}


@dataclass(frozen=True)
class EqualLengths:
    """Nets whose wires should be equally long.

    Args:
        nets: Their names.
        tolerance: Largest difference to the longest, as a share of it.
    """

    nets: tuple[str, ...]
    tolerance: float = 0.02


@dataclass(frozen=True)
class RouteOptions:
    """How to search.

    Args:
        wrong_way_cost: A wire against its layer's preferred direction costs this many times its length (>= 1).
        via_cost: A via costs as much as this length of wire; None takes four track pitches. [dbu]
        max_iterations: Rounds of rip-up and re-route before conflicting nets are given up.
        engine: ``auto`` compiles the search with numba on large grids where numba is installed.
        axis_x: Symmetry axis of ``NetRequest.mirror_of`` and ``symmetric``. [dbu]
        keepouts: Areas of conductors and cuts, ``(layer, rect)``, that no net may enter, whatever lies there; metal may
            touch their edges. [dbu]
        equal_lengths: Groups of nets; shorter ones get bumps until they are as long as the longest.
        essential: Nets that must find a way past the fixed metal; where one has none, no net is routed, so that the
            caller can change it without waiting. ``RoutingResult.iterations`` is 0 then.
        gives_up: Called after the first round with the names of nets that have no way past the fixed metal, if there
            are any. If it returns True, no net is routed. None: the other nets are routed.
    """

    wrong_way_cost: int = 3
    via_cost: int | None = None
    max_iterations: int = 30
    engine: Literal["auto", "python", "numba"] = "auto"
    axis_x: int | None = None
    keepouts: tuple[tuple[str, Rect], ...] = ()
    equal_lengths: tuple[EqualLengths, ...] = ()
    essential: tuple[str, ...] = ()
    gives_up: Callable[[tuple[str, ...]], bool] | None = None


@dataclass(frozen=True)
class Wire:
    """A wire along ``points`` (axis-parallel segments); its ends reach half a width beyond the end points. [dbu]"""

    layer: str
    points: tuple[Point, ...]
    width: int


@dataclass(frozen=True)
class Via:
    """A via centred at (x, y): ``columns`` x ``rows`` cuts and the metal pads around them. [dbu]"""

    cut: str
    x: int
    y: int
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True)
class Patch:
    """Metal that a rule needs beside wires and pads: for the minimum area, or to close a gap within one net. [dbu]"""

    layer: str
    rect: Rect


@dataclass(frozen=True)
class SingleCut:
    """A via at (x, y) that has one cut only, and why there is no room for a second one. [dbu]

    ``alone`` is True where terminals of a net that wants two cuts are joined by it only.
    """

    cut: str
    x: int
    y: int
    reason: str
    alone: bool = False

    def to_json(self, to_um: Callable[[float], float]) -> dict[str, Any]:
        """Return it as JSON data, with the position in the unit that ``to_um`` converts to."""
        return {"cut": self.cut, "position": [to_um(self.x), to_um(self.y)], "reason": self.reason}


@dataclass(frozen=True)
class Blocker:
    """A shape in the way of a net that failed: without all of a net's blockers there would be a way.

    Attributes:
        net: Net of the metal or cut; None where it belongs to nobody.
        layer: Name of the conductor or cut.
        rect: The shape. [dbu]
        at: Where the way through meets it. [dbu]
        kind: ``metal`` or cut that is drawn or routed, ``keepout``: an area without wires, ``edge`` of the routing
            area (then ``rect`` is that area), or ``rule`` that the net's own metal would break there.
        module: Module that holds the shape; empty for wires and where nobody says.
    """

    net: str | None
    layer: str
    rect: Rect
    at: Point
    kind: Literal["metal", "keepout", "edge", "rule"] = "metal"
    module: str = ""

    def to_json(self, to_um: Callable[[float], float]) -> dict[str, Any]:
        """Return it as JSON data, with lengths in the unit that ``to_um`` converts to."""
        data: dict[str, Any] = {"kind": self.kind, "layer": self.layer, "net": self.net}
        if self.module:
            data["module"] = self.module
        return {**data, "position": [to_um(side) for side in self.at], "box": [to_um(side) for side in self.rect]}

    def text(self, to_um: Callable[[float], float]) -> str:
        """Return it in words."""
        whose = f" of net {self.net}" if self.net else ""
        within = f" in module {self.module}" if self.module else ""
        what = {"metal": "", "keepout": "keepout of ", "edge": "edge of the routing area on ", "rule": "a rule of "}
        return f"{what[self.kind]}{self.layer}{whose}{within} at ({to_um(self.at[0]):g}, {to_um(self.at[1]):g}) um"


@dataclass(frozen=True)
class RoutedNet:
    """The outcome for one net. A net that failed has no metal and says why in ``reason`` and what in ``blocked_by``.

    ``path`` holds the wires and vias in the order in which the net was grown; ``metal`` is everything drawn:
    ``(layer, rect)`` of wires, via pads and patches, sorted. ``single_cuts`` are the vias without room for two cuts.
    ``shielded`` is the length of wire that has its shield at both sides. [dbu] ``stubs`` are drawn as patches that only
    add capacitance. ``weak``: a wire is too thin, or a via has too few cuts, for its share of the net's current.
    """

    name: str
    success: bool
    wires: tuple[Wire, ...] = ()
    vias: tuple[Via, ...] = ()
    path: tuple[Wire | Via, ...] = ()
    patches: tuple[Patch, ...] = ()
    metal: tuple[tuple[str, Rect], ...] = ()
    wire_length: int = 0
    via_count: int = 0
    reason: str | None = None
    conflicts: tuple[str, ...] = ()
    single_cuts: tuple[SingleCut, ...] = ()
    blocked_by: tuple[Blocker, ...] = ()
    shielded: int = 0
    stubs: tuple[Wire, ...] = ()
    weak: bool = False


@dataclass(frozen=True)
class Mirrored:
    """What became of a net that was to be the mirror image of another, or of itself.

    Attributes:
        nets: The two nets, or the one.
        exact: Whether wires and cuts are mirror images, to the database unit.
        reason: Why not; empty where they are.
    """

    nets: tuple[str, ...]
    exact: bool
    reason: str = ""


@dataclass(frozen=True)
class RoutingResult:
    """The outcome of one routing run.

    Attributes:
        nets: In the order of the request.
        iterations: Rounds of rip-up and re-route; 0 where an essential net has no way.
        tracks: Columns, rows and layers of the track graph.
        mirrored: What became of nets that were to be mirror images.
    """

    nets: tuple[RoutedNet, ...]
    iterations: int
    tracks: tuple[int, int, int]
    mirrored: tuple[Mirrored, ...] = ()

    @property
    def unmirrored(self) -> tuple[tuple[str, str], ...]:
        """Each net that was to be the mirror image of another and is not, and why."""
        return tuple((each.nets[1], each.reason) for each in self.mirrored if len(each.nets) == 2 and not each.exact)

    @property
    def failed(self) -> tuple[RoutedNet, ...]:
        """The nets that could not be routed."""
        return tuple(net for net in self.nets if not net.success)

    @property
    def wire_length(self) -> int:
        """Centre-line length of all wires. [dbu]"""
        return sum(net.wire_length for net in self.nets)

    def net(self, name: str) -> RoutedNet:
        """Return the net called ``name``.

        Raises:
            KeyError: If the request had no such net.
        """
        for net in self.nets:
            if net.name == name:
                return net
        raise KeyError(name)


def length_bound(net: NetRequest, reach: int) -> int:
    """Return a length that the wires of ``net`` cannot be shorter than. [dbu]

    A wire's middle must come as near as ``reach``, half its width, to the box around each group of joined terminals.
    """
    parts: list[list[Terminal]] = []
    for terminal in net.terminals:
        mine = [part for part in parts if any(_joined(terminal, other) for other in part)]
        parts = [part for part in parts if part not in mine] + [[terminal, *(each for part in mine for each in part)]]
    return tree_bound([_around([terminal.box for terminal in part], reach) for part in parts])


def _around(boxes: Sequence[kdb.Box], reach: int) -> Rect:
    left, bottom = min(box.left for box in boxes), min(box.bottom for box in boxes)
    right, top = max(box.right for box in boxes), max(box.top for box in boxes)
    return (left - reach, bottom - reach, right + reach, top + reach)


def _joined(one: Terminal, other: Terminal) -> bool:
    """Return whether a net need not join two terminals: one metal of the layout, or metal that touches."""
    if one.group and one.group == other.group:
        return True
    return one.layer == other.layer and one.box.touches(other.box)


def tree_bound(boxes: Sequence[Rect]) -> int:
    """Return a length that no axis-parallel wires that join ``boxes``, each metal in itself, are shorter than. [dbu]

    The larger of two bounds counts. First, the wires must bridge the gaps between the boxes in x and in y.
    Second, a tree that joins k boxes is at least k / (2 (k - 1)) of their minimum spanning tree: Kou, Markowsky,
    Berman, "A fast algorithm for Steiner trees", Acta Informatica 15 (1981).
    """
    count = len(boxes)
    if count < 2:
        return 0
    between = _uncovered([(box[0], box[2]) for box in boxes]) + _uncovered([(box[1], box[3]) for box in boxes])
    return max(between, _spanning_tree(boxes) * count // (2 * (count - 1)))


def _uncovered(intervals: Sequence[tuple[int, int]]) -> int:
    """Return the length of the gaps that a union of intervals has."""
    gaps, reached = 0, min(low for low, _ in intervals)
    for low, high in sorted(intervals):
        gaps += max(0, low - reached)
        reached = max(reached, high)
    return gaps


def _spanning_tree(boxes: Sequence[Rect]) -> int:
    """Return the length of a minimum spanning tree over the distances between boxes, by Prim's algorithm. [dbu]"""
    distances = {index: _distance(boxes[0], box) for index, box in enumerate(boxes) if index}
    length = 0
    while distances:
        nearest = min(distances, key=lambda index: (distances[index], index))
        length += distances.pop(nearest)
        for index, distance in distances.items():
            distances[index] = min(distance, _distance(boxes[nearest], boxes[index]))
    return length


def _distance(one: Rect, other: Rect) -> int:
    """Return the shortest Manhattan distance between two boxes; 0 if they touch. [dbu]"""
    across = max(0, one[0] - other[2], other[0] - one[2])
    return across + max(0, one[1] - other[3], other[1] - one[3])
