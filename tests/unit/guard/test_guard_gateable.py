"""Which checks a site may let gate: those that the program on a node can judge with nothing but itself."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nodetune import checks
from nodetune.api.model import HostFacts, HostResult
from nodetune.config import profile, site_file
from nodetune.foundation.yaml_lines import FileError
from nodetune.guard.deploy import gateable, nodes
from nodetune.guard.deploy.request import PolicySettings
from nodetune.guard.node import gating_checks

CASES = Path(__file__).parents[2] / "data" / "cases"
PYTHON = "/usr/bin/python3"
JUDGE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from nodetune.guard.node import gating_checks
failed = {}
for entry, hosts in json.load(sys.stdin):
    for facts in hosts:
        try:
            gating_checks.findings([entry], gating_checks.host_facts(facts, {}))
        except Exception as problem:
            failed[entry["id"]] = repr(problem)
print(json.dumps(failed))
"""


def hosts(check_id):
    """The facts of all cases of a check."""
    content = yaml.load((CASES / f"{check_id.replace('-', '_')}.yml").read_text(), yaml.CSafeLoader)
    for status in ("pass", "fail", "skip", "unknown"):
        group = content.get(status, [])
        for case in group if isinstance(group, list) else [group]:
            facts = {**content.get("given", {}), **case}
            facts.pop("finding", None)
            facts.pop("site", None)
            yield facts


IMPORT_ONLY = {"nccl-conf-line-malformed", "nccl-set-twice"}
"""Their module imports one that reads the table of NCCL's variables, and they do not use it: refused with the others."""


def test_checks_that_cannot_gate_are_those_failing_on_a_node(program):
    """Every check, its cases judged as a node does it: by the program alone, in a bare interpreter."""
    every = [check for check in checks.load_all() if check.accept is not None]
    given = json.dumps([(gating_checks.entry(check), list(hosts(check.id))) for check in every], default=str)
    command = [PYTHON, "-I", "-S", "-B", "-c", JUDGE, str(program)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    failed = json.loads(done.stdout)
    assert {name: failed.get(name) for name in failed if "ModuleNotFoundError" not in failed[name]} == {}
    assert set(failed) | IMPORT_ONLY == {check.id for check in every if gateable.lacks(check.id)}
    assert {"nvlink-down", "gpu-pcie-width-reduced", "nccl-setting-unsafe"} <= set(failed)
    assert "gpu-lost" not in failed


@pytest.mark.parametrize("name", sorted(profile.shipped()))
def test_every_check_that_gates_by_itself_can(name):
    gates = profile.resolve(profile.named([name])).gates
    assert "gpu-lost" in gates
    assert {each: gateable.lacks(each) for each in gates if gateable.lacks(each)} == {}


REFUSED = "line 3: nvlink-down cannot gate: it needs yaml (for nodetune.data), which the guard's program on a node does not have; let it not gate (gate: false)"


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.yml"
    path.write_text("checks:\n  gpu-lost: {gate: true}\n  nvlink-down: {gate: true}\n")
    return path


def test_validate_refuses_a_gate_that_no_node_could_judge(site):
    command = [sys.executable, "-m", "nodetune", "profile", "validate", str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"nodetune: {site} {REFUSED}\n")
    site.write_text("checks:\n  nvlink-down: {gate: false}\n  ksm-on: {gate: true}\n")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_an_install_refuses_a_gate_that_no_node_could_judge(site):
    choice = nodes.Guarding(("training",), site_file.read(site))
    node = nodes.GuardedNode(HostResult("n01", "ok", facts=HostFacts("n01", {})))
    with pytest.raises(FileError, match="nvlink-down cannot gate"):
        nodes.new_policies([node], choice, PolicySettings())


def test_a_module_missing_in_the_program_is_seen_by_its_package():
    tree = ast.parse("from nodetune.foundation import file_io\nfrom nodetune.foundation import no_module_but_a_name")
    assert list(gateable._imported(tree, {"nodetune.foundation"})) == [
        "nodetune.foundation.file_io",
        "nodetune.foundation",
    ]
