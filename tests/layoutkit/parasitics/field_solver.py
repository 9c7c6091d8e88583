"""Capacitances of a cross-section from its electric field: finite volumes on a graded grid.

The grid has lines at all edges of conductors and grows away from them. Rows are eliminated one after the other (block
elimination of a block-tridiagonal matrix), for all conductors at once. Below is a grounded plane; the other sides of
the domain are far away and let no field through.
"""

from itertools import pairwise

import numpy as np

VACUUM = 8.8541878  # aF/um
_FINEST = 0.04  # distance of grid lines beside an edge [um]
_GROWTH = 1.6


def capacitance_matrix(conductors, permittivity, width=30.0, height=20.0):
    """Return what each conductor has to the plane, and to each other one, per length. [aF/um]

    Args:
        conductors: ``(left, bottom, right, top)`` of each. [um]
        permittivity: Relative permittivity, or rows ``(top, permittivity)`` from below; the last one goes on.
        width: Distance from the conductors to the sides. [um]
        height: Height of the domain. [um]

    Returns:
        ``ground[i]`` and ``coupling[i][j]``.
    """
    rows = [(height, permittivity)] if isinstance(permittivity, (int, float)) else list(permittivity)
    left, right = min(c[0] for c in conductors) - width, max(c[2] for c in conductors) + width
    xs = _lines({x for c in conductors for x in (c[0], c[2])}, left, right)
    bounds = {y for c in conductors for y in (c[1], c[3])} | {top for top, _ in rows if top < height}
    ys = _lines(bounds | {0.0}, 0.0, height)
    middle = (ys[1:] + ys[:-1]) / 2
    layers = np.searchsorted([top for top, _ in rows[:-1]], middle)
    epsilon = np.array([value for _, value in rows])[layers] * VACUUM
    owner = _owners(conductors, xs, ys)
    potentials = _potentials(xs, ys, epsilon, owner, len(conductors))
    charge = np.array([[_charge(xs, ys, epsilon, owner, one, v) for one in range(len(conductors))] for v in potentials])
    coupling = -charge
    np.fill_diagonal(coupling, 0.0)
    return charge.sum(axis=1), (coupling + coupling.T) / 2


def _lines(fixed, low, high):
    """Return grid lines at all fixed places, fine beside them and coarser farther away."""
    places = sorted({low, high, *fixed})
    lines = [low]
    for a, b in pairwise(places):
        near_a, near_b = a in fixed, b in fixed
        steps, step = [], _FINEST
        side = (b - a) / 2 if near_a and near_b else b - a
        while sum(steps) + step < side:
            steps.append(step)
            step *= _GROWTH
        scale = side / (sum(steps) + step)
        grown = np.cumsum([*steps, step]) * scale
        inner = set()
        if near_a:
            inner |= {a + x for x in grown}
        if near_b:
            inner |= {b - x for x in grown}
        inner = sorted(x for x in inner if a + 1e-9 < x < b - 1e-9)
        lines += [x for i, x in enumerate(inner) if i == 0 or x - inner[i - 1] > 1e-9] + [b]
    return np.array(lines)


def _owners(conductors, xs, ys):
    owner = np.full((len(ys), len(xs)), -1)
    for number, (left, bottom, right, top) in enumerate(conductors):
        inside = (ys[:, None] > bottom - 1e-9) & (ys[:, None] < top + 1e-9)
        owner[inside & (xs > left - 1e-9) & (xs < right + 1e-9)] = number
    return owner


def _links(xs, ys, epsilon):
    """Return the conductances between neighbours in a row, and between neighbouring rows."""
    dx, dy = np.diff(xs), np.diff(ys)
    weight = epsilon * dy / 2
    rows = np.zeros(len(ys))
    rows[:-1] += weight
    rows[1:] += weight
    columns = np.zeros(len(xs))
    columns[:-1] += dx / 2
    columns[1:] += dx / 2
    return rows[:, None] / dx, (epsilon / dy)[:, None] * columns


def _potentials(xs, ys, epsilon, owner, count):
    across, upwards = _links(xs, ys, epsilon)
    size, height = len(xs), len(ys)
    inverses, sources = [], []
    for row in range(height):
        block = np.zeros((size, size))
        index = np.arange(size - 1)
        block[index, index + 1] = block[index + 1, index] = -across[row]
        total = np.zeros(size)
        total[:-1] += across[row]
        total[1:] += across[row]
        if row:
            total += upwards[row - 1]
        if row < height - 1:
            total += upwards[row]
        block[np.arange(size), np.arange(size)] = total
        fixed = (owner[row] >= 0) | (row == 0)
        block[fixed] = 0.0
        block[fixed, fixed] = 1.0
        source = np.zeros((size, count))
        held = owner[row] >= 0
        source[held, owner[row][held]] = 1.0
        if row:
            below = np.where(fixed, 0.0, -upwards[row - 1])
            above = np.where((owner[row - 1] >= 0) | (row == 1), 0.0, -upwards[row - 1])
            carried = inverses[-1] * above  # the inverse times the diagonal coupling
            block = block - below[:, None] * carried
            source = source - below[:, None] * (inverses[-1] @ sources[-1])
        inverses.append(np.linalg.inv(block))
        sources.append(source)
    found = [inverses[-1] @ sources[-1]]
    for row in range(height - 2, -1, -1):
        fixed = (owner[row] >= 0) | (row == 0)
        above = np.where(fixed, 0.0, -upwards[row])
        found.append(inverses[row] @ (sources[row] - above[:, None] * found[-1]))
    return np.array(found[::-1]).transpose(2, 0, 1)


def _charge(xs, ys, epsilon, owner, one, potential):
    across, upwards = _links(xs, ys, epsilon)
    mine = owner == one
    total = 0.0
    for conductance, a, b, va, vb in (
        (across, mine[:, :-1], mine[:, 1:], potential[:, :-1], potential[:, 1:]),
        (upwards, mine[:-1], mine[1:], potential[:-1], potential[1:]),
    ):
        total += (conductance * (va - vb))[a & ~b].sum() + (conductance * (vb - va))[b & ~a].sum()
    return total
