"""`tune check`: whether a setting still pays, and what has changed since it was tuned."""

import json
from pathlib import Path

import pytest

from nodetune.foundation import UserError
from nodetune.tune import document, study
from nodetune.tune.benches import nccl_check as check
from nodetune.tune.benches import nccl_space
from tests.support.nccl_host import Host, noisy

RECORDED = Path(__file__).parents[2] / "data/recordings/tuning/nccl-h100-x2.json"


def gains(by):
    return noisy(3, lambda name, size, env: by if env.get("NCCL_MIN_CTAS") == "32" else 1.0)


@pytest.fixture
def host():
    made = Host()
    made.rate = gains(1.05)
    return made


@pytest.fixture
def tuned(host, tmp_path):
    """The file of a tuning that accepted 32 CTAs on this host."""
    bench = host.bench(env={"NCCL_NVLS_ENABLE": "0"})
    outcome = study.tune(bench, 1e6)
    assert outcome.accepted
    path = tmp_path / "tuning-nccl.json"
    path.write_text(json.dumps(document.document(bench, outcome, 1e6)))
    return path


def checked(host, path, **given):
    seen = []

    def make(wanted):
        seen.append(wanted)
        return host.bench(**{name: getattr(wanted, name) for name in ("objective", "sizes", "env", "nccl")})

    found = check.check(check.CheckRequest(path, **given), make)
    return found, seen[0]


def test_a_setting_that_still_pays_is_told_with_both_gains(host, tuned):
    found, wanted = checked(host, tuned)
    assert (found.state, found.code, found.stale) == (check.PAYS, 0, ())
    assert found.reason.startswith("NCCL_MIN_CTAS=32: +5.")
    assert "; when it was tuned: +5." in found.reason
    assert wanted.env == {"NCCL_NVLS_ENABLE": "0", "NCCL_MIN_CTAS": "1"}, "the default, even where it is applied"


def test_only_what_decides_is_measured(host, tuned):
    checked(host, tuned)
    assert host.options()["apart"]
    assert not [key for key in host.options()["only"] if "_step" in key]


def test_a_setting_that_pays_no_more_is_found(host, tuned):
    host.rate = gains(1.0)
    found, _ = checked(host, tuned)
    assert (found.state, found.code) == (check.GONE, 1)


def test_another_driver_and_nccl_make_it_stale_although_it_pays(host, tuned):
    data = json.loads(tuned.read_text())
    data["provenance"] |= {"nccl": "2.25.1", "driver": ["550.54.14"]}
    tuned.write_text(json.dumps(data))
    found, _ = checked(host, tuned)
    assert (found.state, found.code) == (check.PAYS, 1)
    assert [each.split(" ")[0] for each in found.stale] == ["NCCL", "driver"]
    assert all(each.split("tuned with ")[1] in ("2.25.1", "550.54.14") for each in found.stale)


def test_too_little_time_is_undecided(host, tuned):
    found, _ = checked(host, tuned, budget=1e-9)
    assert (found.state, found.code) == (check.UNDECIDED, 3)


def test_what_no_value_undoes_is_asked_to_be_taken_out(host, tuned, monkeypatch):
    monkeypatch.setattr(nccl_space, "neutral", lambda *_: "")
    host.set = {"NCCL_MIN_CTAS": "32"}
    with pytest.raises(UserError, match="NCCL_MIN_CTAS is set on the hosts"):
        checked(host, tuned)


@pytest.mark.parametrize("damage", [{"ratio": "x"}, {"asked": 7}, {"hosts": 1}])
def test_a_damaged_provenance_is_one_line(host, tuned, damage):
    data = json.loads(tuned.read_text())
    data["provenance"] |= damage
    tuned.write_text(json.dumps(data))
    with pytest.raises(UserError, match="damaged: its provenance"):
        checked(host, tuned)


def test_a_tuning_that_accepted_nothing_is_refused_in_one_line(host):
    with pytest.raises(
        UserError, match="a result of nccl: nothing better: give a result of nodetune tune nccl that accepted"
    ):
        checked(host, RECORDED)


@pytest.mark.parametrize(
    ("name", "version", "value"),
    [
        ("NCCL_MIN_CTAS", "2.28.3", "1"),
        ("NCCL_MAX_CTAS", "2.24.3", "32"),
        ("NCCL_BUFFSIZE", "2.28.3", "4194304"),
        ("NCCL_CTA_POLICY", "2.28.3", "DEFAULT"),
        ("NCCL_P2P_LEVEL", "2.28.3", ""),
    ],
)
def test_the_value_that_means_the_default(name, version, value):
    assert nccl_space.neutral(name, version) == value
