"""Tries every resource of resources.yaml for real, the way a call would reach it, and says what is wrong.

A database is logged in to and its role examined, a mailbox is logged in to at both ends and its folders opened, a
calendar is asked for, an endpoint connected and its key looked for; files and folders are opened. Nothing is changed or
sent anywhere. What it says is for the operator: hosts and places stand in it, and never a secret.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from toolcage.broker import imap_server, postgres_role, smtp_delivery
from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.dial import Resolve, open_stream, system_resolve
from toolcage.broker.stream import Denied
from toolcage.errors import ResourceError
from toolcage.facts.mail_folder import encode_folder
from toolcage.line.upstreams import mail_server, postgres_config, upstream
from toolcage.resources import (
    Calendar,
    Database,
    Endpoint,
    Mailbox,
    McpServer,
    Resources,
    SqliteDatabase,
    Workspace,
)

CONNECT_S: Final = 10.0
_MOST_AT_ONCE: Final = 4

Verdict = Literal["ok", "advice", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One thing that was found about one resource. `mend` is what to do, None when there is nothing."""

    resource: str
    verdict: Verdict
    found: str
    mend: str | None = None


async def check_resources(resources: Resources, resolve: Resolve = system_resolve) -> tuple[Checked, ...]:
    """At least one line for every resource, in the order of the file's kinds."""
    gate = asyncio.Semaphore(_MOST_AT_ONCE)

    async def one(name: str, check: _Check) -> Sequence[Checked]:
        async with gate:
            return await _guarded(name, check, resolve)

    checked = await asyncio.gather(*(one(name, check) for name, check in _checks(resources)))
    return tuple(item for found in checked for item in found)


async def _guarded(name: str, check: _Check, resolve: Resolve) -> Sequence[Checked]:
    try:
        return [*(await check(name, resolve))]
    except Denied as denied:
        return [Checked(resource=name, verdict="problem", found=denied.operator, mend=_mend(denied.code))]
    except (ResourceError, OSError, sqlite3.Error) as cause:
        return [Checked(resource=name, verdict="problem", found=str(cause), mend="mend that, then run doctor again")]


def _mend(code: str) -> str:
    mends = {
        "egress.address": "write `allow_private: true` beside the host if that address is meant",
        "egress.clear": "let the server speak TLS, or name its private address",
        "egress.login": "correct user and password, at the server or in resources.yaml",
        "egress.name": "correct the host in resources.yaml",
        "egress.secret": "put the secret where resources.yaml says, or correct its place",
        "egress.tls": "correct the host's name, or name the authority's file as `ca`",
    }
    return mends.get(code, "start the server, or correct host and port in resources.yaml")


_Check: TypeAlias = Callable[[str, Resolve], Awaitable[Sequence[Checked]]]


def _checks(resources: Resources) -> Iterator[tuple[str, _Check]]:
    for database in resources.databases.values():
        yield f"database {database.name}", partial(_database, database)
    for endpoint in resources.endpoints.values():
        yield f"endpoint {endpoint.name}", partial(_endpoint, endpoint)
    for mailbox in resources.mailboxes.values():
        yield f"mailbox {mailbox.name}", partial(_mailbox, mailbox)
    for calendar in resources.calendars.values():
        yield f"calendar {calendar.name}", partial(_calendar, calendar)
    for workspace in resources.workspaces.values():
        yield f"workspace {workspace.name}", partial(_workspace, workspace)
    for server in resources.mcp_servers.values():
        yield f"mcp_server {server.name}", partial(_mcp_server, server)


async def _database(database: Database, name: str, resolve: Resolve) -> Sequence[Checked]:
    if isinstance(database, SqliteDatabase):
        return [_good(name, await asyncio.to_thread(_sqlite_file, database))]
    config = postgres_config(database, read_only=True, statement_s=CONNECT_S)
    found = await postgres_role.examine(config, connect_s=CONNECT_S, resolve=resolve)
    mend = f"let {database.user} be a role of its own with no more than it needs; docs/policy-reference.md shows one"
    rights = [
        Checked(resource=name, verdict=item.weight, found=f"the role {database.user} {item.text}", mend=mend)
        for item in found
    ]
    return rights or [_good(name, f"logged in at {config.place} as {database.user}, a narrow role")]


