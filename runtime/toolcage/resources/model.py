"""What resources.yaml names, as frozen data: databases, endpoints, mailboxes, calendars, workspaces, MCP servers.

Paths are absolute, hosts in their one ASCII form, secrets references. `check` of a file or folder asks the file system
when the resource is about to be used; whether a server answers is for the broker and `toolcage doctor --resources`.
The zero value of everything is the closed one: no resource, no private address, no plain connection.
"""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, TypeVar

from toolcage.errors import ResourceError
from toolcage.secret_reference import SHORTEST, SecretRef
from toolcage.types import SESSION_WORKSPACE, ResourceKind

Access: TypeAlias = Literal["ro", "rw"]
Method: TypeAlias = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Share: TypeAlias = Literal["session", "role"]
MailTls: TypeAlias = Literal["implicit", "starttls", "none"]
MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteDatabase:
    """One SQLite file. `path` is absolute; `access` is what calls may do with it at most."""

    name: str
    path: Path
    access: Access = "ro"

    def check(self) -> None:
        """Raises ResourceError unless the file is there, is a regular file and can be used as `access` says: to change
        it, its folder too must be writable, for the engine's journal."""
        mode = _mode_of("database", self.name, self.path)
        if not stat.S_ISREG(mode):
            raise ResourceError(f"the database `{self.name}`: {self.path} is not a regular file; correct its path")
        if not os.access(self.path, os.R_OK):
            raise ResourceError(f"the database `{self.name}`: {self.path} may not be read; give this user read access")
        if self.access == "rw" and not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            text = f"the database `{self.name}`: {self.path} or its folder may not be written; give this user access,"
            raise ResourceError(f"{text} or write `access: ro`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a server is. `host` is a name or an address without brackets; `ca` a file of authorities to trust instead
    of the system's. `allow_private`: the name may resolve to a private or loopback address."""

    host: str
    port: int
    tls: bool = True
    ca: Path | None = None
    allow_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresDatabase:
    """One PostgreSQL database as one user. Either `server` or `socket`, the folder of a unix socket; `port` names the
    socket in it."""

    name: str
    database: str
    user: str
    password: SecretRef | None
    server: Server | None = None
    socket: Path | None = None
    port: int = 5432


Database: TypeAlias = SqliteDatabase | PostgresDatabase


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlacement:
    """Which header carries the key, and how: `format` holds `{}` once, where the secret goes."""

    header: str
    format: str
    secret: SecretRef

    def read(self) -> tuple[tuple[str, str], tuple[str, ...]]:
        """The header with its whole value, read now, and what must never come back. Of a login, as `Basic` carries it,
        that is also the login itself, and its password, or its name where that is the key. Raises ResourceError."""
        secret = self.secret.read()
        value = self.format.replace("{}", secret)
        return (self.header, value), (secret, *_login(value))


def _login(value: str) -> tuple[str, ...]:
    """What a server that was told this header's value can say of a login in it."""
    scheme, _, token = value.strip().partition(" ")
    if scheme.lower() != "basic":
        return ()
    try:
        login = base64.b64decode(token.strip() + "==").decode("utf-8")
    except ValueError:
        return ()
    name, _, password = login.partition(":")
    told = (login, password if len(password) >= SHORTEST else name)
    return tuple(text for text in told if len(text) >= SHORTEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At most `count` in `seconds`."""

    count: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Answers to GET are kept for `seconds` at most, `max_bytes` of them in all, for one session or for all sessions of
    one role."""

    seconds: int
    max_bytes: int
    share: Share = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """The header by which the server knows a request again that is sent once more; `quoted` as the IETF draft says."""

    header: str
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One HTTP origin and what may be asked of it. `base_path` has no final slash; `path_prefixes` are whole paths.
    `retries` is how often a request that may be repeated is sent again."""

    name: str
    server: Server
    base_path: str
    methods: frozenset[Method]
    path_prefixes: tuple[str, ...]
    key: KeyPlacement | None
    rate: Rate | None
    max_bytes: int
    cache: Cache | None = None
    idempotency: Idempotency | None = None
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """One end of a mailbox: where, and how TLS begins (`server.tls` is false for `none` alone)."""

    server: Server
    tls: MailTls


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """One mail account. `address` is the only sender; `folders` are those that may be read."""

    name: str
    address: str
    user: str | None
    password: SecretRef | None
    smtp: MailServer | None
    imap: MailServer | None
    folders: tuple[str, ...]
    max_message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """One CalDAV collection. `path` ends with a slash. `address`: who invites people to its events; None = nobody."""

    name: str
    server: Server
    path: str
    user: str | None
    password: SecretRef | None
    access: Access
    max_bytes: int
    address: str | None = None

    def secrets(self) -> tuple[str, ...]:
        """The password, read now, and the token that HTTP makes of it and the user's name; empty without a login.
        Raises ResourceError."""
        if self.user is None or self.password is None:
            return ()
        password = self.password.read()
        return password, base64.b64encode(f"{self.user}:{password}".encode()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One host folder. `folder` is absolute; `access` is what a cage may get at most; `quota` in bytes, `files` their
    number."""

    name: str
    folder: Path
    access: Access
    quota: int | None = None
    files: int | None = None

    def check(self) -> None:
        """Raises ResourceError unless the folder is there and can be used as `access` says."""
        mode = _mode_of("workspace", self.name, self.folder)
        if not stat.S_ISDIR(mode):
            raise ResourceError(f"the workspace `{self.name}`: {self.folder} is not a folder; correct its path")
        wanted = os.R_OK | os.X_OK | (os.W_OK if self.access == "rw" else 0)
        if not os.access(self.folder, wanted):
            text = f"the workspace `{self.name}`: {self.folder} cannot be used as {self.access} by this user"
            raise ResourceError(f"{text}; mend its permissions")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server of foreign tools: a program to start, or an address. Loaded, and not used by this version."""

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, SecretRef] = field(default_factory=lambda: MappingProxyType({}))
    server: Server | None = None
    path: str = ""
    key: KeyPlacement | None = None


_T = TypeVar("_T")


def _nothing() -> Mapping[str, _T]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Everything that resources.yaml names, by kind and name. The zero value has nothing."""

    databases: Mapping[str, Database] = field(default_factory=_nothing)
    endpoints: Mapping[str, Endpoint] = field(default_factory=_nothing)
    mailboxes: Mapping[str, Mailbox] = field(default_factory=_nothing)
    calendars: Mapping[str, Calendar] = field(default_factory=_nothing)
    workspaces: Mapping[str, Workspace] = field(default_factory=_nothing)
    mcp_servers: Mapping[str, McpServer] = field(default_factory=_nothing)

    @staticmethod
    def empty() -> Resources:
        """Nothing outside can be reached."""
        return Resources()

    def database(self, name: str) -> Database:
        """The database of that name. Raises ResourceError when there is none."""
        return _named("database", self.databases, name)

    def endpoint(self, name: str) -> Endpoint:
        """The endpoint of that name. Raises ResourceError when there is none."""
        return _named("endpoint", self.endpoints, name)

    def mailbox(self, name: str) -> Mailbox:
        """The mailbox of that name. Raises ResourceError when there is none."""
        return _named("mailbox", self.mailboxes, name)

    def calendar(self, name: str) -> Calendar:
        """The calendar of that name. Raises ResourceError when there is none."""
        return _named("calendar", self.calendars, name)

    def workspace(self, name: str) -> Workspace:
        """The workspace of that name. Raises ResourceError when there is none."""
        return _named("workspace", self.workspaces, name)

    def dialect(self, name: str) -> Literal["sqlite", "postgres"]:
        """The SQL dialect of the database of that name. Raises ResourceError when there is none."""
        return "sqlite" if isinstance(self.database(name), SqliteDatabase) else "postgres"

    def names(self, kind: ResourceKind) -> frozenset[str]:
        """What there is of that kind."""
        by_kind: Mapping[ResourceKind, Mapping[str, object]] = {
            "database": self.databases,
            "endpoint": self.endpoints,
            "mailbox": self.mailboxes,
            "calendar": self.calendars,
            "workspace": {**self.workspaces, SESSION_WORKSPACE: None},
            "mcp_server": self.mcp_servers,
        }
        return frozenset(by_kind[kind])

    def check(self) -> None:
        """Raises ResourceError for the first file or folder that cannot be used as it stands. Asks no server."""
        for database in self.databases.values():
            if isinstance(database, SqliteDatabase):
                database.check()
        for workspace in self.workspaces.values():
            workspace.check()


def _named(kind: str, known: Mapping[str, _T], name: str) -> _T:
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise ResourceError(f"there is no {kind} `{name}` in resources.yaml; named there: {listed}")
    return known[name]


def _mode_of(kind: str, name: str, path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as cause:
        text = f"the {kind} `{name}`: {path}: {cause.strerror or cause}; make it or correct its path"
        raise ResourceError(text) from cause
