"""The names and JSON Schemas under which tools are served, and the short form of the schemas for MCP.

Dots are legal in the tool names of MCP, yet several hosts refuse a name with a dot and with it every other tool.

An answer is the envelope ``{ok, error, data, duration_ms}``. A tool that declares ``answer: success`` in skill.yaml
answers ``{"success": true, "data"}`` or ``{"success": false, "error", "code"}`` instead over MCP.

A client loads the schemas of all tools at once, and hosts put them into a model's context. So an MCP server lists a
short form of the parameters. Everything that the full schema accepts, the short form accepts too: a call is checked
with the full schema. The short form uses no reference, since some hosts refuse ``$ref`` in the parameters of a tool,
and no ``anyOf``, ``oneOf`` or ``allOf`` at the top, which the interfaces of several models refuse.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skillscript.envelope import EXIT_CODES, own_codes
from skillscript.schema_references import map_children
from sturdy.schema_acceptance import EVERY_TYPE, resolve, types_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillpack.execution.runner import Call
    from skillpack.registry.declaration import ToolDeclaration

    Schema = Mapping[str, Any]
    Types = frozenset[str]

NameStyle = Literal["underscored", "dotted"]
MAX_NAME = 64  # characters; the smallest limit of a widespread host
_DIGITS = 8
ANSWER = {"type": "object"}
"""The schema that is listed for every answer over MCP; its full schema is a file of its skill."""
# Keywords for this pack's programs, not for a caller.
_OURS = ("x-error", "x-error-codes", "x-env", "x-from", "x-path", "x-programs", "x-short", "x-si", "x-whole")
_ROOT_ONLY = ("$schema", "$id", "examples", "title")
MAX_SCHEMAS = 2000  # examined per tool; of deeper parts of a larger schema only the type is listed
MAX_REFERENCES = 32  # in a chain, each to the next
MAX_DEPTH = 24  # schemas inside each other; of deeper ones only the type is listed
MIN_LISTED_LENGTH = 2  # a smaller lower limit on a text or a list only says that it is not empty
MAX_LISTED_LENGTH = 64  # a larger upper limit on a text does not help a model
MAX_LISTED_BOUND = 99  # larger bounds only keep numbers finite
MAX_LISTED_COUNT = 9  # a larger upper limit on the items of a list only keeps it finite
MAX_LISTED_PATTERN = 24  # characters; a model writes values by the description, not by a longer pattern
MIN_REPEATED = 100  # characters of JSON from which on the fields of an object, or a choice, are not listed again
ANY_NAME = ("^[!-~]+$", r"^\S+$")  # patterns that only exclude spaces, which a model does not write into a name
_ANY: Types = frozenset(EVERY_TYPE)
_NONE: Types = frozenset()
_GROUPS = ("anyOf", "oneOf")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_UNIT = re.compile(r"(.*?)\s*(\[[^\[\]]+\])?$")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_FILLERS = frozenset(("a", "an", "of", "the", "to"))  # words that add nothing to a name
_PLACES = re.compile(r"\[([^\[\]]+)\]")  # what each item of a list is: [x, y]
_CONDITIONAL = ("if", "then", "else", "not", "dependentSchemas")
_KEPT_AT_TOP = ("required", "properties", "additionalProperties", "dependentRequired")
_KEPT = (
    *("default", "enum", "const", "pattern", "format", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "dependentRequired", "deprecated"),
)


def served_names(tool_ids: Iterable[str], style: NameStyle, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return the tool ids by the names they are served under, in the order given.

    ``layout.create_nmos_pcell`` becomes ``layout_create_nmos_pcell``, or stays as it is where ``style`` is dotted. A
    name that is too long, or that is another's already, ends in a digest of the id instead.

    Args:
        tool_ids: Unique ids; of two that would get one name, the first has it.
        style: How to write them.
        taken: Names that are not available.
    """
    names: dict[str, str] = {}
    used = set(taken)
    for tool_id in tool_ids:
        name = tool_id if style == "dotted" else tool_id.replace(".", "_")
        if len(name) > MAX_NAME or name in used:
            digest = hashlib.sha256(tool_id.encode()).hexdigest()[:_DIGITS]
            name = f"{name[: MAX_NAME - _DIGITS - 1]}_{digest}"
        used.add(name)
        names[name] = tool_id
    return names


