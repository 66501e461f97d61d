"""Settings that the daemon of IBM Storage Scale (GPFS) uses on this host: `gpfs.config`."""

import re

from . import read

MMDIAG = "/usr/lpp/mmfs/bin/mmdiag"
SETTINGS = ("pagepool", "dynamicPagepoolEnabled")
LINE = re.compile(r"^[ !]{0,8}(\w{1,64}) +(\d{1,18})\s*$", re.MULTILINE)
"""A setting on a line of its own; a `!` marks one that is not the default."""


def collect(names, step):
    step("mmdiag --config")
    yield "config", _config()


def _config():
    """Return the settings that are numbers; absent without GPFS. Only the daemon of this host is asked."""
    if not read.exists(MMDIAG):
        return read.absent("GPFS is not installed")
    try:
        output = read.run([read.ROOT + MMDIAG, "--config"])
    except OSError as problem:
        return read.unread("mmdiag --config: {}".format(read.why(problem)))
    found = {name: int(number) for name, number in LINE.findall(output) if name in SETTINGS}
    return read.value(found) if found else read.unread("mmdiag --config: none of the settings found")
