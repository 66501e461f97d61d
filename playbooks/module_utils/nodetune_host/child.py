"""Asks a driver in a child process with a deadline: a call that hangs in the kernel cannot even be killed."""

import json
import os
import select
import signal
import time

from .problem import Problem

LONGEST = 4 << 20


def ask(function, seconds, what):
    """What `function(step)` returns (JSON data). It calls step("text") before anything that may hang.

    The child has its own session and none of our descriptors, so that one left behind holds nothing of ours.
    Raises Problem with the child's own Problem, or naming `what` and the step that it was at.
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(function, theirs)
    os.close(theirs)
    lines, ended = _listen(ours, time.monotonic() + seconds)
    os.close(ours)
    _end(pid, ended)
    steps = [text for kind, text in lines if kind == "step"]
    for kind, content in lines:
        if kind == "answer":
            return content
        if kind == "problem":
            raise Problem(content)
    at = f" (at {steps[-1]})" if steps else ""
    raise Problem(f"{what} ended without an answer{at}" if ended else f"{what} did not answer within {seconds} s{at}")


def _child(function, pipe):
    """Never returns: what the parent was in the middle of is none of the child's business."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        os.dup2(pipe, 3)
        os.closerange(4, 65536)
        _say("answer", function(lambda text: _say("step", text)))
    except Problem as problem:
        _say("problem", str(problem))
    except BaseException as fault:
        _say("problem", f"{type(fault).__name__}: {fault}")
    finally:
        os._exit(0)


def _say(kind, content):
    data = json.dumps([kind, content]).encode("ascii") + b"\n"
    while data:
        data = data[os.write(3, data) :]


def _listen(pipe, deadline):
    """The lines that came until the deadline, and whether the child closed its end."""
    data = b""
    while len(data) < LONGEST:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return _lines(data), False
        part = os.read(pipe, 65536)
        if not part:
            return _lines(data), True
        data += part
    return _lines(data), False


def _lines(data):
    return [json.loads(line.decode("ascii")) for line in data.split(b"\n")[:-1]]


def _end(pid, ended):
    """Collect the child; kill one that did not come back, and leave behind one that cannot be killed."""
    if not ended:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
