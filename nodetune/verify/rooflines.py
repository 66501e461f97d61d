"""The ridge of a GPU's roofline: the operations per byte at which memory and tensor cores bound work alike. Pure."""

from collections.abc import Iterable

from nodetune.foundation import by_key
from nodetune.verify.model import Verdict

COMPUTE, MEMORY = ("roofline", "bf16"), ("roofline", "hbm_read")


def ridges(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return {GPU: operations per byte} of each GPU with both roofs, which are in TFLOP/s and GB/s."""
    found = {}
    of_gpu = by_key((each.figure.subject, each.figure) for each in verdicts)
    for gpu, figures in of_gpu.items():
        value = {(each.measurement, each.metric): each.value for each in figures}
        if COMPUTE in value and value.get(MEMORY):
            found[gpu] = round(value[COMPUTE] * 1e3 / value[MEMORY])
    return found
