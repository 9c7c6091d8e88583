"""Render a prompt and get a structured answer from a model.

Templates are Jinja in a sandbox, where an undefined variable is an error (S1.5). A template sees the parameters by
their names and as ``params``, and of the context ``user_profile``, ``session_context``, ``memory_summary`` and
``content_context``. It cannot include other files, call unsafe functions or change its variables.
``{{ value | tojson }}`` writes a value as JSON.

A call is: primary model, one correction request, fallback, typed error (S1.3, S1.4). Every attempt is recorded:
``{"model", "outcome", "reason"?, "errors"?}`` with the outcome ``accepted``, ``invalid_output`` or the kind of a
``ModelFaultError``.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from sturdy.strict_json import NotJsonError, parse_json

from .envelope import ErrorCode, Fault, SkillError, joined
from .model_client import ModelFaultError, complete
from .schema import fill_defaults, find_faults
from .standard_streams import print_error
from .tool import skill_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .model_client import ModelEndpoint, ModelSettings

MAX_TEMPLATE_BYTES = 1 << 18
MAX_PROMPT_CHARACTERS = 1 << 20
_TOO_MUCH = (MemoryError, RecursionError)
MAX_REPORTED = 20  # faults reported to a model; more are usually the same mistake
MAX_ECHOED = 20_000  # characters of its own answer that are sent back to a model
PAUSE_SECONDS = 0.5
_OPENING = re.compile(r"```[\w-]*[ \t]*")


def prompt_variables(params: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a template: parameters by name and as ``params``, and the parts of the context."""
    return {**params, **context, "params": dict(params)}


def render_file(script_file: str, name: str, variables: Mapping[str, Any]) -> str:
    """Return the prompt that the template ``name`` of a script's skill renders.

    Args:
        script_file: The script's ``__file__``.
        name: The template's path inside the skill, such as ``assets/suggest.jinja``.
        variables: Its variables.

    Raises:
        SkillError: INVALID_PARAM if the prompt would be longer than
            ``MAX_PROMPT_CHARACTERS``; INTERNAL_ERROR if the template is missing, larger than
            ``MAX_TEMPLATE_BYTES``, wrong or uses an undefined variable.
    """
    path = skill_dir_of(Path(script_file).resolve()) / name
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TEMPLATE_BYTES + 1)
        if len(content) > MAX_TEMPLATE_BYTES:
            raise SkillError(ErrorCode.INTERNAL_ERROR, f"the prompt template {name} is larger than allowed")
        return render(content.decode("utf-8"), variables, name)
    except OSError as error:
        text = f"the prompt template {name} cannot be read: {error.strerror}; reinstall the skill"
        raise SkillError(ErrorCode.INTERNAL_ERROR, text) from error
    except UnicodeDecodeError as error:
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"the prompt template {name} is not UTF-8 text") from error


def render(template: str, variables: Mapping[str, Any], name: str = "template") -> str:
    """Return the text that ``template`` renders; errors call it ``name``.

    Raises:
        SkillError: As ``render_file``.
    """
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    environment.filters["tojson"] = _to_json
    text = ""
    try:
        for piece in environment.from_string(template).generate(**variables):
            text += piece
            if len(text) > MAX_PROMPT_CHARACTERS:
                reason = f"the prompt of {name} would be longer than the {MAX_PROMPT_CHARACTERS} characters allowed"
                raise SkillError(ErrorCode.INVALID_PARAM, f"{reason}; give the model less to read")
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, *_TOO_MUCH) as error:
        line = getattr(error, "lineno", None)
        place = f"{name}, line {line}" if line else name
        reason = str(error) or type(error).__name__
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"the prompt template {place}: {reason}") from error
    return text


def _to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON text; Jinja's own filter writes it for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


@dataclass(frozen=True)
class Task:
    """A request to a model.

    Attributes:
        prompt: The prompt.
        schema: JSON Schema of its answer.
        check: Returns what else is wrong with an answer that satisfies the schema.
        system: Instructions that come before the prompt, or "".
    """

    prompt: str
    schema: dict[str, Any]
    check: Callable[[Any], Sequence[Fault]] | None = None
    system: str = ""


@dataclass(frozen=True)
class ModelAnswer:
    """A structured answer.

    Attributes:
        value: The answer, defaults of the schema filled in.
        model: Name of the model that gave it.
        attempts: Every attempt, the last one accepted.
    """

    value: Any
    model: str
    attempts: list[dict[str, Any]] = field(default_factory=list)


