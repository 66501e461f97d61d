"""What `make test` installs: it asks on a terminal, installs in CI, and leaves the machine alone with APT=no."""

import contextlib
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "apt"
MISSING = "nodetune-no-such-package"

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="no dpkg on this machine")


@pytest.fixture
def apt(tmp_path):
    """apt(package …, answer, variables) → exit code, what was said, and what apt-get was asked to do as root."""
    asked = tmp_path / "asked"
    for name, text in {"apt-get": f'echo "$*" >> {asked}', "sudo": 'exec "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def run(*packages, answer=None, **variables):
        environment = {name: value for name, value in os.environ.items() if name not in ("APT", "CI")}
        environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", **variables}
        command = ["sh", SCRIPT, *packages]
        if answer is None:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            said = done.stdout
        else:
            done, said = typed(command, environment, answer)
        changes = asked.read_text().splitlines() if asked.exists() else []
        return done.returncode, said, [each for each in changes if not each.startswith("-s ")]

    return run


def typed(command, environment, answer):
    """Run a command on a terminal, and type an answer."""
    parent, child = pty.openpty()
    os.write(parent, f"{answer}\n".encode())
    done = subprocess.run(command, env=environment, stdin=child, stdout=child, stderr=child)
    os.close(child)
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(parent, 4096):
            said += more
    os.close(parent)
    return done, said.decode()


INSTALLED = ["update -q", f"install -qy --no-install-recommends {MISSING}"]


def test_what_is_installed_already_is_not_asked_for(apt):
    assert apt("dpkg", answer="n") == (0, "n\r\n", [])


def test_without_a_terminal_what_is_missing_is_installed(apt):
    code, said, changes = apt("dpkg", MISSING)
    assert (code, said, changes) == (0, f"installing for the tests: {MISSING}\n", INSTALLED)


@pytest.mark.parametrize(("answer", "code", "changes"), [("y", 0, INSTALLED), ("n", 1, []), ("", 1, [])])
def test_a_terminal_shows_the_packages_and_asks_first(apt, answer, code, changes):
    ended, said, done = apt("dpkg", MISSING, answer=answer)
    assert (ended, done) == (code, changes)
    assert MISSING in said.partition("Install them? [y/N]")[0]
    assert ("APT=no leaves out the tests" in said) == (code == 1)


def test_a_terminal_of_ci_is_not_asked(apt):
    assert apt(MISSING, answer="n", CI="true")[::2] == (0, INSTALLED)


def test_apt_no_installs_nothing_and_says_what_is_missing(apt):
    assert apt("dpkg", MISSING, answer="y", APT="no")[2] == []
    assert apt("dpkg", MISSING, APT="no") == (0, f"APT=no: not installed: {MISSING}\n", [])
