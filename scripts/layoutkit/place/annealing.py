"""The search for a good packing: random changes of the state, accepted by simulated annealing.

Costs are integers and all random numbers are given, so that Python and compiled code take the same decisions.
Reference: Kirkpatrick, Gelatt, Vecchi, Optimization by simulated annealing, Science 1983.
"""

from __future__ import annotations

from layoutkit.place.packing import (
    C_APART,
    C_COUNT,
    C_LOOSE,
    C_ORDER,
    C_REFERENCE,
    C_RULE,
    C_STALE,
    CLUSTER,
    CLUSTER_SIZE,
    CLUSTERS,
    I_COUNT,
    I_FIRST,
    I_FLIPS,
    I_KEY,
    I_KIND,
    I_LEAVES,
    I_MIRRORS,
    I_RINGED,
    I_SIZE,
    ITEM_SIZE,
    ITEMS,
    MIRRORED,
    N_ASPECT,
    N_CHOICES,
    N_CLASS_FACES,
    N_CLUSTER,
    N_FACES,
    N_FRAMES,
    N_ITEMS,
    N_OUT_HEIGHT,
    N_OUT_WIDTH,
    N_PITCH,
    NET_SIZE,
    OFF_AXIS,
    ORDER,
    ORIENTATIONS,
    PAIR,
    REFERENCE,
    RULE,
    S_EXCESS,
    S_SIZE,
    SHAPE,
    T_CLUSTERS,
    T_FAULTS,
    T_LEFT,
    T_RIGHT,
    T_SIZE,
    T_TOP,
    TOTALS,
    TURN,
    UPSIDE_DOWN,
    Numbers,
    framed_width,
    pack_cluster,
    pack_clusters,
    relation_lack,
    wire_length,
)

FAULT_COST = 50
"""What a step by which taps are too far away costs, in steps of the perimeter."""
UNBOUNDED = 1 << 56
"""A cost above that of every state."""
OUTLINE_COST = 8
"""What the area costs by which a wanted outline has to grow, compared with that of the layout."""


