"""An NCCL setting has an invalid value.

Why it matters: NCCL reads numbers as C does and stops at the first character that is not a digit: NCCL_BUFFSIZE=4M is
four bytes, NCCL_IB_TC=010 is eight, NCCL_P2P_DISABLE=true is zero. It silently ignores unknown words. NCCL_NTHREADS is
the number of CUDA threads per block: 4, 8 or 16 are not multiples of 32, and NCCL uses 512 instead.
Confirm manually: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV all_reduce_perf -b 8 -e 8 -g 1 | grep "set by environment to"
Side effects of the fix: apply removes lines that NCCL ignores or reads as the default, and those that force its tuning. Of the
others a person decides whether what was meant is still wanted.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (src/misc/param.cc ncclLoadParam, src/graph/tuning.cc getNthreads)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._values import default_is_right, invalid
from nodetune.checks.shared.nccl_settings import problems


def invalid_values(facts: FactsView) -> Any:
    return invalid(facts["nccl.settings"]) or []


def left_alone(facts: FactsView) -> dict[str, str]:
    def judge(setting: Any, about: Any) -> str:
        return "" if default_is_right(setting, about) else "what was meant may still be wanted"

    return problems(facts["nccl.settings"], judge)


CHECK = Check(
    needs=("nccl.settings",),
    observe=invalid_values,
    accept=Empty("values that NCCL reads as intended"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="In the named file and line, write the value as proposed, or delete the line to use the default."
    ),
    severity="medium",
)
