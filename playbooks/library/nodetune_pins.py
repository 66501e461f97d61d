#!/usr/bin/python
"""Holds packages at given versions: only a provision changes them."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host.problem import options, reported
from ansible.module_utils.nodetune_packages import manager, ownfiles

DOCUMENTATION = """{
 "module": "nodetune_pins",
 "short_description": "Pin packages to versions",
 "options": {
  "manager": {"description": "The host's package manager.", "type": "str", "required": true, "choices": ["apt", "dnf"]},
  "versions": {"description": "Name to version; an empty mapping removes the pins.", "type": "dict", "required": true}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    with reported(module):
        diff = ownfiles.put(manager(module.params["manager"]).pin_files(module.params["versions"]), module.check_mode)
    module.exit_json(changed=bool(diff), diff=diff)


if __name__ == "__main__":
    main()
