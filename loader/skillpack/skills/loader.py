"""The progressive-disclosure loader: descriptions, then a body or a section of it, then a file on request."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.exceptions import ResourceError, SkillFileError
from skillpack.skills.catalog import Catalog, scan
from skillpack.skills.layer1 import layer1
from skillpack.skills.skill_md import read_resource
from sturdy.near_names import near_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillpack.skills.layer1 import Budget, Layer1, Style
    from skillpack.skills.skill_md import Skill

    Root = str | os.PathLike[str]


_MAX_NAME = 200  # characters of an unknown name that are repeated in an answer
MAX_LISTED = 200  # resources listed below a body; a model that needs more can list the folder


class Changes(NamedTuple):
    """What a scan found to be different, as sorted names.

    Attributes:
        added: New skills.
        changed: Skills with a different path, description or other frontmatter.
        removed: Skills that no longer exist.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return whether there is any difference."""
        return bool(self.added or self.changed or self.removed)


class SkillLoader:
    """Loads skills and serves them to an agent in three layers.

    Args:
        skills_dir: Folder with the skills, or several folders, highest precedence first. A relative path is resolved
            against the current working directory.

    Attributes:
        skills_dir: The argument.
        catalog: The usable skills, and what was left out.
    """

    def __init__(self, skills_dir: Root | Sequence[Root]) -> None:
        self.skills_dir = skills_dir
        single = isinstance(skills_dir, (str, os.PathLike))
        given: Any = [skills_dir] if single else skills_dir
        self._roots = [os.path.abspath(root) for root in given]  # noqa: PTH100 - a text
        self.catalog = Catalog()
        self.reload()

    @property
    def declaring(self) -> tuple[Skill, ...]:
        """Everything that can declare tools, for ``find_tools``: the usable skills, then folders without a SKILL.md."""
        return (*self.skills.values(), *self.catalog.undescribed)

    @property
    def skills(self) -> Mapping[str, Skill]:
        """The usable skills by name."""
        return self.catalog.skills

    def reload(self) -> Changes:
        """Scan again and return the differences, so that new, changed and removed skills need no restart.

        Other threads keep the catalogue they are using.
        """
        before, after = self.catalog, scan(self._roots)
        self.catalog = after
        return _changes(before.skills, after.skills)

    def has_skills(self) -> bool:
        """Return whether there is any skill to offer."""
        return bool(self.skills)

    def get_descriptions(self, budget: Budget | None = None) -> str:
        """Return layer 1: one line ``- name: description`` per skill."""
        return self.layer1("compact", budget).text

    def get_prompt_section(
        self, style: Style = "markdown", budget: Budget | None = None, how: str | None = None
    ) -> str:
        """Return layer 1 as a section to append to a system prompt, or "" if there are no skills.

        By default it says that the tool ``skill_request`` returns the content of a skill, or in XML where each SKILL.md
        is; ``how`` is the sentence for a host in which another way does.
        """
        return self.layer1(style, budget, how).text

    def layer1(self, style: Style = "markdown", budget: Budget | None = None, how: str | None = None) -> Layer1:
        """Return layer 1 and the number of skills in it; see ``skillpack.skills.layer1``."""
        return layer1(self.skills.values(), style, budget, how)

    def get_skill_content(self, name: str) -> str | None:
        """Return layer 2: the body of skill ``name`` and the list of its resources, or None if unknown.

        Raises:
            FileNotFoundError: If its SKILL.md no longer exists.
            SkillFileError: If its SKILL.md has become unusable since the scan.
        """
        skill = self.skills.get(name)
        return None if skill is None else _content(skill, skill.body, skill.sized_resources)

    def skill_request(self, name: str, *, section: str | None = None, wrap: bool = False) -> dict[str, Any]:
        """Return layer 2 as the answer of a tool.

        ``{"success": True, "data": {"content", "name", "directory", "resources": [{"path", "size"}], "digest"}}``, or
        ``{"success": False, "message": ..., "suggestions": [...]}`` with the most similar names. If the
        skill is not known, the folders are scanned first. Sizes are in bytes; ``digest`` is the digest of the SKILL.md.

        Args:
            name: The skill.
            section: Heading of the section to return, without the list of resources; by default the whole body.
            wrap: Whether to wrap the content in ``<skill_content>``, with the directory and the sizes of the resources.
        """
        skill = self._find(name)
        if skill is None:
            return self._not_found(name)
        try:
            return _layer2(skill, section, wrap)
        except (SkillFileError, FileNotFoundError) as error:
            reason = "its SKILL.md is gone" if isinstance(error, FileNotFoundError) else f"SKILL.md {error}"
            return _failure(f"Skill '{name}' cannot be read: {reason}")

    def read_resource(self, name: str, path: str, *, max_bytes: int | None = None) -> dict[str, Any]:
        """Return layer 3 as the answer of a tool: ``data`` holds path, size, digest, encoding and content.

        Args:
            name: The skill.
            path: Path relative to the skill's folder, as listed in layer 2.
            max_bytes: Maximum size of the file; default 1 MiB. [bytes]
        """
        skill = self._find(name)
        if skill is None:
            return self._not_found(name)
        try:
            return {"success": True, "data": read_resource(skill, path, max_bytes=max_bytes).to_json()}
        except ResourceError as error:
            return _failure(str(error), near_names(path, skill.resources, parts=True))

    def search(self, query: str, *, limit: int = 10) -> dict[str, Any]:
        """Return the skills that fit ``query`` best, as the answer of a tool; see ``search``.

        ``{"success": True, "data": {"skills": [{"name", "description", "score", "excerpt"}], "total"}}``.

        Args:
            query: Words of the task.
            limit: Maximum number of skills to return.
        """
        from skillpack.skill_search import search

        matches, total = search(self.skills.values(), query, limit)
        return {"success": True, "data": {"skills": [match.to_json() for match in matches], "total": total}}

    def _find(self, name: str) -> Skill | None:
        """Return the skill ``name``; scan again if it is not known."""
        if name not in self.skills:
            self.reload()
        return self.skills.get(name)

    def _not_found(self, name: str) -> dict[str, Any]:
        """Return the answer for a skill that does not exist."""
        return _failure(f"Skill '{name[:_MAX_NAME]}' not found", near_names(name, self.skills, parts=True))


def _failure(message: str, suggestions: Sequence[str] = ()) -> dict[str, Any]:
    """Return the answer of a tool that failed."""
    return {"success": False, "message": message, "suggestions": list(suggestions)}


def _layer2(skill: Skill, title: str | None, wrap: bool) -> dict[str, Any]:
    """Return layer 2 of one skill as a tool's answer."""
    import hashlib

    from skillpack.untrusted.strict_yaml import body_of

    data = skill.read()
    body, resources = body_of(data), skill.sized_resources
    content = _content(skill, body, resources)
    if title is not None:
        part = section(body, title)
        if part is None:
            titles = [heading.title for heading in headings(body)]
            return _failure(f"Skill '{skill.name}' has no section '{title}'", titles)
        content = part
    answer = {
        "content": _wrapped(skill, body if title is None else content, resources) if wrap else content,
        "name": skill.name,
        "directory": skill.dir,
        "resources": [{"path": path, "size": size} for path, size in resources],
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
    }
    return {"success": True, "data": answer}


