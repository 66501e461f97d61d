"""How the rails of hosts meet, without GPUs: all that rails_nccl.py does but for what NCCL does.

Options: `wrong` (host index, rail: where data come out wrong), `gpus` (of each host).
"""

from nodetune.measurements.nccl_support import nccl_cases, nccl_rank, nccl_run, rails_nccl

SECONDS = 30.0


def measure(options, report):
    count = options.get("gpus", [3] * 9)[report.self]
    found = {
        "gpus": [f"GPU{number}" for number in range(count)],
        "nccl": "2.28.9",
        "others": [],
        "library": "",
        "free": {},
    }
    nccl_run.look_around = lambda asked, report: found
    nccl_rank.take_part = lambda job, out, given: take_part(job, options.get("wrong"), out, given)
    rails_nccl.run(nccl_cases.checked(rails_nccl.options_of({"size": 1 << 20})), report)


def take_part(job, wrong, out, given):
    rail = int(job["gpu"][3:])
    out.send("ready", f"{rail + 7:032x}" if job["rank"] == 0 else None)
    identity = given.readline().decode("ascii").strip()
    here = 5 if wrong == [job["rank"], rail] else 0
    everywhere = 5 if wrong and wrong[1] == rail else 0
    # the pace tells which identity this rank was given
    found = {"seconds": [int(identity, 16) * 1e-3], "wrong": here, "wrong_everywhere": everywhere}
    out.send("case", dict(found, number=0, path={"nics": [f"mlx5_{rail}"]}))
