r"""Register one PCell library per technology with KLayout; a cell that cannot be drawn contains the error message.

KLayout writes an exception in a PCell to a layer that its window does not show. Here the cell then contains a red
cross and the message, on a layer that the generated layer properties list as ``drawing error``::

    +--------------------------------------+
    | \                                / |
    |   Width 1e-07 is below minimum ...   |
    | /                                \ |
    +--------------------------------------+
"""

from __future__ import annotations

import textwrap
import traceback
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import GeometryError, LayoutkitError
from layoutkit.layout.klayout_files import error_layer
from layoutkit.pcells.fields import CELL, NOTES, Generator, Value, checked_values, flavours
from layoutkit.pcells.passive_pcells import PASSIVES
from layoutkit.pcells.transistors import transistor_generators
from layoutkit.technology import Technology, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LINE = 60
_MARKER_UM = (20.0, 2.0, 0.4)  # width of the marker, height of a line, width of its strokes
_MAX_WORDS = 600


def generators(technology: Technology) -> tuple[Generator, ...]:
    """Return what ``technology`` can draw."""
    kinds = sorted({spec.type for spec in technology.devices.values()})
    transistors = [made for kind in kinds for made in transistor_generators(kind)]
    return (*transistors, *(made for made in PASSIVES if flavours(technology, made.name)))


class GeneratorPCell(kdb.PCellDeclaration):
    """The PCell of a generator."""

    def __init__(self, technology: Technology, generator: Generator) -> None:
        super().__init__()
        self.technology = technology
        self.generator = generator
        self.fields = generator.fields(technology)

    def get_parameters(self) -> list[kdb.PCellParameterDeclaration]:
        """Return the parameters; the last is filled in by ``coerce_parameters``."""
        notes = kdb.PCellParameterDeclaration(NOTES, kdb.PCellParameterDeclaration.TypeString, "Notes", "")
        notes.readonly = True
        return [*(field.declaration() for field in self.fields), notes]

    def get_layers(self, parameters: Sequence[Any]) -> list[kdb.LayerInfo]:  # noqa: ARG002 - KLayout's signature
        """Return no layers to choose from, since the technology defines them."""
        return []

    def display_text(self, parameters: Sequence[Any]) -> str:
        """Return the text in KLayout's cell list."""
        try:
            return self.generator.title(self._values(parameters))
        except LayoutkitError:
            return f"{self.generator.name} (cannot be drawn)"

    def coerce_parameters(self, layout: kdb.Layout, parameters: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - the same
        """Return the parameters unchanged, with notes on what is rounded or why nothing can be drawn."""
        try:
            _, warnings = self.generator.prepared(self.technology, self._values(parameters))
            notes = "; ".join(warnings)
        except LayoutkitError as error:
            notes = f"cannot be drawn: {error}"
        return [*parameters[: len(self.fields)], notes]

    def produce(
        self,
        layout: kdb.Layout,
        layers: Sequence[int],  # noqa: ARG002 - KLayout's signature
        parameters: Sequence[Any],
        cell: kdb.Cell,
    ) -> None:
        """Draw into ``cell``; if that fails, draw the error message there."""
        try:
            self._draw(layout, parameters, cell)
        except LayoutkitError as error:
            self._mark(layout, cell, f"{self.generator.name}: {error}")
        except Exception:  # noqa: BLE001 - KLayout would hide it
            self._mark(layout, cell, f"{self.generator.name}: internal error\n{traceback.format_exc(limit=-3)}")

    def _values(self, parameters: Sequence[Any]) -> dict[str, Value]:
        return checked_values(self.fields, dict(zip((field.name for field in self.fields), parameters, strict=False)))

    def _draw(self, layout: kdb.Layout, parameters: Sequence[Any], cell: kdb.Cell) -> None:
        dbu = self.technology.dbu_um
        if abs(layout.dbu - dbu) > 1e-6 * dbu:
            raise GeometryError(f"the layout's database unit is {layout.dbu:g} um, {self.technology.name} has {dbu:g}")
        drawing, _ = self.generator.prepared(self.technology, self._values(parameters))
        scratch = kdb.Layout()  # the generators create and name their own cell
        scratch.dbu = dbu
        drawing(scratch)
        drawn = scratch.cell(CELL)
        for index in scratch.layer_indexes():
            info = scratch.get_info(index)
            cell.shapes(layout.layer(info)).insert(drawn.shapes(index))

    def _mark(self, layout: kdb.Layout, cell: kdb.Cell, words: str) -> None:
        """Draw a crossed-out frame with ``words`` in it."""
        lines = [part for line in words[:_MAX_WORDS].splitlines() for part in textwrap.wrap(line, _LINE) or [""]]
        width, line_height, stroke = (round(length / layout.dbu) for length in _MARKER_UM)
        height = line_height * (len(lines) + 1)
        shapes = cell.shapes(layout.layer(*error_layer(self.technology)))
        corners = [kdb.Point(x, y) for x, y in ((0, 0), (width, 0), (width, height), (0, height))]
        shapes.insert(kdb.Path([*corners, corners[0]], stroke))
        shapes.insert(kdb.Path([corners[0], corners[2]], stroke))
        shapes.insert(kdb.Path([corners[1], corners[3]], stroke))
        for number, line in enumerate(lines, 1):
            shapes.insert(kdb.Text(line, kdb.Trans(0, False, 2 * stroke, height - number * line_height)))


class DeviceLibrary(kdb.Library):
    """The PCells of one technology."""

    def __init__(self, technology: Technology) -> None:
        super().__init__()
        self.description = f"Analog devices of {technology.name}"
        self.layout().dbu = technology.dbu_um
        self.declarations = {
            generator.name: GeneratorPCell(technology, generator) for generator in generators(technology)
        }
        for name, declaration in self.declarations.items():
            self.layout().register_pcell(name, declaration)


_registered: dict[str, DeviceLibrary] = {}  # KLayout keeps no reference to the Python object


def library_name(technology: Technology) -> str:
    """Return the name under which the library of ``technology`` is found."""
    return f"analog_{technology.name}"


def register(name_or_path: str, *, klayout_technology: str | None = None) -> DeviceLibrary:
    """Register the library of a technology with KLayout and return it; an older one of that name is replaced.

    Args:
        name_or_path: Shipped technology or path of a technology file.
        klayout_technology: Name of the KLayout technology whose layouts see the library; None for all layouts.

    Raises:
        TechnologyError: If there is no such technology.
    """
    technology = load(name_or_path)
    library = DeviceLibrary(technology)
    if klayout_technology is not None:
        library.technology = klayout_technology
    library.register(library_name(technology))
    _registered[library_name(technology)] = library
    return library


def instantiate(layout: kdb.Layout, library: DeviceLibrary, pcell: str, values: Mapping[str, Any]) -> kdb.Cell:
    """Return the cell of a PCell after checking its parameters, which KLayout's own call does not do.

    Raises:
        GeometryError: If there is no such PCell or parameter, a value is of the wrong type, or it cannot be drawn.
    """
    declaration = library.declarations.get(pcell)
    if declaration is None:
        raise GeometryError(f"there is no PCell '{pcell}'; there are: {', '.join(sorted(library.declarations))}")
    checked = checked_values(declaration.fields, values)
    drawing, _ = declaration.generator.prepared(declaration.technology, checked)
    trial = kdb.Layout()
    trial.dbu = declaration.technology.dbu_um
    drawing(trial)
    return layout.create_cell(pcell, library.name(), checked)
