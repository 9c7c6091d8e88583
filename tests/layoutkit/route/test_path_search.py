"""What the search keeps from one call to the next changes no path; distances are those calculated one by one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from layoutkit.route import tracks
from layoutkit.route.tracks import EdgeCosts, Search, Tracks
from layoutkit.route.tree import FEW_BOXES, distance_to
from patience import WATCHDOG_S

LAYERS, ROWS, COLUMNS = 3, 12, 9
SMALLEST = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import tracks
costs = tracks.EdgeCosts(*(np.full((1, 2, 2), -1, dtype=np.int64) for _ in range(3)))
costs.right[0, 0, 0] = 5
assert tracks.Search("numba").shortest_path(costs, np.zeros((2, 2), dtype=np.int64), [0], [1]) == [0, 1]
print(sum(tracks._compiled["astar"].function.stats.cache_hits.values()))
"""


def random_costs(seed):
    random = np.random.default_rng(seed)
    right, up, via = (random.integers(1, 50, (LAYERS, ROWS, COLUMNS)) for _ in range(3))
    for array in (right, up, via):
        array[random.random(array.shape) < 0.25] = -1
    right[:, :, -1] = up[:, -1] = via[-1] = -1
    return EdgeCosts(right, up, via)


@pytest.mark.parametrize("engine", ["python", "numba"])
def test_a_search_used_again_finds_what_a_new_one_finds(engine):
    if engine == "numba":
        pytest.importorskip("numba", reason="skipped: numba is not installed")
    used, guess = Search(engine), np.zeros((ROWS, COLUMNS), dtype=np.int64)
    found = []
    for seed in range(20):
        costs, ends = random_costs(seed), np.random.default_rng(seed).integers(0, LAYERS * ROWS * COLUMNS, (2, 3))
        starts, targets = ends.tolist()
        found.append(used.shortest_path(costs, guess, starts, targets))
        assert found[-1] == Search("python").shortest_path(costs, guess, starts, targets)
    assert sum(map(bool, found)) > 10


def test_a_search_starts_anew_before_its_costs_become_too_small_for_64_bits(monkeypatch):
    pytest.importorskip("numba", reason="skipped: numba is not installed")
    monkeypatch.setattr(tracks, "SEARCHES", 2)
    monkeypatch.setattr(tracks, "NEXT_SEARCH", 1 << 61)
    used, guess = Search("numba"), np.zeros((ROWS, COLUMNS), dtype=np.int64)
    for seed in range(5):
        costs = random_costs(seed)
        assert used.shortest_path(costs, guess, [0], [70]) == Search("python").shortest_path(costs, guess, [0], [70])


@pytest.mark.parametrize("count", [1, FEW_BOXES, FEW_BOXES + 1, 30])
def test_the_distance_to_boxes_is_the_smallest_of_those_to_each(count):
    random = np.random.default_rng(count)
    xs, ys = (tuple(sorted(random.choice(10_000, size, replace=False).tolist())) for size in (17, 23))
    boxes = []
    for _ in range(count):
        (a, b), (c, d) = sorted(random.choice(xs, 2).tolist()), sorted(random.choice(ys, 2).tolist())
        boxes.append((a, c, b, d))
    found = distance_to(SimpleNamespace(tracks=Tracks(xs, ys)), boxes)
    expected = [[min(max(a - x, 0, x - b) + max(c - y, 0, y - d) for a, c, b, d in boxes) for x in xs] for y in ys]
    assert found.tolist() == expected


def test_of_two_processes_one_compiles_and_keeps_it_in_the_users_cache_where_the_package_cannot_be_written(tmp_path):
    """They start at the same time; the other one waits and takes it from there."""
    pytest.importorskip("numba", reason="skipped: numba is not installed")
    package, home = tmp_path / "package", tmp_path / "home"
    package.mkdir()
    home.mkdir()
    shutil.copy(tracks.__file__, package)
    (package / "__pycache__").write_text("no folder, so that nothing can be written into it", encoding="utf-8")
    without = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NUMBA_"))}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SMALLEST, str(package)],
            env={**without, "HOME": str(home)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    assert sorted(process.communicate(timeout=WATCHDOG_S)[0].strip() for process in both) == ["0", "1"]
    assert list(Path(home).rglob("*.nbc"))
