"""The names of kernel parameters and the files that hold them."""

import pytest

from nodetune.onhost import sysctl


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vm.swappiness", "/proc/sys/vm/swappiness"),
        ("net.ipv4.conf.eth0/1.rp_filter", "/proc/sys/net/ipv4/conf/eth0.1/rp_filter"),
    ],
)
def test_a_parameter_and_its_file_name_each_other(name, path):
    assert sysctl.path_of(name) == path
    assert sysctl.name_of(path) == name
