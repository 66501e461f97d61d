"""Which udev rules set what is wrong with a disk's queue."""

from collections.abc import Callable

from nodetune.api import FactsView
from nodetune.foundation import text


def set_by_udev(fact: str) -> Callable[[FactsView, tuple[str, ...]], str]:
    """Return the cause of a check on disks: the rules of `fact` that set what its failing disks have."""

    def cause(facts: FactsView, subjects: tuple[str, ...]) -> str:
        rules = facts[fact]
        set_by = {disk: rules[disk] for disk in subjects if disk in rules}
        told = {disk: f"{rule['file']} line {rule['line']}" for disk, rule in set_by.items()}
        return f"set by udev: {text.folded(told)}" if told else ""

    return cause
