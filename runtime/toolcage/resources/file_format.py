"""The shape of resources.yaml as strict pydantic models: every key that there is, and what may stand beside it.

An unknown key, a missing one, a value of another form or one that this version does not enforce is an error. What a
value means is `fields`; findings get file and line in `load`. Defaults are the closed ones: TLS verified, no private
address, GET only.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from toolcage.resources import fields
from toolcage.resources.model import MIB, Access, MailTls, Method, Share

NAME: Final = r"^[a-z][a-z0-9_-]{0,63}$"
VARIABLE: Final = r"^[A-Z][A-Z0-9_]{0,63}$"

_Name: TypeAlias = Annotated[str, Field(pattern=NAME)]
_Path: TypeAlias = Annotated[str, BeforeValidator(fields.path_text)]
_Host: TypeAlias = Annotated[str, PlainValidator(fields.host)]
_Port: TypeAlias = Annotated[int, BeforeValidator(fields.port)]
_Url: TypeAlias = Annotated[str, BeforeValidator(fields.url)]
_UrlPath: TypeAlias = Annotated[str, BeforeValidator(fields.url_path)]
_Account: TypeAlias = Annotated[str, BeforeValidator(fields.account)]
_Secret: TypeAlias = Annotated[dict[str, str], PlainValidator(fields.secret)]
_Size: TypeAlias = Annotated[int, PlainValidator(fields.transfer_size)]
_Access: TypeAlias = Annotated[Access, BeforeValidator(fields.word("ro", "rw"))]
_Method: TypeAlias = Annotated[
    Method, BeforeValidator(fields.word("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
]
_Attach: TypeAlias = Annotated[
    str, BeforeValidator(fields.word("door", refused={"mount": "is not enforced by this version"}))
]
_PostgresTls: TypeAlias = Annotated[
    Literal["verify-full", "disable"], BeforeValidator(fields.word("verify-full", "disable"))
]
_Variable: TypeAlias = Annotated[str, Field(pattern=VARIABLE)]


class Strict(BaseModel):
    """Unknown keys are errors, types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SqliteFile(Strict):
    """A database in one file."""

    kind: Literal["sqlite"]
    path: _Path
    access: _Access = "ro"
    attach: _Attach = "door"


class PostgresFile(Strict):
    """A PostgreSQL database as one user."""

    kind: Literal["postgresql"]
    host: _Host | None = None
    socket: _Path | None = None
    port: _Port = 5432
    database: _Account
    user: _Account
    password: _Secret | None = None
    tls: _PostgresTls = "verify-full"
    ca: _Path | None = None
    allow_private: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> PostgresFile:
        if (self.host is None) == (self.socket is None):
            raise ValueError("write either `host` or `socket`, the folder of a unix socket")
        if self.host is None and (self.ca is not None or self.allow_private or self.tls != "verify-full"):
            raise ValueError("`tls`, `ca` and `allow_private` belong to a `host`; leave them out beside `socket`")
        if self.host is not None and self.password is None:
            raise ValueError(f"missing `password`; {fields.SECRET_FORM}")
        if self.host is not None:
            _reachable(self.host, tls=self.tls != "disable", allow_private=self.allow_private)
        return self


class KeyFile(Strict):
    """Where an endpoint's key goes."""

    header: Annotated[str, BeforeValidator(fields.header)] = "Authorization"
    format: Annotated[str, BeforeValidator(fields.key_format)] = "Bearer {}"
    secret: _Secret


class CacheFile(Strict):
    """For how long an endpoint's answers are given again, and to whom."""

    seconds: Annotated[int, PlainValidator(fields.cache_seconds)]
    bytes: _Size = 8 * MIB
    share: Annotated[Share, BeforeValidator(fields.word("session", "role"))] = "session"


class IdempotencyFile(Strict):
    """By which header a server knows a request again."""

    header: Annotated[str, BeforeValidator(fields.header)] = "Idempotency-Key"
    quoted: bool = False


class EndpointFile(Strict):
    """One HTTP origin and what may be asked of it."""

    url: _Url
    methods: Annotated[list[_Method], Field(min_length=1)] = ["GET"]
    path_prefixes: Annotated[list[_UrlPath], Field(min_length=1)] | None = None
    key: KeyFile | None = None
    allow_private: bool = False
    ca: _Path | None = None
    rate: Annotated[tuple[int, int], PlainValidator(fields.rate)] | None = None
    max_bytes: _Size = 8 * MIB
    cache: CacheFile | None = None
    idempotency: IdempotencyFile | None = None
    retries: Annotated[int, PlainValidator(fields.retries)] | None = None

    @model_validator(mode="after")
    def _beneath(self) -> EndpointFile:
        _check_url(self.url, self.allow_private)
        base = urlsplit(self.url).path.rstrip("/")
        for prefix in self.path_prefixes or ():
            if not prefix.startswith("/") or not f"{prefix.rstrip('/')}/".startswith(f"{base}/"):
                raise ValueError(f"the path prefix `{prefix}` is outside the url; write whole paths, such as {base}/…")
        return self

    @model_validator(mode="after")
    def _again(self) -> EndpointFile:
        safe, sending = {"GET", "HEAD", "OPTIONS"} & set(self.methods), set(self.methods) - {"GET", "HEAD", "OPTIONS"}
        if self.cache is not None and "GET" not in self.methods:
            raise ValueError("`cache` keeps answers to GET, and `methods` has none; leave it out")
        if self.idempotency is not None and not sending:
            raise ValueError("`idempotency` is for methods that change something, and `methods` has none; leave it out")
        if self.retries and not safe and self.idempotency is None:
            raise ValueError("`retries` repeats what changes something only by a key; write `idempotency` beside it")
        if self.idempotency and self.key and self.idempotency.header.lower() == self.key.header.lower():
            raise ValueError("`idempotency` and `key` name the same header; one of them is another")
        return self


