"""A value that is not what a fact of its name may be is unread, with the reason; everything real passes unchanged."""

import json
from pathlib import Path

import pytest
import yaml

from nodetune import checks
from nodetune.api.model import Absent, Each, Unread, Value
from nodetune.audit import evaluate, gpu_users
from nodetune.audit.selection import ALWAYS, Selection
from nodetune.facts import catalogue, document, machine
from nodetune.facts.shapes import MAX_MEMBERS, MAX_TEXT_LENGTH
from nodetune.foundation import paths
from nodetune.guard.deploy import gres, nodes
from nodetune.provision import decide, package_data

DATA = Path(__file__).parents[2] / "data"
MACHINES = sorted([*(DATA / "synthetic").glob("*.json"), *paths.bundled("facts/recorded").glob("*.json")])
CASES = sorted((DATA / "cases").glob("*.yml"))


def unread_by_the_gate(facts):
    """Fact name → what the gate has against it."""
    found = {}
    for name, fact in document.from_data({"facts": facts}).facts.items():
        for each in fact.of.values() if isinstance(fact, Each) else [fact]:
            if isinstance(each, Unread) and each.reason.startswith("not understood"):
                found[name] = each.reason
    return found


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_every_fact_of_a_machine_passes(path):
    assert unread_by_the_gate(json.loads(path.read_text())["facts"]) == {}


def case_facts(path):
    content = yaml.safe_load(path.read_text())
    for status, groups in content.items():
        for case in groups if isinstance(groups, list) else [groups]:
            if status not in ("unknown", "exception"):
                yield {name: fact for name, fact in case.items() if name not in ("finding", "site")}


def test_every_fact_of_the_checks_cases_passes():
    assert len(CASES) > 100
    assert {path.stem: bad for path in CASES for facts in case_facts(path) if (bad := unread_by_the_gate(facts))} == {}


def read_somewhere():
    """The names of all facts that anything reads."""
    names = Selection().facts() | set(ALWAYS) | set(machine.FACTS) | set(gres.FACTS) | set(nodes.FACTS)
    names |= set(decide.FACTS) | package_data.facts() | set(gpu_users.FACTS)
    return names | evaluate.required_facts(checks.load_all())


def test_every_fact_that_anything_reads_has_a_shape():
    asked_for_only = {name for name in read_somewhere() if name.startswith("packages.like.")}
    assert sorted(name for name in read_somewhere() - asked_for_only if catalogue.shape_of(name) is None) == []


def test_every_fact_of_the_catalogue_is_of_a_family_of_the_probe_and_its_shape_is_understood():
    families = {path.stem for path in (paths.PACKAGE / "probe").glob("*.py")}
    assert "sysctl.*" in catalogue.names()
    for name in catalogue.names():
        assert catalogue.wanted_of(name).shape, name
        assert name.partition(".")[0] in families, name


@pytest.mark.parametrize("notation", ["[text", "{a text}", "text]", "[text 2 3]", "{a: text", "(text"])
def test_a_line_that_is_no_shape_is_refused(notation):
    with pytest.raises((ValueError, IndexError)):
        catalogue.Notation(notation).read()


WRONG = {
    "gpu.count": ("8", "a whole number from 0 to 256 is expected"),
    "cpu.count": (True, "a whole number from 0 to 65536 is expected"),
    "numa.node_count": (2.0, "a whole number from 0 to 65536 is expected"),
    "memory.total_kb": (10**400, "a whole number from 0 to 9223372036854775808 is expected"),
    "cpu.model": (["x"], "a text is expected"),
    "cpu.online": ("0" * (MAX_TEXT_LENGTH + 1), "a text of at most 65536 characters is expected"),
    "host.virtual": ("no", "true or false is expected"),
    "pci.gpus": ("0000:19:00.0", "a list of texts is expected"),
    "modules.loaded": (["x"] * (MAX_MEMBERS + 1), "a list of at most 10000 texts is expected"),
    "sysctl.net.ipv4.tcp_rmem": ([4096, 131072], "a list of 3 numbers is expected"),
    "sysctl.vm.swappiness": ({}, "a whole number or a text or a list of numbers is expected"),
    "net.links": ({"eth0": {"mtu": "1500"}}, "mtu: a whole number is expected"),
    "own.files": ({"/etc/sysctl.d/zz-nodetune.conf": "[" * 200}, "a file with data of at most 100 levels is expected"),
    "persisted.sysctl.vm.swappiness": ({"value": 1}, "file is missing"),
    "packages.device_users": ([[1]], "a list of 2 values is expected"),
}


