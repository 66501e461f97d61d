"""Measurements, one file each: what this host's memory, GPUs and links really do. They measure; others judge.

Standard library only (pynvml may ride along); imports nothing of nodetune outside this folder, and that only as
`from . import x`; syntax and library of Python 3.6, because the same files run imported here and sent to a bare python3
on a host. A measurement is a module with

    SECONDS = 20.0                     its deadline where the plan names none
    def measure(options, report): …    options: a dict of JSON data, all of them optional

Each runs in a process of its own, which may pin itself, fill memory, load drivers and be killed. It says what it found
through `report` (see report.py) and raises report.Skip or report.Fault where it cannot.

By hand, on a host with this package: python3 -m nodetune.verify NAME '{"option": 1}'
"""
