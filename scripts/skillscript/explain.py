"""Explain in plain words why a value does not satisfy its JSON Schema."""

from __future__ import annotations

import json
import pathlib
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, exceptions, validators
from referencing import Registry

from sturdy.near_names import did_you_mean
from sturdy.schema_acceptance import TYPE_WORDS, matches
from sturdy.strict_json import path_text

from .envelope import CHOICES, MAX_ECHOED, Fault, choice, echo, show
from .schema_references import described

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_FOUND = 1000  # faults collected per value

Path = tuple[str | int, ...]
ValidationError = Any  # jsonschema types its fields as possibly unset; those that iter_errors yields have them all

_LIMIT_WORDS: dict[str, str] = json.loads(pathlib.Path(__file__).with_name("limit_words.json").read_bytes())


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """Return the fault of a text that does not match, ``$`` being its very end."""
    if isinstance(value, str) and not matches(pattern, value):
        yield exceptions.ValidationError(f"{value!r} does not match {pattern!r}")


_extend: Any = validators.extend
_Validator: Any = _extend(Draft202012Validator, {"pattern": _pattern})


def explain(value: Any, schema: dict[str, Any]) -> list[Fault]:
    """Return every fault of plain JSON ``value`` against ``schema``, sorted by path.

    A value of the wrong type is reported once, whatever else is wrong with it. References out of the schema are not
    followed.
    """
    validator = _Validator(schema, registry=Registry())
    found: list[tuple[Path, str, Fault]] = []
    for error in islice(validator.iter_errors(value), MAX_FOUND):
        found.extend(_faults_of(error, schema))
    mistyped = {path for path, keyword, _ in found if keyword == "type"}
    kept: dict[tuple[str, str], Fault] = {}
    for path, keyword, fault in sorted(found, key=lambda item: _order(item[0])):
        if keyword == "type" or path not in mistyped:
            kept.setdefault((fault.path, fault.message), fault)
    return list(kept.values())


def _order(path: Path) -> list[tuple[bool, int, str]]:
    return [(isinstance(step, str), 0, step) if isinstance(step, str) else (False, step, "") for step in path]


def _faults_of(error: ValidationError, root: dict[str, Any]) -> list[tuple[Path, str, Fault]]:
    """Return the faults of one validation error as (path, keyword, fault)."""
    keyword, path = str(error.validator), tuple(error.absolute_path)
    if keyword == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [((*path, name), keyword, _missing(error, path, name, root)) for name in missing]
    if keyword in ("additionalProperties", "unevaluatedProperties") and error.validator_value is False:
        known = list(error.schema.get("properties", {}))
        unknown = sorted(islice((name for name in error.instance if name not in known), MAX_FOUND))
        first = next((name for name in unknown if not did_you_mean(name, known)), None)  # says what is allowed, for all
        faults = [_unknown(error, (*path, name), error.instance[name], known, lists=name == first) for name in unknown]
        return [((*path, name), keyword, fault) for name, fault in zip(unknown, faults, strict=True)]
    if keyword == "enum" and list(error.schema_path)[-2:-1] == ["propertyNames"]:
        name = error.instance  # the name of the property; jsonschema does not pass its value
        return [((*path, name), keyword, _unknown(error, (*path, name), name, list(error.validator_value)))]
    own = _own_message(error.schema, keyword)
    if keyword in CHOICES and own is None and isinstance(error.instance, dict):
        own = _choice(keyword, error.validator_value, error.instance)
    if keyword in ("anyOf", "oneOf") and own is None:
        nearest = _nearest_branch(error)
        if nearest:
            return [fault for inner in nearest for fault in _faults_of(inner, root)]
    name = path_text(path)
    if own is not None:
        message = _rendered(own, path, error.instance, error.validator_value)
    else:
        message = _described(error, keyword, f"'{name}'" if name else "the input")
    return [(path, keyword, Fault(name, message, error.instance, _allowed(error, keyword)))]


def _missing(error: ValidationError, path: Path, name: str, root: dict[str, Any]) -> Fault:
    full = (*path, name)
    prop = described(error.schema.get("properties", {}).get(name, {}), root)
    own = _own_message(prop, "required") or _own_message(error.schema, "required") or "Missing required param: {param}"
    return Fault(path_text(full), _rendered(own, full, None, name), None)


