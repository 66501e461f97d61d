"""Rows of the tuner plugin in a setting: the plugin is built here for one measurement. Nothing is installed or left behind.

A setting has the rows under the name of ROWS, separated by semicolons. Its processes get the variables that jobs will have:
the plugin's library and a file of rows, both open files without a name.
"""

import ctypes
import os
import tempfile

from nodetune.measurements.host import external_tool
from nodetune.measurements.host import report as reporting

ROWS = "TUNER_ROWS"
SECONDS = 60.0
FLAGS = ("-O2", "-shared", "-fPIC", "-x", "c")
KEPT = []
"""Files that the ranks, which are forked from here, open by their numbers."""


def with_variables(settings, source, report):
    """Return the settings with variables for their rows. Raise MeasurementError or SkipError where it cannot be built."""
    if not any(ROWS in each for each in settings):
        return settings
    report.step("building the tuner plugin")
    library = built(source)
    return [_with(each, library) if ROWS in each else each for each in settings]


def built(source):
    """Return a path of the library that holds as long as this process and those forked from it."""
    compiler = external_tool.find("gcc") or external_tool.need("cc", "gcc")
    with tempfile.TemporaryDirectory(prefix="nodetune-") as folder:
        code, library = os.path.join(folder, "tuner.c"), os.path.join(folder, "tuner.so")
        with open(code, "w", encoding="utf-8") as file:
            file.write(source)
        external_tool.run([compiler, *FLAGS, "-o", library, code], SECONDS)
        KEPT.append(open(library, "rb"))  # noqa: SIM115  (it stays open on purpose)
    path = _path(KEPT[-1])
    try:
        ctypes.CDLL(path)
    except OSError as problem:
        raise reporting.MeasurementError(
            "the tuner plugin cannot be loaded from {}: {}".format(tempfile.gettempdir(), problem)
        )
    return path


def _with(setting, library):
    rows = tempfile.TemporaryFile()  # noqa: SIM115  (it stays open on purpose)
    rows.write(setting[ROWS].replace(";", "\n").encode("ascii") + b"\n")
    rows.flush()
    KEPT.append(rows)
    others = {name: value for name, value in setting.items() if name != ROWS}
    return dict(others, NCCL_TUNER_PLUGIN=library, NODETUNE_TUNER_FILE=_path(rows))


def _path(file):
    return "/proc/self/fd/{}".format(file.fileno())
