"""A kernel log that begins after the boot: what it has lost is not seen, and not seen is no pass."""

import pytest

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.config import site
from nodetune.facts import document
from nodetune.guard.node import gating_checks

OF_LOG = sorted({check.id for check in checks.load_all() if check.log})
DAY, WEEK = 86400, 7 * 86400


def judged(check, events, begins, uptime=30 * DAY, **more):
    facts = {
        "pci.gpus": {"value": ["0000:3b:00.0"]},
        "host.uptime_s": {"value": uptime},
        "xid.log": {"value": {"source": "kernel buffer", "since_s": begins, "lines": 9}},
        **events,
        **more,
    }
    return evaluate.judge(check, document.from_data({"host": "n1", "facts": facts}))


def empty(check):
    """Facts of a log that holds nothing of what the check looks for."""
    by_device = ("kernel_log.nics", "kernel_log.pcie_ports", "kernel_log.symbol_mismatches")
    logged = [name for name in check.needs if name.startswith(("kernel_log.", "xid."))]
    return {name: {"value": {} if name in by_device else []} for name in logged}


def test_every_check_of_the_log_says_how_much_of_it_a_pass_needs():
    of_state = {"nic-without-driver", "nic-left-by-driver", "gpu-unsupported"}
    reading = {
        check.id for check in checks.load_all() for name in check.needs if name.startswith(("kernel_log.", "xid."))
    }
    assert reading - of_state == set(OF_LOG)


@pytest.mark.parametrize("name", OF_LOG)
def test_nothing_in_a_log_that_was_cut_is_no_pass(name):
    check = checks.load(name)
    assert judged(check, empty(check), 0.0).status == "pass"
    cut = judged(check, empty(check), 29.9 * DAY)
    assert (cut.status, cut.reason) == ("unknown", "not seen since 29 days after the boot, where the kernel log begins")


def test_a_log_that_reaches_back_as_far_as_the_check_looks_is_enough():
    hung, oops = checks.load("tasks-hung"), checks.load("kernel-oops")
    assert judged(hung, empty(hung), 30 * DAY - WEEK - 1).status == "pass"
    assert judged(hung, empty(hung), 30 * DAY - WEEK + 1).status == "unknown"
    assert judged(oops, empty(oops), 59.0).status == "pass"
    assert judged(oops, empty(oops), 61.0).status == "unknown"


def test_an_event_in_a_log_that_was_cut_is_still_found():
    check = checks.load("gpu-xid-hardware")
    event = {"bdf": "0000:3b:00.0", "xid": 79, "time": 29.95 * DAY, "text": ""}
    assert judged(check, {**empty(check), "xid.events": {"value": [event]}}, 29.9 * DAY).status == "fail"


def test_an_empty_log_and_one_of_unknown_begin_are_told_apart():
    check = checks.load("tasks-hung")
    assert judged(check, empty(check), None).reason == "the kernel log is empty"
    unread = {"xid.log": {"unread": "not collected"}}
    assert judged(check, empty(check), 0.0, **unread).status == "pass"  # facts of another program
    assert judged(check, empty(check), 100.0, **{"host.uptime_s": {"unread": "no"}}).status == "unknown"


def test_a_count_of_a_site_below_its_threshold_needs_the_whole_log(tmp_path):
    path = tmp_path / "site.yml"
    path.write_text("add:\n  - {id: site-xid-31, xid: 31, accept: {at_most: 2}}\n")
    (check,) = site.read([path]).add
    events = {"xid.events": {"value": [{"bdf": "0000:3b:00.0", "xid": 31, "time": 1.0, "text": "", "count": 2}]}}
    assert judged(check, events, 0.0).status == "pass"
    assert judged(check, events, DAY).status == "unknown"


def test_what_a_log_has_lost_holds_no_job():
    entry = gating_checks.entry(checks.load("gpu-xid-hardware"))
    assert "xid.log" not in entry["facts"]
    host = gating_checks.host_facts(
        {"xid.events": {"value": []}, "xid.fallen_off_bus": {"value": []}, "pci.gpus": {"value": ["0000:3b:00.0"]}}, {}
    )
    assert [each.status for each in gating_checks.findings([entry], host)] == ["pass"]
