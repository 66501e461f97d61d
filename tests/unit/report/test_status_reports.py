"""Where hosts stand: twenty planted states are told right, stale and unknown hosts are never healthy, and texts of hosts stay texts."""

import csv
import io
import json
from collections import Counter
from xml.etree import ElementTree

import jsonschema
import pytest

from nodetune.api.conclusion import SOURCES, Conclusion, Examined, Next
from nodetune.api.conclusion_rules import is_failing, leaders
from nodetune.foundation import exit_codes, paths
from nodetune.history.closing import Open, folded
from nodetune.history.history import History
from nodetune.report.status import FORMATS, Asked, write
from nodetune.report.status.standing import Known, Limits, standing
from tests.support.standing import DAY, HOSTILE, HOSTS, LONG, NOW, OF_SOURCES, concluded, host_of, looked, planted

ASKED = Asked("prod", every=frozenset(HOSTS))


def of_history(folder, host="", only=HOSTS, limits=Limits(NOW)):  # noqa: B008  (a frozen value)
    sets, done = planted()
    with History(str(folder / "x.db")) as history:
        for each in sets:
            history.conclude(each)
        history.act(done)
        known = Known(history.open(), history.examined(), history.actions(), history.hosts())
    return standing(known, limits, only, host)


def of_sets(*sets, hosts=(), limits=Limits(NOW), host=""):  # noqa: B008
    found = [(each.source, each.host, each.at, each.unjudged) for one in sets for each in one.examinations]
    return standing(Known(folded(sets).open, found, (), hosts), limits, None, host)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return of_history(tmp_path_factory.mktemp("status"))


def written(found, output_format="text", asked=ASKED):
    stream = io.StringIO()
    write(found, asked, output_format, stream)
    return stream.getvalue()


def test_a_fault_of_each_source_is_planted():
    assert set(OF_SOURCES) == set(SOURCES)


@pytest.mark.parametrize("source", OF_SOURCES)
def test_what_each_source_says_is_open_with_who_acts_and_the_next_command(found, source):
    fault, severity, who, then = OF_SOURCES[source]
    host = host_of(source)
    (line,) = [each for each in found.lines if each.of.source == source and host in each.hosts]
    assert (line.of.fault, line.of.severity, line.of.who) == (fault, severity, who)
    assert line.since == NOW - DAY
    told = ASKED.of(line)
    assert told.startswith(f"nodetune {then.verb}") if then.verb else told == then.text


def test_each_host_has_its_planted_state(found):
    states = {name: each.state for name, each in found.hosts.items()}
    assert [name for name in states if states[name] == "never"] == ["n13"]
    assert [name for name in states if states[name] == "stale"] == ["n12"]
    assert [name for name in states if states[name] == "unknown"] == ["n16"]
    assert set(states) == set(HOSTS)


def test_waived_closed_and_exchanged_faults_are_not_open(found):
    hosts = {host for each in found.entries for host in each.of.hosts}
    assert not hosts & {"n11", "n14", "n15"}
    assert [each.conclusion.hosts for each in found.waived] == [("n11",)]


def test_a_path_is_open_on_both_its_hosts(found):
    (path,) = [each for each in found.entries if each.of.fault == "path-slow"]
    assert [path in found.entries_of()[host] for host in ("n17", "n18")] == [True, True]


def test_what_another_fault_explains_is_a_part_of_it(found):
    (leader,) = found.entries_of()["n19"]
    assert leader.of.fault == "gpu-lost"
    assert [each.conclusion.fault for each in leader.parts] == ["gpu-recovery-needed"]


def test_a_fault_whose_explanation_is_not_open_stands_for_itself():
    alone = concluded("audit", "n1", NOW, "gpu-recovery-needed", explained_by="gpu-lost")
    assert leaders([alone]) == [0]


def test_of_a_circle_of_explanations_one_stands_for_itself():
    one = concluded("audit", "n1", NOW, "a", explained_by="b")
    other = concluded("audit", "n1", NOW, "b", explained_by="a")
    assert leaders([one, other]) == [0, 0]


def test_a_fault_of_another_host_explains_nothing():
    leader = concluded("audit", "n2", NOW, "gpu-lost")
    assert leaders([leader, concluded("audit", "n1", NOW, "b", explained_by="gpu-lost")]) == [0, 1]


def test_a_fault_of_the_fleet_has_no_host_and_is_not_told_of_one_host(found, tmp_path):
    assert [line.hosts for line in found.lines if line.of.fault == "fleet-slow"] == [()]
    assert "fleet-slow" not in written(of_history(tmp_path, "n02"))


def test_a_drain_is_told_until_something_ends_it(found):
    assert found.hosts["n09"].drained == NOW - 3 * DAY
    assert found.hosts["n10"].drained == 0
    assert Counter(each.kind for each in found.actions) == {"drained": 2, "resumed": 1}, "a reboot was 40 days ago"


