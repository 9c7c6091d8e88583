"""Place blocks in two dimensions: a first packing, the search, and the placement it found."""

from __future__ import annotations

import hashlib
import math
import random
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutkit.compiled import CompiledByOne, compiled
from layoutkit.errors import GeometryError, sentences
from layoutkit.place import annealing, packing
from layoutkit.place.blocks import PlacementOptions
from layoutkit.place.packing import (
    AT_ROW,
    C_APART,
    C_FAULT,
    C_RECT,
    C_REFERENCE,
    C_RULE,
    C_STALE,
    C_WIDTH,
    CLUSTER,
    CLUSTER_SIZE,
    CLUSTERS,
    FLUSH_LEFT,
    I_FIRST,
    I_SIZE,
    ITEM_SIZE,
    ITEMS,
    N_FACES,
    N_NETS,
    N_OUT_HEIGHT,
    N_OUT_WIDTH,
    ORIENTATIONS,
    PAIR,
    RECT_SIZE,
    REFERENCE,
    RULE,
    S_SIZE,
    S_WIDTH,
    T_SIZE,
)
from layoutkit.place.problem import UNLIMITED, Problem, make_problem, placement_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.place.blocks import Block, Placement
    from layoutkit.technology import Technology

MOVES_PER_PAIR, MOST_MOVES = 600, 100_000
"""Changes that are tried: per two items, and at most. Three times as many make a layout of 30 items 1 % smaller."""
COMPILE_FROM_WORK = 300_000
"""Work of this process, moves times items, from which numba is started: so much costs Python what its start does (0.6 s
CPU from its cache)."""
COMPILED = (
    "put_down",
    "pack_cluster",
    "pack_clusters",
    "framed_width",
    "wire_length",
    "relation_lack",
    "assign",
    "cost_of",
    "exchange",
    "exchange_places",
    "move_in_order",
    "swap",
    "join_cluster",
    "change",
    "anneal",
)
"""The functions that numba compiles, each after those that it calls."""
ROOM_IN_ROWS = 1.33
"""Area of the rows of the first state, compared with that of the blocks."""
HEAT, HEAT_OF_ITEM = 0.2, 0.4
"""First temperature, as a part of the first cost: at most, and that of a single item. One change moves one item, and
matters less the more items there are: 160 transistors need a third less area so than with the first value alone."""

_compiled: dict[str, Any] = {}
_work = [0]


