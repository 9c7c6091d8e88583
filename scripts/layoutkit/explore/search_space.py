"""The space that a search covers: what may vary from layout to layout, and the build that each point stands for.

An axis has a name and its values in order. Names of one word are options of ``flow.build_layout`` (``seed``,
``aspect``); others name what they change::

    pattern M1 M2   arrangement of a matched group        w M1 M2, l M1, nf M1 M2, m M1   sizes, equal for all named
    side inp        side of a port                        parameter w0                    parameter of the netlist

A point has one value of each axis. What it stands for is a plain request of ``flow.build_layout``, which gives the same
bytes again.

The points are tried in the order of a scrambled Sobol sequence. Each depends on the seed and its number alone, not on
earlier results. So the layouts of a search are the same on one core and on a cluster, whichever finishes first, and
those of a smaller budget are the first of a larger one. Decision 0021 compares this with a search that learns.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.circuit import INTEGER_PARAMS
from layoutkit.errors import LayoutkitError, MissingProgramError, did_you_mean, sentences
from layoutkit.file_schema import FileSchema
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.technology import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Point = dict[str, Any]
TECHNOLOGY = "technology"
SIZE_GRID_M = 1e-8
"""Sizes within a range are rounded to this; the mapping to a technology may ask for more. [m]"""
MAX_VALUES = 10_000
_BLOCK = 256
_FRUITLESS_BLOCKS = 4
_ALL_AT_MOST = 1_000_000
"""A space of more points is never walked through in whole."""
_WORDS = {"pattern": "devices of a matched group", "side": "a port", "parameter": "a parameter of the netlist"}
_SIZES = ("w", "l", "nf", "m", "r", "c")
_SCHEMA = FileSchema(Path(__file__).with_suffix(".schema.json"))
OPTIONS: tuple[str, ...] = tuple(_SCHEMA.content["x-varied"])
"""Options of ``flow.build_layout`` that an axis of this name varies."""
FIXED: tuple[str, ...] = tuple(_SCHEMA.content["x-fixed"])
"""Further options, which all layouts have in common."""


def _fault(kind: str, value: Any) -> str:
    """Return what a value must be instead, or "" if it is an option or a value of an axis of this kind."""
    allowed = _SCHEMA.content["$defs"][kind]
    is_fraction = isinstance(value, float) and "number" not in allowed.get("type", "")  # JSON Schema takes 2.0 for 2
    return str(allowed["x-error"]) if is_fraction or not _SCHEMA.accepts(value, kind) else ""


def option_faults(options: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with options of ``flow.build_layout`` that all layouts have."""
    known = (*OPTIONS, *FIXED)
    faults = []
    for name, value in options.items():
        if name not in known:
            faults.append(
                f"option {name!r} cannot be given{did_you_mean(name, known) or f'; allowed: {_listed(known)}'}"
            )
        elif words := _fault(name, value):
            faults.append(f"option {name} must be {words}, got {_short(value)}")
    return faults


