"""`nodetune status`: from a history, from documents and from both; its exit codes, and what it says to mistakes."""

import json
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest

from nodetune.api import conclusion_json
from nodetune.api.conclusion import Examined, Group
from nodetune.foundation import json_document
from nodetune.history.history import History
from tests.support.standing import DAY, HOSTS, LONG, concluded, looked, planted

NOW = int(time.time())


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    place = tmp_path_factory.mktemp("status") / "fleet.db"
    sets, done = planted(NOW)
    with History(str(place)) as history:
        for each in sets:
            history.conclude(each)
        history.act(done)
    return place


def document(path, *sets, **more):
    found = sum(sets, Examined())
    path.write_text(
        json_document.text({**json_document.head("nodetune.audit/1"), **conclusion_json.members(found), **more})
    )
    return path


def run(*words, code=0, cwd=None):
    command = [sys.executable, "-m", "nodetune", "status", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code == 2 else done.stdout


def test_a_history_is_told_with_its_exit_code(known):
    told = run("--history", known, code=1)
    assert "1 stale" in told
    assert "gpu-lost" in told


def test_hosts_of_an_inventory_that_nobody_examined_are_counted(known):
    told = run("--history", known, "-i", "n[02,13]", code=1)
    assert told.startswith("2 hosts: 1 examined in 7 days, 0 stale, 1 never")
    assert "n03" not in told
    assert "nodetune audit -i 'n[02,13]' -l n13" in told


def test_a_limit_picks_hosts_without_an_inventory(known):
    assert run("--history", known, "-l", "n0[2-3]", code=1).startswith("2 hosts:")


def test_only_hosts_that_nobody_knows_end_with_3(known):
    run("--history", known, "n12", code=1)
    run("--history", known, "n16", code=3)
    run("--history", known, "n13", "-i", "n13", code=3)
    run("--history", known, "n07", code=0)
    run("--history", known, "n07", "--fail-on", "low", code=1)


def test_documents_are_told_without_a_history_in_the_order_of_their_times(tmp_path):
    bad = Examined((concluded("audit", "n1", NOW - DAY),), (looked("audit", "n1", NOW - DAY),))
    good = Examined((), (looked("audit", "n1", NOW),))
    before, after = document(tmp_path / "before.json", bad), document(tmp_path / "after.json", good)
    run(before, code=1)
    assert run(after, before).startswith("1 host: 1 examined in 7 days, 0 stale, 0 never; nothing open")


def test_a_document_that_is_newer_than_the_history_closes_what_it_proves_good(known, tmp_path):
    good = document(tmp_path / "audit.json", Examined((), (looked("audit", "n02", NOW),)))
    assert "swap-on" in run("--history", known, "n02", code=1)
    assert "nothing open" in run("--history", known, "n02", good)
    assert "swap-on" in run("--history", known, "n02", code=1), "the history stays as it is"


def test_every_format_is_written_to_a_file_of_its_ending(known, tmp_path):
    for ending in ("json", "html", "csv", "xml", "md", "prom", "txt"):
        run("--history", known, "-o", tmp_path / f"status.{ending}", code=1)
        assert (tmp_path / f"status.{ending}").stat().st_size > 500
    assert json.loads((tmp_path / "status.json").read_text())["schema"] == "nodetune.status/1"


def test_an_empty_history_is_told_and_ends_with_0(tmp_path):
    History(str(tmp_path / "new.db")).close()
    assert run("--history", tmp_path / "new.db") == "0 hosts: 0 examined in 7 days, 0 stale, 0 never; nothing open\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give --history FILE|URL"),
        (["--history", "none.db"], "no such history"),
        (["none.json"], "none.json: no such file"),
        (["n1", "n2", "none.json"], "give one HOST"),
        (["broken.json"], "broken.json: not JSON"),
        (["list.json"], "not a JSON document of nodetune"),
        (["old.json"], "nodetune.audit/1 of nodetune 0.1.0 has no conclusions: make it again with this version"),
        (["facts.json"], "facts conclude nothing: nodetune audit --facts facts.json"),
        (["other.json"], "other.json: conclusions of another form"),
        (["severity.json"], "severity.json: awful is not one of"),
        (["next.json"], "next.json: conclusions of another form: not a conclusion"),
        (["hosts.json"], "hosts.json: conclusions of another form: not a conclusion"),
        (["future.json"], "future.json: conclusions of another form: not a conclusion"),
        (["time.json"], "time.json: conclusions of another form: not a time"),
        (["n03", "good.json"], "nobody knows a host n03: did you mean n02?"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, words, said):
    head = json_document.head("nodetune.audit/1")
    wrong = {"fault": "x", "source": "audit", "hosts": ["n1"], "severity": "awful", "statement": LONG}
    right = {**wrong, "severity": "high"}
    looks = [{"source": "audit", "edition": "0.2.0", "hosts": {"n1": 1 << 60}, "judged": []}]
    texts = {
        "next": json.dumps(
            {**head, "conclusions": [{**right, "next": {"verb": "plan", "words": [["x"]]}}], "examined": []}
        ),
        "hosts": json.dumps({**head, "conclusions": [{**right, "hosts": "n1"}], "examined": []}),
        "future": json.dumps({**head, "conclusions": [{**right, "at": 1 << 60}], "examined": []}),
        "time": json.dumps({**head, "examined": looks}),
        "broken": "{",
        "list": "[]",
        "old": json.dumps({**head, "nodetune": "0.1.0", "hosts": []}),
        "facts": json.dumps({**head, "facts": {}}),
        "other": json.dumps({**head, "conclusions": [{"fault": 7}], "examined": []}),
        "severity": json.dumps({**head, "conclusions": [wrong], "examined": []}),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text)
    document(tmp_path / "good.json", Examined((), (looked("audit", "n02", NOW),)))
    told = run(*words, code=2, cwd=tmp_path)
    assert said in told
    assert len(told.splitlines()) == 1
    assert len(told) < 600


