"""A self-contained copy of a skill: the contents of its files, and the manifest that lists them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

from skillpack.authoring.skill_rules import name_problem
from skillpack.copies.packages import distribution, own_distribution, project_folder
from skillpack.copies.programs import Programs, copied_programs, is_program
from skillpack.exceptions import CopyError, FileRefusedError
from skillpack.skills.catalog import bundled_root
from skillpack.skills.skill_md import OUTPUT_FOLDERS
from skillpack.untrusted.file_access import CONTROL, HIDING, inside, read_bounded
from skillscript.schema_references import ReferenceFault, bundle
from sturdy.strict_json import NotJsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillpack.registry.declaration import ToolDeclaration
    from skillpack.skills.skill_md import Skill

MANIFEST = "manifest.json"
MANIFEST_FORMAT = "skillpack copy 1"
MAX_FILE_BYTES = 32 << 20
MAX_FILES = 5000
_LEFT_OUT = re.compile(r"\..*|.*~|#.*#|.*\.py[co]|__pycache__|node_modules|Thumbs\.db|desktop\.ini|.*\.egg-info")
_PROGRAM = re.compile(r"scripts/[^/]+\.py")
_NOT_EVERYWHERE = re.compile(r'[<>:"|?*\\]|[ .](?:/|$)|(?:^|/)(?:con|prn|aux|nul|com\d|lpt\d)(?:[./]|$)', re.IGNORECASE)
_REFERS_OUT = re.compile(rb'"\$ref"\s*:\s*"[^"#]')


class SkillCopy(NamedTuple):
    """A copy that has not been written yet.

    Attributes:
        name: Name of the skill and of its folder.
        version: Version of the distribution that the copy was made of, or else of the skill; "" if neither is known.
        tools: Ids of its tools.
        files: Contents by paths below the folder, sorted, with the manifest.
        notes: Notes for the user.
    """

    name: str
    version: str
    tools: tuple[str, ...]
    files: dict[str, bytes]
    notes: tuple[str, ...]


def copy_of(skill: Skill) -> SkillCopy:
    """Return the self-contained copy of a skill.

    Raises:
        CopyError: If it cannot be made; the message gives all reasons.
    """
    from skillpack.registry.declaration import read_tools

    home = Path(os.path.realpath(skill.dir))
    tools, tool_faults = read_tools(skill)
    problem = name_problem(skill.name)
    faults = [problem] if problem else []
    faults += [f"{fault.tool}: {fault.reason}" if fault.tool else fault.reason for fault in tool_faults]
    files, file_faults = own_files(home)
    earlier = manifest_in(files.get(MANIFEST))
    if MANIFEST in files and earlier is None:
        faults.append(f"has a file {MANIFEST}, but in a copy that is the list of its files; rename the file")
    files.pop(MANIFEST, None)
    schemas, schema_faults = _schemas(home, files, tools)
    found, handlers = _programs(skill, files, tools)
    programs = copied_programs(home, found, handlers) if earlier is None else Programs()
    faults += [*file_faults, *schema_faults, *programs.faults, *_collisions(files, found, programs)]
    if faults:
        raise CopyError("\n".join(f"{skill.name}: {fault}" for fault in dict.fromkeys(faults)))
    for program in found & set(programs.files):
        files.pop(f"{program}.lock", None)  # of the header before
    content = dict(sorted({**files, **schemas, **programs.files}.items()))
    origin = earlier or _origin(skill, programs)
    ids = tuple(sorted({tool.id for tool in tools}))
    content[MANIFEST] = _manifest(skill.name, origin, ids, content)
    return SkillCopy(skill.name, str(origin["version"] or ""), ids, content, tuple(programs.notes))


def manifest_in(content: bytes | None) -> dict[str, Any] | None:
    """Return the manifest of a copy, or None if ``content`` is none."""
    try:
        found = parse_json(content) if content is not None else None
    except NotJsonError:
        return None
    return found if isinstance(found, dict) and found.get("format") == MANIFEST_FORMAT else None


def own_files(home: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the contents of a skill's files by path, and why some cannot be copied.

    Hidden files, bytecode and what editors leave are no part of a skill.
    """
    files: dict[str, bytes] = {}
    faults = []
    for path in _paths(home):
        name = path.relative_to(home).as_posix()
        if any(form.search(name) for form in (CONTROL, HIDING, _NOT_EVERYWHERE)) or not name.isprintable():
            faults.append(f"the file name {name!r} is one that not every system allows")
        elif path.is_symlink() and not inside(str(home), str(path)):
            faults.append(f"{name} is a link that leads out of the skill")
        elif path.is_symlink() and path.is_dir():
            faults.append(f"{name} is a link to a folder; replace it by the folder")
        elif len(files) >= MAX_FILES:
            return files, [*faults, f"has more than the {MAX_FILES} files allowed"]
        else:
            try:
                files[name] = read_bounded(os.path.realpath(path), MAX_FILE_BYTES)
            except FileNotFoundError:
                faults.append(f"{name} is a link to nothing; remove it")
            except FileRefusedError as error:
                faults.append(f"{name} {error}")
    folded = {_folded(name): name for name in files}
    faults += [
        f"the names {name} and {folded[_folded(name)]} are one name on systems that ignore case"
        for name in files
        if folded[_folded(name)] != name
    ]
    return files, faults


