"""Short answers: what a reader with little room gets of an answer, and where the rest is.

An output schema marks with ``x-short`` what a short answer has of a field: ``false`` nothing, a number so many items
of a list or characters of a text, and nothing of what is empty or 0. A required field is kept. A list marked with two
numbers keeps as many items as fit into ``SHORT_BYTES``, at most the first number and at least the second. An answer
that fits ``SHORT_BYTES`` is whole, such as one that the call limited to one net. ``x-whole`` at the top of the schema
is the place in an answer (``files.summary``) of the path of a file with the whole answer. What is not marked is
whole.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from skillscript.envelope import ErrorCode, SkillError
from skillscript.schema import part_of
from skillscript.schema_references import described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillpack.execution.runner import Call
    from skillpack.registry.declaration import ToolDeclaration

Detail = Literal["short", "full"]
DETAILS: tuple[Detail, ...] = ("short", "full")
PARAMETER = "detail"
MARK = "x-short"
WHOLE = "x-whole"
SHORT_BYTES = 2048
"""Most bytes of an answer of which nothing is left out."""
_ENVELOPE_BYTES = 80  # that the rest of the envelope adds
_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.0)  # of the first number of a mark, tried in this order


def can_be_short(tool: ToolDeclaration) -> bool:
    """Return whether the tool's short answers may differ from its full ones."""
    return f'"{MARK}"' in json.dumps(tool.output_schema)


def take_detail(tool: ToolDeclaration | None, params: Any, default: Detail) -> tuple[Any, Detail]:
    """Return the parameters of a call without ``detail``, and how much of the answer is wanted.

    A tool's own parameter of that name stays.

    Raises:
        SkillError: INVALID_PARAM if ``detail`` is neither short nor full.
    """
    own = {} if tool is None else tool.input_schema.get("properties", {})
    if not isinstance(params, dict) or PARAMETER not in params or PARAMETER in own:
        return params, default
    given = params[PARAMETER]
    if given not in DETAILS:
        text = f"{PARAMETER} must be one of {', '.join(DETAILS)}, got {given!r}"
        raise SkillError(ErrorCode.INVALID_PARAM, text, {"param_name": PARAMETER, "provided_value": given})
    return {name: value for name, value in params.items() if name != PARAMETER}, given


def in_detail(call: Call, detail: Detail) -> Call:
    """Return a finished call with its whole answer, or the short one and what that leaves out."""
    if detail == "full" or call.tool is None or call.result.data is None:
        return call
    if _fits(call.result.data):
        return call
    schema = call.tool.output_schema
    whole: Any = call.result.data
    for name in str(schema.get(WHOLE, "")).split("."):
        whole = whole.get(name) if isinstance(whole, dict) else None
    where = f"detail: full, or {whole}" if isinstance(whole, str) else "detail: full"
    for share in _SHARES:
        left_out = _LeftOut(share)
        data = _short(call.result.data, schema, schema, (), left_out)
        told = left_out.to_json() | {"whole_answer": where}
        if _fits(data, told):
            break
    return replace(call, result=replace(call.result, data=data), left_out=told if left_out else None)


def _fits(*parts: Any) -> bool:
    return sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in parts) + _ENVELOPE_BYTES <= SHORT_BYTES


class _LeftOut:
    """What a short answer lacks: fields at the top of the answer, and those of which it has a part.

    Attributes:
        share: Fraction of the first number of a mark that a list keeps, from 0 to 1.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._fields: dict[str, None] = {}
        self._in_part: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._fields or self._in_part)

    def add(self, place: tuple[str, ...], *, whole: bool) -> None:
        """Add the place of a field that is missing, or of which the answer has a part."""
        (self._fields if whole and len(place) == 1 else self._in_part)[place[0]] = None

    def to_json(self) -> dict[str, Any]:
        found = {"fields": list(self._fields), "in_part": list(self._in_part)}
        return {name: names for name, names in found.items() if names}


def _short(value: Any, schema: Any, root: Mapping[str, Any], place: tuple[str, ...], left_out: _LeftOut) -> Any:
    """Return the part of ``value`` that a short answer has; add what it lacks to ``left_out``."""
    rule = described(schema, root)
    if not isinstance(rule, dict):
        return value
    if isinstance(value, (list, str)):
        most = rule.get(MARK)
        if isinstance(most, list):
            most = max(most[1], int(most[0] * left_out.share))
        if isinstance(most, int) and not isinstance(most, bool) and len(value) > most:
            left_out.add(place, whole=False)
            value = f"{value[:most]}..." if isinstance(value, str) else value[:most]
        return (
            value
            if isinstance(value, str)
            else [_short(item, part_of(rule, index), root, place, left_out) for index, item in enumerate(value)]
        )
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, part in value.items():
        inner = described(part_of(rule, name), root)
        mark = inner.get(MARK) if isinstance(inner, dict) and name not in rule.get("required", ()) else None
        if mark is False and part:
            left_out.add((*place, name), whole=True)
        elif mark is None or part:
            kept[name] = _short(part, inner, root, (*place, name), left_out)
    return kept
