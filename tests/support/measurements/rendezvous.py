"""How NCCL's ranks meet, without GPUs: all that nccl_run.py does but for what they then do with one another.

Options: `releases` (of NCCL, by host), `ill` ({host index: what the second rank there does instead}).
"""

import os
import signal
import time

from nodetune.measurements.host import process_team
from nodetune.measurements.nccl_support import nccl_run

SECONDS = 20.0
EACH = 2


def measure(options, report):
    here = {"gpus": EACH, "nccl": options.get("releases", ["2.28.9"] * 9)[report.self]}
    places = nccl_run.meet(here, report)
    first = sum(place["gpus"] for place in places[: report.self])
    ill = options.get("ill", {}).get(str(report.self))
    ranks = [
        (
            f"rank {first + number} on GPU{number}",
            lambda out, given, rank=first + number, ill=ill if number else None: take_part(rank, ill, out, given),
        )
        for number in range(EACH)
    ]
    with process_team.Team(ranks, nccl_run.Others(report).check if len(report.hosts) > 1 else None) as team:
        for number, _, content in nccl_run.conducted(team, time.monotonic() + report.left() - nccl_run.LAST, report):
            report.result(f"rank {first + number}", [1.0], "GB/s", identity=content, processes=len(places) * EACH)


def take_part(rank, ill, out, given):
    out.step("preparing")
    if ill == "never comes":
        time.sleep(60)
    out.send("ready", f"{rank + 7:032x}" if rank == 0 else None)
    out.step("waiting")
    identity = given.readline().decode("ascii").strip()
    out.step("meeting")
    if ill == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if ill == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if ill is None and os.environ.get("WAIT_FOR_THE_ILL"):
        time.sleep(60)
    out.send("case", identity)
