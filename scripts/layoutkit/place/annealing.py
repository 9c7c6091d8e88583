"""The search for a good packing: random changes of the state, accepted by simulated annealing.

Costs are integers and all random numbers are given, so that Python and compiled code take the same decisions.
Reference: Kirkpatrick, Gelatt, Vecchi, Optimization by simulated annealing, Science 1983.
"""

from __future__ import annotations

from layoutkit.place.packing import (
    C_APART,
    C_COUNT,
    C_FAULT,
    C_ORDER,
    C_REFERENCE,
    C_RULE,
    C_STALE,
    CLUSTER,
    I_COUNT,
    I_FIRST,
    I_FLIPS,
    I_KEY,
    I_KIND,
    I_LEAVES,
    I_MIRRORS,
    I_RINGED,
    I_SIZE,
    MIRRORED,
    N_ASPECT,
    N_CLASS_FACES,
    N_CLUSTER,
    N_FACES,
    N_ITEMS,
    N_OUT_HEIGHT,
    N_OUT_WIDTH,
    N_PITCH,
    OFF_AXIS,
    ORDER,
    PAIR,
    REFERENCE,
    RULE,
    S_EXCESS,
    S_SIZE,
    SHAPE,
    UPSIDE_DOWN,
    Numbers,
    framed_width,
    pack_cluster,
    pack_clusters,
    wire_length,
)
from layoutkit.place.relations import relation_lack

FAULT_COST = 50
"""What a step by which taps are too far away costs, in steps of the perimeter."""
OUTLINE_COST = 8
"""What the area costs by which a wanted outline has to grow, compared with that of the layout."""


