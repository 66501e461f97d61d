#!/usr/bin/python
"""Read the facts of a host, with the probe of nodetune."""

DOCUMENTATION = r"""
module: nodetune_facts
short_description: Read the facts of a host
description:
  - Runs the probe of nodetune, as C(nodetune facts) does, and returns what it read. Changes nothing.
  - It runs as the user of the task. Some facts need root (C(become)).
options:
  host:
    description: Name of the host in the document. Default is its own.
    type: str
attributes:
  check_mode:
    description: It reads in check mode too.
    support: full
author: nodetune (@nodetune)
"""

EXAMPLES = r"""
- name: Read the facts
  nodetune.node.nodetune_facts:
    host: "{{ inventory_hostname }}"
  become: true
  register: read

- name: Keep them for nodetune audit --facts facts
  ansible.builtin.copy:
    content: "{{ read.document | to_json }}"
    dest: "facts/{{ inventory_hostname }}.json"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
document:
  description: The facts, as nodetune keeps them (C(nodetune schema facts)).
  returned: success
  type: dict
"""

import json
import os
import sys

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodetune.node.plugins.module_utils.probe import SCRIPT

OLD = "needs Python 3.6 or newer on the host"


def main():
    module = AnsibleModule(argument_spec={"host": {"type": "str"}}, supports_check_mode=True)
    code, said, problem = module.run_command([sys.executable, "-I", "-S", "-"], data=SCRIPT)
    try:
        document = json.loads(said)
    except ValueError:
        module.fail_json(msg=f"the probe ended with {code}: {problem.strip()[-500:] or said[:500] or OLD}")
    document["host"] = module.params["host"] or os.uname()[1]
    module.exit_json(changed=False, document=document)


if __name__ == "__main__":
    main()
