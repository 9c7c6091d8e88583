"""What can be wrong with a skill, a resource or a declaration."""


class SkillpackError(Exception):
    """Base of this package's errors; ``code`` is the error code an envelope would carry."""

    code = "INVALID_PARAM"


class FileRefusedError(SkillpackError):
    """A file is missing, unreadable, too large, or not a regular file."""


class YamlError(SkillpackError):
    """A YAML text cannot be accepted; ``line`` is its 1-based line, or None."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class SkillFileError(SkillpackError):
    """A SKILL.md cannot be used; the message is the reason without the path."""


class ResourceError(SkillpackError):
    """A resource of a skill cannot be served."""


class RootError(SkillpackError):
    """A skills directory that was asked for does not exist."""


class ScaffoldError(SkillpackError):
    """A new skill cannot be made as asked."""


class VersionError(SkillpackError):
    """A text is no semantic version, or no requirement on one."""


class MigrationError(SkillpackError):
    """Parameters cannot be carried from one version of a tool to another."""


class RegistryError(SkillpackError):
    """A skill cannot be registered, or the registry cannot answer."""


class SkillNotFoundError(RegistryError):
    """No skill of that name is registered."""


class SkillVersionNotFoundError(RegistryError):
    """A skill is registered, but not in that version."""


class PipelineError(SkillpackError):
    """A pipeline cannot be run as it is written; ``problems`` lists everything that is wrong with it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.details = {"problems": problems}
