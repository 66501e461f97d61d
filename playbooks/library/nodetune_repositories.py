#!/usr/bin/python
"""Adds the site's repositories to the package manager, removes those of an earlier provision, and fetches the lists."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host.problem import options, reported
from ansible.module_utils.nodetune_packages import manager, ownfiles

DOCUMENTATION = """{
 "module": "nodetune_repositories",
 "short_description": "Add the site's package repositories",
 "options": {
  "manager": {"description": "The host's package manager.", "type": "str", "required": true, "choices": ["apt", "dnf"]},
  "repositories": {"description": "Each has name and, under the manager's name, its location and C(key_text).",
                   "type": "list", "elements": "dict", "required": true, "no_log": false}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    of, repositories = manager(module.params["manager"]), module.params["repositories"]
    with reported(module):
        files = of.repository_files(repositories)
        gone = {path: None for path in ownfiles.lying((of.SOURCES, of.KEYS)) if path not in files}
        diff = ownfiles.put({**files, **gone}, module.check_mode)
        if not module.check_mode:
            of.refresh(repositories)
    module.exit_json(changed=bool(diff), diff=diff)


if __name__ == "__main__":
    main()
