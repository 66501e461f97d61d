"""An audit that keeps facts asks no host twice, and continues where it was stopped."""

import json
import os
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from nodetune.api.model import HostFacts, Value
from nodetune.cli.main import group
from nodetune.facts import document as facts_document
from nodetune.facts.cache import FactCache
from nodetune.hosts.target import Target


@pytest.fixture
def here(tmp_path):
    """An inventory of three names for this machine, and of one that cannot be reached."""
    hosts = {name: {"ansible_connection": "local"} for name in ("a1", "a2", "a3")} | {"gone": {"ansible_host": "-x"}}
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps({"all": {"hosts": hosts}}))
    return path


def audited(inventory, folder, *more):
    words = [
        "audit",
        "-i",
        str(inventory),
        "-s",
        "max-map-count-low",
        "--cache",
        str(folder),
        "--format",
        "json",
        *more,
    ]
    done = CliRunner().invoke(group, words)
    assert done.exit_code in (0, 1, 3), done.output
    return {each["name"]: each for each in json.loads(done.stdout)["hosts"]}


def changed(path, **told):
    """Make a kept file say something that the host does not, so that its use shows."""
    document = json.loads(path.read_text())
    document["facts"]["sysctl.vm.max_map_count"] = {"value": 7}
    document["about"].update(told)
    path.write_text(json.dumps(document))


def observed(host):
    return [each["observed"] for each in host["findings"] if each["check"] == "max-map-count-low"]


def test_only_hosts_without_cached_facts_are_probed(here, tmp_path):
    folder = tmp_path / "kept" / "deep"
    first = audited(here, folder)
    assert sorted(each.name for each in folder.glob("*.json")) == ["a1.json", "a2.json", "a3.json"]
    changed(folder / "a1.json")
    (folder / "a2.json").unlink()
    second = audited(here, folder)
    assert observed(second["a1"]) == ["7"], "kept facts were used"
    assert observed(second["a2"]) == observed(first["a2"]) != ["7"], "what was missing was asked for"
    assert (folder / "a2.json").exists()
    assert second["gone"]["state"] == first["gone"]["state"] == "unresolved"


@pytest.mark.parametrize(("age", "used"), [(30, True), (3700, False)])
def test_facts_that_are_too_old_are_asked_for_again(here, tmp_path, age, used):
    folder = tmp_path / "kept"
    audited(here, folder)
    changed(folder / "a1.json", time=time.time() - age)
    assert (observed(audited(here, folder)["a1"]) == ["7"]) is used


def test_how_old_they_may_be_is_the_users_to_say(here, tmp_path):
    folder = tmp_path / "kept"
    audited(here, folder)
    changed(folder / "a1.json", time=time.time() - 30)
    assert observed(audited(here, folder, "--max-age", "20s")["a1"]) != ["7"]


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"facts": {}}'])
def test_a_torn_file_is_asked_for_again(here, tmp_path, torn):
    folder = tmp_path / "kept"
    audited(here, folder)
    (folder / "a1.json").write_text(torn)
    assert audited(here, folder)["a1"]["state"] == "ok"
    assert facts_document.load(folder / "a1.json").facts


def keeping(folder, host, facts, names, **target):
    """A folder that holds these facts of a host."""
    kept = FactCache(folder, 3600)
    kept.keep(Target(host, **target), HostFacts(host, dict.fromkeys(facts, Value(1)), {"time": time.time()}), names)
    return kept


def test_facts_that_hold_less_than_is_asked_for_now_do_not_do(tmp_path):
    kept = keeping(tmp_path, "n1", ["a.b", "a.c"], ["a.b", "a.c"])
    assert kept.known(Target("n1"), ["a.b"])
    assert kept.known(Target("n1"), ["a.b", "c.d"]) is None


def test_facts_do_not_stand_for_a_host_whose_variables_are_bad(tmp_path):
    kept = keeping(tmp_path, "n1", ["a.b"], ["a.b"])
    assert kept.known(Target("n1", problem="ansible_port: 'abc' is no number"), ["a.b"]) is None


def test_a_cached_unknown_fact_is_not_probed_again(tmp_path):
    kept = keeping(tmp_path, "n1", ["a.b"], ["gpu.names", "a.b", "a.c"])
    assert kept.known(Target("n1"), ["a.b", "gpu.names"])
    assert kept.known(Target("n1"), ["gpu.names"])


def test_hosts_with_one_file_name_do_not_share_cached_facts(tmp_path):
    kept = keeping(tmp_path, "a/b", ["a.b"], ["a.b"])
    assert kept.known(Target("a/b"), ["a.b"]).host == "a/b"
    assert kept.known(Target("a_b"), ["a.b"]) is None


@pytest.mark.parametrize("other", [{"become": True}, {"user": "root"}, {"become": True, "become_user": "x"}])
def test_what_another_user_has_read_is_asked_for_again(tmp_path, other):
    kept = keeping(tmp_path, "n1", ["a.b"], ["a.b"])
    assert kept.known(Target("n1"), ["a.b"])
    assert kept.known(Target("n1", **other), ["a.b"]) is None
    assert keeping(tmp_path, "n1", ["a.b"], ["a.b"], **other).known(Target("n1"), ["a.b"]) is None


def test_what_came_on_another_way_is_asked_for_again(tmp_path):
    keeping(tmp_path, "n1", ["a.b"], ["a.b"])
    assert FactCache(tmp_path, 3600, via="slurm").known(Target("n1"), ["a.b"]) is None


def test_a_narrower_audit_uses_the_cached_facts_of_a_full_one(here, tmp_path):
    folder = tmp_path / "kept"
    words = ["audit", "-i", str(here), "-l", "a1", "--no-compare", "--cache", str(folder), "--fail-on", "never"]
    CliRunner().invoke(group, words)
    whole = (folder / "a1.json").read_text()
    narrow = CliRunner().invoke(group, [*words, "-s", "memory"])
    assert narrow.exit_code in (0, 3), narrow.output
    assert "a1 was not probed again: facts cached" in narrow.stderr
    assert (folder / "a1.json").read_text() == whole


def test_a_folder_that_cannot_be_written_is_one_line(here, tmp_path):
    if os.geteuid() == 0:
        (tmp_path / "file").write_text("")
        folder = tmp_path / "file" / "kept"
    else:
        folder = tmp_path / "closed" / "kept"
        folder.parent.mkdir(mode=0o500)
    words = [sys.executable, "-m", "nodetune", "audit", "-i", here, "--cache", folder]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "kept" in done.stderr
    assert "file" in done.stderr or "closed" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--facts", "h200-x4", "--cache", "x"], "--cache"), (["--max-age", "1h"], "needs --facts or --cache")],
)
def test_options_that_contradict_are_told(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(group, ["audit", *words])
    assert (done.exit_code, says in done.stderr) == (2, True)
