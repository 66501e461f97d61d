#!/usr/bin/python
"""Judge the facts of a host. What it does is in plugins/action."""

DOCUMENTATION = r"""
module: nodetune_audit
short_description: Audit a host
description:
  - Reads the facts of the host with M(nodetune.node.nodetune_facts), and judges them on the controller, as C(nodetune audit) does.
    Changes nothing.
  - Checks of your own in a site file are unknown if they need facts that no check of nodetune needs.
  - Settings files and C(NODETUNE_) variables do not count.
requirements:
  - The command C(nodetune) on the controller, in the environment of Ansible or in E(PATH).
options:
  select:
    description: Run only these checks or areas.
    type: list
    elements: str
    default: []
  ignore:
    description: Skip these checks or areas.
    type: list
    elements: str
    default: []
  profile:
    description: Profiles instead of C(training).
    type: list
    elements: str
    default: []
  site:
    description: Site files on the controller; later ones win.
    type: list
    elements: path
    default: []
  fail_on:
    description: The task fails on findings, or unknown checks, of this severity or higher.
    type: str
    choices: [critical, high, medium, low, info, never]
    default: never
attributes:
  check_mode:
    description: It reads in check mode too.
    support: full
author: nodetune (@nodetune)
"""

EXAMPLES = r"""
- name: Audit the memory and the GPUs of a host
  nodetune.node.nodetune_audit:
    select: [memory, gpu]
    fail_on: high
  become: true
"""

RETURN = r"""
findings:
  description: What failed or is unknown, with what was observed and wanted, and the fix.
  returned: always
  type: list
  elements: dict
counts:
  description: How many findings there are of each status.
  returned: always
  type: dict
"""
