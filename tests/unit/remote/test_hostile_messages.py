"""What a host tells the others of its group passes through the controller: bounded, and never at another host's cost."""

import pytest

from nodetune.onhost import protocol
from nodetune.remote import group_messages


def deep(depth):
    found = "x"
    for _ in range(depth):
        found = [found]
    return found


def test_a_message_passes_as_it_is():
    told = {"number": 0, "topic": "t", "data": {"ways": [["10.0.0.1", 1.5]], "x": "y" * 100_000}}
    assert group_messages.relayed({"tell": told}, 0) == [{"told": {**told, "from": 0}}]


@pytest.mark.parametrize("data", [deep(50), deep(5000), "x" * 3_000_000, [0] * 500_000, {"x": 10**5000}])
def test_a_too_large_or_deep_message_ends_only_its_sender(data):
    ((told,),) = (group_messages.relayed({"tell": {"number": 0, "topic": "t", "data": data}}, 0),)
    assert told["told"]["topic"] == protocol.ENDED
    assert "too large" in told["told"]["data"]
    assert len(protocol.encode_event(told, "x")) < 1000


@pytest.mark.parametrize(
    "tell", [5, {"number": True, "topic": "t"}, {"number": 1 << 70, "topic": "t"}, {"number": 0, "topic": "t" * 9000}]
)
def test_a_message_that_is_none_is_dropped(tell):
    assert group_messages.relayed({"tell": tell}, 0) == []
