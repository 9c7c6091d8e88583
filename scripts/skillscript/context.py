"""The context a handler gets beside its parameters (S1.2), with its types and defaults."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTEXT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "user_profile": {"type": "object", "default": {}, "description": "What is known of the user."},
        "session_context": {"type": "object", "default": {}, "description": "What this session is about."},
        "memory_summary": {"type": "string", "default": "", "description": "Summary of earlier sessions."},
        "content_context": {"type": "array", "default": [], "description": "Contents retrieved for this call."},
    },
}
