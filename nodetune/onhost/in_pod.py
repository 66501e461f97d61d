"""A program that `exec` starts in a pod: it works on the host, and ends when its client has left or its time is over.

Kubernetes leaves a program running when its client disappears. Only the end of its standard input shows that.
"""

import os
import select
import sys
import time

from . import host_root
from .worker import Worker

ANSWER = 1
CLIENT = 0
OVERDUE = 124


def run(work, seconds, folder=host_root.FOLDER):
    """Run `work()` in a child whose root is the host's. Return an exit status: 0, or why it was ended."""
    try:
        host_root.enter(folder)
    except host_root.HostRootError as problem:
        sys.stderr.write("nodetune: {}\n".format(problem))
        return 1
    del sys.path[:]  # what is missing must not be imported from the host
    child, end = Worker(lambda _report: work(), output=ANSWER), time.monotonic() + seconds
    try:
        while True:
            ready = select.select([child.pipe, CLIENT], [], [], max(0.0, end - time.monotonic()))[0]
            if not ready:
                return OVERDUE
            if child.pipe in ready and child.take() is None:
                return 0
            if CLIENT in ready and not os.read(CLIENT, 1 << 12):
                return 1
    finally:
        child.end()
