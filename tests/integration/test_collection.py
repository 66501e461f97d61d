"""The Ansible collection nodetune.node: built twice, judged by ansible-test, and its role makes the same changes as the playbooks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import ROOT

BIN = Path(sys.executable).parent

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800), pytest.mark.xdist_group("collection")]


def run(*words, codes=(0,), **more):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **more)
    assert done.returncode in codes, f"{words}\n{done.stdout[-5000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build(out, **more):
    run(sys.executable, ROOT / "packaging/collection.py", out, env={**os.environ, **more})
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build(tmp_path_factory.mktemp("collection") / "out")


@pytest.fixture(scope="module")
def installed(archive, tmp_path_factory):
    """The folder of collections."""
    folder = tmp_path_factory.mktemp("collections")
    run(BIN / "ansible-galaxy", "collection", "install", archive, "-p", folder, "--offline")
    return folder


@pytest.fixture
def env(installed, tmp_path):
    found = {"ANSIBLE_COLLECTIONS_PATH": str(installed), "HOME": str(tmp_path), "NO_COLOR": "1", "PAGER": "cat"}
    return {**os.environ, **found, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def test_a_second_build_has_the_same_bytes(archive, tmp_path):
    again = build(tmp_path / "again", TZ="Asia/Tokyo", PYTHONHASHSEED="7")
    assert (again.name, again.read_bytes()) == (archive.name, archive.read_bytes())


def test_ansible_galaxy_finds_every_file_as_listed(installed, env):
    said = run(BIN / "ansible-galaxy", "collection", "verify", "nodetune.node", "--offline", env=env)
    assert "Verification of checksums" in said or "Successfully verified" in said


def test_ansible_doc_shows_modules_and_role(env):
    listed = json.loads(run(BIN / "ansible-doc", "-l", "-j", "nodetune.node", env=env))
    assert len(listed) == 6
    for name in listed:
        assert "EXAMPLES" in run(BIN / "ansible-doc", name, env=env)
    assert "nodetune_thp_enabled" in run(BIN / "ansible-doc", "-t", "role", "nodetune.node.tuning", env=env)


def test_ansible_test_sanity_is_clean(installed, env, tmp_path):
    """Its own bootstrap of pip comes from a site that is often out of reach: ensurepip does the same."""
    copy = tmp_path / "ansible_collections/nodetune/node"
    shutil.copytree(installed / "ansible_collections/nodetune/node", copy)
    run("git", "init", "-q", copy)
    run("git", "-C", copy, "add", "-A")
    cache = tmp_path / ".ansible/test/cache"
    cache.mkdir(parents=True)
    (cache / "get_pip_24_2.py").write_text("import ensurepip\nensurepip.bootstrap()\n")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    run(BIN / "ansible-test", "sanity", "--local", "--python", version, cwd=copy, env=env)


def changes(env, *words):
    """What a dry run on this machine would change: the differences that Ansible shows."""
    told = {**env, "ANSIBLE_PYTHON_INTERPRETER": sys.executable}
    said = run(BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "--check", "--diff", *words, env=told)
    return [line for line in said.splitlines() if line.startswith(("+", "-")) and "take it back" not in line]


@pytest.mark.skipif(os.geteuid() != 0, reason="a dry run reads what only root can")
@pytest.mark.parametrize("subject", ["thp", "sysctl", "limits", "network", "nccl"])
def test_its_playbooks_change_what_those_of_the_checkout_change(subject, env):
    values = ("-e", '{"nodetune_nccl": {"NCCL_IB_HCA": "mlx5_0"}}')
    engine = {"ANSIBLE_LIBRARY": ROOT / "playbooks/library", "ANSIBLE_MODULE_UTILS": ROOT / "playbooks/module_utils"}
    theirs = changes({**env, **{k: str(v) for k, v in engine.items()}}, ROOT / f"playbooks/{subject}.yml", *values)
    assert changes(env, f"nodetune.node.{subject}", *values) == theirs
    assert theirs
