"""`nodetune history`: what changed on a host and when, its findings and numbers, and exports."""

import csv
import io
import json
import re
import subprocess
import sys

import jsonschema
import pytest

from nodetune.api.model import Each, Finding, HostFacts, HostResult, Value
from nodetune.audit import conclude
from nodetune.foundation import paths
from nodetune.history import timeline
from nodetune.history.history import History
from nodetune.history.points import DAY, Drain, Point, Spell
from nodetune.history.snapshot import Sorter, of_figures
from nodetune.history.timeline import Series
from nodetune.report.text import history as text_history

NOW = 1_800_000_000 // DAY * DAY


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A history of two hosts over twelve days, of which five are thinned."""
    place = tmp_path_factory.mktemp("history") / "fleet.db"
    sorter = Sorter()
    with History(str(place)) as history:
        for day in range(12):
            at = NOW - (11 - day) * DAY
            for host in ("gpu1", "gpu2"):
                replays = Each({"GPU0": Value(10 * day), "GPU1": Value(5)})
                facts = {
                    "gpu.pcie_replay_counter": replays,
                    "gpu.temperature": Each({"GPU0": Value(40 + day)}),
                    "sysctl.vm.swappiness": Value(1 if day > 8 else 60),
                    "host.boot_id": Value(str(day // 6)),
                }
                history.record([sorter.look(HostFacts(host, facts, {"time": at}))])
                status = "fail" if day in (2, 3, 7) else "pass"
                result = HostResult(host, "ok", findings=(Finding("swap-on", status, "medium"),), at=at)
                history.conclude(conclude.of_host(result))
            history.record([of_figures("gpu1", at + 60, {"verify.gemm.bf16/GPU0": 800.5 - day})])
        history.thin(NOW)
    return place


def run(known, *words, code=0):
    command = [sys.executable, "-m", "nodetune", "history", *words, "--history", str(known), "--since", "9999d"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_host_has_its_changes_findings_and_numbers(known):
    told = run(known, "gpu1")
    changed = [line.split() for line in told.splitlines() if "→" in line]
    assert [(each[2], *each[3:]) for each in changed] == [
        ("host.boot_id", "0", "→", "1"),
        ("sysctl.vm.swappiness", "60", "→", "1"),
    ]
    unwrapped = " ".join(told.split())
    assert "swap-on from 2027-01-11 00:00 to 2027-01-12 00:00, came 2 times, once in 5 days" in unwrapped
    (replays,) = [line.split() for line in told.splitlines() if "pcie_replay" in line]
    assert replays[0] == "gpu.pcie_replay_counter/GPU0", "GPU1 did not move"
    assert replays[-3:] == ["+110,", "still", "growing"]
    assert "40 to 51, now 51, rose" in unwrapped
    assert unwrapped.endswith("789.5 to 800.5, now 789.5, fell"), "figures of verify, in their units"


def test_the_hosts_come_without_an_empty_line_above(known):
    assert run(known).splitlines()[0] in ("2 hosts, no trends", "TRENDS")


def told_of(*findings):
    stream = io.StringIO()
    text_history.print_host(stream, timeline.Story("gpu1", (), findings, (), ()))
    return stream.getvalue().splitlines()


def test_findings_come_with_their_severity_and_the_gravest_first():
    spells = [
        ("swap-on", None),
        ("gpu-lost", 9),
        ("nvlink-down", None),
        ("of-a-site", None),
        ("fleet-driver-differs", None),
    ]
    lines = told_of(*(Drain(check, 1, None, Spell(check, "", 0, gone)) for check, gone in spells))
    assert lines[:3] == ["gpu1", "", "FINDINGS"]
    assert [line.split()[:2] for line in lines[3:]] == [
        ["critical", "nvlink-down"],
        ["medium", "fleet-driver-differs"],
        ["low", "swap-on"],
        ["of-a-site", "since"],
        ["critical", "gpu-lost"],
    ]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([1, 1, 9, 9, 9, 9, 9, 9], ", rose"),
        ([9, 1, 1, 1, 1, 1, 1, 1], ", fell"),
        ([1, 2, 1, 5, 9, 8, 9, 9, 8], ", rose"),
        ([1, 9, 1, 9, 1, 9, 1, 9], ", up and down"),
        ([5], ""),
    ],
)
def test_a_value_has_a_word_for_where_it_went(values, word):
    points = tuple(Point(at * DAY, each, each) for at, each in enumerate(values))
    assert text_history.summary(Series("gpu.temperature/GPU0", points, "")).endswith(f"now {values[-1]}{word}")


@pytest.mark.parametrize(
    ("values", "word"), [([1, 2, 3], "+2, still growing"), ([1, 7, 7], "+6, not since 1970-01-02")]
)
def test_a_counter_says_whether_it_still_grows(values, word):
    points = tuple(Point(at * DAY, each, each) for at, each in enumerate(values))
    assert text_history.summary(Series("gpu.pcie_replay_counter/GPU0", points, "")) == word


def test_a_fact_is_shown_alone(known):
    told = run(known, "gpu2", "sysctl.vm")
    assert "60 → 1" in told
    assert "FINDINGS" not in told
    assert "replay" not in told


def test_a_growing_counter_draws_its_growth():
    steady = [Point(at, 10 * at, 10 * at) for at in range(5)]
    assert timeline.spark(steady, is_counter=True) == "▁████"
    assert timeline.spark(steady, is_counter=False) == "▁▂▄▆█"
    assert timeline.spark([Point(0, 5, 5), Point(1, 5, 5)], is_counter=True) == "▁▁"


def test_a_page_has_a_plot_of_each_number_and_what_a_host_says_is_no_markup(known, tmp_path):
    place = tmp_path / "fleet.db"
    place.write_bytes(known.read_bytes())
    with History(str(place)) as history:
        for number in (1, 2):
            facts = {"gpu.temperature": Each({"<b>": Value(number)}), "host.boot_id": Value("<script>")}
            history.record([Sorter().look(HostFacts("gpu1", facts, {"time": NOW + 60 + number}))])
    page = run(place, "gpu1", "--format", "html")
    assert page.count("<polyline") == page.count('aria-label="') == 4
    plot = re.search(r'aria-label="gpu.pcie_replay_counter/GPU0.*?points="([^"]+)"', page, re.DOTALL)[1].split()
    downs = [float(point.split(",")[1]) for point in plot]
    assert downs == sorted(downs, reverse=True)
    assert "<b>" not in page
    assert "<script" not in page
    assert "sysctl.vm.swappiness: 60 → 1" in page
    assert "HOST --format html" in run(known, "--format", "html", code=2)


def test_json_is_as_its_schema_says(known):
    schema = json.loads((paths.bundled("data/schemas") / "history.json").read_text())
    for words in ([], ["gpu1"], ["gpu1", "gpu."]):
        told = json.loads(run(known, *words, "--format", "json"))
        jsonschema.validate(told, schema)
    (series,) = [each for each in told["series"] if each["leaf"] == "gpu.pcie_replay_counter/GPU0"]
    assert [each["grown"] for each in series["points"][:6]] == [10, 10, 10, None, None, None]


def test_csv_has_all_numbers_of_all_hosts(known):
    rows = list(csv.DictReader(io.StringIO(run(known, "--format", "csv"))))
    assert {each["host"] for each in rows} == {"gpu1", "gpu2"}
    warmest = [int(each["high"]) for each in rows if each["host"] == "gpu2" and each["fact"] == "gpu.temperature/GPU0"]
    assert max(warmest) == 51


def test_an_unknown_host_or_fact_and_no_history_are_one_line(known, tmp_path):
    assert run(known, "gpu3", code=2) == "nodetune: the history does not have gpu3: did you mean gpu2?\n"
    assert "the history of gpu1 has no nvme" in run(known, "gpu1", "nvme", code=2)
    assert "no such history" in run(tmp_path / "none.db", code=2)
    done = subprocess.run([sys.executable, "-m", "nodetune", "history"], capture_output=True, text=True, cwd=tmp_path)
    assert "give --history FILE|URL, or history = in nodetune.toml" in done.stderr


@pytest.mark.parametrize("words", [("gpu9",), ("gpu1", "gpu.nothing")])
def test_an_export_of_what_is_not_there_is_an_error(known, words):
    for wanted in ("csv", "prometheus"):
        assert "the history" in run(known, *words, "--format", wanted, code=2)
