"""Read which models to use, where and for how long, from the tool's declaration and the environment.

=============================  ===========================================================================
``SKILL_MODEL_URL``            base of an OpenAI-compatible service, such as ``http://localhost:11434/v1``
``SKILL_MODEL_KEY``            its key, if it requires one
``SKILL_MODEL_PRIMARY``        name of the first model; default: ``models.primary`` in skill.yaml
``SKILL_MODEL_FALLBACK``       name of the model if the first fails; default: ``models.fallback``
``SKILL_MODEL_FALLBACK_URL``   another service for the fallback, with ``SKILL_MODEL_FALLBACK_KEY``
``SKILL_MODEL_DEADLINE_S``     maximum time for all attempts together, default 60 [s]
=============================  ===========================================================================

Without ``SKILL_MODEL_URL`` no model is configured. Keys never appear in messages, logs or envelopes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .envelope import ErrorCode, SkillError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_DEADLINE_S = 60.0
MIN_SECRET = 8  # characters


@dataclass(frozen=True)
class Endpoint:
    """One model at one service.

    Attributes:
        model: Its name.
        url: Base URL of the service.
        key: Key for the service, or "".
    """

    model: str
    url: str
    key: str = field(default="", repr=False)

    def without_key(self, text: str) -> str:
        """Return ``text`` with the key replaced; a key as short as ``none`` is a placeholder, not a secret."""
        return text.replace(self.key, "***") if len(self.key) >= MIN_SECRET else text


@dataclass(frozen=True)
class ModelSettings:
    """The models in order, and the time for all attempts.

    Attributes:
        endpoints: Primary, then fallback if there is one.
        deadline_s: Maximum time for all attempts together. [s]
    """

    endpoints: tuple[Endpoint, ...]
    deadline_s: float = DEFAULT_DEADLINE_S


def model_settings(declared: Mapping[str, str], environment: Mapping[str, str] | None = None) -> ModelSettings | None:
    """Return the settings of a tool, or None when no model is configured.

    Args:
        declared: ``models`` of the tool's entry in skill.yaml: primary, fallback.
        environment: The environment variables; default: those of this process.

    Raises:
        SkillError: SERVICE_UNAVAILABLE if the configuration cannot work.
    """
    values = os.environ if environment is None else environment
    url = values.get("SKILL_MODEL_URL", "").strip()
    if not url:
        return None
    primary = values.get("SKILL_MODEL_PRIMARY") or declared.get("primary", "")
    fallback = values.get("SKILL_MODEL_FALLBACK") or declared.get("fallback", "")
    if not primary:
        raise _unusable("SKILL_MODEL_URL is set, but no model is named; set SKILL_MODEL_PRIMARY")
    endpoints = [
        Endpoint(_checked_name(primary), _checked_url("SKILL_MODEL_URL", url), _key("SKILL_MODEL_KEY", values))
    ]
    if fallback:
        other = values.get("SKILL_MODEL_FALLBACK_URL", "").strip()
        key = _key("SKILL_MODEL_FALLBACK_KEY", values)
        same = not other
        endpoints.append(
            Endpoint(
                _checked_name(fallback),
                _checked_url("SKILL_MODEL_FALLBACK_URL", other or url),
                key or (endpoints[0].key if same else ""),
            )
        )
    return ModelSettings(tuple(endpoints), _deadline(values.get("SKILL_MODEL_DEADLINE_S", "")))


def _checked_url(variable: str, url: str) -> str:
    """Return a base URL without its last slash."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise _unusable(f"{variable} is not a URL such as https://host/v1") from None
    if not usable:
        raise _unusable(f"{variable} is not a URL such as https://host/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _unusable(f"{variable} must be a plain base URL; a key belongs in SKILL_MODEL_KEY")
    return url.rstrip("/")


def _checked_name(model: str) -> str:
    """Return the name of a model, which must be text that can be sent."""
    if not model.isprintable():
        raise _unusable(f"the model's name {model!r} holds a character that cannot be sent")
    return model


def _key(variable: str, values: Mapping[str, str]) -> str:
    """Return a key without blanks around it."""
    key = values.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise _unusable(f"{variable} holds a character that no key has, such as a line break")
    return key


def _deadline(text: str) -> float:
    """Return the deadline in seconds."""
    try:
        seconds = float(text) if text.strip() else DEFAULT_DEADLINE_S
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise _unusable(f"SKILL_MODEL_DEADLINE_S must be a number of seconds up to 3600, got {text!r}")
    return seconds


def _unusable(message: str) -> SkillError:
    return SkillError(ErrorCode.SERVICE_UNAVAILABLE, message)
