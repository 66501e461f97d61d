"""An Ansible callback that prints the result of every task as one line of JSON."""

import json

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: results
type: stdout
short_description: results as JSON lines
description: results as JSON lines
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "results"

    def _print(self, state, result):
        told = {"task": result.task_name, "state": state, "result": result.result}
        print(json.dumps(told, default=str), flush=True)

    def v2_runner_on_ok(self, result):
        self._print("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._print("failed", result)

    def v2_runner_on_unreachable(self, result):
        self._print("unreachable", result)
