"""What the guard remembers of this machine's hardware, as the probe reads it."""

import json

import pytest

from nodetune.probe import guard, read

FOLDER = "/var/lib/nodetune/guard"
FILE = f"{FOLDER}/{guard.FILE}"
DMI = f"{guard.DMI}/product_"


@pytest.fixture
def told(tree, collect, monkeypatch):
    """The fact, with this content of the file and of DMI. The files of a test are one machine."""
    monkeypatch.setattr(guard, "FOLDER", FOLDER)  # a run of the guard in this process sets its own

    def found(content, **dmi):
        tree({FILE: content, **{f"{DMI}{name}": text for name, text in dmi.items()}})
        return collect("guard", ["hardware"])["guard.hardware"]

    return found


def memory(**changes):
    return json.dumps({"machine": guard.machine(), "gpus": 8, "adapters": 10, **changes})


def test_the_memory_of_this_machine_is_a_value(told):
    told("", uuid="one", name="XE9680")
    found = told(memory())
    assert found == {"value": {"machine": guard.machine(), "gpus": 8, "adapters": 10}}


def test_another_machine_or_type_of_it_has_no_memory(told):
    told("", uuid="one", name="p5.48xlarge")
    content = memory()
    assert "value" in told(content)
    assert told(content, name="p5.4xlarge") == {"absent": "the guard remembers another machine"}
    assert told(content, name="p5.48xlarge", uuid="another") == {"absent": "the guard remembers another machine"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "7",
        '{"gpus": 8}',
        '{"machine": 1, "gpus": 1, "adapters": 1}',
        memory(gpus=-1),
        memory(gpus="8"),
        memory(gpus=True),
    ],
)
def test_what_is_no_memory_is_unread(told, content):
    assert "unexpected content" in told(content)["unread"]


def test_no_file_is_absent_and_no_identity_that_can_be_read_is_unread(told, tree, collect, monkeypatch):
    tree({"/var/lib/": None})
    assert "absent" in collect("guard", ["hardware"])["guard.hardware"]
    content = memory()

    def refused(path, *_):
        if path.startswith(guard.DMI):
            raise PermissionError(13, "Permission denied", path)
        return content

    monkeypatch.setattr(read, "text", refused)
    assert "permission denied" in collect("guard", ["hardware"])["guard.hardware"]["unread"]
