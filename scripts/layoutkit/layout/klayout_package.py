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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import TechnologyError
from layoutkit.layout import files
from layoutkit.layout.klayout_files import layer_properties_xml, technology_xml
from layoutkit.technology import load
from layoutkit.technology.technology_files import read_document
from layoutkit.templates import rendered

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def write_package(names: Sequence[str], folder: str, *, version: str, pcells: bool = True) -> dict[str, Any]:
    """Write the package for the technologies ``names`` into ``folder``; return its content as JSON data.

    ``files`` are sorted and without the modules of the engine; ``libraries`` names the PCell libraries it registers.

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
    content = {"grain.xml": rendered("grain.xml", version=version, technologies=known).encode()}
    for technology in technologies:
        base = f"tech/{technology.name}/{technology.name}"
        content[f"{base}.lyt"] = technology_xml(technology)
        content[f"{base}.lyp"] = layer_properties_xml(technology)
    if pcells:
        content[f"pymacros/{MACRO}"] = rendered(MACRO, technologies={name: name for name in known}).encode()
        content[f"pymacros/{FOLLOW_MACRO}"] = (_ENGINE / "layout" / FOLLOW_MACRO).read_bytes()
    shown = sorted(content)
    if pcells:
        content |= _engine()
        # JSON is YAML too, and KLayout's Python may have no YAML.
        for technology in technologies:
            whole = {key: value for key, value in read_document(Path(technology.path)).items() if key != "based_on"}
            document = json.dumps(whole, indent=1, ensure_ascii=False)
            content[f"python/layoutkit/technology/{technology.name}.yaml"] = f"{document}\n".encode()
    for name, data in sorted(content.items()):
        target = Path(folder) / name
        files.make_folder(target.parent)
        files.write_bytes(target, data)
    return {
        "output_dir": folder,
        "files": shown,
        "libraries": [f"analog_{name}" for name in known] if pcells else [],
        "layer_properties": [f"{folder}/{name}" for name in shown if name.endswith(".lyp")],
        "technology_files": [f"{folder}/{name}" for name in shown if name.endswith(".lyt")],
    }


def _engine() -> dict[str, bytes]:
    paths = sorted(path for pattern in _MODULES for path in _ENGINE.glob(pattern))
    paths += sorted(_ENGINE.with_name("sturdy").glob("*.py"))
    return {"/".join(("python", *path.relative_to(_ENGINE.parent).parts)): path.read_bytes() for path in paths}
