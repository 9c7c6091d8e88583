"""What an operation on the design graph can answer instead of doing its work.

``code`` is the seed's error code (S2.5) where the seed has one, else one of the envelope's codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class GraphError(Exception):
    """Base of all errors of this package: a request that cannot be carried out; nothing was changed.

    Attributes:
        code: Error code of the answer.
        details: Facts behind the message, or ``None``.
    """

    code = "INVALID_PARAM"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = None if details is None else dict(details)


class InvalidIdError(GraphError):
    """A text is no legal id."""

    code = "INVALID_ID"


class InvalidTypeError(GraphError):
    """The graph's type rule does not allow a node's or relation's type."""

    code = "INVALID_TYPE"


class NodeExistsError(GraphError):
    """The graph has a node of that id already."""

    code = "NODE_EXISTS"


class NodeNotFoundError(GraphError):
    """The graph has no node of that id."""

    code = "NODE_NOT_FOUND"


class RelationExistsError(GraphError):
    """The graph has that relation already."""

    code = "RELATION_EXISTS"


class RelationNotFoundError(GraphError):
    """The graph has no such relation."""

    code = "RELATION_NOT_FOUND"


class HasRelationsError(GraphError):
    """A node cannot be deleted while relations lead to or from it."""

    code = "HAS_RELATIONS"


class GraphFileError(GraphError):
    """The graph's file, or one beside it, cannot be used as it is; ``details["faults"]`` may list why."""


class NotStoredError(GraphError):
    """A change could not be put on disk (full, failing, no locks), so it was not made."""

    code = "SERVICE_UNAVAILABLE"


class ManyFaultsError(GraphError):
    """Several things are wrong with one request; the first one gives the code, ``details["errors"]`` lists all."""

    def __init__(self, faults: list[tuple[str, GraphError]]) -> None:
        first = faults[0][1]
        self.code = first.code
        shown = "; ".join(f"{path}: {error}" for path, error in faults[:10])
        more = f"; and {len(faults) - 10} more" if len(faults) > 10 else ""
        listed = [{"path": path, "code": error.code, "message": str(error)} for path, error in faults[:1000]]
        super().__init__(str(first) if len(faults) == 1 else shown + more, {**(first.details or {}), "errors": listed})
