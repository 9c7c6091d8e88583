"""The errors that an operation on the design graph can raise.

``code`` is one of the graph's own error codes (S2.5), or one of the envelope's codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sturdy.near_names import sentences

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class GraphError(Exception):
    """Base of all errors of this package: a request that cannot be carried out. Nothing was changed.

    Attributes:
        code: Error code of the answer.
        details: Facts behind the message, or ``None``.
    """

    code = "INVALID_PARAM"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = None if details is None else dict(details)


class InvalidIdError(GraphError):
    """A string is not a valid id."""

    code = "INVALID_ID"


class InvalidTypeError(GraphError):
    """The graph's type rule does not allow a node's or relation's type."""

    code = "INVALID_TYPE"


class NodeExistsError(GraphError):
    """The graph already has a node with this id."""

    code = "NODE_EXISTS"


class NodeNotFoundError(GraphError):
    """The graph has no node with this id."""

    code = "NODE_NOT_FOUND"


class RelationExistsError(GraphError):
    """The graph already has this relation."""

    code = "RELATION_EXISTS"


class RelationNotFoundError(GraphError):
    """The graph has no such relation."""

    code = "RELATION_NOT_FOUND"


class HasRelationsError(GraphError):
    """A node cannot be deleted while it has relations."""

    code = "HAS_RELATIONS"


class GraphFileError(GraphError):
    """The graph file, or a file beside it, cannot be used; ``details["faults"]`` may list the reasons."""


class NotStoredError(GraphError):
    """A change was not made because it could not be written to disk (disk full or failing, no file locks)."""

    code = "SERVICE_UNAVAILABLE"


class ManyFaultsError(GraphError):
    """A request has several faults; the first one gives the code, and ``details["errors"]`` lists all of them."""

    def __init__(self, faults: list[tuple[str, GraphError]]) -> None:
        first = faults[0][1]
        self.code = first.code
        shown = sentences([f"{path}: {error}" for path, error in faults], 10)
        listed = [{"path": path, "code": error.code, "message": str(error)} for path, error in faults]
        super().__init__(str(first) if len(faults) == 1 else shown, {**(first.details or {}), "errors": listed})


def unreadable(path: Path, reason: str, **details: Any) -> GraphFileError:
    """Return the error of a graph file that cannot be used."""
    return GraphFileError(f"{path} cannot be used: {reason}. Nothing was changed", {"path": str(path), **details})
