"""Host names, folded and unfolded."""

import pytest

from nodetune.foundation import nodeset


@pytest.mark.parametrize(
    ("hosts", "folded"),
    [
        ([], ""),
        (["gpu2", "gpu1", "gpu10"], "gpu[1-2,10]"),
        (["gpu001", "gpu002"], "gpu[001-002]"),
        (["b", "a[1", "gpu1", ""], "b,gpu1,,a[1"),
    ],
)
def test_names_of_hosts_are_folded_and_odd_ones_stay_as_they_are(hosts, folded):
    assert sorted(nodeset.fold(hosts).split(",")) == sorted(folded.split(","))


@pytest.mark.parametrize("text", ["gpu[001-128,200]", "gpu1", "a,b[1-3/2]"])
def test_what_is_unfolded_is_folded_to_the_same_hosts(text):
    hosts = nodeset.unfold(text)
    assert nodeset.unfold(nodeset.fold(hosts)) == hosts
    assert len(hosts) == {"gpu[001-128,200]": 129, "gpu1": 1, "a,b[1-3/2]": 3}[text]


def test_a_node_set_has_65536_hosts_at_most():
    assert len(nodeset.unfold("n[1-65536]")) == 65536
    assert len(nodeset.unfold("n[1-256]-[1-256]")) == 65536
    assert len(nodeset.unfold("n[1-131071/2]")) == 65536
    for text, count in (("n[1-65537]", 65537), ("n[1-257]-[1-256]", 65792), ("n[1-65536,70000]", 65537)):
        with pytest.raises(ValueError, match=f"names {count} hosts: at most 65536 are possible"):
            nodeset.unfold(text)


def test_what_is_no_node_set_says_how_to_write_one():
    with pytest.raises(ValueError, match=r"'gpu\[1-' is not a valid node set \(.*\): write it like gpu\[001-128,200\]"):
        nodeset.unfold("gpu[1-")


@pytest.mark.parametrize(
    ("hosts", "folded"),
    [
        ("r1c1,r1c2,r2c1,r2c2", "r1c[1-2],r2c[1-2]"),
        ("gpu2-ib,gpu1-ib,x", "gpu1-ib,gpu2-ib,x"),
        ("n11,n8,n10,n09", "n[8,09-11]"),
        ("n9,n10,n1,n3", "n[1,3,9-10]"),
        ("n,n1,n01", "n,n[01,1]"),
        ("S-9999999999999998,S-9999999999999999", "S-[9999999999999998-9999999999999999]"),
        ("7", "7"),
    ],
)
def test_names_for_slurm_are_folded_by_the_number_at_their_end_alone(hosts, folded):
    assert nodeset.for_slurm(hosts.split(",")) == folded
