"""Upgrades by the lines of docs/install.md: from one commit to the next, though no tag names either."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("upgrade")]

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b")


def run(*words, code=0, **more):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **more)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def committed(clone):
    run("git", "-C", clone, *AUTHOR, "commit", "-q", "--allow-empty", "-m", "a commit")
    return "0.2.0.dev" + run("git", "-C", clone, "rev-list", "--count", "HEAD").strip()


@pytest.fixture
def clone(tmp_path):
    """A repository of these files with a history of its own: the checkout may be shallow, or have none."""
    made = tmp_path / "clone"
    shutil.copytree(
        ROOT, made, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "build", "dist")
    )
    run("git", "init", "-q", made)
    run("git", "-C", made, "add", ".")
    committed(made)
    return made


def test_pipx_upgrades_a_checkout_and_a_wheel(tmp_path, clone):
    env = {**os.environ, "PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    first = committed(clone)
    run(TOOLS / "pipx", "install", ".", cwd=clone, env=env)
    assert run(tmp_path / "bin/nodetune", "--version") == f"nodetune {first}\n"
    second = committed(clone)
    assert f"from {first} to {second}" in " ".join(
        run(TOOLS / "pipx", "upgrade", "nodetune", cwd=clone, env=env).split()
    )
    third = committed(clone)
    run(TOOLS / "python", "-m", "build", "--wheel", "--outdir", tmp_path, clone)
    run(TOOLS / "pipx", "install", "--force", tmp_path / f"nodetune-{third}-py3-none-any.whl", env=env)
    assert run(tmp_path / "bin/nodetune", "--version") == f"nodetune {third}\n"


def test_an_sdist_makes_the_same_wheel_in_another_repository(tmp_path, clone):
    version = committed(clone)
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1735689600"}
    run(TOOLS / "python", "-m", "build", "--outdir", tmp_path / "one", clone, env=env)
    (sdist,) = (tmp_path / "one").glob("*.tar.gz")
    run("git", "init", "-q", tmp_path / "two")
    run("tar", "xf", sdist, "-C", tmp_path / "two")
    run(
        TOOLS / "python",
        "-m",
        "build",
        "--wheel",
        "--outdir",
        tmp_path / "two",
        tmp_path / f"two/nodetune-{version}",
        env=env,
    )
    wheels = [(tmp_path / name / f"nodetune-{version}-py3-none-any.whl").read_bytes() for name in ("one", "two")]
    assert wheels[0] == wheels[1]


def test_a_shallow_clone_builds_no_package_of_a_lower_version(tmp_path, clone):
    committed(clone)
    run("git", "clone", "-q", "--depth=1", f"file://{clone}", tmp_path / "shallow")
    said = run(TOOLS / "python", "-m", "build", "--wheel", tmp_path / "shallow", code=1)
    assert "this clone is shallow, so its version is not known: git fetch --unshallow" in said
    run("git", "-C", tmp_path / "shallow", "fetch", "-q", "--unshallow")
    assert "Successfully built" in run(TOOLS / "python", "-m", "build", "--wheel", tmp_path / "shallow")