def answer_codes(tool: ToolDeclaration) -> list[str]:
    """Return the error codes the tool may answer: the common ones and those it declares."""
    return sorted({*EXIT_CODES, *own_codes(tool.output_schema)})


def answers_success(tool: ToolDeclaration) -> bool:
    """Return whether the tool declares the answer form ``{"success", ...}``."""
    return tool.entry.get("answer") == "success"


def structured_answer(tool: ToolDeclaration, call: Call) -> dict[str, Any]:
    """Return a finished call as its caller over MCP gets it: in the form that the tool declares."""
    result = call.result
    if not answers_success(tool):
        return call.envelope
    if result.error is not None:
        return {"success": False, "error": result.error.message, "code": result.error.code}
    left_out = {} if call.left_out is None else {"left_out": dict(call.left_out)}
    return {"success": True, "data": result.data or {}, **left_out}


def envelope_schema(data: dict[str, Any], codes: Sequence[str]) -> dict[str, Any]:
    """Return the schema of the envelope with these error codes and the ``data`` of a successful call."""
    envelope: dict[str, Any] = json.loads(_envelope())
    done, failed = envelope["oneOf"]
    done["properties"]["data"] = data
    failed["properties"]["error"]["properties"]["code"]["enum"] = list(codes)
    return envelope


@cache
def _envelope() -> bytes:
    return (Path(__file__).parents[1] / "schemas" / "envelope.schema.json").read_bytes()


