"""JSON Schemas from a function's annotations and docstring (S0.13), by pydantic and docstring_parser.

Every annotation that pydantic can describe is allowed: scalars, ``Literal``, ``Enum``, ``Path``, ``X | None``, lists,
tuples, sets, dicts, TypedDict, dataclasses and pydantic models. A record takes no unknown fields.

Parameters without a default are required, and a default of None allows null. A parameter called ``context`` gets the
call's context and is not part of the schema; ``**kwargs`` allows further fields. ``Annotated[X, Field(gt=0)]`` adds
constraints and a description; so does a text (description) or a dict (keywords such as {"minimum": 0}) in place of
``Field``. Other descriptions come from the docstring (Google, NumPy or Sphinx style) of the function or record.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import docstring_parser
import typing_extensions
from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json

from skillscript.envelope import Fault, SkillResult, invalid_params
from sturdy.strict_json import NotJsonError, parse_json, path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONTEXT = "context"  # a parameter of this name gets the call's context (S1.2) and is no part of the schema
_CHINESE_SECTIONS = [Section(title, "param", SectionType.MULTIPLE) for title in ("参数", "属性")]
_FULL_WIDTH_COLON = re.compile(r"(?m)^([ \t]*\*{0,2}\w+[ \t]*(?:\([^)]*\))?)[ \t]*\uff1a[ \t]*")
_TYPED_DICT: Any = typing_extensions.TypedDict
_PARSERS = (docstring_parser.parse, GoogleParser([*DEFAULT_SECTIONS, *_CHINESE_SECTIONS]).parse)


class Described(NamedTuple):
    """The description of a function by its signature and docstring."""

    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    summary: str


def describe(function: Callable[..., Any]) -> Described:
    """Return the input schema, the output schema ({} unless a record is returned) and the summary of a function.

    Raises:
        TypeError: If a parameter has a type that JSON cannot hold or has no name, or an annotation cannot be resolved.
    """
    parameters = inspect.signature(function).parameters
    if inspect.isfunction(function) and _is_method(function, parameters):
        raise TypeError(f"{function.__qualname__} is a method without its object; register the method of an object")
    schema = _schema(_arguments(function), inspect.getdoc(function) or "")
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        schema["additionalProperties"] = True
    returned = _hints(function).get("return")
    output: dict[str, Any] = {}
    if _is_record(returned):
        _prepare(returned, set())
        whole = _schema({"answer": returned}, "")
        output = {**whole["properties"]["answer"], "$defs": whole["$defs"]}
    return Described(schema, output, _summary(inspect.getdoc(function) or ""))


def build_arguments(function: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``params``, valid against the function's schema, as the types its annotations name.

    Raises:
        SkillError: INVALID_PARAM with all faults that the JSON Schema cannot express, such as a record's own checks.
    """
    annotations = _arguments(function)
    known = {name: value for name, value in params.items() if name in annotations}
    try:
        built = _adapter(function).validate_json(to_json(known), strict=True)
    except ValidationError as error:
        raise invalid_params([_fault(problem) for problem in error.errors()]) from error
    return {**params, **{name: value for name, value in built.items() if name in params}}


def _fault(problem: Any) -> Fault:
    """Return one of pydantic's errors as a fault; the message of a record's own check is kept."""
    path = path_text(problem["loc"])
    own = problem.get("ctx", {}).get("error")
    text = str(own) if isinstance(own, Exception) else f"{path}: {problem['msg']}"
    return Fault(path, text, problem["input"])


@lru_cache(maxsize=1024)
def _adapter(function: Callable[..., Any]) -> TypeAdapter[dict[str, Any]]:
    return _record_of(_arguments(function))


