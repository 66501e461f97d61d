"""Find the part that makes runs over several hosts slow: `verify --find-slow`.

`schedule` plans a round, `host_rounds` executes it on hosts, `search` takes its results, `classify` says what they show.
"""