def _unknown(error: ValidationError, full: Path, value: Any, known: list[str], *, lists: bool = True) -> Fault:
    name = str(full[-1])
    shown = (*full[:-1], name if len(name) <= MAX_ECHOED else name[:MAX_ECHOED] + "...")
    own = _own_message(error.schema, "additionalProperties")
    allowed = f"; allowed: {', '.join(known)}" if known else "; none is allowed here"
    hint = did_you_mean(name, known) or allowed * lists
    message = _rendered(own or "Unknown param: {param}{hint}", shown, value, known, hint)
    return Fault(path_text(shown), message, value, known if hint else None)


def _choice(keyword: str, rule: Any, received: Mapping[str, Any]) -> str | None:
    """Return the message of a rule that only says which properties to give; None for any other rule."""
    wanted = choice(keyword, rule)
    if wanted is None:
        return None
    branches = rule if isinstance(rule, list) else [rule]
    names = dict.fromkeys(name for branch in branches for name in branch["required"])
    given = [name for name in names if name in received]
    return f"{wanted}; received {', '.join(given) or 'none of them'}"


def _nearest_branch(error: ValidationError) -> list[ValidationError]:
    """Return the errors of the branch of an anyOf that the value was probably meant for; none if that is not clear.

    This is the branch whose type the value has or, of several, whose constant (``{"type": {"const": "mos"}}``).
    """
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        if inner.relative_schema_path:  # a branch that is the schema false has none
            branches.setdefault(int(inner.relative_schema_path[0]), []).append(inner)
    fitting = [errors for errors in branches.values() if not _refused_at(errors, 0, ("type", "const", "enum"))]
    if len(fitting) > 1:
        fitting = [errors for errors in fitting if not _refused_at(errors, 1, ("const",))]
    return fitting[0] if len(fitting) == 1 else []


def _refused_at(errors: list[ValidationError], depth: int, keywords: tuple[str, ...]) -> bool:
    return any(inner.validator in keywords and len(inner.relative_path) == depth for inner in errors)


def _own_message(schema: Any, keyword: str) -> str | None:
    own = schema.get("x-error") if isinstance(schema, dict) else None
    if isinstance(own, dict):
        own = own.get(keyword)
    elif keyword in ("required", "additionalProperties"):  # a text for all keywords describes the value, not its fields
        own = None
    return own if isinstance(own, str) else None


def _rendered(template: str, path: Path, value: Any, limit: Any, hint: str = "") -> str:
    words = {
        "hint": hint,
        "value": _text(echo(value)),
        "limit": _text(limit),
        "param": path_text(path),
        "name": str(path[-1]) if path else "",
    }
    return re.sub(r"\{(value|limit|param|name|hint)\}", lambda match: words[match[1]], template)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _described(error: ValidationError, keyword: str, who: str) -> str:
    rule, value = error.validator_value, error.instance
    received = f", got {show(value)}"
    if keyword == "type":
        names = [rule] if isinstance(rule, str) else list(rule)
        opening = str(error.schema.get("description", "")).partition("\n")[0]
        example = f", such as {opening}" if opening.startswith("{") else ""  # many begin with one
        return f"{who} must be {' or '.join(TYPE_WORDS.get(name, name) for name in names)}{example}{received}"
    if keyword == "enum":
        allowed = ", ".join(_text(item) for item in rule)
        return f"{who} must be one of {allowed}{received}{did_you_mean(value, rule)}"
    if keyword == "minLength" and rule == 1:
        return f"{who} must not be empty"
    if keyword in _LIMIT_WORDS:
        return f"{who} {_LIMIT_WORDS[keyword].replace('{limit}', _text(rule))}{received}"
    if error.schema is False:
        return f"{who} is not allowed"
    if keyword in ("anyOf", "oneOf") and error.context:
        forms = " or ".join(dict.fromkeys(_form(branch) for branch in rule))
        return f"{who} must be {forms}{received}"
    return f"{who}: {error.message}"


def _form(branch: Any) -> str:
    """Return in words what one branch of an anyOf requires."""
    if not isinstance(branch, dict):
        return "another form"
    if "title" in branch:
        return str(branch["title"])
    if "enum" in branch:
        return "one of " + ", ".join(_text(item) for item in branch["enum"])
    if "const" in branch:
        return _text(branch["const"])
    rule = branch.get("type", ())
    names = [rule] if isinstance(rule, str) else list(rule)
    return " or ".join(TYPE_WORDS.get(name, name) for name in names) or str(branch.get("$ref", "another form"))


def _allowed(error: ValidationError, keyword: str) -> Any:
    return error.validator_value if keyword in ("type", "enum", *_LIMIT_WORDS) else None
