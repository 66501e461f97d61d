"""Which kind a leaf is: the patterns of a fact say what kinds.txt says of each leaf."""

import json
import re
from pathlib import Path

import pytest

from nodetune.history import kinds

TEXT = Path(kinds.__file__).with_name("kinds.txt").read_text()
RULES = [line.split() for line in TEXT.splitlines() if line[:1].isalpha()]
RECORDED = Path(kinds.__file__).parents[1] / "facts/recorded"


def plain(leaf):
    """The first line of kinds.txt that matches, found glob by glob."""
    for kind, *globs in RULES:
        for glob in globs if kind != "lifetime" else ():
            middle = ".*".join(map(re.escape, glob.strip("*").split("*")))
            begin, end = ".*" if glob[0] == "*" else "", ".*" if glob[-1] == "*" else "(/.*)?"
            if re.fullmatch(begin + middle + end, leaf, re.DOTALL):
                return kind
    return "setting"


def leaves_of(value, leaf):
    yield leaf
    for key, below in value.items() if isinstance(value, dict) else ():
        yield from leaves_of(below, f"{leaf}/{key}")


def recorded():
    for file in sorted(RECORDED.glob("*.json")):
        for name, fact in json.loads(file.read_text())["facts"].items():
            yield name, list(leaves_of(fact.get("each", fact), name))


MADE = [
    ["gpu.temperature/GPU0", "gpu.temperature/GPU0/pid"],
    ["gpu.temperature_margin/GPU0"],
    ["sysctl.vm.x", "sysctl.vm.x/pid\nmore", "sysctl.vm.x/more\npid", "sysctl.vm.x/my_serial_1"],
    ["memory.freely/a", "pci.aer/0000:01:00.0/correctable/BadTLP", "pci.aer/x/pid"],
    ["services.a/restarts", "services.a/pid", "services.a/pid/serial", "services.a/sub"],
    ["/pid", "/x"],
]


@pytest.mark.parametrize("leaves", MADE)
def test_the_kind_of_a_leaf_is_that_of_the_first_line_that_matches(leaves):
    assert [kinds.of(leaf) for leaf in leaves] == [plain(leaf) for leaf in leaves]


def test_the_kinds_of_recorded_leaves_are_those_of_kinds_txt():
    for name, leaves in recorded():
        assert {kinds.of(leaf) for leaf in leaves} == {plain(leaf) for leaf in leaves}, name


def test_passing_comes_first_so_that_all_below_what_is_passing_is():
    found = [kind for kind, *_ in RULES]
    assert found == sorted(found, key=lambda kind: kind != "passing")
