"""The guard runs on the Python of the node's own distribution: 3.9 of RHEL 9 is the oldest."""

import ast
import glob
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune.foundation import paths
from nodetune.guard.deploy import archive
from nodetune.guard.deploy import paths as deploy_paths
from playbooks.module_utils.nodetune_host.resources import program as resource

FOUND = [*glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")), *glob.glob("/usr/bin/python3.*[0-9]")]
SYNTHETIC = Path(__file__).parents[2] / "data" / "synthetic"
ASK = "import sys; print(*sys.version_info[:2])"
IMPORT_ALL = """
import importlib, os, sys
sys.path.insert(0, sys.argv[1])
for folder, _, names in os.walk(sys.argv[1]):
    for name in sorted(names):
        if name.endswith(".py") and name != "__main__.py":
            path = os.path.relpath(os.path.join(folder, name), sys.argv[1])
            importlib.import_module(path[:-3].replace(os.sep, ".").replace(".__init__", ""))
"""
JUDGE_ALL = """
import json, sys
sys.path.insert(0, sys.argv[1])
from nodetune import checks
from nodetune.audit import evaluate
from nodetune.guard.node import gating_checks
for path in sys.argv[2:]:
    with open(path) as file:
        host = gating_checks.host_facts(json.load(file)["facts"], {})
    for check in checks.load_all():
        found = evaluate.judge(check, host)
        print(check.id, found.status, found.observed, found.wanted, found.reason, sep="|")
"""


def oldest():
    """The oldest Python of this machine that is new enough; that of these tests where there is no other."""
    versions = {}
    for path in (*FOUND, sys.executable):
        version = tuple(map(int, subprocess.run([path, "-c", ASK], capture_output=True, text=True).stdout.split()))
        if version >= resource.OLDEST:
            versions[version] = path
    return pytest.param(versions[min(versions)], id=".".join(map(str, min(versions))))


MACHINES = (paths.bundled("facts/recorded") / "h200-x4.json", SYNTHETIC / "hgx-h200-untuned.json")
on_the_oldest = pytest.mark.parametrize("python", [oldest()])
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prologs and epilogs as root")


def sources():
    return [source for source in archive.files().values() if isinstance(source, Path) and source.suffix == ".py"]


def test_no_file_of_the_guard_needs_a_newer_python():
    oldest = ".".join(map(str, resource.OLDEST))
    vermin = Path(sys.executable).with_name("vermin")
    command = [vermin, f"--target={oldest}-", "--no-tips", "--violations"]
    told = subprocess.run([*command, *map(str, sources())], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout


def test_the_oldest_python_is_the_same_on_both_sides():
    assert resource.OLDEST == deploy_paths.OLDEST_PYTHON


def test_no_isinstance_of_the_guard_names_a_union():
    """Python 3.9 cannot make `int | float`, and vermin does not see it."""
    calls = [
        (path, node) for path in sources() for node in ast.walk(ast.parse(path.read_text())) if _is_isinstance(node)
    ]
    assert len(calls) > 50
    assert [f"{path}:{node.lineno}" for path, node in calls if isinstance(node.args[1], ast.BinOp)] == []


def _is_isinstance(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"


@on_the_oldest
def test_every_file_of_the_guard_is_imported(python, program):
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-W", "error", "-c", IMPORT_ALL, program], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@on_the_oldest
def test_all_checks_conclude_the_same_as_here(python, program):
    said = [
        subprocess.run([each, "-I", "-S", "-B", "-c", JUDGE_ALL, program, *MACHINES], capture_output=True, text=True)
        for each in (python, sys.executable)
    ]
    assert said[0].stderr == ""
    assert len(said[0].stdout.splitlines()) > 500
    assert said[0].stdout.splitlines() == said[1].stdout.splitlines()


@on_the_oldest
@as_root
def test_prolog_epilog_and_health_check_judge_gpus(python, node):
    node.write_entry(python=python)
    assert node.call("health").code == 0
    ended = node.call()
    assert ended.code == 0
    assert ended.said.startswith("nodetune: pass ("), ended
    node.forget()
    node.control("lost@1=1")
    ended = node.call()
    assert ended.code == 1
    assert ended.said.startswith("nodetune: gpu-lost: GPU1: NVML: GPU is lost; job 7 does not run on n01")
    assert "gpu-lost" in node.call("epilog").said
    assert node.inconclusive() == 0


@on_the_oldest
def test_the_programs_of_tasks_and_metrics_run(python, node, tmp_path):
    parts = node.program / "nodetune" / "guard" / "node"
    calls = ([parts / "taskprolog.py", node.policy], [parts / "metrics.py", tmp_path / "run", node.policy, ""])
    for call in calls:
        done = subprocess.run([python, "-I", "-S", "-B", *call], capture_output=True, text=True, env={})
        assert (done.returncode in (0, 2), done.stderr) == (True, ""), done
