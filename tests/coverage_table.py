"""Print how much of each room the tests executed, from the data that ``make check`` has just measured.

The test processes and the scripts that they fork (``fork_server.py``) are measured. Not measured are programs that a
test starts, such as servers and command lines, the router's inner loop where numba compiles it, and copies of the
packages that a test makes elsewhere.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

from coverage import Coverage

from fork_server import EXECUTED

ROOT = Path(__file__).resolve().parent.parent
HOMES = (ROOT / "loader", ROOT / "scripts")


def room_of(path):
    """Return the package and folder of a module, such as ``layoutkit/route``, or None for one outside the checkout."""
    for home in HOMES:
        if path.is_relative_to(home):
            return "/".join(path.relative_to(home).parts[:-1][:2])
    return None


def executed_by_scripts():
    """Return the lines that forked scripts executed, of each module."""
    found = defaultdict(set)
    for line in EXECUTED.read_text(encoding="utf-8").splitlines() if EXECUTED.exists() else ():
        for name, lines in json.loads(line).items():
            found[name].update(lines)
    return found


def main():
    """Print one line per room and the total."""
    measured = Coverage(config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    measured.get_data().add_lines(executed_by_scripts())
    statements, missing = Counter(), Counter()
    rooms = {name: room_of(Path(name)) for name in measured.get_data().measured_files()}
    for name in filter(rooms.get, rooms):
        _, lines, _, missed, _ = measured.analysis2(name)
        for room in (rooms[name], "total"):
            statements[room] += len(lines)
            missing[room] += len(missed)
    print(f"{'room':<28} {'statements':>10} {'executed':>8}")
    for room in sorted(statements, key=lambda room: (room == "total", room)):
        count = statements[room]
        print(f"{room:<28} {count:>10} {(count - missing[room]) / max(count, 1):>8.1%}")


if __name__ == "__main__":
    main()