class MailServerFile(Strict):
    """One end of a mailbox."""

    host: _Host
    port: _Port
    tls: Annotated[MailTls, BeforeValidator(fields.word("implicit", "starttls", "none"))]
    allow_private: bool = False
    ca: _Path | None = None

    @model_validator(mode="after")
    def _private_without_tls(self) -> MailServerFile:
        _reachable(self.host, tls=self.tls != "none", allow_private=self.allow_private)
        return self


class MailboxFile(Strict):
    """One mail account."""

    address: Annotated[str, PlainValidator(fields.mail_address)]
    user: _Account | None = None
    password: _Secret | None = None
    smtp: MailServerFile | None = None
    imap: MailServerFile | None = None
    folders: Annotated[list[Annotated[str, BeforeValidator(fields.folder)]], Field(min_length=1)] | None = None
    max_message: _Size = 10 * MIB

    @model_validator(mode="after")
    def _complete(self) -> MailboxFile:
        if self.smtp is None and self.imap is None:
            raise ValueError("write `smtp`, `imap` or both")
        if self.imap is not None and self.user is None:
            raise ValueError("`imap` needs `user` and `password`; write them")
        if self.folders is not None and self.imap is None:
            raise ValueError("`folders` are read with `imap`; write that or leave them out")
        _both_or_none(self.user, self.password)
        return self


class CalendarFile(Strict):
    """One CalDAV collection."""

    url: _Url
    user: _Account | None = None
    password: _Secret | None = None
    access: _Access = "ro"
    address: Annotated[str, PlainValidator(fields.mail_address)] | None = None
    allow_private: bool = False
    ca: _Path | None = None
    max_bytes: _Size = 8 * MIB

    @model_validator(mode="after")
    def _complete(self) -> CalendarFile:
        if self.user is not None and ":" in self.user:
            raise ValueError("a user's name with `:` cannot be sent; write one without")
        _check_url(self.url, self.allow_private)
        _both_or_none(self.user, self.password)
        return self


class WorkspaceFile(Strict):
    """One host folder."""

    folder: _Path
    access: _Access
    quota: Annotated[int, PlainValidator(fields.quota)] | None = None
    files: Annotated[int, PlainValidator(fields.file_count)] | None = None


class McpServerFile(Strict):
    """A program to start, or an address."""

    command: Annotated[list[Annotated[str, BeforeValidator(fields.account)]], Field(min_length=1)] | None = None
    environment: dict[_Variable, _Secret] = {}
    url: _Url | None = None
    key: KeyFile | None = None
    allow_private: bool = False
    ca: _Path | None = None

    @model_validator(mode="after")
    def _one_way(self) -> McpServerFile:
        if (self.command is None) == (self.url is None):
            raise ValueError("write either `command` or `url`")
        if self.url is None and (self.key is not None or self.ca is not None or self.allow_private):
            raise ValueError("`key`, `ca` and `allow_private` belong to a `url`; leave them out beside `command`")
        if self.command is None and self.environment:
            raise ValueError("`environment` belongs to a `command`; leave it out beside `url`")
        if self.url is not None:
            _check_url(self.url, self.allow_private)
        return self


DatabaseFile: TypeAlias = Annotated[SqliteFile | PostgresFile, Field(discriminator="kind")]


class ResourcesFile(Strict):
    """The whole file."""

    version: Annotated[int, BeforeValidator(fields.version)]
    databases: dict[_Name, DatabaseFile] = {}
    endpoints: dict[_Name, EndpointFile] = {}
    mailboxes: dict[_Name, MailboxFile] = {}
    calendars: dict[_Name, CalendarFile] = {}
    workspaces: dict[Annotated[_Name, AfterValidator(fields.workspace_name)], WorkspaceFile] = {}
    mcp_servers: dict[_Name, McpServerFile] = {}


def _reachable(host: str, *, tls: bool, allow_private: bool) -> None:
    wrong = fields.reachable(host, tls=tls, allow_private=allow_private)
    if wrong is not None:
        raise ValueError(wrong)


def _check_url(url: str, allow_private: bool) -> None:
    parts = urlsplit(url)
    _reachable(fields.host(parts.hostname), tls=parts.scheme == "https", allow_private=allow_private)


def _both_or_none(user: Any, password: Any) -> None:
    if (user is None) != (password is None):
        raise ValueError("`user` and `password` go together; write both or neither")