def place_blocks(
    technology: Technology,
    blocks: Sequence[Block],
    options: PlacementOptions | None = None,
    engine: str = "auto",
    searched: dict[bytes, Any] | None = None,
) -> Placement:
    """Return a legal placement of ``blocks``; blocks without taps share rings where that saves area.

    Args:
        technology: Gives the clearances and the grid.
        blocks: What to place; names are unique, partners name each other.
        options: Room for wires, shape, what belongs together, seed.
        engine: ``python``, ``numba`` (Python where it is not installed), or ``auto``: numba once this
            process has done enough to pay for its start. All give the same placement.
        searched: What earlier searches found, which is used for equal problems and added to; None searches anew.

    Raises:
        GeometryError: If ``blocks`` is empty, two have one name, a partner is missing or differs, or a block cannot be
            centred.
    """
    check_blocks(blocks)
    options = options or PlacementOptions()
    problem = make_problem(technology, blocks, options)
    n = len(problem.items)
    moves = options.moves if options.moves is not None else min(MOVES_PER_PAIR * n * n, MOST_MOVES)
    return placement_of(problem, _search(problem, options.seed, moves, engine, searched), blocks)


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse blocks that cannot be placed.

    Raises:
        GeometryError: If there are none, two have one name, or a partner is missing or differs.
    """
    names = [block.name for block in blocks]
    if not names:
        raise GeometryError("there is nothing to place")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise GeometryError(f"block names must be unique, got more than once: {', '.join(twice)}")
    by_name = {block.name: block for block in blocks}
    faults = []
    for block in blocks:
        partner = by_name.get(block.partner) if block.partner else None
        if block.partner and (
            partner is None
            or partner.partner != block.name
            or [shape.box for shape in partner.shapes] != [shape.box for shape in block.shapes]
        ):
            faults.append(f"block {block.name} names {block.partner} as partner, which is not its equal")
        if block.partner and block.symmetric:
            faults.append(
                f"block {block.name} cannot both be centred on the axis and mirror its partner {block.partner}"
            )
    if faults:
        raise GeometryError(sentences(faults))


def _search(problem: Problem, seed: int, moves: int, engine: str, searched: dict[bytes, Any] | None) -> Any:
    """Return the best state found: that of an equal problem, where one was searched; names make no difference."""
    state = first_state(problem)
    if searched is None:
        return _anneal(problem, state, seed, moves, engine)
    digest = hashlib.sha256(repr((seed, moves, state)).encode())
    for array in _arrays_of(problem.numbers):
        digest.update(repr(array.shape).encode() + array.tobytes())
    key = digest.digest()
    if key not in searched:
        searched[key] = _anneal(problem, state, seed, moves, engine)
    return searched[key]


def _arrays_of(numbers: tuple[Any, ...]) -> Iterator[Any]:
    for each in numbers:
        if isinstance(each, tuple):
            yield from _arrays_of(each)
        else:
            yield each


def _anneal(problem: Problem, state: list[int], seed: int, moves: int, engine: str) -> Any:
    """Return the best state found from a first one."""
    n = len(problem.items)
    generator = random.Random(seed)  # noqa: S311 - a search, not a secret
    numbers = np.frombuffer(generator.randbytes(16 * moves), dtype="<u4").astype(np.int64)
    energies = [-math.log(1.0 - generator.random()) for _ in range(moves)]
    search = None
    _work[0] += moves * (n + 6)
    if engine == "numba" or (engine == "auto" and _work[0] >= COMPILE_FROM_WORK):
        search = _numba_anneal()
    arrays = problem.numbers if search else as_lists(problem.numbers)
    scratch, heat = scratch_of(problem), min(HEAT, HEAT_OF_ITEM / n)
    best: Any = list(state)
    if search:
        best = np.array(state)
        search(np.array(state), best, arrays, _as_arrays(scratch), numbers, np.array(energies), heat)
    else:
        annealing.anneal(state, best, arrays, scratch, numbers.tolist(), energies, heat)
    return best


def scratch_of(problem: Problem) -> tuple[Any, ...]:
    """Return working memory for the search: for packing, for nets, empty flags, a saved state, and cost and faults."""
    n, nets = len(problem.items), problem.numbers[0][N_NETS]
    room = [0] * (2 * RECT_SIZE * n), [0] * n, [0] * n
    return (room, [0] * nets, [0] * (3 * n)), [0] * len(empty_state(problem)), [0, 0]


def _as_arrays(scratch: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_as_arrays(each) if isinstance(each, tuple) else np.array(each, dtype=np.int64) for each in scratch)


def as_lists(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arrays in nested tuples as lists, which plain Python reads faster."""
    return tuple(as_lists(each) if isinstance(each, tuple) else each.tolist() for each in numbers)


def empty_state(problem: Problem) -> list[int]:
    """Return a state in which nothing has a place yet, and everything is to be packed."""
    n, nets = len(problem.items), int(problem.numbers[0][N_NETS])
    item, cluster = [0] * ITEM_SIZE, [0] * CLUSTER_SIZE
    item[CLUSTER] = item[REFERENCE] = item[AT_ROW] = cluster[C_REFERENCE] = cluster[C_RECT] = -1
    state = [*range(n), *range(n), *item * n, *cluster * n, *[0] * (2 * RECT_SIZE * n)]
    return [*state, *[1] * (2 * n), *[0] * n, *[0] * T_SIZE, *[0, 0, -1, 0, 0] * nets]


