"""Hosts of one kind are judged by what differs from the first of them."""

from nodetune.api.model import Check, HostFacts, Remedy, Value
from nodetune.api.predicates import Equals
from nodetune.audit.evaluate import PreparedCheck
from nodetune.audit.reused_verdicts import MAX_KEPT, CheckEvaluator

OFF, ON = Value(value=False), Value(value=True)


def judge():
    """A judge with one check, which reads `a.size` only where `a.on` is true; and the hosts that it judged."""
    judged = []

    def observe(facts):
        judged.append(facts)
        return facts["a.size"] if facts["a.on"] else 0

    check = Check(Equals(0), "low", Remedy("manual"), observe=observe, needs=("a.on", "a.size"), id="a-large")
    return CheckEvaluator([PreparedCheck(check)]), judged


def host(on, size, **about):
    return HostFacts("n", {"a.on": on, **({} if size is None else {"a.size": Value(size)})}, about)


def test_a_fact_that_was_not_read_makes_no_check_judge_again():
    found, judged = judge()
    assert [found.audit(host(OFF, size))[0].status for size in (1, 2, None)] == ["pass"] * 3
    assert len(judged) == 1


def test_a_fact_that_was_read_and_is_another_one_does():
    found, judged = judge()
    told = [found.audit(host(on, size))[0].status for on, size in ((ON, 0), (ON, 5), (ON, None), (OFF, 7))]
    assert told == ["pass", "fail", "unknown", "pass"]
    assert len(judged) == 4


def test_a_fact_that_only_the_first_host_lacks_is_read():
    found, _ = judge()
    assert [found.audit(host(ON, size))[0].status for size in (None, 5)] == ["unknown", "fail"]


def test_why_facts_are_missing_is_told_of_each_host():
    found, _ = judge()
    told = [found.audit(host(ON, None, failed=why))[0].reason for why in ({}, {"a": "hung"}, {"a": "died"}, {})]
    assert "hung" in told[1]
    assert "died" in told[2]
    assert told[0] == told[3] != told[1]


def test_kinds_are_forgotten_where_there_are_too_many():
    found, _ = judge()
    for number in range(3 * MAX_KEPT):
        facts = {"a.on": ON, "a.size": Value(number), "cpu.model": Value(f"model {number}")}
        assert found.audit(HostFacts("n", facts))[0].status == ("fail" if number else "pass")
    assert len(found._models) <= MAX_KEPT
