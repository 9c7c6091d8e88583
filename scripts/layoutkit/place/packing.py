"""Packing and its cost, in flat arrays of integers: the same source runs in Python and compiled by numba.

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

References: Chang et al., B*-trees, DAC 2000; Lin, Chang, Lin, Analog placement based on symmetry-island formulation,
IEEE TCAD 2009.
"""

from __future__ import annotations

from typing import Any

Numbers = Any  # list[int] or a numpy array of int64

FREE, CENTRED, PAIR = 0, 1, 2
LEFT, RIGHT, BOTTOM, TOP = 0, 1, 2, 3
RIGHT_OF, FLUSH_LEFT, LEFT_OF, FLUSH_RIGHT = 0, 1, 2, 3

# Parts of the state, each as long as there are items: of items ...
ORDER, CLUSTER, SHAPE, MIRRORED, UPSIDE_DOWN, REFERENCE, RULE, X, Y = range(9)
# ... and of clusters, of which there are at most as many.
C_ORDER, C_REFERENCE, C_RULE, C_APART, C_WIDTH, C_HEIGHT, C_LEFT, C_BOTTOM, C_FAULT, C_KIND, C_X, C_Y, C_STALE = range(
    9, 22
)
C_COUNT = 22
OFF_AXIS = 23  # of items again
PARTS = 24

# Columns of the table of items, of shapes and of what is wired to a shape.
I_KIND, I_KEY, I_FIRST, I_COUNT, I_CLASS, I_RINGED, I_PINS, I_MIRRORS, I_FLIPS, I_LEAVES, I_FRAMES, I_SIZE = range(12)
S_WIDTH, S_HEIGHT, S_LEFT, S_BOTTOM, S_RIGHT, S_TOP, S_IN_LEFT, S_IN_BOTTOM, S_IN_RIGHT, S_IN_TOP, S_REACH = range(11)
S_EXCESS, S_SIZE = 11, 12
P_NET, P_LEFT, P_BOTTOM, P_RIGHT, P_TOP, P_SIZE = range(6)
# Numbers of the whole problem.
N_ITEMS, N_FACES, N_CLASS_FACES, N_NETS, N_PITCH, N_ASPECT, N_OUT_WIDTH, N_OUT_HEIGHT, N_CLUSTER = range(9)


