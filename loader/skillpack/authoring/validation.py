"""Check the skills below a path before a host sees them, and create a new skill that passes and whose tool runs."""

# Paths stay strings, as in the catalogue.
# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH114, PTH118, PTH119, PTH120
from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.authoring.skill_rules import (
    HOSTS,
    LEVELS,
    MAX_DESCRIPTION,
    UNNAMED,
    YAML_READERS,
    Finding,
    body_findings,
    error,
    field_findings,
    host_field_findings,
    info,
    name_problem,
    text_findings,
    type_findings,
    warning,
)
from skillpack.exceptions import RootError, ScaffoldError, SkillFileError
from skillpack.skills.catalog import scan
from skillpack.skills.layer1 import estimate_tokens
from skillpack.skills.skill_md import OUTPUT_FOLDERS, RESOURCE_FOLDERS, SKILL_FILE, read_skill_file
from skillpack.untrusted.file_access import HIDING, inside, written_out
from skillpack.untrusted.strict_yaml import decode, parse, split, write
from sturdy.near_names import sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from skillpack.skills.catalog import Catalog, Skipped
    from skillpack.skills.skill_md import Skill


MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5000
ALL_HOSTS = "all"
CODEX_LISTING = 8000  # characters of all descriptions
_MARKDOWN_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[^)]*)?\)")
_CODE_SPAN = re.compile(r"(?<!`)`((?:assets|references|scripts)/[^`\s]+)`(?!`)")
_SHELL_BLOCK = re.compile(
    r"^ *(```|~~~)(?:bash|sh|shell|console|zsh)\b[^\n]*\n(.*?)^ *\1", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
_COMMAND_SPAN = re.compile(r"(?<!`)`([^`\s]+ [^`\n]+|\./[^`\s]+)`(?!`)")
_COMMAND_PATH = re.compile(r"[^\s'\"`=@(),;|&]*/[^\s'\"`(),;|&]*")
_PLACEHOLDER = re.compile(r"[<>{}*$]|\.\.\.|^[A-Z_]+/|path/to/")
TOOL_ID = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")
_EXAMPLE = Path(__file__).with_name("new_skill")
_DESCRIPTION = (
    "Count the words of a text. Use when someone wants to know how many words a text has. Not for characters or lines."
)


class Report(NamedTuple):
    """The findings below one path.

    Attributes:
        path: The absolute path that was checked.
        skills: Names of the usable skills.
        findings: Sorted by path, errors first.
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


def validate(path: str | os.PathLike[str], strict: Collection[str] = ()) -> Report:
    """Return the findings on a skill, or on all skills below a folder.

    Args:
        path: The folder of a skill, its SKILL.md, or a folder with skills.
        strict: Hosts whose warnings count as errors; "all" for all warnings.

    Raises:
        RootError: If the path does not exist.
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
    hosts = {*HOSTS} if ALL_HOSTS in strict else {*strict}
    for index, finding in enumerate(found):
        if finding.level == "warning" and hosts & {*finding.hosts}:
            found[index] = finding._replace(level="error")
    found.sort(key=lambda finding: (finding.path, LEVELS.index(finding.level), finding.line or 0, finding.rule))
    return Report(root, tuple(catalog.skills), tuple(found))


def frontmatter_findings(skill: Skill) -> list[Finding]:
    """Return the findings on the frontmatter of a usable skill."""
    found = field_findings(skill.fields, os.path.basename(skill.dir))
    unnamed = [warning("name-missing", UNNAMED)] if skill.is_unnamed else []
    return [*found, *unnamed, *(warning("yaml-colon", repair, YAML_READERS) for repair in skill.repairs)]


def skill_findings(skill: Skill) -> list[Finding]:
    """Return the findings on one usable skill."""
    return _file_findings(skill.path) + _declaration_findings(skill)


def _skipped_findings(entry: Skipped) -> list[Finding]:
    """Return why an entry is not a usable skill: all faults of its SKILL.md, if it has one."""
    if entry.level == "info":
        return [info("not-searched", entry.reason)._replace(path=entry.path)]
    found = _file_findings(entry.path) if os.path.basename(entry.path) == SKILL_FILE else []
    if not any(finding.level == "error" for finding in found):
        found.insert(0, error("file", entry.reason)._replace(path=entry.path))
    return found


def _file_findings(path: str) -> list[Finding]:
    """Return the findings on a SKILL.md and on the files it refers to."""
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
    found += _command_findings(folder, document.body)
    found += _link_findings(folder)
    return [finding._replace(path=path) for finding in found]


def _body_findings(body: str) -> Iterator[Finding]:
    """Yield findings on the size of the instructions."""
    lines, tokens = body.count("\n") + 1, estimate_tokens(body)
    if not body:
        yield info("body-empty", "the body is empty; a model that requests the skill gets no instructions")
    if lines > MAX_BODY_LINES:
        yield info("body-long", f"the body has {lines} lines, more than {MAX_BODY_LINES}; move parts to references/")
    elif tokens > MAX_BODY_TOKENS:
        yield info("body-long", f"the body has about {tokens} tokens, more than {MAX_BODY_TOKENS}; use references/")


def _hiding_findings(header: str, body: str) -> Iterator[Finding]:
    """Yield a warning about characters that are invisible to people but not to models."""
    hidden = HIDING.search(header) or HIDING.search(body)
    if hidden is not None:
        text = f"contains the character U+{ord(hidden.group()):04X}, which people do not see but models read; remove it"
        yield warning("hidden-text", text)


def _reference_findings(folder: str, body: str) -> Iterator[Finding]:
    """Yield findings on the files that the body refers to."""
    for target in _targets(body):
        location = os.path.normpath(os.path.join(folder, target))
        if target.startswith("/") or not location.startswith(folder + os.sep):
            yield warning("reference-outside", f"the body refers to {target!r}, which is outside the skill")
        elif not os.path.exists(location):
            yield warning("reference-missing", f"the body refers to {target!r}, which does not exist")
        elif target.startswith("references/") and target.count("/") > 1:
            yield info("reference-deep", f"{target!r} is more than one level below references/")


def _targets(body: str) -> list[str]:
    """Return the files that a body names in links and code, without repetitions, patterns and URLs."""
    prose = re.sub(r"^(```|~~~).*?^\1", "", body, flags=re.MULTILINE | re.DOTALL)
    named = [*_MARKDOWN_LINK.findall(prose), *_CODE_SPAN.findall(prose)]
    paths = (name.partition("#")[0].partition("?")[0] for name in named if not re.match(r"[a-zA-Z][\w+.-]*:", name))
    return [path for path in dict.fromkeys(paths) if path and not _PLACEHOLDER.search(path)]


def _command_findings(folder: str, body: str) -> Iterator[Finding]:
    """Yield findings on the files that the commands of the body name: paths that do not start in the skill's folder."""
    commands = [block[1] for block in _SHELL_BLOCK.findall(body)]
    commands += _COMMAND_SPAN.findall(_SHELL_BLOCK.sub("", body))
    named = (path for command in commands for path in _COMMAND_PATH.findall(command))
    for path in dict.fromkeys(named):
        if "://" not in path and not _PLACEHOLDER.search(path):
            yield from _command_path_findings(folder, path)


def _command_path_findings(folder: str, path: str) -> Iterator[Finding]:
    """Yield the finding on a path in a command, if a copy of the skill does not have that path."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    leads_out = path.startswith(("/", "~")) or ".." in parts
    if not parts or (not leads_out and _has(folder, "/".join(parts))):
        return
    if not leads_out and parts[0] not in OUTPUT_FOLDERS and os.path.isdir(os.path.join(folder, parts[0])):
        yield warning("command-missing", f"a command uses {path!r}, which does not exist in the skill")
        return
    starts = [place for place, part in enumerate(parts[:-1]) if part in RESOURCE_FOLDERS]
    starts += [place + 2 for place, part in enumerate(parts[:-2]) if part == "skills"]
    own = next((rest for rest in ("/".join(parts[start:]) for start in starts) if _has(folder, rest)), None)
    beside = os.path.isfile(os.path.join(os.path.dirname(folder), parts[0], SKILL_FILE))
    if own is not None:
        text = f"a command uses {path!r}; write {own!r}, because a path starts in the skill's folder"
        yield warning("command-path", text)
    elif "skills" in parts[:-2] or (starts and (beside or ".." in parts)):
        text = f"a command uses {path!r}, which a copy of the skill does not have; name the other skill instead"
        yield warning("command-path", text)
    elif starts and starts[0] == 0 and not leads_out:
        yield warning("command-missing", f"a command uses {path!r}, which does not exist in the skill")


def _has(folder: str, path: str) -> bool:
    """Return whether a folder contains a file or folder with this relative path."""
    return os.path.exists(os.path.join(folder, path))


def _link_findings(folder: str) -> Iterator[Finding]:
    """Yield a warning for each symbolic link to outside the skill: it is neither served nor copied."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*folders, *files]):
            path = os.path.join(parent, name)
            if os.path.islink(path) and not inside(folder, path):
                text = f"{os.path.relpath(path, folder)!r} is a link to outside the skill, and is not served"
                yield warning("link-outside", text)


def _declaration_findings(skill: Skill) -> list[Finding]:
    """Return the faults of the skill's tools."""
    from skillpack.registry.declaration import read_tools

    _, faults = read_tools(skill)
    return [
        error("tool", f"{fault.tool}: {fault.reason}" if fault.tool else fault.reason)._replace(path=fault.path)
        for fault in faults
    ]


def _set_findings(root: str, catalog: Catalog) -> list[Finding]:
    """Return findings on the skills below a folder as a set."""
    found = [warning("name-taken", entry.reason)._replace(path=entry.path) for entry in catalog.shadowed]
    usable = list(catalog.skills.values())
    if not usable and not catalog.skipped:
        found.append(error("no-skill", f"there is no {SKILL_FILE} here or below")._replace(path=root))
    for skill in usable:
        if skill.dir != root and os.path.dirname(skill.dir) != root:
            text = "is not an immediate child of the folder with the skills, so these hosts do not find it"
            found.append(warning("nested", text, ("agent-plugins",))._replace(path=skill.path))
    length = sum(len(skill.description) for skill in usable)
    if length > CODEX_LISTING:
        text = f"the descriptions have {length} characters together; hosts cut a listing beyond {CODEX_LISTING}"
        found.append(warning("listing-length", text, ("codex",))._replace(path=root))
    return found


def report_text(report: Report, *, quiet: bool = False) -> str:
    """Return a report as text, one line per finding; ``quiet`` leaves out the infos."""
    lines = []
    for item in report.findings:
        if quiet and item.level == "info":
            continue
        place = os.path.relpath(item.path, report.path) if item.path != report.path else report.path
        line = "" if item.line is None else f":{item.line}"
        hosts = f" ({', '.join(item.hosts)})" if item.hosts and item.hosts != HOSTS else ""  # unless it concerns all
        lines.append(f"{place}{line}: {item.level} [{item.rule}] {item.message}{hosts}")
    count = {level: sum(item.level == level for item in report.findings) for level in LEVELS}
    verdict = ", ".join(f"{number} {level}{'' if number == 1 else 's'}" for level, number in count.items() if number)
    skills = "1 skill" if len(report.skills) == 1 else f"{len(report.skills)} skills"
    return "\n".join([*map(written_out, lines), f"{skills}: {verdict or 'no findings'}"])


class Plan(NamedTuple):
    """The skill to create.

    Attributes:
        name: Name of the skill and of its folder.
        parent: Folder in which to create it; it need not exist.
        description: What the skill does and when to use it; "" for the description of the example.
        tool: Dotted id of its tool, or None for a skill without a tool.
        handler: Whether the tool is a ``handler.py`` with templates and tests, rather than a program in ``scripts``.
    """

    name: str
    parent: Path
    description: str = ""
    tool: str | None = None
    handler: bool = False

    @property
    def script(self) -> str:
        """Return the path of the tool's script within the skill."""
        return f"scripts/{(self.tool or '').rpartition('.')[2]}.py"


def default_tool(name: str) -> str:
    """Return the default id of the tool of a new skill: ``word_count.run`` for ``word-count``."""
    words = name.replace("-", "_")
    return f"{words if words[:1].isalpha() else f'skill_{words}'}.run"


def write_skill(plan: Plan) -> Path:
    """Create a skill and return its folder, which appears complete or not at all.

    Raises:
        ScaffoldError: If the name, description or tool id is not allowed, or the folder exists or cannot be created.
    """
    problems = []
    problem = name_problem(plan.name)
    if problem is not None:
        slug = "-".join(re.findall(r"[a-z0-9]+", plan.name.casefold()))[:64].strip("-")
        problems.append(problem + (f"; try {slug!r}" if slug else ""))
    if len(plan.description) > MAX_DESCRIPTION or re.search(r"[<>\x00-\x1f\x7f\ud800-\udfff]", plan.description):
        problems.append(f"a description is one line of at most {MAX_DESCRIPTION} characters without '<' and '>'")
    if plan.tool is not None and not TOOL_ID.fullmatch(plan.tool):
        problems.append(f"the tool id {plan.tool!r} is not lower-case words joined by dots, such as 'text.count_words'")
    if problems:
        raise ScaffoldError(sentences(problems))
    home = plan.parent / plan.name
    if os.path.lexists(home):
        raise ScaffoldError(f"{home} exists; nothing was written")
    beside = plan.parent / f".{plan.name}.{os.getpid()}"
    try:
        for name, text in _files(plan).items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        beside.rename(home)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise ScaffoldError(f"{home} cannot be written: {error.strerror}") from error
    return home


def _files(plan: Plan) -> dict[str, str]:
    """Return the files of the skill as texts by path."""
    tool, body = plan.tool, "body.md"
    if tool is None:
        templates, body = {}, "plain_body.md"
    elif plan.handler:
        body = "handler_body.md"
        templates = {
            "skill.yaml": "handler_skill.yaml",
            "handler.py": "handler.py",
            "templates/prompt.jinja": "prompt.jinja",
            "schemas/input.schema.json": "handler_input.json",
            "schemas/output.schema.json": "handler_output.json",
            "tests/test_skill.py": "of_tests.py",
        }
    else:
        templates = {
            "skill.yaml": "skill.yaml",
            plan.script: "script.py",
            f"schemas/{tool}.input.json": "input.json",
            f"schemas/{tool}.output.json": "output.json",
        }
    fields = {"name": plan.name, "description": plan.description or _DESCRIPTION}
    files = {path: _written(template, plan) for path, template in templates.items()}
    return {"SKILL.md": write(fields, _written(body, plan)), **files}


def _written(name: str, plan: Plan) -> str:
    """Return a file of the example in ``new_skill``, written for this plan."""
    text = (_EXAMPLE / f"{name}.txt").read_text(encoding="utf-8")
    title = plan.name.replace("-", " ").capitalize()
    words = {
        "TITLE": json.dumps(title, ensure_ascii=False),
        "HEADING": title,
        "NAME": json.dumps(plan.name),
        "TOOL_ID": plan.tool or "",
        "SERVED": (plan.tool or "").replace(".", "_"),
        "SCRIPT": plan.script,
    }
    return re.sub(rf"\b(?:{'|'.join(words)})\b", lambda match: words[match[0]], text)
