"""From the wish for CUDA MPS to changes."""

import shutil
import subprocess

import pytest

from nodetune.api.model import Absent, Each, HostFacts, Value
from nodetune.api.remedies import mps
from nodetune.foundation.text import own_settings
from tests.support.fixing import built, files, finding_of, of_kind, refused

UNIT = "/etc/systemd/system/nodetune-mps.service"
WISH = {"user": "root", "pipe_directory": "/run/mps/pipe"}


def host(daemons=(), mig="disabled"):
    return HostFacts(
        "gpu01",
        {
            "host.os": Value({"id": "ubuntu"}),
            "own.files": Value({}),
            "gpu.uuid": Each({"GPU0": Value("GPU-0"), "GPU1": Value("GPU-1")}),
            "gpu.mig_mode": Each({"GPU0": Value(mig)}),
            "mps.daemons": Value(list(daemons)),
            "services.nodetune-mps": Absent("not installed"),
        },
    )


def wish(value):
    return finding_of(mps(), value, check="mps-setup-unwanted")


def test_mps_runs_in_a_unit_with_gpus_exclusive_now_and_at_boot():
    changes = built(host(), wish(WISH))
    (mode,) = of_kind(changes, "gpu")
    assert (mode["setting"], mode["gpus"], mode["value"]) == ("compute_mode", [0, 1], "exclusive_process")
    assert own_settings(files(changes)["/etc/nodetune/gpu.conf"]) == {
        "compute_mode": {"0": "exclusive_process", "1": "exclusive_process"}
    }
    text = files(changes)[UNIT]
    assert "\nUser=root\n" in text and "\nEnvironment=CUDA_MPS_PIPE_DIRECTORY=/run/mps/pipe\n" in text
    unit = of_kind(changes, "unit")[-1]
    assert (unit["unit"], unit["enabled"], unit["active"]) == ("nodetune-mps.service", "enabled", "started")
    order = [each.get("setting") or each.get("unit") or each.get("run") for each in changes]
    assert order.index("compute_mode") < order.index("daemon-reload") < order.index("nodetune-mps.service")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    unit = tmp_path / "nodetune-mps.service"
    unit.write_text(files(built(host(), wish(WISH)))[UNIT])
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, "nodetune-mps" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"user": "root; rm"}, "is not a user that can be written safely"),
        ({"pipe_directory": "/tmp/x\nUser=bob"}, "is not a pipe_directory that can be written safely"),
        ({"pipes": "/tmp/x"}, "MPS accepts user, pipe_directory, log_directory"),
        ("on", "MPS accepts user, pipe_directory, log_directory"),
    ],
)
def test_a_wish_that_cannot_be_written_safely_is_refused(value, why):
    assert why in refused(host(), wish(value))


def test_somebody_elses_daemon_and_mig_are_left_alone():
    theirs = {"pid": 71, "user": "bob", "pipe_directory": "/tmp/nvidia-mps", "unit": ""}
    assert "an MPS daemon that is not nodetune's runs (process 71)" in refused(host([theirs]), wish(WISH))
    assert "MIG is on (GPU0)" in refused(host(mig="enabled"), wish(WISH))
    ours = dict(theirs, unit="nodetune-mps.service")
    assert of_kind(built(host([ours]), wish(WISH)), "unit")
