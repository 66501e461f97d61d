"""python -m tests.mutants [WORD …]: does each test notice the fault that it is there for?

The faults are those of docs/coverage.yml (`mutants`), or those with one of these words. Each is planted in a copy of the tree,
and the test that is to notice it runs there. It exits with 1 if one survives: then the test passed, or was skipped.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs" / "coverage.yml"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")
FAILED = 1
"""How pytest ends when a test failed: not when there was none, or it could not be loaded."""


def main(words: list[str]) -> int:
    every = yaml.safe_load(LIST.read_text("utf-8"))["mutants"]
    chosen = [each for each in every if not words or any(word in each["fault"] for word in words)]
    if not chosen:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, symlinks=True, ignore=LEFT_OUT)
        if ended(tree, *{each["killed_by"] for each in chosen}):
            print("mutants: their tests fail without them", file=sys.stderr)
            return 1
        survivors = [each["fault"] for each in chosen if not killed(tree, each)]
    print(f"mutants: {len(chosen) - len(survivors)} of {len(chosen)} killed")
    return 1 if survivors else 0


def killed(tree: Path, mutant: Mapping[str, str]) -> bool:
    """Plant a mutant, run its test, and take it out again."""
    file = tree / mutant["file"]
    text = file.read_text("utf-8")
    file.write_text(planted(text, mutant), "utf-8")
    code = ended(tree, mutant["killed_by"])
    file.write_text(text, "utf-8")
    print(f"{'killed  ' if code == FAILED else f'SURVIVED (pytest: {code})'} {mutant['fault']}", flush=True)
    return code == FAILED


def planted(text: str, mutant: Mapping[str, str]) -> str:
    """Return a file's text with a mutant in it. Raises ValueError unless there is exactly one place for it."""
    count = text.count(mutant["code"])
    if count != 1:
        raise ValueError(f"{mutant['file']} has {mutant['code']!r} {count} times: correct {LIST.name}")
    return text.replace(mutant["code"], mutant["becomes"])


def ended(tree: Path, *tests: str) -> int:
    """Return how pytest ended with these tests of a tree."""
    words = [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(words, cwd=tree, env=environment, capture_output=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
