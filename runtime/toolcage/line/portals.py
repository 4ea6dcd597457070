"""Which portals a call's cage has, and where each one leads: from what was authorized to what the broker serves.

The cage learns a number, a kind and a port of its own loopback. Destination, terms and secrets stay in the `Way`, on
the host; secrets are read here, for this call, and nowhere else. Grants that name no endpoint, calendar, mailbox,
PostgreSQL database or host give no portal. A mailbox opens for sending where the tool itself declares that it sends,
for reading where it declares that it reads what is private. It connects nothing and decides nothing that authorize has
not decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from toolcage.broker import connect, postgres
from toolcage.broker.broker import Serve, Way
from toolcage.broker.dial import Resolve, Upstream, open_stream, system_resolve
from toolcage.broker.pace import Pace
from toolcage.broker.stream import ClientStream, Connection, PortalTerms
from toolcage.cage.portals import FIRST_PORT, Portal
from toolcage.line.http_portals import asking, keeping_dates
from toolcage.line.mail_portals import Outbox, reading, sending
from toolcage.line.portal_memory import Memory
from toolcage.line.upstreams import postgres_config
from toolcage.resources import Calendar, Endpoint, Mailbox, PostgresDatabase, Resources
from toolcage.types import AuthorizedCall, Effect, PortalKind

PROXY: Final = "egress:"
"""The name of the `connect` portal. No resource can have it."""
_STATEMENT_SHARE: Final = 0.7
_LEAST_S: Final = 0.05
_LOOPBACK: Final = "127.0.0.1"
_AFTER_S: Final = 5.0
_ANSWERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One portal of one call, both ends. `base_path` is where the resource begins; `more` is what else a tool may know
    of it."""

    portal: Portal
    way: Way
    base_path: str = ""
    more: Mapping[str, object] = field(default_factory=dict)

    def told(self) -> dict[str, object]:
        """What the tool may know."""
        origin = f"http://{_LOOPBACK}:{self.portal.port}"
        told: dict[str, object] = {"host": _LOOPBACK, "port": self.portal.port, "kind": self.portal.kind, **self.more}
        return {**told, "base": f"{origin}{self.base_path}"} if self.portal.kind in ("http", "connect") else told


def open_portals(
    authorized: AuthorizedCall,
    resources: Resources,
    memory: Memory,
    resolve: Resolve = system_resolve,
    *,
    own: frozenset[Effect],
    session: str = "",
    key: str = "",
) -> tuple[Opened, ...]:
    """The portals of this call of that session. `own` are the effects that its tool declares by itself: what a policy
    states besides makes a call stricter and opens nothing. `key` is the same when the same call is tried again. A
    resource that a call names twice has one portal. Reads secrets. Raises ResourceError."""
    mail = _mail(authorized, resources, own, memory.outbox, key, resolve)
    opened: dict[str, Opened] = {}
    for make in (*_makers(authorized, resources, own, memory, session, resolve), *mail):
        made = make(FIRST_PORT + len(opened))
        opened.setdefault(made.portal.name, made)
    return tuple(opened.values())


_Make = Callable[[int], Opened]


def _makers(
    authorized: AuthorizedCall, resources: Resources, own: frozenset[Effect], memory: Memory, session: str,
    resolve: Resolve,
) -> Iterator[_Make]:  # fmt: skip
    wall_s = authorized.sandbox.wall_s
    for word, kind in sorted(authorized.valid.declaration.resources.items()):
        name = authorized.resources.get(word)
        if name is None:
            continue
        if kind == "endpoint":
            yield partial(_endpoint, resources.endpoint(name), authorized, memory, session, resolve)
        elif kind == "calendar":
            writes = "writes" in own
            yield partial(_calendar, resources.calendar(name), writes, wall_s, memory.pace, resolve)
        elif kind == "database" and isinstance(database := resources.database(name), PostgresDatabase):
            yield partial(_database, database, authorized, resolve)
    if authorized.egress:
        granted = frozenset((target.host, target.port) for target in authorized.egress)
        yield partial(_proxy, connect.ConnectConfig(granted=granted), wall_s, resolve)


