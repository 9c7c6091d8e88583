"""The content of technology files: which there are, what each says, and what it takes over from others.

A device takes over fields from the one that it is ``like``, a file sections from the one that it is ``based_on``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from layoutkit.errors import TechnologyError, did_you_mean, sentences
from layoutkit.file_schema import check_numbers, read_yaml
from sturdy.strict_json import load_json

if TYPE_CHECKING:
    from collections.abc import Mapping

SHIPPED = Path(__file__).parent
MAX_FILE_BYTES = 4_000_000
SECTIONS = ("technology", "layers", "roles", "stack", "dimensions", "devices")
LEAST_NAME = 3  # letters of a name that is not given in full
MOST_BASES = 8  # files that are based on each other
OF_ITS_OWN = frozenset({"model", "other_models", "default"})
"""Fields of a device that one that states to be ``like`` it does not take over."""
OF_ONE_FILE = frozenset({"technology", "also_called", "description", "notes"})
"""Sections that say what one file is; one that is based on it does not take them over."""

WHOLE = "sections"
"""What ``without`` calls the file as a whole, whose entries are its sections."""


def names() -> list[str]:
    """Return the names of the shipped technologies, sorted."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def file_of(name_or_path: str) -> Path:
    """Return the file of the technology called ``name_or_path``.

    Raises:
        TechnologyError: If it is neither the name of a shipped one, in full or not, nor the path of a YAML file.
    """
    shipped = names()
    if name_or_path in shipped:
        return SHIPPED / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if path.suffix in {".yaml", ".yml"} and path.is_file():
        return path
    meant = _called(name_or_path)
    if len(meant) == 1:
        return SHIPPED / f"{meant[0]}.yaml"
    hint = f" is short for {' and '.join(meant)}" if meant else ""
    raise TechnologyError(
        f"unknown technology '{name_or_path}'{hint or did_you_mean(name_or_path, shipped)}; shipped: "
        f"{', '.join(shipped)}; or give the path of a .yaml file"
    )


def _called(name: str) -> list[str]:
    """Return the shipped technologies whose name begins with ``name``, or which are also called so.

    One that is based on another of them is left out.
    """
    low = name.lower()
    if len(low) < LEAST_NAME:
        return []
    documents = {each: read_document(SHIPPED / f"{each}.yaml") for each in names()}
    begin = [each for each in documents if each.lower().startswith(low)]
    # A variant is meant only by its name in full.
    begin = [each for each in begin if documents[each].get("based_on") not in begin]
    return begin or [each for each, document in documents.items() if low in document.get("also_called", ())]


def read_document(path: Path) -> dict[str, Any]:
    """Return the mapping that the technology file ``path`` holds, as YAML or as JSON.

    Raises:
        TechnologyError: If it is too large or holds something else.
    """
    return document_of(texts_of(path))


def files_of(path: Path) -> list[Path]:
    """Return a technology file and those that it is based on.

    Raises:
        TechnologyError: If one of them cannot be read.
    """
    return [each for each, _ in texts_of(path)]


def texts_of(path: Path) -> tuple[tuple[Path, str], ...]:
    """Return the content of a file, and then of those that it is based on."""
    found = [(path, _text(path))]
    while (base := _base_of(*found[-1])) is not None:
        if len(found) > MOST_BASES:
            raise TechnologyError(f"technology file {path.name}: more than {MOST_BASES} files are based on each other")
        found.append((base, _text(base)))
    return tuple(found)


def _base_of(path: Path, text: str) -> Path | None:
    """Return the file that another is based on: a shipped technology, or a file in the same folder."""
    stated = _parsed(path, text).get("based_on") if "based_on" in text else None
    if stated is None:
        return None
    beside = path.parent / str(stated)
    if stated in names():
        return SHIPPED / f"{stated}.yaml"
    if Path(str(stated)).name == stated and beside.suffix in {".yaml", ".yml"} and beside.is_file():
        return beside
    raise TechnologyError(
        f"technology file {path.name}: 'based_on' must be a shipped technology ({', '.join(names())}) or the name of "
        f"a .yaml file in the same folder, got {short(stated)}"
    )


