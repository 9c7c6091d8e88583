"""The exceptions of this package."""

from sturdy.near_names import sentences


class SkillpackError(Exception):
    """Base of this package's exceptions; ``code`` is the error code in an envelope."""

    code = "INVALID_PARAM"


class FileRefusedError(SkillpackError):
    """A file is missing, unreadable, too large, or not a regular file."""


class YamlError(SkillpackError):
    """A YAML text is not accepted; ``line`` is the 1-based line of the fault, or None."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class SkillFileError(SkillpackError):
    """A SKILL.md cannot be used; the message gives the reason, without the path."""


class ResourceError(SkillpackError):
    """A resource of a skill cannot be served."""


class RootError(SkillpackError):
    """A requested skills directory does not exist."""


class ScaffoldError(SkillpackError):
    """A new skill cannot be created as requested."""


class CopyError(SkillpackError):
    """A skill cannot be copied as requested; the message lists all reasons."""


class InstallError(SkillpackError):
    """Skills cannot be installed, updated or removed; ``problems`` lists all reasons."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class VersionError(SkillpackError):
    """A text is not a semantic version, or not a version requirement."""


class MigrationError(SkillpackError):
    """Parameters cannot be converted from one version of a tool to another."""


class RegistryError(SkillpackError):
    """A skill cannot be registered, or a request to the registry cannot be answered."""


class SkillNotFoundError(RegistryError):
    """No skill with that name is registered."""


class SkillVersionNotFoundError(RegistryError):
    """The skill is registered, but not in the requested version."""


class PipelineError(SkillpackError):
    """A pipeline cannot be run; ``problems`` lists all its faults."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(sentences(problems))
        self.problems = problems
        self.details = {"problems": problems}
