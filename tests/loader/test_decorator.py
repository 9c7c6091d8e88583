"""``@skill``: a function becomes a skill, its schema taken from annotations and docstring (S0.13)."""

# ruff: noqa: ARG001, ARG005 - the signatures matter here, not what the functions do
from __future__ import annotations

import asyncio
import datetime as dt  # noqa: TC003 - pydantic reads the annotations
import enum
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field
from typing_extensions import NotRequired, Required

from skillpack import SkillRegistry, skill
from skillpack.exceptions import RegistryError
from skillpack.execution.in_process import call
from skillpack.registry.schema_check import schema_problems
from skillpack.registry.signature_schema import describe
from skillscript import SkillError, SkillResult, find_faults
from skillscript.envelope import to_json


class Orientation(enum.Enum):
    R0 = "R0"
    MX = "MX"


@dataclass
class DeviceParams:
    """One transistor.

    Attributes:
        w: Unused, attributes are not arguments.

    Args:
        w: Width. [m]
    """

    w: float
    l: Annotated[float, "Length. [m]", {"exclusiveMinimum": 0}]  # noqa: E741
    nf: int = 1
    tags: list[str] = field(default_factory=list)


class Point(TypedDict, total=False):
    x: float
    y: float


class Node(TypedDict):
    name: str
    children: list[Node]


class Answer(TypedDict):
    total: float


Net = NewType("Net", str)


def input_schema(function):
    schema = describe(function).input_schema
    assert schema_problems(schema) == []
    return schema


def draw(
    device_a: DeviceParams,
    pattern: Literal["ABBA", "ABAB"] = "ABBA",
    orientation: Orientation = Orientation.R0,
    spacing: float | None = None,
    layers: Optional[list[str]] = None,  # noqa: UP045 - the older spelling must work too
    **options: Any,
) -> Answer:
    """Draw a pair of devices
    in one row.

    More text.

    Args:
        device_a: The first device.
        pattern (str): Order of the fingers,
            from the left.
        spacing: Gap. [um]

    Returns:
        orientation: not an argument.
    """
    return {"total": device_a.w * device_a.nf, **options}


def test_the_schema_says_what_the_signature_says():
    schema = input_schema(draw)
    assert schema["required"] == ["device_a"]
    assert schema["additionalProperties"] is True
    assert schema["properties"] == {
        "device_a": {"$ref": "#/$defs/DeviceParams", "description": "The first device."},
        "pattern": {
            "type": "string",
            "enum": ["ABBA", "ABAB"],
            "description": "Order of the fingers, from the left.",
            "default": "ABBA",
        },
        "orientation": {"$ref": "#/$defs/Orientation", "default": "R0"},
        "spacing": {"anyOf": [{"type": "number"}, {"type": "null"}], "description": "Gap. [um]", "default": None},
        "layers": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
    }
    assert schema["$defs"]["Orientation"] == {"enum": ["R0", "MX"], "title": "Orientation", "type": "string"}
    assert schema["$defs"]["DeviceParams"] == {
        "type": "object",
        "title": "DeviceParams",
        "additionalProperties": False,
        "required": ["w", "l"],
        "properties": {
            "w": {"type": "number", "description": "Width. [m]"},
            "l": {"type": "number", "description": "Length. [m]", "exclusiveMinimum": 0},
            "nf": {"type": "integer", "default": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
    }


def test_summary_and_output_schema_come_from_docstring_and_return_type():
    described = describe(draw)
    assert described.summary == "Draw a pair of devices in one row."
    assert described.output_schema["$defs"]["Answer"]["required"] == ["total"]


def _one(x):
    """Return the schema of one annotation."""

    def function(value): ...

    function.__annotations__ = {"value": x}
    return describe(function).input_schema["properties"]["value"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Any, {}),
        (Net, {"type": "string"}),
        (Path, {"type": "string", "format": "path"}),
        (list, {"type": "array", "items": {}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (tuple[float, ...], {"type": "array", "items": {"type": "number"}}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal[1, "a"], {"enum": [1, "a"]}),
        (Point, {"$ref": "#/$defs/Point"}),
    ],
)
def test_each_kind_of_annotation(annotation, schema):
    assert _one(annotation) == schema


def test_a_type_that_contains_itself_is_a_definition():
    def function(tree: Node): ...

    schema = input_schema(function)
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_a_default_of_none_lets_null_in():
    def function(value: int = None): ...  # noqa: RUF013 - a common slip

    schema = input_schema(function)
    assert [bool(find_faults({"value": value}, schema)) for value in (None, 1, "x")] == [False, False, True]


@dataclass
class Bounds:
    limits: list[float] = field(default_factory=lambda: [float("-inf"), 0.5])
    mark: Any = field(default_factory=object)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("inf")], {"a": float("nan")}, 1 << 70])
