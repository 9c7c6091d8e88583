"""Write a package for KLayout's application: technologies with layer colours, and the device generators as PCells.

::

    <folder>/                        copied or linked to ~/.klayout/salt/analog-layout-skills
      grain.xml                      name and version
      tech/<name>/<name>.lyt .lyp    technology, layer properties
      pymacros/analog_devices.lym    registers the PCell libraries when KLayout starts
      pymacros/follow_files.lym      loads layouts again whose file another program has changed
      python/layoutkit/, sturdy/     what the libraries import; KLayout puts python/ on its module path
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from layoutkit.errors import FileError, TechnologyError
from layoutkit.layout import files
from layoutkit.layout.klayout_files import layer_properties_xml, technology_xml, xml_document
from layoutkit.technology import load
from layoutkit.technology.technology_files import read_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGE = "analog-layout-skills"
MACRO = "analog_devices.lym"
FOLLOW_MACRO = "follow_files.lym"
_ENGINE = Path(__file__).parents[1]
# The modules that the PCells import; the package contains no other part of the engine.
_MODULES = (
    "__init__.py",
    "errors.py",
    "file_schema.py",
    "layout/__init__.py",
    "layout/bounds.py",
    "layout/cells.py",
    "layout/klayout_files.py",
    "pcells/*.py",
    "draw/*.py",
    "technology/*.py",
)
_MACRO_TEXT = """\
# Registers the device generators as PCell libraries. KLayout shows an error here in its log when it starts.
from layoutkit.pcells.application import start

start({technologies})
"""
_FOLLOW_TEXT = """\
# Loads a shown layout again when its file has changed. What has unsaved changes here is left alone, and so is a file
# that is gone, or was written within the last second and may be half written.
import os
import time

import pya

seen = {}


def look():
    window = pya.Application.instance().main_window()
    for number in range(window.views() if window else 0):
        view = window.view(number)
        for index in range(view.cellviews()):
            shown = view.cellview(index)
            path = shown.filename() if shown.is_valid() else ""
            if not path or not os.path.isfile(path):
                continue
            changed = os.stat(path).st_mtime_ns
            if shown.is_dirty() or time.time_ns() - changed < 1_000_000_000:
                continue
            if seen.setdefault((number, index, path), changed) != changed:
                seen[number, index, path] = changed
                try:
                    view.reload_layout(index)
                except RuntimeError as error:
                    print(f"{path} cannot be loaded again: {error}")


timer = pya.QTimer()
timer.timeout = look
timer.start(1000)
"""


@dataclass(frozen=True)
class KlayoutPackage:
    """The written package.

    Attributes:
        folder: The package's folder.
        files: Paths below it, sorted, without the modules of the engine.
        libraries: Names of the PCell libraries it registers.
    """

    folder: str
    files: tuple[str, ...]
    libraries: tuple[str, ...]


def write_package(names: Sequence[str], folder: str, *, version: str, pcells: bool = True) -> KlayoutPackage:
    """Write the package for the technologies ``names`` into ``folder`` and return its content.

    Args:
        names: Shipped technologies or paths of technology files.
        folder: Where to write; created if absent. Existing files of the package are replaced.
        version: Version of the package.
        pcells: Whether to add the device generators.

    Raises:
        TechnologyError: If there is no such technology, or two have the same name.
        FileError: If the folder cannot be written.
    """
    technologies = [load(name) for name in names]
    known = [technology.name for technology in technologies]
    if len(set(known)) != len(known):
        raise TechnologyError(f"each technology may be listed only once, got {', '.join(known)}")
    content: dict[str, bytes] = {"grain.xml": _grain(version, known)}
    for technology in technologies:
        base = f"tech/{technology.name}/{technology.name}"
        content[f"{base}.lyt"] = technology_xml(technology)
        content[f"{base}.lyp"] = layer_properties_xml(technology)
    if pcells:
        technologies_text = json.dumps({name: name for name in known})
        content[f"pymacros/{MACRO}"] = _macro(
            "Analog device generators", _MACRO_TEXT.format(technologies=technologies_text)
        )
        content[f"pymacros/{FOLLOW_MACRO}"] = _macro("Follow files that change", _FOLLOW_TEXT)
    shown = sorted(content)
    if pcells:
        content |= _engine()
        # JSON is YAML too, and KLayout's Python may have no YAML.
        for technology in technologies:
            whole = {key: value for key, value in read_document(Path(technology.path)).items() if key != "based_on"}
            document = json.dumps(whole, indent=1, ensure_ascii=False)
            content[f"python/layoutkit/technology/{technology.name}.yaml"] = f"{document}\n".encode()
    _write(Path(folder), content)
    return KlayoutPackage(folder, tuple(shown), tuple(f"analog_{name}" for name in known) if pcells else ())


def _write(folder: Path, content: Mapping[str, bytes]) -> None:
    for name, data in sorted(content.items()):
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot create the folder {target.parent}: {error.strerror}") from error
        files.write_bytes(target, data)


def _engine() -> dict[str, bytes]:
    paths = sorted(path for pattern in _MODULES for path in _ENGINE.glob(pattern))
    paths += sorted(_ENGINE.with_name("sturdy").glob("*.py"))
    return {"/".join(("python", *path.relative_to(_ENGINE.parent).parts)): path.read_bytes() for path in paths}


def _grain(version: str, names: Sequence[str]) -> bytes:
    root = ET.Element("salt-grain")
    for tag, text in (
        ("name", PACKAGE),
        ("version", version),
        ("title", "Analog devices"),
        ("doc", f"Technologies and device generators (PCells): {', '.join(names)}"),
        ("license", "Apache-2.0"),
    ):
        ET.SubElement(root, tag).text = text
    return xml_document(root)


def _macro(description: str, code: str) -> bytes:
    root = ET.Element("klayout-macro")
    for tag, text in (
        ("description", description),
        ("version", ""),
        ("category", "pymacros"),
        ("prolog", ""),
        ("epilog", ""),
        ("doc", ""),
        ("autorun", "true"),
        ("autorun-early", "false"),
        ("priority", "0"),
        ("shortcut", ""),
        ("show-in-menu", "false"),
        ("interpreter", "python"),
        ("text", code),
    ):
        ET.SubElement(root, tag).text = text
    return xml_document(root)
