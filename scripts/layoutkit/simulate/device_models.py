"""The models of the devices that a circuit uses, for one corner, from the process's kit or a folder of the user.

A foundry's library defines thousands of models, and a simulator reads all of them for each run. Here the definitions
(subcircuits, models, parameters, functions) are indexed by name, and those are kept that the circuit's devices reach,
directly or through other definitions. Nothing else of the library is copied: no command, no device, no analysis.

This holds for every library that defines what it uses by name: skywater-pdk as open_pdks installs it, the libraries of
gf180mcu and of IHP's SG13G2.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.errors import FileError, LayoutkitError
from layoutkit.simulate.ngspice import NGSPICE, loads_osdi
from layoutkit.technology.parasitic_data import TYPICAL, SimulationModels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from layoutkit.technology import Technology


MAX_FILE_BYTES = 256 << 20
MAX_DEPTH = 20
_NAME = re.compile(r"[a-z_][\w]*(?:\.\d+)?", re.IGNORECASE)
_ASSIGNED = re.compile(r"([a-z_]\w*)\s*(?:\([^()]*\))?\s*=(?!=)", re.IGNORECASE)
_BIN = re.compile(r"\.\d+$")
_RESISTOR = re.compile(r"\.model\s+\S+\s+r\b", re.IGNORECASE)
_AS_SUBCIRCUIT = ".subckt {name} p n b w=1 l=1\nr1 p n {name} w={{w}} l={{l}}\n.ends"
"""A resistor whose kit calls it as a subcircuit with its body, but publishes only the model card."""
_FILE = re.compile(r"""^\.\w+\s+(?:"([^"]+)"|'([^']+)'|(\S+))\s*(\S+)?""")


@dataclass
class _Definitions:
    """Definitions in their order, and those of each name."""

    texts: list[str] = field(default_factory=list)
    of_name: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    always: list[int] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def add(self, lines: list[str], names: Iterable[str]) -> None:
        """Add a definition of some names; one without names is always kept."""
        self.texts.append("\n".join(lines))
        index, named = len(self.texts) - 1, [name.lower() for name in names]
        for name in named:
            self.of_name[name].append(index)
        if not named:
            self.always.append(index)


def library_part(
    files: Iterable[tuple[Path, str]],
    models: Iterable[str],
    overrides: Mapping[str, float] | None = None,
    more: Iterable[tuple[Path, str]] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return the cards that define the models, and the names among ``models`` that no file defines.

    Args:
        files: Each library and the section to read; an empty section reads the whole file.
        models: Names of the models and subcircuits that the devices of a circuit call, without regard to case.
        overrides: Parameters whose values are to be others than those of the library.
        more: The same as ``files``, read only where those lack a model.

    Raises:
        FileError: If a library, a section or a file that it includes is missing or too large.
    """
    found = _Definitions()
    for path, section in files:
        _read(path, section, found, 0)
    wanted = sorted({name.lower() for name in models})
    for path, section in () if found.of_name.keys() >= set(wanted) else more:
        _read(path, section, found, 0)
    missing = tuple(name for name in wanted if name not in found.of_name)
    changed = {name.lower(): value for name, value in (overrides or {}).items()}
    if missing and found.absent:
        raise FileError(
            f"the model library includes files that do not exist, and defines no {', '.join(missing)}: "
            f"{', '.join(sorted(set(found.absent))[:5])}"
        )
    kept = _reached(found, [name for name in wanted if name not in missing])
    bare = [name for name in wanted if all(_RESISTOR.match(found.texts[index]) for index in found.of_name[name])]
    subcircuits = [_AS_SUBCIRCUIT.format(name=name) for name in bare if name not in missing]
    return "\n".join([*(_with_overrides(found.texts[index], changed) for index in kept), *subcircuits, ""]), missing


def _reached(found: _Definitions, names: list[str]) -> list[int]:
    kept: set[int] = set()
    seen, waiting = set(names), list(names)
    fresh = list(found.always) if names else []
    while waiting or fresh:
        if waiting:
            fresh += found.of_name[waiting.pop()]
            continue
        index = fresh.pop()
        if index in kept:
            continue
        kept.add(index)
        for name in set(_NAME.findall(found.texts[index].lower())):
            if name not in seen and name in found.of_name:
                seen.add(name)
                waiting.append(name)
    return sorted(kept)


def _with_overrides(text: str, changed: Mapping[str, float]) -> str:
    if not changed or not re.match(r"\s*\.param", text, re.IGNORECASE):
        return text

    def replaced(match: re.Match[str]) -> str:
        name = match[1].lower()
        return f"{match[1]}={changed[name]:g}" if name in changed else match[0]

    return re.sub(r"""([A-Za-z_]\w*)\s*=\s*('[^']*'|"[^"]*"|\{[^}]*\}|[^\s'"{]+)""", replaced, text)


