"""Judge on the controller what nodetune_facts read on the host."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

SEVERITIES = ("critical", "high", "medium", "low", "info", "never")
LISTS = {"select": "--select", "ignore": "--ignore", "profile": "--profile", "site": "--site"}
FAILED = {1: "findings of severity {} or higher", 3: "checks of severity {} or higher are unknown"}
MISSING = "nodetune is not installed on the controller, in the environment of Ansible or in PATH"


class ActionModule(ActionBase):
    """Takes the same arguments as C(nodetune audit)."""

    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        spec = {name: {"type": "list", "elements": "str", "default": []} for name in LISTS}
        spec["fail_on"] = {"type": "str", "choices": list(SEVERITIES), "default": "never"}
        asked = self.validate_argument_spec(argument_spec=spec)[1]
        host = task_vars["inventory_hostname"]
        read = self._execute_module(
            module_name="nodetune.node.nodetune_facts", module_args={"host": host}, task_vars=task_vars
        )
        if read.get("failed"):
            return read
        code, judged = _judged(read["document"], asked)
        if judged["state"] != "ok":
            raise AnsibleActionFail(judged["message"])
        found = judged["findings"]
        statuses = [each["status"] for each in found]
        result["changed"] = False
        result["counts"] = {status: statuses.count(status) for status in sorted(set(statuses))}
        result["findings"] = [each for each in found if each["status"] in ("fail", "unknown")]
        if code and asked["fail_on"] != "never":
            result.update(failed=True, msg=FAILED[code].format(asked["fail_on"]))
        return result


def _judged(document, asked):
    """Return the exit code of an audit of these facts, and its result about the host."""
    places = os.pathsep.join(filter(None, [os.path.dirname(sys.executable), os.environ.get("PATH")]))
    program = shutil.which("nodetune", path=places)
    if not program:
        raise AnsibleActionFail(MISSING)
    words = [word for name, option in LISTS.items() for each in asked[name] for word in (option, each)]
    words += [] if asked["site"] else ["--site", "none"]
    words += ["--fail-on", asked["fail_on"], "--format", "json"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("NODETUNE_")}
    with tempfile.TemporaryDirectory() as folder:
        facts = os.path.join(folder, "facts.json")
        with open(facts, "w") as stream:
            json.dump(document, stream)
        done = subprocess.run(
            [program, "audit", "--facts", facts, *words],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=dict(own, NODETUNE_CONFIG="", NODETUNE_RUNS=folder, XDG_STATE_HOME=folder),
        )
    if done.returncode not in (0, *FAILED):
        raise AnsibleActionFail(done.stderr.strip() or f"nodetune audit ended with {done.returncode}")
    return done.returncode, json.loads(done.stdout)["hosts"][0]
