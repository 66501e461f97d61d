"""Which checks a site may let gate: those that the program on a node can judge with nothing but itself."""

import json
import subprocess
from pathlib import Path

import yaml

from nodetune import checks
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


def test_the_program_on_a_node_can_judge_every_check(program):
    """Every check, its cases judged as a node does it: by the program alone, in a bare interpreter."""
    every = [check for check in checks.load_all() if check.accept is not None]
    given = json.dumps([(gating_checks.entry(check), list(hosts(check.id))) for check in every], default=str)
    command = [PYTHON, "-I", "-S", "-B", "-c", JUDGE, str(program)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {}
    assert {"nvlink-down", "gpu-pcie-width-reduced", "nccl-setting-unsafe"} <= {check.id for check in every}
