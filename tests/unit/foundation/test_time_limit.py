"""Work that takes too long is interrupted, by its own CPU time."""

import signal
import threading
import time

import pytest

from nodetune.foundation.time_limit import OutOfTimeError, limited


def spin(seconds):
    """Compute for so many seconds of CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


def test_work_beyond_its_time_is_interrupted():
    began = time.thread_time()
    with pytest.raises(OutOfTimeError), limited(0.1):
        spin(60)
    assert time.thread_time() - began < 30


def test_work_that_swallows_an_interruption_gets_another():
    def work():
        try:
            spin(60)
        except OutOfTimeError:
            spin(60)

    with pytest.raises(OutOfTimeError), limited(0.1):
        work()


def test_waiting_and_other_threads_cost_no_time():
    other = threading.Thread(target=spin, args=(0.4,))
    other.start()
    with limited(0.3):
        other.join()
        time.sleep(0.4)


def test_nothing_is_left_behind():
    before = signal.getsignal(signal.SIGALRM)
    with limited(5):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (before, (0.0, 0.0))


def test_outside_of_the_main_thread_there_is_no_limit():
    done = []

    def work():
        with limited(0.05):
            spin(0.2)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
