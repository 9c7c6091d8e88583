"""Where a process's kit keeps the models of its devices for ngspice (section ``simulation``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from layoutkit.technology.bounded_yaml import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPICAL = "typical"


@dataclass(frozen=True)
class ModelLibrary:
    """One library file.

    Attributes:
        files: Its name below the folder; the first that exists is read.
        sections: Corner to the section to read, ``typical`` for those not named; empty to read the whole file.
        mismatch: Corner to the section whose models differ at random from device to device.
        optional: Whether it may be absent, and is read only where the others lack a model.
    """

    files: tuple[str, ...]
    sections: Mapping[str, str] = field(default_factory=dict)
    mismatch: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False

    def section(self, corner: str, *, random: bool) -> str:
        """Return the section of a corner, empty for the whole file."""
        fixed = self.sections.get(corner, self.sections.get(TYPICAL, ""))
        return self.mismatch.get(corner, self.mismatch.get(TYPICAL, fixed)) if random else fixed


@dataclass(frozen=True)
class SimulationModels:
    """The models of a process.

    Attributes:
        pdk: Names of the kit's folder below ``$PDK_ROOT``.
        folder: Folder of the models in it.
        libraries: What to read, in this order.
        osdi: Type of a model, as ``.model`` states it, to its compiled Verilog-A below the folder, which ngspice loads.
        mismatch_parameters: Parameters to set for random differences between devices.
        ignored_parameters: Parameters of device cards that the models do not have.
        generic: Whether the models ship with this package and are those of no real process.
        source: Where this comes from.
    """

    pdk: tuple[str, ...]
    folder: str
    libraries: tuple[ModelLibrary, ...]
    osdi: Mapping[str, str] = field(default_factory=dict)
    mismatch_parameters: Mapping[str, float] = field(default_factory=dict)
    ignored_parameters: tuple[str, ...] = ()
    generic: bool = False
    source: str = ""

    @property
    def corners(self) -> tuple[str, ...]:
        """The corners that a library names, ``typical`` first."""
        names = [name for library in self.libraries for name in library.sections]
        return tuple(dict.fromkeys([TYPICAL, *names]))

    @property
    def varies(self) -> bool:
        """Whether the models can differ at random from device to device."""
        return bool(self.mismatch_parameters) or any(library.mismatch for library in self.libraries)


def read_simulation_models(entry: Mapping[str, Any] | None) -> SimulationModels | None:
    """Return the section ``simulation`` of a technology file, whose form the schema states; None without one."""
    if entry is None:
        return None
    stated = frozen(entry)
    libraries = tuple(ModelLibrary(**each) for each in stated["libraries"])
    return SimulationModels(**{"pdk": (), "folder": "", **stated, "libraries": libraries})
