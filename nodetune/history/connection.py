"""A connection to the database of a history: a file of SQLite, or PostgreSQL by its URL. Statements have `?` for values.

Writers wait for each other for as long as a transaction takes, on PostgreSQL by a lock: both have the same rules.
"""

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from nodetune.foundation import UserError, ownership, text
from nodetune.history import postgres, sound
from nodetune.history.schema import MIGRATIONS, TABLES
from nodetune.history.sound import Row

T = TypeVar("T")
WAIT_SECONDS = 60
LOCK = 7001
"""The number of nodetune's lock in a PostgreSQL database."""

SOME = 400
"""Values in a list of one statement; old SQLite takes 999 in all."""

HEAD = 1 << 20
"""Bytes of a file in which a damaged history is recognised."""

_VERSIONS = "schema_version"
_WORDS = {"number": "INTEGER PRIMARY KEY", "bytes": "BLOB", "own_index": "WITHOUT ROWID"}


class HistoryError(UserError):
    """The history cannot be used; one line: where, what, and what to do."""


class PlaceError(HistoryError):
    """The place is not valid for a history: a command ends before it begins."""


class Database:
    """Open for one process. Raises HistoryError. `lost`: table → damaged rows that were left out. `notes`: what was seen as it opened."""

    def __init__(self, place: str, *, make: bool = True, damaged: bool = False) -> None:
        """Open it, or make it. `damaged`: only to be read, as far as that is possible."""
        self.place, self.is_postgres = place, postgres.is_url(place)
        self._make = make
        self.lost: dict[str, set[int]] = {}
        self.notes: list[str] = []
        self._problems: tuple[type[Exception], ...] = (sqlite3.Error,)
        self._db: Any = self._postgres() if self.is_postgres else self._sqlite(Path(place))
        try:
            with self._told():
                if damaged:
                    self._tolerate()
                    return
                self._expect_own()
                if not self.is_postgres:
                    self._run("PRAGMA journal_mode=WAL")
                self._migrate()
        except HistoryError:
            self._db.close()
            raise

    @property
    def name(self) -> str:
        """The place for messages: the path, or host and database."""
        return text.plain(postgres.shown(self.place) if self.is_postgres else self.place)

    @property
    def damage(self) -> str:
        """Which rows are damaged, and what to do; empty if none was seen."""
        return f"{self._damaged(', '.join(sound.counted(self.lost)))}; all else counts" if self.lost else ""

    def _damaged(self, what: str) -> str:
        place = "" if self.is_postgres else f" --history {shlex.quote(self.name)}"
        return f"history {self.name}: damaged: {what}: nodetune history{place} --repair writes a sound copy of what can be read"

    def _sqlite(self, path: Path) -> sqlite3.Connection:
        if not path.exists():
            if not self._make:
                raise PlaceError(f"{self.name}: no such history: nodetune audit --history {self.name} begins one")
            with self._told():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # it has serial numbers
        else:
            self._look_at(path)
        with self._told():
            return sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)

    def _look_at(self, path: Path) -> None:
        """Note what is unusual about a file that is there."""
        with suppress(OSError):
            about = path.stat()
            if not about.st_size:
                self.notes.append(f"history {self.name}: the file is empty: a history begins")
            if about.st_mode & 0o077:
                self.notes.append(
                    f"history {self.name}: others may read it, and it has serial numbers: chmod 600 {shlex.quote(self.name)}"
                )
            if about.st_uid not in ownership.own():
                self.notes.append(
                    f"history {self.name}: it belongs to {ownership.name(about.st_uid)}, who can change what it says"
                )

    def _expect_own(self) -> None:
        """Raise PlaceError for a database of another program, which stays as it is."""
        try:
            tables = self.tables()
        except sqlite3.DatabaseError as problem:
            if "not a database" in str(problem) and not _was_history(Path(self.place)):
                raise PlaceError(f"history {self.name}: {problem}") from None
            raise
        if not tables and not self._make and not self.is_postgres:
            raise PlaceError(f"{self.name}: no history: the file is empty")
        if tables and len(tables & TABLES) < len(TABLES) // 2 and tables != {_VERSIONS}:
            raise self._foreign()
        if len(tables) > 1 and (_VERSIONS not in tables or not self._version()):
            raise HistoryError(self._damaged(f"{_VERSIONS} is lost"))

    def tables(self) -> set[str]:
        """Return the tables that are there."""
        if self.is_postgres:
            return postgres.tables(self._db)
        found = self._run("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        return {str(name) for (name,) in found.fetchall()}

    def _foreign(self) -> PlaceError:
        what = "database" if self.is_postgres else "file"
        return PlaceError(f"{self.name}: a database of another program, not a history of nodetune: name another {what}")

    def _tolerate(self) -> None:
        if not self.is_postgres:
            self._db.text_factory = sound.as_text
            self._run("PRAGMA writable_schema = ON")  # takes a table whose description is damaged for none
            self._run("PRAGMA query_only = ON")
        self.tables()

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table."""
        with self._told():
            return _columns(self._run(f"SELECT * FROM {table} LIMIT 0"))  # noqa: S608

    def batches(self, statement: str) -> Iterator[list[Row]]:
        """Yield the rows that a statement finds, sound or not, some at a time; those before a damaged page, too."""
        with self._told():
            if self.is_postgres:
                with self._db.transaction(), postgres.lenient(self._db.cursor("copy")) as cursor:
                    cursor.execute(statement)
                    while rows := cursor.fetchmany(SOME):
                        yield rows
                return
            cursor, rows, problem = self._run(statement), [], None
            while problem is None:
                rows = []
                try:
                    rows.extend(islice(cursor, SOME))
                except sqlite3.DatabaseError as torn:
                    problem = torn
                if rows:
                    yield rows
                elif problem is None:
                    return
            raise problem

    def renumber(self, tables: Iterable[str]) -> None:
        """Let new rows of these tables get numbers after those that their rows have."""
        for table in tables if self.is_postgres else ():
            self._run(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), coalesce(max(id), 1)) FROM {table}")  # noqa: S608

    def _postgres(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise HistoryError(f"{self.name}: PostgreSQL needs psycopg: pip install 'nodetune[history]'") from None
        self._problems = (psycopg.Error,)
        try:
            postgres.parameters(self.place)
        except ValueError:
            raise PlaceError(
                f"history {self.name}: not a URL of PostgreSQL: give postgresql://USER@HOST/DATABASE, with %40 for @ and %2F for / in a password"
            ) from None
        with self._told():
            return postgres.connect(self.place, WAIT_SECONDS)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Make one line of the database's errors."""
        try:
            yield
        except (OSError, UnicodeError, OverflowError, *self._problems) as problem:  # type: ignore[misc]  # mypy takes no classes that are found at run time
            said = problem.strerror if isinstance(problem, OSError) else None
            why = text.plain(said or str(problem).strip().partition("\n")[0], 200) or type(problem).__name__
            if self.is_postgres:
                why = postgres.without_secrets(why, self.place)
            raise HistoryError(self._damaged(why) if _is_damage(problem) else f"history {self.name}: {why}") from None

    def _migrate(self) -> None:
        create = f"CREATE TABLE IF NOT EXISTS {_VERSIONS} (version INTEGER NOT NULL PRIMARY KEY)"
        if not self.is_postgres:
            self._run(create)
        elif self._run(f"SELECT to_regclass('{_VERSIONS}')").fetchone()[0] is None:
            with self._transaction():  # of two that begin it at the same time, one would fail
                self._run(create)
        if self._version() == len(MIGRATIONS):
            return
        with self._transaction():
            version = self._version()
            if version > len(MIGRATIONS):
                raise HistoryError(
                    f"{self.name}: schema {version} was written by a newer nodetune, this one knows {len(MIGRATIONS)}: update nodetune"
                )
            words = postgres.WORDS if self.is_postgres else _WORDS
            for number, statements in enumerate(MIGRATIONS[version:], version + 1):
                for statement in statements:
                    self._run(statement.format(**words))
                self._run(f"INSERT INTO {_VERSIONS} VALUES (?)", (number,))  # noqa: S608

    def _version(self) -> int:
        found = self._run(f"SELECT coalesce(max(version), 0) FROM {_VERSIONS}").fetchone()[0]  # noqa: S608
        if isinstance(found, int) and found >= 0:
            return found
        raise (
            self._foreign()
            if self.tables() == {_VERSIONS}
            else HistoryError(self._damaged(f"{_VERSIONS} has no number"))
        )

    def _run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._db.execute(statement.replace("?", "%s") if self.is_postgres else statement, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN" if self.is_postgres else "BEGIN IMMEDIATE")
        try:
            if self.is_postgres:
                self._db.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            yield
        except BaseException:
            with suppress(*self._problems):  # a full disk has ended the transaction already
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written meanwhile is kept, or after an error nothing."""
        with self._told(), self._transaction():
            yield

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the sound rows that a statement finds."""
        columns, found = self._found(statement, values)
        kept = sound.rows(columns, found)
        if len(kept) < len(found):
            known = set(map(id, kept))
            self.lose(sound.table(statement), *(row for row in found if id(row) not in known))
        return kept

    def _found(self, statement: str, values: Sequence[Any]) -> tuple[list[str], list[Row]]:
        """Return the names of the columns, and the rows. Outside of a transaction, those before a page that is damaged, too."""
        columns: list[str] = []
        found: list[Row] = []
        with self._told():
            try:
                cursor = self._run(statement, values)
                columns = _columns(cursor)
                found.extend(cursor)
            except (UnicodeDecodeError, sqlite3.DatabaseError) as problem:
                if isinstance(problem, UnicodeDecodeError) or "decode to UTF-8" in str(problem):
                    return self._lenient(statement, values)
                if type(problem) is not sqlite3.DatabaseError or self._db.in_transaction:
                    raise
                self.lose(sound.table(statement), str(problem))
        return columns, found

    def _lenient(self, statement: str, values: Sequence[Any]) -> tuple[list[str], list[Row]]:
        """Return what a statement finds; text that is not UTF-8 as bytes."""
        if self.is_postgres:
            cursor = postgres.lenient(self._db.cursor()).execute(statement.replace("?", "%s"), values)
            return _columns(cursor), cursor.fetchall()
        self._db.text_factory = sound.as_text
        try:
            cursor = self._run(statement, values)
            return _columns(cursor), cursor.fetchall()
        finally:
            self._db.text_factory = str

    def lose(self, table: str, *rows: object) -> None:
        """Count rows that are damaged, each once."""
        if rows:
            self.lost.setdefault(table, set()).update(hash(repr(row)) for row in rows)

    def made(self, table: str, make: Callable[..., T], *values: Any) -> T | None:
        """Return what `make` makes of values of a row; None if these are damaged."""
        try:
            return make(*values)
        except sound.PROBLEMS:
            self.lose(table, values)
            return None

    def one(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Return the first value of the first row; None without one."""
        return next((row[0] for row in self.rows(statement, values)), None)

    def rows_of(
        self, statement: str, names: Iterable[Any], more: Sequence[Any] = (), *, cure: bool = False
    ) -> Iterator[Row]:
        """Yield what a statement finds for the values of a list, which is where it has `IN (?)`, and for more after it.

        `cure`: rows that are damaged too, with None for what is.
        """
        wanted = list(names)
        for some in (wanted[at : at + SOME] for at in range(0, len(wanted), SOME)):
            asked, given = statement.replace("IN (?)", f"IN ({', '.join('?' * len(some))})"), [*some, *more]
            yield from self._cured(asked, given) if cure else self.rows(asked, given)

    def _cured(self, statement: str, values: Sequence[Any]) -> list[Row]:
        columns, found = self._found(statement, values)
        if len(sound.rows(columns, found)) == len(found):
            return found
        every = [(row, sound.cured(columns, row)) for row in found]
        self.lose(sound.table(statement), *(row for row, cured in every if row != cured))
        return [cured for _, cured in every]

    def change(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement that changes rows."""
        self._run(statement, values)

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows; one that is there already stays."""
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self.many(f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO NOTHING", rows)  # noqa: S608

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        """Run a statement for each row."""
        if not rows:
            return
        if self.is_postgres:
            with self._db.cursor() as cursor:
                cursor.executemany(statement.replace("?", "%s"), rows)
        else:
            self._db.executemany(statement, rows)

    def close(self) -> None:
        self._db.close()


def _columns(cursor: Any) -> list[str]:
    return [each[0] for each in cursor.description]


def _is_damage(problem: Exception) -> bool:
    """Return whether an error says that the database is not as it was made."""
    if isinstance(problem, sqlite3.Error):
        return type(problem) is sqlite3.DatabaseError or str(problem).startswith("no such ")
    state = str(getattr(problem, "sqlstate", None) or "")
    return state.startswith(("22", "42", "XX")) and state != "42501"


def _was_history(path: Path) -> bool:
    """Return whether a file that SQLite cannot open may have been a history: it has its first words, or zeros alone."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    return _VERSIONS.encode() in head or not head.strip(b"\0")
