"""Validate plain JSON values against a JSON Schema (2020-12), report all faults at once, and fill in defaults.

Types are strict: ``true`` is not a number and ``"1"`` is not 1. As in JSON Schema, ``1.0`` is an integer; the handler
gets it as the ``int`` 1. In addition to JSON Schema, a property may have

``x-error``
    Its own error messages: ``{"minimum": "Number of fingers must be positive integer", "required": "..."}``, by the
    keyword that failed, or one text for all keywords that apply to the value itself. ``{value}`` (received),
    ``{param}`` (the whole path), ``{name}`` (its last step), ``{limit}`` (the keyword's value) and, for an unknown
    field, ``{hint}`` (a suggestion) are replaced.
    ``required`` may be in the missing property or in its object.
``x-env``
    The environment variable that, if set, replaces a string property's ``default``.
``x-si``
    The unit of the number: ``um`` for micrometres, or a unit of the SI (``m``, ``m2``, ``F``, ``ohm``, ``A``, ``V``,
    ``s``). A text such as ``"4u"``, ``"180nm"``, ``"100fF"`` or ``"10k"`` is taken for the number then.
"""

from __future__ import annotations

import os
import re
from copy import deepcopy

from sturdy.schema_acceptance import accepts, is_type, matches, resolve, types_of

from .envelope import Fault, invalid_params
from .schema_references import described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SI = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*([fpnum\u00b5\u03bck]|[Mm]eg)(m2?|F|ohm|A|V|s)?", re.ASCII)
_PREFIXES = {"f": -15, "p": -12, "n": -9, "u": -6, "\u00b5": -6, "\u03bc": -6, "m": -3, "k": 3, "Meg": 6, "meg": 6}


def validate(value: Any, schema: dict[str, Any]) -> Any:
    """Return plain JSON ``value`` with the defaults of ``schema`` filled in.

    Raises:
        SkillError: INVALID_PARAM with all faults at once.
    """
    faults = find_faults(value, schema)
    if faults:
        raise invalid_params(faults)
    return fill_defaults(value, schema)


def find_faults(value: Any, schema: dict[str, Any]) -> list[Fault]:
    """Return all faults of plain JSON ``value``, sorted by path; empty if it satisfies ``schema``."""
    if accepts(schema, value, schema):
        return []
    from .explain import explain

    return explain(value, schema)


def check_schema(schema: Any) -> list[str]:
    """Return why ``schema`` is not a valid JSON Schema 2020-12; empty if it is."""
    from jsonschema import Draft202012Validator

    checker = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    return sorted(f"{error.json_path}: {error.message}" for error in checker.iter_errors(schema))


def as_declared(value: Any, schema: dict[str, Any]) -> Any:
    """Return ``value`` as the schema writes it, where that is certain; the rest stays for the schema check to refuse.

    - Names: ``graph_id``, ``graph-id`` or ``GraphID`` for ``graphId``, in an object that allows no other names.
    - Numbers that texts such as ``"4u"`` or ``"100fF"`` state. ``x-si`` at the schema of a number allows it and states
      the number's unit; a text of another unit is no such number.

    The input is not changed.
    """
    return _as_declared(value, schema, schema)


def part_of(schema: dict[str, Any], step: str | int) -> Any:
    """Return the schema of what is one step inside the values of ``schema``: of a property, or of an item.

    None where the schema does not say. References are not followed.
    """
    if isinstance(step, int):
        leading = schema.get("prefixItems", ())
        return leading[step] if step < len(leading) else schema.get("items")
    if step in schema.get("properties", {}):
        return schema["properties"][step]
    patterns = schema.get("patternProperties", {})
    return next(
        (rule for pattern, rule in patterns.items() if matches(pattern, step)), schema.get("additionalProperties")
    )


def _as_declared(value: Any, schema: Any, root: dict[str, Any]) -> Any:
    if not isinstance(schema, dict):
        return value
    if isinstance(value, str):
        return _quantity(value, described(schema, root).get("x-si"))
    for part in (resolve(schema, root), *schema.get("allOf", ())):
        value = _as_declared(value, part, root)
    if isinstance(value, dict):
        named = _with_declared_names(value, schema)
        return {name: _as_declared(item, part_of(schema, name), root) for name, item in named.items()}
    if isinstance(value, list):
        return [_as_declared(item, part_of(schema, index), root) for index, item in enumerate(value)]
    return value


def _with_declared_names(value: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    known = schema.get("properties", {})
    if schema.get("additionalProperties") is not False or value.keys() <= known.keys():
        return value
    spelt: dict[str, list[str]] = {}
    for name in (*known, *(name for name in value if name not in known)):
        spelt.setdefault(re.sub("[-_]", "", name).lower(), []).append(name)
    pairs = [each for each in spelt.values() if len(each) == 2 and each[0] in known and each[1] not in known]
    declared = {given: name for name, given in pairs if name not in value}
    return {declared.get(name, name): item for name, item in value.items()}


def _quantity(text: str, unit: str | None) -> float | str:
    found = _SI.fullmatch(text.strip()) if unit else None
    if found is None or found[3] not in (None, "m" if unit == "um" else unit):
        return text
    power = _PREFIXES[found[2]] * (2 if found[3] == "m2" else 1)  # um2 is (um)2; a prefix alone is as in SPICE
    return float(f"{found[1]}e{power + (6 if unit == 'um' else 0)}")


def fill_defaults(value: Any, schema: dict[str, Any]) -> Any:
    """Return a valid ``value`` with missing properties set to their defaults, in nested objects and arrays too.

    Values of type integer written as ``1.0`` become ``int``. The input is not changed.
    """
    return _filled(value, schema, schema)


def _filled(value: Any, schema: Any, root: dict[str, Any]) -> Any:
    if not isinstance(schema, dict):
        return value
    target = resolve(schema, root)
    if target is not None:
        value = _filled(value, target, root)
    for sub in schema.get("allOf", ()):
        value = _filled(value, sub, root)
    for keyword in ("anyOf", "oneOf"):
        branch = next((sub for sub in schema.get(keyword, ()) if accepts(sub, value, root)), None)
        value = _filled(value, branch, root)
    if isinstance(value, dict):
        return _filled_object(value, schema, root)
    if isinstance(value, list):
        return [_filled(item, part_of(schema, index), root) for index, item in enumerate(value)]
    if isinstance(value, float) and _wants_integer(schema) and is_type(value, "integer"):
        return int(value)
    return value


def _filled_object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    result = {name: _filled(item, part_of(schema, name), root) for name, item in value.items()}
    for name, rule in schema.get("properties", {}).items():
        if name in result:
            continue
        sub = described(rule, root)
        if not isinstance(sub, dict):
            continue
        from_environment = os.environ.get(sub.get("x-env", ""))
        if from_environment:
            result[name] = from_environment
        elif "default" in sub:
            result[name] = _filled(deepcopy(sub["default"]), rule, root)
    return result


def _wants_integer(schema: dict[str, Any]) -> bool:
    return "type" in schema and "integer" in (names := types_of(schema)) and "number" not in names
