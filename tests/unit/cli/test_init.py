"""Files to start from."""

import pytest

from nodetune.cli.main import group
from nodetune.config import site_file
from nodetune.foundation.yaml_lines import FileError
from nodetune.hosts.inventory import selection

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n"
FILES = ["inventories/prod/group_vars/all.yml", "inventories/prod/hosts.yml", "provision.yml", "site.yml"]


def init(*words):
    group.main(["init", *map(str, words)], prog_name="nodetune", standalone_mode=False)


def there(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_init_writes_is_found_and_valid(here, capsys):
    init()
    assert there(here) == FILES
    assert [target.name for target in selection.targets("prod", "login")] == ["login1"]
    site = site_file.read(here / "site.yml")
    assert (dict(site.checks), list(site.waivers), site.provision) == ({}, [], None)
    assert capsys.readouterr().out.count("written") == len(FILES)


def test_the_sample_for_provision_lacks_nothing_but_the_keys(here):
    init()
    with pytest.raises(FileError, match=r"provision.yml line \d+: .*keys/cuda-deb.asc: no such file"):
        site_file.read(here / "provision.yml")
    (here / "keys").mkdir()
    for name in ("cuda-deb.asc", "cuda-rpm.asc"):
        (here / "keys" / name).write_text(KEY)
    found = site_file.read(here / "provision.yml").provision
    assert (found.branch, found.guard, found.join) == ("580", "observe", "none")
    assert found.repositories[1].serves("dnf", ("rhel-9", "rocky-9.4"))


def test_init_leaves_what_is_there(here, capsys):
    (here / "site.yml").write_text("checks: {swap-large: off}\n")
    (here / "inventories").mkdir()
    (here / "inventories" / "prod.ini").write_text("[gpu]\ngpu1\n")
    init()
    assert there(here) == ["inventories/prod.ini", "provision.yml", "site.yml"]
    assert (here / "site.yml").read_text() == "checks: {swap-large: off}\n"
    assert "is there  site.yml" in capsys.readouterr().out


def test_init_writes_into_another_folder(here):
    init(here / "new" / "site")
    assert there(here / "new" / "site") == FILES


def test_every_line_of_the_sample_site_file_is_right_without_its_mark(here):
    init()
    text = (here / "site.yml").read_text()
    (head, _, marked) = text.partition("\n\n")
    (here / "all.yml").write_text("".join(line.removeprefix("#") for line in marked.splitlines(keepends=True)))
    site = site_file.read(here / "all.yml")
    assert {"swap-large", "numa-balancing-on", "max-map-count-low"} <= set(site.checks)
    assert len(site.waivers) == 1
    assert "nodetune profile validate site.yml" in head
