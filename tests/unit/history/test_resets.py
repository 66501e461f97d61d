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


@pytest.mark.parametrize("lost", [Each({}), Each({"GPU0": Absent()}), Each({"GPU0": Value(None)})])
def test_a_gpu_that_is_back_with_its_serial_number_is_the_same_part(kept, lost):
    links = "gpu.nvlink_errors"
    gone = marks() | {"gpu.serial": lost, links: Each({})}
    seen = [marks() | {links: {"GPU0": {"recovery": {"7": count}}}} for count in (9, 50)]
    assert kept(f"{links}/GPU0/recovery/7", seen[0], gone, gone, seen[1]) == ([9, 9, 9, 50], [])


def test_another_gpu_in_the_place_of_a_lost_one_is_another_part(kept):
    gone = marks() | {"gpu.serial": Each({}), REPLAYS: Each({})}
    seen = marks() | {REPLAYS: {"GPU0": 9}}, gone, marks(serial="2") | {REPLAYS: {"GPU0": 50}}
    assert kept(f"{REPLAYS}/GPU0", *seen) == ([9, 9, 9], ["another part: 1 counter"])


def test_a_gpu_without_a_serial_number_is_known_by_its_uuid(kept):
    def seen(uuid, count):
        return {"host.boot_id": uuid, "gpu.uuid": {"GPU0": uuid}, REPLAYS: {"GPU0": count}}

    assert kept(f"{REPLAYS}/GPU0", seen("a", 5), seen("b", 50_000), seen("a", 5)) == (
        [5, 5, 5],
        ["another part: 1 counter"] * 2,
    )


def test_a_counter_that_is_left_out_for_a_while_has_not_grown(kept):
    up, down = ({"gpu.nvlink_errors": {"GPU0": {"recovery": links}}} for links in ({"7": 500}, {}))
    more = {"gpu.nvlink_errors": {"GPU0": {"recovery": {"7": 503}}}}
    stored, resets = kept("gpu.nvlink_errors/GPU0/recovery/7", up, down, up, down, down, more)
    assert (stored, resets) == ([500, 500, 500, 500, 500, 503], [])


def test_a_counter_that_was_cleared_while_it_was_left_out_continues(kept):
    links = [{"gpu.nvlink_errors": {"GPU0": {"recovery": each}}} for each in ({"7": 500}, {}, {"7": 3}, {"7": 4})]
    stored, resets = kept("gpu.nvlink_errors/GPU0/recovery/7", *links)
    assert (stored, resets) == ([500, 500, 503, 504], ["cleared: 1 counter"])
