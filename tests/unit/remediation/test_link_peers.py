"""With which hosts a link of another MTU is proven: those of its subnet, and one host of each subnet goes first."""

import pytest

from nodetune.api.model import Absent, Each, HostFacts, HostResult, Value
from nodetune.remediation.host_changes import PlannedChange
from nodetune.remediation.link_peers import MOST, LinkPeers
from nodetune.remediation.plan import HostPlan

LINK = {"link": "eth1", "setting": "mtu", "change": "link", "value": 9000, "peers": {}}
FILE = {"change": "file", "path": "/etc/x", "content": ""}
GROUP = {"group": "net_link", "changes": [FILE, LINK]}


def plan(name, address, mtu=1500, changes=True, subnet="192.0.2.0/24"):
    facts = {
        "net.links": Value({"eth1": {"mtu": mtu}, "eth2": {"mtu": 1500}}),
        "net.subnets": Value({subnet: ["eth1", "eth2"]}),
        "net.addresses": Each({"eth1": Value(address), "eth2": Absent("no IPv4 address")}),
    }
    made = (PlannedChange("net_link", "network flap", ("mtu",), (FILE, LINK)),) if changes else ()
    return HostPlan(HostResult(name, "ok", facts=HostFacts(name, facts)), changes=made)


def test_a_host_of_each_subnet_goes_first():
    plans = [
        plan("gpu01", "192.0.2.1", changes=False),
        plan("gpu02", "192.0.2.2"),
        plan("gpu03", "192.0.2.3"),
        plan("gpu04", "198.51.100.4", subnet="198.51.100.0/24"),
        plan("gpu05", "198.51.100.5", subnet="198.51.100.0/24"),
    ]
    assert LinkPeers(plans).canaries() == ["gpu02", "gpu04"]


def test_peers_are_the_other_hosts_of_the_subnet_and_their_mtu_is_what_it_has_become():
    plans = [
        plan("gpu01", "192.0.2.1", 9000, changes=False),
        plan("gpu02", "192.0.2.2"),
        plan("gpu03", "192.0.2.3"),
        plan("gpu04", "198.51.100.4", subnet="198.51.100.0/24"),
    ]
    peers = LinkPeers(plans)
    ((group,), first) = peers.given("gpu02", [GROUP]), {"host": "gpu01", "mtu": 9000}
    assert group["changes"] == [
        FILE,
        {**LINK, "peers": {"192.0.2.1": first, "192.0.2.3": {"host": "gpu03", "mtu": 1500}}},
    ]
    peers.changed("gpu02", [group], [])
    peers.changed("gpu03", [group], [{"label": "eth1 mtu"}])
    (group,) = peers.given("gpu04", [GROUP])
    assert group["changes"][1]["peers"] == {}
    (group,) = peers.given("gpu03", [GROUP])
    assert group["changes"][1]["peers"] == {"192.0.2.1": first, "192.0.2.2": {"host": "gpu02", "mtu": 9000}}


def test_the_peers_with_the_largest_mtu_come_first_where_there_are_many():
    many = [plan(f"gpu{number:03}", f"192.0.2.{number}", 1500 + number) for number in range(1, 40)]
    (group,) = LinkPeers(many).given("gpu001", [GROUP])
    found = group["changes"][1]["peers"]
    assert len(found) == MOST
    assert min(peer["mtu"] for peer in found.values()) == 1500 + 40 - MOST


@pytest.mark.parametrize(
    "other",
    [
        plan("gpu02", "198.51.100.2"),
        plan("gpu02", "not an address"),
        HostPlan(HostResult("gpu02", "unreachable")),
        HostPlan(HostResult("gpu02", "ok", facts=HostFacts("gpu02", {"net.subnets": Value(["x"])}))),
    ],
)
def test_a_host_whose_link_is_not_known_for_sure_proves_nothing(other):
    (group,) = LinkPeers([plan("gpu01", "192.0.2.1"), other]).given("gpu01", [GROUP])
    assert group["changes"][1]["peers"] == {}
