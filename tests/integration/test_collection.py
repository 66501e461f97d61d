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

pytestmark = [pytest.mark.timeout(1800), pytest.mark.xdist_group("collection")]


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
    found["ANSIBLE_SSH_ARGS"] = "-o ControlMaster=no"  # the path of a socket must be short, and this home's is not
    return {**os.environ, **found, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def test_a_second_build_has_the_same_bytes(archive, tmp_path):
    again = build(tmp_path / "again", TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
    assert (again.name, again.read_bytes()) == (archive.name, archive.read_bytes())


def test_ansible_galaxy_finds_every_file_as_listed(installed, env):
    said = run(BIN / "ansible-galaxy", "collection", "verify", "nodetune.node", "--offline", env=env)
    assert "Verification of checksums" in said or "Successfully verified" in said


@pytest.mark.full
def test_ansible_doc_shows_modules_and_role(env):
    listed = json.loads(run(BIN / "ansible-doc", "-l", "-j", "nodetune.node", env=env))
    assert len(listed) == 8
    for name in listed:
        assert "EXAMPLES" in run(BIN / "ansible-doc", name, env=env)
    assert "nodetune_thp_enabled" in run(BIN / "ansible-doc", "-t", "role", "nodetune.node.tuning", env=env)


@pytest.mark.full
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


READS = """
- hosts: all
  gather_facts: false
  tasks:
    - nodetune.node.nodetune_facts: {host: "{{ inventory_hostname }}"}
      register: read
    - copy: {content: "{{ read.document | to_json }}", dest: "{{ folder }}/{{ inventory_hostname }}.json"}
      delegate_to: localhost
    - nodetune.node.nodetune_audit: {select: [memory], site: ["{{ folder }}/site.yml"]}
      register: judged
    - copy: {content: "{{ judged | to_json }}", dest: "{{ folder }}/{{ inventory_hostname }}.judged"}
      delegate_to: localhost
"""


@pytest.mark.full
def test_its_modules_read_and_judge_hosts_over_ssh(env, farm, tmp_path):
    hosts = "".join(f"n{number} ansible_host={each}\n" for number, each in enumerate(farm.good, 1))
    more = f"ansible_port={farm.port}\nansible_ssh_common_args=-F {farm.config}\nansible_python_interpreter={sys.executable}\n"
    (tmp_path / "hosts.ini").write_text(f"{hosts}[all:vars]\n{more}")
    (tmp_path / "reads.yml").write_text(READS)
    (tmp_path / "site.yml").write_text("checks: {max-map-count-low: {set: 77, accept: 77}}\n")
    said = run(
        BIN / "ansible-playbook", "-i", "hosts.ini", "reads.yml", "-e", f"folder={tmp_path}", cwd=tmp_path, env=env
    )
    assert "nodetune_facts] ***" in said
    for name in ("n1", "n2"):
        judged = json.loads((tmp_path / f"{name}.judged").read_text())
        asked = ("audit", "--facts", tmp_path / f"{name}.json", "-s", "memory", "--site", tmp_path / "site.yml")
        told = json.loads(run(BIN / "nodetune", *asked, "--format", "json", codes=(0, 1, 3)))["hosts"][0]
        assert told["name"] == name
        assert judged["findings"] == [each for each in told["findings"] if each["status"] in ("fail", "unknown")]
        (ours,) = (each for each in judged["findings"] if each["check"] == "max-map-count-low")
        assert ours["fix"]["value"] == 77
        assert sum(judged["counts"].values()) == len(told["findings"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "more", "told"),
    [
        ("fail_on=low select=max-map-count-low", {}, "findings of severity low or higher"),
        ("select=nothing", {}, "nothing"),
        ("fail_on=awful", {}, "value of fail_on must be one of"),
        ("site=nosuch.yml", {}, "nosuch.yml"),
        ("", {"PATH": "/usr/bin:/bin"}, "nodetune is not installed on the controller"),
    ],
)
def test_an_audit_that_fails_says_why_in_one_line(env, tmp_path, words, more, told):
    python = BIN / "python"
    if more:  # an Ansible without nodetune
        run(sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", tmp_path / "venv")
        python = tmp_path / "venv/bin/python"
        site = next(Path(BIN).parent.glob("lib/python3*/site-packages"))
        more = {**more, "PYTHONPATH": str(site)}
    on = ("localhost", "-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}")
    ansible = ("-m", "ansible.cli.adhoc", *on, "-m", "nodetune.node.nodetune_audit", "-a", words)
    said = run(python, *ansible, codes=(2,), env={**env, **more})
    assert told in said
    assert "Traceback" not in said


def changes(env, *words):
    """What a dry run on this machine would change: the differences that Ansible shows."""
    told = {**env, "ANSIBLE_PYTHON_INTERPRETER": sys.executable}
    said = run(BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "--check", "--diff", *words, env=told)
    return [line for line in said.splitlines() if line.startswith(("+", "-")) and "take it back" not in line]


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="a dry run reads what only root can")
@pytest.mark.parametrize("subject", ["thp", "sysctl", "limits", "network", "nccl"])
def test_its_playbooks_change_what_those_of_the_checkout_change(subject, env):
    values = ("-e", '{"nodetune_nccl": {"NCCL_IB_HCA": "mlx5_0"}}')
    engine = {"ANSIBLE_LIBRARY": ROOT / "playbooks/library", "ANSIBLE_MODULE_UTILS": ROOT / "playbooks/module_utils"}
    theirs = changes({**env, **{k: str(v) for k, v in engine.items()}}, ROOT / f"playbooks/{subject}.yml", *values)
    assert changes(env, f"nodetune.node.{subject}", *values) == theirs
    assert theirs