def test_a_default_that_json_cannot_hold_reaches_the_function_but_not_the_schema(register, value):
    received = []

    def function(limit: Any = value, bounds: Bounds = Bounds()):  # noqa: B008
        received.extend([limit, bounds.limits[0]])
        return {}

    definition = register(function)
    to_json(definition.input_schema)  # raises for what is not JSON
    assert "default" not in definition.input_schema["properties"]["limit"]
    assert call(definition, {"bounds": {}}).ok
    assert received == [value, float("-inf")]


@pytest.mark.parametrize("annotation", [complex, dict[int, str], object(), type[int]])
def test_a_type_that_json_cannot_hold_is_refused_when_decorating(annotation):
    with pytest.raises(TypeError, match="'value'"):
        _one(annotation)


def test_parameters_without_names_are_refused():
    with pytest.raises(TypeError, match="cannot be given by name"):
        describe(lambda *values: None)
    with pytest.raises(TypeError, match="cannot be given by name"):
        describe(len)


def test_a_method_is_registered_with_its_object_only():
    class Drawer:
        def draw(self, width: float): ...

    with pytest.raises(TypeError, match=r"Drawer.draw is a method without its object"):
        describe(Drawer.draw)
    assert list(describe(Drawer().draw).input_schema["properties"]) == ["width"]


def test_a_decorator_without_a_name_is_reported():
    with pytest.raises(TypeError, match="a skill needs a name"):

        @skill
        def function(): ...


class Partly(TypedDict, total=False):
    given: Required[int]
    perhaps: str


class Mostly(TypedDict):
    given: int
    perhaps: NotRequired[str]


@pytest.mark.parametrize("record", [Partly, Mostly])
def test_required_fields_are_known_although_annotations_are_text(record):
    def function(value): ...

    function.__annotations__["value"] = record
    assert describe(function).input_schema["$defs"][record.__name__]["required"] == ["given"]


GOOGLE = """Draw.

    Args:
        width (float): Gate width.
            In all. [m]
        nf: Fingers.

    Returns:
        nothing: At all.
    """
NUMPY = """Draw.

    Parameters
    ----------
    width : float
        Gate width.
        In all. [m]
    nf
        Fingers.

    Returns
    -------
    nothing
        At all.
    """