@pytest.mark.parametrize("source", ["reach", "trend", "episodes"])
def test_a_host_that_was_only_reached_or_whose_past_was_judged_was_not_examined(source):
    assert of_sets(Examined((), (looked(source, "n1", NOW),))).hosts["n1"].state == "never"


@pytest.mark.parametrize(("age", "state"), [(7 * DAY, "examined"), (7 * DAY + 1, "stale"), (-DAY, "never")])
def test_a_host_is_stale_after_seven_days_and_the_future_examines_nothing(age, state):
    assert of_sets(Examined((), (looked("audit", "n1", NOW - age, "swap-on"),))).hosts["n1"].state == state


@pytest.mark.parametrize(("fail_on", "state"), [("medium", "examined"), ("low", "unknown"), ("never", "examined")])
def test_a_fault_below_the_threshold_makes_no_host_unknown(fail_on, state):
    unread = looked("audit", "n1", NOW, "swap-on", **{"segments-retransmitted": "needs root"})
    assert of_sets(Examined((), (unread,)), limits=Limits(NOW, fail_on=fail_on)).hosts["n1"].state == state


@pytest.mark.parametrize(
    ("severity", "incomplete", "code"), [("high", True, 1), ("high", False, 1), ("low", True, 3), ("low", False, 0)]
)
def test_an_open_fault_decides_the_exit_code_before_an_unknown_host(severity, incomplete, code):
    found = [Conclusion("x", "audit", ("n1",), severity, "bad")]
    assert exit_codes.of_status(failing=is_failing(found, "medium"), incomplete=incomplete) == code
    assert not is_failing(found, "never")


def test_a_fault_that_was_not_judged_again_is_told_so():
    bad = Examined((concluded("audit", "n1", NOW - 9 * DAY),), (looked("audit", "n1", NOW - 9 * DAY),))
    found = of_sets(bad, Examined((), (looked("audit", "n1", NOW, "other"),)))
    assert "not judged again since" in written(found)


def test_a_healthy_fleet_is_one_line_with_its_examined_and_stale_hosts():
    every = Examined((), tuple(looked("audit", f"n{number}", NOW - DAY, "swap-on") for number in range(2000)))
    assert written(of_sets(every)) == ("2,000 hosts: 2,000 examined in 7 days, 0 stale, 0 never; nothing open\n")
    assert of_sets(every).code == 0


def test_a_fleet_without_faults_but_with_a_stale_host_is_not_called_healthy():
    found = of_sets(Examined((), (looked("audit", "n1", NOW - 9 * DAY, "swap-on"),)), hosts=["n2"])
    told = written(found)
    assert "0 examined in 7 days, 1 stale, 1 never;" in told
    assert "nodetune audit -i prod -l n1" in told
    assert found.code == 3


def test_no_host_at_all_is_told_and_not_called_healthy():
    assert written(of_sets()).startswith("0 hosts: 0 examined")


