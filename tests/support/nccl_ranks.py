"""Ranks of real NCCL on the first GPU of this machine, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 200

RANK = """
import json, sys, time
from nodetune.measurements import nccl, nccl_overlap
from nodetune.measurements.nccl_support import nccl_api, nccl_cases, nccl_log, nccl_rank

class Tell:
    problem = None
    def step(self, text): pass
    def say(self, kind, content=None): pass
    def skip(self, reason, subject=None, metric=None): self.problem = reason
    failed = skip

kind, options, number, ranks = json.loads(sys.argv[1])
asked = nccl_cases.checked(options, nccl.SIZES)
cases = list(nccl_cases.planned(asked, ranks))
log = nccl_log.LogFile()
job = dict(asked, rank=number, ranks=ranks, gpu="GPU0", cases=cases, until=time.monotonic() + 200)
rank = {"nccl": nccl_rank.Rank, "nccl_overlap": nccl_overlap.Rank}[kind](job, nccl_api.load(), log, Tell())
rank.prepare()
if number == 0:
    print(rank.nccl.unique_id().hex(), flush=True)
rank.join(bytes.fromhex(sys.stdin.readline().strip()))
done = [dict(rank.case(case), size=case["size"], name=case["name"]) for case in cases]
rank.together()
log._file.seek(0)
print(json.dumps({"done": done, "log": log._file.read().decode("utf-8", "replace"), "nccl": rank.nccl.version}))
"""


def told(kind, options, environments):
    """Return what each rank tells of each case: one rank for each of these environments."""
    ranks = []
    for number, env in enumerate(environments):
        command = [sys.executable, "-c", RANK, json.dumps([kind, options, number, len(environments)])]
        given = {**os.environ, "NCCL_NVLS_ENABLE": "0", **env}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        ranks.append(subprocess.Popen(command, cwd=ROOT, env=given, text=True, **pipes))
    try:
        identity = ranks[0].stdout.readline()
        for rank in ranks:
            rank.stdin.write(identity)
            rank.stdin.flush()
        said = [rank.communicate(timeout=SECONDS) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), [errors[-2000:] for _, errors in said]
    return [json.loads(out.splitlines()[-1]) for out, _ in said]
