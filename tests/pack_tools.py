"""The tools that the skills of this repository declare, read once in a process."""

from functools import cache
from pathlib import Path

from skillpack import SkillLoader, find_tools

SKILLS = Path(__file__).resolve().parent.parent / "skills"


@cache
def pack_tools():
    """Return the declared tools."""
    return find_tools(SkillLoader(SKILLS).declaring)
