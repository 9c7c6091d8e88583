"""The models of the devices that a circuit uses, for one corner, from the process's kit or a folder of the user."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.errors import LayoutkitError
from layoutkit.simulate.model_library import library_part
from layoutkit.simulate.ngspice import NGSPICE, loads_osdi
from layoutkit.technology.simulation_models import TYPICAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from layoutkit.technology import Technology
    from layoutkit.technology.simulation_models import SimulationModels

OWN_FOLDER = Path(__file__).parent


class NoModelsError(LayoutkitError):
    """The models of a process are not there or cannot be loaded, so that nothing can be measured."""

    default_code = "SERVICE_UNAVAILABLE"


@dataclass(frozen=True)
class ModelCards:
    """The cards of some models, and the compiled models that ngspice has to load for them."""

    text: str
    osdi: tuple[str, ...]


@dataclass(frozen=True)
class DeviceModels:
    """Where the models of a process are.

    Attributes:
        folder: The folder that the libraries of ``declared`` are in.
        declared: What the technology file states.
    """

    folder: Path
    declared: SimulationModels

    def cards(self, names: Iterable[str], corner: str = TYPICAL, *, random: bool = False) -> ModelCards:
        """Return the cards of the named models and of all that they use.

        Args:
            names: Models and subcircuits that device cards call.
            corner: One of the declared corners.
            random: Whether the models differ at random from device to device.

        Raises:
            NoModelsError: If a model or a file is missing.
            LayoutkitError: If the technology has no such corner, or its models do not vary.
        """
        declared = self.declared
        if corner not in declared.corners:
            raise LayoutkitError(
                f"there is no corner '{corner}'; the technology has {', '.join(declared.corners)}",
                details={"param_name": "corners", "provided_value": corner},
            )
        if random and not declared.varies:
            raise NoModelsError("the models of this technology do not vary at random, so there is no Monte Carlo")
        files = [(self._file(library.files), library.section(corner, random=random)) for library in declared.libraries]
        text, missing = library_part(files, names, declared.mismatch_parameters if random else None)
        if missing:
            raise NoModelsError(f"the models in {self.folder} do not define {', '.join(missing)}")
        return ModelCards(text, self._compiled(text))

    def _compiled(self, text: str) -> tuple[str, ...]:
        """Return the compiled models that some cards use, where ngspice can load them."""
        types = set(re.findall(r"^\s*\.model\s+\S+\s+(\w+)", text.lower(), re.MULTILINE))
        paths = tuple(str(self.folder / path) for kind, path in self.declared.osdi.items() if kind in types)
        missing = [path for path in paths if not Path(path).is_file()]
        if missing:
            raise NoModelsError(
                f"the models are in Verilog-A, and their compiled form is not there: {missing[0]}; compile them with "
                "OpenVAF, as the kit's own install.py does"
            )
        fault = loads_osdi(NGSPICE.path(), paths) if paths else ""
        if fault:
            raise NoModelsError(f"the models are compiled Verilog-A (OSDI), and {fault}")
        return paths

    def _file(self, names: tuple[str, ...]) -> Path:
        found = next((self.folder / name for name in names if (self.folder / name).is_file()), None)
        if found is None:
            raise NoModelsError(f"the folder {self.folder} has no {' or '.join(names)}; name the folder with models")
        return found


def find_models(technology: Technology, folder: str | None = None) -> DeviceModels:
    """Return where the models of a technology are.

    They are in ``folder``, which is that of the libraries or a kit's own folder; else below ``$PDK_ROOT``.

    Raises:
        NoModelsError: If there are none, or ngspice cannot load them; the message says what to do.
    """
    declared = technology.simulation
    if declared is None:
        raise NoModelsError(
            f"the technology file of {technology.name} has no section simulation, which states where its models are"
        )
    if declared.generic:
        return DeviceModels(OWN_FOLDER if folder is None else Path(folder), declared)
    found = next((path for path in _places(declared, folder) if _holds(path, declared)), None)
    if found is None:
        places, first = ", ".join(map(str, _places(declared, folder))), declared.libraries[0].files[0]
        looked = f"no {first} in {places}" if places else "PDK_ROOT is not set"
        raise NoModelsError(
            f"the models of {technology.name} are not installed: {looked}; install the kit and set "
            f"PDK_ROOT to the folder above {declared.pdk[0]}, or give the folder of the libraries as models"
        )
    return DeviceModels(found, declared)


def _places(declared: SimulationModels, folder: str | None) -> list[Path]:
    if folder is not None:
        return [Path(folder), Path(folder) / declared.folder]
    root = os.environ.get("PDK_ROOT")
    if not root:
        return []
    named = os.environ.get("PDK", "")
    kits = dict.fromkeys(([named] if named in declared.pdk else []) + list(declared.pdk))
    return [Path(root) / kit / declared.folder for kit in kits]


def _holds(path: Path, declared: SimulationModels) -> bool:
    return any((path / name).is_file() for library in declared.libraries for name in library.files)
