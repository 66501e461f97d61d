"""Everything that the checks of one area must pass, in under a minute: make check AREA=memory.

Lint of the area's files, its cases, their witnesses, its contract tests, and what its checks find on the synthetic machines.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import yaml

from nodetune import checks
from nodetune.audit.selection import Selection
from nodetune.facts import document
from tests.data.synthetic import build

ROOT = Path(__file__).parents[1]
TESTS = ("tests/unit/checks/test_cases.py", "tests/unit/audit/test_witnesses.py", "tests/unit/test_contract.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    areas = sorted({module.split(".")[-2] for module in checks.catalogue().values()})
    parser.add_argument("area", choices=areas, metavar="AREA", help=", ".join(areas))
    area = parser.parse_args().area
    own = [name for name, module in checks.catalogue().items() if module.split(".")[-2] == area]
    lint(area)
    run("pytest", "-n0", "-q", *TESTS, "-k", " or ".join([*own, *(name.replace("-", "_") for name in own)]))
    differing = [line for name in build.MODULES for line in machine(name, area, own)]
    if differing:
        sys.exit("\n".join(differing))


def lint(area):
    run("ruff", "check", "-q", f"nodetune/checks/{area}")
    run("ruff", "format", "-q", "--check", f"nodetune/checks/{area}")


def run(module, *words):
    if subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, check=False).returncode:
        sys.exit(f"make check: {module} found what is above")


def machine(name, area, own):
    """Print what the area's checks find on a machine. Returns what is wrong with that, a line each."""
    selection = Selection(select=(area,))
    facts = facts_of(name, selection)
    forgotten = build.forgotten(name, facts)
    found = build.findings(facts, selection)
    for check, seen in found["failing"].items():
        print(f"{name}: {check}: {seen}")
    recorded = yaml.safe_load((build.HERE / f"{name}.findings.yml").read_text())["failing"]
    known = {check: seen for check, seen in recorded.items() if check in own}
    unknown = [f"{name}: {check} has no verdict" for check in found["unknown"]]
    changed = [] if known == found["failing"] else [f"{name}: findings differ from the recorded ones: make write"]
    return forgotten or unknown or changed


def facts_of(name, selection):
    """The recorded facts, or, where these checks need others, those that the collectors read now."""
    recorded = document.load(build.HERE / f"{name}.json")
    return recorded if selection.facts() <= set(recorded.facts) else build.collect(name, selection)


if __name__ == "__main__":
    main()