def _folded(name: str) -> str:
    """Return a file name as systems compare it that ignore case and the form of accents."""
    return normalize("NFC", name.casefold())


def _paths(home: Path) -> Iterator[Path]:
    """Yield the files of a skill, links to folders too, sorted within their folders."""
    for parent, folders, names in os.walk(home):
        left_out = OUTPUT_FOLDERS if Path(parent) == home else ()
        folders[:] = sorted(name for name in folders if not _LEFT_OUT.fullmatch(name) and name not in left_out)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        yield from (Path(parent, name) for name in [*links, *sorted(names)] if not _LEFT_OUT.fullmatch(name))


def _programs(
    skill: Skill, files: dict[str, bytes], tools: list[ToolDeclaration]
) -> tuple[set[str], dict[str, tuple[str, str]]]:
    """Return the paths of a skill's programs, and the programs to write for tools in a ``handler.py``."""
    declared = [path for tool in tools if not tool.is_handler for path in (tool.script, tool.worker) if path]
    found = {os.path.relpath(path, skill.dir).replace(os.sep, "/") for path in declared}
    found |= {name for name in files if _PROGRAM.fullmatch(name) and is_program(files[name])}
    handlers: dict[str, tuple[str, str]] = {}
    for tool in tools:
        if tool.is_handler:
            short = f"scripts/{tool.id.rpartition('.')[2]}.py"
            taken = short in files or short in handlers
            path = os.path.relpath(tool.script, skill.dir).replace(os.sep, "/")
            handlers[f"scripts/{tool.id.replace('.', '_')}.py" if taken else short] = (tool.id, path)
    return found & set(files), handlers


def _collisions(files: dict[str, bytes], programs: set[str], added: Programs) -> list[str]:
    """Return which files of a skill have the path of a module that the copy adds."""
    replaced = programs | {f"{program}.lock" for program in programs}
    taken = {_folded(name): name for name in files if name not in replaced}
    found = sorted(taken[_folded(name)] for name in added.files if _folded(name) in taken)
    return [f"has a file {name}, which is where a module of the copy belongs; rename it" for name in found]


def _schemas(home: Path, files: dict[str, bytes], tools: list[ToolDeclaration]) -> tuple[dict[str, bytes], list[str]]:
    """Return the JSON Schemas that take definitions from outside the skill, made self-contained, and what is wrong."""
    result: dict[str, bytes] = {}
    faults = []
    for name, content in files.items():
        if not name.endswith(".json") or not _REFERS_OUT.search(content):
            continue
        try:
            schema = parse_json(content)
            if not isinstance(schema, dict):
                continue
            bundled, sources = bundle(schema, (home / name).parent, home.parent)
        except (NotJsonError, ReferenceFault) as error:
            if any(str(home / name) == str(home / str(place)) for tool in tools for place in _schema_files(tool)):
                faults.append(f"{name}: {error}")
            continue
        if not all(Path(source).is_relative_to(home) for source in sources):
            result[name] = (json.dumps(bundled, ensure_ascii=False, indent=2) + "\n").encode()
    for tool in tools:
        inline = [key for key in ("input_schema", "output_schema") if isinstance(tool.entry.get(key), dict)]
        outside = [Path(file).name for file in tool.shared_files if not Path(file).is_relative_to(home)]
        if inline and outside:
            faults.append(f"{tool.id}: {inline[0]} takes definitions from {outside[0]}; move it to a file in schemas/")
    return result, faults


def _schema_files(tool: ToolDeclaration) -> list[str]:
    places = [tool.entry.get(key) for key in ("input_schema", "output_schema")]
    return [place for place in places if isinstance(place, str)]


def _origin(skill: Skill, programs: Programs) -> dict[str, Any]:
    """Return what a copy is made of: the distribution with its version, or else the version that the skill declares."""
    from skillpack.registry.declaration import declared_version

    own = own_distribution()
    names = sorted(programs.distributions) or ([own] if own and _is_part_of(skill, own) else [])
    name = own if own in names else next(iter(names), None)
    found = distribution(name) if name else None
    if name is not None and found is not None:
        return {"distribution": name, "version": found.version}
    return {"distribution": None, "version": declared_version(skill)}


def _is_part_of(skill: Skill, name: str) -> bool:

    project = project_folder(name)
    return any(
        Path(skill.dir).resolve().is_relative_to(Path(place).resolve()) for place in (bundled_root(), project) if place
    )


def _manifest(name: str, origin: dict[str, Any], tools: tuple[str, ...], files: dict[str, bytes]) -> bytes:
    """Return the manifest of a copy with these files."""
    content = {
        "format": MANIFEST_FORMAT,
        "name": name,
        "distribution": origin["distribution"],
        "version": origin["version"],
        "tools": list(tools),
        "files": [
            {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            for path, data in files.items()
        ],
    }
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
