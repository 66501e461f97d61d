"""Say what the probe found, so that whatever a login prints before or after it does no harm."""

import os
import sys
import time

from nodetune.onhost import protocol
from nodetune.onhost.worker import write_all
from . import layout, main


def document(asked, seconds, most=0.0):
    """Probe and describe the probe itself."""
    start = time.time()
    found = main.probe(asked, seconds, most)
    found["about"] = {
        "time": int(start),
        "seconds": round(time.time() - start, 3),
        "uid": os.getuid(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
    }
    return found


def emit(asked, nonce, seconds, most):
    """Probe, and write the answer to standard output."""
    sys.stdout.flush()
    answer = layout.text(document(asked, seconds, most)).encode("ascii")
    write_all(1, b"\n" + protocol.encode(answer, nonce))
