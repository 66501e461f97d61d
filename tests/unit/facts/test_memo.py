"""What is alike on many hosts is read, judged and kept once, and what differs never passes for it."""

import copy
import json
from dataclasses import replace

import pytest

from nodetune import checks
from nodetune.api.model import HostFacts, Value
from nodetune.audit import auditor, evaluate
from nodetune.audit.selection import Selection
from nodetune.facts import document as facts_document
from nodetune.facts import memo
from nodetune.facts.memo import InternPool, ResultCache, identities
from nodetune.foundation import paths
from nodetune.onhost import layout

H200 = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())


@pytest.fixture(autouse=True)
def nothing_read_before(monkeypatch):
    """What other tests of this process read are no hosts of the fleet: they may have taken the places of a fact."""
    monkeypatch.setattr(facts_document, "FORMS", InternPool())


def host(name="n1", **changes):
    document = copy.deepcopy(H200)
    document["facts"].update({key.replace("__", "."): fact for key, fact in changes.items()})
    return facts_document.from_data(document, name)


def test_equal_facts_are_one_object_in_any_layout():
    written = facts_document.dump(facts_document.from_data(H200)).encode()
    first, second, third = (
        host("a"),
        facts_document.read(written, "here"),
        facts_document.read(json.dumps(H200).encode(), "here"),
    )
    assert first.facts.keys() == H200["facts"].keys()
    assert all(first.facts[name] is second.facts[name] is third.facts[name] for name in first.facts)


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, 1.0), ("1", 1), ([1], ["1"]), (0.0, -0.0)])
def test_what_python_calls_equal_but_json_does_not_stays_apart(one, other):
    read = [
        facts_document.from_data({"facts": {"once.test": {"value": each}}}).facts["once.test"].value
        for each in (one, other)
    ]
    assert [repr(each) for each in read] == [repr(one), repr(other)]


def test_a_fact_that_differs_on_every_host_stops_being_kept():
    forms = InternPool()
    for number in range(3 * memo.FORMS):
        assert forms.of(f"serial {number}", lambda line: ("serial", Value(line))) == (
            "serial",
            Value(f"serial {number}"),
        )
    assert len(forms._known) == memo.FORMS


def test_values_count_for_what_they_take_not_for_their_text():
    forms = InternPool()
    for number in range(memo.FORMS):
        line = f"{number}{'[],' * 20_000}"
        forms.of(line, lambda line: ("many", Value(line)))
    assert sum(line.count(",") + line.count("[") for line in forms._known) * memo.VALUE <= memo.MAX_BYTES


