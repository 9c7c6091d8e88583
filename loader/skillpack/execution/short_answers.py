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
from dataclasses import dataclass, replace
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
        fields, in_part = dict[str, None](), dict[str, None]()  # left out at the top, left out in part
        data = _Shortening(schema, share, fields, in_part).of(call.result.data, schema, ())
        left_out = {"fields": list(fields), "in_part": list(in_part)}
        told = {name: names for name, names in left_out.items() if names} | {"whole_answer": where}
        if _fits(data, told):
            break
    return replace(call, result=replace(call.result, data=data), left_out=told if fields or in_part else None)


def _fits(*parts: Any) -> bool:
    return sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in parts) + _ENVELOPE_BYTES <= SHORT_BYTES


@dataclass(frozen=True)
class _Shortening:
    """Shortens one answer.

    Attributes:
        root: The whole output schema.
        share: Fraction of the first number of a mark that a list keeps, from 0 to 1.
        fields: Gets the fields at the top of the answer that are left out.
        in_part: Gets those of which a part is left out.
    """

    root: Mapping[str, Any]
    share: float
    fields: dict[str, None]
    in_part: dict[str, None]

    def of(self, value: Any, schema: Any, place: tuple[str, ...]) -> Any:
        """Return the part of ``value`` that a short answer has."""
        rule = described(schema, self.root)
        if not isinstance(rule, dict) or not isinstance(value, (list, str, dict)):
            return value
        if not isinstance(value, dict):
            most = rule.get(MARK)
            if isinstance(most, list):
                most = max(most[1], int(most[0] * self.share))
            if isinstance(most, int) and not isinstance(most, bool) and len(value) > most:
                self.in_part[place[0]] = None
                value = f"{value[:most]}..." if isinstance(value, str) else value[:most]
            if isinstance(value, str):
                return value
            return [self.of(item, part_of(rule, index), place) for index, item in enumerate(value)]
        kept = {}
        for name, part in value.items():
            inner = described(part_of(rule, name), self.root)
            mark = inner.get(MARK) if isinstance(inner, dict) and name not in rule.get("required", ()) else None
            if mark is False and part:
                if place:
                    self.in_part[place[0]] = None
                else:
                    self.fields[name] = None
            elif mark is None or part:
                kept[name] = self.of(part, inner, (*place, name))
        return kept