def first_state(problem: Problem) -> list[int]:
    """Return a first state: the blocks of one ring together, as many as the taps reach, in rows above one another."""
    n = len(problem.items)
    state = empty_state(problem)
    groups: dict[object, list[int]] = {}
    for number, item in enumerate(problem.items):
        key = (item.block.ring.key, item.kind != 0) if item.block.ring else number
        groups.setdefault(key, []).append(number)
    waiting = list(groups.values())
    clusters: list[list[int]] = []
    numbers, items, shapes, gaps = (array.tolist() for array in problem.numbers[:4])
    longest, room = _row_length(problem), scratch_of(problem)[0][0]
    first, records, stale = ITEMS * n, CLUSTERS * n, C_STALE * n
    while waiting:
        members = waiting.pop()
        cluster = len(clusters)
        item = problem.items[members[0]]
        c = records + CLUSTER_SIZE * cluster
        state[c + C_APART] = int(item.kind == PAIR and item.block.ring is None)
        for number in range(n):
            state[first + ITEM_SIZE * number + CLUSTER] = cluster if number in members else -1
        shape_of = [items[number * I_SIZE + I_FIRST] for number in members]
        widths = [shapes[ORIENTATIONS * S_SIZE * shape + S_WIDTH] for shape in shape_of]
        _in_rows(state, (first + REFERENCE, ITEM_SIZE, RULE - REFERENCE), members, widths, longest)
        packing.pack_cluster(state, n, cluster, items, shapes, gaps, numbers[N_FACES], room)
        if state[c + C_FAULT] and len(members) > 1:
            waiting += [members[: len(members) // 2], members[len(members) // 2 :]]
            continue
        clusters.append(members)
    for cluster, members in enumerate(clusters):
        for number in members:
            state[first + ITEM_SIZE * number + CLUSTER] = cluster
    order = range(len(clusters))
    widths = [state[records + CLUSTER_SIZE * each + C_WIDTH] for each in order]
    _in_rows(state, (records + C_REFERENCE, CLUSTER_SIZE, C_RULE - C_REFERENCE), order, widths, longest)
    state[stale : stale + 2 * n] = [1] * (2 * n)
    return state


def _row_length(problem: Problem) -> int:
    """Return how long a row of the first state may be, so that all rows have about the wanted ratio. [grid steps]

    Few blocks, of which every two are exchanged often, begin in one row.
    """
    if MOVES_PER_PAIR * len(problem.items) ** 2 <= MOST_MOVES:
        return UNLIMITED
    width, height = problem.numbers[0][N_OUT_WIDTH], problem.numbers[0][N_OUT_HEIGHT]
    ratio = width / height if width else 1.0
    area = sum(item.block.width * item.block.height * (2 if item.partner else 1) for item in problem.items)
    return round(math.sqrt(ROOM_IN_ROWS * area * ratio)) // problem.grid


def _in_rows(
    state: list[int], records: tuple[int, int, int], members: Sequence[int], widths: Sequence[int], longest: int
) -> None:
    """Let each member that would make a row too long begin the next row, above the first one of its row.

    ``records`` is where the references begin, the size of a record, and where in it a rule is.
    """
    references, size, rule = records
    first, length = members[0], 0
    for number, width in zip(members, widths, strict=True):
        length += width
        entry = references + size * number
        state[entry] = -1
        if length > longest and number != first:
            state[entry], state[entry + rule] = first, FLUSH_LEFT
            first, length = number, width


def _numba_anneal() -> Any:
    """Return the search compiled by numba, None where it is not installed."""
    if "anneal" not in _compiled:
        _compiled["anneal"] = None
        from types import FunctionType

        namespace = {**vars(packing), **vars(annealing), "assign": annealing.assign_each}
        version = version_of(namespace)
        try:
            for name in COMPILED:
                plain = FunctionType(namespace[name].__code__, namespace, name)
                plain.__qualname__ = f"{name}_{version}"  # names its file in the cache
                plain.__module__ = namespace[name].__module__
                namespace[name] = compiled(plain)
        except ImportError:
            return None
        _compiled["anneal"] = CompiledByOne(namespace["anneal"])
    return _compiled["anneal"]


def version_of(namespace: Mapping[str, Any]) -> str:
    """Return a number of the compiled functions and all their constants.

    Numba compiles a function again when its own file changes, not when a constant of another module does.
    """
    numbers = sorted((name, value) for name, value in namespace.items() if isinstance(value, int | float))
    codes = [(namespace[name].__code__.co_code, namespace[name].__code__.co_consts) for name in COMPILED]
    return f"{zlib.crc32(repr((numbers, codes)).encode()):08x}"
