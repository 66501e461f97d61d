"""A key that signs repositories, made for one build and forgotten with it."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.machines.image import run

NAME = "nodetune stand-in repositories <stand-in@example.org>"
MADE = f"""%no-protection
Key-Type: RSA
Key-Length: 3072
Name-Real: {NAME.partition(" <")[0]}
Name-Email: {NAME.partition("<")[2].rstrip(">")}
Expire-Date: 0
%commit
"""


@dataclass(frozen=True)
class Key:
    home: Path

    def sign(self, file: Path, into: Path, how: str) -> None:
        run("gpg", "--homedir", self.home, "--batch", "--yes", "--armor", how, "--output", into, file)

    def export(self, into: Path) -> None:
        run("gpg", "--homedir", self.home, "--batch", "--yes", "--armor", "--export", "--output", into)
        into.chmod(0o644)  # apt reads it as a user of its own


@contextlib.contextmanager
def new() -> Iterator[Key]:
    with tempfile.TemporaryDirectory(prefix="gpg-") as home:
        os.chmod(home, 0o700)
        run("gpg", "--homedir", home, "--batch", "--quiet", "--generate-key", input=MADE)
        yield Key(Path(home))
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], capture_output=True)
