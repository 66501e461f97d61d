"""The history of hosts: looks at their facts, findings and figures, kept in a database.

`history.History` is all that other rooms use, with the values of `look`, `points` and `trends`.
"""
