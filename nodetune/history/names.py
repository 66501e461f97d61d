"""The numbers of series and hosts, which the database gives."""

from collections.abc import Iterable

from nodetune.history.connection import Database


class SeriesNames:
    """Leaf ↔ number of its series, as far as the database has them."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.ids: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.load()

    def load(self) -> None:
        """Read all that the database has."""
        self.names = dict(self._db.rows("SELECT id, name FROM series"))
        self.ids = {name: number for number, name in self.names.items()}

    def number(self, leaves: Iterable[str]) -> None:
        """Know the number of each leaf; in a transaction, for a new leaf gets one. Others may have written meanwhile."""
        new = sorted(set(leaves) - self.ids.keys())
        if new or self._db.one("SELECT max(id) FROM series") != max(self.names, default=None):
            self._db.add("series (name)", [(leaf,) for leaf in new])
            self.load()


def ids_of(db: Database, hosts: Iterable[str], make: bool = True) -> dict[str, int]:
    """Return host → its number; in a transaction, for with `make` a new host gets one."""
    names = sorted(set(hosts))
    found: dict[str, int] = dict(db.rows_of("SELECT name, id FROM host WHERE name IN (?)", names))
    if missing := [name for name in names if name not in found] if make else ():
        db.add("host (name)", [(name,) for name in missing])
        found |= dict(db.rows_of("SELECT name, id FROM host WHERE name IN (?)", missing))
    return found
