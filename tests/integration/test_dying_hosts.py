"""Hosts whose disk is full, whose root is read-only, and whose kernel does not answer: the probe leaves nothing and gets through."""

import os
import shutil
import subprocess

import pytest
from test_hostile_hosts import ASKED, OPTIONS
from test_logins import way

from nodetune.remote import payload, pool

BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])


def only(target, transport, asked=ASKED, seconds=10.0):
    ((_, outcome, _),) = pool.collect([target], lambda _: payload.script(asked, seconds), OPTIONS, 1, transport)
    return outcome


@pytest.fixture(scope="module")
def dying(new_farm):
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("a full disk and a read-only root of its own need root and mount namespaces")
    farm = new_farm()
    run = 'exec sh -c "$SSH_ORIGINAL_COMMAND"'
    full = f"mount --make-rprivate /; for d in /tmp /var/tmp /dev/shm /root /home; do mount -t tmpfs -o size=16k tmpfs $d; head -c 1M /dev/zero > $d/fill; done 2>/dev/null; {run}"
    scripts = {
        "full": full.replace(run, f"ls -la /tmp/fill >&2; ! echo more > /tmp/more || exit 9; {run}"),
        "read-only": f"mount --make-rprivate /; mount -o remount,bind,ro /; ! touch /nodetune-was-here 2>/dev/null || exit 9; {run}",
    }
    farm.places = {}
    bin_folder = farm.folder / "bin"
    for name, text in scripts.items():
        script = farm.script(farm.folder / name, text)
        address = farm.places[name] = farm.address()
        # the farm's own folder may be under /tmp, which the namespace hides: the interpreter is named instead
        farm.start({address: [f'ForceCommand exec unshare -m sh -c "$(cat {script})"']})
        farm.know(address)
    assert bin_folder.exists()
    return farm


@BOTH
@pytest.mark.parametrize("name", ["full", "read-only"])
def test_a_host_that_cannot_write_anything_is_probed(dying, transport, name):
    import sys
    from pathlib import Path

    python = Path(sys.executable).resolve()
    if name == "full" and str(python).startswith(("/tmp", "/root", "/home", "/var/tmp")):
        python = Path("/usr/bin/python3")
        if not python.exists():
            pytest.skip("the only python3 is in a folder that this test fills")
    outcome = only(dying.target(dying.places[name], python=str(python)), transport)
    assert way(outcome) == transport
    assert outcome.facts["sysctl.vm.swappiness"]


STUCK = """
def collect(names, step):
    yield "before", {"value": 1}
    step("reading FIFO")
    with open("FIFO") as pipe:
        yield "never", {"value": pipe.read()}
"""


@BOTH
def test_a_file_that_blocks_costs_only_its_own_facts(farm, monkeypatch, tmp_path, transport):
    """open() of a pipe that nobody writes to blocks as a /proc entry of a stuck driver does."""
    os.mkfifo(tmp_path / "fifo")
    shutil.copytree(payload.PROBE, tmp_path / "probe", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "probe/stuck.py").write_text(STUCK.replace("FIFO", str(tmp_path / "fifo")))
    monkeypatch.setattr(payload, "PROBE", tmp_path / "probe")
    for cached in (payload._source, payload._packed, payload._imports):
        cached.cache_clear()
    asked = {**ASKED, "stuck": ["before", "never"]}
    try:
        outcome = only(farm.target(farm.good[0]), transport, asked, seconds=6.0)
    finally:
        for cached in (payload._source, payload._packed, payload._imports):
            cached.cache_clear()
    assert way(outcome) == transport
    assert outcome.facts["stuck.before"].value == 1
    assert outcome.facts["host.arch"]
    assert outcome.about["failed"]["stuck"].endswith(f"in reading {tmp_path}/fifo")
