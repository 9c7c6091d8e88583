"""Everything that can be said about the skills below a path before a host sees them. Nothing of them is executed."""

# Paths stay strings, as in the catalogue.
# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH114, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.skills.catalog import scan
from skillpack.skills.exceptions import RootError, SkillFileError
from skillpack.skills.layer1 import estimate_tokens
from skillpack.skills.plain_text import HIDING, written_out
from skillpack.skills.skill_md import SKILL_FILE, read_skill_file
from skillpack.skills.skill_rules import (
    HOSTS,
    LEVELS,
    YAML_READERS,
    Finding,
    body_findings,
    error,
    field_findings,
    host_field_findings,
    info,
    text_findings,
    type_findings,
    warning,
)
from skillpack.skills.strict_frontmatter import decode, parse, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillpack.skills.catalog import Catalog, Skipped
    from skillpack.skills.skill_md import Skill

MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5000
ALL_HOSTS = "all"
CODEX_LISTING = 8000  # characters of all descriptions
_MARKDOWN_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[^)]*)?\)")
_CODE_SPAN = re.compile(r"(?<!`)`((?:assets|references|scripts)/[^`\s]+)`(?!`)")
_PLACEHOLDER = re.compile(r"[<>{}*$]|\.\.\.")


class Report(NamedTuple):
    """What was found below one path.

    Attributes:
        path: What was looked at, absolute.
        skills: Names of the usable skills.
        findings: By path, errors first.
    """

    path: str
    skills: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Return whether there is no error."""
        return not any(finding.level == "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "path": self.path,
            "ok": self.ok,
            "skills": list(self.skills),
            "findings": [finding.to_json() for finding in self.findings],
        }


def validate(path: str | os.PathLike[str], strict: Iterable[str] = ()) -> Report:
    """Return what is to be said about a skill, or about all skills below a folder.

    Args:
        path: A skill's folder, its SKILL.md, or a folder with skills.
        strict: Hosts whose warnings count as errors; "all" for every warning.

    Raises:
        RootError: If there is no such path.
    """
    root = os.path.abspath(path)
    if os.path.basename(root) == SKILL_FILE and os.path.isfile(root):
        root = os.path.dirname(root)
    if not os.path.isdir(root):
        raise RootError(f"no such skill or folder: {os.fspath(path)}")
    catalog = scan([root])
    found = [finding for skill in catalog.skills.values() for finding in skill_findings(skill)]
    found += [finding for entry in catalog.shadowed for finding in _file_findings(entry.path)]
    found += [finding for entry in catalog.skipped for finding in _skipped_findings(entry)]
    found += _set_findings(root, catalog)
    hosts = frozenset(strict)
    judged = [_judged(finding, hosts) for finding in found]
    judged.sort(key=lambda finding: (finding.path, LEVELS.index(finding.level), finding.line or 0, finding.rule))
    return Report(root, tuple(catalog.skills), tuple(judged))


def skill_findings(skill: Skill) -> list[Finding]:
    """Return what is to be said about one usable skill."""
    return _file_findings(skill.path) + _declaration_findings(skill)


def _skipped_findings(entry: Skipped) -> list[Finding]:
    """Return why something is no usable skill: everything that is wrong with its SKILL.md, if it has one."""
    if entry.level == "info":
        return [info("not-searched", entry.reason)._replace(path=entry.path)]
    found = _file_findings(entry.path) if os.path.basename(entry.path) == SKILL_FILE else []
    if not any(finding.level == "error" for finding in found):
        found.insert(0, error("file", entry.reason)._replace(path=entry.path))
    return found


def _file_findings(path: str) -> list[Finding]:
    """Return what is to be said about a SKILL.md and what it refers to."""
    folder = os.path.dirname(path)
    try:
        data = read_skill_file(path, folder, is_link=os.path.islink(path))
    except FileNotFoundError:
        return [error("file", "there is no such file")._replace(path=path)]
    except SkillFileError as reason:
        return [error("file", str(reason))._replace(path=path)]
    try:
        document = parse(data)
    except SkillFileError as reason:
        return [error("frontmatter", str(reason))._replace(path=path)]
    header, _ = split(decode(data))
    found = field_findings(document.fields, os.path.basename(folder))
    found += [warning("yaml-colon", repair, YAML_READERS) for repair in document.repairs]
    found += text_findings(data, header)
    found += host_field_findings(document.fields)
    found += type_findings(header)
    found += body_findings(document.body)
    found += _body_findings(document.body)
    found += _hiding_findings(header, document.body)
    found += _reference_findings(folder, document.body)
    found += _link_findings(folder)
    return [finding._replace(path=path) for finding in found]


def _body_findings(body: str) -> Iterator[Finding]:
    """Yield what is to be said about the size of the instructions."""
    lines, tokens = body.count("\n") + 1, estimate_tokens(body)
    if not body:
        yield info("body-empty", "the body says nothing; a model that asks for the skill learns nothing")
    if lines > MAX_BODY_LINES:
        yield info("body-long", f"the body has {lines} lines, more than {MAX_BODY_LINES}; move parts to references/")
    elif tokens > MAX_BODY_TOKENS:
        yield info("body-long", f"the body has about {tokens} tokens, more than {MAX_BODY_TOKENS}; use references/")


def _hiding_findings(header: str, body: str) -> Iterator[Finding]:
    """Yield a warning about characters that show a reader something else than a model reads."""
    hidden = HIDING.search(header) or HIDING.search(body)
    if hidden is not None:
        text = f"contains the character U+{ord(hidden.group()):04X}, which people do not see and models read; remove it"
        yield warning("hidden-text", text)


def _reference_findings(folder: str, body: str) -> Iterator[Finding]:
    """Yield what is wrong with the files the body refers to."""
    for target in _targets(body):
        location = os.path.normpath(os.path.join(folder, target))
        if target.startswith("/") or not location.startswith(folder + os.sep):
            yield warning(
                "reference-outside", f"the body refers to {target!r}, which does not come along with the skill"
            )
        elif not os.path.exists(location):
            yield warning("reference-missing", f"the body refers to {target!r}, which is not there")
        elif target.startswith("references/") and target.count("/") > 1:
            yield info("reference-deep", f"{target!r} lies deeper than one level below references/")


def _targets(body: str) -> list[str]:
    """Return the files a body names as links and as code, each once; patterns and places elsewhere are none."""
    prose = re.sub(r"^(```|~~~).*?^\1", "", body, flags=re.MULTILINE | re.DOTALL)
    named = [*_MARKDOWN_LINK.findall(prose), *_CODE_SPAN.findall(prose)]
    paths = (name.partition("#")[0].partition("?")[0] for name in named if not re.match(r"[a-zA-Z][\w+.-]*:", name))
    return [path for path in dict.fromkeys(paths) if path and not _PLACEHOLDER.search(path)]


def _link_findings(folder: str) -> Iterator[Finding]:
    """Yield a warning for each link that leads out of the skill: it is not served, and does not travel."""
    from skillpack.skills.file_access import inside

    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*folders, *files]):
            path = os.path.join(parent, name)
            if os.path.islink(path) and not inside(folder, path):
                text = f"{os.path.relpath(path, folder)!r} is a link to outside the skill, and is not served"
                yield warning("link-outside", text)


def _declaration_findings(skill: Skill) -> list[Finding]:
    """Return what is wrong with the skill's tools."""
    from skillpack.registry.declaration import read_tools

    _, faults = read_tools(skill)
    return [
        error("tool", f"{fault.tool}: {fault.reason}" if fault.tool else fault.reason)._replace(path=fault.path)
        for fault in faults
    ]


