"""Measurements of this host's memory, GPUs and links, one file each. They measure; the controller judges.

Each file here but main.py is a measurement, and its name is the measurement's. What several need is in cuda/ (the driver,
libraries, GPUs, products), nccl_support/ (the API, ranks, results) and host/ (reports, processes, CPUs, other programs).

Standard library only (pynvml may be sent along); of nodetune only this folder and onhost/, and that only as `from . import x`
or `from nodetune.measurements.host import x`, in one line, so that what a measurement imports can be found and sent with it;
syntax and library of Python 3.6, because the same files run imported here and sent to a bare python3 on a host. A
measurement is a module with

    SECONDS = 20.0                     its deadline if the suite and the plan have none
    SCOPE = "host"                     what it measures: host, gpus (each GPU), collective (all GPUs, also of several
                                       hosts), pair (of hosts)
    SHARES_CUDA = True                 it runs in the process of the one before if both say so: the GPUs stay open
    GPUS = 2                           with fewer GPUs there is nothing to measure (1)
    ORDER = 10                         hosts measure in ascending order
    SUITES = {"quick": {}, "full": {"options": {…}, "seconds": 90}}     its suites; {}: only on request
    TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 1}, "METRIC": …}     in per cent
    SUSPECT = "{gpu}'s memory"         the part to suspect when it is below target; {subject} or {gpu} is the figure's subject
    SIZE_MATTERS = True                only figures of the same `size` are compared
    SIZES = (67108864, 1073741824)     its sizes in bytes if neither suite nor plan has any
    TAKES_FOLDER = True                its option `dir` is the folder that --disk names, and --disk adds it
    BY_NAME = True                     neither --disk nor --pairs adds it: it needs rare hardware or much time
    FINDS_OTHERS = True                it measures the load of others, which therefore does not disturb it
    ALL_PAIRS_SECONDS = 240            of pairs: the deadline of the seven rounds in which eight hosts have all met
    def measure(options, report): …    options: a dict of JSON data, all of them optional

The controller parses these constants and does not run the file (nodetune/verify/catalogue.py): write plain literals.
TOLERANCE: how far a figure may lie on the bad side of the median of its peers (a figure is an outlier when it is also
beyond 3.5 robust standard deviations; Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993), or of the site's
baseline. `drift`: how far figures of the same node vary from day to day; a smaller change is not reported.

Each runs in its own process (but see SHARES_CUDA), which may pin itself, fill memory, load drivers and be killed. It
reports its figures through `report` (see host/report.py) and raises report.SkipError or report.MeasurementError if it cannot
measure.

Manually, on a host with this package: python3 -m nodetune.measurements NAME '{"option": 1}'
"""