def _read(path: Path, section: str, found: _Definitions, depth: int) -> None:
    lines = _section(path, section)
    position = 0
    while position < len(lines):
        line = lines[position]
        word = line.split(None, 1)[0].lower() if line else ""
        if word == ".subckt":
            end = _end_of_subcircuit(lines, position, path)
            found.add(list(_inlined(lines[position:end], path, depth)), [_defined(line, path)])
            position = end
            continue
        end = position + 1
        while end < len(lines) and lines[end].startswith("+"):
            end += 1
        card = lines[position:end]
        if word in (".include", ".inc", ".lib"):
            other, inner = _target(card[0], path)
            if other.is_file():
                _read(other, inner if word == ".lib" else "", found, _deeper(depth, path))
            else:  # of a device that may not be used; if it is, its model is missing
                found.absent.append(other.name)
        elif word == ".model":
            found.add(card, [_BIN.sub("", _defined(line, path))])
        elif word in (".param", ".params"):
            found.add(card, _ASSIGNED.findall(" ".join(card)) or ["?"])
        elif word == ".func":
            found.add(card, _NAME.findall(line[5:])[:1])
        elif word in (".option", ".options"):
            found.add(card, [])
        position = end


def _defined(card: str, path: Path) -> str:
    """Return the name that a ``.subckt`` or ``.model`` card defines."""
    words = card.split()
    if len(words) < 2:
        raise FileError(f"model library {path.name}: '{card[:80]}' defines no name")
    return words[1]


def _deeper(depth: int, path: Path) -> int:
    if depth >= MAX_DEPTH:
        raise FileError(f"model library {path.name}: files include one another more than {MAX_DEPTH} deep")
    return depth + 1


def _inlined(lines: Iterable[str], path: Path, depth: int) -> Iterator[str]:
    """Yield the lines of a subcircuit, with the files that it includes in place."""
    for line in lines:
        if line.lower().startswith((".include", ".inc ")):
            other, _ = _target(line, path)
            yield from _inlined(_lines(other), other, _deeper(depth, path))
        elif not line.lower().startswith((".control", ".endc", ".lib")):
            yield line


def _end_of_subcircuit(lines: list[str], start: int, path: Path) -> int:
    depth = 0
    for position in range(start, len(lines)):
        word = lines[position][:8].lower()
        depth += word.startswith(".subckt") - (word.startswith(".ends"))
        if not depth:
            return position + 1
    raise FileError(f"model library {path.name}: '{lines[start][:80]}' has no .ends")


def _target(line: str, path: Path) -> tuple[Path, str]:
    """Return the file that a card includes, which is relative to the file of the card, and the section."""
    match = _FILE.match(line)
    if match is None:
        raise FileError(f"model library {path.name}: '{line[:80]}' names no file")
    return path.parent / (match[1] or match[2] or match[3]), (match[4] or "").strip()


@lru_cache(maxsize=256)
def _lines(path: Path) -> tuple[str, ...]:
    """Return the lines of a file without comments and empty ones."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FileError(f"model library {path} is larger than {MAX_FILE_BYTES} bytes")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileError(f"model library {path} cannot be read: {error.strerror}") from error
    stripped = (line.strip() for line in text.splitlines())
    return tuple(line for line in stripped if line and not line.startswith("*"))


def sections_of(path: Path) -> tuple[str, ...]:
    """Return the names of a library's sections, in lowercase."""
    return tuple(line.split()[1].lower() for line in _lines(path) if _opens_section(line))


def _opens_section(line: str) -> bool:
    words = line.split()
    return words[0].lower() == ".lib" and len(words) == 2 and not words[1].startswith(("'", '"'))


def _section(path: Path, section: str) -> list[str]:
    """Return the lines of a section, those of every section of that name, or those outside sections."""
    kept, inside, exists = [], "", not section
    for line in _lines(path):
        if _opens_section(line):
            inside = line.split()[1].lower()
            exists = exists or inside == section.lower()
        elif line.lower().startswith(".endl"):
            inside = ""
        elif inside == section.lower():
            kept.append(line)
    if not exists:
        raise FileError(
            f"model library {path.name} has no section '{section}'; it has {', '.join(sections_of(path)) or 'none'}"
        )
    return kept


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
        files, more = (
            [
                (self._file(library.files), library.section(corner, random=random))
                for library in declared.libraries
                if library.optional == optional and (not optional or self._has(library.files))
            ]
            for optional in (False, True)
        )
        text, missing = library_part(files, names, declared.mismatch_parameters if random else None, more)
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

    def _has(self, names: tuple[str, ...]) -> bool:
        return any((self.folder / name).is_file() for name in names)

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
    needed = (library for library in declared.libraries if not library.optional)
    return any((path / name).is_file() for library in needed for name in library.files)
