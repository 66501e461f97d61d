"""Which parts of a host were exchanged, by their serial numbers."""

import pytest

from nodetune.api.model import Each, HostFacts, Unread, Value
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.history.points import LeafChange
from nodetune.provision.readmit import replaced_parts, stage_results


def facts(**serials):
    """Facts with serial numbers: gpu={"GPU0": "1"}; a text is why they cannot be read."""
    names = {"gpu": "gpu.serial", "nvme": "block.serial", "nic": "rdma.guid", "dimm": "memory.serial"}
    read = {
        names[kind]: Unread(of) if isinstance(of, str) else Each({place: Value(serial) for place, serial in of.items()})
        for kind, of in serials.items()
    }
    return HostFacts("gpu1", read)


TWO = {"GPU0": "1650", "GPU1": "1651"}


def compared(before, after):
    return stage_results.inventory(replaced_parts.against(before, after))


def test_an_exchanged_part_is_named_by_both_numbers():
    found = compared(facts(gpu=TWO), facts(gpu={**TWO, "GPU1": "1700"}))
    assert (found.code, found.message) == (OK, "1 part exchanged: GPU GPU1: 1651 → 1700")


def test_the_same_parts_are_no_exchange():
    assert compared(facts(gpu=TWO, nvme={"nvme0n1": "S1"}), facts(gpu=TWO, nvme={"nvme0n1": "S1"})).message == (
        "no part was exchanged"
    )


def test_a_part_that_is_gone_keeps_the_host():
    found = compared(facts(gpu=TWO), facts(gpu={"GPU0": "1650"}))
    assert (found.ok, found.code, found.message) == (False, FINDINGS, "gone: GPU GPU1 (1651)")


def test_a_part_in_another_place_is_not_exchanged():
    assert compared(facts(gpu=TWO), facts(gpu={"GPU0": "1651", "GPU1": "1650"})).message == "no part was exchanged"
    found = compared(facts(gpu=TWO), facts(gpu={"GPU0": "1651"}))
    assert found.message == "gone: GPU GPU0 (1650)", "the numbers of GPUs move when one is lost"
    found = compared(facts(gpu=TWO), facts(gpu={"GPU0": "1651", "GPU1": "1700"}))
    assert found.message == "1 part exchanged: GPU GPU1: 1650 → 1700"


def test_a_new_part_is_named_with_none_before():
    found = compared(facts(dimm={"A1": "x"}), facts(dimm={"A1": "x", "A2": "y"}))
    assert found.message == "1 part exchanged: memory module A2: none → y"


def test_numbers_that_cannot_be_read_now_keep_the_host():
    found = compared(facts(gpu=TWO, dimm={"A1": "x"}), facts(gpu=TWO, dimm="permission denied"))
    assert (found.ok, found.code) == (False, INCOMPLETE)
    assert found.message == "serial numbers of the memory modules cannot be read now: permission denied"


@pytest.mark.parametrize("before", [facts(), facts(gpu="no root")])
def test_nothing_to_compare_is_unknown(before):
    assert compared(before, facts()).code == INCOMPLETE


def test_serial_numbers_of_a_host_are_made_safe():
    (found,) = replaced_parts.against(facts(gpu={"GPU0": "a\x1b[31m"}), facts(gpu={"GPU0": "b"})).exchanges
    assert "\x1b" not in str(found)


def test_a_history_gives_the_first_and_the_last_number():
    changes = [
        LeafChange(1, "gpu.serial/GPU3", "1", "2"),
        LeafChange(2, "gpu.serial/GPU3", "2", "3"),
        LeafChange(2, "sysctl.vm.swappiness", 60, 1),
        LeafChange(3, "rdma.guid/mlx5_0", "a", "b"),
        LeafChange(4, "rdma.guid/mlx5_0", "b", "a"),
    ]
    assert [str(each) for each in replaced_parts.by_history(changes).exchanges] == ["GPU GPU3: 1 → 3"]


LOST, BACK = LeafChange(5, "gpu.serial/GPU7", "7", None), LeafChange(15, "gpu.serial/GPU7", None, "7")


def test_a_part_that_was_lost_before_the_drain_is_gone():
    assert stage_results.inventory(replaced_parts.by_history([LOST], since=10)).message == "gone: GPU GPU7 (7)"


def test_a_part_that_is_back_after_the_drain_was_not_exchanged():
    assert stage_results.inventory(replaced_parts.by_history([LOST, BACK], since=10)).message == "no part was exchanged"


def test_a_part_that_was_exchanged_before_the_drain_is_no_news():
    before = [LeafChange(4, "gpu.serial/GPU3", "3", "33"), LeafChange(12, "gpu.serial/GPU1", "1", "11")]
    assert [str(each) for each in replaced_parts.by_history(before, since=10).exchanges] == ["GPU GPU1: 1 → 11"]


def test_a_lost_part_is_named_by_its_own_number_where_the_others_moved_up():
    moved = [LeafChange(5, "gpu.serial/GPU2", "2", "3"), LeafChange(5, "gpu.serial/GPU3", "3", None)]
    assert [each.before for each in replaced_parts.by_history(moved, since=10).gone] == ["2"]


def test_numbers_that_could_not_be_read_before_are_not_new_parts():
    found = replaced_parts.against(facts(gpu=TWO, dimm="no root"), facts(gpu=TWO, dimm={"A1": "x"}))
    assert (found.exchanges, found.parts) == ((), 2)


def test_a_part_that_is_gone_is_named_where_another_could_not_be_read_before():
    before = HostFacts("gpu1", {"gpu.serial": Each({"GPU0": Value("1650"), "GPU1": Unread("lost")})})
    assert compared(before, facts(gpu={"GPU1": "1651"})).code == OK, "what took its place has another number"
    assert compared(before, facts(gpu={})).message == "gone: GPU GPU0 (1650)"
