"""Connects to a PostgreSQL database by its URL. No wait is endless, and of a URL only host and database are ever shown."""

import re
import time
import urllib.parse
from collections.abc import Callable, Generator
from typing import Any

_URL = re.compile(
    r"\s*(?:postgres(?:ql)?(?:\+\w+)?:|[a-z][a-z0-9+.-]*://|.*\b(?:password|dbname)\s*=)", re.IGNORECASE | re.DOTALL
)
_HOST = r"(?:\[[0-9a-f:.%]+\]|[\w.-]*|/[\w./-]*)(?::\d*)?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*", re.IGNORECASE)

ANSWER_SECONDS = 10
"""A statement may take so much longer than the wait for a lock, and the server then so long to say so."""

IDLE_SECONDS = 600
"""A controller that died within a transaction keeps others out for so long."""


def is_url(place: str) -> bool:
    """Return whether a place describes a connection: as a URL, or in other words of PostgreSQL."""
    return _URL.match(place) is not None


def shown(url: str) -> str:
    """Return the host and the database of a URL; neither where one of them may be a part of a password."""
    _, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    if "@" in query or not re.match(r"\s*postgres", url, re.IGNORECASE):
        return "postgresql://…"
    given = {name: value for name, _, value in (word.partition("=") for word in query.split("&"))}
    host, _, database = rest.rpartition("@")[2].partition("/")
    known, database = urllib.parse.unquote(given.get("host", host)), given.get("dbname", database)
    if not _HOSTS.fullmatch(known) or not re.fullmatch(r"[\w.-]*", database):
        return "postgresql://…"
    return f"postgresql:///{database}?host={known}" if "host" in given else f"postgresql://{known}/{database}"


def parameters(url: str) -> dict[str, Any]:
    """Return the parameters of a connection. Raise ValueError, without a text, for a URL that PostgreSQL does not take."""
    import psycopg
    from psycopg import conninfo

    scheme, mark, rest = url.strip().partition("://")
    try:
        if scheme.lower() not in ("postgresql", "postgres") or not mark:
            raise ValueError
        found = dict(conninfo.conninfo_to_dict(f"postgresql://{rest}"))
    except (psycopg.Error, UnicodeError):
        raise ValueError from None  # the text of libpq has parts of the URL
    ports = str(found.get("port") or "").split(",")
    if not _HOSTS.fullmatch(str(found.get("host") or "")) or not all(
        not each or (each.isdecimal() and int(each) < 1 << 16) for each in ports
    ):
        raise ValueError
    return found


def without_secrets(message: str, url: str) -> str:
    """Return an error of a database without what its URL says of users, passwords and options."""
    given = [each for name, each in parameters(url).items() if name not in ("host", "hostaddr", "port", "dbname")]
    secrets = sorted((text for text in map(str, given) if len(text) > 2), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, secrets)), "…", message) if secrets else message


def connect(url: str, wait: float) -> Any:
    """Return an open connection, whose statements fail after `wait` seconds, also where the server says nothing more."""
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Any, *words: Any, **more: Any) -> Any:
            end = time.monotonic() + wait + 2 * ANSWER_SECONDS
            return super().wait(_until(end, gen, self.pgconn.finish), *words, **more)

    seconds = max(1, int(wait))
    usual = {
        "connect_timeout": max(2, seconds),
        "keepalives_idle": seconds // 2 or 1,
        "keepalives_interval": seconds // 6 or 1,
        "keepalives_count": 3,
        "tcp_user_timeout": seconds * 1000,
        "application_name": "nodetune",
    }
    found = Bounded.connect(**{**usual, **parameters(url), "client_encoding": "utf8", "autocommit": True})
    try:
        for name, limit in (
            ("lock", wait),
            ("statement", wait + ANSWER_SECONDS),
            ("idle_in_transaction_session", IDLE_SECONDS),
        ):
            found.execute(f"SET {name}_timeout = {int(limit * 1000)}")
    except BaseException:
        found.close()
        raise
    return found


def _until(end: float, work: Generator[Any, Any, Any], close: Callable[[], None]) -> Generator[Any, Any, Any]:
    """Do the work of a connection, and close that if the server is silent: what follows then fails at once."""
    import psycopg

    try:
        wanted = next(work)
        while True:
            ready = yield wanted
            if time.monotonic() > end:
                close()
                raise psycopg.OperationalError("the server does not answer")
            wanted = work.send(ready)
    except StopIteration as done:
        return done.value


def lenient(cursor: Any) -> Any:
    """Let a cursor return text that is not UTF-8 as bytes."""
    from psycopg.adapt import Loader

    class Text(Loader):
        def load(self, data: Any) -> str | bytes:
            try:
                return bytes(data).decode()
            except UnicodeDecodeError:
                return bytes(data)

    for name in ("text", "varchar"):
        cursor.adapters.register_loader(name, Text)
    return cursor


def tables(db: Any) -> set[str]:
    """Return the tables of the schema in use, without those of extensions."""
    found = db.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema()"
        " AND c.relkind IN ('r', 'p', 'f') AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')"
    )
    return {name for (name,) in found}
