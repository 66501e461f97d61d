"""Packages of a host: repositories, pins, what a transaction would do, and doing it. Standard library, Python 3.7.

`apt` and `dnf` offer the same functions:

    repository_files(repositories) → {path: text}    what stands on the host for the site's repositories
    pin_files(versions) → {path: text or None}       what holds packages at versions
    refresh(repositories)                            their lists are fetched; one that cannot be had is a ChangeError
    asked(question)                                  context manager: (Answer, its context); changes nothing
    from_site(question, answer, context)             {name: version} of what comes from the site's repositories
    common(question, context)                        the newest version that all of `together` can be had in
    prepare()                                        ends what an earlier transaction that was cut short left undone
    carry_out(question)                              one transaction

A *question* is what is wanted, of which versions, from where. With `repositories` it is answered as though they, and
the versions as pins, stood on the host already; without, from what stands there.
"""

from ansible.module_utils.nodetune_host.problem import ChangeError


def manager(name):
    """Return the module for apt or dnf. Raise ChangeError if the host's Python lacks a binding."""
    if name == "apt":
        from . import apt

        return apt
    from ansible.module_utils.common.respawn import has_respawned, probe_interpreters_for_module, respawn_module

    try:
        import dnf
    except ImportError:
        found = probe_interpreters_for_module(["/usr/libexec/platform-python", "/usr/bin/python3"], "dnf")
        if not found or has_respawned():
            raise ChangeError("python3-dnf is not on this host: dnf install python3-dnf") from None
        respawn_module(found)
    from . import dnf as ours

    return ours
