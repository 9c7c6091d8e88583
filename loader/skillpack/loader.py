"""The progressive-disclosure loader: descriptions, then a body on request, then a file on request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from skillpack.catalog import Catalog, scan
from skillpack.errors import ResourceError, SkillFileError
from skillpack.resources import MAX_RESOURCE_BYTES, read_resource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillpack.skill import Skill

    Root = str | os.PathLike[str]


class SkillLoader:
    """Loads skills and serves them to an agent in three layers.

    Args:
        skills_dir: Folder that holds the skills, or several, the first having precedence.

    Attributes:
        skills_dir: As given.
        catalog: What was found and what was not.
        skills: The usable skills by name.
    """

    def __init__(self, skills_dir: Root | Sequence[Root]) -> None:
        self.skills_dir = skills_dir
        self.catalog: Catalog
        self.skills: dict[str, Skill]
        self.reload()

    def reload(self) -> None:
        """Scan again, so that new, changed and removed skills are seen without a restart."""
        single = isinstance(self.skills_dir, (str, os.PathLike))
        roots: Any = [self.skills_dir] if single else self.skills_dir
        self.catalog = scan(roots)
        self.skills = dict(self.catalog.skills)

    def has_skills(self) -> bool:
        """Return whether there is any skill to offer."""
        return bool(self.skills)

    def get_descriptions(self) -> str:
        """Return layer 1: one line ``- name: description`` a skill."""
        return "\n".join(f"- {skill.name}: {skill.summary}" for skill in self.skills.values())

    def get_prompt_section(self) -> str:
        """Return layer 1 as a section to append to a system prompt, or "" when there are no skills."""
        if not self.has_skills():
            return ""
        return (
            "\n\n## Available Skills\n\nYou have access to the following domain expertise:\n"
            f"{self.get_descriptions()}\n\nWhen a task matches a skill, request its full content.\n"
        )

    def get_skill_content(self, name: str) -> str | None:
        """Return layer 2: the body of skill ``name`` and the list of its resources, or None if unknown.

        Raises:
            SkillFileError: If its SKILL.md has become unusable since it was scanned.
        """
        skill = self.skills.get(name)
        if skill is None:
            return None
        content = skill.body
        resources = skill.resources
        if resources:
            listing = "".join(f"- {resource}\n" for resource in resources)
            content += f"\n\n## Available Resources\nDirectory: {skill.dir}\n{listing}"
        return content

    def skill_request(self, name: str) -> dict[str, Any]:
        """Return layer 2 as a tool's answer.

        ``{"success": True, "data": {"content": ...}}``, or ``{"success": False, "message": ...,
        "suggestions": [...]}`` with the names that come nearest.
        """
        try:
            content = self.get_skill_content(name)
        except (SkillFileError, FileNotFoundError) as error:
            reason = "its SKILL.md is gone" if isinstance(error, FileNotFoundError) else f"SKILL.md {error}"
            return {"success": False, "message": f"Skill '{name}' cannot be read: {reason}", "suggestions": []}
        if content is None:
            return self._not_found(name)
        return {"success": True, "data": {"content": content}}

    def read_resource(self, name: str, path: str, *, max_bytes: int = MAX_RESOURCE_BYTES) -> dict[str, Any]:
        """Return layer 3 as a tool's answer: ``data`` holds path, size, encoding and content.

        Args:
            name: Skill whose file it is.
            path: Path relative to the skill's folder, as listed by layer 2.
            max_bytes: Largest file that is served. [bytes]
        """
        skill = self.skills.get(name)
        if skill is None:
            return self._not_found(name)
        try:
            resource = read_resource(skill, path, max_bytes=max_bytes)
        except ResourceError as error:
            return {"success": False, "message": str(error), "suggestions": self._near(path, skill.resources)}
        return {"success": True, "data": resource.to_json()}

    def _not_found(self, name: str) -> dict[str, Any]:
        """Return the answer for a skill that does not exist."""
        return {
            "success": False,
            "message": f"Skill '{name}' not found",
            "suggestions": self._near(name, list(self.skills)),
        }

    @staticmethod
    def _near(wanted: str, names: list[str]) -> list[str]:
        """Return up to three of ``names`` that come near to ``wanted``."""
        from difflib import get_close_matches

        return get_close_matches(wanted, names, n=3, cutoff=0.5)