def _set_findings(root: str, catalog: Catalog) -> list[Finding]:
    """Return what is to be said about the skills below a folder as a set."""
    found = [warning("name-taken", entry.reason)._replace(path=entry.path) for entry in catalog.shadowed]
    usable = list(catalog.skills.values())
    if not usable and not catalog.skipped:
        found.append(error("no-skill", f"there is no {SKILL_FILE} here or below")._replace(path=root))
    for skill in usable:
        if skill.dir != root and os.path.dirname(skill.dir) != root:
            text = "is not an immediate child of the folder with the skills, and is not seen"
            found.append(warning("nested", text, ("agent-plugins",))._replace(path=skill.path))
    return found + [finding._replace(path=root) for finding in _listing_findings(usable)]


def _listing_findings(skills: Sequence[Skill]) -> Iterator[Finding]:
    """Yield what hosts object to in a set of skills as a whole."""
    length = sum(len(skill.description) for skill in skills)
    if length > CODEX_LISTING:
        text = f"the descriptions have {length} characters together; hosts cut a listing beyond {CODEX_LISTING}"
        yield warning("listing-length", text, ("codex",))


def _judged(finding: Finding, strict: frozenset[str]) -> Finding:
    """Return a finding as those hosts see it."""
    counts = finding.level == "warning" and (ALL_HOSTS in strict or not strict.isdisjoint(finding.hosts))
    return finding._replace(level="error") if counts else finding


def report_text(report: Report, *, quiet: bool = False) -> str:
    """Return a report for a person, one line a finding; ``quiet`` leaves the infos out."""
    shown: Sequence[Finding] = [item for item in report.findings if not (quiet and item.level == "info")]
    lines = [
        f"{_place(finding, report.path)}: {finding.level} [{finding.rule}] {finding.message}{_hosts(finding)}"
        for finding in shown
    ]
    count = {level: sum(item.level == level for item in report.findings) for level in LEVELS}
    verdict = ", ".join(f"{number} {level}{'' if number == 1 else 's'}" for level, number in count.items() if number)
    skills = "1 skill" if len(report.skills) == 1 else f"{len(report.skills)} skills"
    return "\n".join([*map(written_out, lines), f"{skills}: {verdict or 'nothing to object to'}"])


def _place(finding: Finding, root: str) -> str:
    """Return where a finding is, relative to what was looked at."""
    path = os.path.relpath(finding.path, root) if finding.path != root else root
    return path if finding.line is None else f"{path}:{finding.line}"


def _hosts(finding: Finding) -> str:
    """Return which hosts a finding concerns, in brackets; nothing when it concerns all."""
    return f" ({', '.join(finding.hosts)})" if finding.hosts and finding.hosts != HOSTS else ""
