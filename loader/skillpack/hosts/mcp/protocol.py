"""Constants of the Model Context Protocol: error codes, revisions, keys; and the exception for an error answer."""

from __future__ import annotations

from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000
UNSUPPORTED_PROTOCOL_VERSION = -32022

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # negotiated by initialize, oldest first
MODERN_VERSIONS = ("2026-07-28",)  # named in each request

PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{PREFIX}protocolVersion"  # in _meta of a request
CAPABILITIES_KEY = f"{PREFIX}clientCapabilities"
CLIENT_KEY = f"{PREFIX}clientInfo"
SERVER_KEY = f"{PREFIX}serverInfo"  # in _meta of an answer


class RequestError(Exception):
    """A request that is answered with an error.

    Attributes:
        code: One of the codes above.
        message: What is wrong.
        data: More about it, plain JSON, or None.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
