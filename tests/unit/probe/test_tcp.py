"""What the TCP collector reads from /proc/net."""

SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens InSegs OutSegs RetransSegs InErrs
Tcp: 1 -1 40 12 9000 8000 16 0
"""
NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPMemoryPressures
TcpExt: 0 7 9 2
IpExt: InNoRoutes
IpExt: 0
"""
SOCKSTAT = "sockets: used 40\nTCP: inuse 4 orphan 0 tw 1 alloc 6 mem 1300\nUDP: inuse 2 mem 5\n"
FILES = {
    "/proc/net/snmp": SNMP,
    "/proc/net/netstat": NETSTAT,
    "/proc/net/sockstat": SOCKSTAT,
    "/proc/net/softnet_stat": "0000000a 00000002 00000001 0\n00000014 00000001 00000000 0\n",
    "/proc/sys/net/ipv4/tcp_mem": "190000\t253000\t380000\n",
}


def test_counters_are_read_by_the_name_of_their_column(tree, collect):
    tree(FILES)
    facts = collect("tcp")
    assert facts["tcp.segments"] == {"value": {"sent": 8000, "retransmitted": 16, "accepted": 12}}
    assert facts["tcp.listen"] == {"value": {"overflows": 7, "drops": 9}}


def test_input_queues_of_all_cpus_are_summed(tree, collect):
    tree(FILES)
    assert collect("tcp")["tcp.softnet"] == {"value": {"processed": 30, "dropped": 3, "squeezed": 1}}


def test_memory_in_use_is_that_of_tcp_not_udp(tree, collect):
    tree(FILES)
    assert collect("tcp")["tcp.memory"] == {
        "value": {"pages": 1300, "limits": [190000, 253000, 380000], "pressures": 2}
    }


def test_a_missing_file_is_absent_and_a_strange_one_unread(tree, collect):
    tree({**FILES, "/proc/net/snmp": "Tcp: no numbers follow\n"})
    facts = collect("tcp")
    assert "unread" in facts["tcp.segments"]
    tree({})
    (tree({}) / "proc/net/netstat").unlink()
    facts = collect("tcp")
    assert "absent" in facts["tcp.listen"]
    assert "absent" in facts["tcp.memory"]
