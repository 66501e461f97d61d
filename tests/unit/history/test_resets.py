"""Each way in which counters start again: what is stored never falls, and errors are never made up."""

import pytest

from nodetune.api.model import Absent, Each, Unread, Value

REPLAYS = "gpu.pcie_replay_counter"
AGGREGATE = "gpu.ecc_corrected_aggregate"


def marks(boot="a", driver="580.1", serial="1"):
    return {"host.boot_id": boot, "gpu.driver_version": driver, "gpu.serial": {"GPU0": serial}}


@pytest.fixture
def kept(history, look):
    """Records (facts) one after the other: the stored values of a leaf, and the resets."""

    def made(leaf, *seen):
        for number, facts in enumerate(seen):
            history.record([look(number * 900, facts)])
        changes = [each.after for each in history.changes("n1") if each.leaf == "reset"]
        return [each.low for each in history.series("n1", leaf)], changes

    return made


@pytest.mark.parametrize(
    ("counts", "then", "stored", "said"),
    [
        ((9, 12), marks(), [9, 12], []),
        ((9, 2), marks(boot="b"), [9, 11], ["reboot: 1 counter"]),
        ((9, 12), marks(boot="b"), [9, 12], []),
        ((9, 2), marks(driver="580.2"), [9, 11], ["driver loaded: 1 counter"]),
        ((9, 2), marks(), [9, 11], ["cleared: 1 counter"]),
        ((2**32 - 4, 6), marks(), [2**32 - 4, 2**32 + 6], ["wrapped: 1 counter"]),
        ((2**64 - 4, 6), marks(), [2**64 - 4, 2**64 + 6], ["wrapped: 1 counter"]),
        ((9, 99), marks(serial="2"), [9, 9], ["another part: 1 counter"]),
        ((9, 3), marks(serial="2"), [9, 9], ["another part: 1 counter"]),
    ],
)
def test_a_counter_continues_after_each_kind_of_reset(kept, counts, then, stored, said):
    first, second = counts
    assert kept(f"{REPLAYS}/GPU0", marks() | {REPLAYS: {"GPU0": first}}, then | {REPLAYS: {"GPU0": second}}) == (
        stored,
        said,
    )


@pytest.mark.parametrize(
    ("leaf", "serial"),
    [
        ("block.smart/nvme0/media_errors", "block.serial"),
        ("rdma.counters/mlx5_0/1/symbol_error", "rdma.guid"),
        ("gpu.violations/GPU0/power_brake", "gpu.serial"),
    ],
)
def test_counters_of_another_drive_or_nic_begin_again(kept, leaf, serial):
    def seen(own, count):
        (fact, part), (subject, _, item) = leaf.split("/")[:2], leaf.partition("/")[2].rpartition("/")
        return {serial: {part: own}, fact: {subject: {item: count}}}

    assert kept(leaf, seen("a", 9), seen("b", 12), seen("b", 15)) == ([9, 9, 12], ["another part: 1 counter"])


def test_it_grows_after_a_reset(kept):
    reboot = marks(boot="b")
    seen = [marks() | {REPLAYS: {"GPU0": 9}}, *(reboot | {REPLAYS: {"GPU0": count}} for count in (2, 5, 1, 4))]
    assert kept(f"{REPLAYS}/GPU0", *seen)[0] == [9, 11, 14, 15, 18]


def test_a_reboot_does_not_clear_what_the_part_keeps(kept):
    seen = marks() | {AGGREGATE: {"GPU0": 9}}, marks(boot="b") | {AGGREGATE: {"GPU0": 2}}
    assert kept(f"{AGGREGATE}/GPU0", *seen) == ([9, 11], ["cleared: 1 counter"])


@pytest.mark.parametrize(
    "gone", [Each({}), Each({"GPU0": Absent()}), Each({"GPU0": Unread("lost")}), Unread("no driver")]
)
def test_a_gpu_that_was_lost_does_not_make_errors_when_it_is_back(history, look, gone):
    for number, fact in enumerate((Each({"GPU0": Value(50)}), gone, Each({"GPU0": Value(51)}))):
        history.record([look(number * 900, {AGGREGATE: fact} if isinstance(fact, Each) else {})])
    assert [each.low for each in history.series("n1", f"{AGGREGATE}/GPU0")] == [50, 50, 51]


def test_a_counter_that_leaves_zeros_out_starts_again_at_zero(kept):
    def links(**recoveries):
        return marks(boot=str(len(recoveries))) | {"gpu.nvlink_errors": {"GPU0": {"recovery": recoveries}}}

    assert kept("gpu.nvlink_errors/GPU0/recovery/7", links(**{"7": 9}), links(), links(**{"7": 12})) == (
        [9, 9, 21],
        ["reboot: 1 counter"],
    )


def test_a_counter_that_is_read_for_the_first_time_has_not_grown(history, look):
    history.record([look(0, {"sysctl.vm.swappiness": 60, REPLAYS: {"GPU0": 1}})])
    for number in (1, 2):
        history.record([look(number * 900, {REPLAYS: {"GPU0": 1, "GPU1": 700}, AGGREGATE: {"GPU0": 10**9 + number}})])
    assert [each.low for each in history.series("n1", f"{AGGREGATE}/GPU0")] == [0, 0, 1]
    assert [each.low for each in history.series("n1", f"{REPLAYS}/GPU1")] == [0, 0, 0]


def test_a_gauge_may_fall(kept):
    assert kept("gpu.temperature/GPU0", {"gpu.temperature": {"GPU0": 60}}, {"gpu.temperature": {"GPU0": 40}}) == (
        [60, 40],
        [],
    )
