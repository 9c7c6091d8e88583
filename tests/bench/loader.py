"""Finding 10,000 skills and writing layer 1, as ratios to the smallest honest program that does the same.

    python tests/bench/loader.py [--runs N] [--skills N]

The floor lists the folder, reads the first 8 KB of each SKILL.md, and has PyYAML's C loader read the frontmatter; it
checks nothing, finds nothing below the first level and knows no second root. "Cold" writes the cache, "warm" reads it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from run import HEADER, print_row, ratio

FLOOR = """
import os, sys, yaml
lines = []
with os.scandir(sys.argv[1]) as entries:
    for entry in sorted(entries, key=lambda entry: entry.name):
        with open(os.path.join(entry.path, "SKILL.md"), "rb") as file:
            head = file.read(8192).decode("utf-8", "ignore")
        fields = yaml.load(head[4 : head.index("\\n---", 3)], Loader=yaml.CBaseLoader)
        lines.append(f"- {fields['name']}: {fields['description']}")
print("\\n".join(lines))
"""
OURS = """
import sys
from skillpack import SkillLoader
print(SkillLoader(sys.argv[1], cache=sys.argv[2]).get_descriptions())
"""
COLD = "import os, sys; sys.argv[2] += f'/{os.getpid()}'" + OURS
SEARCH = """
import sys
from skillpack import SkillLoader
print(SkillLoader(sys.argv[1], cache=sys.argv[2]).search("symmetric mirror routing 差分对")["data"]["total"])
"""
BUDGET = """
import sys
from skillpack import SkillLoader
from skillpack.prompt import Budget
print(len(SkillLoader(sys.argv[1], cache=sys.argv[2]).get_descriptions(Budget(400_000))))
"""
WORDS = "bulk check drain draw export gate label layout metal mirror netlist pair process rule source spacing symmetric"
SETTLED_S = 2.2  # with a coarse clock, younger files are not remembered


def write_skills(root: Path, number: int) -> None:
    """Write skills with descriptions of about 207 characters and bodies of 3 kB; a tenth have Chinese words."""
    rng = random.Random(1)
    for index in range(number):
        home = root / f"skill-{index:05}"
        home.mkdir(parents=True)
        words = [*WORDS.split(), *(["差分对"] if index % 10 == 0 else [])]
        description = " ".join(rng.choices(words, k=33))
        body = "\n\n".join(" ".join(rng.choices(words, k=80)) for _ in range(6))
        text = f"---\nname: {home.name}\ndescription: {description}\nlicense: Apache-2.0\n---\n\n# A skill\n\n{body}\n"
        (home / "SKILL.md").write_text(text, encoding="utf-8")


def measure(runs: int, number: int = 10_000) -> None:
    """Print one line a measurement."""
    with tempfile.TemporaryDirectory() as folder:
        root, cache = f"{folder}/skills", f"{folder}/cache"
        write_skills(Path(root), number)
        time.sleep(SETTLED_S)
        floor = ["-c", FLOOR, root]
        cases = [
            (f"{number} skills, cold / scandir, 8 KB head, C YAML", ["-c", COLD, root, cache], "at most 1.5"),
            (f"{number} skills, warm / the same", ["-c", OURS, root, cache], "at most 0.3"),
            (f"{number} skills, warm, within a budget / the same", ["-c", BUDGET, root, cache], ""),
            (f"{number} skills searched with their bodies / the same", ["-c", SEARCH, root, cache], ""),
        ]
        for name, command, bound in cases:
            print_row(name, ratio(command, floor, runs, folder), bound)


def main() -> None:
    """Measure the loader alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="pairs measured after one warm-up (default 7)")
    parser.add_argument("--skills", type=int, default=10_000, help="skills to write (default 10000)")
    arguments = parser.parse_args()
    print(HEADER)
    measure(arguments.runs, arguments.skills)


if __name__ == "__main__":
    sys.exit(main())