def travelling(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return ``schema`` for use at ``place`` in another document.

    References within the schema (``#/$defs/box``) are rewritten; keywords that only this pack reads are removed.

    Args:
        schema: A whole, self-contained schema.
        place: JSON pointer of its new root, as a URI fragment.
    """
    root = {key: rule for key, rule in schema.items() if key not in _ROOT_ONLY}
    moved: dict[str, Any] = _moved(root, place)
    return moved


def _moved(schema: Any, place: str) -> Any:
    """Return a subschema with its references moved to ``place``."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: rule for key, rule in schema.items() if key not in _OURS}
    moved = map_children(kept, lambda inner: _moved(inner, place))
    reference = moved.get("$ref")
    if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
        moved["$ref"] = place + reference[1:]
    return _single_typed(moved)


def _single_typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an equivalent schema without a list of types, which some hosts do not support."""
    names = schema.get("type")
    if not isinstance(names, list):
        return schema
    rest = {key: rule for key, rule in schema.items() if key != "type"}
    branches = [{"type": name} for name in names]
    if "anyOf" in rest:
        return {**rest, "allOf": [*rest.get("allOf", ()), {"anyOf": branches}]}
    return {**rest, "anyOf": branches}


def rare_fields(schema: Schema) -> list[str]:
    """Return the fields at the top of a schema that it marks with ``x-short: false``: what few calls give."""
    shortening = _Shortening(schema)
    fields = shortening.fields(shortening.parts(schema)[0])
    return [name for name, rule in fields.items() if _is_rare(shortening.parts(rule)[0])]


def lean_input(schema: Schema, *, rare: bool = True) -> dict[str, Any]:
    """Return the short form of the schema of a tool's parameters.

    It keeps names, types, bounds, units, defaults, and of each description the first paragraph. The fields of an object
    and a long choice are listed once; where the same comes again, the name of the first is listed instead: ``Like
    device_a``. No fields are listed of what a caller passes on as another tool returned it (``x-from``), nor is, inside
    an object, a field that only such a value has.

    Args:
        schema: A whole, self-contained schema.
        rare: Whether to list the fields that the schema marks as rare. Without them, an object is listed as open.
    """
    shortening = _Shortening(schema, rare=rare)
    top = shortening.shortened(schema, frozenset())
    kept: dict[str, Any] = {key: top[key] for key in _KEPT_AT_TOP if key in top}
    if "properties" in kept:
        _name_repeated(kept["properties"], {})
    is_whole = rare or not rare_fields(schema)
    closed = {"additionalProperties": False} if is_whole and shortening.is_closed(shortening.parts(schema)[0]) else {}
    return {"type": "object", **kept, **closed}


class _Shortening:
    """Shortens one schema.

    Several schemas may apply to a value: a schema, what it refers to and the members of its ``allOf``. They are its
    parts. Of each keyword, the first part that has it is followed, which accepts no less than all of them.
    """

    def __init__(self, root: Schema, *, rare: bool = True) -> None:
        self._root = root
        self._rare = rare
        self._room = MAX_SCHEMAS
        self._depth = 0

    def parts(self, schema: Any) -> tuple[list[Schema], frozenset[str]]:
        """Return the schemas that all apply where ``schema`` does, and the references that lead to them."""
        found: list[Schema] = []
        followed: set[str] = set()
        waiting = [schema]
        while waiting:
            part = waiting.pop(0)
            if not isinstance(part, dict):
                continue
            found.append(part)
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in followed:
                followed.add(reference)
                waiting.append(resolve(part, self._root))
            waiting += part.get("allOf", ())
        return found, frozenset(followed)

    def types(self, schema: Any, above: frozenset[str] = frozenset()) -> Types:
        """Return the JSON types that ``schema`` may accept; ``above`` are the references that led to it."""
        self._room -= 1
        parts, followed = self.parts(schema)
        if self._is_far(followed, above):
            return _ANY
        allowed = _ANY
        for part in parts:
            allowed &= _own_types(part)
            for group in _GROUPS:
                if group in part:
                    allowed &= _NONE.union(*(self.types(branch, above | followed) for branch in part[group]))
        return allowed

    def _is_far(self, followed: frozenset[str], above: frozenset[str]) -> bool:
        """Return whether the references are circular, too long a chain, or too many schemas were examined."""
        return self._room < 0 or len(above) > MAX_REFERENCES or not followed.isdisjoint(above)

    def fields(self, parts: list[Schema]) -> dict[str, Any]:
        """Return the properties that ``parts`` name, also in alternatives, each as one schema."""
        found: dict[str, list[Any]] = {}
        for part in parts:
            for name, rule in part.get("properties", {}).items():
                found.setdefault(name, []).append(rule)
        fields = {name: rules[0] if len(rules) == 1 else {"allOf": rules} for name, rules in found.items()}
        for part in parts:
            for group in _GROUPS:
                for name, rule in self._alternatives(part.get(group, ())).items():
                    fields.setdefault(name, rule)
        return fields

    def _alternatives(self, branches: list[Any]) -> dict[str, Any]:
        """Return the properties that the branches name; one that an open branch does not name can have any value."""
        each = [self.parts(branch)[0] for branch in branches]
        named = [{name: rule for part in parts for name, rule in part.get("properties", {}).items()} for parts in each]
        found: dict[str, Any] = {}
        for name in dict.fromkeys(name for names in named for name in names):
            rules = [names[name] for names in named if name in names]
            free = any(
                name not in names and not self.is_closed(parts) for names, parts in zip(named, each, strict=True)
            )
            texts = [rule["description"] for rule in rules if isinstance(rule, dict) and "description" in rule]
            found[name] = {**({"description": texts[0]} if texts else {}), **({} if free else {"anyOf": rules})}
        return found

    def is_closed(self, parts: list[Schema]) -> bool:
        """Return whether no other property can be there than ``parts`` name. If that is unclear, the answer is no."""
        if any("patternProperties" in part for part in parts):
            return False
        if any(part.get("additionalProperties") is False for part in parts):
            return True
        unclear = (*_GROUPS, *_CONDITIONAL, "additionalProperties", "$dynamicRef")
        if any(keyword in part for part in parts for keyword in unclear):
            return False
        return any(part.get("unevaluatedProperties") is False for part in parts)

    def shortened(self, schema: Any, above: frozenset[str], name: str = "") -> dict[str, Any]:
        """Return the short form of ``schema``.

        Args:
            schema: What to shorten.
            above: The references that led to it.
            name: The property that it describes, or "".
        """
        self._depth += 1
        try:
            return self._shortened(schema, above, name)
        finally:
            self._depth -= 1

    def _shortened(self, schema: Any, above: frozenset[str], name: str) -> dict[str, Any]:
        self._room -= 1
        parts, followed = self.parts(schema)
        short = _described(parts, name)
        if self._depth > MAX_DEPTH or self._is_far(followed, above) or _is_passed_on(parts):
            passed = _typed(self.types(schema))
            if passed.get("type") == "array":
                passed["items"] = _typed(self.types(next((part["items"] for part in parts if "items" in part), True)))
            return {**passed, **short}
        inside = above | followed
        group = next((part[group] for part in parts for group in _GROUPS if group in part), None)
        branches = _distinct([self.shortened(branch, inside) for branch in group] if group else [])
        types = self.types(schema)
        short = {**_typed(types), **short}
        if branches and {} not in branches and ("anyOf" in short or _says_more(branches)):
            short["anyOf"] = branches
        for keyword in _KEPT:
            rule = next((part[keyword] for part in parts if keyword in part), None)
            if rule is not None and _is_listed(keyword, rule):
                short[keyword] = rule
        if "default" in short:
            if short.get("enum") == [short["default"]]:
                del short["enum"]
            if short.get("pattern") == f"^{short['default']}$":
                del short["pattern"]
        if any("x-env" in part for part in parts):
            short.pop("default", None)  # a variable of the server's environment may replace it
        if "object" in types:
            self._add_properties(short, parts, inside)
        if "array" in types:
            self._add_items(short, parts, inside)
        return short

    def _add_properties(self, short: dict[str, Any], parts: list[Schema], inside: frozenset[str]) -> None:
        required = list(dict.fromkeys(name for part in parts for name in part.get("required", ())))
        if required:
            short["required"] = required
        fields = self.fields(parts)
        others = next((rule for part in parts if isinstance(rule := part.get("additionalProperties"), dict)), None)
        if not self._rare:
            fields = {name: rule for name, rule in fields.items() if not _is_rare(self.parts(rule)[0])}
        if others is None and not any(part is self._root for part in parts):
            passed_on = {name for name, rule in fields.items() if _is_passed_on(self.parts(rule)[0])}
            fields = {name: rule for name, rule in fields.items() if name not in passed_on}
            if any(passed_on & set(branch.get("required", ())) for branch in short.get("anyOf", ())):
                del short["anyOf"]  # an alternative that requires a field that is not listed tells a model nothing
        if fields:
            short["properties"] = {name: self.shortened(rule, inside, name) for name, rule in fields.items()}
        if others is not None and not any("patternProperties" in part for part in parts):
            rule = self.shortened(others, inside)
            if "anyOf" not in rule:  # the description states alternatives more briefly
                short["additionalProperties"] = rule

    def _add_items(self, short: dict[str, Any], parts: list[Schema], inside: frozenset[str]) -> None:
        part = next((part for part in parts if "items" in part or "prefixItems" in part), None)
        if part is None:
            if short.get("type") == "array":
                short["items"] = {}  # some hosts refuse an array without items
            return
        rest = part.get("items", True)
        if "prefixItems" in part:
            whole = rest is False or part.get("maxItems", math.inf) <= len(part["prefixItems"])
            rules = [*part["prefixItems"], *([] if whole else [rest])]
            items = _distinct([self.shortened(rule, inside) for rule in rules])
            short["items"] = {} if {} in items else items[0] if len(items) == 1 else {"anyOf": items}
        else:
            short["items"] = self.shortened(rest, inside)
        places = _PLACES.match(short.get("description", ""))
        shown = len(places[1].split(",")) if places else len(short.get("default", ()))
        if short.get("minItems") == short.get("maxItems") == shown:
            del short["minItems"], short["maxItems"]  # the description or the default shows it


def _is_passed_on(parts: list[Schema]) -> bool:
    """Return whether a caller has the value from another tool."""
    return any("x-from" in part for part in parts)


def _is_rare(parts: list[Schema]) -> bool:
    """Return whether few calls give the value."""
    return any(part.get("x-short") is False for part in parts)


def _own_types(part: Schema) -> Types:
    """Return the types that the keywords ``type``, ``enum`` and ``const`` of one schema allow."""
    allowed = _ANY
    for keyword in ("type", "enum", "const"):
        if keyword in part:
            names = types_of({keyword: part[keyword]})
            allowed &= frozenset(names | {"integer"} if "number" in names else names)
    return allowed


def _typed(types: Types) -> dict[str, Any]:
    """Return the shortest schema that accepts these types; without a list of types, which some hosts refuse."""
    if types == _ANY or not types:
        return {}
    names = sorted(types - {"integer"} if "number" in types else types)
    return {"type": names[0]} if len(names) == 1 else {"anyOf": [{"type": name} for name in names]}


def _is_listed(keyword: str, rule: Any) -> bool:
    """Return whether a model needs a rule to write good parameters."""
    if keyword in ("minLength", "minItems"):
        return bool(rule >= MIN_LISTED_LENGTH)
    if keyword == "maxLength":
        return bool(rule <= MAX_LISTED_LENGTH)
    if keyword == "pattern":
        return rule not in ANY_NAME and len(rule) <= MAX_LISTED_PATTERN
    if keyword == "maxItems":
        return bool(rule <= MAX_LISTED_COUNT)
    if keyword in ("minimum", "exclusiveMinimum") and rule in (0, 1):
        return False  # of a size, a count or a share; a model does not write a negative one
    if keyword in _BOUNDS:
        return bool(-MAX_LISTED_BOUND <= rule <= MAX_LISTED_BOUND)
    return keyword != "default" or (rule is not False and rule not in ([], {}, ""))


def _described(parts: list[Schema], name: str) -> dict[str, Any]:
    """Return the first paragraph of the first description; of one that only repeats the name, the unit."""
    text = next((part["description"] for part in parts if isinstance(part.get("description"), str)), "")
    summary = " ".join(text.strip().partition("\n\n")[0].split())
    words, unit = _UNIT.match(summary).groups("")  # type: ignore[union-attr]
    if _words(words) - _FILLERS <= _words(name):
        summary = unit
    return {"description": summary} if summary else {}


def _words(text: str) -> set[str]:
    """Return the words of a text or name, without the s of a plural."""
    return {word.lower().removesuffix("s") for word in _WORD.findall(text)}


def _name_repeated(properties: dict[str, Any], first: dict[str, str], above: str = "") -> None:
    """Replace, in place, each object or choice that was listed before by the name of the first one.

    Args:
        properties: Short schemas by name.
        first: The name of the first property with certain fields or values, by the JSON of these; filled as they come.
        above: The name of the object that has the properties, with a dot, or "".
    """
    for name, schema in properties.items():
        path, part, inner = above + name, schema, schema
        while isinstance(inner, dict) and not {"properties", "enum"} & set(part):
            part, inner = inner, inner.get("items", inner.get("additionalProperties"))
        rules = {key: rule for key, rule in part.items() if key != "description"}
        text = json.dumps(rules)
        if len(text) < MIN_REPEATED or not {"properties", "enum"} & set(part):
            continue
        if text in first:
            words = [part["description"]] if "description" in part else []
            part.clear()
            kind = {"type": rules["type"]} if "type" in rules else {}
            part.update(kind, description=". ".join([*words, f"Like {first[text]}"]))
        else:
            first[text] = path
            _name_repeated(part.get("properties", {}), first, f"{path}.")


def _distinct(schemas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({json.dumps(schema, sort_keys=True): schema for schema in schemas}.values())


def _says_more(branches: list[dict[str, Any]]) -> bool:
    """Return whether alternatives of one type differ in more than it."""
    return len(branches) > 1 or set(branches[0]) - {"type", "description"} != set()
