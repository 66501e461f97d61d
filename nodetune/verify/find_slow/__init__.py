"""Find the part that makes runs over several hosts slow: `verify --find-slow`.

`search` decides which runs it needs and concludes; it is pure. `host_rounds` carries the runs out on hosts.
"""
