"""The metrics are what Prometheus takes, and the sample alerts do what they say."""

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from nodetune.report import prometheus, tuning_rows, verify_metrics
from nodetune.verify.model import FAILED, PASS, SHORT, Expectation, Figure, Unmeasured, Verdict
from nodetune.verify.run import HostVerification
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

BUSY = 'nodetune_watch_gpu_busy_ratio{host="a",gpu="GPU3",of="graphics"}'
JOB = 'nodetune_watch_gpu_job{host="a",gpu="GPU3",kind="slurm",job="7",user="u"}'
LATENCY = 'nodetune_verify_below_target{host="a",measurement="tcp_latency"}'


FIRING = [
    pytest.param(
        "NodetuneGpuNotWellUsed",
        {"host": "a", "gpu": "GPU0", "verdict": "idle"},
        {'nodetune_watch_gpu_verdict{host="a",gpu="GPU0",verdict="idle"}': "1x3000"},
        {
            'nodetune_watch_gpu_verdict{host="a",gpu="GPU0",verdict="computing-tensor"}': "1x3000",
            'nodetune_watch_gpu_verdict{host="a",gpu="GPU0",verdict="idle"}': "0x3000",
            'nodetune_watch_gpu_verdict{host="a",gpu="GPU1",verdict="free"}': "1x3000",
        },
        id="a GPU that its job does not use",
    ),
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
    pytest.param(
        "NodetuneJobWorksLess",
        {"host": "a", "gpu": "GPU3", "of": "graphics"},
        {BUSY: "0.9x2850 0.2x150", JOB: "1x3000"},
        {BUSY: "0.9x2850 0.2x150", JOB: "1x2850 stale"},  # the job has ended
        id="a job that works less",
    ),
    pytest.param(
        "NodetuneJobWorksLess",
        {"host": "a", "gpu": "GPU3", "of": "graphics"},
        {BUSY: "0.9x2850 0.2x150", JOB: "1x3000"},
        {BUSY: "0.9x2850 0.5x150", JOB: "1x3000"},
        id="a job that works less than half",
    ),
    pytest.param(
        "NodetuneFigureBelowTarget",
        {"host": "a", "measurement": "tcp_latency"},
        {LATENCY: "0x2900 1x100"},
        {LATENCY: "0x3000"},
        id="a latency that jumps",
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


# --- figures


def metrics(write, given):
    stream = io.StringIO()
    write(given, stream)
    return stream.getvalue()


def series(text):
    return [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("# ")]


def verified():
    about = {"size": 65536, "nccl": "2.28.9"}
    figure = Figure("gpu1", "nccl", "all_reduce", 'all\n"GPUs"', ((1.5, 1.5),), "GB/s", about=about)
    large = replace(figure, about={**about, "size": 1 << 30}, runs=((300.0,),))
    short = Verdict(figure, SHORT, Expectation("baseline", 200.0, "site.json"))
    lost = Unmeasured("gpu1", "gemm", FAILED, "no driver", "bf16", "GPU0")
    known = HostVerification("gpu1", verdicts=(short, Verdict(large, PASS), Verdict(large, PASS)), unmeasured=(lost,))
    return [known, HostVerification("gpu2", "busy", "GPU0 is in use")]


def test_figures_of_a_verify_are_samples_of_their_own():
    text = metrics(verify_metrics.write, verified())
    named = 'host="gpu1",measurement="nccl",metric="all_reduce",subject="all\\\\x0a\\"GPUs\\"",conditions="nccl=2.28 size=65536"'
    assert f'nodetune_verify_figure{{{named},unit="GB/s"}} 1.5' in text.splitlines()
    assert f"nodetune_verify_target{{{named}}} 200" in text.splitlines()
    assert f"nodetune_verify_below_target{{{named}}} 1" in text.splitlines()
    assert 'nodetune_verify_figures{host="gpu1",status="failed"} 1' in text.splitlines()
    assert 'nodetune_verify_reached{host="gpu2",state="busy"} 0' in text.splitlines()
    assert len(series(text)) == len(set(series(text)))


def tuned():
    return json.loads((HERE / "data/recordings/tuning/nccl-h100-x2.json").read_text("utf-8"))


def test_gains_of_a_tuning_are_samples_with_their_resolution():
    text = metrics(tuning_rows.write_prometheus, tuned())
    own = 'host="vm",subject="nccl",setting="NCCL_BUFFSIZE=2097152 NCCL_MIN_CTAS=64",accepted="no",case="objective"'
    assert re.search(rf"^nodetune_tune_gain_ratio{{{re.escape(own)}}} 0\.1849", text, re.MULTILINE)
    assert re.search(rf"^nodetune_tune_resolution_ratio{{{re.escape(own)}}} 0\.0039", text, re.MULTILINE)
    assert 'nodetune_tune_state{host="vm",subject="nccl",state="nothing better"} 1' in text.splitlines()
    screened = metrics(tuning_rows.write_prometheus, {**tuned(), "confirmations": [], "resolved": {"a": 0.012}})
    assert 'nodetune_tune_resolution_ratio{host="vm",subject="nccl",case="a"} 0.012' in screened.splitlines()


def test_a_tuning_is_a_table_with_a_row_for_each_case():
    found = {**tuned(), "dropped": [{"setting": {"A": 1}, "reason": "=Xid 31"}]}
    table = list(csv.DictReader(io.StringIO(metrics(tuning_rows.write_csv, found))))
    cases = sum(len(each["cases"]) + 1 for each in found["confirmations"])
    assert [row["status"] for row in table].count("refused") == cases
    assert (table[-1]["setting"], table[-1]["status"], table[-1]["reason"]) == ("A=1", "left out", "'=Xid 31")
    assert {row["gain"] for row in table if row["case"] == "objective"} >= {"0.184904"}


@promtool
def test_promtool_finds_nothing_wrong_with_figures():
    for text in (metrics(verify_metrics.write, verified()), metrics(tuning_rows.write_prometheus, tuned())):
        done = check_metrics(text)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
