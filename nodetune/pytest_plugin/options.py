"""The options that the plugin adds to pytest. pytest loads this file in every run: it imports only pytest."""

from typing import Any

import pytest

OPTIONS = {
    "inventory": "an inventory or hosts, like nodetune audit -i; by default testinfra's hosts, else this host",
    "limit": "only these hosts: Ansible patterns or a node set",
    "facts": "judge saved facts (file or folder) instead of connecting",
    "user": "log in as this user",
    "fail-on": "findings of at least this severity fail (default: medium); those below are expected failures",
}
SEVERAL = {
    "site": "your site's overrides, checks and waivers: comma-separated files (may be repeated), later ones win",
    "profile": "profiles to judge by, comma-separated (may be repeated)",
    "select": "only these checks or areas: shell patterns, comma-separated (may be repeated)",
    "ignore": "exclude these checks or areas (same syntax)",
}
FLAGS = {
    "become": "read as root, through sudo",
    "accept-new-host-keys": "trust the keys of new hosts",
}


def option(config: pytest.Config, name: str) -> Any:
    """Return the value of --nodetune-NAME."""
    return config.getoption(f"nodetune_{name.replace('-', '_')}")
