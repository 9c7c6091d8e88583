"""JSON Schemas taken from a function's signature and docstring (S0.13).

==============================  ==========================================================
annotation                      schema
==============================  ==========================================================
``str int float bool None``     string, integer, number, boolean, null
``Any``, none                   anything
``X | None``, ``Optional[X]``   X or null
``Literal["a", "b"]``, Enum     enum of the values
``list[X]``, ``tuple[X, ...]``  array of X; ``tuple[X, Y]`` exactly these; ``set[X]`` without repetition
``dict[str, X]``                object of X
TypedDict, dataclass            object with these fields, no others
``Annotated[X, "text"]``        X with a description; a dict instead of a text adds keywords, such as {"minimum": 0}
==============================  ==========================================================

Parameters without default are required; one called ``context`` is no parameter, it gets the call's context.
``**kwargs`` lets further fields in. Where ``Annotated`` gives no description, it comes from the docstring: Google's
``Args:`` (or ``参数:``), NumPy's underlined ``Parameters``, Sphinx's ``:param name:``; ``Attributes:`` of a record.
"""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections import abc
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.registry.docstrings import read_docstring
from skillscript.envelope import SkillResult
from skillscript.strict_json import NotJsonError, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONTEXT = "context"  # a parameter of this name gets the call's context (S1.2) and is no part of the schema
_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Path: {"type": "string"},
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
}
_ARRAYS = (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_SETS = (set, frozenset, abc.Set)
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)


class Described(NamedTuple):
    """What a function says of itself."""

    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    summary: str


def describe(function: Callable[..., Any]) -> Described:
    """Return the input schema, output schema ({} if the return type does not tell) and summary of a function.

    Raises:
        TypeError: If a parameter has a type that JSON cannot hold, has no name, or an annotation cannot be resolved.
    """
    parameters = inspect.signature(function).parameters
    if inspect.isfunction(function) and _is_method(function, parameters):
        raise TypeError(f"{function.__qualname__} is a method without its object; register the method of an object")
    hints = _hints(function)
    summary, told = read_docstring(inspect.getdoc(function) or "")
    schemas = _Schemas()
    result: dict[str, Any] = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
    for name, parameter in parameters.items():
        if name == CONTEXT:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            result["additionalProperties"] = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"parameter {name!r} of {function.__qualname__} cannot be given by name")
        schema = schemas.of(hints.get(name, parameter.annotation), name)
        if name in told and "description" not in schema:
            schema = {**schema, "description": told[name]}
        if parameter.default is parameter.empty:
            result["required"].append(name)
        else:
            schema = _with_default(schema, parameter.default)
        result["properties"][name] = schema
    output = _output_schema(hints.get("return"))
    return Described({**result, **schemas.definitions()}, output, summary)


def _is_method(function: Callable[..., Any], parameters: Mapping[str, Any]) -> bool:
    """Return whether a function stands in a class and begins with the object it belongs to."""
    in_class = function.__qualname__.rpartition(".")[0]
    return next(iter(parameters), "") in ("self", "cls") and in_class != "" and not in_class.endswith("<locals>")


def build_arguments(function: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``params``, valid against the function's schema, as the types its annotations name."""
    hints = _hints(function)
    return {name: _built(value, hints.get(name, Any)) for name, value in params.items()}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the function's annotations with their texts resolved."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"an annotation of {function.__qualname__} cannot be resolved: {error}; define the type in its module"
        ) from error


def _output_schema(annotation: Any) -> dict[str, Any]:
    """Return the schema of an answer whose type tells its fields, else {}."""
    if not _is_record(annotation) or annotation is SkillResult:
        return {}
    schemas = _Schemas()
    return {**schemas.of(annotation, "return"), **schemas.definitions()}


