"""Findings to changes on hosts: planned, carried out by Ansible, judged by a second audit, rolled back."""
