"""Which kind a leaf is: the shortcuts for many leaves say what kinds.txt says of each."""

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
    ("gpu.temperature", ["gpu.temperature/GPU0", "gpu.temperature/GPU0/pid"]),
    ("gpu.temperature_margin", ["gpu.temperature_margin/GPU0"]),
    ("sysctl.vm.x", ["sysctl.vm.x", "sysctl.vm.x/pid\nmore", "sysctl.vm.x/more\npid"]),
    ("sysctl.vm.x", ["sysctl.vm.x", "sysctl.vm.x/my_serial_1"]),
    ("memory.freely", ["memory.freely/a"]),
    ("pci.aer", ["pci.aer/0000:01:00.0/correctable/BadTLP", "pci.aer/x/pid"]),
    ("services.a", ["services.a/restarts", "services.a/pid", "services.a/sub"]),
    ("", ["/pid", "/x"]),
]


@pytest.mark.parametrize(("name", "leaves"), MADE)
def test_the_kind_of_a_leaf_is_that_of_the_first_line_that_matches(name, leaves):
    assert [kinds.of(leaf) for leaf in leaves] == [plain(leaf) for leaf in leaves]
    assert kinds.of_all(name, leaves) in ("", *{kinds.of(leaf) for leaf in leaves})


def test_one_kind_for_all_leaves_of_a_recorded_fact_is_that_of_each():
    asked = list(recorded())
    for name, leaves in asked:
        found = {plain(leaf) for leaf in leaves}
        assert {kinds.of(leaf) for leaf in leaves} == found, name
        assert kinds.of_all(name, leaves) in ("", *found), name
        assert not kinds.of_all(name, leaves) or len(found) == 1, name
    assert sum(bool(kinds.of_all(*each)) for each in asked) > len(asked) / 2
