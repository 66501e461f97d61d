"""Fabrics as ibnetdiscover saves them: what is read, and what is refused in one line."""

import pytest
from support import fabrics

from nodetune.foundation import UserError
from nodetune.remediation import fabric_file

RECORDED = """\
#
# Topology file: generated on Wed Aug  6 16:11:23 2025
#
# Initiated from node e09d730300000001 port e09d730300000001

vendid=0x2c9
devid=0xd2f2
sysimgguid=0x2c5eab0300000040
switchguid=0x2c5eab0300000040(2c5eab0300000040)
Switch	65 "S-2c5eab0300000040"		# "MF0;LEAF-04:MQM9701/U1" enhanced port 0 lid 73 lmc 0
[1]	"H-e09d730300000001"[1](e09d730300000002) 		# "gpu01 mlx5_0" lid 647 4xNDR
[2]	"H-e09d730300000001"[2](e09d730300000003) 		# "gpu01 mlx5_0" lid 648 4xNDR s=4 w=2 v=3
[65]	"H-2c5eab0300000050"[1](2c5eab0300000050) 		# "Mellanox Technologies "Aggregation" Node" lid 193 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xe09d730300000001
caguid=0xe09d730300000001
Ca	2 "H-e09d730300000001"		# "gpu01 mlx5_0"
[1](e09d730300000002) 	"S-2c5eab0300000040"[1]		# lid 647 lmc 0 "MF0;LEAF-04:MQM9701/U1" lid 73 4xNDR
[2](e09d730300000003) 	"S-2c5eab0300000040"[2]		# lid 648 lmc 0 "MF0;LEAF-04:MQM9701/U1" lid 73 4xNDR

vendid=0x2c9
devid=0xcf09
caguid=0x2c5eab0300000050
Ca	1 "H-2c5eab0300000050"		# "Mellanox Technologies "Aggregation" Node"
[1](2c5eab0300000050) 	"S-2c5eab0300000040"[65]		# lid 193 lmc 0 "MF0;LEAF-04:MQM9701/U1" lid 73 4xNDR
"""


@pytest.fixture
def read(tmp_path):
    def of(*texts):
        paths = [tmp_path / f"fabric{number}" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        return fabric_file.read(*paths)

    return of


@pytest.fixture
def refused(read):
    def of(*texts):
        with pytest.raises((UserError, OSError)) as caught:
            read(*texts)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return of


def test_each_link_of_a_recorded_fabric_is_read(read):
    fabric = read(RECORDED)
    assert dict(fabric.adapters["e09d730300000001"].links) == {"2c5eab0300000040": 2}
    assert fabric.names == {"2c5eab0300000040": "LEAF-04"}
    assert set(fabric.adapters) == {"e09d730300000001", "2c5eab0300000050"}


def test_line_ends_of_windows_change_nothing(read):
    assert read(RECORDED.replace("\n", "\r\n")) == read(RECORDED)


def test_a_switch_without_a_name_of_its_own_has_its_guid(read):
    net = fabrics.Net()
    guids = [
        net.switch(text) for text in ("Quantum Mellanox Technologies", "same", "same", "a[1-2]", "leaf 3", "x" * 64)
    ]
    net.full(guids[:1], guids[1:])
    assert set(read(net.text()).names.values()) == {f"ib-{guid}" for guid in guids}


def test_a_file_is_refused_wherever_it_is_cut(refused):
    text = fabrics.fat_tree(4, 2, 2)[0].text()
    told = [refused(text[:at]) for at in range(text.index("[1]") + 1, len(text))]
    assert all(each.endswith("the file is cut or changed: run ibnetdiscover again") for each in told)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text + text[text.index("caguid") :], "the GUID e09d730300000001 is on line 19, too"),
        (lambda text: text.replace("[2]\t", "[1]\t", 1), "port 1 belongs to no node, or is there twice"),
        (lambda text: text.replace('40"[2]', '40"[3]'), "which does not lead back"),
        (lambda text: text.replace("\n[1]", "\n\n[1]", 1), "port 1 belongs to no node"),
        (
            lambda text: text.replace("vendid=0x2c9", "hello", 1),
            "line 6: 'hello' is not a line of a fabric: give the plain",
        ),
        (lambda _text: '{"a": 1}\n', "line 1: '{\"a\": 1}' is not a line of a fabric"),
        (lambda _text: "CA   647  1 0xe09d7303 4x NDR - SW 73 1\n", "is not a line of a fabric"),
        (lambda _text: "x" * 999, "line 1: it has no end: give the plain output of ibnetdiscover"),
        (lambda _text: "", "no switch with a link in it: run ibnetdiscover on a port with a link"),
        (lambda _text: 'Ca\t1 "H-b8e92403009ca838"\t\t# "gpu01 HCA-1"\n', "no switch with a link in it"),
        (lambda _text: b"\x00\xff\x1b[2J\n" * 9, "is not a line of a fabric"),
    ],
)
def test_what_is_no_whole_fabric_is_refused_in_one_line(refused, change, told):
    assert told in refused(change(RECORDED))


def test_a_file_without_end_is_not_read(refused, monkeypatch):
    monkeypatch.setattr(fabric_file, "LARGEST", 1 << 10)
    assert "larger than 1 KiB" in refused("#" * 2000)


def test_each_subnet_has_a_file_of_its_own(read, refused):
    one, other = fabrics.fat_tree(4, 2, 1)[0].text(), RECORDED
    assert len(read(one, other).switches) == 4
    assert "is in another of the files, too: give each subnet once" in refused(one, one)
