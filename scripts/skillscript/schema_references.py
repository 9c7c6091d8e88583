"""Where ``$ref`` leads: to a place in the same JSON Schema, or to a definition in another file of the pack.

Skills that lie in one folder may share definitions. ``"$ref": "../../analog-layout.schema.json#/$defs/box"`` names a
definition by the file's path, relative to the file with the reference. ``bundle`` makes such a schema self-contained:
it adds the definitions that are used, and nothing else. No file outside of the folder of the skills is read, and no
network is used.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from sturdy.atomic_files import file_state
from sturdy.schema_acceptance import resolve
from sturdy.strict_json import NotJsonError, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeAlias

    from sturdy.atomic_files import FileState

    Place: TypeAlias = tuple[str, str]  # a file and the name of one of its definitions

MAX_FILE_BYTES = 1 << 20
MAX_FILES = 16  # that one schema may take definitions from
MAX_DEFINITIONS = 1000  # that one schema may take from them
_MAX_CHAIN = 16  # references that lead to references
_MAX_MERGED_DEPTH = 16  # levels of schemas; definitions used further inside stay references
_LOCAL = re.compile(r"#/\$defs/([\w.-]+)", re.ASCII)
_OF_A_FILE = re.compile(r"((?:\.\./)*(?:[A-Za-z0-9_][\w.-]*/)*[A-Za-z0-9_][\w.-]*\.json)#/\$defs/([\w.-]+)", re.ASCII)
# A skill that was copied alone takes the definitions that skills share from the installed package.
_SKEW = "; the copied skill and the installed package differ in version: copy the skill again, or update the package"
_HOW = "write #/$defs/NAME for a definition of the same file, or PATH/FILE.json#/$defs/NAME for one of another file"

SCHEMA_MAPS = ("$defs", "properties", "patternProperties", "dependentSchemas")
SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SCHEMA_SINGLES = (
    *("additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "items", "contains"),
    *("not", "if", "then", "else"),
)
_ANNOTATIONS = ("$schema", "$id", "$comment", "$defs", "title", "description", "default", "examples", "deprecated")
_CLOSING = frozenset({"additionalProperties", "unevaluatedProperties"})
_APPLICATORS = frozenset(
    ("$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "patternProperties"),
)


class ReferenceFault(ValueError):  # noqa: N818 - one or several faults, as ``Fault``
    """A schema refers to something that cannot be used; the message names every such reference."""


def child_schemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas directly inside ``schema``, each with its keyword."""
    for keyword in SCHEMA_MAPS:
        inner = schema.get(keyword)
        if isinstance(inner, dict):
            yield from ((keyword, item) for item in inner.values())
    for keyword in SCHEMA_LISTS:
        inner = schema.get(keyword)
        if isinstance(inner, list):
            yield from ((keyword, item) for item in inner)
    for keyword in SCHEMA_SINGLES:
        if keyword in schema:
            yield keyword, schema[keyword]


