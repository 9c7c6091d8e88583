"""Call a skill that is a function of this process; the envelope is that of a program."""

from __future__ import annotations

import inspect
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from skillscript.envelope import ErrorCode, SkillError, SkillResult
from skillscript.runtime import call as call_tool
from skillscript.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from skillpack.registry.definitions import SkillDefinition


def call(skill: SkillDefinition, params: Any, context: Mapping[str, Any] | None = None) -> SkillResult:
    """Return the result of calling a registered function; nothing it does escapes as an exception.

    Params are checked against the input schema and defaults filled in; the function gets them as keyword arguments of
    the types it names, and a parameter called ``context`` gets the call's context. It may answer an object, a
    dataclass, or a ``SkillResult``, and it may be an ``async`` function, which this call waits for.

    Args:
        skill: A definition with a handler.
        params: The parameters.
        context: user_profile, session_context, memory_summary, content_context.
    """
    handler = skill.handler
    if handler is None:
        text = f"skill {skill.name} is a program, not a function; call it through a Runner"
        return SkillResult.failure(SkillError(ErrorCode.UNSUPPORTED_OPERATION, text))

    def execute(values: dict[str, Any], surroundings: dict[str, Any]) -> dict[str, Any]:
        from skillpack.registry.signature_schema import CONTEXT, build_arguments

        try:
            arguments = build_arguments(handler, values)
        except TypeError as error:  # a record that checks its own fields
            raise SkillError(ErrorCode.INVALID_PARAM, str(error)) from error
        if CONTEXT in inspect.signature(handler).parameters:
            arguments[CONTEXT] = surroundings
        answer = handler(**arguments)
        return _data(_awaited(answer) if inspect.iscoroutine(answer) else answer)

    tool = Tool(skill.name, execute, dict(skill.input_schema), dict(skill.output_schema))
    return call_tool(tool, params, context)


def _awaited(answer: Coroutine[Any, Any, Any]) -> Any:
    """Return what an async function answers; in a thread of its own, since this one may have a running event loop."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, answer).result()


def _data(answer: Any) -> dict[str, Any]:
    """Return the data of a function's answer.

    Raises:
        SkillError: The answer's own error.
    """
    if isinstance(answer, SkillResult):
        if answer.error is not None:
            raise answer.error
        return answer.data or {}
    if is_dataclass(answer) and not isinstance(answer, type):
        return asdict(answer)
    if hasattr(answer, "model_dump"):  # a pydantic model
        answer = answer.model_dump(mode="json")
    data: dict[str, Any] = answer  # the caller's check reports anything else
    return data
