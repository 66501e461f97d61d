"""The options that the plugin adds to pytest. pytest loads this file in every run: it imports nothing but pytest."""

from __future__ import annotations

from typing import Any

import pytest

OPTIONS = {
    "inventory": "an inventory or hosts, as nodetune audit -i; without it testinfra's hosts, else this host",
    "limit": "only these hosts: Ansible patterns or a node set",
    "facts": "judge saved facts (file or folder) instead of connecting",
    "user": "log in as this user",
    "fail-on": "findings of this severity and above fail (default: medium); those below are expected failures",
}
SEVERAL = {
    "site": "your site's overrides, checks and waivers: files, comma-separated (may be repeated), later ones win",
    "profile": "profiles to judge by, comma-separated (may be repeated)",
    "select": "only these checks or areas: shell patterns, comma-separated (may be repeated)",
    "ignore": "not these checks or areas (likewise)",
}
FLAGS = {
    "become": "read as root, through sudo",
    "accept-new-host-keys": "trust the key of a host that is seen for the first time",
}


def option(config: pytest.Config, name: str) -> Any:
    """Return the value of --nodetune-NAME."""
    return config.getoption(f"nodetune_{name.replace('-', '_')}")
