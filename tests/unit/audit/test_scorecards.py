"""The scorecards: every criterion is judged or explained, and an audit says which ones the hosts meet."""

import json
import sys
from dataclasses import replace

import pytest

from nodetune import checks
from nodetune.api.model import Absent, Value
from nodetune.audit import scorecard_status, scorecards
from nodetune.audit.request import AGAINST
from nodetune.audit.scorecards import Criterion, Scorecard
from nodetune.checks import fleet_comparisons
from nodetune.facts import document
from nodetune.foundation import paths
from nodetune.foundation.yaml_lines import FileError
from nodetune.probe import gpu, read
from tests.support import fake_pynvml
from tests.support.commandline import nodetune
from tests.support.reporting import finding, result

KNOWN = {*checks.catalogue(), *fleet_comparisons.every()}
MANY = {"checklist": 180, "settings": 154, "clustermax": 74, "ai-cloud": 296, "health-validation": 17}
"""The criteria of the editions that the files name."""


def card(**criteria):
    rows = (Criterion((name,), name, tuple(each), "" if each else "why") for name, each in criteria.items())
    return Scorecard("some", "Some", "1", "2026-01-01", "here", tuple(rows))


def statuses(score):
    return {each.criterion.name: each.status for each in score.rows}


def test_the_option_offers_the_scorecards_that_exist():
    assert {path.stem for path in paths.bundled("data/scorecards").glob("*.yml")} == set(AGAINST)


@pytest.mark.parametrize("name", AGAINST)
def test_each_criterion_is_judged_or_explained(name):
    for each in scorecards.read(name).criteria:
        assert each.text
        assert set(each.checks) - set(each.also) or each.why or each.shown
        assert set(each.checks) <= KNOWN


@pytest.mark.parametrize("name", AGAINST)
def test_each_criterion_is_there_once(name):
    ids = [id_ for each in scorecards.read(name).criteria for id_ in each.ids]
    assert len(ids) == len(set(ids)) == MANY[name]


@pytest.mark.parametrize("name", AGAINST)
def test_each_reason_of_a_file_is_used(name):
    file = scorecards.yaml_lines.load(paths.bundled("data/scorecards") / f"{name}.yml").data
    assert {each.why for each in scorecards.read(name).criteria if each.why} == set(file["reasons"].values())


@pytest.mark.parametrize("row", ["{id: a, is: b}", "{id: a, is: b, checks: [c], why: d}", "{id: a, is: b, why: e}"])
def test_a_row_neither_judged_nor_explained_is_refused(tmp_path, monkeypatch, row):
    (tmp_path / "bad.yml").write_text(
        f"title: t\nversion: v\nas_of: d\nsource: s\nreasons: {{d: why}}\ncriteria:\n  - {row}\n"
    )
    monkeypatch.setattr(paths, "bundled", lambda _: tmp_path)
    with pytest.raises(FileError, match=r"bad\.yml line 7: "):
        scorecards.read("bad")


def test_one_failing_host_fails_a_criterion():
    hosts = [result("a", finding("x", status="pass")), result("b", finding("x"))]
    score = scorecard_status.score(card(one=["x"]), hosts)
    assert statuses(score) == {"one": "fail"}
    assert score.rows[0].hosts == {"x": ("b",)}


def test_an_unread_fact_passes_no_criterion():
    hosts = [result("a", finding("x", status="pass"), finding("y", status="unknown"))]
    assert statuses(scorecard_status.score(card(both=["x", "y"], first=["x"]), hosts)) == {
        "both": "not judged",
        "first": "pass",
    }


def test_a_check_that_also_counts_fails_and_never_passes():
    rows = (Criterion(("one",), "text", ("x", "y"), also=("y",)),)
    some = Scorecard("some", "", "", "", "", rows)
    for main, other, status in (
        ("skip", "pass", "skip"),
        ("skip", "fail", "fail"),
        ("pass", "skip", "pass"),
        ("pass", "unknown", "not judged"),
    ):
        found = [result("a", finding("x", status=main), finding("y", status=other))]
        assert statuses(scorecard_status.score(some, found)) == {"one": status}


