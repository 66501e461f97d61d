"""A real Alertmanager gets notices of an audit, and the sample alerts from a real Prometheus: what stands is firing, once."""

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from tests.support.commandline import nodetune
from tests.support.pages import DOCS, ROOT

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
MACHINES = ROOT / "tests/data/synthetic"
CONFIG = "route: {receiver: none}\nreceivers: [{name: none}]\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="Alertmanager is not installed: apt install prometheus-alertmanager"),
]


@contextmanager
def running(program, folder, config, *words):
    """The URL at which a server is ready."""
    folder.mkdir()
    (folder / "config.yml").write_text(config)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
    words = (f"--config.file={folder / 'config.yml'}", f"--web.listen-address={place}", *words)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *words], stderr=log, stdout=log)
    try:
        while True:
            assert process.poll() is None, (folder / "log").read_text()
            try:
                urllib.request.urlopen(f"http://{place}/-/ready").close()
                break
            except urllib.error.URLError:
                time.sleep(0.05)
        yield f"http://{place}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def alertmanager(tmp_path):
    """Its URL."""
    folder = tmp_path / "alertmanager"
    with running(PROGRAM, folder, CONFIG, f"--storage.path={folder / 'data'}", "--cluster.listen-address=") as url:
        yield url


def firing(url):
    with urllib.request.urlopen(f"{url}/api/v2/alerts?active=true") as answer:
        return json.load(answer)


def alerts(url):
    """(check, instance) of each alert that is firing."""
    return sorted((each["labels"].get("check", ""), each["labels"]["instance"]) for each in firing(url))


def machine(path, name):
    content = json.loads((MACHINES / f"hgx-h200-{name}.json").read_text())
    path.write_text(json.dumps({**content, "host": "n1"}))


def test_alerts_fire_while_the_verdict_stands_and_end_with_it(alertmanager, tmp_path, monkeypatch):
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "runs"))
    facts = tmp_path / "n1.json"
    machine(facts, "untuned")
    audit = ("audit", "--facts", facts, "--site", "none", "-s", "memory", "--fail-on", "low")
    found = json.loads(nodetune(*audit, "--format", "json").stdout)["hosts"][0]["findings"]
    leading = [each for each in found if each["status"] == "fail" and "part_of" not in each]
    failing = sorted(each["check"] for each in leading if each["severity"] != "info")
    assert failing
    notify = ("--notify", f"alertmanager+{alertmanager}")
    for _ in range(2):
        done = nodetune(*audit, *notify)
        assert (done.returncode, done.stderr) == (1, "")
        assert alerts(alertmanager) == [(check, "n1") for check in failing]
    other = ("audit", "--facts", facts, "--site", "none", "-s", "min-free-kbytes-low", "--fail-on", "low")
    assert nodetune(*other, *notify).returncode == 0
    assert alerts(alertmanager), "another selection of checks has another record: it ends nothing"
    machine(facts, "tuned")
    nodetune(*audit, *notify)
    assert alerts(alertmanager) == []


class Pages(SimpleHTTPRequestHandler):
    """The files of a folder, as text."""

    def guess_type(self, _path):
        return "text/plain; version=0.0.4"

    def log_message(self, *_):
        pass


@pytest.mark.skipif(not shutil.which("prometheus"), reason="Prometheus is not installed: apt install prometheus")
def test_prometheus_raises_the_sample_alerts_there_from_an_audit(alertmanager, tmp_path):
    """The alerts that wait for an hour are pending; promtool shows that these fire too (unit/report/test_prometheus.py)."""
    machine(tmp_path / "n1.json", "untuned")
    audit = ("audit", "--facts", tmp_path / "n1.json", "--site", "none", "--fail-on", "never", "--format")
    (tmp_path / "metrics").write_text(nodetune(*audit, "prometheus").stdout)
    found = json.loads(nodetune(*audit, "json").stdout)["hosts"][0]["findings"]
    critical = sorted(each["check"] for each in found if (each["status"], each["severity"]) == ("fail", "critical"))
    assert critical
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, directory=tmp_path)) as source:
        threading.Thread(target=source.serve_forever, daemon=True).start()
        config = {
            "global": {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "200ms"},
            "rule_files": [str(DOCS / "prometheus-rules.yml")],
            "scrape_configs": [job("nodetune", f"127.0.0.1:{source.server_port}")],
            "alerting": {"alertmanagers": [job(None, alertmanager.partition("//")[2])]},
        }
        folder = tmp_path / "prometheus"
        storage = f"--storage.tsdb.path={folder / 'data'}"
        try:
            with running("prometheus", folder, yaml.safe_dump(config), storage) as url:
                while len(there := firing(alertmanager)) < len(critical):
                    time.sleep(0.1)
                with urllib.request.urlopen(f"{url}/api/v1/alerts") as answer:
                    seen = {
                        (each["labels"]["alertname"], each["state"]) for each in json.load(answer)["data"]["alerts"]
                    }
        finally:
            source.shutdown()
    assert sorted(each["labels"]["check"] for each in there) == critical
    assert {each["labels"]["alertname"] for each in there} == {"NodetuneCriticalFinding"}
    assert {each["annotations"]["summary"] for each in there} == {f"n1: {check}" for check in critical}
    assert seen == {("NodetuneCriticalFinding", "firing"), ("NodetuneHighFindings", "pending")}


def job(name, place):
    named = {"job_name": name} if name else {}
    return {**named, "static_configs": [{"targets": [place]}]}
