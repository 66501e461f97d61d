"""What every program that runs on a host shares.

Standard library only (pynvml may travel along), Python 3.6, nothing else of nodetune. The same files are part of the
probe, of the measurements and of the guard as nodetune.onhost, and of the Ansible modules as nodetune_host.onhost: so
they import one another relatively.
"""
