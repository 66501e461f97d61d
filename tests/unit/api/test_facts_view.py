"""The facts that a check may read, and how the missing ones are told."""

import pytest

from nodetune.api.facts_view import FactAbsentError, FactsView, FactUndeclaredError, FactUnreadError
from nodetune.api.model import Absent, Each, HostFacts, Unread, Value

FACTS = HostFacts(
    "gpu1",
    {
        "a.value": Value(7),
        "a.absent": Absent("no such thing"),
        "a.unread": Unread("permission denied"),
        "a.each": Each({"GPU0": Value(1), "GPU1": Absent("not supported")}),
        "a.torn": Each({"GPU0": Value(1), "GPU1": Unread("timed out")}),
    },
)
VIEW = FactsView(FACTS, FACTS.facts)


def test_a_value_is_read_whatever_the_default():
    assert VIEW["a.value"] == VIEW.get("a.value", 1) == VIEW.readable("a.value", 1) == 7
    assert VIEW["a.each"] == {"GPU0": 1}, "without the absent ones"


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("a.absent", FactAbsentError, "^no such thing$"),
        ("a.unread", FactUnreadError, "^a.unread: permission denied$"),
        ("a.torn", FactUnreadError, "^a.torn of GPU1: timed out$"),
    ],
)
def test_a_fact_without_a_value_raises_its_reason_each_time(name, error, why):
    for _ in range(2):
        with pytest.raises(error, match=why):
            VIEW[name]
    assert VIEW.readable(name, 1) == 1


def test_a_default_is_for_absent_facts_only():
    assert VIEW.get("a.absent", 1) == 1
    assert VIEW.get("a.absent") is None
    with pytest.raises(FactUnreadError):
        VIEW.get("a.unread", 1)


def test_only_declared_facts_are_given_and_those_that_were_read_are_known():
    view = FactsView(FACTS, ["a.value", "a.each"])
    with pytest.raises(FactUndeclaredError, match="the fact a.absent is not among the declared needs"):
        view["a.absent"]
    assert view["a.value"] == 7
    assert list(view.read) == ["a.value"]
