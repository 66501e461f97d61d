#!/usr/bin/python
"""Fails unless this host has a Python that runs nodetune's programs."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host.problem import options, reported
from ansible.module_utils.nodetune_host.resources import program

DOCUMENTATION = """{
 "module": "nodetune_require_python",
 "short_description": "Fail unless a Python is new enough",
 "options": {"pythons": {"description": "Full paths.", "type": "list", "elements": "str", "required": true}}
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    with reported(module):
        module.exit_json(changed=False, python=program.usable(module.params["pythons"]))


if __name__ == "__main__":
    main()
