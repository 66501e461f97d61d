"""Measures how long the whole probe takes on this machine, as nodetune sends it to a host, beside a bare interpreter and, where
there is one, beside a plain nvidia-smi: medians of runs in turn, and their ratio."""

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import yaml

from benchmarks.support.measuring import BIN, COUNT, benchmark, cost, times

PYTHON = [sys.executable, "-I", "-S", "-"]


def script(nodetune):
    """The probe as this nodetune sends it to a host: an interpreter that keeps what it is sent."""
    with tempfile.TemporaryDirectory() as name:
        keeper, sent, hosts = (Path(name) / each for each in ("python3", "sent", "hosts.yml"))
        keeper.write_text(f"#!/bin/sh\ncat > {sent}.$$\n")
        keeper.chmod(0o755)
        one = {"ansible_connection": "local", "ansible_python_interpreter": str(keeper)}
        hosts.write_text(yaml.safe_dump({"all": {"hosts": {"one": one, "other": one}}}))
        subprocess.run([nodetune, "audit", "-i", hosts, "--no-compare"], capture_output=True, check=False)
        return next(Path(name).glob("sent.*")).read_bytes()


@benchmark(__doc__, runs=1)
@click.argument("runs", default=11, type=COUNT)
def main(runs):
    probe, smi = script(BIN / "nodetune"), shutil.which("nvidia-smi")
    taken = [
        (cost(PYTHON, script=b"pass").wall, cost(PYTHON, script=probe).wall, cost([smi]).wall if smi else 0)
        for _ in range(runs)
    ]
    bare, full, plain = (statistics.median(each) for each in zip(*taken, strict=True))
    print(f"script {len(probe) // 1024} KiB, bare python3 {bare * 1000:.0f} ms")
    if smi:
        return {"probe_gpus": f"{full:.2f} s, {plain:.2f} s"}
    return {"probe": f"{full * 1000:.0f} ms, {times(full, bare, 0)}"}


if __name__ == "__main__":
    main()
