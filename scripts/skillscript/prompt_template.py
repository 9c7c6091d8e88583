"""Render prompt templates: Jinja in a sandbox, where an undefined variable is an error (S1.5).

A template sees the parameters by their names and as ``params``, and of the context ``user_profile``,
``session_context``, ``memory_summary`` and ``content_context``. It cannot include other files, call unsafe functions or
change its variables. ``{{ value | tojson }}`` writes a value as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path

from .envelope import ErrorCode, SkillError
from .tool import skill_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_TEMPLATE_BYTES = 1 << 18
MAX_PROMPT_CHARACTERS = 1 << 20
_TOO_MUCH = (MemoryError, RecursionError)


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
