"""The driver logged a GPU Xid that calls for a reset or a repair.

Why it matters: These Xids come from the GPU, its memory, its firmware or its links, never from a program alone.
NVLink errors (144 to 150) count here if the driver calls them Fatal: the GPU must be reset. Some come from the other end
of the link, which the finding says. The check counts those since the GPU's last recovery or the last driver load. It
ignores Xids of programs (13, 31, 43, 45), and an ECC error (48) that the GPU contained (94 and no 95 within a minute),
but not what the driver asks for after any of them: a reset, a reboot or another recovery (154). A GPU has recovered from
what came before an action that it needed (154) if it needs none now, if it fell off the bus (79) and answers again, or
if it counts no uncorrected errors (48, 95) since its last reset. One or two timeouts of the GPU's firmware (119) count
as gpu-xid-suspect from driver 590 on, which continues after them and resets at the third.
Healthy exception: The GPU contained the error (Xid 94 and no 95), a program caused the Xid, a test injected it, or the
GPU has recovered since.
Does not gate: The kernel log shows what happened, not the current state of the GPU, and a reset is not logged: a
repaired GPU
could be held until the driver is loaded again. What such a fault leaves behind gates: gpu-lost and gpu-missing
after Xid 79, gpu-recovery-needed after Xid 95.
Confirm manually: journalctl -k -b | grep -E 'NVRM: Xid|fallen off the bus'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html ;
https://github.com/leptonai/gpud/pull/1160 (sub-codes of Xid 144 to 150) ;
https://github.com/NVIDIA/NVSentinel/pull/1240 (a log does not show a reset) ;
https://github.com/NVIDIA/open-gpu-kernel-modules (gpu.c: no Xid 154 after initialisation; kernel_gsp.c:
Xid 119, 175) ; https://github.com/scitix/sichek/pull/121
"""

from __future__ import annotations

from functools import partial
from math import inf

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.shared.xid_recovery import NEEDS, answering, nvlink_peers, require_gpu, slow_gsp, standing
from nodetune.checks.shared.xids import by_gpu, hardware


def observe(facts: FactsView) -> dict[str, list[str]] | list[str]:
    require_gpu(facts, "xid.events", "xid.fallen_off_bus")
    events = standing(facts)
    found = by_gpu(events, partial(hardware, slow_gsp=slow_gsp(facts, events), peers=nvlink_peers(facts)))
    alive = answering(facts)
    for event in (each for each in facts.readable("xid.fallen_off_bus", ()) if each["bdf"] not in alive):
        found.setdefault(event["bdf"], ["has fallen off the bus"])
    return found or []


CHECK = Check(
    needs=("xid.events", "xid.fallen_off_bus", "gpu.nvlink_remote", *NEEDS),
    observe=observe,
    log=inf,
    accept=Empty("no such Xid since the last reset"),
    remedy=repair(
        "Drain the node and look the Xid up in NVIDIA's catalogue, which names the action for each generation: "
        "usually a GPU reset (nvidia-smi -r), for 79 a power cycle. If the fault comes back, open a case with the "
        "vendor and attach the output of nvidia-bug-report.sh."
    ),
    severity="critical",
    part_of=("gpu-recovery-needed", "gpu-lost", "gpu-missing", "gpu-row-remap-failed", "pci-device-not-answering"),
)
