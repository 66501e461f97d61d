"""Whether parts of a site do their work: DCGM's exporter serves metrics, and GPUDirect Storage passes NVIDIA's check."""

import http.server
import threading
from types import SimpleNamespace

import pytest

from nodetune.hosts.target import Target
from nodetune.provision.exporter import EXPORTER
from nodetune.provision.steps import Steps
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.events import Outcome

LINE = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0"} 41\n'
"""As dcgm-exporter writes it (NVIDIA/dcgm-exporter, README.md)."""


class Operations:
    def __init__(self, **outcomes):
        self.outcomes, self.asked = outcomes, []

    def play(self, name, hosts):
        self.asked.append((name, hosts))
        return {host: self.outcomes[host] for host in hosts}


def steps(operations, **parts):
    found = object.__new__(Steps)
    found.operations = operations
    found.decisions = {host: SimpleNamespace(wanted=SimpleNamespace(parts=its)) for host, its in parts.items()}
    return found


def test_only_hosts_with_the_part_are_asked_for_metrics():
    silent = Outcome("b", "failed", "serves no metric of a GPU")
    operations = Operations(a=Outcome("a"), b=silent)
    found = steps(operations, a=[EXPORTER], b=["dcgm", EXPORTER], c=["dcgm"])._silent(
        EXPORTER, "metrics", ["a", "b", "c"]
    )
    assert {host: each.message for host, each in found.items()} == {"b": "serves no metric of a GPU"}
    assert operations.asked == [("metrics", ["a", "b"])]


def test_nobody_is_asked_where_no_host_has_the_part():
    operations = Operations()
    assert steps(operations, a=["dcgm"])._silent(EXPORTER, "metrics", ["a"]) == {}
    assert operations.asked == []


@pytest.fixture
def serve():
    """serve(text) → the port of a server whose every page is this text."""
    servers = []

    def start(text):
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *words):
                pass

        servers.append(http.server.HTTPServer(("127.0.0.1", 0), Page))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return servers[-1].server_address[1]

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


@pytest.mark.full  # three plays by the real Ansible
@pytest.mark.parametrize(("text", "state"), [(LINE, "ok"), ("go_goroutines 12\n", "failed"), (None, "failed")])
def test_the_play_asks_the_exporter_itself(serve, text, state):
    port = 1 if text is None else serve(text)
    here = Target("here", connection="local", python="/usr/bin/python3")
    outcome = play.play("metrics", [here], {"here": {"nodetune_port": port, "nodetune_tries": 1}})["here"]
    assert outcome.state == state
    told = "" if state == "ok" else f"serves no metric of a GPU at http://127.0.0.1:{port}/metrics: journalctl"
    assert told in outcome.message
    assert not any(each.changed for each in outcome.results)


PASSES = "GPU INFO:\nGPU index 0 NVIDIA H100 80GB HBM3 bar:1 bar size (MiB):131072 supports GDS, IOMMU State: Disabled\nPlatform verification succeeded\n"
"""The end of what gdscheck -p printed on a host with eight H100s (public)."""


@pytest.mark.full  # plays by the real Ansible
@pytest.mark.parametrize(
    ("printed", "code", "loaded", "says"),
    [
        (PASSES, 0, True, ""),
        (None, 0, True, ""),
        (
            "error: libcufile.so.0: cannot open shared object file\n",
            1,
            True,
            "gdscheck -p does not pass: error: libcufile",
        ),
        (
            "GPU INFO:\nPlatform verification error :\nnvidia_fs: driver not loaded\n",
            0,
            True,
            "nvidia_fs: driver not loaded",
        ),
        (PASSES, 0, False, "nvidia-fs does not load ("),
    ],
)
def test_gpudirect_storage_is_loaded_and_passes_nvidias_check(tmp_path, printed, code, loaded, says):
    tool = tmp_path / "cuda-13.0/gds/tools/gdscheck"
    tool.parent.mkdir(parents=True)
    if printed is not None:
        tool.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\nexit {code}\n")
        tool.chmod(0o755)
    given = {
        "nodetune_cuda": f"{tmp_path}/cuda*",
        "nodetune_loaded": str(tmp_path if loaded else tmp_path / "not there"),
    }
    here = Target("here", connection="local", python="/usr/bin/python3")
    outcome = play.play("gds", [here], {"here": given})["here"]
    assert outcome.state == ("failed" if says else "ok"), outcome.message
    assert says in outcome.message
