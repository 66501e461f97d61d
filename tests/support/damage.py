"""Damages of a history, each of a random kind: values, rows, tables, the schema, and bytes of its file."""

from __future__ import annotations

import json
import random
import sqlite3
import zlib

TEXTS = [
    "",
    "abc",
    "{",
    "null",
    "[]",
    '"x"',
    "[" * 100_000,
    '{"a": NaN}',
    '{"a": 1e999}',
    '{"1": "x"}',
    "{}",
    "-1",
    "9" * 5000,
]
NUMBERS = [-5, 0, 1 << 40, (1 << 62), -(1 << 62)]
ODD = [None, "abc", 1.5, float("inf"), b"\xff\x00", *NUMBERS]


def packed(content):
    return zlib.compress(content.encode())


BLOBS = [
    b"", b"\x00\xff", packed("{}"), packed("[[1], [NaN]]"), packed('[[1], ["x"]]'), packed("[[1], [1, 2]]"), packed("[[[1]], [2]]"),
    packed("[" * 100_000), packed(f"[[1], [{10**60}]]"), packed("[[-7], [5]]"), packed("[[123456], [5]]"), packed("[[true], [null]]"),
]  # fmt: skip


UNSEEN = "day.series", "day.host", "figure.host", "figure.series"
"""Keys by which rows are found: one that is not found is damaged for repair alone."""


def is_seen(old, now):
    """Tell whether a value cannot be what was written there."""
    if type(old) is not type(now):
        return None not in (old, now)
    if isinstance(old, bytes):
        return now not in (b"", packed("[[-7], [5]]"), packed("[[123456], [5]]"))
    return (
        isinstance(old, str)
        and old.startswith("{")
        and not (now == "" or now.startswith('{"'))
        and now not in ("{}", "null")
    )


