"""Generate KLayout's files for a technology: the technology (.lyt), its layer properties (.lyp), and a package of both.

The files are XML for KLayout 0.28 and later, written without KLayout, so that the same technology gives the same bytes.
A layer is listed as ``met1 - 68/20``. The technology contains the connectivity for KLayout's net tracer. The package
brings the device generators as PCells, too.

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
from layoutkit.technology import load
from layoutkit.technology.technology_files import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.technology import LayerSpec, Technology

ERROR_COLOR = "#ff0000"
_ERROR_LAYER = 999
_SOLID, _HOLLOW = "I0", "I1"
_ACTIVE, _POLY = "I5", "I9"
_WIRES = ("I4", "I6", "I8", "I11", "I10", "I7")
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#e377c2", "#8c564b")
MACRO = "analog_devices.lym"
FOLLOW_MACRO = "follow_files.lym"
_ENGINE = Path(__file__).parents[1]
# The modules that the PCells import, and the files that these read; the package contains no other part of the engine.
_MODULES = (
    "__init__.py",
    "errors.py",
    "file_schema.py",
    "layout/__init__.py",
    "layout/bounds.py",
    "layout/cells.py",
    "layout/klayout_files.py",
    "rectangle.py",
    "pcells/*.py",
    "pcells/*.json",
    "draw/*.py",
    "technology/*.py",
    "technology/device_kinds.json",
)


def technology_xml(technology: Technology) -> bytes:
    """Return the ``.lyt`` file of ``technology``; it names ``<name>.lyp`` beside it as its layer properties."""
    from layoutkit.templates import rendered  # which KLayout's window lacks

    return rendered("technology.lyt", technology=technology, connections=list(_connections(technology))).encode()


def layer_properties_xml(technology: Technology) -> bytes:
    """Return the ``.lyp`` file of ``technology``: its layers in the order of its file, then the layer for errors."""
    from layoutkit.templates import rendered

    colors = layer_colors(technology)
    layers = [(s.name, s.gds, colors[s.name], _pattern(technology, s), 1) for s in technology.layers.values()]
    layers.append(("drawing error", error_layer(technology), ERROR_COLOR, _HOLLOW, 3))
    return rendered("layers.lyp", layers=layers).encode()


def layer_colors(technology: Technology) -> dict[str, str]:
    """Return the colour ``#rrggbb`` of each layer: that of the technology file, else one of a list."""
    return {
        spec.name: spec.color or _COLORS[index % len(_COLORS)] for index, spec in enumerate(technology.layers.values())
    }


def error_layer(technology: Technology) -> tuple[int, int]:
    """Return the GDS layer, not used by the technology, for the error messages of PCells."""
    used = {spec.gds for spec in technology.layers.values()}
    return next((_ERROR_LAYER, datatype) for datatype in range(len(used) + 1) if (_ERROR_LAYER, datatype) not in used)


def _connections(technology: Technology) -> Iterator[str]:
    """Yield the connected layers with their contact or via, in the syntax of KLayout's net tracer."""

    def source(name: str) -> str:
        number, datatype = technology.spec(name).gds
        return f"{number}/{datatype}"

    contact, first = source(technology.contact.layer), source(technology.conductors[0].layer)
    poly, active = source("poly"), source("active")
    yield f"{poly},{contact},{first}"
    yield f"{active}-{poly},{contact},{first}"  # without the channel, which does not conduct
    tap = source("tap") if technology.role("tap") else active
    if tap != active:
        yield f"{tap},{contact},{first}"
    layer_of = {conductor.name: conductor.layer for conductor in technology.conductors}
    for cut in technology.cuts:
        yield f"{source(layer_of[cut.below])},{source(cut.layer)},{source(layer_of[cut.above])}"


def _pattern(technology: Technology, spec: LayerSpec) -> str:
    wires = [technology.resolve(conductor.layer) for conductor in technology.conductors]
    cuts = {technology.resolve(cut.layer) for cut in (technology.contact, *technology.cuts)}
    if spec.name in wires:
        return _WIRES[wires.index(spec.name) % len(_WIRES)]
    if spec.name in cuts:
        return _SOLID
    if spec.name == technology.role("poly"):
        return _POLY
    return _ACTIVE if spec.name in {technology.role("active"), technology.role("tap")} else _HOLLOW


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
    from layoutkit.layout import files
    from layoutkit.templates import rendered

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