def cost_of(state: Numbers, problem: Numbers, scratch: Numbers, limit: int, out: Numbers) -> None:
    """Pack what has changed, and write cost and faults to ``out``. [grid steps, squared]

    The cost is the area with a frame around it, the wires at a width of one track, and what the shape, the taps and the
    ports lack. Once the sum exceeds ``limit``, the rest is not computed, and the state is not complete.
    """
    numbers, items, shapes, gaps, class_gaps, wires, sides, relations = problem
    packing, dirty, none = scratch
    n = numbers[N_ITEMS]
    stale, totals = C_STALE * n, TOTALS * n
    for cluster in range(n):
        if state[stale + cluster]:
            pack_cluster(state, n, cluster, items, shapes, gaps, numbers[N_FACES], packing)
    side_cost, cost = FAULT_COST * state[totals + T_FAULTS], state[totals + T_CLUSTERS] * numbers[N_CLUSTER]
    out[0], out[1] = limit + 1, state[totals + T_FAULTS]
    if not pack_clusters(state, n, class_gaps, numbers[N_CLASS_FACES], side_cost, limit - cost):
        return
    width, height = state[totals + T_RIGHT] - state[totals + T_LEFT], state[totals + T_TOP]
    cost += side_cost * (width + height)
    cost += (framed_width(state, n, items, shapes) if numbers[N_FRAMES] else width) * height
    short, long = (width, height) if width < height else (height, width)
    if numbers[N_OUT_WIDTH]:
        # as large as the outline of this ratio that holds all; to add what is too wide and what is too high would
        # make the longest layout the best one where none fits
        out_width, out_height = numbers[N_OUT_WIDTH], numbers[N_OUT_HEIGHT]
        cost += OUTLINE_COST * max(
            0,
            width * width * out_height // out_width - out_width * out_height,
            height * height * out_width // out_height - out_width * out_height,
        )
    elif short * numbers[N_ASPECT] < long * 100:
        cost += (long * 100 // numbers[N_ASPECT] - short) * long  # as large as the outline that has the ratio
    if numbers[N_CHOICES]:
        for item in range(n):
            i = ITEMS * n + ITEM_SIZE * item
            shape = items[item * I_SIZE + I_FIRST] + state[i + SHAPE]
            cost += shapes[ORIENTATIONS * shape * S_SIZE + S_EXCESS]
            if state[i + OFF_AXIS]:
                cost += items[item * I_SIZE + I_LEAVES]
    if len(relations) > 0:
        cost += relation_lack(state, n, items, shapes, relations) * (width + height) // 2
    if cost > limit:
        return
    most = (10 * (limit - cost) + 9) // numbers[N_PITCH]
    length = wire_length(state, n, items, wires, most, dirty)
    if length > most:
        return
    for index in range(len(sides) // 2):
        net, edge = totals + T_SIZE + NET_SIZE * sides[2 * index], sides[2 * index + 1]
        if state[net + 2] >= state[net]:
            length += 10 * abs(state[totals + T_LEFT + edge] - state[net + edge])
    out[0] = cost + length * numbers[N_PITCH] // 10
    assign(state, stale, none)


def assign(target: Numbers, first: int, source: Numbers) -> None:
    """Copy all numbers of ``source`` to ``target``, from entry ``first`` on."""
    target[first : first + len(source)] = source


def assign_each(target: Numbers, first: int, source: Numbers) -> None:
    """Do the same as ``assign``, with less code from numba: slices bring an error message for unequal lengths."""
    for index in range(len(source)):
        target[first + index] = source[index]


def exchange(state: Numbers, a: int, b: int) -> None:
    """Exchange two entries of the state."""
    held = state[a]
    state[a] = state[b]
    state[b] = held


def exchange_places(state: Numbers, n: int, order: int, records: tuple[int, int, int], one: int, other: int) -> None:
    """Exchange two items, or two clusters, in the order, with their references and rules.

    Args:
        state: The state.
        n: How many items there are.
        order: Where the order begins.
        records: Where the references of items or clusters begin, the size of all records, and the way to a rule.
        one: The first item or cluster.
        other: The second one.
    """
    first, length, rule = records
    size = length // n
    for entry in range(order, order + n):
        if state[entry] == one:
            state[entry] = other
        elif state[entry] == other:
            state[entry] = one
    for entry in range(first, first + length, size):
        if state[entry] == one:
            state[entry] = other
        elif state[entry] == other:
            state[entry] = one
    a, b = first + size * one, first + size * other
    exchange(state, a, b)
    exchange(state, a + rule, b + rule)


def move_in_order(state: Numbers, first: int, which: int, target: int) -> int:
    """Move an entry of the order that begins at ``first`` to position ``target``; return the first one that changed."""
    was = 0
    while state[first + was] != which:
        was += 1
    for position in range(was, target):
        state[first + position] = state[first + position + 1]
    for position in range(was, target, -1):
        state[first + position] = state[first + position - 1]
    state[first + target] = which
    return min(was, target)


def swap(state: Numbers, n: int, items: Numbers, one: int, other: int) -> bool:
    """Exchange two blocks that may change places, else their clusters; return whether anything changed."""
    if one == other:
        return False
    i, j = ITEMS * n + ITEM_SIZE * one, ITEMS * n + ITEM_SIZE * other
    first, second = state[i + CLUSTER], state[j + CLUSTER]
    if first != second:
        alike = (
            items[one * I_SIZE + I_KEY] == items[other * I_SIZE + I_KEY]
            and items[one * I_SIZE + I_KIND] == items[other * I_SIZE + I_KIND]
            and items[one * I_SIZE + I_RINGED] != 0
        )
        if not alike:
            records = (CLUSTERS * n + C_REFERENCE, CLUSTER_SIZE * n, C_RULE - C_REFERENCE)
            exchange_places(state, n, C_ORDER * n, records, first, second)
            state[C_LOOSE * n + first] = state[C_LOOSE * n + second] = 1
            return True
        exchange(state, i + CLUSTER, j + CLUSTER)
    exchange_places(state, n, ORDER * n, (ITEMS * n + REFERENCE, ITEM_SIZE * n, RULE - REFERENCE), one, other)
    state[C_STALE * n + first] = state[C_STALE * n + second] = 1
    return True


def join_cluster(state: Numbers, n: int, items: Numbers, item: int, other: int, choice: int) -> bool:
    """Move a block to the cluster of another, or to one of its own; return whether it did."""
    if not items[item * I_SIZE + I_RINGED]:
        return False
    i, clusters = ITEMS * n + ITEM_SIZE * item, CLUSTERS * n
    old, kind = state[i + CLUSTER], items[item * I_SIZE + I_KIND]
    new = state[ITEMS * n + ITEM_SIZE * other + CLUSTER]
    if choice % 4 == 0:
        new = 0
        while new < n and state[clusters + CLUSTER_SIZE * new + C_COUNT]:
            new += 1
        if new == n:
            return False
        state[clusters + CLUSTER_SIZE * new + C_APART] = (choice // 4) % 2 if kind == PAIR else 0
    elif (
        items[item * I_SIZE + I_KEY] != items[other * I_SIZE + I_KEY]
        or new == old
        or (state[clusters + CLUSTER_SIZE * new + C_APART] and kind != PAIR)
    ):
        return False
    state[i + CLUSTER] = new
    state[C_STALE * n + old] = state[C_STALE * n + new] = 1
    return True


def change(state: Numbers, n: int, items: Numbers, random: Numbers, at: int) -> bool:
    """Make one random change; return whether there was one to make."""
    kind, item, other, choice = random[at] % 100, random[at + 1] % n, random[at + 2] % n, random[at + 3]
    if kind < 25:
        return swap(state, n, items, item, other)
    i = ITEMS * n + ITEM_SIZE * item
    cluster, second = state[i + CLUSTER], state[ITEMS * n + ITEM_SIZE * other + CLUSTER]
    c = CLUSTERS * n + CLUSTER_SIZE * cluster
    if kind < 45 and state[c + C_COUNT] > 1:
        if cluster != second or item == other:
            other = -1
        state[i + REFERENCE], state[i + RULE] = other, choice % 4
        if choice // 4 % 2:
            move_in_order(state, ORDER * n, item, choice // 8 % n)
        state[C_STALE * n + cluster] = 1
        return True
    if kind < 62:
        if second == cluster:
            second = -1
        state[c + C_REFERENCE], state[c + C_RULE] = second, choice % 4
        state[C_LOOSE * n + cluster] = 1
        if choice // 4 % 2:
            first = move_in_order(state, C_ORDER * n, cluster, choice // 8 % n)
            state[C_LOOSE * n + state[C_ORDER * n + first]] = 1
        return True
    if kind < 75:
        if choice % 2 == 0 and items[item * I_SIZE + I_LEAVES]:
            state[i + OFF_AXIS] = 1 - state[i + OFF_AXIS]
        elif items[item * I_SIZE + (I_FLIPS if choice % 2 else I_MIRRORS)]:
            state[i + TURN] ^= UPSIDE_DOWN if choice % 2 else MIRRORED
        else:
            return False
        state[C_STALE * n + cluster] = 1
        return True
    if kind < 87 and items[item * I_SIZE + I_COUNT] > 1:
        shape = choice % items[item * I_SIZE + I_COUNT]
        if shape == state[i + SHAPE]:
            return False
        state[i + SHAPE] = shape
        state[C_STALE * n + cluster] = 1
        return True
    return join_cluster(state, n, items, item, other, choice)


def anneal(
    state: Numbers, best: Numbers, problem: Numbers, scratch: Numbers, random: Numbers, energies: Numbers, heat: float
) -> int:
    """Search from ``state``, leave the best state without faults in ``best``, and return its cost; -1 if there is none.

    Args:
        state: Where to start; it is changed.
        best: Receives the best state.
        problem: The numbers of the problem.
        scratch: Room to work in.
        random: Four random integers per change.
        energies: An exponentially distributed number per change, of mean 1: a change that costs more is accepted if
            it costs less than this times the temperature.
        heat: First temperature, as a part of the cost.
    """
    numbers, items = problem[0], problem[1]
    n = numbers[N_ITEMS]
    rest, saved, out = scratch
    start, out[0] = 0 * n, UNBOUNDED  # for literals, numba would compile the functions that take them once more
    cost_of(state, problem, rest, out[0], out)
    cost = out[0]
    lowest = -1
    if out[1] == 0:
        lowest = cost
        assign(best, start, state)
    assign(saved, start, state)
    hot = heat * cost
    moves = len(energies)
    for move in range(moves):
        if not change(state, n, items, random, 4 * move):
            continue
        cold = 1.0 - move / moves
        limit = cost + int(energies[move] * hot * cold * cold * cold)
        cost_of(state, problem, rest, limit, out)
        if out[0] > limit:
            assign(state, start, saved)
            continue
        cost = out[0]
        assign(saved, start, state)
        if out[1] == 0 and (lowest < 0 or cost < lowest):
            lowest = cost
            assign(best, start, state)
    return lowest
