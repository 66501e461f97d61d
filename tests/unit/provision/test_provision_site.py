"""The key `provision:` of a site file: what it means, and errors that name file and line."""

import json
import re

import pytest

from nodetune.config import site_provision
from nodetune.foundation import schemas, yaml_lines
from tests.support.provisioning import KEY, SITE, site


def test_what_is_not_said_has_a_default(tmp_path):
    found = site(tmp_path)
    assert found.parts == site_provision.DEFAULT_PARTS
    assert (found.modules, found.build, found.rdma, found.guard, found.join) == ("auto", "dkms", "inbox", "", "none")
    assert (found.nccl, found.baseline) == ("", None)


def test_a_site_file_without_the_key_provisions_nothing(tmp_path):
    assert site(tmp_path, "checks: {}\n") is None


def test_a_repository_has_its_key_and_only_its_systems(tmp_path):
    cuda, rhel = site(tmp_path).repositories
    assert cuda.data("apt") == {
        "name": "cuda",
        "apt": {"uris": "https://mirror.site/cuda", "suites": "/", "key_text": KEY},
    }
    assert cuda.serves("apt", ("debian-12",))
    assert cuda.serves("apt", ("ubuntu-22.04", "ubuntu-22.04"))
    assert not cuda.serves("apt", ("debian-13",))
    assert not cuda.serves("dnf", ("debian-12",))
    assert rhel.serves("dnf", ("rhel-9", "rocky-9.4"))


def test_parts_are_installed_in_one_order_whatever_the_file_says(tmp_path):
    text = SITE + "  parts: [time, driver, persistenced]\n"
    assert site(tmp_path, text).parts == ("driver", "persistenced", "time")


def test_a_branch_may_be_a_number(tmp_path):
    assert site(tmp_path, "provision: {driver: {branch: 580}}\n").branch == "580"


def test_a_baseline_is_next_to_the_site_file(tmp_path):
    assert site(tmp_path, SITE + "  baseline: baselines/good.json\n").baseline == tmp_path / "baselines/good.json"


WRONG = {
    "provision: [driver]": "line 1: provision must be a mapping",
    "provision:\n  partz: [driver]": "line 2: unknown key 'partz': did you mean 'parts'?",
    "provision:\n  driver: {}": "line 2: driver needs a branch",
    "provision:\n  driver: {branch: newest}": "line 2: driver needs a branch",
    "provision:\n  driver: {branch: 580, modules: closed}": "line 2: modules must be one of auto, open, proprietary; found 'closed'",
    "provision:\n  driver: {branch: 580, build: precompiled}": "line 2: build must be one of dkms; found 'precompiled' (the names of precompiled packages are not known)",
    "provision:\n  parts: [drivers]": "line 2: an item of parts must be one of driver, fabric-manager",
    "provision:\n  parts: [dcgm, imex]": "line 2: imex must have the driver's version: also set driver",
    "provision:\n  parts: [tools, dcgm-exporter]": "line 2: dcgm-exporter needs the libraries of DCGM: also set dcgm",
    "provision:\n  parts: [dcgm]\n  guard: true": "line 3: guard must be one of false, observe, enforce",
    "provision:\n  parts: [dcgm]\n  join: pbs": "line 3: join must be one of none, slurm, kubernetes",
    "provision:\n  parts: [dcgm]\n  nccl: {path: sw}": "line 3: path must be the full path",
    "provision:\n  parts: [dcgm]\n  nccl: {path: /sw, packages: true}": "line 3: nccl comes from packages or from a path",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - {name: A b}": "line 4: name must be small letters",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - {name: a}": "line 4: an item of repositories must have exactly one of apt, dnf",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - {name: a, dnf: {baseurl: mirror, key: cuda.asc}}": "line 4: baseurl must be an address",
    'provision:\n  parts: [dcgm]\n  repositories:\n    - {name: a, dnf: {baseurl: "http://x/\\n[b]", key: cuda.asc}}': "line 4: baseurl must be one line",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - {name: a, apt: {uris: 'http://x/', key: cuda.asc}}": "line 4: apt lacks suites",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - {name: a, dnf: {baseurl: 'http://x/'}}": "line 4: dnf lacks key",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - {name: a, dnf: {baseurl: 'http://x/', key: no.asc}}": "no such file",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - {name: a, dnf: {baseurl: 'http://x/', key: site.yml}}": "gpg --armor",
    "provision:\n  parts: [dcgm]\n  repositories:\n    - &r {name: a, dnf: {baseurl: 'http://x/', key: cuda.asc}}\n    - *r": "two repositories have the name a",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_in_one_line_with_file_and_line(tmp_path, text):
    with pytest.raises(yaml_lines.FileError) as told:
        site(tmp_path, text + "\n")
    assert re.match(rf"{re.escape(str(tmp_path))}/site.yml line \d+: ", str(told.value))
    assert WRONG[text] in str(told.value)
    assert "\n" not in str(told.value)


def test_the_published_schema_names_every_part():
    schema = json.loads(schemas.text("site"))
    assert schema["properties"]["provision"]["properties"]["parts"]["items"]["enum"] == list(site_provision.PARTS)
