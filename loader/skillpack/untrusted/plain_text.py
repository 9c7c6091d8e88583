"""Sanitize untrusted text before it is written to a prompt or a terminal."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
HIDING = re.compile(r"[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")  # reorders text, or is visible to models only


def written_out(text: str) -> str:
    r"""Return ``text`` with control and hidden characters written as escape sequences, such as ``\x1b``."""
    return HIDING.sub(_escaped, CONTROL.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """Return ``text`` on one line, with single spaces between words and without control and hidden characters."""
    return " ".join(CONTROL.sub(" ", HIDING.sub("", text)).split())
