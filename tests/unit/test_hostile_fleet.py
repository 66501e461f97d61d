"""Hundreds of hosts that send anything: no command crashes, no other host's result is lost, and nothing of it reaches a reader."""

import json
import random
import re
from contextlib import suppress
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from nodetune.api.model import HostFacts
from nodetune.audit import hosts as audit_hosts
from nodetune.facts import document, machine
from nodetune.facts.saved import Rules
from nodetune.guard.deploy import status
from nodetune.guard.deploy.nodes import GuardedNode
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.hosts.target import UnreachableError
from nodetune.provision import decide, resolve
from nodetune.provision import lock as locks
from nodetune.provision.facts import HostRefusedError
from nodetune.remediation.ansible import runner
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.verify import evaluate, figures
from tests.support.commandline import nodetune
from tests.support.hostile import ESCAPES, EVIL, MACHINE, Done, hostile, result, wrong
from tests.support.provisioning import lock, site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOSTS = 500


@pytest.fixture(scope="module", params=[120, pytest.param(HOSTS, marks=pytest.mark.full)])
def fleet(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(request.param):
        (folder / f"bad{number}.json").write_bytes(hostile(number))
    for number in range(5):
        (folder / f"good{number}.json").write_text(json.dumps({**MACHINE, "host": f"good{number}"}))
    return folder


@pytest.fixture
def command(tmp_path):
    def run(*words):
        return Done(tmp_path, words).harmless(0, 1, 3)

    return run


def by_host(text):
    return {each["name"]: each for each in json.loads(text)["hosts"]}


def test_every_host_is_audited_and_the_good_ones_as_if_alone(fleet, command):
    alone = by_host(command("audit", "--facts", fleet / "good0.json", "--format", "json").text)["good0"]
    found = by_host(command("audit", "--facts", fleet, "--format", "json").text)
    assert expected(fleet) <= found.keys()
    assert len(found) >= len(expected(fleet))
    for number in range(5):
        assert [each for each in found[f"good{number}"]["findings"] if each in alone["findings"]] == alone["findings"]


def expected(fleet):
    """The hosts that must be named: all but those that give another name."""
    return {path.stem for path in fleet.iterdir()} - {f"bad{number}" for number in range(6, HOSTS, 20)}


REPORTS = {
    "text": lambda text: "not reached" in text,
    "html": lambda text: text.count("<script") == text.count("</script") and "<script>planted" not in text,
    "markdown": lambda text: not re.search("<script|<img|<h1>planted|href=.javascript", MarkdownIt().render(text)),
    "junit": lambda text: ElementTree.fromstring(text).find(".//planted") is None,
    "prometheus": lambda text: not re.search(r"^(?!#|nodetune_)\S", text, re.MULTILINE),
}


@pytest.mark.parametrize("name", REPORTS)
def test_no_report_carries_what_hosts_planted(fleet, command, name):
    assert REPORTS[name](command("audit", "--facts", fleet, "--format", name).text)


def test_plans_and_exports_carry_nothing_that_a_host_made_up(fleet, command, tmp_path):
    found = json.loads(command("plan", "--facts", fleet, "--format", "json", "--export", tmp_path / "export").text)
    lost = {each["name"] for each in found["not_reached"]}
    planned = {host for each in found["work"] for host in each["hosts"]}
    left = {each["host"] for each in found["steps"]} | {host for each in found["by_hand"] for host in each["hosts"]}
    assert expected(fleet) <= lost | planned | left
    assert {f"good{number}" for number in range(5)} <= planned
    for path in (tmp_path / "export/files").rglob("*"):
        if path.is_file():
            effective = [line for line in path.read_text().splitlines() if not line.startswith("#")]
            assert not [line for line in effective if "planted" in line or "\x1b" in line], path


def test_a_dry_run_of_apply_loses_no_good_host(fleet, tmp_path, monkeypatch):
    """All of `apply --dry-run` but the logins and Ansible's processes: tests/integration has those."""
    names = sorted(path.stem for path in fleet.iterdir())
    monkeypatch.setattr(
        audit_hosts, "collect", lambda targets, *_: ((each, probed(fleet, each.name), 0.1) for each in targets)
    )
    monkeypatch.setattr(runner, "_run", play)
    done = nodetune("apply", "-i", ",".join(names), "--dry-run", "--format", "json", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    told = json.loads(done.stdout)
    worked_on, lost = by_host(done.stdout), {each["name"] for each in told["not_reached"]}
    assert worked_on["good0"]["diffs"] == ["--- /etc/x\n+++ /etc/x\n@@ -0,0 +1 @@\n+good\n"] * 3
    assert {f"good{number}" for number in range(5)} <= worked_on.keys()
    assert len(worked_on) > len(names) / 2
    unsure = {host for each in told["unknown"] for host in each["hosts"]}  # and perhaps nothing to do
    assert len(worked_on.keys() | lost | unsure) > len(names) * 0.9
    shown = nodetune("apply", "-i", ",".join(names), "--dry-run", cwd=tmp_path)
    assert "Nothing was changed." in shown.stdout
    assert not ESCAPES.search(done.stdout + done.stderr + shown.stdout + shown.stderr)
    assert list(tmp_path.rglob("planted")) == []


def probed(fleet, name):
    """What a session makes of an answer of this host."""
    try:
        return document.read((fleet / f"{name}.json").read_bytes(), "the answer", name)
    except document.FactsError as problem:
        return UnreachableError("bad answer", str(problem))


def play(_place, _arguments, reader, _seconds, on_event):
    """Let modules of all hosts return something."""
    rng = random.Random(4)
    for alias, name in reader._names.items():
        for _ in range(3):
            found = (
                {"diff": {"before_header": "/etc/x", "after_header": "/etc/x", "before": "", "after": "good\n"}}
                if name.startswith("good")
                else result(rng)
            )
            on_event(reader.read({"event": "runner_on_ok", "event_data": {"host": alias, "task": "t", "res": found}}))
    reader.read({"event": "playbook_on_stats", "event_data": {"processed": dict.fromkeys(reader._names, 1)}})
    return ""


def test_a_diff_of_hostile_facts_shows_no_escape(fleet, command):
    readable = [path for path in sorted(fleet.glob("bad*")) if Rules().read(path, path.stem).facts]
    for path in readable[::25]:
        command("diff", fleet / "good0.json", path)


def test_no_host_keeps_guard_provision_or_verify_from_the_others(fleet, tmp_path):
    """What judges one host at a time, in this process."""
    rules, given = Rules(), site(tmp_path)
    read = [rules.read(path, path.stem) for path in sorted(fleet.iterdir())]
    assert sum(each.facts is not None for each in read) > len(read) / 2
    for each in read:
        if each.facts:
            assert isinstance(GuardedNode(each).policy, dict)
            assert status.of(SlurmNode(f"NodeName={each.host} State=IDLE"), each).guard
            machine.of(each.facts).data()
            with suppress(HostRefusedError):
                decide.decide(each.facts, given, lock())


def test_no_record_of_a_host_ends_the_judging_of_others():
    rng, every = random.Random(1), []
    good = {
        "measurement": "memory",
        "metric": "local",
        "subject": "node0",
        "unit": "GB/s",
        "samples": [1.0],
        "about": {},
    }
    for number in range(HOSTS):
        bad = {**good, rng.choice(sorted(good)): wrong(rng), "about": {rng.choice(EVIL): wrong(rng)}}
        every += [figures.read(f"bad{number}", bad), figures.read(f"bad{number}", wrong(rng))]
    every.append(figures.read("good", good))
    known = HostFacts("good", document.from_data(MACHINE).facts)
    machines = {each.host: machine.of(HostFacts(each.host, known.facts)) for each in every}
    found = [each for each in every if isinstance(each, figures.Figure)]
    judged = evaluate.judge(found, machines)
    assert "good" in {each.figure.host for each in judged}
    assert json.dumps([each.figure.about for each in judged])
    assert "\x1b" not in repr(every)


def test_the_plan_of_all_files_is_text_only(fleet, command):
    told = command("plan", "--facts", fleet, "--files").text
    assert " steps on " in told
    assert not [line for line in told.splitlines() if line.startswith(("planted", "kernel.core_pattern"))]


def test_hostile_hosts_never_change_what_a_lock_file_means(tmp_path):
    rng, path = random.Random(2), tmp_path / "lock.yml"
    (system, versions), believed = next(iter(lock().items())), 0
    asked = SimpleNamespace(host="bad", locked_as=system, parts={"driver": None})
    good = {"driver": versions.driver, "versions": dict(versions.packages)}
    for number in range(HOSTS):
        told = {**good, rng.choice(sorted(good)): wrong(rng)} if number % 2 else _one_version_wrong(rng, good)
        answer = resolve._answer(asked, Outcome("bad", results=(Event("bad", "Versions", result=told),)))
        found = resolve.gathered([answer]).found
        believed += bool(found)
        assert answer.problem.isprintable()
        if found:
            locks.write(path, found)
            assert locks.read(path) == found
    assert believed < HOSTS / 2


def _one_version_wrong(rng, good):
    name, version = rng.choice(sorted(good["versions"])), rng.choice((*EVIL, "1.0: 2", "0x10", "no", "1e3", ""))
    return {**good, "versions": {**good["versions"], rng.choice((name, rng.choice(EVIL))): version}}


def test_no_claimed_age_ends_the_reading_of_saved_facts(tmp_path):
    rng = random.Random(3)
    for number in range(HOSTS):
        about = {rng.choice(("every", "collected", "time", "nodetune")): wrong(rng)}
        path = tmp_path / f"odd{number}.json"
        try:
            path.write_text(json.dumps({**MACHINE, "host": path.stem, **about, "about": about}))
        except ValueError:  # too large a number for JSON's writer
            continue
        found = Rules().read(path, path.stem)
        assert (found.facts is None) == (found.state != "ok") == bool(found.message)
