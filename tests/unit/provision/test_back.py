"""The way back from an upgrade: what a host had before, and how it is asked for again."""

import pytest

from nodetune.api.model import Value
from nodetune.provision import decide, results, upgrade
from nodetune.provision.lock import Versions
from tests.support.provisioning import DRIVER, NEWER, SITE, lock, locked, running, site

UBUNTU = {"id": "ubuntu", "version": "24.04", "like": ["debian"], "name": "Ubuntu 24.04"}
KIN = ("nvidia-fabricmanager", "libnvidia-nscq", "nvidia-persistenced")
BY_BRANCH = ("libnvidia-compute-580", "nvidia-utils-580", "nvidia-dkms-580-open")


@pytest.fixture
def renamed(tmp_path):
    """An Ubuntu host with branch 580, whose names have the branch, that is to get 590, whose names have not."""
    wish = site(tmp_path, SITE.replace('"580"', '"590"'))
    rest = {name: of for name, of in locked().packages.items() if DRIVER not in of}
    names = dict.fromkeys((*KIN, "libnvidia-compute", "nvidia-dkms-open"), "590.48.01-1ubuntu1")
    facts = running(
        installed={**rest, **dict.fromkeys((*KIN, *BY_BRANCH), f"{DRIVER}-0ubuntu1")},
        host__os=Value(UBUNTU),
        packages__manager=Value("apt"),
    )
    return facts, decide.decide(facts, wish, {"ubuntu-24.04-x86_64": Versions("590.48.01", {**rest, **names})})


def test_a_rollback_does_not_request_new_components(tmp_path):
    had = {name: of for name, of in locked().packages.items() if not name.startswith("datacenter")}
    back = upgrade.going_back(decide.decide(running(installed=had), site(tmp_path), lock(NEWER)))
    assert "dcgm" not in back.variables()["nodetune_parts"]
    assert "dcgm" not in back.variables()["nodetune_packages"]
    assert back.variables()["nodetune_driver"] == DRIVER


def test_what_only_the_older_driver_had_is_held_too(tmp_path):
    had = {**locked().packages, "libnvidia-gone": f"{DRIVER}-1"}
    found = decide.decide(running(installed=had), site(tmp_path), lock(NEWER))
    assert found.held.packages["libnvidia-gone"] == f"{DRIVER}-1"
    assert upgrade.going_back(found).variables()["nodetune_versions"]["libnvidia-gone"] == f"{DRIVER}-1"


def test_a_driver_whose_packages_had_other_names_can_be_upgraded(renamed):
    facts, found = renamed
    assert found.held.driver == DRIVER
    assert results.not_upgradable(found, facts) is None


def test_a_rollback_requests_the_former_package_names(renamed):
    back = upgrade.going_back(renamed[1])
    assert set(back.wanted.parts["driver"].packages) == set(BY_BRANCH)
    assert back.wanted.parts["fabric-manager"].packages == ("nvidia-fabricmanager", "libnvidia-nscq")
    assert all(back.versions.packages[name] == f"{DRIVER}-0ubuntu1" for name in BY_BRANCH)
