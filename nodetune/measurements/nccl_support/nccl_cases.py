"""The options of nccl and of the measurements like it, and the cases that follow from them. Pure."""

from nodetune.measurements.host import report as reporting
from . import nccl_ops

MAX_REPEATS = 50


def checked(options, sizes=()):
    """Return the options with their defaults, `sizes` among them. Raise MeasurementError for an invalid one."""
    asked = {
        "collectives": list(nccl_ops.NAMES),
        "sizes": list(sizes),
        "latency_collectives": list(nccl_ops.LATENCY),
        "latency_sizes": [],
        "in_place": None,
        "dtype": "float32",
        "repeats": 5,
        "iterations": 20,
        "warmup": 2,
        "check": True,
    }
    asked.update({name: value for name, value in options.items() if value is not None})
    names = list(asked["collectives"]) + list(asked["latency_collectives"])
    unknown = [name for name in names if name not in nccl_ops.NAMES]
    if unknown:
        raise reporting.MeasurementError(
            "no collective {}: there are {}".format(", ".join(unknown), ", ".join(nccl_ops.NAMES))
        )
    if asked["dtype"] not in nccl_ops.WIDTH:
        raise reporting.MeasurementError("dtype {}: only float32 and bfloat16 are supported".format(asked["dtype"]))
    if not asked["sizes"] or not _are_sizes(asked["sizes"]):
        raise reporting.MeasurementError("sizes {}: empty, or not all are numbers of bytes".format(asked["sizes"]))
    if not _are_sizes(asked["latency_sizes"]):
        text = "latency_sizes {}: not all are numbers of bytes"
        raise reporting.MeasurementError(text.format(asked["latency_sizes"]))
    if not 1 <= asked["repeats"] <= MAX_REPEATS:
        raise reporting.MeasurementError("repeats {}: 1 to {} are possible".format(asked["repeats"], MAX_REPEATS))
    return asked


def _are_sizes(given):
    return all(isinstance(size, int) and size > 0 for size in given)


def planned(asked, ranks):
    """Yield the cases in their order, which is the same on every host."""
    for size in sorted(asked["latency_sizes"]):
        for name in asked["latency_collectives"]:
            counted = nccl_ops.counted(name, size, ranks)
            if counted:
                yield {"name": name, "size": counted, "in_place": False, "latency": True}
    for size in sorted(asked["sizes"]):
        for name in asked["collectives"]:
            for in_place in (False, True):
                counted = nccl_ops.counted(name, size, ranks)
                if counted and (not in_place or name in nccl_ops.IN_PLACE) and asked["in_place"] in (None, in_place):
                    yield {"name": name, "size": counted, "in_place": in_place}
