"""The raw file of ngspice: the vectors of each analysis.

A file holds one part for each analysis: a header in text and, after ``Binary:``, one record of doubles a point, pairs
of doubles where the values are complex. (ngspice manual, chapter "rawfile".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Plot:
    """The result of one analysis.

    Attributes:
        name: What ngspice calls it, such as ``AC Analysis``.
        vectors: Name in lowercase, such as ``v(out)``, to its values; the first one is the scale.
    """

    name: str
    vectors: Mapping[str, np.ndarray]

    @property
    def scale(self) -> np.ndarray:
        """The time, frequency or swept value of each point."""
        return np.real(next(iter(self.vectors.values())))

    def of(self, name: str) -> np.ndarray:
        """Return a vector: ``v(node)`` or ``i(source)``."""
        return self.vectors[name.lower()]


def read_raw(path: Path) -> list[Plot]:
    """Return the analyses of a raw file, none where the file is missing or cut off.

    Raises:
        ValueError: If the file is larger than a simulation of these test benches makes.
    """
    if not path.is_file():
        return []
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"the result of the simulation has {path.stat().st_size} bytes, at most {MAX_BYTES} are read")
    rest, plots = path.read_bytes(), []
    while (mark := rest.find(b"Binary:\n")) >= 0:
        header = rest[:mark].decode("utf-8", "replace").splitlines()
        plot, size = _plot(header, rest[mark + 8 :])
        if plot is None:
            break
        plots.append(plot)
        rest = rest[mark + 8 + size :]
    return plots


def _plot(header: list[str], data: bytes) -> tuple[Plot | None, int]:
    """Return one analysis and the bytes of its values."""
    fields = dict(line.split(":", 1) for line in header if ":" in line and not line.startswith("\t"))
    count, points = int(fields["No. Variables"]), int(fields["No. Points"])
    kind = np.dtype("<c16" if "complex" in fields["Flags"] else "<f8")
    size = count * points * kind.itemsize
    if not points or len(data) < size:
        return None, 0
    names = [line.split("\t")[2].lower() for line in header if line.startswith("\t")][:count]
    values = np.frombuffer(data[:size], dtype=kind).reshape(points, count)
    return Plot(fields["Plotname"].strip(), {name: values[:, i] for i, name in enumerate(names)}), size


def mean_over_time(time: np.ndarray, values: np.ndarray) -> float:
    """Return the mean of values at uneven times, straight lines between them."""
    return float(np.sum((values[1:] + values[:-1]) / 2 * np.diff(time)) / (time[-1] - time[0]))