def put_down(  # noqa: PLR0912 - one flat loop: numba compiles it, Python runs it
    rects: Numbers,
    count: int,
    gaps: Numbers,
    stride: int,
    kind: int,
    parent: int,
    rule: int,
    size: Numbers,
    faces: Numbers,
) -> int:
    """Add one unit to those already packed, a pair with both of its units; return the new number of rectangles.

    Args:
        rects: Left, bottom, right, top and the four faces of each rectangle so far, eight numbers each.
        count: How many there are.
        gaps: Gap between two faces, row by row.
        stride: Length of a row.
        kind: ``FREE``, ``CENTRED`` or ``PAIR``.
        parent: Rectangle from which its x follows; -1 for none.
        rule: How.
        size: Width and height.
        faces: Left, right, bottom and top face.
    """
    width, height = size[0], size[1]
    x = 0
    if kind == CENTRED:
        x = -(width // 2)
    else:
        if parent >= 0:
            p = 8 * parent
            if rule == RIGHT_OF:
                x = rects[p + 2] + gaps[rects[p + 5] * stride + faces[0]]
            elif rule == FLUSH_LEFT:
                x = rects[p]
            elif rule == LEFT_OF:
                x = rects[p] - gaps[faces[1] * stride + rects[p + 4]] - width
            else:
                x = rects[p + 2] - width
        if kind == PAIR:
            x = max(x, (gaps[faces[0] * stride + faces[0]] + 1) // 2)
    y, below = 0, faces[2]
    for copy in range(2 if kind == PAIR else 1):
        left = x if copy == 0 else -x - width
        right = left + width
        near, far = (faces[0], faces[1]) if copy == 0 else (faces[1], faces[0])
        for o in range(0, 8 * count, 8):
            if left >= rects[o + 2]:  # gaps are not negative
                if left >= rects[o + 2] + gaps[rects[o + 5] * stride + near]:
                    continue
            elif rects[o] >= right and rects[o] >= right + gaps[far * stride + rects[o + 4]]:
                continue
            top = rects[o + 3] + gaps[rects[o + 7] * stride + below]
            if top > y:
                y = top
    for copy in range(2 if kind == PAIR else 1):
        o = 8 * (count + copy)
        rects[o] = x if copy == 0 else -x - width
        rects[o + 1] = y
        rects[o + 2] = rects[o] + width
        rects[o + 3] = y + height
        rects[o + 4], rects[o + 5] = (faces[0], faces[1]) if copy == 0 else (faces[1], faces[0])
        rects[o + 6], rects[o + 7] = faces[2], faces[3]
    return count + (2 if kind == PAIR else 1)


def pack_cluster(
    state: Numbers, cluster: int, n: int, items: Numbers, shapes: Numbers, gaps: Numbers, stride: int, scratch: Numbers
) -> None:
    """Pack the blocks of one cluster and note its size, and by how much its taps are too far away, in the state."""
    rects, where, size, faces = scratch
    count, last, members = 0 * n, -1, 0  # for a literal 0, numba would compile put_down once more
    kind_of_cluster = PAIR if state[C_APART * n + cluster] else FREE
    far = 1 << 40
    left, bottom, right, top = far, far, -far, -far
    in_left, in_bottom, in_right, in_top, reach = far, far, -far, -far, far
    for item in range(n):
        where[item] = -1
    for position in range(n):
        item = state[ORDER * n + position]
        if state[CLUSTER * n + item] != cluster:
            continue
        members += 1
        shape = items[item * I_SIZE + I_FIRST] + state[SHAPE * n + item]
        mirrored, upside_down = state[MIRRORED * n + item], state[UPSIDE_DOWN * n + item]
        faces[0] = 4 * shape + (RIGHT if mirrored else LEFT)
        faces[1] = 4 * shape + (LEFT if mirrored else RIGHT)
        faces[2] = 4 * shape + (TOP if upside_down else BOTTOM)
        faces[3] = 4 * shape + (BOTTOM if upside_down else TOP)
        s = shape * S_SIZE
        size[0], size[1] = shapes[s + S_WIDTH], shapes[s + S_HEIGHT]
        kind = items[item * I_SIZE + I_KIND]
        if kind_of_cluster == PAIR or state[OFF_AXIS * n + item]:
            kind = FREE
        elif kind != FREE:
            kind_of_cluster = CENTRED
        reference = state[REFERENCE * n + item]
        parent = where[reference] if reference >= 0 and where[reference] >= 0 else last
        after = put_down(rects, count, gaps, stride, kind, parent, state[RULE * n + item], size, faces)
        where[item] = last = count
        x, y = rects[8 * count], rects[8 * count + 1]
        state[X * n + item], state[Y * n + item] = x, y
        for rect in range(count, after):
            # A mirror image has its own left and right margin exchanged.
            turned = (mirrored != 0) != (rect > count)
            x0, x1 = rects[8 * rect], rects[8 * rect + 2]
            y0, y1 = rects[8 * rect + 1], rects[8 * rect + 3]
            left = min(left, x0 - shapes[s + (S_RIGHT if turned else S_LEFT)])
            right = max(right, x1 + shapes[s + (S_LEFT if turned else S_RIGHT)])
            bottom = min(bottom, y0 - shapes[s + (S_TOP if upside_down else S_BOTTOM)])
            top = max(top, y1 + shapes[s + (S_BOTTOM if upside_down else S_TOP)])
            in_left = min(in_left, x0 - shapes[s + (S_IN_RIGHT if turned else S_IN_LEFT)])
            in_right = max(in_right, x1 + shapes[s + (S_IN_LEFT if turned else S_IN_RIGHT)])
            in_bottom = min(in_bottom, y0 - shapes[s + (S_IN_TOP if upside_down else S_IN_BOTTOM)])
            in_top = max(in_top, y1 + shapes[s + (S_IN_BOTTOM if upside_down else S_IN_TOP)])
        reach = min(reach, shapes[s + S_REACH])
        count = after
    if kind_of_cluster == CENTRED:
        right = max(right, -left)
        left = -right
    state[C_COUNT * n + cluster] = members
    state[C_KIND * n + cluster] = kind_of_cluster
    state[C_STALE * n + cluster] = 0
    if members:
        state[C_WIDTH * n + cluster], state[C_HEIGHT * n + cluster] = right - left, top - bottom
        state[C_LEFT * n + cluster], state[C_BOTTOM * n + cluster] = left, bottom
        state[C_FAULT * n + cluster] = max(0, min(in_right - in_left, in_top - in_bottom) - reach)


def pack_clusters(
    state: Numbers, n: int, leader: Numbers, items: Numbers, gaps: Numbers, stride: int, scratch: Numbers, box: Numbers
) -> None:
    """Pack the clusters into the layout, note where they lie in the state, and write the bounding box to ``box``."""
    rects, where, size, faces = scratch
    for item in range(n):
        leader[state[CLUSTER * n + item]] = item
    for cluster in range(n):
        where[cluster] = -1
    count, last = 0 * n, -1
    far = 1 << 40
    box[0], box[1], box[2], box[3] = far, far, -far, -far
    for position in range(n):
        cluster = state[C_ORDER * n + position]
        if state[C_COUNT * n + cluster] == 0:
            continue
        item = leader[cluster]
        face = 4 * items[item * I_SIZE + I_CLASS]
        mirrored = upside_down = 0
        if not items[item * I_SIZE + I_RINGED]:
            face += 4 * state[SHAPE * n + item]
            mirrored, upside_down = state[MIRRORED * n + item], state[UPSIDE_DOWN * n + item]
        faces[0], faces[1] = face + (RIGHT if mirrored else LEFT), face + (LEFT if mirrored else RIGHT)
        faces[2], faces[3] = face + (TOP if upside_down else BOTTOM), face + (BOTTOM if upside_down else TOP)
        size[0], size[1] = state[C_WIDTH * n + cluster], state[C_HEIGHT * n + cluster]
        reference = state[C_REFERENCE * n + cluster]
        parent = where[reference] if reference >= 0 and where[reference] >= 0 else last
        kind, rule = state[C_KIND * n + cluster], state[C_RULE * n + cluster]
        after = put_down(rects, count, gaps, stride, kind, parent, rule, size, faces)
        where[cluster] = last = count
        state[C_X * n + cluster], state[C_Y * n + cluster] = rects[8 * count], rects[8 * count + 1]
        for o in range(8 * count, 8 * after, 8):
            if rects[o] < box[0]:
                box[0] = rects[o]
            if rects[o + 1] < box[1]:
                box[1] = rects[o + 1]
            if rects[o + 2] > box[2]:
                box[2] = rects[o + 2]
            if rects[o + 3] > box[3]:
                box[3] = rects[o + 3]
        count = after


def framed_width(state: Numbers, n: int, items: Numbers, shapes: Numbers, box: Numbers) -> int:
    """Return the width of the layout with a frame that is symmetric about the axis of the ports that mirror each other.

    They do about the main axis where a block between them has its middle there. Without blocks on the main axis it is
    that of the first block between them.
    """
    main = framed = 0
    for item in range(n):
        if items[item * I_SIZE + I_KIND] != FREE and not state[OFF_AXIS * n + item]:
            main = 1
    axis = 0  # doubled
    for item in range(n):
        if items[item * I_SIZE + I_FRAMES] and not framed:
            cluster = state[CLUSTER * n + item]
            s = (items[item * I_SIZE + I_FIRST] + state[SHAPE * n + item]) * S_SIZE
            middle = 2 * (state[X * n + item] + state[C_X * n + cluster] - state[C_LEFT * n + cluster])
            middle += shapes[s + S_WIDTH]
            if not main:
                axis = middle
            framed = int(not main or middle == 0 or items[item * I_SIZE + I_KIND] == PAIR)
    width: int = box[2] - box[0]
    return max(width, 2 * box[2] - axis, axis - 2 * box[0]) if framed else width


def wire_length(  # noqa: PLR0912 - as put_down
    state: Numbers,
    n: int,
    items: Numbers,
    shapes: Numbers,
    wired: Numbers,
    pins: Numbers,
    nets: Numbers,
    extents: Numbers,
) -> int:
    """Return the half-perimeter wire length, each net times its weight; ``extents`` receives the nets' boxes."""
    count = 4 * len(nets)
    for net in range(0, count, 4):
        extents[net] = extents[net + 1] = 1 << 40
        extents[net + 2] = extents[net + 3] = -(1 << 40)
    for item in range(n):
        cluster = state[CLUSTER * n + item]
        shape = state[SHAPE * n + item]
        s = (items[item * I_SIZE + I_FIRST] + shape) * S_SIZE
        mirrored, upside_down = state[MIRRORED * n + item], state[UPSIDE_DOWN * n + item]
        x = state[X * n + item] + state[C_X * n + cluster] - state[C_LEFT * n + cluster]
        y = state[Y * n + item] + state[C_Y * n + cluster] - state[C_BOTTOM * n + cluster]
        width, height = shapes[s + S_WIDTH], shapes[s + S_HEIGHT]
        start = items[item * I_SIZE + I_PINS] + 3 * shape
        for copy in range(2 if items[item * I_SIZE + I_KIND] == PAIR else 1):
            turned = (mirrored != 0) != (copy == 1)
            origin = x if copy == 0 else -x - width
            for p in range(P_SIZE * wired[start + copy], P_SIZE * wired[start + copy + 1], P_SIZE):
                net = 4 * pins[p + P_NET]
                if turned:
                    left, right = origin + width - pins[p + P_RIGHT], origin + width - pins[p + P_LEFT]
                else:
                    left, right = origin + pins[p + P_LEFT], origin + pins[p + P_RIGHT]
                if upside_down:
                    bottom, top = y + height - pins[p + P_TOP], y + height - pins[p + P_BOTTOM]
                else:
                    bottom, top = y + pins[p + P_BOTTOM], y + pins[p + P_TOP]
                if left < extents[net]:
                    extents[net] = left
                if bottom < extents[net + 1]:
                    extents[net + 1] = bottom
                if right > extents[net + 2]:
                    extents[net + 2] = right
                if top > extents[net + 3]:
                    extents[net + 3] = top
    total = 0
    for net in range(0, count, 4):
        if extents[net + 2] >= extents[net]:
            total += nets[net // 4] * (extents[net + 2] - extents[net] + extents[net + 3] - extents[net + 1])
    return total
