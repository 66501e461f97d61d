"""Waivers without effect are named where their findings count again."""

import io

import pytest

from nodetune.api.model import Finding, HostResult, Waiver
from nodetune.audit import idle_waivers
from nodetune.config.overlay import Overlay
from nodetune.report.text import waivers

TODAY = "2026-11-26"


def site(*given, **ranks):
    found = Overlay("site", "site.yml", waivers=given)
    found.members.ranks.update({host: tuple((name, 1, 1) for name in names) for host, names in ranks.items()})
    return found


def waiver(hosts="gpu1", until="2027-01-31", **more):
    return Waiver("fan-failed", hosts, "a fan is ordered", "ops", until, **more)


def host(name="gpu1", status="fail"):
    return HostResult(name, "ok", findings=(Finding("fan-failed", status, "high"),))


def named(overlay, *results):
    found = idle_waivers.idle(overlay, results, TODAY)
    return [("ended" if each.ended else "no host", each.hosts) for each in found]


def test_an_ended_waiver_is_named_with_the_hosts_it_covered():
    assert named(site(waiver("gpu*", "2026-11-25")), host("gpu1"), host("gpu2"), host("cpu1")) == [
        ("ended", ("gpu1", "gpu2"))
    ]


def test_a_waiver_counts_on_its_last_day():
    assert named(site(waiver(until=TODAY)), host(status="waived")) == []


def test_a_waiver_that_names_no_audited_host_is_named():
    assert named(site(waiver("gpu7")), host("gpu1"), host("gpu2", "pass")) == [("no host", ("gpu1",))]


@pytest.mark.parametrize("status", ["pass", "skip", "waived"])
def test_a_waiver_is_silent_where_its_check_does_not_fail(status):
    assert named(site(waiver("gpu7")), host(status=status)) == []
    assert named(site(waiver("gpu1", "2026-01-01")), host(status=status)) == []


def test_a_waiver_of_other_hosts_in_the_audit_is_silent():
    assert named(site(waiver("gpu2")), host("gpu1"), host("gpu2", "waived")) == []


def test_a_waiver_for_a_group_covers_the_hosts_of_the_group():
    for_group = waiver("", "2026-11-01", groups=("rack7",))
    assert named(site(for_group, gpu1=["rack7"], gpu2=["rack8"]), host("gpu1"), host("gpu2")) == [("ended", ("gpu1",))]
    assert named(site(for_group, gpu2=["rack8"]), host("gpu2")) == [("no host", ("gpu2",))]


def test_the_report_says_which_waiver_and_what_to_do():
    out = io.StringIO()
    overlay = site(waiver(until="2026-11-01"), waiver("gpu7"))
    waivers.write(list(idle_waivers.idle(overlay, [host()], TODAY)), "nodetune profile validate site.yml", out)
    assert out.getvalue().splitlines() == [
        "",
        "WAIVERS WITHOUT EFFECT",
        "  ended     fan-failed  on 2026-11-01 (ops): its finding counts on gpu1",
        "  no host   fan-failed  gpu7 is not among the hosts audited; it fails on gpu1",
        "  to do     nodetune profile validate site.yml",
    ]


def test_without_such_waivers_nothing_is_printed():
    out = io.StringIO()
    waivers.write([], "nodetune profile validate site.yml", out)
    assert out.getvalue() == ""
