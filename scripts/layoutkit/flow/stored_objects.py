"""Write the engine's data objects as JSON data and read them back, so that a stage can continue from a file.

A dataclass becomes ``{"is": "layoutkit.route.routes:Wire", ...fields}``. A tuple becomes a list. KLayout's layout, its
cells and the technology are not written: they become references to those that the reader supplies. Reading creates
nothing but dataclasses of this package, so that a file from someone else cannot run code.
"""

from __future__ import annotations

import dataclasses
import importlib
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.ranked_names import RankedName
from layoutkit.technology import DeviceSpec, PassiveSpec, Technology

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = "layoutkit."
FOLDED = 100
"""Depth of objects within objects beyond which a file is refused."""


@dataclass(frozen=True)
class Surroundings:
    """What stored objects refer to.

    Attributes:
        technology: The process.
        layout: Holds the cells.
        ranks: Whether names that are read have the ranks with which they were written.
    """

    technology: Technology
    layout: kdb.Layout
    ranks: bool = True


def to_data(value: Any, around: Surroundings) -> Any:
    """Return ``value`` as JSON data.

    Raises:
        TypeError: If an object in it cannot be stored: it refers to another layout or technology, or is of a type
            that is neither a dataclass of this package nor one of Python's or KLayout's plain types.
    """
    if isinstance(value, RankedName):
        return {"is": "name", "at": [str(value), value.rank]}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, tuple):
        return [to_data(each, around) for each in value]
    reference = _reference(value, around)
    if reference is not None:
        return reference
    if isinstance(value, list):
        return {"is": "list", "items": [to_data(each, around) for each in value]}
    if isinstance(value, (set, frozenset)):
        return {"is": type(value).__name__, "items": sorted((to_data(each, around) for each in value), key=str)}
    if isinstance(value, Mapping):
        return {"is": "map", "items": [[to_data(key, around), to_data(each, around)] for key, each in value.items()]}
    kind = type(value)
    if dataclasses.is_dataclass(kind) and kind.__module__.startswith(PACKAGE):
        fields = {name: to_data(getattr(value, name), around) for name in _fields(kind)}
        return {"is": f"{kind.__module__}:{kind.__qualname__}", **fields}
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be stored")


def from_data(data: Any, around: Surroundings) -> Any:
    """Return the object that ``to_data`` wrote as ``data``.

    Raises:
        ValueError: If ``data`` is not of this version, or refers to a cell or flavour that ``around`` does not have.
    """
    try:
        return _restored(data, around, FOLDED)
    except (KeyError, TypeError, AttributeError, ImportError, RuntimeError) as error:
        raise ValueError(f"it was not written by this version ({type(error).__name__}: {error})") from error


def _reference(value: Any, around: Surroundings) -> dict[str, Any] | None:
    """Return a reference to something that the reader supplies, or a plain object of KLayout; None for others."""
    if isinstance(value, kdb.Box):
        return {"is": "box", "at": [value.left, value.bottom, value.right, value.top], "empty": value.empty()}
    if isinstance(value, kdb.Trans):
        return {"is": "trans", "at": str(value)}
    if isinstance(value, kdb.Region):
        return {"is": "region", "polygons": sorted(polygon.to_s() for polygon in value.each_merged())}
    if isinstance(value, kdb.Point):
        return {"is": "point", "at": [value.x, value.y]}
    if isinstance(value, (DeviceSpec, PassiveSpec)):
        if around.technology.any_device(value.name) != value:
            raise TypeError(f"{value.name} is not a device of technology {around.technology.name}")
        return {"is": "device", "name": value.name}
    ours = {kdb.Layout: around.layout, Technology: around.technology}
    if type(value) in ours:
        if value is not ours[type(value)]:
            raise TypeError(f"another {type(value).__name__.lower()} than that of the placement cannot be stored")
        return {"is": type(value).__name__.lower()}
    if isinstance(value, kdb.Cell):
        if value.layout() is not around.layout and around.layout.cell(value.name) is None:
            raise TypeError(f"cell {value.name} of another layout cannot be stored")
        return {"is": "cell", "name": value.name}
    return None


def _restored(data: Any, around: Surroundings, depth: int) -> Any:
    if depth == 0:
        raise ValueError(f"objects lie in each other more than {FOLDED} deep")
    if isinstance(data, list):
        return tuple(_restored(each, around, depth - 1) for each in data)
    if not isinstance(data, dict):
        return data
    name = data["is"]
    if name in _PLAIN:
        return _PLAIN[name](data, around, lambda each: _restored(each, around, depth - 1))
    kind = _kind(name)
    return kind(**{field: _restored(data[field], around, depth - 1) for field in _fields(kind)})


def _cell(data: Any, around: Surroundings, _: Callable[[Any], Any]) -> kdb.Cell:
    cell = around.layout.cell(data["name"])
    if cell is None:
        raise ValueError(f"the layout has no cell {data['name']}")
    return cell


_PLAIN: dict[str, Callable[[Any, Surroundings, Callable[[Any], Any]], Any]] = {
    "list": lambda data, _, restored: [restored(each) for each in data["items"]],
    "set": lambda data, _, restored: {restored(each) for each in data["items"]},
    "frozenset": lambda data, _, restored: frozenset(restored(each) for each in data["items"]),
    "map": lambda data, _, restored: {restored(key): restored(each) for key, each in data["items"]},
    "name": lambda data, around, _: RankedName(*data["at"]) if around.ranks else data["at"][0],
    "box": lambda data, _, __: kdb.Box() if data["empty"] else kdb.Box(*data["at"]),
    "point": lambda data, _, __: kdb.Point(*data["at"]),
    "region": lambda data, _, __: kdb.Region([kdb.Polygon.from_s(each) for each in data["polygons"]]),
    "trans": lambda data, _, __: kdb.Trans.from_s(data["at"]),
    "device": lambda data, around, _: around.technology.any_device(data["name"]),
    "layout": lambda _, around, __: around.layout,
    "technology": lambda _, around, __: around.technology,
    "cell": _cell,
}


def _fields(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of what a dataclass is made from."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


@cache
def _kind(name: str) -> type[Any]:
    """Return the dataclass called ``module:name``, which is one of this package."""
    module, _, qualified = name.partition(":")
    if module.startswith(PACKAGE):
        kind = getattr(importlib.import_module(module), qualified)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module:
            return kind
    raise ValueError(f"{name!r} is not a data object of this package")