@pytest.mark.parametrize(("name", "value", "reason"), [(name, *each) for name, each in WRONG.items()], ids=WRONG)
def test_a_wrong_value_is_unread_and_says_what_is_expected(name, value, reason):
    given = document.from_data({"facts": {name: {"value": value}, "gpu.nvml": {"value": "1"}}}).facts
    assert given == {name: Unread(f"not understood: {reason}"), "gpu.nvml": Value("1")}


def test_of_several_subjects_only_the_wrong_one_is_unread():
    given = {"GPU0": {"value": 40}, "GPU1": {"value": "warm"}, "GPU2": {"absent": "x"}}
    found = document.from_data({"facts": {"gpu.temperature": {"each": given}}}).facts["gpu.temperature"]
    assert found == Each(
        {"GPU0": Value(40), "GPU1": Unread("not understood: a whole number is expected"), "GPU2": Absent("x")}
    )


def test_one_value_does_not_stand_for_that_of_each_subject():
    found = document.from_data({"facts": {"gpu.names": {"value": "A"}, "gpu.count": {"each": {}}}}).facts
    assert {name: fact.reason for name, fact in found.items()} == {
        "gpu.names": "not understood: expected one value for each subject",
        "gpu.count": "not understood: expected one value, not one for each subject",
    }


def test_more_subjects_than_any_host_has_are_unread():
    subjects = {f"GPU{number}": {"value": "x"} for number in range(257)}
    found = document.from_data({"facts": {"gpu.names": {"each": subjects}}}).facts
    assert found == {"gpu.names": Unread("not understood: expected at most 256 subjects")}


def test_a_fact_of_a_newer_probe_passes_within_bounds():
    given = {"later.thing": [1, {"a": None}], "gpu.later": {"x": [True, 1.5]}, "later.many": [0] * (MAX_MEMBERS + 1)}
    found = document.from_data({"facts": {name: {"value": value} for name, value in given.items()}}).facts
    assert found["later.thing"] == Value(given["later.thing"])
    assert found["gpu.later"] == Value(given["gpu.later"])
    assert found["later.many"] == Unread("not understood: a list of at most 10000 values is expected")


def test_a_newer_probe_may_say_more_in_a_known_fact():
    link = {"mtu": 1500, "colour": ["red", {"of": 1}]}
    found = document.from_data({"facts": {"net.links": {"value": {"eth0": link}}}}).facts
    assert found == {"net.links": Value({"eth0": link})}


def test_equal_lines_of_many_hosts_are_judged_once(monkeypatch):
    judged = []
    admitted = document.admitted
    monkeypatch.setattr(document, "admitted", lambda name, fact: judged.append(name) or admitted(name, fact))
    text = json.dumps({"facts": {"cpu.model": {"value": "judged once"}}}).encode()
    assert document.read(text, "a") == document.read(text, "b")
    assert judged == ["cpu.model"]


@pytest.mark.parametrize("word", ["N/A", "[N/A]", "[Not Supported]", "Not Supported"])
def test_what_nvidia_smi_prints_for_no_value_is_absent(word):
    one = {"GPU0": {"value": word}, "GPU1": {"value": "enabled"}}
    facts = document.from_data({"facts": {"gpu.persistence_mode": {"each": one}}}).facts
    found = facts["gpu.persistence_mode"].of
    assert isinstance(found["GPU0"], Absent)
    assert found["GPU1"] == Value("enabled")


def test_a_state_in_the_words_of_another_tool_is_unread():
    found = document.admitted("gpu.recovery_action", Each({"GPU0": Value("None"), "GPU1": Value("reset the GPU")})).of
    assert found["GPU0"].reason == "not understood: a lower-case word is expected"
    assert found["GPU1"] == Value("reset the GPU")