class _Schemas:
    """Turns annotations into schemas; each record type becomes one definition, so that it may contain itself."""

    def __init__(self) -> None:
        self._records: dict[Any, str] = {}
        self._definitions: dict[str, Any] = {}

    def definitions(self) -> dict[str, Any]:
        """Return ``{"$defs": ...}``, or nothing when no record type was met."""
        return {"$defs": self._definitions} if self._definitions else {}

    def of(self, annotation: Any, where: str) -> dict[str, Any]:
        """Return the schema of one annotation; ``where`` names the parameter in an error."""
        if typing.get_origin(annotation) is typing.Annotated:
            return self._annotated(annotation, where)
        if _hashable(annotation) and annotation in _SCALARS:
            return dict(_SCALARS[annotation])
        if isinstance(annotation, typing.NewType):
            return self.of(annotation.__supertype__, where)
        if _is_record(annotation):
            return self._record(annotation, where)
        if _is_class(annotation) and issubclass(annotation, enum.Enum):
            return self._enum([member.value for member in annotation], where)
        return self._generic(annotation, where)

    def _annotated(self, annotation: Any, where: str) -> dict[str, Any]:
        schema = self.of(annotation.__origin__, where)
        for extra in annotation.__metadata__:
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(extra, dict):
                schema.update(extra)
        return schema

    def _generic(self, annotation: Any, where: str) -> dict[str, Any]:
        origin = typing.get_origin(annotation) or annotation
        arguments = typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments, where)
        if origin is typing.Literal:
            return self._enum(list(arguments), where)
        if _special_form(annotation) in ("Required", "NotRequired"):
            return self.of(arguments[0], where)
        if origin is tuple:
            return self._tuple(arguments, where)
        if origin in _ARRAYS or origin in _SETS:
            items = {"items": self.of(arguments[0], where)} if arguments else {}
            return {"type": "array", **items, **({"uniqueItems": True} if origin in _SETS else {})}
        if origin in _OBJECTS:
            if arguments and arguments[0] is not str:
                raise TypeError(f"{where!r}: the keys of a JSON object are str, not {arguments[0]!r}")
            return {"type": "object", **({"additionalProperties": self.of(arguments[1], where)} if arguments else {})}
        raise TypeError(f"{where!r} has the type {annotation!r}, which JSON cannot hold")

    def _union(self, arguments: tuple[Any, ...], where: str) -> dict[str, Any]:
        branches = [self.of(argument, where) for argument in arguments]
        if all(set(branch) == {"type"} and isinstance(branch["type"], str) for branch in branches):
            names = [branch["type"] for branch in branches]
            return {"type": names if len(names) > 1 else names[0]}
        return {"anyOf": branches}

    @staticmethod
    def _enum(values: list[Any], where: str) -> dict[str, Any]:
        try:
            return {"enum": plain(values)}
        except NotJsonError as error:
            raise TypeError(f"{where!r}: a value it may have {error}") from error

    def _tuple(self, arguments: tuple[Any, ...], where: str) -> dict[str, Any]:
        if not arguments:
            return {"type": "array"}
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": self.of(arguments[0], where)}
        prefix = [self.of(argument, where) for argument in arguments]
        return {"type": "array", "prefixItems": prefix, "minItems": len(prefix), "maxItems": len(prefix)}

    def _record(self, record: Any, where: str) -> dict[str, Any]:
        """Return a reference to the definition of a TypedDict or dataclass."""
        if record not in self._records:
            name = record.__name__
            while name in self._definitions:
                name += "_"
            self._records[record] = name
            self._definitions[name] = {}
            self._definitions[name].update(self._fields(record, where))
        return {"$ref": f"#/$defs/{self._records[record]}"}

    def _fields(self, record: Any, where: str) -> dict[str, Any]:
        hints = _hints(record)
        told = read_docstring(record.__doc__ or "")[1]
        result: dict[str, Any] = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
        defaults = _defaults(record)
        for name in _field_names(record, hints):
            schema = self.of(hints[name], f"{where}.{name}")
            if name in told and "description" not in schema:
                schema = {**schema, "description": told[name]}
            if name in defaults:
                schema = _with_default(schema, defaults[name])
            elif _is_required(record, name, hints[name]):
                result["required"].append(name)
            result["properties"][name] = schema
        return result


