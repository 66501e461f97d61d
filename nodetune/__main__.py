"""`python -m nodetune`."""

from nodetune.cli.main import main

main()
