"""The hosts that the options of a connection select, and how they are reached then."""

import pytest

from nodetune.hosts.connection_options import Cluster, ConnectionOptions, SessionOptions
from nodetune.hosts.inventory import selection
from nodetune.hosts.patterns import InventoryError
from nodetune.hosts.target import Target

SIX = frozenset(f"old{number}" for number in range(1, 7))


def test_failed_hosts_are_those_of_the_inventory_that_failed():
    options = ConnectionOptions("gpu1,gpu2,gpu3", only=frozenset({"gpu3", "gpu1", "gone"}))
    assert [target.name for target in selection.selected(options)] == ["gpu1", "gpu3"]


def test_failed_hosts_of_another_inventory_are_named_five_at_most():
    with pytest.raises(InventoryError) as refused:
        selection.selected(ConnectionOptions("gpu1", only=SIX))
    named = "old1, old2, old3, old4, old5"
    assert str(refused.value) == f"--failed-of: none of its hosts are selected ({named}): select them with -i"


def test_only_one_host_is_this_one():
    assert [target.connection for target in selection.selected(ConnectionOptions("gpu1", transport="local"))] == [
        "local"
    ]
    with pytest.raises(InventoryError, match="--transport local reaches only this host, but 2 hosts are selected"):
        selection.selected(ConnectionOptions("gpu1,gpu2", transport="local"))


@pytest.mark.parametrize(
    ("text", "host", "user", "port"),
    [
        ("gpu1", "gpu1", None, None),
        ("root@gpu1:2222", "gpu1", "root", 2222),
        ("[::1]:22", "::1", None, 22),
        ("admin@10.0.0.7", "10.0.0.7", "admin", None),
    ],
)
def test_a_name_may_have_a_user_and_a_port(text, host, user, port):
    (found,) = selection.targets(text)
    assert (found.address or found.name, found.user, found.port) == (host, user, port)


def test_options_of_the_command_line_replace_those_of_the_inventory():
    target = Target("gpu1", user="ubuntu", port=22, key_file="own")
    assert ConnectionOptions().applied_to(target) is target
    given = ConnectionOptions(user="root", port=2222, private_key="key", become=True, become_password="secret")
    found = given.applied_to(target)
    assert (found.user, found.port, found.key_file, found.become, found.become_password) == (
        "root",
        2222,
        "key",
        True,
        "secret",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ConnectionOptions(), []),
        (
            ConnectionOptions("prod", limit="gpu1", failed_of="a.json"),
            ["-i", "prod", "-l", "gpu1", "--failed-of", "a.json"],
        ),
        (
            ConnectionOptions(transport="openssh", user="root", port=2222),
            ["--transport", "openssh", "-u", "root", "--port", "2222"],
        ),
        (ConnectionOptions(become=True), ["-b"]),
        (ConnectionOptions(become=True, become_password=""), ["-K"]),
        (ConnectionOptions(become_password="secret"), []),
        (ConnectionOptions(options=SessionOptions(cluster=Cluster(context="c"))), []),
        (
            ConnectionOptions(
                transport="kubernetes", options=SessionOptions(cluster=Cluster(context="c", namespace="n"))
            ),
            ["--transport", "kubernetes", "--context", "c", "--namespace", "n"],
        ),
    ],
)
def test_a_proposed_command_has_the_options_that_were_given(options, words):
    found = options.words
    image = found.index("--image") if "--image" in found else len(found)
    assert [*found[:image], *found[image + 2 :]] == words