SPHINX = """Draw.

    :param float width: Gate width.
        In all. [m]
    :param nf: Fingers.
    :returns: Nothing at all.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["Google", "NumPy", "Sphinx"])
def test_descriptions_come_from_docstrings_of_every_style(text):
    def function(width: float, nf: int = 1): ...

    function.__doc__ = text
    described = describe(function)
    told = {name: schema.get("description") for name, schema in described.input_schema["properties"].items()}
    assert (described.summary, told) == ("Draw.", {"width": "Gate width. In all. [m]", "nf": "Fingers."})


def test_an_annotation_that_cannot_be_resolved_is_reported():
    def function(value: Unknown): ...  # noqa: F821

    with pytest.raises(TypeError, match="'Unknown' is not defined"):
        describe(function)


@pytest.fixture
def register(monkeypatch):
    """Decorate a function in a registry that no other test has."""
    registry = SkillRegistry()
    monkeypatch.setattr("skillpack.registry.skill_registry.global_registry", registry)

    def decorate(function, **options):
        assert skill(name="test.f", **options)(function) is function
        return registry.get_skill("test.f")

    return decorate


def test_a_decorated_function_is_registered_as_it_says(register):
    definition = register(draw, version="1.2.0", tags=["layout"])
    assert (definition.version, definition.tags, definition.handler) == ("1.2.0", ["layout"], draw)
    assert definition.description == "Draw a pair of devices in one row."
    assert register(draw, version="1.3.0", description="Other.").description == "Other."


def test_a_call_gets_the_types_it_asks_for_and_answers_an_envelope(register):
    definition = register(draw)
    result = call(definition, {"device_a": {"w": 2, "l": 1e-6, "nf": 3}, "spacing": 1})
    assert result.to_dict() == {"ok": True, "error": None, "data": {"total": 6}, "duration_ms": result.duration_ms}


def test_what_the_schema_refuses_never_reaches_the_function(register):
    result = call(register(draw), {"device_a": {"w": True, "l": 0}, "pattern": "BAAB"})
    assert result.error.code == "INVALID_PARAM"
    assert [entry["path"] for entry in result.error.details["errors"]] == ["device_a.l", "device_a.w", "pattern"]


def test_records_enums_paths_and_tuples_are_built(register):
    seen = []

    def function(
        device: DeviceParams,
        orientation: Orientation,
        file: Path,
        size: tuple[int, int],
        either: DeviceParams | int,
        by_name: dict[str, list[DeviceParams]],
    ):
        seen.extend([device, orientation, file, size, either, by_name])
        return {}

    device = {"w": 1.0, "l": 2.0}
    params = {
        "device": device,
        "orientation": "MX",
        "file": "a/b",
        "size": [1, 2],
        "either": device,
        "by_name": {"x": [device]},
    }
    assert call(register(function), params).ok
    built = DeviceParams(1.0, 2.0)
    assert seen == [built, Orientation.MX, Path("a/b"), (1, 2), built, {"x": [built]}]


def test_a_parameter_called_context_gets_the_calls_context(register):
    def function(context: dict, times: int = 2):
        return {"text": context["memory_summary"] * times}

    definition = register(function)
    assert list(definition.input_schema["properties"]) == ["times"]
    assert call(definition, {}, {"memory_summary": "ab"}).data == {"text": "abab"}


@dataclass
class Report:
    area: float


@pytest.mark.parametrize(
    ("answer", "data", "code"),
    [
        (Report(2.0), {"area": 2.0}, None),
        (SkillResult.success({"a": 1}), {"a": 1}, None),
        (SkillResult.failure(SkillError("RULE_NOT_FOUND", "no")), None, "RULE_NOT_FOUND"),
        (None, None, "INTERNAL_ERROR"),
        ("text", None, "INTERNAL_ERROR"),
        (SkillError("TIMEOUT", "late"), None, "TIMEOUT"),
        (ZeroDivisionError("x"), None, "INTERNAL_ERROR"),
    ],
)
def test_whatever_a_function_does_is_one_envelope(register, answer, data, code):
    """S0.15: every exception becomes a SkillResult."""

    def function():
        if isinstance(answer, Exception):
            raise answer
        return answer

    result = call(register(function), {})
    assert (result.data, result.error and result.error.code) == (data, code)


def test_an_async_function_is_waited_for_also_below_a_running_loop(register):
    async def function(value: int) -> dict:
        await asyncio.sleep(0)
        return {"value": value}

    definition = register(function)

    async def caller():
        return call(definition, {"value": 2})

    assert call(definition, {"value": 1}).data == {"value": 1}
    assert asyncio.run(caller()).data == {"value": 2}


@dataclass
class Positive:
    value: float

    def __post_init__(self):
        if self.value <= 0:
            raise ValueError("value must be positive")


def test_a_record_that_refuses_its_fields_is_bad_input(register):
    def function(number: Positive) -> dict:
        return {"value": number.value}

    error = call(register(function), {"number": {"value": -1}}).error
    assert (error.code, error.message) == ("INVALID_PARAM", "value must be positive")


def test_an_answer_against_the_return_type_is_an_internal_error(register):
    def function() -> Answer:
        return {"sum": 1}

    assert call(register(function), {}).error.code == "INTERNAL_ERROR"


class Cell(BaseModel):
    """A cell.

    Attributes:
        name: Its name.
    """

    name: str
    origin: dict[str, float] = {}


def test_a_pydantic_model_is_a_record_too(register):
    def function(cell: Cell) -> Cell:
        return cell.model_copy(update={"name": cell.name.upper()})

    definition = register(function)
    described = definition.input_schema["$defs"]["Cell"]
    assert (described["additionalProperties"], described["required"]) == (False, ["name"])
    assert described["properties"]["name"]["description"] == "Its name."
    assert call(definition, {"cell": {"name": "a", "origin": {"x": 1}}}).data == {"name": "A", "origin": {"x": 1.0}}
    paths = [fault["path"] for fault in call(definition, {"cell": {"nmae": 1}}).error.details["errors"]]
    assert paths == ["cell.name", "cell.nmae"]


@pytest.mark.parametrize(
    "annotation",
    [
        list[Partly],
        dict[str, Partly],
        Optional[Partly],  # noqa: UP045 - the older spelling
        tuple[Partly, int],
        Annotated[Partly, "A text."],
        Mostly | None,
    ],
)
def test_a_typed_dict_is_described_wherever_it_stands(annotation):
    """Before Python 3.12 pydantic does not take one of the module ``typing``."""

    def function(value): ...

    function.__annotations__["value"] = annotation
    definitions = input_schema(function)["$defs"]
    assert [record["required"] for record in definitions.values()] == [["given"]]
    assert [record["additionalProperties"] for record in definitions.values()] == [False]


@dataclass
class Holder:
    inner: list[Mostly]
    holder: Optional[Holder] = None  # noqa: UP045 - the older spelling


def test_a_typed_dict_in_a_dataclass_is_described_too(register):
    def function(value: Holder) -> dict:
        return {"given": value.holder.inner[0]["given"]}

    definition = register(function)
    assert set(definition.input_schema["$defs"]) == {"Holder", "Mostly"}
    assert call(definition, {"value": {"inner": [], "holder": {"inner": [{"given": 1}]}}}).data == {"given": 1}
    assert call(definition, {"value": {"inner": [{}]}}).error.details["errors"][0]["path"] == "value.inner[0].given"


@pytest.mark.parametrize(
    ("params", "paths"),
    [
        ({"width": True, "count": 1.5, "flag": 1, "net": 5}, ["count", "flag", "net", "width"]),
        ({"width": "1", "count": "1", "flag": "true", "net": None}, ["count", "flag", "net", "width"]),
        ({"width": 1, "count": 1.0, "flag": False, "net": "a"}, []),
        ({"width": 1, "count": 1, "flag": False, "net": "a", "points": [{"x": 1, "z": 2}]}, ["points[0].z"]),
        ({"width": 1, "count": 1, "flag": False, "net": "a", "whatever": 1}, []),
    ],
)
def test_nothing_is_coerced_and_records_take_no_unknown_fields(register, params, paths):
    """Although ``**options`` lets the function itself take any."""
    seen = []

    def function(width: float, count: int, flag: bool, net: str, points: list[Point] = (), **options: Any) -> dict:
        seen.append((width, count, flag, net))
        return {}

    error = call(register(function), params).error
    assert ([] if error is None else [fault["path"] for fault in error.details["errors"]]) == paths
    assert [type(value) for value in (seen[0] if seen else (1.0, 1, True, "a"))] == [float, int, bool, str]


def test_what_only_the_types_know_is_reported_at_once(register):
    def function(day: dt.date, either: list[dt.date]): ...

    result = call(register(function), {"day": "today", "either": ["2026-11-22", "x"]})
    assert (result.error.code, [fault["path"] for fault in result.error.details["errors"]]) == (
        "INVALID_PARAM",
        ["day", "either[1]"],
    )


def test_constraints_may_be_fields_of_pydantic():
    def function(width: Annotated[float, Field(gt=0, description="Gate width. [m]")]): ...

    assert input_schema(function)["properties"]["width"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Gate width. [m]",
    }


def test_keywords_that_would_be_lost_are_refused():
    with pytest.raises(TypeError, match=r"pydantic\.Field"):
        _one(list[Annotated[int, {"minimum": 0}]])


@dataclass
class Counted:
    name: str
    count: int = field(default=3, init=False)


def test_a_field_that_the_constructor_does_not_take_is_no_parameter(register):
    def function(value: Counted) -> dict:
        return {"count": value.count}

    definition = register(function)
    assert list(definition.input_schema["$defs"]["Counted"]["properties"]) == ["name"]
    assert call(definition, {"value": {"name": "a"}}).data == {"count": 3}
    assert call(definition, {"value": {"name": "a", "count": 4}}).error.code == "INVALID_PARAM"


def test_a_docstring_may_be_in_chinese():
    def function(width: float, nf: int): ...

    function.__doc__ = "画.\n\n参数\uff1a\n    width\uff1a宽度\n    nf (int)\uff1a指数\n"
    properties = input_schema(function)["properties"]
    assert [properties[name]["description"] for name in ("width", "nf")] == ["宽度", "指数"]


@pytest.mark.parametrize("library", ["pydantic", "docstring_parser"])
def test_a_decorator_without_its_libraries_says_what_to_install(monkeypatch, library):
    monkeypatch.delitem(sys.modules, "skillpack.registry.signature_schema")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(RegistryError, match=rf"@skill needs the Python library {library}.*\[functions\]"):
        skill(name="test.f")(dict)


def test_a_program_is_not_called_as_a_function(register):
    definition = register(draw)
    program = type(definition)(**{**definition.__dict__, "handler": None})
    assert call(program, {}).error.code == "UNSUPPORTED_OPERATION"
