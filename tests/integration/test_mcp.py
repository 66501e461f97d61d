"""nodetune mcp, asked by the official client library over standard input and output."""

import asyncio
import hashlib
import os
import shutil
import sys

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
    assert {each["host"]: each["state"] for each in audit["hosts"]} == {"h100-x2": "ok", "h200-x4": "ok"}
    clock = next(each for each in findings if each["check"] == "clock-unsynchronized")
    assert clock["host"] == "h200-x4"
    assert "chrony" in clock["manual"]
    assert {each["severity"] for each in findings} <= {"medium", "high", "critical"}
    assert {each["host"] for each in every} == {"h100-x2", "h200-x4"}
    assert "info" in {each["severity"] for each in every}
    assert "chronyc tracking" in explained
    assert all("swap" in str(each) for each in found["checks"])
    assert plan["schema"] == "nodetune.plan/1"
    assert fleet["schema"] == one["schema"] == "nodetune.history/1"
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
    assert {each["host"] for each in told(findings)} == {"n1"}
    assert "2 fact files" in told(collected)
    assert "127.0.0" not in str(other.content)
    assert [each["host"] for each in told(audit)["hosts"]] == ["n1", "n2"]
    assert content(known_hosts) == before
    (collect,) = (tool for tool in tools if tool.name == "collect")
    assert collect.annotations.read_only_hint and collect.annotations.open_world_hint
    assert not collect.input_schema.get("properties"), "no argument names a host"


def test_a_limit_of_the_operator_holds_for_the_agent(known_hosts):
    (audit,) = ask_live(known_hosts, ("audit", {}), more=("-l", "n1"))
    assert [each["host"] for each in told(audit)["hosts"]] == ["n1"]


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