def _sqlite_file(database: SqliteDatabase) -> str:
    """Opened as a call would; one that may be changed is locked for writing, and let go again unchanged. Raises
    ResourceError, sqlite3.Error."""
    database.check()
    changes = database.access == "rw"
    mode = "rw" if changes else "ro"
    connection = sqlite3.connect(
        f"file:{quote(str(database.path))}?mode={mode}", uri=True, isolation_level=None, timeout=CONNECT_S / 2
    )
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").fetchone()[0]
        if changes:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    finally:
        connection.close()
    return f"a SQLite file with {tables} tables{', which may be changed' if changes else ''}"


async def _endpoint(endpoint: Endpoint, name: str, resolve: Resolve) -> Sequence[Checked]:
    if endpoint.key is not None:
        endpoint.key.secret.read()
    stream = await open_stream(upstream(endpoint.server), connect_s=CONNECT_S, resolve=resolve)
    await stream.close()
    key = "without a key" if endpoint.key is None else "the key is there; whether it is right, a call will tell"
    return [_good(name, f"connected to {stream.address}{'' if endpoint.server.tls else ' in the clear'}, {key}")]


async def _mailbox(mailbox: Mailbox, name: str, resolve: Resolve) -> Sequence[Checked]:
    done = []
    if mailbox.smtp is not None:
        await smtp_delivery.log_in_only(mail_server(mailbox, "smtp"), connect_s=CONNECT_S, resolve=resolve)
        done.append("may send")
    if mailbox.imap is not None:
        await _open_folders(mailbox, resolve)
        done.append(f"may read {', '.join(mailbox.folders)}")
    return [_good(name, f"{mailbox.address} {' and '.join(done)}")]


async def _open_folders(mailbox: Mailbox, resolve: Resolve) -> None:
    session = await imap_server.log_in(
        mail_server(mailbox, "imap"), count=lambda _: None, connect_s=CONNECT_S, answer_s=CONNECT_S,
        max_unit=mailbox.max_message, resolve=resolve,
    )  # fmt: skip
    try:
        for folder in mailbox.folders:
            try:
                async for _ in session.ask(["EXAMINE", encode_folder(folder)]):
                    pass
            except Denied as denied:
                raise ResourceError(f"the folder {folder} cannot be opened: {denied.operator}") from None
        await session.close()
    except (Ended, ConnectionError):
        raise ResourceError("the mail server ended the connection") from None
    finally:
        session.abort()


async def _calendar(calendar: Calendar, name: str, resolve: Resolve) -> Sequence[Checked]:
    stream = await open_stream(upstream(calendar.server), connect_s=CONNECT_S, resolve=resolve)
    host = f"[{calendar.server.host}]" if ":" in calendar.server.host else calendar.server.host
    lines = [f"PROPFIND {calendar.path} HTTP/1.1", f"Host: {host}:{calendar.server.port}", "Depth: 0",
             "Content-Length: 0", "Connection: close"]  # fmt: skip
    if login := calendar.secrets():
        lines.append(f"Authorization: Basic {login[1]}")
    try:
        await stream.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        reader = BufferedReader(stream, count=lambda _: None, idle_s=CONNECT_S)
        words = (await reader.line(8192)).decode("latin-1").split(" ")
    except (Ended, ConnectionError):
        words = []
    finally:
        stream.abort()
    status = words[1] if len(words) > 1 else "nothing"
    if status != "207":
        return [Checked(resource=name, verdict="problem", found=f"the server answered {status} instead of a calendar",
                        mend="correct url, user and password in resources.yaml")]  # fmt: skip
    return [_good(name, f"found at {stream.address}, to be {'changed' if calendar.access == 'rw' else 'read'}")]


async def _workspace(workspace: Workspace, name: str, resolve: Resolve) -> Sequence[Checked]:
    workspace.check()
    return [_good(name, f"a folder that can be used as {workspace.access}")]


async def _mcp_server(server: McpServer, name: str, resolve: Resolve) -> Sequence[Checked]:
    for reference in server.environment.values():
        reference.read()
    return [Checked(resource=name, verdict="advice", found="this version starts no MCP server",
                    mend="leave it out of every grant")]  # fmt: skip


def _good(name: str, found: str) -> Checked:
    return Checked(resource=name, verdict="ok", found=found)
