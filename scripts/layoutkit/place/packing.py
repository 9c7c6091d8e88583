"""Packing, in flat arrays of integers: the same source runs in Python and compiled by numba.

All lengths are in steps of the manufacturing grid. Each function takes the state of the search and the numbers of the
problem (``layoutkit.place.problem``), which are lists in Python and arrays when compiled.

Units are put down one after the other, as in a B*-tree: a unit's x follows from an earlier one (right of it, left of
it, or flush with one of its sides), and it drops onto whatever lies below it. Every two units keep the gap of the two
sides that face each other, so each packing is legal as it stands. Blocks are packed into clusters, which share a tap
ring, and clusters into the layout. Centred units have their middle at x = 0, pairs lie on both sides at equal distance:

          axis
    [ l ]   |   [ r ]      a pair
         [ c ]             centred on the axis
    [ f ]   |              free

The state holds the choices and what follows from them: the place of everything, and the wires. A change marks what it
affects, and only that is computed again. Clusters are placed again from the first affected one on. To undo a refused
change, it is enough to restore the state.

References: Chang et al., B*-trees, DAC 2000; Lin, Chang, Lin, Analog placement based on symmetry-island formulation,
IEEE TCAD 2009.

Alignment, order and abutment of blocks are numbers, too, and a packing lacks them by so many half steps. Each relation
compares one edge of one block with one of another: they are to be equal, or the first is not to be beyond the second by
more than a number of steps. Coordinates are doubled, so that middles are whole numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.place.blocks import PlacementOptions


Numbers = Any  # list[int] or a numpy array of int64
FREE, CENTRED, PAIR = 0, 1, 2
LEFT, RIGHT, BOTTOM, TOP = 0, 1, 2, 3
RIGHT_OF, FLUSH_LEFT, LEFT_OF, FLUSH_RIGHT = 0, 1, 2, 3
# The state has these parts, one after the other: the order of items; the order of clusters; a record for each item; a
# record for each cluster; a record for each rectangle of the packed clusters, at most two per cluster; flags for what
# must be computed again; totals; a record for each net.
ORDER, C_ORDER, ITEMS = range(3)
# Fields of an item: its choices; its place in its cluster; its pins (``layoutkit.place.problem``).
CLUSTER, SHAPE, TURN, REFERENCE, RULE, OFF_AXIS, X, Y, AT_X, AT_Y, AT_ROW, ITEM_SIZE = range(12)
CLUSTERS = ITEMS + ITEM_SIZE
# Fields of a cluster: its choices; what follows from its blocks; its place, and its first rectangle.
C_REFERENCE, C_RULE, C_APART, C_COUNT, C_KIND, C_FACE, C_TURN, C_WIDTH, C_HEIGHT, C_LEFT, C_BOTTOM, C_FAULT = range(12)
C_X, C_Y, C_RECT, CLUSTER_SIZE = range(12, 16)
RECTS = CLUSTERS + CLUSTER_SIZE
# A rectangle: left, bottom, right, top, the rows of gaps of these faces; left, right, top of all rectangles up to it.
RECT_SIZE = 11
# Flags of each cluster: its blocks are to be packed, its place is to be found, its wires are to be measured.
C_STALE = RECTS + 2 * RECT_SIZE
C_LOOSE, C_MOVED, TOTALS = C_STALE + 1, C_STALE + 2, C_STALE + 3
T_CLUSTERS, T_FAULTS, T_LEFT, T_BOTTOM, T_RIGHT, T_TOP, T_WIRES, T_SIZE = range(8)
# A net: its box and its length times its weight; -1 while that is not known.
NET_SIZE = 5
# Orientations.
MIRRORED, UPSIDE_DOWN, ORIENTATIONS = 1, 2, 4
# Columns of the table of items, of shapes in each orientation, and of the ends of nets.
I_KIND, I_KEY, I_FIRST, I_COUNT, I_CLASS, I_RINGED, I_ROWS, I_MIRRORS, I_FLIPS, I_LEAVES, I_FRAMES, I_SIZE = range(12)
S_WIDTH, S_HEIGHT, S_LEFT, S_BOTTOM, S_RIGHT, S_TOP, S_IN_LEFT, S_IN_BOTTOM, S_IN_RIGHT, S_IN_TOP, S_REACH = range(11)
S_EXCESS, S_SIZE = 11, 12
E_ITEM, E_BOX, E_LEFT, E_SIZE = range(4)
# Numbers of the whole problem.
N_ITEMS, N_FACES, N_CLASS_FACES, N_NETS, N_PITCH, N_ASPECT, N_OUT_WIDTH, N_OUT_HEIGHT, N_CLUSTER = range(9)
N_FRAMES, N_CHOICES = 9, 10
EDGES = ("left", "right", "center_x", "bottom", "top", "center_y")
EQUAL, NOT_BEYOND = 0, 1
RELATION_SIZE = 8
LEAST_LACK = 400
"""Added to what a missed relation lacks, in half steps. Otherwise a little area would outweigh one step."""
_ORDERS = {"left_to_right": ("right", "left"), "bottom_to_top": ("top", "bottom")}


def put_down(
    rects: Numbers,
    first: int,
    count: int,
    gaps: Numbers,
    stride: int,
    kind: int,
    parent: int,
    rule: int,
    width: int,
    height: int,
    face: int,
    turn: int,
) -> int:
    """Add one unit to those already packed, a pair with both of its units; return the new number of rectangles.

    Args:
        rects: Left, bottom, right, top and the rows of gaps of the four faces of each rectangle so far.
        first: Where they begin in ``rects``.
        count: How many there are.
        gaps: Gap between two faces, row by row; symmetric.
        stride: Length of a row.
        kind: ``FREE``, ``CENTRED`` or ``PAIR``.
        parent: Rectangle from which its x follows; -1 for none.
        rule: How.
        width: Its width.
        height: Its height.
        face: Its left face as it is drawn; right, bottom and top follow.
        turn: Its orientation.
    """
    mirrored, upside_down = turn & 1, turn >> 1
    near, far = face + mirrored, face + 1 - mirrored
    below, above = face + 2 + upside_down, face + 3 - upside_down
    x = 0
    if kind == CENTRED:
        x = -(width // 2)
    else:
        if parent >= 0:
            p = first + RECT_SIZE * parent
            if rule == RIGHT_OF:
                x = rects[p + 2] + gaps[rects[p + 5] + near]
            elif rule == FLUSH_LEFT:
                x = rects[p]
            elif rule == LEFT_OF:
                x = rects[p] - gaps[rects[p + 4] + far] - width
            else:
                x = rects[p + 2] - width
        if kind == PAIR:
            x = max(x, (gaps[near * stride + near] + 1) // 2)
    y = 0
    end = first + RECT_SIZE * count
    left, right = x, x + width
    for copy in range(2 if kind == PAIR else 1):
        if copy:
            left, right = -right, -left
            near, far = far, near
        for o in range(end - RECT_SIZE, first - RECT_SIZE, -RECT_SIZE):  # the last ones are probably the highest
            top = rects[o + 3] + gaps[rects[o + 7] + below]
            if top <= y:
                continue
            if left >= rects[o + 2]:  # gaps are not negative
                if left < rects[o + 2] + gaps[rects[o + 5] + near]:
                    y = top
            elif rects[o] < right or rects[o] < right + gaps[rects[o + 4] + far]:
                y = top
    if kind == PAIR:  # the left one was placed last
        near, far = far, near
    for copy in range(2 if kind == PAIR else 1):
        o = end + RECT_SIZE * copy
        rects[o] = -x - width if copy else x
        rects[o + 1] = y
        rects[o + 2] = rects[o] + width
        rects[o + 3] = y + height
        rects[o + 4], rects[o + 5] = near * stride, far * stride
        rects[o + 6], rects[o + 7] = below * stride, above * stride
        near, far = far, near
    return count + (2 if kind == PAIR else 1)


def pack_cluster(
    state: Numbers, n: int, cluster: int, items: Numbers, shapes: Numbers, gaps: Numbers, stride: int, scratch: Numbers
) -> None:
    """Pack the blocks of one cluster and note its size, and by how much its taps are too far away, in the state."""
    rects, where, members = scratch
    first, c = ITEMS * n, CLUSTERS * n + CLUSTER_SIZE * cluster
    count = 0
    for position in range(n):
        item = state[position]
        if state[first + ITEM_SIZE * item + CLUSTER] == cluster:
            members[count] = item
            where[item] = -1
            count += 1
    totals = TOTALS * n
    state[totals + T_CLUSTERS] += (count > 0) - (state[c + C_COUNT] > 0)
    state[totals + T_FAULTS] -= state[c + C_FAULT]
    loose = count != state[c + C_COUNT]
    state[c + C_COUNT], state[c + C_FAULT] = count, 0
    state[C_STALE * n + cluster], state[C_MOVED * n + cluster] = 0, 1
    if count == 0:
        state[C_LOOSE * n + cluster] = 1
        return
    kind_of_cluster = PAIR if state[c + C_APART] else FREE
    far = 1 << 40
    left, bottom, right, top = far, far, -far, -far
    in_left, in_bottom, in_right, in_top, reach = far, far, -far, -far, far
    start = 0 * n  # for a literal 0, numba would compile put_down once more
    units, last = start, -1
    for number in range(count):
        item = members[number]
        i = first + ITEM_SIZE * item
        shape, turn = items[item * I_SIZE + I_FIRST] + state[i + SHAPE], state[i + TURN]
        s = (ORIENTATIONS * shape + turn) * S_SIZE
        kind = items[item * I_SIZE + I_KIND]
        if kind_of_cluster == PAIR or state[i + OFF_AXIS]:
            kind = FREE
        elif kind != FREE:
            kind_of_cluster = CENTRED
        reference = state[i + REFERENCE]
        parent = last
        if reference >= 0 and state[first + ITEM_SIZE * reference + CLUSTER] == cluster and where[reference] >= 0:
            parent = where[reference]
        width, height, rule = shapes[s + S_WIDTH], shapes[s + S_HEIGHT], state[i + RULE]
        after = put_down(rects, start, units, gaps, stride, kind, parent, rule, width, height, 4 * shape, turn)
        where[item] = last = units
        o = RECT_SIZE * units
        state[i + X], state[i + Y] = rects[o], rects[o + 1]
        for rect in range(units, after):
            if rect > units:  # a mirror image has its left and right margin exchanged
                o, s = o + RECT_SIZE, (ORIENTATIONS * shape + (turn ^ MIRRORED)) * S_SIZE
            x0, y0, x1, y1 = rects[o], rects[o + 1], rects[o + 2], rects[o + 3]
            if x0 - shapes[s + S_LEFT] < left:
                left = x0 - shapes[s + S_LEFT]
            if x1 + shapes[s + S_RIGHT] > right:
                right = x1 + shapes[s + S_RIGHT]
            if y0 - shapes[s + S_BOTTOM] < bottom:
                bottom = y0 - shapes[s + S_BOTTOM]
            if y1 + shapes[s + S_TOP] > top:
                top = y1 + shapes[s + S_TOP]
            if x0 - shapes[s + S_IN_LEFT] < in_left:
                in_left = x0 - shapes[s + S_IN_LEFT]
            if x1 + shapes[s + S_IN_RIGHT] > in_right:
                in_right = x1 + shapes[s + S_IN_RIGHT]
            if y0 - shapes[s + S_IN_BOTTOM] < in_bottom:
                in_bottom = y0 - shapes[s + S_IN_BOTTOM]
            if y1 + shapes[s + S_IN_TOP] > in_top:
                in_top = y1 + shapes[s + S_IN_TOP]
        if shapes[s + S_REACH] < reach:
            reach = shapes[s + S_REACH]
        units = after
    if kind_of_cluster == CENTRED:
        right = max(right, -left)
        left = -right
    fault = max(0, min(in_right - in_left, in_top - in_bottom) - reach)
    state[totals + T_FAULTS] += fault
    state[c + C_FAULT], state[c + C_LEFT], state[c + C_BOTTOM] = fault, left, bottom
    item = members[0]
    face, turn = 4 * items[item * I_SIZE + I_CLASS], 0
    if not items[item * I_SIZE + I_RINGED]:  # it is alone, and others see its own faces
        i = first + ITEM_SIZE * item
        face, turn = face + 4 * state[i + SHAPE], state[i + TURN]
    if (
        loose
        or state[c + C_WIDTH] != right - left
        or state[c + C_HEIGHT] != top - bottom
        or state[c + C_KIND] != kind_of_cluster
        or state[c + C_FACE] != face
        or state[c + C_TURN] != turn
    ):
        state[C_LOOSE * n + cluster] = 1
        state[c + C_WIDTH], state[c + C_HEIGHT], state[c + C_KIND] = right - left, top - bottom, kind_of_cluster
        state[c + C_FACE], state[c + C_TURN] = face, turn


def pack_clusters(state: Numbers, n: int, gaps: Numbers, stride: int, side_cost: int, limit: int) -> bool:
    """Pack the clusters into the layout, and note where they lie and the bounding box in the state.

    Those before the first one without a place stay where they are. Once the area of the box, plus ``side_cost`` for
    each step of its width and height, exceeds ``limit``, the rest is not computed, and the result is False.
    """
    first, clusters, loose = RECTS * n, CLUSTERS * n, C_LOOSE * n
    count, last, position = 0 * n, -1, 0
    while position < n and not state[loose + state[n + position]]:
        c = clusters + CLUSTER_SIZE * state[n + position]
        if state[c + C_COUNT]:
            last = state[c + C_RECT]
            count = last + (2 if state[c + C_KIND] == PAIR else 1)
        position += 1
    if position == n:
        return True
    for later in range(n + position, 2 * n):
        state[clusters + CLUSTER_SIZE * state[later] + C_RECT] = -1
    left, right, top, o = 0, 0, 0, first + RECT_SIZE * count
    if count:
        left, right, top = state[o - 3], state[o - 2], state[o - 1]
    for later in range(n + position, 2 * n):
        c = clusters + CLUSTER_SIZE * state[later]
        if state[c + C_COUNT] == 0:
            continue
        reference, parent = state[c + C_REFERENCE], last
        if reference >= 0 and state[clusters + CLUSTER_SIZE * reference + C_RECT] >= 0:
            parent = state[clusters + CLUSTER_SIZE * reference + C_RECT]
        kind, rule, width, height = state[c + C_KIND], state[c + C_RULE], state[c + C_WIDTH], state[c + C_HEIGHT]
        face, turn = state[c + C_FACE], state[c + C_TURN]
        after = put_down(state, first, count, gaps, stride, kind, parent, rule, width, height, face, turn)
        state[c + C_RECT] = last = count
        x, y = state[o], state[o + 1]
        if state[c + C_X] != x or state[c + C_Y] != y:
            state[c + C_X], state[c + C_Y] = x, y
            state[C_MOVED * n + state[later]] = 1
        count, o = after, first + RECT_SIZE * after
        if x + width > right:
            right = x + width
        if kind == PAIR:
            x = -x - width
        if x < left:
            left = x
        if y + height > top:
            top = y + height
        state[o - 3], state[o - 2], state[o - 1] = left, right, top
        if (right - left) * top + side_cost * (right - left + top) > limit:
            return False
    totals = TOTALS * n
    state[totals + T_LEFT], state[totals + T_RIGHT], state[totals + T_TOP] = left, right, top
    return True


def framed_width(state: Numbers, n: int, items: Numbers, shapes: Numbers) -> int:
    """Return the width of the layout with a frame that is symmetric about the axis of the ports that mirror each other.

    They do about the main axis where a block between them has its middle there. Without blocks on the main axis it is
    that of the first block between them.
    """
    main = framed = 0
    for item in range(n):
        if items[item * I_SIZE + I_KIND] != FREE and not state[ITEMS * n + ITEM_SIZE * item + OFF_AXIS]:
            main = 1
            break
    axis = 0  # doubled
    for item in range(n):
        if items[item * I_SIZE + I_FRAMES]:
            i = ITEMS * n + ITEM_SIZE * item
            c = CLUSTERS * n + CLUSTER_SIZE * state[i + CLUSTER]
            s = ORIENTATIONS * (items[item * I_SIZE + I_FIRST] + state[i + SHAPE]) * S_SIZE
            middle = 2 * (state[i + X] + state[c + C_X] - state[c + C_LEFT]) + shapes[s + S_WIDTH]
            if not main:
                axis = middle
            if not main or middle == 0 or items[item * I_SIZE + I_KIND] == PAIR:
                framed = 1
                break
    left, right = state[TOTALS * n + T_LEFT], state[TOTALS * n + T_RIGHT]
    width: int = right - left
    return max(width, 2 * right - axis, axis - 2 * left) if framed else width


def wire_length(state: Numbers, n: int, items: Numbers, wires: Numbers, most: int, dirty: Numbers) -> int:
    """Return the half-perimeter wire length, each net times its weight, and note the nets' boxes in the state.

    Only nets of blocks that moved are measured. Once the length exceeds ``most``, the rest is not measured.
    """
    wired, nets_of, boxes, ends, end_rows, weights = wires
    first, clusters, moved, nets = ITEMS * n, CLUSTERS * n, C_MOVED * n, TOTALS * n + T_SIZE
    total: int = state[TOTALS * n + T_WIRES]
    count = 0
    for item in range(n):
        i = first + ITEM_SIZE * item
        cluster = state[i + CLUSTER]
        if not state[moved + cluster]:
            continue
        c = clusters + CLUSTER_SIZE * cluster
        x = state[i + X] + state[c + C_X] - state[c + C_LEFT]
        y = state[i + Y] + state[c + C_Y] - state[c + C_BOTTOM]
        row = ORIENTATIONS * state[i + SHAPE] + state[i + TURN]
        row = items[item * I_SIZE + I_ROWS] + row * 4 * (wired[item + 1] - wired[item])
        if state[i + AT_X] == x and state[i + AT_Y] == y and state[i + AT_ROW] == row:
            continue
        state[i + AT_X], state[i + AT_Y], state[i + AT_ROW] = x, y, row
        for k in range(wired[item], wired[item + 1]):
            net = nets_of[k]
            o = nets + NET_SIZE * net
            if state[o + 4] >= 0:
                total -= state[o + 4]
                state[o + 4] = -1
                dirty[count] = net
                count += 1
    far = 1 << 40
    for number in range(count):
        net = dirty[number]
        left, bottom, right, top = far, far, -far, -far
        for e in range(ends[net], ends[net + 1], E_SIZE):
            i = first + ITEM_SIZE * end_rows[e]
            row = state[i + AT_ROW] + end_rows[e + E_BOX]
            x, y = state[i + AT_X], state[i + AT_Y]
            if end_rows[e + E_LEFT]:
                x = -x
            if x + boxes[row] < left:
                left = x + boxes[row]
            if y + boxes[row + 1] < bottom:
                bottom = y + boxes[row + 1]
            if x + boxes[row + 2] > right:
                right = x + boxes[row + 2]
            if y + boxes[row + 3] > top:
                top = y + boxes[row + 3]
        o = nets + NET_SIZE * net
        state[o], state[o + 1], state[o + 2], state[o + 3], state[o + 4] = left, bottom, right, top, 0
        if right >= left:
            state[o + 4] = weights[net] * (right - left + top - bottom)
            total += state[o + 4]
            if total > most:
                break
    state[TOTALS * n + T_WIRES] = total
    return total


def relation_rows(
    options: PlacementOptions, numbers: Mapping[str, tuple[int, int]], gaps: Mapping[tuple[str, str], int]
) -> list[list[int]]:
    """Return the relations that ``options`` want, one row each: two blocks and edges, the kind and the steps.

    Args:
        options: What is wanted.
        numbers: Block to the number of its item, and 1 for the left one of two partners.
        gaps: Least gap between two blocks that are to abut, the left one first. [grid steps]

    Raises:
        GeometryError: If a name is that of no block.
    """
    groups = [names for _, names in (*options.aligned, *options.ordered)] + list(options.abutting)
    unknown = sorted({name for names in groups for name in names if name not in numbers})
    if unknown:
        raise GeometryError(f"there is no block {', '.join(unknown)}; blocks: {', '.join(sorted(numbers))}")

    def row(one: str, edge: str, other: str, other_edge: str, *, kind: int = NOT_BEYOND, steps: int = 0) -> list[int]:
        return [*numbers[one], EDGES.index(edge), *numbers[other], EDGES.index(other_edge), kind, steps]

    found = [
        row(one, edge, other, edge, kind=EQUAL) for edge, names in options.aligned for one, other in pairwise(names)
    ]
    for direction, names in options.ordered:
        high, low = _ORDERS[direction]
        found += [row(before, high, after, low) for before, after in pairwise(names)]
    for names in options.abutting:
        for left, right in pairwise(names):
            found.append(row(left, "right", right, "left"))
            found.append(row(right, "left", left, "right", steps=gaps[left, right]))
            found.append(row(left, "bottom", right, "top", steps=-1))
            found.append(row(right, "bottom", left, "top", steps=-1))
    return found


def relation_lack(state: Numbers, n: int, items: Numbers, shapes: Numbers, relations: Numbers) -> int:
    """Return by how many half steps all relations together are not kept."""
    lack = 0
    for index in range(len(relations) // RELATION_SIZE):
        first = RELATION_SIZE * index
        places = [0, 0]
        for which in range(2):
            item, copy, edge = (
                relations[first + 3 * which],
                relations[first + 3 * which + 1],
                relations[first + 3 * which + 2],
            )
            i = ITEMS * n + ITEM_SIZE * item
            c = CLUSTERS * n + CLUSTER_SIZE * state[i + CLUSTER]
            s = ORIENTATIONS * (items[item * I_SIZE + I_FIRST] + state[i + SHAPE]) * S_SIZE
            width, height = shapes[s + S_WIDTH], shapes[s + S_HEIGHT]
            x = state[i + X] + state[c + C_X] - state[c + C_LEFT]
            y = state[i + Y] + state[c + C_Y] - state[c + C_BOTTOM]
            if copy:
                x = -x - width
            if edge < 3:
                places[which] = 2 * x + (0, 2, 1)[edge] * width
            else:
                places[which] = 2 * y + (0, 2, 1)[edge - 3] * height
        beyond = places[0] - places[1]
        beyond = abs(beyond) if relations[first + 6] == EQUAL else beyond - 2 * relations[first + 7]
        if beyond > 0:
            lack += beyond + LEAST_LACK
    return lack