@pytest.mark.parametrize("width", [80, 120, 160])
def test_a_fleet_of_two_thousand_takes_at_most_forty_lines(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    bad = [
        concluded(
            "audit", f"rack{number % 37}-gpu{number}", NOW - DAY, f"fault-{number % 90}", severity=severity, who=who
        )
        for number in range(2000)
        for severity, who in (("high", "repair"), ("low", "user"), ("medium", "apply"), ("medium", "hand"))
    ]
    stale = tuple(looked("audit", f"old{number}", NOW - 30 * DAY, "swap-on") for number in range(0, 400, 3))
    told = written(of_sets(Examined(tuple(bad), stale), hosts=["new"])).splitlines()
    assert len(told) <= 40
    assert max(len(line) for line in told if "next nodetune" not in line) <= width
    rows = [number for number, line in enumerate(told) if line.startswith(("  high", "  medium", "  stale", "  never"))]
    assert len(rows) > 8
    assert all(told[number + 1].strip().startswith("next nodetune") for number in rows)
    assert told[-1].startswith("… and ")


def test_what_nobody_knows_comes_first_then_the_worst_and_the_most_common(found):
    told = [line.split()[:2] for line in written(found).splitlines() if line.startswith("  ") and "next" not in line]
    assert told[:2] == [["never", "n13"], ["stale", "n12"]]
    assert [each.of.severity for each in found.lines] == sorted(
        (each.of.severity for each in found.lines), key=["critical", "high", "medium", "low", "info"].index
    )
    many = [len(each.hosts) for each in found.lines if each.of.severity == "critical"]
    assert many == sorted(many, reverse=True)
    assert many[0] == 2, "gpu-lost of n12 and n19: that of n09 has another next command"


def test_a_host_is_one_screen_with_what_was_done_and_who_examined_it(tmp_path):
    told = written(of_history(tmp_path, "n09")).splitlines()
    assert len(told) <= 24
    text = "\n".join(told)
    for part in ("drained since", "gpu-lost", "drained by slurm  gpu lost", "EXAMINED", "nodetune history n09"):
        assert part in text


def test_a_waived_fault_is_counted_on_its_host(tmp_path):
    assert "nothing open; 1 waived" in written(of_history(tmp_path, "n11"))


@pytest.mark.parametrize("output_format", FORMATS)
def test_no_format_passes_on_what_a_host_wrote_as_markup_or_control(found, output_format):
    told = written(found, output_format)
    assert "\x1b" not in told
    assert "\u202e" not in told or output_format == "junit"
    assert LONG[:5000] not in told or output_format in ("json", "junit")
    if output_format == "html":
        assert "<script" not in told
    if output_format in ("csv", "lines"):
        assert "\n=cmd" not in told


def test_the_document_is_as_its_schema_says(found, tmp_path):
    schema = json.loads((paths.bundled("data") / "schemas/status.json").read_text())
    for each in (found, of_history(tmp_path, "n09"), of_sets()):
        jsonschema.validate(json.loads(written(each, "json")), schema)


def test_csv_has_a_row_for_each_host_and_fault_and_for_each_host_that_is_not_known(found):
    rows = list(csv.DictReader(io.StringIO(written(found, "csv"))))
    statuses = {row["host"]: row["status"] for row in rows}
    assert [statuses[host] for host in ("n11", "n12", "n13", "n16")] == ["waived", "open", "never", "unknown"]
    assert {row["host"] for row in rows if row["fault"] == "path-slow"} == {"n17", "n18"}
    swap = next(row for row in rows if row["host"] == "n02")
    assert (swap["severity"], swap["source"], swap["who"]) == ("medium", "audit", "apply")
    assert swap["next"] == "nodetune plan -i prod -l n02 -s swap-on"


def test_junit_fails_exactly_where_the_exit_code_would(found):
    root = ElementTree.fromstring(written(found, "junit"))
    failed = {suite.get("name") for suite in root if int(suite.get("failures"))}
    assert {"n02", "n09", "n17", "n18"} <= failed
    assert not failed & {"n07", "n11", "n13"}, "low, waived, never examined"
    assert [root.find(f"testsuite[@name='{host}']").get("errors") for host in ("n12", "n13", "n16")] == ["1"] * 3


def test_metrics_have_each_fault_and_each_hosts_examinations(found):
    told = written(found, "prometheus")
    assert 'nodetune_status_hosts{state="never"} 1' in told
    assert (
        'nodetune_status_fault{host="n09",fault="gpu-lost",source="guard",device="",severity="critical",who="repair"} 1'
        in told
    )
    assert f'nodetune_status_examined_timestamp_seconds{{host="n12",source="audit"}} {NOW - 20 * DAY}' in told
    assert 'nodetune_status_drained{host="n09"} 1' in told


def test_a_node_is_labelled_with_how_well_it_is_known_and_its_worst_fault(found):
    labels = {
        item["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"]: [*item["spec"]["labels"].values()]
        for item in json.loads(written(found, "nfd"))["items"]
    }
    assert labels["n13"] == ["never", "none"]
    assert labels["n09"] == ["examined", "critical"]
    assert HOSTILE not in labels


def test_equal_faults_of_all_hosts_are_one_command_without_a_limit():
    bad = [
        concluded("audit", f"n{number}", NOW, next=Next("plan", ("-s", "swap-on"), (f"n{number}",)))
        for number in (1, 2)
    ]
    (line,) = of_sets(Examined(tuple(bad))).lines
    site = {"site": ("site.yml",), "profiles": ("inference",)}
    all_of_them = Asked("prod", every=frozenset({"n1", "n2"}), **site)
    assert all_of_them.of(line) == "nodetune plan -i prod -s swap-on -p inference --site site.yml"
    assert Asked("prod", every=frozenset({"n1", "n2", "n3"})).of(line) == "nodetune plan -i prod -l 'n[1-2]' -s swap-on"
    assert Asked().of(line) == "nodetune plan -i 'n[1-2]' -s swap-on"


@pytest.mark.parametrize("host", [HOSTILE, "--yes", "$(reboot)", "a b"])
def test_a_command_names_no_host_that_might_be_an_option_or_a_command(host):
    assert Asked().verb("audit", [host]) == "nodetune audit -i INVENTORY"
    assert Asked("prod").verb("audit", [host, "n1"]) == "nodetune audit -i prod"
    assert Asked().verb("history", [host]) == "nodetune history"


def test_a_fault_of_an_earlier_edition_gets_its_severity_and_title():
    old = Open(Conclusion("gpu-lost", "audit", ("n1",), "info", "", NOW), NOW)
    (line,) = standing(Known([old]), Limits(NOW)).lines
    assert line.of.severity == "critical"
    assert "GPU" in line.statement
