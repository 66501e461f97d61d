"""nodetune mcp, asked by the official client library over standard input and output."""

import asyncio
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from nodetune.foundation import paths
from tests.support.commandline import nodetune

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
RECORDED = paths.bundled("facts/recorded")
HOSTILE = (
    "--yes",
    "-i127.0.0.1",
    "--inventory=127.0.0.1",
    "; touch hacked",
    "$(touch hacked)",
    "../../etc/passwd",
    "*",
    "",
)


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mcp") / "facts"
    shutil.copytree(RECORDED, folder)
    nodetune("audit", "--facts", folder, "--history", folder.parent / "fleet.db", "--format", "json")
    return folder


def content(folder):
    """All files below a folder, with what is in them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def ask(facts, *calls, more=("--history", "../fleet.db"), listed=None):
    """The answers to calls of one session: tool and arguments. The server has no network."""
    from mcp import Client, StdioServerParameters  # here: importing it takes a second

    async def talk():
        command = ["--map-root-user", "--net", sys.executable, "-m", "nodetune", "mcp", "--facts", ".", *more]
        env = {**os.environ, "NODETUNE_INVENTORY": "127.0.0.1", "NODETUNE_HISTORY": str(facts / "made.db")}
        started = StdioServerParameters(command="unshare", args=command, cwd=facts, env=env)
        async with Client(started) as client:
            if listed is not None:
                listed.extend((await client.list_tools()).tools)
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(talk())


def told(answer):
    assert not answer.is_error, answer.content
    found = answer.structured_content
    return found["result"] if set(found) == {"result"} else found


def test_an_agent_gets_what_the_command_line_says(facts):
    calls = (
        ("audit", {}),
        ("findings", {"host": "h200-x4"}),
        ("findings", {"severity": "info"}),
        ("explain", {"check": "clock-unsynchronized"}),
        ("checks", {"words": "swap"}),
        ("plan", {}),
        ("changes", {}),
        ("changes", {"host": "h200-x4"}),
        ("status", {"host": "h200-x4", "severity": "info", "limit": 2}),
    )
    audit, findings, every, explained, found, plan, fleet, one, status = map(told, ask(facts, *calls))
    assert {each["hosts"]: each["state"] for each in audit["hosts"]} == {
        "h100-x2,h200-x4": "ok"
    }  # their counts are equal
    clock = next(each for each in findings["findings"] if each["check"] == "clock-unsynchronized")
    assert clock["hosts"] == "h200-x4"
    assert "chrony" in clock["manual"]
    assert {each["severity"] for each in findings["findings"]} <= {"medium", "high", "critical"}
    assert "h100-x2,h200-x4" in {each["hosts"] for each in every["findings"]}
    assert every["judged"] == 2
    assert "info" in {each["severity"] for each in every["findings"]}
    assert "chronyc tracking" in explained
    assert all("swap" in str(each) for each in found["checks"])
    assert {"steps", "manual", "unknown", "not_judged"} <= set(plan)
    assert all(each["disruption"] and each["count"] for each in plan["steps"])
    assert fleet["hosts"] == "h100-x2,h200-x4"
    assert one["host"] == "h200-x4"
    assert status["summary"]["hosts"] == 1
    assert len(status["lines"]) == 2
    assert status["left_out"] > 0


def test_every_tool_says_that_it_only_reads(facts):
    tools = []
    ask(facts, listed=tools)
    assert [tool.name for tool in tools] == ["audit", "findings", "explain", "checks", "plan", "changes", "status"]
    assert all(tool.annotations.read_only_hint and not tool.annotations.open_world_hint for tool in tools)
    assert all(tool.description for tool in tools)


def test_no_argument_makes_it_change_or_read_anything_else(facts):
    before = content(facts.parent)
    names = {"explain": "check", "checks": "words", "changes": "host", "findings": "host", "status": "host"}
    answers = ask(facts, *((tool, {name: text}) for tool, name in names.items() for text in HOSTILE))
    assert content(facts.parent) == before
    text = str([answer.content for answer in answers])
    assert "root:x:0" not in text
    assert "Traceback" not in text


ABOUT_HOSTS = ("audit", "findings", "plan", "changes", "status")


@pytest.mark.parametrize("host", ["nope", "gpu[1-9]", "x*", "gpus", "h200-x4,nope", "@/etc/passwd", "~.*nope"])
def test_an_unknown_host_is_an_error_that_names_the_known_ones(facts, host):
    calls = [(tool, {"host": host}) for tool in ABOUT_HOSTS] + [("explain", {"check": "swap-on", "host": host})]
    for (tool, _), found in zip(calls, ask(facts, *calls), strict=True):
        (content,) = found.content
        assert found.is_error, tool
        assert len(content.text.splitlines()) == 1
        assert "no host matches" in content.text
        assert "the 2 hosts are h100-x2,h200-x4" in content.text


def test_some_hosts_of_many_are_named_by_a_set_or_a_pattern(facts):
    for found in ask(facts, *(("findings", {"host": host}) for host in ("h*", "h100-x2,h200-x4", "h200*"))):
        assert told(found)["judged"] >= 1


WRONG = (
    ("findings", {"severity": "awful"}, "severity: give one of info, low, medium, high, critical"),
    ("findings", {"check": "nope"}, "no check matches nope"),
    ("plan", {"check": "nowhere-*"}, "no check matches nowhere-*"),
    ("explain", {"check": "swap-onn"}, "did you mean swap-on"),
    ("explain", {}, "check is missing"),
    ("checks", {"words": "nonsense"}, "no check of this profile matches"),
    ("findings", {"hosts": "h200-x4"}, "no argument 'hosts': there are host, check"),
    ("findings", {"host": "a\0b"}, "host: give a text"),
    ("findings", {"host": "a\nb"}, "host: give a text"),
    ("explain", {"check": "x" * 200_000}, "check: give a text of at most 200 characters"),
    ("findings", {"host": 5}, "host: give a text"),
    ("findings", {"host": None}, "host: give a text"),
    ("audit", {"host": ["h200-x4"]}, "host: give a text"),
    ("status", {"limit": "many"}, "limit: give a whole number from 1 to"),
    ("status", {"limit": True}, "limit: give a whole number from 1 to"),
    ("status", {"limit": -1}, "limit: give a whole number from 1 to"),
    ("status", {"limit": 2.5}, "limit: give a whole number from 1 to"),
    ("changes", {"limit": 10**400}, "limit: give a whole number from 1 to"),
    ("apply\n", {}, "no tool 'apply"),
)


def test_a_wrong_argument_is_one_plain_line(facts):
    for (tool, _, text), found in zip(WRONG, ask(facts, *(each[:2] for each in WRONG)), strict=True):
        (content,) = found.content
        assert found.is_error, tool
        assert text in content.text
        assert len(content.text.splitlines()) == 1
        assert len(content.text) < 400
        assert content.text.isprintable()


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    """1000 untuned machines, each with a value of its own, and a history of them."""
    folder = tmp_path_factory.mktemp("thousand") / "facts"
    folder.mkdir()
    machine = json.loads(Path("tests/data/synthetic/hgx-h200-untuned.json").read_text("utf-8"))
    for number in range(1, 1001):
        host = f"gpu{number:04d}{'x' * (number % 3)}"
        machine["host"], machine["facts"]["sysctl.vm.swappiness"] = host, {"value": str(number % 100)}
        (folder / f"{host}.json").write_text(json.dumps(machine))
    nodetune("audit", "--facts", folder, "--history", folder.parent / "fleet.db", "--format", "csv")
    return folder


def test_every_answer_about_a_thousand_untuned_hosts_is_small_and_says_what_it_leaves_out(thousand):
    every = {"severity": "info", "limit": 1000}
    calls = [(tool, every if tool != "changes" else {"limit": 1000}) for tool in ABOUT_HOSTS]
    calls += [(tool, {**each, "host": "gpu0999"}) for tool, each in calls]
    calls += [("explain", {"check": "*"}), ("checks", {"limit": 1000}), ("findings", {**every, "status": "unknown"})]
    calls += [("explain", {"check": "swappiness-high"}), ("findings", {"host": "gpu00*"})]
    for (tool, arguments), found in zip(calls, ask(thousand, *calls), strict=True):
        assert not found.is_error, found.content
        assert len(found.model_dump_json()) <= 20_000, (tool, arguments)
        data = found.structured_content
        if data.get("left_out"):
            assert "left out" in data["more"]
    found, every = (told(each) for each in ask(thousand, ("findings", {}), ("findings", {"severity": "info"})))
    assert found["judged"] == 1000
    assert all(each["count"] == 1000 for each in found["findings"] if each["check"] != "swappiness-high")
    assert len(every["findings"]) + every["left_out"] > 30


def test_a_mistake_is_told_and_the_next_call_is_answered(facts):
    calls = (
        ("explain", {"check": "nothing"}),
        ("findings", {"severity": "awful"}),
        ("apply", {}),
        ("changes", {}),
        ("checks", {"words": "swap"}),
    )

    unknown, severity, apply, history, found = (str(each.content) for each in ask(facts, *calls, more=()))
    assert "unknown check 'nothing'" in unknown
    assert "severity" in severity
    assert "apply" in apply
    assert "no history here" in history
    assert "swap" in found


@pytest.fixture
def known_hosts(farm, tmp_path):
    """A folder whose inventory has both hosts of the farm, and settings and variables that name another."""
    hosts = "".join(f"n{number} ansible_host={each}\n" for number, each in enumerate(farm.good, 1))
    login = f"ansible_port={farm.port}\nansible_user={farm.user}\nansible_ssh_private_key_file={farm.key}\n"
    more = f"ansible_ssh_common_args=-F {farm.config}\nansible_python_interpreter={sys.executable}\n"
    (tmp_path / "hosts.ini").write_text(f"{hosts}[all:vars]\n{login}{more}")
    (tmp_path / "nodetune.toml").write_text('inventory = "127.0.0.99"\nlimit = "n2"\n')
    return tmp_path


def ask_live(folder, *calls, more=(), listed=None):
    from mcp import Client, StdioServerParameters  # here: importing it takes a second

    async def talk():
        words = ["-m", "nodetune", "mcp", "-i", "hosts.ini", *more]
        env = {**os.environ, "NODETUNE_INVENTORY": "127.0.0.98"}
        async with Client(StdioServerParameters(command=sys.executable, args=words, cwd=folder, env=env)) as client:
            if listed is not None:
                listed.extend((await client.list_tools()).tools)
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(talk())


def test_an_agent_asks_about_allowed_hosts_and_no_others(known_hosts):
    before, tools = content(known_hosts), []
    calls = (("findings", {"host": "n1"}), ("collect", {}), ("collect", {"hosts": "127.0.0.97"}), ("audit", {}))
    findings, collected, other, audit = ask_live(known_hosts, *calls, listed=tools)
    assert {each["hosts"] for each in told(findings)["findings"]} == {"n1"}
    assert "2 fact files" in told(collected)
    assert "127.0.0" not in str(other.content)
    assert sum(each["count"] for each in told(audit)["hosts"]) == 2
    assert content(known_hosts) == before
    (collect,) = (tool for tool in tools if tool.name == "collect")
    assert collect.annotations.read_only_hint and collect.annotations.open_world_hint
    assert not collect.input_schema.get("properties"), "no argument names a host"


def test_a_limit_of_the_operator_holds_for_the_agent(known_hosts):
    (audit,) = ask_live(known_hosts, ("audit", {}), more=("-l", "n1"))
    assert [each["hosts"] for each in told(audit)["hosts"]] == ["n1"]


def test_allowed_hosts_that_are_not_reached_are_named(known_hosts):
    (known_hosts / "hosts.ini").write_text("lost ansible_host=127.0.0.1 ansible_port=1\n")
    first, again = ask_live(known_hosts, ("audit", {}), ("collect", {}))
    for each in (first, again):
        assert each.is_error
        assert "lost: refused: 127.0.0.1 port 1 refused the connection" in str(each.content)


@pytest.mark.parametrize("words", [(), ("--facts", "h200-x4", "-i", "x"), ("--facts", "h200-x4", "-b")])
def test_facts_and_hosts_exclude_each_other(words):
    done = nodetune("mcp", *words)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "-i" in line


def test_an_inventory_that_is_not_there_ends_the_server_at_once(tmp_path):
    done = nodetune("mcp", "-i", "nowhere.yml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such file or folder: nowhere.yml" in done.stderr
