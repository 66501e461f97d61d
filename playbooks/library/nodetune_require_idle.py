#!/usr/bin/python
"""Fails if this host is in use: for steps other than changes, such as a reboot."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import idle
from ansible.module_utils.nodetune_host.problem import options, reported

DOCUMENTATION = """{
 "module": "nodetune_require_idle",
 "short_description": "Fail unless this host is free",
 "options": {"guard": {"description": "Conditions: C(gpu_idle), C(drained).", "type": "dict", "required": true}}
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    with reported(module):
        idle.require(module.params["guard"])
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