def _mail(
    authorized: AuthorizedCall, resources: Resources, own: frozenset[Effect], outbox: Outbox, key: str, resolve: Resolve
) -> Iterator[_Make]:
    for word, kind in sorted(authorized.valid.declaration.resources.items()):
        name = authorized.resources.get(word)
        if name is None or kind != "mailbox":
            continue
        mailbox, terms = resources.mailbox(name), _terms(authorized.sandbox.wall_s)
        terms = replace(terms, max_bytes_up=max(terms.max_bytes_up, 2 * mailbox.max_message),
                        max_bytes_down=max(terms.max_bytes_down, 4 * mailbox.max_message))  # fmt: skip
        if "sends" in own:
            yield partial(_mailbox, mailbox, "smtp", terms, sending(mailbox, authorized, outbox, key, resolve, terms))
        if "reads_private" in own:
            yield partial(_mailbox, mailbox, "imap", terms, reading(mailbox, resolve, terms))


def _mailbox(mailbox: Mailbox, kind: Literal["smtp", "imap"], terms: PortalTerms, serve: Serve, port: int) -> Opened:
    return Opened(
        portal=Portal(name=f"{mailbox.name}.{kind}", kind=kind, port=port),
        way=Way(kind=kind, terms=terms, serve=serve),
        more={"address": mailbox.address, "folders": list(mailbox.folders), "max_message": mailbox.max_message},
    )


def _terms(wall_s: float, max_answer: int = 0) -> PortalTerms:
    """No connection outlasts its call by more than the call's own end takes. Several answers fit one connection."""
    usual = PortalTerms()
    return PortalTerms(
        max_bytes_down=max(usual.max_bytes_down, _ANSWERS * max_answer),
        connect_s=min(usual.connect_s, wall_s),
        idle_s=min(usual.idle_s, wall_s),
        total_s=wall_s + _AFTER_S,
        call_s=wall_s,
    )


def _opened(
    name: str, kind: PortalKind, port: int, terms: PortalTerms, serve: Serve, base_path: str = "",
) -> Opened:  # fmt: skip
    return Opened(
        portal=Portal(name=name, kind=kind, port=port),
        way=Way(kind=kind, terms=terms, serve=serve),
        base_path=base_path,
    )


def _endpoint(
    endpoint: Endpoint, authorized: AuthorizedCall, memory: Memory, session: str, resolve: Resolve, port: int
) -> Opened:
    terms = _terms(authorized.sandbox.wall_s, endpoint.max_bytes)
    serve = asking(endpoint, authorized, memory, session, resolve, terms)
    return _opened(endpoint.name, "http", port, terms, serve, endpoint.base_path)


def _calendar(calendar: Calendar, writes: bool, wall_s: float, pace: Pace, resolve: Resolve, port: int) -> Opened:
    """Its name says what it is: a calendar may be called like an endpoint, and one must not answer for the other."""
    terms = _terms(wall_s, calendar.max_bytes)
    serve = keeping_dates(calendar, pace, resolve, terms, writes=writes)
    opened = _opened(f"{calendar.name}.caldav", "http", port, terms, serve, calendar.path)
    return replace(opened, more={"address": calendar.address})


def _database(database: PostgresDatabase, authorized: AuthorizedCall, resolve: Resolve, port: int) -> Opened:
    """One session for reading; for writing in `change_database` alone, whatever a grant says of another tool."""
    wall_s = authorized.sandbox.wall_s
    read_only = not authorized.valid.declaration.changes_databases
    config = postgres_config(database, read_only=read_only, statement_s=max(_LEAST_S, wall_s * _STATEMENT_SHARE))
    terms = replace(_terms(wall_s), idle_s=wall_s + _AFTER_S)  # a statement may be silent for as long as it may run

    async def serve(client: ClientStream, note: Connection) -> None:
        await postgres.serve(client, config=config, terms=terms, note=note, resolve=resolve)

    return _opened(f"{database.name}.postgres", "postgres", port, terms, serve)


def _proxy(config: connect.ConnectConfig, wall_s: float, resolve: Resolve, port: int) -> Opened:
    terms = _terms(wall_s)

    async def dial(host: str, port: int) -> connect.Server:
        where = Upstream(host=host, port=port, tls=False, clear_to_public=True)
        return await open_stream(where, connect_s=terms.connect_s, resolve=resolve)

    async def serve(client: ClientStream, note: Connection) -> None:
        await connect.serve(client, config=config, dial=dial, terms=terms, note=note)

    return _opened(PROXY, "connect", port, terms, serve)
