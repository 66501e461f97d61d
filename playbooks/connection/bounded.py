"""Runs a command and passes on its output up to a limit, then ends the command. On the controller.

    python -I -S bounded.py COMMAND…

It wraps each ssh of Ansible, which keeps all output of a host in memory. It starts once for each task and host:
hence few imports. Its exit status is the command's, or 255 (like ssh without a connection) if the limit was reached.
"""

import fcntl
import os
import select
import signal
import sys

MAX_BYTES = 16 << 20
"""Real results of a module, including old files of the host, are a tenth of it."""

MAX_ERRORS = 256 << 10
"""Ansible makes many copies of errors."""

MAX_VALUES = 500000
"""Limit for values in its JSON: an empty list takes two bytes of text but thirty times as many in memory."""

CHUNK = 1 << 16
LOST = 255
ENDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class TooMuchError(Exception):
    pass


class Relay:
    """One command; `run` returns its exit status."""

    def __init__(self, command):
        self._size = {1: 0, 2: 0}
        self._values = 0
        self._status = None
        pipes = {to: os.pipe() for to in (1, 2)}
        self._woken, wake = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _become(command, pipes)
        self._pipes = {}
        for to, (read, write) in pipes.items():
            os.close(write)
            self._pipes[read] = to
        for handle in (self._woken, wake):
            fcntl.fcntl(handle, fcntl.F_SETFL, os.O_NONBLOCK)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in ENDED:
            signal.signal(number, lambda *_: os.kill(self._pid, signal.SIGKILL))

    def run(self):
        """Pass on the output until the command has ended and nothing is left. Raise TooMuchError, OSError."""
        while True:
            self._reap()
            # a connection that is shared keeps these pipes open: with the command's end nothing more is waited for
            wait = None if self._status is None else 0
            ready = select.select([*self._pipes, self._woken], [], [], wait)[0]
            if self._woken in ready:
                os.read(self._woken, CHUNK)
                continue
            if not ready:
                return self._status if self._status >= 0 else 128 - self._status
            for read in ready:
                self._pass_on(read)

    def _reap(self):
        if self._status is None:
            pid, how = os.waitpid(self._pid, os.WNOHANG)
            self._status = os.WEXITSTATUS(how) if os.WIFEXITED(how) else -os.WTERMSIG(how)
            if not pid:
                self._status = None

    def _pass_on(self, read):
        data = os.read(read, CHUNK)
        if not data:
            del self._pipes[read]
            return
        to = self._pipes[read]
        self._size[to] += len(data)
        self._values += data.count(b",") + data.count(b"[") + data.count(b"{")
        if self._size[1] > MAX_BYTES or self._size[2] > MAX_ERRORS or self._values > MAX_VALUES:
            raise TooMuchError
        put(to, data)

    def end(self):
        """End the command if it still runs."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _become(command, pipes):
    """Become the command in the child. Other handles (a pipe with a password) stay open."""
    try:
        for to, (_, write) in pipes.items():
            os.dup2(write, to)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as problem:
        os.write(2, "{}: {}\n".format(command[0], problem.strerror).encode())
    finally:
        os._exit(127)


def put(to, data):
    while data:
        data = data[os.write(to, data) :]


def main(command):
    relay = Relay(command)
    try:
        return relay.run()
    except TooMuchError:
        put(2, b"\nnodetune: too much output: cut off\n")
    except OSError:  # nobody reads it any more
        pass
    finally:
        relay.end()
    return LOST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