def _text(path: Path) -> str:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise TechnologyError(f"technology file {path.name} is larger than {MAX_FILE_BYTES} bytes")
    try:
        return path.read_text(encoding="utf-8")
    except ValueError as error:
        raise _not_yaml(path, error) from error
    except OSError as error:
        raise TechnologyError(f"technology file {path.name} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=16)
def _parsed(path: Path, text: str) -> dict[str, Any]:
    """Return what a file says itself; nobody changes it."""
    try:
        data = _from_json(text) if text.startswith("{") else read_yaml(text, trusted=path.parent == SHIPPED)
    except (ValueError, RecursionError) as error:
        raise _not_yaml(path, error) from error
    if not isinstance(data, dict):
        raise TechnologyError(f"technology file {path.name} must hold a mapping")
    if data and not any(section in data for section in SECTIONS):  # a file of another kind, which no message may quote
        raise TechnologyError(f"{path.name} is not a technology file: it has none of {', '.join(SECTIONS)}")
    if data.keys() & {"based_on", "without"} and path.parent != SHIPPED:
        from layoutkit.technology.inspection import SCHEMA

        said = {key: data[key] for key in ("based_on", "without") if key in data}
        faults = [f"{fault.place}: {fault.message}" for fault in SCHEMA.faults(said, "base")]
        if faults:
            raise TechnologyError(f"technology file {path.name}: {sentences(faults)}", details={"faults": faults})
    return data


def document_of(texts: tuple[tuple[Path, str], ...]) -> dict[str, Any]:
    """Return the whole content of a file, with what it takes over from its bases and between devices."""
    *others, last = texts
    data = _parsed(*last)
    for path, text in reversed(others):
        data = _on_its_base(_parsed(path, text), data, path.name)
    devices = data.get("devices")
    return {**data, "devices": _with_fields_alike(devices)} if isinstance(devices, dict) else data


def _not_yaml(path: Path, error: Exception) -> TechnologyError:
    return TechnologyError(f"technology file {path.name} is not readable YAML: {error}")


def _from_json(text: str) -> Any:
    try:
        data = load_json(text)
    except ValueError:  # YAML may open with a brace too
        return read_yaml(text)
    check_numbers(data)
    return data


def _with_fields_alike(devices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the devices, each that states ``like`` with the fields of that device that it does not state itself."""

    def whole(entry: Any) -> Any:
        like = devices.get(entry["like"]) if isinstance(entry, dict) and isinstance(entry.get("like"), str) else None
        if not isinstance(like, dict) or "like" in like:
            return entry
        found = {**{key: value for key, value in like.items() if key not in OF_ITS_OWN}, **entry}
        for key in ("dimensions", "options"):
            if isinstance(found.get(key), dict) and isinstance(like.get(key), dict):
                found[key] = {**like[key], **found[key]}
        return found

    return {name: whole(entry) for name, entry in devices.items()}


def _on_its_base(own: Mapping[str, Any], base: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the content of a file that is based on another.

    Mappings are merged key by key, and lists whose entries have names (``id``, ``name``, or ``upper`` and ``lower``)
    entry by entry; everything else is replaced.

    Args:
        own: What the file says.
        base: The content of the other.
        file: The name of the file, for messages.

    Raises:
        TechnologyError: If ``without`` names what the other has not; the message states all such names.
    """
    taken = {key: value for key, value in base.items() if key not in OF_ONE_FILE}
    faults: list[str] = []
    for section, patterns in own.get("without", {}).items():
        taken = _without(taken, [] if section == WHOLE else section.split("."), patterns, section, faults)
    if faults:
        raise TechnologyError(f"technology file {file}: {sentences(faults)}", details={"faults": faults})
    stated = {key: value for key, value in own.items() if key != "without"}
    return dict(_merged(taken, stated))


def _without(part: Any, steps: list[str], patterns: list[str], section: str, faults: list[str]) -> Any:
    """Return ``part`` without the entries that a pattern matches in the section that ``steps`` lead to."""
    if steps:
        if not isinstance(part, dict) or steps[0] not in part:
            hint = did_you_mean(steps[0], list(part)) if isinstance(part, dict) else ""
            faults.append(f"without.{section}: there is no such section in the base{hint}")
            return part
        return {**part, steps[0]: _without(part[steps[0]], steps[1:], patterns, section, faults)}
    named = _named(part) if isinstance(part, list) else part
    if not isinstance(named, dict):
        faults.append(f"without.{section}: its entries have no names")
        return part
    faults += [
        f"without.{section}: nothing in the base is called '{pattern}'{did_you_mean(pattern, list(named))}"
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in named)
    ]
    kept = {name: value for name, value in named.items() if not any(fnmatchcase(name, each) for each in patterns)}
    return list(kept.values()) if isinstance(part, list) else kept


def _merged(base: Any, own: Any) -> Any:
    if isinstance(base, dict) and isinstance(own, dict):
        return {**base, **{key: _merged(base[key], value) if key in base else value for key, value in own.items()}}
    if not isinstance(base, list) or not isinstance(own, list):
        return own
    found, stated = _named(base), _named(own)
    if found is None or stated is None or len(stated) < len(own):  # a name stated twice is a fault, which others report
        return own if found is None or stated is None else [*base, *own]
    return list({**found, **{name: _merged(found.get(name), entry) for name, entry in stated.items()}}.values())


def _named(entries: list[Any]) -> dict[str, Any] | None:
    """Return the entries of a list by their names; None if one has none."""
    found = {}
    for entry in entries:
        given = entry if isinstance(entry, dict) else {}
        name = given.get("id", given.get("name"))
        if name is None and {"upper", "lower"} <= given.keys():
            name = f"{given['upper']}/{given['lower']}"
        if not isinstance(name, str):
            return None
        found[name] = entry
    return found