def map_children(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return ``schema`` with ``change`` applied to each schema directly inside it; values such as enums stay."""
    result: dict[str, Any] = {}
    for keyword, rule in schema.items():
        if keyword in SCHEMA_MAPS and isinstance(rule, dict):
            result[keyword] = {name: change(item) for name, item in rule.items()}
        elif keyword in SCHEMA_LISTS and isinstance(rule, list):
            result[keyword] = [change(item) for item in rule]
        else:
            result[keyword] = change(rule) if keyword in SCHEMA_SINGLES else rule
    return result


def described(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return ``schema`` with its local ``$ref`` followed; its own keywords replace those of the target."""
    for _ in range(_MAX_CHAIN):
        target = resolve(schema, root)
        if target is None:
            break
        schema = {**target, **{key: rule for key, rule in schema.items() if key != "$ref"}}
    return schema


def bundle(schema: dict[str, Any], folder: Path, skills: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return ``schema`` with the definitions that it takes from other files, and the paths of these files.

    A file that is reached by a link has two paths, its name and its place; if one of them changes, so may the schema.

    A definition that is used once takes the place of its reference, merged with the keywords beside it, if both
    together say the same as the merged schema. All others are added to ``$defs``.

    Args:
        schema: A JSON Schema 2020-12.
        folder: Where its relative references start from.
        skills: The folder of the skills. A file that is not in it, but is named as if it lay directly in it, is
            looked for among the skills that are installed with this package: a skill that was copied elsewhere finds
            its definitions there.

    Raises:
        ReferenceFault: If references lead out of ``skills``, to an address, or to what is not there; or if the files
            are too many or too large.
    """
    collected = _Collected(Path(os.path.realpath(skills)))
    collected.collect(schema, Path(os.path.realpath(folder)))
    if collected.faults:
        raise ReferenceFault("; ".join(sorted(set(collected.faults))))
    if not collected.definitions:
        return schema, ()
    return _Bundle(collected, schema).result(), tuple(sorted({*collected.folders, *collected.named}))


class _Collected:
    """The definitions that a schema takes from other files, directly or through other definitions.

    Attributes:
        definitions: Each with its place.
        uses: How often each is referred to.
        folders: Files read, each with the folder that its references start from.
        named: Files as they are named, which may be links or absent.
        faults: What is wrong with references.
    """

    def __init__(self, skills: Path) -> None:
        self._skills = skills
        self.definitions: dict[Place, Any] = {}
        self.uses: Counter[Place] = Counter()
        self.folders: dict[str, Path] = {}
        self.named: set[str] = set()
        self.faults: list[str] = []
        self._places: dict[tuple[str, str], Place | None] = {}  # by the file with the reference, and the reference

    def collect(self, schema: dict[str, Any], folder: Path) -> None:
        """Find all definitions; ``folder`` is where the schema's own references start from."""
        self.folders[""] = folder
        waiting: list[tuple[Any, str]] = [(schema, "")]
        while waiting:
            place, file = waiting.pop()
            if not isinstance(place, dict):
                continue
            waiting.extend((inner, file) for _, inner in child_schemas(place))
            target = self.place_of(place, file)
            if target is None:
                continue
            self.uses[target] += 1
            if target not in self.definitions and len(self.definitions) < MAX_DEFINITIONS:
                self.definitions[target] = self._definition(target)
                waiting.append((self.definitions[target], target[0]))
            elif target not in self.definitions:
                self.faults.append(f"more than the {MAX_DEFINITIONS} definitions allowed are taken from other files")
                break
        del self.folders[""]

    def place_of(self, schema: Mapping[str, Any], file: str) -> Place | None:
        """Return the definition of another file to which ``schema``, a schema of ``file``, refers."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or (not file and reference.startswith("#")):
            return None
        if (file, reference) not in self._places:
            self._places[file, reference] = self._found(reference, file)
        return self._places[file, reference]

    def _found(self, reference: str, file: str) -> Place | None:
        local = _LOCAL.fullmatch(reference)
        if local:
            return file, local[1]
        named = _OF_A_FILE.fullmatch(reference)
        if not named:
            self.faults.append(f"$ref {reference!r} is not followed; {_HOW}")
            return None
        name = os.path.normpath(self.folders[file] / named[1])
        path = Path(os.path.realpath(name))
        if not path.is_relative_to(self._skills):
            self.faults.append(f"$ref {reference!r} leads out of the folder of the skills")
            return None
        if path.parent == self._skills and not path.exists():
            path = _installed_skills() / path.name
        self.named.add(name)
        if str(path) not in self.folders:
            if len(self.folders) > MAX_FILES:
                self.faults.append(f"definitions are taken from more than the {MAX_FILES} files allowed")
                return None
            self.folders[str(path)] = path.parent
        return str(path), named[2]

    def _definition(self, place: Place) -> Any:
        path, name = place
        try:
            definitions = _definitions(path, file_state(os.stat(path)))  # noqa: PTH116 - text
        except OSError as error:
            self.faults.append(f"the file {Path(path).name} cannot be read: {error.strerror}")
            return None
        except NotJsonError as error:
            self.faults.append(f"the file {Path(path).name}: {error}")
            return None
        found = definitions.get(name)
        if not isinstance(found, (dict, bool)):
            copied = Path(path).parent == _installed_skills() != self._skills
            self.faults.append(f"the file {Path(path).name} has no schema named {name!r} in its $defs{_SKEW * copied}")
        return found


@lru_cache(maxsize=8)
def _definitions(path: str, state: FileState) -> dict[str, Any]:
    """Return ``$defs`` of a JSON Schema file."""
    file = Path(path)
    if not file.is_file():
        raise NotJsonError("is not a regular file")
    with file.open("rb") as stream:
        content = parse_json(stream.read(min(state[1], MAX_FILE_BYTES) + 1), limit=MAX_FILE_BYTES)
    definitions = content.get("$defs") if isinstance(content, dict) else None
    return definitions if isinstance(definitions, dict) else {}


def _installed_skills() -> Path:
    """Return the folder of the skills installed with this package: in the wheel, or in a checkout."""
    packages = Path(__file__).resolve().parents[1]
    bundled = packages / "skillpack" / "bundled_skills"
    return bundled if bundled.is_dir() else packages.parent / "skills"


class _Bundle:
    """Puts a self-contained schema together."""

    def __init__(self, collected: _Collected, schema: dict[str, Any]) -> None:
        self._collected = collected
        self._schema = schema
        own = schema.get("$defs")
        self._taken = set(own) if isinstance(own, dict) else set()
        self._names: dict[Place, str] = {}  # of the definitions that go to $defs

    def result(self) -> dict[str, Any]:
        """Return the schema."""
        result: dict[str, Any] = self._moved(self._schema, "", 0)
        added: dict[str, Any] = {}
        while len(added) < len(self._names):
            for place, name in list(self._names.items())[len(added) :]:
                added[name] = self._moved(self._collected.definitions[place], place[0], 0)
        return {**result, "$defs": {**result.get("$defs", {}), **added}} if added else result

    def _moved(self, schema: Any, file: str, depth: int) -> Any:
        """Return a schema of ``file`` in its resolved form; it is nested in ``depth`` other schemas."""
        if not isinstance(schema, dict):
            return schema
        moved = map_children(schema, lambda inner: self._moved(inner, file, depth + 1))
        target = self._collected.place_of(schema, file)
        if target is None:
            return moved
        if self._collected.uses[target] == 1 and depth < _MAX_MERGED_DEPTH:
            merged = _merged(
                self._moved(self._collected.definitions[target], target[0], depth),
                {keyword: rule for keyword, rule in moved.items() if keyword != "$ref"},
            )
            if merged is not None:
                return merged
        return {**moved, "$ref": f"#/$defs/{self._name(target)}"}

    def _name(self, place: Place) -> str:
        if place not in self._names:
            name, number = place[1], 2
            while name in self._taken:
                name, number = f"{place[1]}_{number}", number + 1
            self._taken.add(name)
            self._names[place] = name
        return self._names[place]


def _merged(target: Any, beside: dict[str, Any]) -> dict[str, Any] | None:
    """Return one schema that says what ``target`` and the keywords beside its reference say, or None.

    A keyword that only describes the value replaces the target's.
    """
    if not isinstance(target, dict):
        return None
    result: dict[str, Any] = {**{keyword: beside[keyword] for keyword in beside if keyword in _ANNOTATIONS}, **target}
    closed = not _CLOSING.isdisjoint(target)
    for keyword, rule in beside.items():
        describes = keyword in _ANNOTATIONS or keyword.startswith("x-")
        if describes or (keyword == "type" and _names(rule) <= _names(target.get("type", rule))):
            result[keyword] = rule
        elif keyword == "required":
            result[keyword] = list(dict.fromkeys([*target.get(keyword, ()), *rule]))
        elif keyword == "properties":
            if closed or not set(rule).isdisjoint(target.get(keyword, {})):
                return None
            result[keyword] = {**target.get(keyword, {}), **rule}
        elif keyword == "unevaluatedProperties" and rule is False:
            if closed or not _APPLICATORS.isdisjoint([*target, *beside]):
                return None
            result["additionalProperties"] = False
        else:
            return None
    return result


def _names(rule: Any) -> set[str]:
    """Return the types that the keyword ``type`` names."""
    return {rule} if isinstance(rule, str) else set(rule)
