"""From a bare server to a proven one: what a host is to get (`decide`), from which versions (`lock`), and the stages.

`decide` and `lock` are pure; `stages` and `upgrade` bring it about through the parts that apply, verify and the guard use.
"""

STAGES = ("preflight", "packages", "reboot", "tune", "audit", "verify", "baseline", "guard", "join")
"""In this order on every host. A host on which one fails goes no further; the others do."""
