"""Plants a host's files in a folder and runs a collector on them."""

import importlib
import os

import pytest

from nodetune.probe import read
from tests.support.explicit import unsaid


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """tree({"/sys/a": "text", "/sys/b": "-> ../target", "/sys/empty/": None}) writes files, links and folders."""
    monkeypatch.setattr(read, "ROOT", str(tmp_path))

    def plant(files):
        for path, content in files.items():
            place = tmp_path / path.lstrip("/")
            if content is None:
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith("-> "):
                os.symlink(content[3:], place)
            else:
                place.write_text(content)
        return tmp_path

    return plant


@pytest.fixture
def collect():
    """collect("memory", ["thp.enabled"]) → facts by full name. Each of their leaves has a kind in nodetune/facts/catalogue.txt."""

    def run(family, names=()):
        module = importlib.import_module(f"nodetune.probe.{family}")
        facts = {f"{family}.{name}": fact for name, fact in module.collect(list(names), lambda text: None)}
        assert [leaf for name, fact in facts.items() for leaf in unsaid(name, fact)] == []
        return facts

    return run