def test_an_unknown_host_of_a_history_gets_a_near_name(known):
    assert "nobody knows a host n020: did you mean" in run("--history", known, "n020", code=2)


def test_a_comparison_in_which_no_host_agrees_is_read_again():
    found = concluded("audit", "n1", NOW, group=Group("all", 2, 0))
    assert conclusion_json.from_data(json.loads(json.dumps(conclusion_json.data(found)))) == found


def test_an_agents_answer_is_bounded_and_says_what_it_leaves_out(known):
    tools = pytest.importorskip("mcp") and __import__("nodetune.cli.agent_tools", fromlist=["Sources"])
    sources = tools.Sources("none", history=str(known))
    found = sources.status(severity="info", limit=3)
    assert found["summary"]["hosts"] == len(HOSTS) - 1, "nobody knows n13"
    assert len(found["lines"]) == 3
    assert found["left_out"] > 5
    assert len(json.dumps(sources.status(severity="info", limit=10_000))) <= tools.MAX_BYTES
    assert sources.status("n02")["lines"][0]["hosts"] == "n02"
    for host in ("../facts.json", "x.json", "/etc/passwd"):
        with pytest.raises(tools.ToolError):
            sources.status(host)


def test_a_huge_answer_for_an_agent_is_cut_to_its_bound():
    tools = pytest.importorskip("mcp") and __import__("nodetune.cli.agent_tools", fromlist=["Sources"])
    line = {"severity": "high", "statement": LONG, "hosts": [f"a{3 * n}b" for n in range(2000)], "next": LONG}
    unread = [{"source": "audit", "reason": LONG, "faults": ["x"] * 999, "hosts": ["n1"]}] * 30
    told = {"summary": {}, "unknown": unread, "lines": [line] * 300, "hosts": [], "actions": [{"reason": LONG}] * 30}
    found = tools._short(told, "low", 500)
    assert len(json.dumps(found)) <= tools.MAX_BYTES
    assert found["left_out"] == 300 - len(found["lines"])
    assert found["lines"]


def test_agents_hear_that_the_history_is_damaged(known, tmp_path):
    tools = pytest.importorskip("mcp") and __import__("nodetune.cli.agent_tools", fromlist=["Sources"])
    place = tmp_path / "fleet.db"
    shutil.copy(known, place)
    with sqlite3.connect(place) as db:
        db.execute("UPDATE conclusion SET content = '{' WHERE fault = 'gpu-lost'")
    db.close()
    assert "rows of conclusion" in tools.Sources("none", history=str(place)).status()["warning"]
    assert "warning" not in tools.Sources("none", history=str(known)).status()


def test_a_damaged_history_never_says_that_all_is_well(known, tmp_path):
    shutil.copy(known, tmp_path / "fleet.db")
    with sqlite3.connect(tmp_path / "fleet.db") as db:
        db.execute("UPDATE conclusion SET content = '{'")
    db.close()
    run("--history", known, "n02", "--fail-on", "critical", code=0)
    run("--history", tmp_path / "fleet.db", "n02", "--fail-on", "critical", code=3)
