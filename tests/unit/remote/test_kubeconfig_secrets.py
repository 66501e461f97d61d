"""What is said of a kubeconfig that cannot be used has no password and no token."""

import json

import pytest

from nodetune.remote.kubernetes import kubeconfig


def test_the_address_of_a_server_is_told_without_its_login(tmp_path, monkeypatch):
    config = {
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "ops"}}],
        "clusters": [{"name": "lab", "cluster": {"server": "http://ops:hunter2@api.example:6443"}}],
        "users": [{"name": "ops", "user": {}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(kubeconfig.KubeconfigError, match="only https is supported") as told:
        kubeconfig.access(None)
    assert "hunter2" not in str(told.value)
    assert "api.example" in str(told.value)


def test_a_plugin_that_hangs_is_told_without_its_arguments(tmp_path, monkeypatch):
    monkeypatch.setattr(kubeconfig, "PLUGIN_SECONDS", 0.2)
    user = {"exec": {"command": "./sleep", "args": ["600", "--token=hunter2"]}}
    (tmp_path / "sleep").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "sleep").chmod(0o755)
    with pytest.raises(kubeconfig.KubeconfigError, match=r"did not end within 0\.2 s") as told:
        kubeconfig.asked_plugin(user, tmp_path)
    assert "hunter2" not in str(told.value)
