"""`python -m nodetune`."""

from nodetune.cli import main

main()
