"""Code that all programs on a host share.

Standard library only (pynvml may be sent along), Python 3.6, nothing else of nodetune. The same files are part of the
probe, of the measurements and of the guard as nodetune.onhost, and of the Ansible modules as nodetune_host.onhost: so
they import one another relatively.
"""
