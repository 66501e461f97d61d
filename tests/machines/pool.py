"""Machines for tests: numbers that no other test run on this computer has, and an end for every machine.

A number is claimed by a lock that ends with the process that holds it. So workers of pytest-xdist, and test runs at the same time, never meet; and what a killed run left behind is recognised, because nobody holds its number.
"""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

from tests.machines import place
from tests.machines.image import Image
from tests.machines.machine import Machine

NUMBERS = range(40, 240)
AT_ONCE = 2
"""Machines that start at the same time: as many as the smallest computer that runs the tests has CPUs."""


class Fleet:
    """Starts machines, by being called, and stops all of them at the end of `with`."""

    def __init__(self, image: Image):
        self.image = image
        self._claims: dict[int, int] = {}
        self._machines: list[Machine] = []

    def __enter__(self):
        self._held = self.image.hold()
        self._remove_orphans()
        return self

    def __exit__(self, *_):
        for machine in list(self._machines):
            self.stop(machine)
        os.close(self._held)

    def __call__(self, count: int, mode: str = "resume") -> list[Machine]:
        """`count` new machines that one can log in to; see Machine.start for `mode`."""
        made = [Machine(self._claim(), self.image) for _ in range(count)]
        self._machines += made
        with ThreadPoolExecutor(AT_ONCE) as several:
            return list(several.map(lambda machine: machine.start(mode), made))

    def stop(self, machine: Machine) -> None:
        """End a machine before the others, and free its number and memory."""
        self._machines.remove(machine)
        machine.stop()
        os.close(self._claims.pop(machine.number))

    def _claim(self) -> int:
        for number in NUMBERS:
            if number not in self._claims and (lock := _lock(number)) is not None:
                self._claims[number] = lock
                return number
        raise place.FleetError(f"all machine numbers from {NUMBERS[0]} to {NUMBERS[-1]} are taken")

    def _remove_orphans(self) -> None:
        for number in NUMBERS:
            if (found := Machine.find(number)) and (lock := _lock(number)) is not None:
                with contextlib.suppress(OSError):
                    found.stop()
                os.close(lock)


def _lock(number: int) -> int | None:
    return place.open_lock(place.folder() / "claims" / str(number), wait=False)