def _record_of(annotations: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    """Return the adapter of an object with these fields; records within it take no unknown fields either."""
    try:
        record = _TYPED_DICT("Arguments", annotations)
    except TypeError as error:  # before Python 3.11, for what is no type at all
        raise PydanticUserError(str(error), code=None) from error
    record.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(record)


def _schema(annotations: dict[str, Any], docstring: str) -> dict[str, Any]:
    """Return the schema of an object with these fields, those of its ``docstring`` described."""
    try:
        schema = _record_of(annotations).json_schema(schema_generator=_Schemas)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        for name, annotation in annotations.items() if len(annotations) > 1 else ():
            _schema({name: annotation}, "")  # raises for the one at fault
        raise TypeError(f"{', '.join(map(repr, annotations))}: JSON cannot hold this type: {error.message}") from error
    schema.pop("title")
    _describe(schema, annotations, docstring)
    return {"required": [], **schema}


def _arguments(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of the parameters that a call names, with their defaults, as a TypedDict takes them."""
    hints, seen = _hints(function), set[Any]()
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == CONTEXT or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"parameter {name!r} of {function.__qualname__} cannot be given by name")
        annotation = hints.get(name, Any)
        _prepare(annotation, seen)
        if parameter.default is None:
            annotation = typing.Optional[annotation]  # noqa: UP045 - ``X | None`` refuses some annotations
        if parameter.default is not parameter.empty:
            annotation = typing_extensions.NotRequired[Annotated[annotation, Field(default=parameter.default)]]
        found[name] = annotation
    return found


def _is_method(function: Callable[..., Any], parameters: Mapping[str, Any]) -> bool:
    """Return whether a function is defined in a class and takes the object as its first parameter."""
    in_class = function.__qualname__.rpartition(".")[0]
    return next(iter(parameters), "") in ("self", "cls") and in_class != "" and not in_class.endswith("<locals>")


def _hints(function: Any) -> dict[str, Any]:
    """Return the annotations of a function or record with their texts resolved."""
    try:
        return typing_extensions.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"an annotation of {function.__qualname__} cannot be resolved: {error}; define the type in its module"
        ) from error


def _is_record(annotation: Any) -> bool:
    if not inspect.isclass(annotation) or annotation is SkillResult:
        return False
    return typing_extensions.is_typeddict(annotation) or is_dataclass(annotation) or issubclass(annotation, BaseModel)


def _prepare(annotation: Any, seen: set[Any]) -> None:
    """Let pydantic read each ``typing.TypedDict`` in an annotation, which it refuses before Python 3.12.

    Such a class gets an equivalent of typing_extensions to be read as. ``seen`` holds the records visited so far.
    """
    if sys.version_info >= (3, 12) or typing.get_origin(annotation) is typing.Literal:
        return
    if _is_record(annotation) and annotation not in seen:
        seen.add(annotation)
        hints = _hints(annotation)
        if type(annotation).__module__ == "typing":
            equal = _TYPED_DICT(annotation.__name__, {})
            equal.__doc__ = annotation.__doc__
            equal.__annotations__ = {
                name: hint if _is_qualified(hint) else _qualifier(annotation, name)[hint]
                for name, hint in hints.items()
            }
            annotation.__get_pydantic_core_schema__ = lambda _, handler: handler.generate_schema(equal)
        for hint in hints.values():
            _prepare(hint, seen)
    for argument in typing.get_args(annotation):
        _prepare(argument, seen)


def _is_qualified(hint: Any) -> bool:
    return str(typing.get_origin(hint)).rpartition(".")[2] in ("Required", "NotRequired")


def _qualifier(record: Any, name: str) -> Any:
    return typing_extensions.Required if name in record.__required_keys__ else typing_extensions.NotRequired


class _Schemas(GenerateJsonSchema):
    """Pydantic's generator, with the descriptions of records and without titles of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: the title would repeat the name."""
        del schema
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Ignore a default that JSON cannot hold; the function still has it."""

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON value; one that JSON cannot hold, such as a list with NaN, stays out of the schema.

        Raises:
            PydanticSerializationError: If JSON cannot hold it.
        """
        try:
            return parse_json(to_json(dft, inf_nan_mode="constants"))
        except NotJsonError as error:
            raise PydanticSerializationError(str(error)) from error

    def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse ``type[X]``."""
        return self.handle_invalid_for_json_schema(schema, "a class")

    def complex_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse a complex number."""
        return self.handle_invalid_for_json_schema(schema, "a complex number")

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a dict, whose keys JSON has as texts; pydantic would turn the texts into numbers."""
        if schema.get("keys_schema", {}).get("type") in ("int", "float", "bool"):
            return self.handle_invalid_for_json_schema(schema, "a dict whose keys are not str")
        return super().dict_schema(schema)

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a TypedDict with its descriptions."""
        return _described(super().typed_dict_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a dataclass with its descriptions, without the fields its constructor does not take."""
        found = _described(super().dataclass_schema(schema), schema["cls"])
        for field in fields(schema["cls"]):
            if not field.init:
                found["properties"].pop(field.name, None)
            elif field.default_factory is not MISSING:
                with suppress(PydanticSerializationError):  # the constructor still has it
                    found["properties"][field.name]["default"] = self.encode_default(field.default_factory())
        return found

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a pydantic model with its descriptions."""
        return _described(super().model_schema(schema), schema["cls"])


def _described(schema: dict[str, Any], record: Any) -> dict[str, Any]:
    """Return the schema of a record with its descriptions; unknown fields are refused unless it allows them."""
    _describe(schema, _hints(record), record.__doc__ or "")
    return {"additionalProperties": False, **schema, "required": schema.get("required", [])}


def _describe(schema: dict[str, Any], hints: Mapping[str, Any], docstring: str) -> None:
    """Add to the properties of a schema the descriptions and keywords of their annotations and the docstring."""
    schema.pop("description", None)
    descriptions = _parameters(docstring)
    for name, rules in schema.get("properties", {}).items():
        for extra in _metadata(hints.get(name)):
            rules.update({"description": extra} if isinstance(extra, str) else extra)
        if name in descriptions:
            rules.setdefault("description", descriptions[name])


def _metadata(annotation: Any) -> list[Any]:
    """Return the texts and dicts in ``Annotated``, also inside of ``Required``, ``Optional`` and the default.

    Raises:
        TypeError: If a dict is nested deeper, where it would be lost.
    """
    found = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, (str, dict))]
    origin = typing.get_origin(annotation)
    arguments = [] if origin is typing.Literal else typing.get_args(annotation)
    if origin is Annotated or _is_qualified(annotation):
        return found + _metadata(arguments[0])
    inner = [extra for argument in arguments for extra in _metadata(argument)]
    if len(arguments) == 2 and type(None) in arguments:
        return inner
    if any(isinstance(extra, dict) for extra in inner):
        raise TypeError(f"the keywords in {annotation!r} must be a pydantic.Field there")
    return []


def _summary(docstring: str) -> str:
    """Return the first paragraph of a docstring."""
    first = inspect.cleandoc(docstring).partition("\n\n")[0]
    return "" if first.startswith(":") else " ".join(first.split())


def _parameters(docstring: str) -> dict[str, str]:
    """Return a docstring's description of each parameter or attribute."""
    text = _FULL_WIDTH_COLON.sub(r"\1: ", inspect.cleandoc(docstring))
    found: dict[str, str] = {}
    for parse in _PARSERS:
        try:
            meta = parse(text).meta
        except docstring_parser.ParseError:
            continue
        for entry in meta:
            if len(entry.args) > 1 and entry.args[0] not in ("raises", "returns", "yields") and entry.description:
                name = getattr(entry, "arg_name", entry.args[-1]).lstrip("*")
                found[name] = " ".join(entry.description.split())
    return found
