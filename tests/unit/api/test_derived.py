"""Values that are worked out from facts: for the sizes that hosts have."""

import pytest

from nodetune.api import derived
from nodetune.api.facts_view import FactsView
from nodetune.api.model import HostFacts, Value

GIB_KB = 1 << 20
MIB = 1 << 20


def found(function, **facts):
    view = FactsView(
        HostFacts("gpu1", {name.replace("__", "."): Value(value) for name, value in facts.items()}), function.needs
    )
    return function(view)


@pytest.mark.parametrize(
    ("speed", "memory_gib", "mib"),
    [
        (100_000, 2048, 32),
        (400_000, 2048, 128),
        (800_000, 2048, 256),
        (3_200_000, 2048, 256),
        (400_000, 8, 64),
        (400_000, 1, 16),
    ],
)
def test_a_flow_gets_twice_what_is_under_way_and_at_most_a_hundredth_of_memory(speed, memory_gib, mib):
    facts = {"derived__fastest_link_mbps": speed, "memory__total_kb": memory_gib * GIB_KB}
    assert found(derived.tcp_buffer_bytes, **facts) == mib * MIB


@pytest.mark.parametrize(("memory_gib", "mib"), [(4, 81.92), (64, 132), (512, 256), (1024, 512), (4096, 1024)])
def test_the_kernel_keeps_a_2048th_of_memory_free_within_bounds(memory_gib, mib):
    reserve = found(derived.min_free_kbytes, memory__total_kb=memory_gib * GIB_KB)
    assert reserve == int(mib * 1024)