def ask_model(task: Task, settings: ModelSettings) -> ModelAnswer:
    """Return a model's answer that satisfies the task's schema and check.

    The models are tried in turn. A model with an unusable answer is sent its faults once; a request that failed for a
    temporary reason is repeated once. While another model is left, an attempt takes at most half of the remaining time.

    Raises:
        SkillError: SERVICE_UNAVAILABLE if no model gave a usable answer, TIMEOUT if the time was over before one did;
            ``details.attempts`` lists every attempt.
    """
    deadline = time.monotonic() + settings.deadline_s
    attempts: list[dict[str, Any]] = []
    for index, endpoint in enumerate(settings.endpoints):
        share = 1.0 if index + 1 == len(settings.endpoints) else 0.5
        conversation = _Conversation(task, endpoint, attempts)
        value = conversation.answer(deadline, share)
        if value is not None:
            return ModelAnswer(fill_defaults(value.content, task.schema), endpoint.model, attempts)
    reasons = "; ".join(f"{entry['model']}: {entry['reason']}" for entry in attempts)
    late = time.monotonic() >= deadline - 0.05 or not attempts
    code = ErrorCode.TIMEOUT if late else ErrorCode.SERVICE_UNAVAILABLE
    text = f"no model gave a usable answer within {settings.deadline_s:g} s: {reasons}"
    raise SkillError(code, text, {"attempts": attempts, "deadline_s": settings.deadline_s})


@dataclass(frozen=True)
class _Usable:
    content: Any


class _Conversation:
    """The requests to one model."""

    def __init__(self, task: Task, endpoint: ModelEndpoint, attempts: list[dict[str, Any]]) -> None:
        self._task = task
        self._endpoint = endpoint
        self._attempts = attempts
        self._messages = [{"role": "system", "content": task.system}] if task.system else []
        self._messages.append({"role": "user", "content": task.prompt})

    def answer(self, deadline: float, share: float) -> _Usable | None:
        """Return a usable answer, or None; an attempt takes at most ``share`` of the time left."""
        may_reask = may_retry = True
        while (left := deadline - time.monotonic()) > 0.05:
            try:
                text = complete(self._endpoint, self._messages, left * share)
            except ModelFaultError as fault:
                self._record(fault.kind, str(fault))
                wait = fault.wait_s or PAUSE_SECONDS
                if not (may_retry and fault.retry and wait < left * share / 2):
                    return None
                may_retry = False
                time.sleep(wait)
                continue
            value, faults = _read(text, self._task)
            if not faults:
                self._attempts.append({"model": self._endpoint.model, "outcome": "accepted"})
                return _Usable(value)
            self._record("invalid_output", joined(faults), [fault.message for fault in faults[:MAX_REPORTED]])
            if not may_reask:
                return None
            may_reask = False
            self._messages += [
                {"role": "assistant", "content": text[:MAX_ECHOED]},
                {"role": "user", "content": _reask(faults)},
            ]
        return None

    def _record(self, outcome: str, reason: str, errors: list[str] | None = None) -> None:
        """Record a failed attempt, also on standard error."""
        blotted = self._endpoint.without_key
        reason = blotted(reason)
        entry: dict[str, Any] = {"model": self._endpoint.model, "outcome": outcome, "reason": reason}
        if errors is not None:
            entry["errors"] = [blotted(error) for error in errors]
        self._attempts.append(entry)
        print_error(f"model {self._endpoint.model}: {outcome}: {reason}")


def _read(text: str, task: Task) -> tuple[Any, Sequence[Fault]]:
    """Return the value of an answer and what is wrong with it; a value inside a ``` fence is taken from it."""
    try:
        value = parse_json(_unfenced(text))
    except NotJsonError as error:
        return None, [Fault("", f"the answer is not a JSON value: {error}")]
    faults: Sequence[Fault] = find_faults(value, task.schema)
    if not faults and task.check is not None:
        faults = task.check(value)
    return value, faults


def _unfenced(text: str) -> str:
    """Return the content of a text that is one fenced block, else the text."""
    opening, _, rest = text.strip().partition("\n")
    content, _, closing = rest.rpartition("\n")
    return content if _OPENING.fullmatch(opening) and closing.strip() == "```" else text


def _reask(faults: Sequence[Fault]) -> str:
    """Return the request to correct an unusable answer."""
    lines = [f"- {fault.path + ': ' if fault.path else ''}{fault.message}" for fault in faults[:MAX_REPORTED]]
    more = len(faults) - MAX_REPORTED
    lines += [f"- and {more} more"] if more > 0 else []
    return (
        "That answer cannot be used:\n"
        + "\n".join(lines)
        + "\nAnswer again with the whole corrected JSON value and nothing else."
    )