def _hashable(annotation: Any) -> bool:
    return getattr(annotation, "__hash__", None) is not None and not isinstance(annotation, list)


def _is_class(annotation: Any) -> bool:
    """Return whether it is a class; ``list[int]`` says so of itself in Python 3.10, and is none."""
    return isinstance(annotation, type) and typing.get_origin(annotation) is None


def _is_typed_dict(annotation: Any) -> bool:
    return _is_class(annotation) and issubclass(annotation, dict) and hasattr(annotation, "__total__")


def _is_record(annotation: Any) -> bool:
    return _is_typed_dict(annotation) or (_is_class(annotation) and is_dataclass(annotation))


def _field_names(record: Any, hints: Mapping[str, Any]) -> list[str]:
    return list(hints) if _is_typed_dict(record) else [entry.name for entry in fields(record) if entry.init]


def _is_required(record: Any, name: str, hint: Any) -> bool:
    """Return whether a field must be given; ``__required_keys__`` misses what is told in annotations kept as text."""
    told = {"Required": True, "NotRequired": False}.get(_special_form(hint))
    if told is not None:
        return told
    return name in record.__required_keys__ if _is_typed_dict(record) else True


def _special_form(annotation: Any) -> str:
    """Return ``Required`` or the like for ``Required[X]``, of typing or typing_extensions; "" for a class."""
    return str(typing.get_origin(annotation) or "").rpartition(".")[2]


def _defaults(record: Any) -> dict[str, Any]:
    """Return the defaults of a dataclass's fields; those made by a factory are made once."""
    if _is_typed_dict(record):
        return {}
    found = {entry.name: entry.default for entry in fields(record) if entry.default is not MISSING}
    made = {entry.name: entry.default_factory() for entry in fields(record) if entry.default_factory is not MISSING}
    return {**found, **made}


def _with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    """Return a schema with its default, as far as JSON can hold it; a default of None makes null allowed."""
    value = default.value if isinstance(default, enum.Enum) else default
    value = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    if value is None and schema and not _allows_null(schema):
        text = {"description": schema["description"]} if "description" in schema else {}
        schema = {**text, "anyOf": [schema, {"type": "null"}]}
    try:
        return {**schema, "default": plain(value)}
    except NotJsonError:
        return schema


def _allows_null(schema: Mapping[str, Any]) -> bool:
    rule = schema.get("type", ())
    return (
        "null" in ([rule] if isinstance(rule, str) else rule)
        or None in schema.get("enum", ())
        or any(_allows_null(branch) for branch in schema.get("anyOf", ()))
        or not set(schema) & {"type", "enum", "anyOf", "$ref"}
    )


def _built(value: Any, annotation: Any) -> Any:
    """Return a JSON value as the type an annotation names: records, enums, paths, tuples, sets; else as it is."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _built(value, arguments[0])
    if origin in (typing.Union, types.UnionType):
        return _built(value, _branch(value, arguments))
    if _is_record(annotation) and isinstance(value, dict):
        hints = _hints(annotation)
        record: Any = annotation
        return record(**{name: _built(item, hints[name]) for name, item in value.items()})
    if _is_class(annotation) and issubclass(annotation, (enum.Enum, Path)):
        return annotation(value)
    if isinstance(value, list) and arguments:
        kinds = [arguments[0]] * len(value) if origin is not tuple or Ellipsis in arguments else list(arguments)
        items = [_built(item, kind) for item, kind in zip(value, kinds, strict=True)]
        return (origin if origin in (tuple, set, frozenset) else list)(items)
    if isinstance(value, dict) and origin in _OBJECTS and len(arguments) == 2:
        return {name: _built(item, arguments[1]) for name, item in value.items()}
    return value


def _branch(value: Any, branches: tuple[Any, ...]) -> Any:
    """Return the first branch of a union whose schema the value satisfies."""
    from skillscript.accept import accepts

    for branch in branches:
        schemas = _Schemas()
        schema = schemas.of(branch, "value")
        if accepts(schema, value, {**schema, **schemas.definitions()}):
            return branch
    return Any
