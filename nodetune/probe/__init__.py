"""Collectors of facts, one file per fact family.

Standard library only (pynvml may be sent along); imports nothing of nodetune; syntax and library of Python 3.6, because
the same files are imported here and piped to a bare `python3 -` on a host. A family is a module with a generator
`collect(names)` that yields (fact name, fact); `names` are the requested names without the family's prefix.
A fact is {"value": data}, {"absent": reason}, {"unread": reason} or {"each": {subject: one of these}}.
"""
