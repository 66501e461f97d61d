"""Packages of a host: repositories, pins, and planning and running transactions. Standard library, Python 3.7.

`apt` and `dnf` offer the same functions:

    repository_files(repositories) → {path: text}    the host's files for the site's repositories
    pin_files(versions) → {path: text or None}       files that hold packages at versions
    refresh(repositories)                            fetches their lists; raises ChangeError if one is unavailable
    asked(question)                                  context manager: (Answer, its context); changes nothing
    from_site(question, answer, context)             {name: version} from the site's repositories
    common(question, context)                        the newest version available for all of `together`
    prepare()                                        completes an earlier interrupted transaction
    carry_out(question)                              one transaction

A *question* has the wanted packages, their versions and sources. With `repositories` it is answered as if they, and
the versions as pins, were on the host already; without, from the host's own.
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
