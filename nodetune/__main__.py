"""`python -m nodetune`."""

import os
import sys

if sys.path[0] == os.getcwd() and not __file__.startswith(os.path.join(sys.path[0], "")):  # noqa: PTH109, PTH118
    del sys.path[0]  # a yaml.py in the current folder is not ours to run

from nodetune.cli.main import main

main()
