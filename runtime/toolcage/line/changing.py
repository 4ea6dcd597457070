"""The one way from a call to a changed SQLite database: who may, what the cage is told, the record of what was done.

The change itself is `sqlite_change`. Only the tool whose SQL may change data gets here, and only with a database that
the resources file lets be changed (`access: rw`). Every attempt that reached the file stands in the audit log, whether
it was made or undone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolcage.broker.broker import OnRecord, Record
from toolcage.broker.stream import Connection
from toolcage.cage.data import Snapshots
from toolcage.cage.pool import GivenUp
from toolcage.errors import Refused
from toolcage.facts.sql import SqlFacts
from toolcage.facts.sql_change import SqlChange
from toolcage.line.sqlite_change import Account, Order, make_change
from toolcage.policy.model import Role
from toolcage.resources import Resources, SqliteDatabase
from toolcage.types import JSON, AuthorizedCall, Refusal

_READ_ONLY: Final = Refusal(
    status="denied", code="sql.not_changeable", message="the database can only be read here",
    hint="Tell the user that it cannot be done.",
)  # fmt: skip
_LEAST_LIMIT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Changing:
    """One call's change of one SQLite database."""

    authorized: AuthorizedCall
    database: SqliteDatabase
    change: SqlChange
    snapshots: Snapshots
    given_up: GivenUp

    def make(self, data: JSON, seen: Mapping[str, str], seconds: float, on_record: OnRecord) -> dict[str, Any]:
        """The answer to the change that `data` proposes. `seen` are the digests of what the cage had to read, by name.
        Raises Refused, ResourceError; then nothing was changed, but for `sql.outcome_unknown`."""
        database, arguments = self.database, self.authorized.valid.arguments
        digest = seen.get(f"{database.name}.sqlite", "")
        limit = arguments.get("limit")
        order = Order(
            path=database.path,
            change=self.change,
            terms=self.authorized.decision.sql,
            parameters=arguments.get("parameters"),
            limit=limit if isinstance(limit, int) else _LEAST_LIMIT,
            max_bytes=self.authorized.output.max_bytes,
            unchanged=lambda: self.snapshots.unchanged(database.name, database.path, digest),
            given_up=self.given_up,
            seconds=seconds,
        )
        account, code = Account(), "resource.unusable"
        began = time.monotonic()
        try:
            answer = make_change(order, data, account)
            code = ""
        except Refused as caught:
            code = caught.refusal.code
            raise
        finally:
            on_record(Record(connection=self._note(account, code), seconds=time.monotonic() - began))
        return answer

    def _note(self, account: Account, code: str) -> Connection:
        return Connection(
            portal=f"{self.database.name}.sqlite", kind="sqlite", target=f"{self.change.operation} {self.change.table}",
            address=str(self.database.path), verdict="closed" if not code else "failed", reason=code,
            detail=account.text(),
        )  # fmt: skip


def changing(
    authorized: AuthorizedCall, resources: Resources, snapshots: Snapshots, given_up: GivenUp
) -> Changing | None:
    """None for a call that changes no SQLite database. Raises Refused, ResourceError."""
    database = _database(authorized, resources)
    if database is None:
        return None
    change = _change(authorized)
    if database.access != "rw" or change is None:
        raise Refused(_READ_ONLY)
    return Changing(
        authorized=authorized, database=database, change=change, snapshots=snapshots, given_up=given_up
    )  # fmt: skip


def told_of_change(authorized: AuthorizedCall) -> dict[str, object] | None:
    """What the cage is told of the statement, as the host has read it."""
    change = _change(authorized)
    if change is None:
        return None
    columns = None if change.columns is None else list(change.columns)
    return {"operation": change.operation, "table": change.table, "columns": columns}


def unchangeable_grants(role: Role, resources: Resources) -> list[str]:
    """A line for each grant of changing a SQLite database that is only read."""
    found = []
    for tool, grant in role.grants.items():
        if not grant.declaration.changes_databases:
            continue
        for names in grant.resources.values():
            read_only = [
                name for name in sorted(names & resources.databases.keys())
                if isinstance(database := resources.databases[name], SqliteDatabase) and database.access == "ro"
            ]  # fmt: skip
            found += [
                f"{role.source}:{grant.line}: tools.{tool}: it changes rows, and the database {name} is `ro` in the"
                " resources file; take it out of the grant, or write `access: rw` there"
                for name in read_only
            ]
    return found


def _database(authorized: AuthorizedCall, resources: Resources) -> SqliteDatabase | None:
    declaration = authorized.valid.declaration
    if not declaration.changes_databases:
        return None
    named = [authorized.resources[word] for word, kind in declaration.resources.items()
             if kind == "database" and word in authorized.resources]  # fmt: skip
    found = [database for name in named if isinstance(database := resources.database(name), SqliteDatabase)]
    return found[0] if found else None


def _change(authorized: AuthorizedCall) -> SqlChange | None:
    if not authorized.valid.declaration.changes_databases:
        return None
    read = [facts.change for facts in authorized.valid.facts.values() if isinstance(facts, SqlFacts)]
    return read[0] if read else None
