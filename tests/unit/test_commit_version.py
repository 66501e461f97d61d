"""The version of a checkout: one a commit, ascending, and none that is too low."""

import itertools
import os
import runpy
import subprocess
from pathlib import Path

import pytest

from packaging.version import Version

MODULE = Path(__file__).parents[2] / "packaging/version.py"
LINE = '__version__ = "{}"\n'


@pytest.fixture
def of():
    return runpy.run_path(str(MODULE))["of"]


class Checkout:
    """A repository with the file that has the version."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "nodetune").mkdir(parents=True)
        self.states("0.2.0.dev0")

    def states(self, version):
        (self.folder / "nodetune/__init__.py").write_text(LINE.format(version))

    def git(self, *words):
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            env={**os.environ, **names},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a commit")


@pytest.fixture
def checkout(tmp_path):
    made = Checkout(tmp_path / "checkout")
    made.git("init", "-q")
    return made


def test_each_commit_has_a_higher_version_for_every_kind_of_package(checkout, of):
    known = runpy.run_path(str(MODULE))
    seen = []
    for _ in range(11):
        checkout.commit()
        seen.append(of(checkout.folder))
    assert seen == sorted(set(seen), key=Version)
    assert seen[-1] == "0.2.0.dev11"
    assert known["semantic"](seen[-1]) == "0.2.0-dev.11"  # dev9 would be above dev10
    for lower, higher in itertools.pairwise(seen):
        words = [each.replace(".dev", "~dev") for each in (lower, higher)]
        subprocess.run(["dpkg", "--compare-versions", words[0], "lt", words[1]], check=True)


def test_a_release_states_its_version_itself(checkout, of):
    checkout.commit()
    for version in ("0.2.0", "0.2.0rc1", "0.2.0.dev1234"):
        checkout.states(version)
        assert of(checkout.folder) == version


def test_without_git_it_is_that_of_the_sources(tmp_path, checkout, of, monkeypatch):
    assert of(checkout.folder) == "0.2.0.dev0"  # no commit
    checkout.commit()
    within = Checkout(checkout.folder / "an/sdist")
    assert of(within.folder) == "0.2.0.dev0"  # the repository is of something else
    assert of(Checkout(tmp_path / "unpacked").folder) == "0.2.0.dev0"
    monkeypatch.setenv("GIT_DIR", str(checkout.folder / ".git"))  # as in a hook of git
    assert of(tmp_path / "unpacked") == "0.2.0.dev0"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert of(checkout.folder) == "0.2.0.dev0"


def test_a_worktree_a_link_and_uncommitted_work_have_the_version_of_their_commit(tmp_path, checkout, of):
    checkout.commit()
    checkout.git("worktree", "add", "-q", str(tmp_path / "worktree"))
    (tmp_path / "link").symlink_to(checkout.folder)
    (checkout.folder / "new").write_text("not committed")
    assert {of(checkout.folder), of(tmp_path / "worktree"), of(tmp_path / "link")} == {"0.2.0.dev1"}


def test_a_shallow_clone_says_that_it_does_not_know(tmp_path, checkout, of):
    for _ in range(3):
        checkout.commit()
    for depth, version in (("--depth=1", "0.2.0.dev0+shallow"), ("--filter=blob:none", "0.2.0.dev3")):
        clone = tmp_path / depth
        subprocess.run(["git", "clone", "-q", depth, f"file://{checkout.folder}", str(clone)], check=True)
        assert of(clone) == version
