"""How a check says what it wants, where that is worked out for each host."""

import pytest

from nodetune import checks
from nodetune.api import predicates
from nodetune.audit import explain
from nodetune.config import profile


def every():
    shipped = [profile.resolve(profile.named([name])).checks for name in profile.shipped() if name != "base"]
    return [*checks.load_all(), *(check for found in shipped for check in found)]


def test_every_value_from_facts_has_a_formula():
    named = {fact for check in every() for fact in predicates.refs(check.accept) | predicates.refs(check.set)}
    assert sorted(named - set(explain.FORMULAS)) == []


def test_no_formula_is_left_over():
    named = {fact for check in every() for fact in predicates.refs(check.accept) | predicates.refs(check.set)}
    assert sorted(set(explain.FORMULAS) - named) == []


@pytest.mark.parametrize(
    ("check", "wanted", "fix"),
    [
        (
            "min-free-kbytes-low",
            "at least 1/2048 of RAM, 132 MiB to 1 GiB",
            "sysctl vm.min_free_kbytes = (1/2048 of RAM, 132 MiB to 1 GiB), persisted in /etc/sysctl.d/zz-nodetune.conf",
        ),
        ("swappiness-high", "at most 10", "sysctl vm.swappiness = 10, persisted in"),
        ("dirty-limit-high", "at most 16 GiB", "sysctl vm.dirty_bytes = 8589934592 (8 GiB), persisted in"),
        ("docker-memlock-limited", "unlimited", 'default-ulimits = {"memlock": {"Name": "memlock", "Hard": -1'),
    ],
)
def test_what_is_wanted_and_written_is_said_in_words(check, wanted, fix):
    found = {each.id: each for each in profile.resolve(profile.named(["training"])).checks}[check]
    assert explain.wanted(found) == wanted
    assert fix in explain.fix(found)
