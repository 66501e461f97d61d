"""Builders of changes: one file a kind of remedy, found by its name.

`changes(fixes, host)` gives a list of changes (dicts with `change` and what that kind of change needs), or raises
UnfixableError. `NEEDS` there names facts that it looks at beyond those of the checks.
A file that nodetune owns is rendered whole from templates/, and one line of it (`# settings: {…}`) holds as data what
it sets, so that a later run adds to it. It contains neither time nor run: the same settings are the same bytes. The
current value is changed before the boot setting: if power fails in between, the reboot restores the old value. In the
opposite order, the reboot would set values whose previous state the journal does not have.
"""
