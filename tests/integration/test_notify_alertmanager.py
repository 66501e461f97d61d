"""Notices of an audit in a real Alertmanager: what stands is firing, once; what is over is resolved."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from tests.support.commandline import nodetune
from tests.support.pages import ROOT

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
MACHINES = ROOT / "tests/data/synthetic"
CONFIG = "route: {receiver: none}\nreceivers: [{name: none}]\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="Alertmanager is not installed: apt install prometheus-alertmanager"),
]


@pytest.fixture
def alertmanager(tmp_path):
    """Its URL."""
    (tmp_path / "config.yml").write_text(CONFIG)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
    storage = f"--storage.path={tmp_path / 'data'}"
    words = (f"--config.file={tmp_path / 'config.yml'}", storage, f"--web.listen-address={place}")
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([PROGRAM, *words, "--cluster.listen-address="], stderr=log, stdout=log)
    try:
        while True:
            assert process.poll() is None, (tmp_path / "log").read_text()
            try:
                urllib.request.urlopen(f"http://{place}/-/ready").close()
                break
            except urllib.error.URLError:
                time.sleep(0.05)
        yield f"http://{place}"
    finally:
        process.kill()
        process.wait()


def alerts(url):
    """(check, instance) of each alert that is firing."""
    with urllib.request.urlopen(f"{url}/api/v2/alerts?active=true") as answer:
        found = json.load(answer)
    return sorted((each["labels"].get("check", ""), each["labels"]["instance"]) for each in found)


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
