"""Hosts that use no RDMA although their Ethernet cards could: nothing of RDMA is a fault there, and on a server it still is."""

import json

from nodetune.api.model import HostResult
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.facts import document
from tests.data.synthetic import build

WORKSTATION, SERVER = "workstation-4x4090", "pcie-8xl40s"
LOCAL = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
OF_RDMA = {
    "rdma-port-not-active",
    "rocev2-gid-missing",
    "gpudirect-path-missing",
    "gpu-without-near-nic",
    "nccl-transport-disabled",
}


def facts_of(name):
    return json.loads((build.HERE / f"{name}.json").read_text())["facts"]


def failing(name, facts):
    seen = HostResult(name, "ok", facts=document.from_data({"host": name, "facts": facts}))
    return {each.check for each in Auditor(Selection()).audit(seen).failing()} & OF_RDMA


def with_card(facts, rate, state="ACTIVE", gid=LOCAL):
    """Add an onboard mlx5 card, whose RDMA driver loads by itself."""
    up = state == "ACTIVE"
    links = facts["net.links"]["value"]
    links["ens5f0np0"] = {**links["enp129s0"], "speed_mbps": int(rate * 1000), "bdf": "0000:83:00.0", "up": up}
    common = {"bdf": "0000:83:00.0", "numa_node": 0, "virtual_function": False}
    facts["rdma.devices"]["value"]["mlx5_0"] = {
        "firmware": "26.46.3048",
        "board_id": "MT_1",
        "hca_type": "MT4117",
        "node_type": "CA",
        "vendor": "15b3",
        "driver": "mlx5_core",
        **common,
    }
    facts["rdma.ports"]["value"]["mlx5_0/1"] = {
        "state": state,
        "phys_state": "LinkUp" if up else "Disabled",
        "rate_gbps": rate,
        "width": 1,
        "sm_lid": 0,
        "link_layer": "Ethernet",
        "netdev": "ens5f0np0",
        "model": "MT_1",
        **common,
    }
    entry = {"index": 1, "gid": gid, "type": "RoCE v2", "netdev": "ens5f0np0"}
    facts["rdma.gids"]["each"]["mlx5_0/1"] = {"value": [entry]}
    return facts


def with_settings(facts, **settings):
    lines = [{"name": name, "value": value, "raw": f"{name}={value}"} for name, value in settings.items()]
    where = {"file": "/etc/nccl.conf", "scope": "nccl.conf"}
    facts["nccl.settings"] = {"value": [{**line, **where, "line": at} for at, line in enumerate(lines, 1)]}
    return facts


def test_a_workstation_with_an_onboard_card_that_carries_tcp_has_no_finding_of_rdma():
    facts = with_settings(with_card(facts_of(WORKSTATION), 25.0), NCCL_P2P_DISABLE="1", NCCL_IB_DISABLE="1")
    assert failing(WORKSTATION, facts) == set()


def test_a_workstation_whose_rdma_capable_port_has_no_cable_has_no_finding_of_rdma():
    assert failing(WORKSTATION, with_card(facts_of(WORKSTATION), 40.0, "DOWN")) == set()


def test_geforce_cards_with_fast_roce_need_no_gpudirect_path():
    facts = with_card(facts_of(WORKSTATION), 100.0, gid="0000:0000:0000:0000:0000:ffff:c0a8:0a02")
    assert failing(WORKSTATION, {**facts, "kernel.nvidia_flavour": {"value": "proprietary"}}) == set()


def test_fast_roce_without_an_address_is_found_on_a_workstation_too():
    assert failing(WORKSTATION, with_card(facts_of(WORKSTATION), 100.0)) == {"rocev2-gid-missing"}


def test_a_server_whose_roce_ports_are_all_down_is_found():
    facts = facts_of(SERVER)
    for port in facts["rdma.ports"]["value"].values():
        port.update(state="DOWN", phys_state="Disabled")
    assert "rdma-port-not-active" in failing(SERVER, facts)


def test_a_server_that_loses_rdma_and_peer_to_peer_by_settings_is_found():
    for name in ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"):
        assert "nccl-transport-disabled" in failing(SERVER, with_settings(facts_of(SERVER), **{name: "1"}))
