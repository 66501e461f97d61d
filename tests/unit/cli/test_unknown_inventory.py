"""A name that is neither an inventory nor a host: said before anything is connected."""

import json
from pathlib import Path

import pytest

from nodetune.cli.main import group
from nodetune.facts.document import FactsError
from nodetune.hosts.patterns import InventoryError

NAME = "nodetune-test-no-such-name"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def saved(here):
    folder = Path("evidence")
    folder.mkdir()
    facts = {"about": {"time": 1}, "failed": {}, "host": "gpu1", "schema": "nodetune.facts/1", "facts": {}}
    (folder / "gpu1.json").write_text(json.dumps(facts))
    return folder


def refused(*words):
    with pytest.raises(InventoryError) as caught:
        group.main([*words], prog_name="nodetune", standalone_mode=False)
    return str(caught.value)


@pytest.mark.parametrize("command", [["audit"], ["facts"], ["plan"], ["apply", "--dry-run"], ["verify"]])
def test_a_name_of_nothing_ends_every_command(here, command):
    assert f"no inventory or host is named '{NAME}'" in refused(*command, "-i", NAME)


def test_the_inventories_that_there_are_are_named(here):
    (here / "inventories" / "group_vars").mkdir(parents=True)
    (here / "inventories" / "staging.yml").write_text("all: {hosts: {a: {}}}\n")
    assert refused("audit", "-i", NAME).endswith(
        f"(looked in {here}/inventories; nodetune init writes an example; inventories: example, staging)"
    )
    assert "example, staging" in refused("audit", "-i", "./nosuch")


def test_the_name_that_was_nearly_typed_is_proposed(here):
    (here / "inventories").mkdir()
    (here / "inventories" / f"{NAME}s.yml").write_text("all: {hosts: {a: {}}}\n")
    assert f"did you mean -i {NAME}s?" in refused("audit", "-i", NAME)


def test_a_name_that_openssh_knows_is_a_host(here, capsys):
    config = here / "config"
    config.write_text(f"Host {NAME}\n  HostName 127.0.0.1\n  Port 1\n")
    (here / "hosts.yml").write_text(f'all: {{hosts: {{{NAME}: {{ansible_ssh_common_args: "-F {config}"}}}}}}\n')
    group.main(["audit", "-i", "hosts.yml", "--timeout", "5"], prog_name="nodetune", standalone_mode=False)
    assert "no inventory and no host" not in capsys.readouterr().out


@pytest.mark.parametrize("command", [["audit"], ["plan"], ["explain", "--section", "broken"], ["watch"]])
def test_a_name_of_nothing_is_refused_with_a_folder_of_facts(here, saved, command):
    assert refused(*command, "--facts", str(saved), "-i", NAME).endswith(f"and {saved} has no file for it")


@pytest.mark.parametrize("command", [["audit"], ["plan"], ["apply", "--dry-run"]])
def test_saved_facts_are_no_inventory(here, saved, command):
    for place in ("evidence", "evidence/gpu1.json"):
        assert refused(*command, "-i", place) == (
            f"{place} has saved facts and is not an inventory: did you mean --facts {place}?"
        )


def test_a_folder_without_hosts_or_facts_is_said_to_have_no_hosts(here):
    (here / "other").mkdir()
    (here / "other" / "a.yml").write_text("all: {hosts: {}}")
    assert "lists no hosts" in refused("audit", "-i", "other")


def test_a_name_of_nothing_is_refused_with_facts_of_one_host(here):
    told = refused("audit", "--facts", "h200-x4", "-i", NAME)
    assert told.startswith(f"no inventory or host is named '{NAME}' (looked in ")
    assert told.endswith("h200-x4.json contains facts for h200-x4")


def test_a_list_of_other_hosts_needs_none_of_them_to_exist(here):
    with pytest.raises(FactsError, match=f"contains facts for h200-x4, which is not in {NAME},other"):
        group.main(["audit", "--facts", "h200-x4", "-i", f"{NAME},other"], prog_name="nodetune", standalone_mode=False)
