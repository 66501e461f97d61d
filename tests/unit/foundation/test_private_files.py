"""Files with serial numbers are for their owner alone; reports have the mode that the umask gives."""

import os
import stat
from types import SimpleNamespace

import pytest

from nodetune.api.model import HostFacts, HostResult, Value
from nodetune.cli.commands.facts import Saved
from nodetune.facts.cache import FactCache
from nodetune.foundation import sealed
from nodetune.history.history import History
from nodetune.jobs.watch.run import _saver
from tests.support.commands import run

FACTS = HostFacts("n1", {"gpu.serial": Value("123")}, {"time": 1_790_000_000})


@pytest.fixture(autouse=True)
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def cached(folder):
    target = SimpleNamespace(name="n1", user="u", become=False, become_user="")
    FactCache(folder, 60).keep(target, FACTS, ["gpu.serial"])


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: Saved(folder, anonymous=False).take(HostResult("n1", "ok", facts=FACTS)),
        lambda folder: _saver(folder)(FACTS),
        cached,
        lambda folder: sealed.write(folder / "n1.tar.gz", {"facts.json": "{}"}),
    ],
    ids=["facts", "watch", "cache", "evidence"],
)
def test_facts_and_evidence_are_for_their_owner_alone(tmp_path, write):
    write(tmp_path)
    (path,) = tmp_path.glob("n1*")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_report_follows_the_umask(tmp_path):
    run("audit", "--facts", "h200-x4", "--format", "json", "-o", tmp_path / "audit.json")
    assert stat.S_IMODE((tmp_path / "audit.json").stat().st_mode) == 0o644


def test_a_history_that_others_may_read_is_named(tmp_path):
    place = tmp_path / "fleet.db"
    History(str(place)).close()
    assert run("history", "--history", place) == (0, "0 hosts, no trends\n", "")
    place.chmod(0o644)
    err = run("history", "--history", place)[2]
    assert err == f"history {place}: others may read it, and it has serial numbers: chmod 600 {place}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away takes root")
def test_a_history_of_another_user_is_named(tmp_path):
    place = tmp_path / "fleet.db"
    History(str(place)).close()
    os.chown(place, 65533, 65533)
    assert "it belongs to user 65533, who can change what it says" in run("history", "--history", place)[2]
