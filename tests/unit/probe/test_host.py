"""What a machine is: a container, or what is left of one."""

import pytest

FIRST = {"cgroup": "cgroup:[4026531835]", "pid": "pid:[4026531836]", "uts": "uts:[4026531838]"}


def namespaces(**changed):
    return {f"/proc/self/ns/{kind}": f"-> {link}" for kind, link in {**FIRST, **changed}.items()}


@pytest.mark.parametrize(
    ("files", "container"),
    [
        (namespaces(), False),
        ({"/.dockerenv": "", **namespaces(pid="pid:[4026532201]", uts="uts:[4026532199]")}, True),
        ({"/.dockerenv": "", **namespaces(uts="uts:[4026532199]")}, True),  # docker run --pid host
        ({"/.dockerenv": "", **namespaces()}, False),  # a virtual machine whose disk was a container image
        ({"/.dockerenv": ""}, True),
        ({"/run/.containerenv": "", **namespaces()}, False),
        ({"/run/.containerenv": "", **namespaces(cgroup="cgroup:[4026532201]")}, True),
        ({"/run/systemd/container": "lxc\n", **namespaces(pid="pid:[4026532201]")}, True),
    ],
)
def test_a_container_is_told_from_a_machine_made_of_its_image(tree, collect, files, container):
    tree(files)
    assert collect("host")["host.container"] == {"value": container}


def test_pythons_are_named_with_the_version_that_they_lead_to(tree, collect):
    tree(
        {
            "/usr/bin/python3": "-> python3.9",
            "/usr/bin/python3.9": "",
            "/usr/bin/python3.11": "",
            "/usr/bin/python3.11-config": "",
            "/usr/bin/python3-config": "",
            "/usr/bin/python3.12": "-> /nowhere/else",
        }
    )
    found = collect("host", ["pythons"])["host.pythons"]
    assert found == {"value": {"/usr/bin/python3": "3.9", "/usr/bin/python3.9": "3.9", "/usr/bin/python3.11": "3.11"}}
