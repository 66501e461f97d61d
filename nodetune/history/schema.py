"""The tables of the history, and how an older database becomes a newer one. The same for SQLite and PostgreSQL.

`series`: leaves that changed or are numbers. `fact`: the settings of each distinct fact, once for the fleet. `host`: the
prints of its facts, the print of the parts whose numbers are known, and what each counter carries over its resets.
`change`: a row a leaf and change. `look`: the packed numbers. `day`: a row a day and series that moved, of thinned looks.
`figure`: the judged figure of a day and series, what is usual there, and whether it was too much (of four weeks; those of
zero are left out, except heat; series 0: the host was looked at). `verdict`: findings of the first edition, copied into
`conclusion`: what is wrong, since when, and when and why it was over; host 0 is the fleet, `conclusion_host` has further hosts.
`examination`: the last one of each source and host; `unjudged`: the reasons that these share. `action`: what was done.
"""

import re

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE series (id {number}, name TEXT NOT NULL UNIQUE)",
        "CREATE TABLE host (id {number}, name TEXT NOT NULL UNIQUE, cohort TEXT, settings {bytes}, parts {bytes}, carry TEXT)",
        "CREATE TABLE fact (digest {bytes} NOT NULL PRIMARY KEY, name TEXT NOT NULL, leaves TEXT NOT NULL) {own_index}",
        (
            "CREATE TABLE change (host INTEGER NOT NULL, fact INTEGER NOT NULL, at BIGINT NOT NULL, before TEXT, after TEXT,"
            " PRIMARY KEY (host, fact, at)) {own_index}"
        ),
        "CREATE TABLE look (host INTEGER NOT NULL, at BIGINT NOT NULL, packed {bytes} NOT NULL, PRIMARY KEY (host, at))",
        (
            "CREATE TABLE day (day INTEGER NOT NULL, series INTEGER NOT NULL, host INTEGER NOT NULL, low BIGINT NOT NULL,"
            " high BIGINT NOT NULL, grown BIGINT NOT NULL, most BIGINT NOT NULL, PRIMARY KEY (day, series, host)) {own_index}"
        ),
        (
            "CREATE TABLE event (host INTEGER NOT NULL, at BIGINT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,"
            " text TEXT NOT NULL, PRIMARY KEY (host, at, kind, subject)) {own_index}"
        ),
        (
            "CREATE TABLE figure (day INTEGER NOT NULL, host INTEGER NOT NULL, series INTEGER NOT NULL, figure BIGINT NOT NULL,"
            " usual BIGINT NOT NULL, hit INTEGER NOT NULL, PRIMARY KEY (day, host, series)) {own_index}"
        ),
        (
            "CREATE TABLE verdict (host INTEGER NOT NULL, finding TEXT NOT NULL, subject TEXT NOT NULL, since BIGINT NOT NULL,"
            " gone BIGINT, PRIMARY KEY (host, finding, subject, since)) {own_index}"
        ),
    ),
    (
        (
            "CREATE TABLE conclusion (id {number}, host INTEGER NOT NULL, source TEXT NOT NULL, fault TEXT NOT NULL,"
            " about TEXT NOT NULL, place TEXT NOT NULL, part TEXT NOT NULL, since BIGINT NOT NULL, gone BIGINT,"
            " why TEXT NOT NULL DEFAULT '', unproven BIGINT NOT NULL DEFAULT 0, edition TEXT NOT NULL, state TEXT NOT NULL,"
            " severity TEXT NOT NULL, mark TEXT NOT NULL, content TEXT NOT NULL)"
        ),
        "CREATE INDEX conclusion_open ON conclusion (host) WHERE gone IS NULL",
        "CREATE INDEX conclusion_of_host ON conclusion (host, since)",
        "CREATE TABLE conclusion_host (conclusion INTEGER NOT NULL, host INTEGER NOT NULL, PRIMARY KEY (host, conclusion)) {own_index}",
        (
            "CREATE TABLE examination (host INTEGER NOT NULL, source TEXT NOT NULL, at BIGINT NOT NULL, edition TEXT NOT NULL,"
            " unjudged {bytes}, PRIMARY KEY (host, source)) {own_index}"
        ),
        "CREATE TABLE unjudged (digest {bytes} NOT NULL PRIMARY KEY, content TEXT NOT NULL) {own_index}",
        (
            "CREATE TABLE action (host INTEGER NOT NULL, at BIGINT NOT NULL, kind TEXT NOT NULL, device TEXT NOT NULL,"
            " who TEXT NOT NULL, run TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (host, at, kind, device)) {own_index}"
        ),
        (
            "INSERT INTO conclusion (host, source, fault, about, place, part, since, gone, edition, state, severity, mark, content)"
            " SELECT host, 'audit', finding, '', subject, '', since, gone, '', 'open', 'info', '', '' FROM verdict"
        ),
    ),
)
"""The statements that make each version from the one before. Never changed once released, only added to."""

NUMBERED = "series", "host", "conclusion"
"""Tables whose rows the database numbers."""


def tables(versions: int) -> frozenset[str]:
    """Return the tables that the first versions in MIGRATIONS make."""
    made = (re.match(r"CREATE TABLE (\w+)", each) for version in MIGRATIONS[:versions] for each in version)
    return frozenset(each[1] for each in made if each)


TABLES = tables(len(MIGRATIONS))
