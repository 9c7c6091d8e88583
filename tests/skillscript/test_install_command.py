"""The command that installs what is missing: for a clone, for a wheel, and for an environment without pip."""

import sys
from importlib import metadata, util

import pytest

from skillscript import install
from skillscript.install import install_command


class Installed:
    """A distribution that was installed in one of the ways that PEP 610 describes."""

    def __init__(self, record):
        self.record = record

    def read_text(self, name):
        return self.record if name == "direct_url.json" else None


@pytest.mark.parametrize(
    ("record", "extra", "package"),
    [
        (None, "", "analog-layout-skills"),
        (None, "mcp", "'analog-layout-skills[mcp]'"),
        ('{"url": "file:///tmp/x.whl", "archive_info": {}}', "", "analog-layout-skills"),
        ('{"url": "file:///a%20clone", "dir_info": {"editable": true}}', "", "-e '/a clone'"),
        ('{"url": "file:///clone", "dir_info": {"editable": true}}', "models", "-e '/clone[models]'"),
        ('{"url": "file:///clone", "dir_info": {}}', "", "analog-layout-skills"),
    ],
)
def test_the_command_repeats_how_the_package_was_installed(monkeypatch, record, extra, package):
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(record))
    monkeypatch.setattr(util, "find_spec", lambda name: name)  # an environment with pip, whether or not this one has it
    monkeypatch.setattr(sys, "executable", "/bin/python")
    assert install_command(extra) == f"/bin/python -m pip install {package}"


def test_an_environment_without_pip_is_installed_into_by_uv(monkeypatch):
    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", unknown)
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    monkeypatch.setattr(sys, "executable", "/my env/bin/python")
    monkeypatch.setattr("shutil.which", lambda _: "/bin/uv")
    assert install_command() == "uv pip install --python '/my env/bin/python' analog-layout-skills"
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert install_command() == "'/my env/bin/python' -m pip install analog-layout-skills"


def test_only_a_requirement_of_the_package_is_named():
    found = install.missing_requirement(ModuleNotFoundError("x", name="klayout.db"))
    assert (found.details["missing"], found.details["command"]) == ("klayout", install_command())
    assert install.missing_requirement(ModuleNotFoundError("x", name="no_such_module")) is None
    assert install.missing_requirement(ImportError("x", name="klayout")) is None
