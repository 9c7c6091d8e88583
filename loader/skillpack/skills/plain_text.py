"""Text of a stranger on its way into a prompt or a terminal."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
HIDING = re.compile(r"[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")  # reorders text, or shows it to models alone


def written_out(text: str) -> str:
    r"""Return ``text`` with everything that controls a terminal or hides written as in Python, such as ``\x1b``."""
    return HIDING.sub(_escaped, CONTROL.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """Return ``text`` on one line, single blanks between words, without what controls a terminal or hides."""
    return " ".join(CONTROL.sub(" ", HIDING.sub("", text)).split())