@dataclass(frozen=True)
class Space:
    """The axes of a search.

    Attributes:
        axes: Name of each axis to its values, without repetitions.
        options: Options that all layouts have; no axis varies them.
    """

    axes: Mapping[str, tuple[Any, ...]]
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any], technologies: Sequence[str], options: Mapping[str, Any]) -> Space:
        """Return the space that a request states.

        Args:
            given: Name of an axis to a list of values, or to a range ``{"from": 1e-6, "to": 4e-6, "count": 4}``.
            technologies: Names or files.
            options: What all layouts have in common.

        Raises:
            LayoutkitError: If an axis cannot be varied or its values do not fit; the details list every fault.
        """
        axes, faults = {TECHNOLOGY: tuple(dict.fromkeys(technologies))}, option_faults(options)
        for name, stated in given.items():
            values, found = _values(name, stated)
            faults += found
            axes[name] = values
        faults += [f"{name} is an axis and an option; give one of them" for name in given if name in options]
        if "outline" in {*given, *options} and "aspect" in {*given, *options}:
            faults.append("outline and aspect cannot both be given")
        if faults:
            raise LayoutkitError(
                f"the space cannot be searched: {'; '.join(faults[:10])}",
                details={"param_name": "space", "errors": faults},
            )
        return cls(axes, dict(options))

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(len(values) for values in self.axes.values())

    def all_points(self) -> Iterator[Point]:
        """Yield every point, the last axis changing first."""
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def check_names(self, netlist_path: str, nets: Sequence[str] = ()) -> None:
        """Refuse axes of devices and ports, and objectives of nets, that the circuit does not have.

        Raises:
            LayoutkitError: If there are such names, all at once, or the netlist cannot be read.
        """
        first = {name: values[0] for name, values in self.axes.items() if name.split()[0] not in (*_SIZES, "pattern")}
        made = self.parameters(
            {name: value for name, value in first.items() if not name.startswith("side ")}, netlist_path
        )
        circuit, _ = read_circuit(LayoutRequest.of(made), load(made[TECHNOLOGY]))
        sizes = {device.id: device.params for device in circuit.devices}
        faults = []
        for word, *targets in (name.split() for name in self.axes):
            for target in targets if word in _SIZES else ():
                if target not in sizes:
                    faults.append(f"the circuit has no device {target!r}{did_you_mean(target, sizes)}")
                elif word not in sizes[target]:
                    faults.append(f"{target} has no size {word!r}; it has {_listed(sorted(sizes[target]))}")
            if word == "side" and targets[0] not in circuit.ports:
                faults.append(f"the circuit has no port {targets[0]!r}{did_you_mean(targets[0], circuit.ports)}")
        faults += [
            f"the circuit has no net {net!r}, whose capacitance is wanted{did_you_mean(net, circuit.nets)}"
            for net in nets
            if net not in circuit.nets
        ]
        if faults:
            details = {"param_name": "space", "errors": faults}
            raise LayoutkitError(f"the search does not fit the circuit: {'; '.join(faults[:10])}", details=details)

    @cached_property
    def _recognised(self) -> dict[str, dict[str, Any]]:
        """Constraints that recognition found, by request."""
        return {}

    def parameters(self, point: Mapping[str, Any], netlist_path: str) -> dict[str, Any]:
        """Return the parameters of ``flow.build_layout`` that a point stands for, without a workspace.

        Args:
            point: One value for each axis.
            netlist_path: The netlist.

        Raises:
            LayoutkitError: If the netlist or the constraints do not allow it.
        """
        made: dict[str, Any] = {"netlist_path": netlist_path, **self.options}
        for name in (name for name in point if name in OPTIONS or name == TECHNOLOGY):
            made[name] = point[name]
        for name, value in point.items():
            word, *targets = name.split()
            if word in _SIZES and targets:
                sizes = made.get("sizes", {})
                made["sizes"] = {**sizes, **{each: {**sizes.get(each, {}), word: value} for each in targets}}
            elif word == "parameter":
                made["parameters"] = {**made.get("parameters", {}), targets[0]: value}
        changes = [(name.split(), value) for name, value in point.items() if name.split()[0] in ("pattern", "side")]
        if changes:
            made["constraints"] = self._constraints(made, changes)
        return made

    def _constraints(self, made: Mapping[str, Any], changes: Sequence[tuple[list[str], Any]]) -> dict[str, Any]:
        constraints = made["constraints"] if "constraints" in made else self._suggested(made)
        constraints = json.loads(json.dumps(constraints))
        faults = []
        for (word, *targets), value in changes:
            if word == "pattern":
                groups = constraints.get("matching", [])
                group = next((each for each in groups if set(each["devices"]) == set(targets)), None)
                if group is None:
                    known = "; ".join(" ".join(each["devices"]) for each in groups) or "none"
                    faults.append(f"{' '.join(targets)} is no matched group; the matched groups are: {known}")
                else:
                    group["arrangement"] = value
            else:
                sides = [each for each in constraints.get("port_sides", []) if each["port"] != targets[0]]
                constraints["port_sides"] = [*sides, {"port": targets[0], "side": value}]
        if faults:
            raise LayoutkitError(sentences(faults), details={"param_name": "space", "errors": faults})
        return constraints  # type: ignore[no-any-return]

    def _suggested(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constraints that recognition finds for a request."""
        key = json.dumps({name: value for name, value in made.items() if name not in _NOT_RECOGNISED}, sort_keys=True)
        if key not in self._recognised:
            request = replace(LayoutRequest.of(made), constraints=None)
            technology = load(made[TECHNOLOGY])
            circuit, _ = read_circuit(request, technology)
            self._recognised[key] = make_design(request, technology, circuit)[0].whole.to_json()
        return self._recognised[key]


_NOT_RECOGNISED = ("seed", "aspect", "outline", "effort", "row_gap", "waived_layers", "constraints")
"""Options that recognition does not read."""


def _values(name: str, stated: Any) -> tuple[tuple[Any, ...], list[str]]:
    """Return the values of an axis, and what is wrong with it."""
    kind, fault = _kind(name)
    if kind is None:
        return (), [fault]
    if isinstance(stated, dict):
        return _ranged(name, kind, stated)
    if not isinstance(stated, list) or not 1 <= len(stated) <= MAX_VALUES:
        return (), [f"{name} needs a list of 1 to {MAX_VALUES} values, or a range from, to, count"]
    return _listed_values(name, kind, stated)


def _listed_values(name: str, kind: str, values: Sequence[Any]) -> tuple[tuple[Any, ...], list[str]]:
    """Return values without repetitions, and what is wrong with them."""
    wrong = [value for value in values if _fault(kind, value)]
    if wrong:
        return (), [f"{name}: each value must be {_fault(kind, wrong[0])}, got {', '.join(map(_short, wrong[:5]))}"]
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return tuple(found), []


def _kind(name: str) -> tuple[str | None, str]:
    """Return the kind of the values of an axis, as the schema names it, or why there is no such axis."""
    word, *targets = name.split() or [""]
    if not targets and word in OPTIONS:
        return word, ""
    if word in _SIZES and targets:
        return "count" if word in INTEGER_PARAMS else "size", ""
    if (word == "pattern" and len(targets) > 1) or (word in ("side", "parameter") and len(targets) == 1):
        return word, ""
    if word in _WORDS or word in _SIZES:
        return None, f"{name!r} does not say whose: write {word!r} and {_WORDS.get(word, 'devices')}, apart by spaces"
    hint = did_you_mean(word, [*OPTIONS, *_WORDS, *_SIZES])
    can = f"{_listed(OPTIONS)}, {_listed(_WORDS)} NAME, and sizes {_listed(_SIZES)} of devices"
    return None, f"{name!r} cannot be varied{hint}; what can: {can}; technologies have a parameter of their own"


def _ranged(name: str, kind: str, stated: Mapping[str, Any]) -> tuple[tuple[Any, ...], list[str]]:
    """Return the values of an axis given as a range, both ends included."""
    low, high, count = stated.get("from"), stated.get("to"), stated.get("count", 5)
    known = set(stated) <= {"from", "to", "count"}
    if not (known and _is_number(low) and _is_number(high) and isinstance(count, int) and 2 <= count <= MAX_VALUES):
        return (), [f"{name}: a range has from and to, numbers, and count, a whole number from 2; got {_short(stated)}"]
    word, *targets = name.split()
    whole = word in ("seed", "effort", "dummies") or (word in INTEGER_PARAMS and bool(targets))
    values = [low + (high - low) * step / (count - 1) for step in range(count)]  # type: ignore[operator]
    if whole:
        values = [round(value) for value in values]
    elif word in ("w", "l"):
        values = [round(round(value / SIZE_GRID_M) * SIZE_GRID_M, 12) for value in values]
    else:
        values = [float(f"{value:.9g}") for value in values]
    return _listed_values(name, kind, values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _listed(names: Any) -> str:
    return ", ".join(names)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def planned_points(space: Space, seed: int, count: int) -> tuple[list[Point], str]:
    """Return ``count`` different points, or all where there are fewer, and how they are chosen: ``all``, ``sobol``.

    Raises:
        MissingProgramError: If SciPy, which makes the sequence, is needed and not installed.
    """
    if space.size <= count:
        return list(space.all_points()), "all"
    return list(islice(sampled_points(space, seed), count)), "sobol"


def sampled_points(space: Space, seed: int) -> Iterator[Point]:
    """Yield different points that cover the space evenly; those of a small space all come in the end."""
    try:
        from scipy.stats import qmc
    except ImportError:
        raise MissingProgramError(
            "a search that does not cover its whole space needs SciPy: install the extra 'explore', or let the budget "
            f"be at least the {space.size} layouts of this space",
            details={"missing": "scipy", "extra": "explore"},
        ) from None

    free = [(name, values) for name, values in space.axes.items() if len(values) > 1]
    fixed = {name: values[0] for name, values in space.axes.items()}
    sequence = qmc.Sobol(len(free), scramble=True, rng=seed)
    seen: set[tuple[int, ...]] = set()
    fruitless = 0
    while fruitless < _FRUITLESS_BLOCKS and len(seen) < space.size:
        before = len(seen)
        for row in sequence.random(_BLOCK):
            place = tuple(min(int(u * len(values)), len(values) - 1) for u, (_, values) in zip(row, free, strict=True))
            if place not in seen:
                seen.add(place)
                yield {**fixed, **{name: values[index] for (name, values), index in zip(free, place, strict=True)}}
        fruitless = fruitless + 1 if len(seen) == before else 0
    if len(seen) < space.size <= _ALL_AT_MOST:
        for point in space.all_points():
            place = tuple(values.index(point[name]) for name, values in free)
            if place not in seen:
                yield point
