"""From the text of resources.yaml to `Resources`: every fault of the file at once, each with line and what to write.

Strict like a policy file. Relative paths are relative to the file, never to where the program was started. Loading
looks at no database, folder, secret or server: that is for when one is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from toolcage.errors import ResourceError
from toolcage.resources import fields
from toolcage.resources import file_format as written
from toolcage.resources.model import (
    Cache,
    Calendar,
    Database,
    Endpoint,
    Idempotency,
    KeyPlacement,
    Mailbox,
    MailServer,
    McpServer,
    PostgresDatabase,
    Rate,
    Resources,
    Server,
    SqliteDatabase,
    Workspace,
)
from toolcage.secret_reference import SecretRef
from toolcage.strict_yaml import Document, KeyPath, read_document, visible

_PORTS: Final = {"https": 443, "http": 80}
_RETRIES_WITH_KEY: Final = 2
_KINDS: Final = ("sqlite", "postgresql")
_File = TypeVar("_File")
_Made = TypeVar("_Made")


def load_resources(path: Path) -> Resources:
    """The resources in the file at `path`. Raises ResourceError with every fault of the file, one a line."""
    return read_resources(read_document(path, ResourceError), path.absolute().parent)


def read_resources(document: Document, folder: Path) -> Resources:
    """The resources in a parsed file that stands in `folder`. Raises ResourceError with every fault, one a line."""
    try:
        file = written.ResourcesFile.model_validate(document.data)
    except ValidationError as cause:
        raise ResourceError(_faults(document, cause)) from None
    if empty := list(_empty(document.data, ())):
        raise ResourceError(_listed(document, [(path, "nothing stands behind it; write a value, or remove the key")
                                               for path in empty]))  # fmt: skip
    base = _Base(folder)
    return Resources(
        databases=_each(file.databases, base.database),
        endpoints=_each(file.endpoints, base.endpoint),
        mailboxes=_each(file.mailboxes, base.mailbox),
        calendars=_each(file.calendars, base.calendar),
        workspaces=_each(file.workspaces, base.workspace),
        mcp_servers=_each(file.mcp_servers, base.mcp_server),
    )


def _each(items: Mapping[str, _File], make: Callable[[str, _File], _Made]) -> Mapping[str, _Made]:
    return MappingProxyType({name: make(name, item) for name, item in items.items()})


class _Base:
    """Makes resources of what is written; paths are relative to `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def database(self, name: str, item: written.SqliteFile | written.PostgresFile) -> Database:
        if isinstance(item, written.SqliteFile):
            return SqliteDatabase(name=name, path=self._path(item.path), access=item.access)
        server = None if item.host is None else Server(
            host=item.host, port=item.port, tls=item.tls == "verify-full", ca=self._maybe(item.ca),
            allow_private=item.allow_private,
        )  # fmt: skip
        return PostgresDatabase(
            name=name, database=item.database, user=item.user, password=self._secret(item.password), server=server,
            socket=self._maybe(item.socket), port=item.port,
        )  # fmt: skip

    def endpoint(self, name: str, item: written.EndpointFile) -> Endpoint:
        server, path = self._server(item.url, item.ca, item.allow_private)
        base = path.rstrip("/")
        return Endpoint(
            name=name,
            server=server,
            base_path=base,
            methods=frozenset(item.methods),
            path_prefixes=tuple(item.path_prefixes or (base or "/",)),
            key=self._key(item.key),
            rate=None if item.rate is None else Rate(count=item.rate[0], seconds=item.rate[1]),
            max_bytes=item.max_bytes,
            cache=_cache(item.cache),
            idempotency=None if item.idempotency is None else Idempotency(
                header=item.idempotency.header, quoted=item.idempotency.quoted
            ),
            retries=_retries(item),
        )

    def mailbox(self, name: str, item: written.MailboxFile) -> Mailbox:
        return Mailbox(
            name=name,
            address=item.address,
            user=item.user,
            password=self._secret(item.password),
            smtp=self._mail_server(item.smtp),
            imap=self._mail_server(item.imap),
            folders=tuple(item.folders or (["INBOX"] if item.imap else ())),
            max_message=item.max_message,
        )

    def calendar(self, name: str, item: written.CalendarFile) -> Calendar:
        server, path = self._server(item.url, item.ca, item.allow_private)
        return Calendar(
            name=name, server=server, path=f"{path.rstrip('/')}/", user=item.user,
            password=self._secret(item.password), access=item.access, max_bytes=item.max_bytes, address=item.address,
        )  # fmt: skip

    def workspace(self, name: str, item: written.WorkspaceFile) -> Workspace:
        folder = self._path(item.folder)
        return Workspace(name=name, folder=folder, access=item.access, quota=item.quota, files=item.files)

    def mcp_server(self, name: str, item: written.McpServerFile) -> McpServer:
        secrets = {variable: self._named_secret(place) for variable, place in item.environment.items()}
        if item.url is None:
            return McpServer(name=name, command=tuple(item.command or ()), environment=MappingProxyType(secrets))
        server, path = self._server(item.url, item.ca, item.allow_private)
        return McpServer(name=name, server=server, path=path, key=self._key(item.key))

    def _server(self, url: str, ca: str | None, allow_private: bool) -> tuple[Server, str]:
        parts = urlsplit(url)
        server = Server(
            host=fields.host(parts.hostname), port=parts.port or _PORTS[parts.scheme], tls=parts.scheme == "https",
            ca=self._maybe(ca), allow_private=allow_private,
        )  # fmt: skip
        return server, parts.path

    def _mail_server(self, item: written.MailServerFile | None) -> MailServer | None:
        if item is None:
            return None
        server = Server(
            host=item.host, port=item.port, tls=item.tls != "none", ca=self._maybe(item.ca),
            allow_private=item.allow_private,
        )  # fmt: skip
        return MailServer(server=server, tls=item.tls)

    def _key(self, item: written.KeyFile | None) -> KeyPlacement | None:
        if item is None:
            return None
        return KeyPlacement(header=item.header, format=item.format, secret=self._named_secret(item.secret))

    def _secret(self, place: Mapping[str, str] | None) -> SecretRef | None:
        return None if place is None else self._named_secret(place)

    def _named_secret(self, place: Mapping[str, str]) -> SecretRef:
        if "env" in place:
            return SecretRef(source="env", place=place["env"])
        return SecretRef(source="file", place=str(self._path(place["file"])))

    def _path(self, text: str) -> Path:
        return Path(os.path.normpath(self._folder / text))

    def _maybe(self, text: str | None) -> Path | None:
        return None if text is None else self._path(text)


def _cache(item: written.CacheFile | None) -> Cache | None:
    return None if item is None else Cache(seconds=item.seconds, max_bytes=item.bytes, share=item.share)


def _retries(item: written.EndpointFile) -> int:
    """What nobody wrote: a key is there to be used, and nothing else is repeated unasked."""
    if item.retries is not None:
        return item.retries
    return 0 if item.idempotency is None else _RETRIES_WITH_KEY


# --- faults ----------------------------------------------------------------------------------------------------------


def _faults(document: Document, cause: ValidationError) -> str:
    found = []
    for fault in cause.errors(include_url=False, include_input=False):
        path = _in_file(fault["loc"])
        found.append((path, _fault_text(fault["type"], path, fault["msg"], fault["loc"])))
    return _listed(document, found)


def _listed(document: Document, found: Iterable[tuple[KeyPath, str]]) -> str:
    lines = sorted(
        (document.line(path), f"{'.'.join(map(str, path))}: {text}" if path else text) for path, text in found
    )
    return "\n".join(f"{document.name}:{line}: {visible(text)}" for line, text in lines)


def _empty(value: object, path: KeyPath) -> Iterator[KeyPath]:
    """Keys with nothing behind them that the models took for absent ones: `quota:` is nobody's wish for no quota."""
    if not isinstance(value, Mapping):
        return
    for key, inner in value.items():
        if inner is None:
            yield (*path, str(key))
        yield from _empty(inner, (*path, str(key)))


def _in_file(loc: KeyPath) -> KeyPath:
    """Where a fault stands in the file: without pydantic's marks for keys and for the kind of database."""
    path = tuple(part for part in loc if part != "[key]")
    return path[:2] + path[3:] if path[:1] == ("databases",) and len(path) > 2 and path[2] in _KINDS else path


def _fault_text(kind: str, path: KeyPath, message: str, loc: KeyPath) -> str:
    match kind:
        case "extra_forbidden":
            return f"the key `{path[-1]}` is not known here; known are: {', '.join(_keys_beside(loc))}"
        case "missing":
            return f"missing; write `{path[-1]}: {_choices(loc) or '…'}`"
        case "union_tag_not_found":
            return f"kind: missing; write `kind: {' or '.join(_KINDS)}`"
        case "union_tag_invalid":
            return f"kind: not known here; write {' or '.join(_KINDS)}"
        case "string_pattern_mismatch":
            return f"write a name that matches {written.VARIABLE if 'environment' in path else written.NAME}"
        case "dict_type" | "model_type" | "model_attributes_type":
            return "write a mapping of keys"
        case "list_type" | "too_short":
            return "write a list with at least one item"
        case "bool_type":
            return "write true or false"
        case _:
            return message.removeprefix("Value error, ")


def _choices(loc: KeyPath) -> str:
    """What a key may say that takes one of a few words; empty for every other one."""
    field = _model_around(loc).model_fields.get(str(loc[-1]))
    words = get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()
    return " or ".join(map(str, words))


def _keys_beside(loc: KeyPath) -> list[str]:
    return list(_model_around(loc).model_fields)


def _model_around(loc: KeyPath) -> type[BaseModel]:
    """The model in which the last part of `loc` stands, found by walking the models."""
    model: type[BaseModel] = written.ResourcesFile
    for part in loc[:-1]:
        inner = _models_in(model.model_fields[part].annotation) if part in model.model_fields else ()
        if part in _KINDS:
            model = written.SqliteFile if part == "sqlite" else written.PostgresFile
        elif len(inner) == 1:
            model = inner[0]
    return model


def _models_in(annotation: object) -> tuple[type[BaseModel], ...]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(model for inner in get_args(annotation) for model in _models_in(inner))
