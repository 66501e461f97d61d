"""--failed-of: a command works on the hosts again that failed in a saved result, and on no others."""

import json

import pytest

from nodetune.cli import failed_hosts as failed
from nodetune.cli.failed_hosts import FailedError
from nodetune.foundation import paths
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.inventory import selection
from nodetune.hosts.patterns import InventoryError
from tests.support.commandline import nodetune


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the facts of three hosts; the file of gpu3 cannot be read."""
    monkeypatch.chdir(tmp_path)
    facts = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
    (tmp_path / "facts").mkdir()
    for name in ("gpu1", "gpu2"):
        (tmp_path / "facts" / f"{name}.json").write_text(json.dumps({**facts, "host": name}))
    (tmp_path / "facts" / "gpu3.json").write_text("[")
    return tmp_path


def saved(here, document, name="before.json"):
    (here / name).write_text(json.dumps(document))
    return here / name


def host(name, *findings, state="ok"):
    return {"name": name, "state": state, "findings": [{"status": status, "severity": how} for status, how in findings]}


def test_an_audit_names_hosts_with_findings_and_unreached_ones(here):
    hosts = [
        host("good", ("pass", "high"), ("fail", "low"), ("unknown", "high"), ("waived", "critical")),
        host("bad", ("fail", "medium")),
        host("gone", state="refused"),
    ]
    assert failed.hosts(saved(here, {"schema": "nodetune.audit/1", "hosts": hosts})) == {"bad", "gone"}


def test_an_audit_as_nodetune_writes_it_is_read(here):
    nodetune("audit", "--facts", "facts", "--format", "json", "-o", "before.json")
    assert failed.hosts(here / "before.json") == {"gpu1", "gpu2", "gpu3"}
    nodetune("audit", "--facts", "facts", "-s", "swap-large", "--format", "json", "-o", "before.json")
    assert failed.hosts(here / "before.json") == {"gpu3"}


def test_an_apply_names_hosts_where_a_fix_did_not_work(here):
    outcomes = {"a": "fixed", "b": "still failing", "c": "not applied", "d": "skipped", "e": "pending reboot"}
    steps = [{"host": name, "outcome": outcome, "reason": ""} for name, outcome in outcomes.items()]
    steps.append({"host": "f", "outcome": "fixed", "reason": "its service fails"})
    document = {
        "schema": "nodetune.apply/1",
        "steps": steps,
        "not_reached": [{"name": "g"}],
        "left_drained": [{"host": "h"}],
    }
    assert failed.hosts(saved(here, document)) == {"b", "c", "f", "g", "h"}


def test_a_verify_names_hosts_below_target_or_not_measured(here):
    statuses = {
        "a": ("pass", "ok"),
        "b": ("short", "ok"),
        "c": ("failed", "ok"),
        "d": ("skip", "ok"),
        "e": ("pass", "busy"),
    }
    hosts = [
        {"name": name, "state": state, "measurements": [{"status": one}]} for name, (one, state) in statuses.items()
    ]
    hosts.append({"name": "f", "state": "ok", "findings": [{"status": "short"}]})
    assert failed.hosts(saved(here, {"schema": "nodetune.verify/1", "hosts": hosts})) == {"b", "c", "e", "f"}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"schema": "nodetune.diff/1"}, "schema 'nodetune.diff/1': --failed-of takes an audit, an apply or a verify"),
        ({"schema": [1]}, "--failed-of takes"),
        ([1], "not a nodetune result: --failed-of takes"),
        ({"schema": "\x1b[2J"}, r"schema '\\x1b"),
    ],
)
def test_another_document_is_refused(here, document, told):
    with pytest.raises(FailedError) as caught:
        failed.hosts(saved(here, document))
    assert told in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("hosts", [None, 5, [1, {"name": 7}, {"name": "x", "findings": 4}], {"a": 1}])
def test_a_document_with_odd_parts_names_what_can_be_read(here, hosts):
    assert failed.hosts(saved(here, {"schema": "nodetune.audit/1", "hosts": hosts})) <= {"x"}


def test_what_is_no_json_is_one_line(here):
    (here / "x.json").write_text("{")
    done = nodetune("audit", "--facts", "facts", "--failed-of", "x.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nodetune: x.json: not JSON: write one with --format json -o FILE\n"


@pytest.mark.parametrize("command", ["audit", "plan"])
def test_only_the_hosts_that_failed_are_worked_on(here, command):
    path = saved(here, {"schema": "nodetune.audit/1", "hosts": [host("gpu2", ("fail", "high")), host("gpu1")]})
    done = nodetune(command, "--facts", "facts", "--failed-of", path)
    assert {"audit": "gpu2  4x H200", "plan": "1 host"}[command] in done.stdout
    assert command == "plan" or f"--failed-of {path}" in " ".join(done.stdout.split())
    assert "gpu1" not in done.stdout
    assert "gpu3" not in done.stdout


def test_the_limit_counts_too(here):
    options = ConnectionOptions(inventory="gpu[1-4]", limit="gpu[1-2]", only=frozenset({"gpu2", "gpu3"}))
    assert [target.name for target in selection.selected(options)] == ["gpu2"]


def test_hosts_outside_the_selection_are_an_error(here):
    with pytest.raises(InventoryError, match=r"none of its hosts are selected \(gpu9\): select them with -i"):
        selection.selected(ConnectionOptions(inventory="gpu[1-4]", only=frozenset({"gpu9"})))


@pytest.mark.parametrize("command", ["audit", "apply", "facts"])
def test_where_no_host_failed_nothing_is_done(here, command):
    path = saved(here, {"schema": "nodetune.audit/1", "hosts": [host("gpu1")]})
    done = nodetune(command, "-i", "gpu[1-2]", "--failed-of", path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no hosts failed: nothing to do" in done.stderr