def test_a_waiver_is_unknown_to_the_rating():
    score = scorecard_status.score(card(one=["x"]), [result("a", finding("x", status="waived"))])
    assert statuses(score) == {"one": "fail"}
    assert [
        each.status for each in scorecard_status.only(score, [result("a", finding("x", status="waived"))])[0].findings
    ] == ["fail"]


def test_what_does_not_apply_is_neither_passed_nor_failed():
    score = scorecard_status.score(
        card(skipped=["x"], off=["y"], unjudged=[]), [result("a", finding("x", status="skip"))]
    )
    assert statuses(score) == {"skipped": "skip", "off": "not judged", "unjudged": "refused"}
    assert {each.criterion.name: each.why for each in score.rows}["off"] == "y is left out"
    assert score.count(*scorecard_status.JUDGED) == 0


def test_a_fault_that_another_finding_reports_has_its_row():
    hosts = [result("a", finding("x", part_of="y"), finding("y"), finding("z"))]
    kept = scorecard_status.only(scorecard_status.score(card(one=["x"]), hosts), hosts)
    assert [(each.check, each.part_of) for each in kept[0].findings] == [("x", "")]


def test_rows_of_several_ids_count_each_id():
    rows = (Criterion(("a", "b"), "text", ("x",)), Criterion(("c",), "text", (), "why"))
    score = scorecard_status.score(Scorecard("some", "", "", "", "", rows), [result("h", finding("x", status="pass"))])
    assert (score.count("pass"), score.count(*scorecard_status.STATUSES)) == (2, 3)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """recorded(answers) is the file of facts that the probe makes of NVML's recorded answers on eight H200s."""
    monkeypatch.setattr(read, "ROOT", str(tmp_path / "root"))

    def recorded(answers=None):
        monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml.module(fake_pynvml.Replay(answers=answers)))
        facts = {f"gpu.{name}": fact for name, fact in gpu.collect([], lambda _: None)}
        file = tmp_path / "h200-x8.json"
        whole = document.from_data({"host": "h200-x8", "facts": facts})
        file.write_text(document.dump(replace(whole, facts={**whole.facts, **NOT_NVML})))
        return file

    return recorded


def met(file, name):
    """Criterion → status, of those that NVML's answers alone decide."""
    told = json.loads(nodetune("audit", "--facts", file, "--against", name, "--format", "json").stdout)["against"]
    return {
        id_: each["status"] for each in told["criteria"] for id_ in each["ids"] if each["status"] in ("pass", "fail")
    }


OF_EIGHT = {
    "checklist": {"63"},
    "settings": {f"gpu.{name}" for name in ("ecc", "ecc_errors", "nvlink_links", "persistence_mode", "row_remap")},
    "clustermax": {"idle-thermals"},
    "ai-cloud": set(),
    "health-validation": {"gpu_power_limit", "nvlink_active", "nvlink_fabric", "nvlink_fabric_health"},
}
"""What nvidia-smi -q of the recorded node shows to be well; that node has an older driver."""

NOT_NVML = {
    "host.virtual": Value(False),
    "host.uptime_s": Value(3_000_000),
    "services.fabric_mode": Absent(),
    "services.nodetune-gpu": Absent(),
    "file./etc/nodetune/gpu.conf": Absent(),
}
"""What else the checks of these criteria read, as a node is on which nodetune set nothing."""


@pytest.mark.parametrize("name", AGAINST)
def test_the_recorded_node_of_eight_gpus_meets_what_nvidia_smi_shows(recorded, name):
    found = met(recorded(), name)
    assert {id_: found.get(id_) for id_ in OF_EIGHT[name] if found.get(id_) != "pass"} == {}
    assert {id_ for id_, status in found.items() if status == "fail"} <= {"security-nvidia-driver", "52"}


def test_a_planted_fault_of_one_of_eight_gpus_fails_its_criteria_alone(recorded):
    sound = met(recorded(), "health-validation")
    broken = met(recorded({"fabric GPU1": {"healthMask": 0b01_10_01, "healthSummary": 2}}), "health-validation")
    assert {id_ for id_ in sound if broken[id_] != sound[id_]} == {"nvlink_fabric_health"}
