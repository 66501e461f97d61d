"""The files of the packages for nodes, before dpkg-deb and rpmbuild get them."""

import json
import re
import subprocess
import sys

import pytest

from nodetune.audit.selection import Selection
from nodetune.foundation.request import RequestError
from nodetune.remote.pull.collector import PullError
from tests.support.commandline import nodetune
from tests.support.pages import ROOT


@pytest.fixture(scope="module")
def tree():
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        import tree
    finally:
        sys.path.pop(0)
    return tree


@pytest.fixture(scope="module")
def packages(tree):
    return tree.packages(tree.PackagesRequest(Selection(), mode="enforce", folder="/shared/facts", every=3600))


def test_all_is_in_places_of_the_distribution(packages):
    for package in packages:
        own = ("/usr/lib/nodetune/", "/usr/lib/systemd/system/", f"/usr/share/doc/{package.name}/", "/etc/nodetune/")
        assert [path for path in package.files if not path.startswith(own)] == []
        assert {path for path in package.files if path.startswith("/etc/")} == set(package.settings)
        texts = "".join(content.decode() for path, (_, content) in package.files.items() if "/pynvml" not in path)
        scripts = [each for each in package.files.values() if each[1].startswith(b"#!/bin/sh")]
        for mode, content in scripts:
            assert mode == 0o755
            assert b"/opt/nodetune" not in content
            subprocess.run(["/bin/sh", "-n"], input=content, check=True)
        assert f"To remove it: remove the package {package.name}." in texts


def test_the_settings_are_in_them(packages):
    guard, pull = packages
    assert json.loads(guard.files["/etc/nodetune/guard.json"][1])["mode"] == "enforce"
    assert b"/shared/facts" in pull.files["/usr/lib/nodetune/pull/collect"][1]
    units = [content.decode() for path, (_, content) in {**guard.files, **pull.files}.items() if "/systemd/" in path]
    paths = {found for text in units for found in re.findall(r"/usr/lib/nodetune/\S+", text)}
    assert paths == {"/usr/lib/nodetune/guard/check", "/usr/lib/nodetune/pull/collect"}
    assert "RequiresMountsFor=/shared/facts" in "".join(units)
    assert b"Prolog=/usr/lib/nodetune/guard/prolog\n" in guard.files["/usr/share/doc/nodetune-guard/slurm.conf"][1]


@pytest.mark.parametrize("wrong", [{"folder": "a b"}, {"every": 1}, {"textfile": "/x"}])
def test_wrong_settings_are_refused(wrong, tree):
    with pytest.raises((PullError, RequestError)):
        tree.packages(tree.PackagesRequest(Selection(), **wrong))


def test_the_package_of_a_controller_completes_commands_in_each_shell(tree, tmp_path):
    zipapp = tmp_path / "nodetune.pyz"
    zipapp.write_bytes(b"#!/usr/bin/env python3\n")
    controller = tree.packages(tree.PackagesRequest(Selection(), zipapp=zipapp))[-1]
    for shell, path in tree.COMPLETIONS.items():
        assert controller.files[path][1].decode().strip() == nodetune("completion", shell).stdout.strip()
