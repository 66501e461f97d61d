"""The metrics are what Prometheus takes, and the sample alerts do what they say."""

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from nodetune.report import prometheus
from tests.support.reporting import CHECKS, HOSTILE, finding, hostile, judged, result

HERE = Path(__file__).parents[2]
RULES = HERE.parent / "docs" / "prometheus-rules.yml"
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')

promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed: apt install prometheus")


def written(results):
    stream = io.StringIO()
    prometheus.write(results, stream, CHECKS, now=1_800_000_000)
    return stream.getvalue()


def check_metrics(text):
    given = text.encode("utf-8")
    return subprocess.run(["promtool", "check", "metrics"], input=given, capture_output=True, timeout=60)


@promtool
@pytest.mark.parametrize("results", [hostile(), [result("a", finding()), result("b", state="refused")], []])
def test_promtool_finds_nothing_wrong(results):
    done = check_metrics(written(results))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@promtool
def test_promtool_finds_nothing_wrong_with_audits_of_machines():
    done = check_metrics(written(judged(*sorted((HERE / "data" / "synthetic").glob("*.json")))))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_hosts_can_neither_forge_a_sample_nor_break_the_file():
    lines = written(hostile()).splitlines()
    samples = [SAMPLE.fullmatch(line) for line in lines if not line.startswith("# ")]
    assert all(samples)
    hosts = [each[2] for each in samples if each[1] == "nodetune_audit_reached"]
    assert len(hosts) == len(set(hosts)) == 2 * len(HOSTILE)
    assert not any(each.startswith('host="forged"') for each in hosts)
    assert not set("".join(lines)) & set("\x1b\x07\x00\ud800")


def test_two_hosts_of_one_name_do_not_void_the_file():
    lines = written([result("a", finding()), result("a")]).splitlines()
    assert 'nodetune_audit_reached{host="a #2",state="ok"} 1' in lines
    assert len(lines) == len(set(lines))


def test_what_is_gone_is_a_zero_and_not_a_gap():
    text = written([result("a", finding("fine", "critical", "pass"))])
    assert 'nodetune_audit_failing_checks{host="a",severity="critical"} 0' in text
    assert 'nodetune_audit_checks{host="a",status="fail"} 0' in text
    assert "nodetune_audit_finding{" not in text


def test_a_failing_check_is_a_series_with_its_area():
    text = written([result("a", finding("swap-on", "high"))])
    area = CHECKS["swap-on"].area if "swap-on" in CHECKS else "site"
    assert f'nodetune_audit_finding{{host="a",check="swap-on",area="{area}",severity="high"}} 1' in text


@promtool
def test_promtool_finds_nothing_wrong_with_the_sample_alerts():
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search("lint|error", done.stdout + done.stderr)


def reached(hosts):
    return {f'nodetune_audit_reached{{host="{number}",state="ok"}}': "1x3000" for number in range(hosts)}


def swapped(hosts):
    """That many hosts with the same finding."""
    finding = 'nodetune_audit_finding{{host="{}",check="swap-on",area="memory",severity="high"}}'
    return {finding.format(number): "1x3000" for number in range(hosts)}


HIGH = 'nodetune_audit_failing_checks{host="a",severity="high"}'
CRITICAL = {"host": "a", "check": "nvlink-down", "area": "gpu"}


FIRING = [
    pytest.param(
        "NodetuneCriticalFinding",
        CRITICAL,
        {'nodetune_audit_finding{host="a",check="nvlink-down",area="gpu",severity="critical"}': "1x3000"},
        {'nodetune_audit_finding{host="a",check="nvlink-down",area="gpu",severity="high"}': "1x3000"},
        id="a critical finding",
    ),
    pytest.param("NodetuneHighFindings", {"host": "a"}, {HIGH: "2x3000"}, {HIGH: "0x3000"}, id="high findings"),
    pytest.param(
        "NodetuneHighFindings",
        {"host": "a"},
        {HIGH: "0x2800 2x139"},
        {HIGH: "0x2920 2x19"},  # for 20 minutes: not yet
        id="high findings that stay",
    ),
    pytest.param(
        "NodetuneFindingOnManyHosts",
        {"check": "swap-on", "area": "memory"},
        {**reached(40), **swapped(5)},
        {**reached(40), **swapped(4)},  # a tenth, not more
        id="a finding on more than a tenth of the fleet",
    ),
    pytest.param(
        "NodetuneFindingOnManyHosts",
        {"check": "swap-on", "area": "memory"},
        {**reached(10), **swapped(4)},
        {**reached(10), **swapped(3)},  # of a few hosts three are not many
        id="a finding on more than three hosts",
    ),
    pytest.param(
        "NodetuneHostNotReached",
        {"host": "a", "state": "refused"},
        {'nodetune_audit_reached{host="a",state="refused"}': "0x3000"},
        {'nodetune_audit_reached{host="a",state="ok"}': "1x3000"},
        id="a host that refuses",
    ),
    pytest.param(
        "NodetuneAuditStale",
        {},
        {"nodetune_audit_timestamp_seconds": "0x3000"},
        {"nodetune_audit_timestamp_seconds": "0+60x3000"},
        id="no audit for two days",
    ),
]
"""Alert, labels, series on which it fires, and the like on which it does not."""


@promtool
@pytest.mark.parametrize(("alert", "labels", "bad", "good"), FIRING)
def test_a_sample_alert_fires_on_its_fault_and_not_without(alert, labels, bad, good, tmp_path):
    rules = yaml.safe_load(RULES.read_text())
    every = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}
    for rule in every.values():
        del rule["annotations"]  # words, filled in from the labels: not what is tested here
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    severity = {"severity": every[alert]["labels"]["severity"]}

    def case(series, alerts):
        told = [{"exp_labels": each} for each in alerts]
        return {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"eval_time": "49h", "alertname": alert, "exp_alerts": told}],
        }

    cases = [case(bad, [{**labels, **severity}]), case(good, [])]
    test = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": cases}
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump(test))
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_sample_alert_is_seen_to_fire():
    rules = yaml.safe_load(RULES.read_text())
    assert {each.values[0] for each in FIRING} == {
        rule["alert"] for group in rules["groups"] for rule in group["rules"]
    }