def test_a_hostile_host_cannot_fill_memory_with_what_is_kept():
    forms = InternPool()
    for number in range(3 * memo.NAMES):
        assert forms.of(f"name{number}", lambda line: (line, Value(1))) == (f"name{number}", Value(1))
        assert len(forms._forms) <= memo.NAMES
        assert len(forms._known) <= memo.NAMES
    for number in range(3 * memo.MAX_BYTES // memo.MAX_LINE):
        line = f"{number:064}" * (memo.MAX_LINE // 64)
        forms.of(line, lambda _, name=f"name{number % 100}": (name, Value(0)))
        assert sum(map(len, forms._known)) <= memo.MAX_BYTES
    forms.of("x" * (memo.MAX_LINE + 1), lambda _: ("long", Value(0)))
    assert "long" not in forms._forms


POISON = {
    "names that nobody asked for": lambda facts: facts | {f"x.{number}": {"value": 1} for number in range(memo.NAMES)},
    "another form of all": lambda facts: {name: {"value": "other"} for name in facts},
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
def test_interning_recovers_after_a_hostile_host(poison):
    data = {**H200, "facts": poison(H200["facts"])}
    facts_document.read(layout.text(data).encode(), "here")
    written = layout.text(H200).encode()
    first, second = facts_document.read(written, "here"), facts_document.read(written, "here")
    assert first.facts.keys() == H200["facts"].keys()
    assert all(first.facts[name] is second.facts[name] for name in first.facts)


def test_a_host_cannot_fill_the_pool_by_repeating_a_fact():
    lines = layout.BETWEEN.join(f'  "once.many": {{"value": {number}}}' for number in range(2 * memo.FORMS))
    facts_document.read(f'{{\n "host": "x",{layout.FACTS}{lines}{layout.END}'.encode(), "here")
    one, other = (
        facts_document.read(layout.text({"host": "y", "facts": {"once.many": {"value": -1}}}).encode(), "h")
        for _ in "ab"
    )
    assert one.facts["once.many"] is other.facts["once.many"]


def test_equal_facts_are_judged_once_and_others_again():
    worked = []

    def work(seen):
        worked.append(seen.host)
        return seen.facts["a.b"].value

    shared, verdicts = Value(1), ResultCache(["a.b"])
    hosts = [HostFacts("n1", {"a.b": shared}), HostFacts("n2", {"a.b": shared}), HostFacts("n3", {"a.b": Value(2)})]
    assert [verdicts.of(each, identities(each), work) for each in hosts] == [1, 1, 2]
    assert worked == ["n1", "n3"]


@pytest.mark.parametrize("length", [memo.MAX_LINE // 4, 2 * memo.MAX_LINE])
def test_results_keep_no_more_facts_than_the_pool_may(monkeypatch, length):
    """Also of facts that are too long for the pool: 64 lying hosts made the results of checks keep all that they sent."""
    monkeypatch.setattr(memo, "MAX_BYTES", 4 * length)
    results = [ResultCache([f"a.b{number}"]) for number in range(3)]
    for host_number in range(20):
        texts = json.dumps([f"{host_number:08192}"] * (length // 8192))
        lines = [f'  "a.b{number}": {{"value": {texts}}}' for number in range(3)]
        facts = dict(facts_document.FORMS.of(line, facts_document._fact_of_line) for line in lines)
        seen = HostFacts(f"n{host_number}", facts)
        for each in results:
            assert each.of(seen, identities(seen), lambda seen: seen.host) == seen.host
    kept = [fact for each in results for facts, _ in each._known.values() for fact in facts]
    assert 0 < sum(sum(map(len, fact.value)) for fact in kept) <= memo.MAX_BYTES


def test_a_missing_fact_is_never_taken_for_another_hosts():
    check = next(check for check in checks.load_all() if check.id == "open-files-total-low")
    ready = evaluate.PreparedCheck(check)
    reasons = ["not collected", *(f"reader {number} failed" for number in range(3)), "not collected"]
    failed = [{"sysctl": why} if "failed" in why else {} for why in reasons]
    told = [ready.judge(HostFacts("n", {}, {"failed": each})).reason for each in failed]
    assert all(why in text for why, text in zip(reasons, told, strict=True))
    assert "failed" not in told[0] + told[-1]


def test_equal_values_of_different_types_are_judged_apart():
    seen = {"number": 1, "fraction": 1.0, "flag": True}
    check = next(check for check in checks.load_all() if check.id == "gpu-pcie-replays-frequent")
    ready = evaluate.PreparedCheck(replace(check, observe=lambda _: seen, applies=(), needs=()))
    assert ready.judge(HostFacts("n", {})).observed == "flag: yes"  # the only one that is no number


def test_many_hosts_are_judged_as_each_alone():
    def others(number):
        return {"sysctl__vm__swappiness": {"value": number % 7}, "host__uptime_s": {"value": 90_000.5 + number}}

    together = auditor.Auditor(Selection(), "2026-01-01")
    hosts = [host(f"n{number}", **others(number)) for number in range(150)]
    found = [together.result(facts) for facts in hosts]
    alone = [auditor.Auditor(Selection(), "2026-01-01").result(facts) for facts in hosts[::10]]
    assert found[::10] == alone


def test_equal_findings_from_different_facts_are_one_object():
    judge = auditor.Auditor(Selection(select=("min-free-kbytes-excessive",)))
    hosts = (host(memory__total_kb={"value": total}) for total in (2_100_000_000, 2_100_000_001))
    (one,), (other,) = (judge.result(each).findings for each in hosts)
    assert one is other and one.status in ("pass", "fail")
