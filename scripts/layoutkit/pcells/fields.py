"""The parameters of a PCell: their declarations for KLayout's dialog, and the check of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import GeometryError, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from layoutkit.draw.module import Module
    from layoutkit.technology import DeviceSpec, PassiveSpec, Technology

    Drawing = Callable[[kdb.Layout], Module]

Value = float | int | bool | str

NOTES = "notes"
CELL = "pcell"
"""Name of the cell that a generator draws."""


@dataclass(frozen=True)
class Generator:
    """A device generator behind a PCell.

    Attributes:
        name: Name of the PCell.
        description: Description for the dialog.
        fields: Returns its parameters in a technology.
        prepared: Returns how to draw it, and what was rounded; raises GeometryError if a value is not allowed.
        title: Returns the text KLayout shows for one instance.
    """

    name: str
    description: str
    fields: Callable[[Technology], tuple[Field, ...]]
    prepared: Callable[[Technology, Mapping[str, Value]], tuple[Drawing, tuple[str, ...]]]
    title: Callable[[Mapping[str, Value]], str]


@dataclass(frozen=True)
class Field:
    """One parameter of a PCell.

    Attributes:
        name: Its name.
        description: Its name in KLayout's dialog.
        default: Its default, whose type is the parameter's type: number, integer, boolean or text.
        unit: Unit shown behind the field.
        choices: Values to choose from; empty for any.
    """

    name: str
    description: str
    default: Value
    unit: str = ""
    choices: tuple[str, ...] = ()

    def declaration(self) -> kdb.PCellParameterDeclaration:
        """Return KLayout's declaration of the parameter."""
        kinds = {
            bool: kdb.PCellParameterDeclaration.TypeBoolean,
            int: kdb.PCellParameterDeclaration.TypeInt,
            float: kdb.PCellParameterDeclaration.TypeDouble,
            str: kdb.PCellParameterDeclaration.TypeString,
        }
        parameter = kdb.PCellParameterDeclaration(self.name, kinds[type(self.default)], self.description, self.default)
        if self.unit:
            parameter.unit = self.unit
        for choice in self.choices:
            parameter.add_choice(choice, choice)
        return parameter

    def fault(self, value: Any) -> str | None:
        """Return why ``value`` is not allowed, None if it is. KLayout itself accepts any value."""
        wanted = type(self.default)
        number = wanted is float and isinstance(value, int) and not isinstance(value, bool)
        if type(value) is not wanted and not number:
            words = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
            return f"{self.name} must be {words[wanted]}, got {value!r}"
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, got {value!r}"
        return None


def flavours(technology: Technology, kind: str) -> tuple[str, ...]:
    """Return the devices of type ``kind`` that ``technology`` has, its default first."""
    every: list[DeviceSpec | PassiveSpec] = [*technology.devices.values(), *technology.passives.values()]
    found = sorted((spec for spec in every if spec.type == kind), key=lambda spec: (not spec.default, spec.name))
    return tuple(spec.name for spec in found)


def integer(values: Mapping[str, Value], name: str) -> int:
    """Return a count.

    Raises:
        GeometryError: If it is negative.
    """
    value = int(values[name])
    if value < 0:
        raise GeometryError(f"{name} must not be negative, got {value}")
    return value


def named_nets(values: Mapping[str, Value], terminals: tuple[str, ...]) -> dict[str, str]:
    """Return the net of each terminal from the field ``nets``, which lists them in the order of ``terminals``.

    Raises:
        GeometryError: If it lists more or fewer.
    """
    names = str(values["nets"]).replace(",", " ").split()
    if len(names) != len(terminals):
        raise GeometryError(f"nets must name {len(terminals)} nets ({', '.join(terminals)}), got {len(names)}")
    return dict(zip(terminals, names, strict=True))


def checked_values(fields: Sequence[Field], values: Mapping[str, Any]) -> dict[str, Value]:
    """Return the value of every field, defaults filled in.

    Raises:
        GeometryError: If a name is not that of a field, or a value is not allowed; all faults at once.
    """
    names = {field.name for field in fields}
    given = {field.name: values.get(field.name, field.default) for field in fields}
    faults = [f"there is no parameter '{name}'" for name in values if name not in names and name != NOTES]
    faults += [fault for field in fields if (fault := field.fault(given[field.name])) is not None]
    if faults:
        raise GeometryError(sentences(faults), details={"parameters": sorted(names)})
    return given
