"""Things that take long to make and that many tests only read: made once in a test run, for all of its workers."""

import contextlib
import hashlib
import json
import os
import shutil

try:
    import fcntl
except ImportError:  # no such lock on Windows, where each worker makes its own
    fcntl = None


class Once:
    """Makes a thing when it is asked for first, below ``root``, and returns the same from then on.

    Args:
        root: Folder that all workers of a test run see.
    """

    def __init__(self, root):
        self.root = root if fcntl else root / str(os.getpid())

    def __call__(self, make, *key):
        """Return the JSON data that ``make(folder)`` returned, and the folder, which was new and empty then.

        Args:
            make: What makes the thing. If it fails, nothing is kept.
            key: Texts; the same texts stand for the same thing.
        """
        home = self.root / hashlib.sha256(json.dumps(key).encode()).hexdigest()[:20]
        home.mkdir(parents=True, exist_ok=True)
        folder, answer = home / "files", home / "answer.json"
        with locked(home / "lock"):
            if not answer.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                made = json.dumps(make(folder))
                answer.write_text(made, encoding="utf-8")
        return json.loads(answer.read_text(encoding="utf-8")), folder


@contextlib.contextmanager
def locked(path):
    """Hold the lock that the file ``path`` stands for; the system frees it if this process ends."""
    with path.open("a") as file:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
