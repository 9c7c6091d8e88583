"""A new virtual environment that holds the wheel of this checkout, its declared dependencies and nothing else.

The dependencies are links to those of the environment that runs the tests, so that no index is asked: only what the
wheel's metadata declares can be imported. Python in the environment refuses to open any other file of the checkout.
"""

import importlib.metadata
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from patience import WATCHDOG_S

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTION = "analog-layout-skills"
NO_INDEX = re.compile(r"error sending request|failed to fetch|dns error|network.* (is|was) disabled", re.IGNORECASE)
GUARD = '''"""Refuse to open files of the checkout; what the dependencies' environment holds may be opened."""

import os
import sys


def refuse(event, arguments):
    if event in {"open", "os.listdir", "os.scandir", "import"} and arguments:
        for path in arguments[:2]:
            if isinstance(path, str) and os.path.isabs(path):
                path = os.path.realpath(path) + os.sep
                if path.startswith(CHECKOUT) and not path.startswith(ALLOWED):
                    raise PermissionError(f"the checkout is out of reach: {event} {path}")


CHECKOUT = CHECKOUT_VALUE
ALLOWED = ALLOWED_VALUE
sys.addaudithook(refuse)
'''


class WheelEnvironment:
    """The environment in ``folder``: ``python`` and ``skillpack`` are its programs, ``site`` its site-packages."""

    def __init__(self, folder, home):
        self.folder, self.home = folder, home
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        self.python, self.skillpack = self.programs / "python", self.programs / "skillpack"
        self.site = next(folder.glob("lib/python3*/site-packages"), folder / "Lib" / "site-packages")

    def environment(self, **more):
        """Return the variables of a user who just installed the wheel: an empty home, no variable of this project."""
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "SYSTEMROOT", "TMPDIR"}}
        path = f"{self.programs}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "HOME": str(self.home), "USERPROFILE": str(self.home), **more}

    def distribution(self):
        """Return the installed distribution's metadata."""
        return importlib.metadata.Distribution.at(next(self.site.glob("analog_layout_skills-*.dist-info")))

    def with_extras(self, *extras):
        """Return the variables with which the environment's programs find what ``extras`` require, too."""
        folder = self.folder.parent / "-".join(("extras", *extras))
        if not folder.exists():
            folder.mkdir()
            link_dependencies(self.distribution(), folder, extras)
        return {"PYTHONPATH": str(folder)}

    def run(self, *command, cwd, stdin="", **variables):
        """Run a program of the environment from ``cwd``; return the completed process, its output as text."""
        return subprocess.run(
            [str(self.programs / command[0]), *map(str, command[1:])],
            cwd=cwd,
            env=self.environment(**variables),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=WATCHDOG_S,
        )


def build_wheel(folder, source=ROOT):
    """Build the wheel of ``source`` into ``folder`` and return its path."""
    from hatchling.builders.wheel import WheelBuilder

    (path,) = WheelBuilder(str(source)).build(directory=str(folder), versions=["standard"])
    return Path(path)


def empty_environment(folder):
    """Create a virtual environment in ``folder``/"an environment" and return it; it cannot open the checkout."""
    place, home = folder / "an environment", folder / "empty home"
    home.mkdir()
    venv.create(place, with_pip=False, symlinks=os.name != "nt")
    made = WheelEnvironment(place, home)
    allowed = tuple(f"{Path(path).resolve()}{os.sep}" for path in (sys.prefix, folder))
    guard = GUARD.replace("CHECKOUT_VALUE", repr(f"{ROOT}{os.sep}")).replace("ALLOWED_VALUE", repr(allowed))
    (made.site / "_checkout_guard.py").write_text(guard, encoding="utf-8")
    (made.site / "_checkout_guard.pth").write_text("import _checkout_guard\n", encoding="utf-8")
    return made


def install(wheel, folder, uv):
    """Create an environment in ``folder``, install the wheel there with uv and return it."""
    made = empty_environment(folder)
    done = uv("pip", "install", "--python", made.python, "--no-cache", "--offline", "--no-deps", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    link_dependencies(made.distribution(), made.site)
    return made


def link_dependencies(distribution, folder, extras=()):
    """Link what ``distribution`` requires with ``extras``, and what that requires, into ``folder``."""
    from packaging.requirements import Requirement

    waiting, seen = [(distribution, frozenset(extras))], set()
    while waiting:
        current, wanted = waiting.pop()
        for requirement in map(Requirement, current.requires or ()):
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            with_extras = (name, frozenset(requirement.extras))
            markers = [{"extra": extra} for extra in ("", *wanted)]
            if with_extras in seen or not (
                requirement.marker is None or any(requirement.marker.evaluate(marker) for marker in markers)
            ):
                continue
            seen.add(with_extras)
            dependency = distribution if name == DISTRIBUTION else importlib.metadata.distribution(name)
            waiting.append((dependency, with_extras[1]))
            if name != DISTRIBUTION:
                for top in {file.parts[0] for file in dependency.files} - {"..", "__pycache__"}:
                    if not (folder / top).exists():
                        (folder / top).symlink_to(Path(dependency.locate_file(top)).resolve())


def uv_environment(program, home, **variables):
    """Return the variables for uv and what it starts: uv on PATH, an empty home, the user's cache, this Python."""
    others = ("UV_", "VIRTUAL_ENV", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if name == "UV_OFFLINE" or not name.startswith(others)}
    cache = (
        os.environ.get("UV_CACHE_DIR")
        or subprocess.run([program, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    )
    path = f"{Path(program).parent}{os.pathsep}{kept['PATH']}"
    own = {"PATH": path, "HOME": str(home), "UV_CACHE_DIR": cache, "UV_PYTHON": sys.executable}
    return {**kept, **own, **variables}


def run_uv(program, home, *arguments, cwd, stdin="", **variables):
    """Run uv in ``uv_environment``; skip the test if a package cannot be had. See the fixture."""
    done = subprocess.run(
        [program, *map(str, arguments)],
        cwd=cwd,
        env=uv_environment(program, home, **variables),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=WATCHDOG_S,
    )
    if done.returncode and NO_INDEX.search(done.stderr):
        pytest.skip("skipped: needs a package index")
    return done