def _content(skill: Skill, body: str, resources: Sequence[tuple[str, int]]) -> str:
    """Return a body followed by the list of its resources (S3.2)."""
    if not resources:
        return body
    lines = [f"- {path}\n" for path, _ in resources[:MAX_LISTED]]
    return f"{body}\n\n## Available Resources\nDirectory: {skill.dir}\n{''.join(lines)}{_more(len(resources))}"


def _wrapped(skill: Skill, content: str, resources: Sequence[tuple[str, int]]) -> str:
    """Return content in a ``<skill_content>`` element, which no text inside it can close."""
    from html import escape

    inert = content.replace("</skill_content", "&lt;/skill_content")
    lines = [f'  <file size="{size}">{escape(path)}</file>\n' for path, size in resources[:MAX_LISTED]]
    listing = f"<skill_resources>\n{''.join(lines)}{_more(len(resources))}</skill_resources>\n" if lines else ""
    return (
        f'<skill_content name="{escape(skill.name)}">\n{inert}\n\n'
        f"Skill directory: {skill.dir}\nRelative paths in this skill are relative to the skill directory.\n"
        f"{listing}</skill_content>"
    )


def _more(number: int) -> str:
    """Return a line with the number of resources that are not listed."""
    return f"... and {number - MAX_LISTED} more\n" if number > MAX_LISTED else ""


def _changes(before: Mapping[str, Skill], after: Mapping[str, Skill]) -> Changes:
    """Return the differences between two sets of skills."""
    both = before.keys() & after.keys()
    return Changes(
        tuple(sorted(after.keys() - both)),
        tuple(sorted(name for name in both if before[name] != after[name])),
        tuple(sorted(before.keys() - both)),
    )


_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_TEXT = re.compile(r" {0,3}(?![ \t|>]|[-+*][ \t]|\d+[.)][ \t]).*\w")  # the beginning of a paragraph
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Heading(NamedTuple):
    """One heading.

    Attributes:
        level: 1 for ``#`` to 6 for ``######``; 1 for a line underlined with ``=``, 2 with ``-``.
        title: Its text.
        line: Its 0-based line.
    """

    level: int
    title: str
    line: int


def headings(body: str) -> list[Heading]:
    """Return the headings of a Markdown text in order; lines in fenced code blocks are not headings."""
    found = []
    fence = ""
    paragraph: list[str] | None = []  # lines so far; None in a list, table or quote until a blank line
    for number, line in enumerate(body.split("\n")):
        above, paragraph = paragraph, []
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark is not None and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark is not None and not ("`" in mark[2] and mark[1][0] == "`"):
            fence = mark[1]
        elif (heading := _HEADING.fullmatch(line)) is not None:
            if heading[2]:
                found.append(Heading(len(heading[1]), heading[2].strip(), number))
        elif above and (rule := _UNDERLINE.fullmatch(line)) is not None:
            found.append(Heading(1 if "=" in rule[1] else 2, " ".join(above), number - len(above)))
        elif line.strip():
            paragraph = [*above, line.strip()] if above or (above == [] and _TEXT.match(line)) else None
    return found


def section(body: str, title: str) -> str | None:
    """Return the section with the heading ``title``, up to the next heading of its level or above, or None.

    Args:
        body: Markdown text.
        title: Text of the heading, ignoring case and blanks. The first such section is returned.
    """
    found = headings(body)
    wanted = _plain(title)
    for index, heading in enumerate(found):
        if _plain(heading.title) == wanted:
            following = (other.line for other in found[index + 1 :] if other.level <= heading.level)
            end = next(following, None)
            return "\n".join(body.split("\n")[heading.line : end]).rstrip()
    return None


def _plain(title: str) -> str:
    """Return a title in the form in which titles are compared."""
    return " ".join(title.lstrip("#").casefold().split())
