"""Run by its path (`python3 -I -S …/nodetune/guard/node/__main__.py prolog`): nothing but the folder that it lies in is used."""

import os
import sys

sys.path.insert(0, __file__.rpartition("/nodetune/")[0])
code = 3
"""Of a fault, whatever it is: the entry lets the job run and says that the guard is inconclusive."""
try:
    from nodetune.guard.node import main

    code = main.main(sys.argv[1:])
except BaseException as problem:  # noqa: BLE001  (no traceback may reach the log of slurmd)
    os.write(1, f"nodetune: inconclusive: {type(problem).__name__}: {problem}".encode()[:500] + b"\n")
finally:
    os._exit(code)  # taking the interpreter down in order would cost every job some milliseconds
