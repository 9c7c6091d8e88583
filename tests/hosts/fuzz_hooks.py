"""Hooks of the schema-driven fuzzer: what the OpenAPI document can say only in words."""

import json
from urllib.parse import unquote

import schemathesis

from skillpack.untrusted.file_access import name_fault

SHORTEST_S = 10  # a slow machine must not turn a call into a timeout


@schemathesis.hook
def filter_case(context, case):  # noqa: ARG001 - the hook's signature
    """Return whether a body is strict JSON (integers within 64 bits, no NUL) that no tool refuses in its own words.

    The path of a file must be a name that all systems allow, and a file that must be new may be there already.
    """
    body = case.body
    path = (case.path_parameters or {}).get("path")
    if path is not None:
        must_be_new = {**(case.headers or {})}.get("if-none-match") == "*"
        return isinstance(path, str) and name_fault(unquote(path)) is None and not must_be_new
    try:
        text = json.dumps(body)
    except TypeError:  # no body
        return True
    if isinstance(body, dict) and 1 <= number(body.get("timeout_s")) < SHORTEST_S:
        return False
    if isinstance(body, dict) and body.get("params") == {"by": 0}:
        return False
    return "\\u0000" not in text and all(-(2**63) <= value < 2**63 for value in integers(body))


def number(value):
    """Return a number as it is, anything else as 0."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def integers(value):
    """Yield every integer of a JSON value."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from integers(item)
    elif isinstance(value, list):
        for item in value:
            yield from integers(item)
