"""python -m tests.machines.short …: nodetune, whose quick suite is what an emulated machine with a GiB measures in seconds.

Copies within GPUs and between two: the substitute tells how long they take, so figures do not waver with the emulation. The rest of
the suite is left out: buffers in the memory of the host do not fit, and cuBLASLt and NCCL are not there.
"""

import sys

from nodetune.cli.main import main
from nodetune.verify import suites

SHORT = {"gpus": [0, 4], "copies": 1, "repeats": 3}
MEASURED = ({"name": "gpu_memory", "options": SHORT}, {"name": "gpu_p2p", "options": {**SHORT, "both": False}})

if __name__ == "__main__":
    suites.suite = lambda _: [*MEASURED]
    sys.exit(main())
