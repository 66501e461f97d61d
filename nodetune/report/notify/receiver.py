"""The receiver of notices: its URL, and sending to it within a time, with retries."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass
from typing import Any

import nodetune
from nodetune.foundation import text
from nodetune.foundation.request import RequestError
from nodetune.report.notify.forms import FORMS

TRIES, WAIT_SECONDS, STEP_SECONDS = 3, 1.0, 5.0
MAX_SECONDS = 15.0
"""All tries together: a receiver that sends one byte after the other does not hold an audit longer."""

PATHS = {"alertmanager": "/api/v2/alerts", "otlp": "/v1/logs"}
"""The paths at which receivers take notices, by form."""

AGAIN = (408, 425, 429)
"""Answers after which another try may succeed, as well as each from 500 on."""


class NotSentError(Exception):
    """The receiver did not take it; one line without the URL, which may hold a secret."""


@dataclass(frozen=True)
class Receiver:
    """`form`: a name in FORMS."""

    form: str
    url: str

    @staticmethod
    def parse(given: str) -> Receiver:
        """Take http://…, https://…, slack+https://…, alertmanager+http://… or otlp+http://…. Raise RequestError."""
        scheme, _, rest = given.partition("://")
        form, _, scheme = scheme.rpartition("+")
        try:
            parts = urllib.parse.urlsplit(f"{scheme}://{rest}")
            usable = scheme in ("http", "https") and parts.hostname and (parts.port or True) and form in FORMS
        except ValueError:
            usable = False
        if not usable or not given.isascii() or not given.isprintable() or " " in given:
            raise RequestError(
                "--notify is not a URL of a receiver: give http://…, https://…, slack+https://…, alertmanager+http://… or otlp+http://…"
            )
        path = "" if parts.path.endswith(PATHS.get(form, "")) else PATHS[form]
        return Receiver(
            form, urllib.parse.urlunsplit(parts._replace(path=parts.path.rstrip("/") + path if path else parts.path))
        )

    @property
    def name(self) -> str:
        """The receiver for messages, without what may be a secret: a user, a password, a path."""
        parts = urllib.parse.urlsplit(self.url)
        return text.plain(f"{parts.hostname}{f':{parts.port}' if parts.port else ''}")

    def send(self, body: Any) -> None:
        """Send, and wait until the receiver has taken it. Raise NotSentError, at the latest after MAX_SECONDS."""
        ended: list[str] = []
        sending = threading.Thread(target=lambda: ended.append(self._problem(body)), daemon=True)
        sending.start()
        sending.join(MAX_SECONDS)
        problem = ended[0] if ended else f"no answer within {MAX_SECONDS:.0f} s"
        if problem:
            raise NotSentError(problem)

    def _problem(self, body: Any) -> str:
        """Return why it was not taken; empty if it was."""
        request = self._request(json.dumps(body).encode())
        opener = urllib.request.build_opener(_NoRedirect)
        problem = ""
        for number in range(TRIES):
            time.sleep(WAIT_SECONDS * number)
            try:
                with opener.open(request, timeout=STEP_SECONDS):
                    return ""
            except urllib.error.HTTPError as error:
                error.close()
                problem = f"it answers {error.code}"
                if error.code < 500 and error.code not in AGAIN:
                    return problem
            except (http.client.InvalidURL, ValueError):  # their texts have the URL of the proxy
                return "its URL, or that of the proxy (http_proxy, https_proxy), is not valid"
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                problem = text.plain(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__, 200)
        return f"{problem} ({TRIES} tries)"

    def _request(self, content: bytes) -> urllib.request.Request:
        parts = urllib.parse.urlsplit(self.url)
        head = {
            "Content-Type": "application/json",
            "User-Agent": f"nodetune/{nodetune.__version__}",
            "Idempotency-Key": str(uuid.uuid4()),  # one for all tries
        }
        if parts.username is not None:
            user = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            head["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        url = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return urllib.request.Request(url, content, head, method="POST")  # noqa: S310  (parse allows http and https only)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is a failure: urllib would continue with GET, and elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
