"""The secrets of the resources that one call uses, as they are now: what its results must not show.

A server may echo what it was given, in a row, an error page or a header, and a program may print what a server told it.
The broker masks its own streams; this is for everything that leaves the line: data, both outputs, messages, names of
files, the live view. Values are read for this call, held as long as it lasts, and stand in no record. A secret that
cannot be read ends the call before anything runs: what is not known cannot be taken out. Which resources those are was
decided by authorize.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolcage.resources import Mailbox, PostgresDatabase, Resources
from toolcage.types import AuthorizedCall


def secrets_of(authorized: AuthorizedCall, resources: Resources) -> tuple[str, ...]:
    """Every secret of the call's databases, endpoints, mailboxes, calendars and servers. Raises ResourceError."""
    found: dict[str, None] = {}
    for word, kind in authorized.valid.declaration.resources.items():
        name = authorized.resources.get(word)
        if name is not None:
            found.update(dict.fromkeys(_of(kind, name, resources)))
    return tuple(found)


def _of(kind: str, name: str, resources: Resources) -> Iterator[str]:
    match kind:
        case "database":
            database = resources.database(name)
            if isinstance(database, PostgresDatabase):
                yield from _passwords(database)
        case "endpoint":
            placed = resources.endpoint(name).key
            if placed is not None:
                yield from placed.read()[1]
        case "mailbox":
            yield from _passwords(resources.mailbox(name))
        case "calendar":
            yield from resources.calendar(name).secrets()
        case "mcp_server":
            server = resources.mcp_servers[name]
            yield from (reference.read() for reference in server.environment.values())
            if server.key is not None:
                yield from server.key.read()[1]


def _passwords(resource: PostgresDatabase | Mailbox) -> Iterator[str]:
    if resource.password is not None:
        yield resource.password.read()
