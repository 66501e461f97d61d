"""Whether a module is in the kernel, built in or loaded; loading for real is tested in the fleet."""

import os

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import module


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel that has loaded nvidia_peermem and in which tcp_bbr is built in."""
    release = tmp_path / "modules" / os.uname().release
    release.mkdir(parents=True)
    (release / "modules.builtin").write_text("kernel/net/ipv4/tcp_bbr.ko\nkernel/drivers/net/dummy-two.ko\n")
    (tmp_path / "sys" / "nvidia_peermem").mkdir(parents=True)
    monkeypatch.setattr(module, "SYS", str(tmp_path / "sys"))
    monkeypatch.setattr(module, "MODULES", str(tmp_path / "modules"))


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("nvidia_peermem", True),
        ("nvidia-peermem", True),
        ("tcp_bbr", True),
        ("dummy_two", True),
        ("nvidia", False),
        ("bbr", False),
    ],
)
def test_a_module_is_present_if_loaded_or_built_in(kernel, name, there):
    assert module.read({"name": name}) is there


def test_without_a_built_in_list_loaded_modules_count(kernel, monkeypatch):
    monkeypatch.setattr(module, "MODULES", "/nonexistent")
    assert module.read({"name": "tcp_bbr"}) is False


def test_what_is_built_in_cannot_be_unloaded(kernel):
    with pytest.raises(ChangeError, match="built into this kernel"):
        module.put({"name": "tcp_bbr"}, state=False)
