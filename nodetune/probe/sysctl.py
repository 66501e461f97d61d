"""Current kernel parameters: `sysctl.NAME`."""

from nodetune.onhost import sysctl

from . import read


def collect(names, step):
    for name in names:
        step(name)
        yield name, read.file_fact(sysctl.path_of(name), read.number_or_text)
