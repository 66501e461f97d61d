"""The settings of NCCL that one communicator can carry: fields of ncclConfig_t, and variables read when it is made.

Layout and magic number are those of nccl.h: the fields up to `netName` since 2.17, those up to `nvlsCTAs` since 2.27. NCCL takes
a shorter structure of an earlier release: it reads `size` bytes and leaves the rest at its defaults. A variable in the
environment or in nccl.conf has precedence over a field. All other variables are read once in a process.
"""

import ctypes

MAGIC, UNDEFINED = 0xCAFEBEEF, -(1 << 31)
FIRST, WITH_POLICY, MANY_CTAS = (2, 17), (2, 27), (2, 25)
FIELDS = {
    "NCCL_MIN_CTAS": ("minCTAs", FIRST),
    "NCCL_MAX_CTAS": ("maxCTAs", FIRST),
    "NCCL_CGA_CLUSTER_SIZE": ("cgaClusterSize", FIRST),
    "NCCL_CTA_POLICY": ("CTAPolicy", WITH_POLICY),
}
"""The field of a variable, and the first release that has it."""

POLICIES = {"DEFAULT": 0, "EFFICIENCY": 1, "ZERO": 2}
WHEN_MADE = ("NCCL_ALGO", "NCCL_PROTO")
"""Variables that NCCL reads whenever it makes a communicator."""

EARLY = [
    ("size", ctypes.c_size_t),
    ("magic", ctypes.c_uint),
    ("version", ctypes.c_uint),
    ("blocking", ctypes.c_int),
    ("cgaClusterSize", ctypes.c_int),
    ("minCTAs", ctypes.c_int),
    ("maxCTAs", ctypes.c_int),
    ("netName", ctypes.c_char_p),
]
LATER = [
    ("splitShare", ctypes.c_int),
    ("trafficClass", ctypes.c_int),
    ("commName", ctypes.c_char_p),
    ("collnetEnable", ctypes.c_int),
    ("CTAPolicy", ctypes.c_int),
    ("shrinkShare", ctypes.c_int),
    ("nvlsCTAs", ctypes.c_int),
]


class Early(ctypes.Structure):
    """ncclConfig_t of NCCL 2.17."""

    _fields_ = EARLY


class Later(ctypes.Structure):
    """ncclConfig_t of NCCL 2.27."""

    _fields_ = EARLY + LATER


def made(values, version):
    """Return an ncclConfig_t with these fields; all others are left to NCCL."""
    late = release(version) >= WITH_POLICY
    config = Later() if late else Early()
    for name, kind in config._fields_:
        if kind is ctypes.c_int:
            setattr(config, name, UNDEFINED)
    config.size, config.magic = ctypes.sizeof(config), MAGIC
    config.version = 22700 if late else 21700
    for name, value in values.items():
        setattr(config, name, value)
    return config


def split(setting, version, fixed=()):
    """Return a setting as (variables of the process, variables while the communicator is made, fields of its config).

    `fixed`: variables that the site has set, which only another variable of the process can replace.
    """
    process, making, fields = {}, {}, {}
    for name, value in setting.items():
        field, first = FIELDS.get(name, ("", None))
        if name in fixed or (name not in WHEN_MADE and (not field or release(version) < first)):
            process[name] = str(value)
        elif name in WHEN_MADE:
            making[name] = str(value)
        else:
            fields[field] = POLICIES[value] if value in POLICIES else int(value)
    if "minCTAs" in fields or "maxCTAs" in fields:  # NCCL refuses one without the other
        most = 64 if release(version) >= MANY_CTAS else 32
        fields = dict({"minCTAs": 1, "maxCTAs": max(most, fields.get("minCTAs", 0))}, **fields)
    return process, making, fields


def release(version):
    """Split `2.28.9` into (2, 28, 9)."""
    return tuple(int(part) for part in version.split("."))