def cost_of(state: Numbers, problem: Numbers, scratch: Numbers, limit: int, out: Numbers) -> None:
    """Pack what has changed, and write cost, faults and the box to ``out``. [grid steps, squared]

    The cost is the area with a frame around it, the wires at a width of one track, and what the shape, the taps and the
    ports lack. Where the area alone costs more than ``limit``, the wires are left out.
    """
    numbers, items, shapes, gaps, class_gaps, wired, pins, nets, sides, relations = problem
    leader, packing, box, extents = scratch
    n = numbers[N_ITEMS]
    faults = clusters = 0
    for cluster in range(n):
        if state[C_STALE * n + cluster]:
            pack_cluster(state, cluster, n, items, shapes, gaps, numbers[N_FACES], packing)
        if state[C_COUNT * n + cluster]:
            faults += state[C_FAULT * n + cluster]
            clusters += 1
    pack_clusters(state, n, leader, items, class_gaps, numbers[N_CLASS_FACES], packing, box)
    width, height = box[2] - box[0], box[3] - box[1]
    short, long = min(width, height), max(width, height)
    cost = (
        framed_width(state, n, items, shapes, box) * height
        + FAULT_COST * faults * (width + height)
        + clusters * numbers[N_CLUSTER]
    )
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
    for item in range(n):
        cost += shapes[(items[item * I_SIZE + I_FIRST] + state[SHAPE * n + item]) * S_SIZE + S_EXCESS]
        if state[OFF_AXIS * n + item]:
            cost += items[item * I_SIZE + I_LEAVES]
    cost += relation_lack(state, n, items, shapes, relations) * (width + height) // 2
    out[0], out[1] = cost, faults
    if cost > limit:
        return
    wires = wire_length(state, n, items, shapes, wired, pins, nets, extents)
    for index in range(len(sides) // 2):
        net, edge = 4 * sides[2 * index], sides[2 * index + 1]
        if extents[net + 2] >= extents[net]:
            wires += 10 * abs(box[edge] - extents[net + edge])
    out[0] += wires * numbers[N_PITCH] // 10


def assign(target: Numbers, source: Numbers) -> None:
    """Copy all numbers of ``source`` to ``target``."""
    target[:] = source


def assign_each(target: Numbers, source: Numbers) -> None:
    """Do what ``assign`` does. Of this, numba compiles a twentieth; slices bring the message for unequal lengths."""
    for index in range(len(source)):
        target[index] = source[index]


def exchange(state: Numbers, part: int, n: int, one: int, other: int) -> None:
    """Exchange the entries of two items, or of two clusters, in one part of the state."""
    a, b = part * n + one, part * n + other
    held = state[a]
    state[a] = state[b]
    state[b] = held


def exchange_places(state: Numbers, n: int, parts: Numbers, one: int, other: int) -> None:
    """Let two items, or two clusters, change places in the order, with references and rules."""
    order, reference, rule = parts
    for position in range(n):
        entry = order * n + position
        if state[entry] == one:
            state[entry] = other
        elif state[entry] == other:
            state[entry] = one
        entry = reference * n + position
        if state[entry] == one:
            state[entry] = other
        elif state[entry] == other:
            state[entry] = one
    exchange(state, reference, n, one, other)
    exchange(state, rule, n, one, other)


def move_in_order(state: Numbers, n: int, order: int, which: int, target: int) -> None:
    """Move an entry of an order to position ``target``."""
    position = 0
    while state[order * n + position] != which:
        position += 1
    while position < target:
        state[order * n + position] = state[order * n + position + 1]
        position += 1
    while position > target:
        state[order * n + position] = state[order * n + position - 1]
        position -= 1
    state[order * n + target] = which


def swap(state: Numbers, n: int, items: Numbers, one: int, other: int) -> bool:
    """Exchange two blocks that may change places, else their clusters; return whether anything changed."""
    first, second = state[CLUSTER * n + one], state[CLUSTER * n + other]
    if one == other:
        return False
    if first != second:
        alike = (
            items[one * I_SIZE + I_KEY] == items[other * I_SIZE + I_KEY]
            and items[one * I_SIZE + I_KIND] == items[other * I_SIZE + I_KIND]
            and items[one * I_SIZE + I_RINGED] != 0
        )
        if not alike:
            exchange_places(state, n, (C_ORDER, C_REFERENCE, C_RULE), first, second)
            return True
        exchange(state, CLUSTER, n, one, other)
    exchange_places(state, n, (ORDER, REFERENCE, RULE), one, other)
    state[C_STALE * n + first] = state[C_STALE * n + second] = 1
    return True


def join_cluster(state: Numbers, n: int, items: Numbers, item: int, other: int, choice: int) -> bool:
    """Move a block to the cluster of another, or to one of its own; return whether it did."""
    if not items[item * I_SIZE + I_RINGED]:
        return False
    old, kind = state[CLUSTER * n + item], items[item * I_SIZE + I_KIND]
    new = state[CLUSTER * n + other]
    if choice % 4 == 0:
        new = 0
        while new < n and state[C_COUNT * n + new]:
            new += 1
        if new == n:
            return False
        state[C_APART * n + new] = (choice // 4) % 2 if kind == PAIR else 0
    elif (
        items[item * I_SIZE + I_KEY] != items[other * I_SIZE + I_KEY]
        or new == old
        or (state[C_APART * n + new] and kind != PAIR)
    ):
        return False
    state[CLUSTER * n + item] = new
    state[C_STALE * n + old] = state[C_STALE * n + new] = 1
    return True


def change(state: Numbers, n: int, items: Numbers, random: Numbers, at: int) -> bool:
    """Make one random change; return whether there was one to make."""
    kind, item, other, choice = random[at] % 100, random[at + 1] % n, random[at + 2] % n, random[at + 3]
    cluster, second = state[CLUSTER * n + item], state[CLUSTER * n + other]
    inside = state[C_COUNT * n + cluster] > 1
    if kind < 25:
        return swap(state, n, items, item, other)
    if kind < 45 and inside:
        if cluster != second or item == other:
            other = -1
        state[REFERENCE * n + item], state[RULE * n + item] = other, choice % 4
        if choice // 4 % 2:
            move_in_order(state, n, ORDER, item, choice // 8 % n)
        state[C_STALE * n + cluster] = 1
        return True
    if kind < 62:
        if second == cluster:
            second = -1
        state[C_REFERENCE * n + cluster], state[C_RULE * n + cluster] = second, choice % 4
        if choice // 4 % 2:
            move_in_order(state, n, C_ORDER, cluster, choice // 8 % n)
        return True
    if kind < 75:
        part, able = (UPSIDE_DOWN, I_FLIPS) if choice % 2 else (MIRRORED, I_MIRRORS)
        if choice % 2 == 0 and items[item * I_SIZE + I_LEAVES]:
            part, able = OFF_AXIS, I_LEAVES
        if not items[item * I_SIZE + able]:
            return False
        state[part * n + item] = 1 - state[part * n + item]
        state[C_STALE * n + cluster] = 1
        return True
    if kind < 87 and items[item * I_SIZE + I_COUNT] > 1:
        shape = choice % items[item * I_SIZE + I_COUNT]
        if shape == state[SHAPE * n + item]:
            return False
        state[SHAPE * n + item] = shape
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
    saved, out = scratch[4], scratch[5]
    rest = (scratch[0], scratch[1], scratch[2], scratch[3])
    out[0] = 1 << 62  # as a literal, numba would compile the function for it alone
    cost_of(state, problem, rest, out[0], out)
    cost = out[0]
    lowest = -1
    if out[1] == 0:
        lowest = cost
        assign(best, state)
    start = heat * cost
    moves = len(energies)
    for move in range(moves):
        assign(saved, state)
        if not change(state, n, items, random, 4 * move):
            continue
        cold = 1.0 - move / moves
        limit = cost + int(energies[move] * start * cold * cold * cold)
        cost_of(state, problem, rest, limit, out)
        if out[0] <= limit:
            cost = out[0]
            if out[1] == 0 and (lowest < 0 or cost < lowest):
                lowest = cost
                assign(best, state)
        else:
            assign(state, saved)
    return lowest
