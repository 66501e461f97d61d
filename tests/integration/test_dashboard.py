"""The dashboard for Grafana, on a real Prometheus that scrapes what nodetune writes."""

import io
import json
import re
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nodetune.guard.node import metrics
from nodetune.history.points import Rate
from nodetune.report import history_rates, prometheus, watch_metrics
from tests.support import watched
from tests.support.commandline import nodetune
from tests.support.pages import DOCS, ROOT

BOARD = json.loads((DOCS / "grafana-dashboard.json").read_text())
QUERIES = {
    f"{panel['title']} {target['refId']}": target["expr"].replace("$host", ".*")
    for panel in BOARD["panels"]
    for target in panel.get("targets", ())
}
KNOWN = {
    *(f"nodetune_audit_{name}" for name in prometheus.HELP),
    *(f"nodetune_guard_{name}" for name in metrics.HELP),
    *(f"nodetune_watch_{name}" for name in watch_metrics.HELP),
    "nodetune_history_growth_per_day",
}

pytestmark = pytest.mark.xdist_group("dashboard")


def guard(folder):
    """The metrics of a guard whose last health check failed."""
    (folder / "policy").write_text(
        json.dumps({"nodetune": "1", "profile": "training", "mode": "observe", "act": "slurm"})
    )
    found = [{"check": "gpu-lost", "severity": "critical"}]
    health = {"verdict": "fail", "time": time.time(), "seconds": 1, "findings": found}
    (folder / "health.json").write_text(json.dumps(health))
    (folder / "blind").write_text("3 times since boot")
    return metrics.exposition(metrics.samples(metrics.GuardFiles(str(folder), str(folder / "policy"), time.time())))


def exposition(folder):
    """All that nodetune writes for Prometheus."""
    facts = folder / "facts"
    facts.mkdir()
    shutil.copy(ROOT / "tests/data/synthetic/hgx-h200-untuned.json", facts)
    audit = nodetune("audit", "--facts", facts, "--site", "none", "--format", "prometheus", "--fail-on", "never").stdout
    out = io.StringIO()
    found = watched.facts("h200-x2", next(iter(watched.recordings("h200-x2"))))
    watched.gpu_of(found)["memory_gib"] = 54.3  # recorded before that was read
    watch_metrics.write([watched.judged(found)], out)
    history_rates.write_prometheus([Rate("n1", "pci.replays", 7.0)], out)
    return audit + guard(folder) + out.getvalue()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The URL of a Prometheus that has scraped it twice."""
    folder = tmp_path_factory.mktemp("prometheus")
    content = exposition(folder).encode()
    scraped = threading.Semaphore(0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(content)
            scraped.release()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as source, socket.socket() as held:
        threading.Thread(target=source.serve_forever, daemon=True).start()
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
        held.close()
        job = f"{{job_name: nodetune, static_configs: [{{targets: ['127.0.0.1:{source.server_port}']}}]}}"
        (folder / "config.yml").write_text(
            f"global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs: [{job}]\n"
        )
        words = (f"--config.file={folder / 'config.yml'}", f"--storage.tsdb.path={folder / 'data'}")
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(["prometheus", *words, f"--web.listen-address={place}"], stderr=log, stdout=log)
        try:
            for _ in range(3):  # the third begins after the second was kept
                while not scraped.acquire(timeout=0.2):
                    assert process.poll() is None, (folder / "log").read_text()
            yield f"http://{place}"
        finally:
            process.kill()
            process.wait()
            source.shutdown()


def test_its_queries_name_metrics_that_nodetune_writes():
    named = {name for query in QUERIES.values() for name in re.findall(r"\bnodetune_\w+", query)}
    assert named <= KNOWN
    assert {name.split("_")[1] for name in named} == {"audit", "guard", "watch", "history"}
    assert BOARD["templating"]["list"][1]["definition"] == "label_values(nodetune_audit_reached, host)"


def test_its_panels_do_not_overlap_and_are_told_apart():
    cells = [
        (x, y)
        for panel in BOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("prometheus"), reason="Prometheus is not installed: apt install prometheus")
@pytest.mark.parametrize("name", QUERIES)
def test_each_panel_shows_something(name, server):
    done = subprocess.run(["promtool", "query", "instant", server, QUERIES[name]], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "=>" in done.stdout
