"""How Ansible runs playbooks on hosts, and what comes of it."""