def value(chance, old):
    """Return another value in place of one."""
    if isinstance(old, bytes):
        cut = old[: len(old) // 2]
        flipped = bytes([*old[:1], old[1] ^ 64, *old[2:]]) if len(old) > 1 else b"\x01"
        return chance.choice([*BLOBS, cut, flipped, *ODD])
    if isinstance(old, str):
        try:
            known = json.loads(old)
        except ValueError:
            known = None
        if isinstance(known, dict) and known and chance.random() < 0.5:
            name = chance.choice(list(known))
            return json.dumps(
                {**known, name: chance.choice([None, 7, -1, 1 << 70, float("nan"), [], {}, "x", [None], {"a": []}])}
            )
        return chance.choice([*TEXTS, old[: len(old) // 2], *ODD])
    return chance.choice(ODD)


class SQLite:
    """Damages a file."""

    kinds = (
        "value",
        "value",
        "value",
        "value",
        "utf8",
        "delete",
        "table",
        "column",
        "index",
        "version",
        "bytes",
        "page",
        "cut",
        "file",
    )

    def __init__(self, path, seed):
        self.path, self.chance = path, random.Random(seed)
        self.kind = self.chance.choice(self.kinds)
        self.is_typed = self.kind in ("table", "column", "version")
        """Whether a reader can see that something is damaged: SQLite itself has no checksums."""
        self.said = getattr(self, f"_{self.kind}")()

    def _db(self):
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
        db.close()
        return sqlite3.connect(self.path, isolation_level=None)

    def _place(self, db):
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        tables = [
            each
            for each in tables
            if each != "schema_version" and db.execute(f"SELECT count(*) FROM {each}").fetchone()[0]
        ]
        table = self.chance.choice(tables)
        columns = [each[1] for each in db.execute(f"PRAGMA table_info({table})")]
        row = self.chance.randrange(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        values = db.execute(f"SELECT * FROM {table} LIMIT 1 OFFSET {row}").fetchone()
        return table, columns, values

    def _where(self, columns, values):
        return " AND ".join(f"{name} IS ?" for name in columns), values

    def _change(self, make):
        db = self._db()
        while True:
            table, columns, values = self._place(db)
            column = self.chance.choice(columns)
            now = make(values[columns.index(column)])
            where, known = self._where(columns, values)
            try:
                if (
                    db.execute(f"UPDATE {table} SET {column} = {now[0]} WHERE {where}", (*now[1:], *known)).rowcount
                    == 1
                ):
                    break
            except sqlite3.Error:
                continue
        db.close()
        known = values[columns.index(column)]
        self.is_typed = (self.kind == "utf8" or is_seen(known, now[1])) and f"{table}.{column}" not in UNSEEN
        return f"{table}.{column}: {values[columns.index(column)]!r:.60} → {now!r:.60}"

    def _value(self):
        return self._change(lambda old: ("?", value(self.chance, old)))

    def _utf8(self):
        return self._change(lambda _: ("CAST(x'61fffe' AS TEXT)",))

    def _delete(self):
        db = self._db()
        table, columns, values = self._place(db)
        where, known = self._where(columns, values)
        db.execute(f"DELETE FROM {table} WHERE {where}", known)
        db.close()
        return f"a row of {table}"

    def _table(self):
        db = self._db()
        table, _, _ = self._place(db)
        db.execute(f"DROP TABLE {table}")
        db.close()
        return table

    def _column(self):
        db = self._db()
        while True:
            table, columns, _ = self._place(db)
            column = self.chance.choice(columns)
            try:
                db.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO of_another")
            except sqlite3.Error:
                continue
            db.close()
            return f"{table}.{column}"

    def _index(self):
        db = sqlite3.connect(self.path)
        db.execute("DROP INDEX conclusion_open")
        db.close()
        return "conclusion_open"

    def _version(self):
        db = self._db()
        what = self.chance.choice(
            [
                "UPDATE schema_version SET version = 99 WHERE version = 2",
                "UPDATE schema_version SET version = -version",
                "DELETE FROM schema_version",
                "DROP TABLE schema_version",
            ]
        )
        db.execute(what)
        db.close()
        return what

    def _content(self):
        with sqlite3.connect(self.path) as db:
            db.execute("PRAGMA journal_mode = DELETE")
        db.close()
        return bytearray(self.path.read_bytes())

    def _bytes(self):
        content = self._content()
        for _ in range(self.chance.choice([1, 10, 200])):
            content[self.chance.randrange(len(content))] ^= 1 << self.chance.randrange(8)
        self.path.write_bytes(content)
        return "flipped"

    def _page(self):
        content = self._content()
        at = self.chance.randrange(1, len(content) // 4096) * 4096
        content[at : at + 4096] = self.chance.choice([bytes(4096), self.chance.randbytes(4096)])
        self.path.write_bytes(content)
        return f"page {at // 4096}"

    def _cut(self):
        content = self._content()
        size = self.chance.randrange(len(content))
        self.path.write_bytes(content[:size])
        return f"{size} of {len(content)} bytes"

    def _file(self):
        content = self._content()
        made = self.chance.choice([b"", bytes(len(content)), b"\0" * 16 + content[16:]])
        self.path.write_bytes(made)
        return f"{made[:20]!r}…"


class PostgreSQL:
    """Damages a database; types of columns hold there until somebody alters them."""

    kinds = ("value", "value", "value", "type", "null", "delete", "table", "column", "version")
    is_typed = True

    def __init__(self, db, seed):
        self.db, self.chance = db, random.Random(seed)
        self.kind = self.chance.choice(self.kinds)
        self.is_typed = self.kind != "delete"
        self.said = getattr(self, f"_{self.kind}")()

    def _place(self):
        tables = [
            name
            for (name,) in self.db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        ]
        tables = [
            each
            for each in tables
            if each != "schema_version" and self.db.execute(f"SELECT count(*) FROM {each}").fetchone()[0]
        ]
        table = self.chance.choice(tables)
        row = self.chance.randrange(self.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        cursor = self.db.execute(f"SELECT ctid, * FROM {table} LIMIT 1 OFFSET {row}")
        ctid, *values = cursor.fetchone()
        return table, [each.name for each in cursor.description][1:], values, ctid

    def _set(self, make, before="", types=(str, bytes, int)):
        import psycopg

        while True:
            table, columns, values, ctid = self._place()
            column = self.chance.choice(columns)
            old = values[columns.index(column)]
            if not isinstance(old, types):
                continue
            now = make(old)
            try:
                with self.db.transaction():
                    if before:
                        self.db.execute(before.format(table=table, column=column))
                        ctid = self.db.execute(f"SELECT ctid FROM {table} LIMIT 1").fetchone()[0]
                    self.db.execute(f"UPDATE {table} SET {column} = %s WHERE ctid = %s", (now, ctid))
            except (psycopg.Error, ValueError):
                continue
            there = self.db.execute(f"SELECT {column} FROM {table}").fetchall()
            self.is_typed = self.kind == "type" or ((now,) in there and is_seen(old, now))
            return f"{table}.{column}: {old!r:.60} → {now!r:.60}"

    def _value(self):
        return self._set(lambda old: value(self.chance, old))

    def _null(self):
        return self._set(lambda _: None, "ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")

    def _type(self):
        return self._set(
            lambda _: "abc", "ALTER TABLE {table} ALTER COLUMN {column} TYPE TEXT USING {column}::text", int
        )

    def _delete(self):
        table, _, _, ctid = self._place()
        self.db.execute(f"DELETE FROM {table} WHERE ctid = %s", (ctid,))
        return f"a row of {table}"

    def _table(self):
        table = self._place()[0]
        self.db.execute(f"DROP TABLE {table}")
        return table

    def _column(self):
        table, columns, *_ = self._place()
        column = self.chance.choice(columns)
        self.db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        return f"{table}.{column}"

    def _version(self):
        what = self.chance.choice(
            [
                "UPDATE schema_version SET version = 99 WHERE version = 2",
                "UPDATE schema_version SET version = -version",
                "DELETE FROM schema_version",
                "DROP TABLE schema_version",
            ]
        )
        self.db.execute(what)
        return what
