"""500 hosts that send anything: no command crashes, no other host's result is lost, and nothing of it reaches a reader."""

import json
import random
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from nodetune.api.model import HostFacts
from nodetune.facts import document
from nodetune.facts.saved import Rules
from nodetune.guard.deploy import status
from nodetune.guard.deploy.nodes import GuardedNode
from nodetune.guard.node.scontrol import Node
from nodetune.provision import decide, resolve
from nodetune.provision import lock as locks
from nodetune.provision.facts import HostRefusedError
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.verify import evaluate, figures, machine
from tests.support.provisioning import lock, site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DATA = Path(__file__).parents[1] / "data/synthetic"
MACHINE = json.loads((DATA / "hgx-h200-untuned.json").read_text())
NAMES = sorted(MACHINE["facts"])
HOSTS = 500
MOST_KIB = 500_000
SCRIPT = "<script>planted()</script>"
EVIL = (
    "\x1b]0;planted\x07\x1b[2J",
    SCRIPT,
    "'><img src=x onerror=planted()>",
    "$(touch planted)`touch planted`; touch planted #",
    "{{ lookup('pipe', 'touch planted') }}",
    'x"} 1\nplanted 1\n# ',
    "]]></failure><planted/>",
    "| a | [x](javascript:planted()) |\n# planted",
    "\u202edetnalp\u202c\u200b\ufeff",
    "\ud800",
    "../../planted",
    "=cmd|' /C planted'!A0",
)
OWN = ("/etc/sysctl.d/zz-nodetune.conf", "/etc/default/grub.d/zz-nodetune.cfg", "/etc/nodetune/gpu.conf")


def deep(depth):
    return json.loads("[" * depth + "]" * depth)


def wrong(rng):
    """One of everything: types, sizes, depths, texts."""
    evil = rng.choice(EVIL)
    kinds = (
        lambda: rng.choice((None, True, -1, 1 << 70, 1.5, 10**400, [], {}, "", 0)),
        lambda: evil,
        lambda: {evil: evil},
        lambda: [evil] * rng.choice((1, 50, 20_000)),
        lambda: evil * rng.choice((1, 5_000)),
        lambda: deep(rng.choice((3, 90, 150, 300))),
        lambda: {f"{evil}{number}": {evil: number} for number in range(rng.choice((3, 2_000)))},
    )
    return rng.choice(kinds)()


def planted(value, rng):
    """The value with one part of it replaced: it still passes for what it is."""
    if isinstance(value, dict) and value:
        name = rng.choice(sorted(value))
        return {**value, name: planted(value[name], rng)}
    if isinstance(value, list) and value:
        return [planted(value[0], rng), *value[1:]]
    return rng.choice(EVIL) if isinstance(value, str) else wrong(rng)


def hostile(number):
    """A fact document as bytes, different for each number."""
    rng = random.Random(number)
    facts = dict(MACHINE["facts"])
    for name in rng.sample(NAMES, rng.choice((1, 5, 40))):
        ((kind, content),) = facts[name].items()
        ways = (
            {kind: planted(content, rng)},
            {"value": wrong(rng)},
            {"each": {rng.choice(EVIL): {"value": wrong(rng)}}},
        )
        facts[name] = rng.choice((*ways, {"absent": rng.choice(EVIL)}, {"unread": rng.choice(EVIL)}))
    settings = {rng.choice(EVIL): rng.choice(EVIL), "vm.swappiness": wrong(rng)}
    facts["own.files"] = {"value": {rng.choice(OWN): f"# settings: {json.dumps(settings)}\n", "/x": rng.choice(EVIL)}}
    data = json.dumps({**MACHINE, "host": f"bad{number}", "facts": facts}).encode("ascii")
    match number % 20:
        case 1:
            return data[: len(data) // 2]
        case 2:
            return data.decode().encode("utf-16")
        case 3:
            return b"\xff\xfe\x00" + data
        case 4:
            return b"[" * 200_000
        case 5:
            return json.dumps(
                {**MACHINE, "host": f"bad{number}", "facts": {**facts, rng.choice(NAMES): wrong(rng)}}
            ).encode("ascii")
        case 6:
            return json.dumps({**MACHINE, "host": rng.choice(EVIL), "facts": wrong(rng)}).encode("ascii")
    return data


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(HOSTS):
        (folder / f"bad{number}.json").write_bytes(hostile(number))
    for number in range(5):
        (folder / f"good{number}.json").write_text(json.dumps({**MACHINE, "host": f"good{number}"}))
    return folder


MEASURED = """
import os, subprocess, sys
started = subprocess.Popen(sys.argv[2:])
_, how, used = os.wait4(started.pid, 0)
open(sys.argv[1], "w").write(f"{os.waitstatus_to_exitcode(how)} {used.ru_maxrss}")
"""
"""Starts a command from a small process: Linux counts the memory of the one that starts it until it has begun (vfork)."""


class Done:
    def __init__(self, folder, words):
        self.out, self.errors, used = folder / "out", folder / "errors", folder / "used"
        with self.out.open("wb") as out, self.errors.open("wb") as errors:
            measured = [sys.executable, "-I", "-S", "-c", MEASURED, str(used)]
            command = [*measured, sys.executable, "-m", "nodetune", *map(str, words)]
            subprocess.run(command, stdout=out, stderr=errors, cwd=folder, check=True)
        self.code, self.kib = map(int, used.read_text().split())
        self.text, self.told = self.out.read_bytes().decode(), self.errors.read_bytes().decode()


@pytest.fixture
def command(tmp_path):
    def run(*words):
        done = Done(tmp_path, words)
        assert "Traceback" not in done.told, done.told[-3000:]
        assert done.code in (0, 1, 3), (done.code, done.told[-500:])
        assert done.kib < MOST_KIB
        for text in (done.text, done.told):
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u200b\ufeff]", text)
        assert list(tmp_path.rglob("planted")) == []
        return done

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


def test_a_diff_of_hostile_facts_shows_no_escape(fleet, command):
    readable = [path for path in sorted(fleet.glob("bad*")) if Rules().read(path, path.stem).facts]
    for path in readable[::60]:
        command("diff", fleet / "good0.json", path)


def test_no_host_keeps_guard_provision_or_verify_from_the_others(fleet, tmp_path):
    """What judges one host at a time, in this process."""
    rules, given = Rules(), site(tmp_path)
    read = [rules.read(path, path.stem) for path in sorted(fleet.iterdir())]
    assert sum(each.facts is not None for each in read) > HOSTS / 2
    for result in read:
        if result.facts:
            assert isinstance(GuardedNode(result).policy, dict)
            assert status.of(Node(f"NodeName={result.host} State=IDLE"), result).guard
            machine.of(result.facts).data()
            with suppress(HostRefusedError):
                decide.decide(result.facts, given, lock())


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
