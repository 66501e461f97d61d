"""Every error in reaching a host."""

STATES = {
    "bad variables": "an inventory variable has no value",
    "unresolved": "no such host name",
    "unreachable": "no route or no answer",
    "refused": "nothing listens on the SSH port",
    "unknown host key": "the host key is not in known_hosts",
    "host key changed": "the host key differs from the known one",
    "authentication failed": "no key or password was accepted",
    "become failed": "sudo refused",
    "no privilege": "the pod is not privileged or does not see its host",
    "no pod": "no pod runs on the node",
    "no python": "no usable python3",
    "deadline": "no complete answer in time",
    "dropped": "the connection broke",
    "bad answer": "the output is not a valid answer of the probe",
    "too much output": "more output than a probe can produce",
    "unsupported": "this transport lacks a feature that the host needs",
    "internal error": "an error in nodetune itself",
}
