"""Spread work over several processes: one interpreter uses one CPU, whatever its number of threads."""

import gc
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import IO, Any, TypeVar

Part = TypeVar("Part")
Work = Callable[[Sequence[Part]], Generator[Any, None, None]]


@dataclass(frozen=True)
class WorkerError:
    """An error in a process."""

    problem: Exception


ENOUGH = 100
"""The smallest number of things that is worth a process."""


def processes(things: int) -> int:
    """Return the number of processes for this many things: one if fork is unsafe on this system (macOS)."""
    if not sys.platform.startswith("linux"):
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), things // ENOUGH))


def parts(things: Sequence[Part], count: int) -> list[Sequence[Part]]:
    """Distribute the things in turn, so that neighbours, which are often equally slow, go to different processes."""
    return [things[number::count] for number in range(count)]


def spread(shares: Sequence[Sequence[Part]], work: Work[Part]) -> Generator[Any, None, None]:
    """Yield the results of `work` for each part on arrival, each part in its own process.

    Results are pickled; an object that one process yields several times stays one object. Exceptions of `work` are
    raised here. A process that dies loses its remaining results: the caller must count. Call it before any thread is
    started; closing the generator ends the processes.
    """
    said: queue.SimpleQueue[Any] = queue.SimpleQueue()
    ended = object()
    children: list[tuple[int, IO[bytes]]] = []
    try:
        for share in shares:
            children.append(_fork(share, work, [pipe for _, pipe in children]))
        for _, pipe in children:
            threading.Thread(target=_listen, args=(pipe, said, ended), daemon=True).start()
        left = len(children)
        while left:
            message = said.get()
            if message is ended:
                left -= 1
            elif isinstance(message, WorkerError):
                raise message.problem
            else:
                yield message
    finally:
        for pid, _ in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid, _ in children:
            os.waitpid(pid, 0)


def _fork(share: Sequence[Part], work: Work[Part], others: Iterable[IO[bytes]]) -> tuple[int, IO[bytes]]:
    here, there = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # so that the child does not copy all memory by looking for garbage in it
    pid = os.fork()
    if pid:
        os.close(there)
        gc.unfreeze()
        return pid, os.fdopen(here, "rb")
    code = 1
    try:
        os.close(here)
        for pipe in others:  # while another child held one open, the end of our parent would go unnoticed
            pipe.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the parent decides
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        _tell(work(share), os.fdopen(there, "wb"))
        code = 0
    except BrokenPipeError:
        pass  # nobody listens any more
    finally:
        os._exit(code)


def _tell(yielded: Generator[Any, None, None], pipe: IO[bytes]) -> None:
    told = pickle.Pickler(pipe, pickle.HIGHEST_PROTOCOL)  # one for all: it writes an object that it knows as a number
    try:
        with closing(yielded):
            for each in yielded:
                told.dump(each)
                pipe.flush()
    except BrokenPipeError:
        raise
    except Exception as problem:  # noqa: BLE001  (the parent raises it)
        told.dump(WorkerError(problem))
        pipe.flush()


def _listen(pipe: IO[bytes], said: queue.SimpleQueue[Any], ended: object) -> None:
    reader = pickle.Unpickler(pipe)  # noqa: S301  (written by our own child)
    with pipe, suppress(EOFError, pickle.UnpicklingError, OSError):
        while True:
            said.put(reader.load())
    said.put(ended)
