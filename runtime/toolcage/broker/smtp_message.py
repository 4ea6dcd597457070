"""What a message from a cage may look like, and how it is put on its way. Pure.

The header that people and programs will read has to say what the envelope says: one sender, the mailbox's; recipients
among those of the envelope; only fields that people and mail programs read, none that is an order to a server. Every
line ends in CRLF and in nothing else that some server could take for an end (SMTP smuggling, CVE-2023-51764 and its
kin). Addresses are read by a grammar small enough that no two readers can disagree. Content is not judged: that is the
line's and the person's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final

from toolcage.broker.stream import Denied

MAX_HEADERS: Final = 64 * 1024
MOST_FIELDS: Final = 100
_FIELD: Final = re.compile(rb"([!-9;-~]{1,76}):([ -~\t]*)")
_ADDRESS: Final = r"[A-Za-z0-9#$&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}"
_QUOTED: Final = r"\"[^\"\\<>@]*\"[ \t]*"
_PLAIN: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~. \t-]*"
_MAILBOX: Final = re.compile(rf"(?:(?:{_QUOTED}|{_PLAIN})<({_ADDRESS})>|({_ADDRESS}))[ \t]*(?:,[ \t]*|\Z)")
"""From a mailbox's first character to the next one's: no part of it can match the same blanks in two ways."""
_ONCE: Final = frozenset(
    {"from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "mime-version", "content-type"}
)
_SENDERS: Final = ("from", "sender", "reply-to")
_RECEIVERS: Final = ("to", "cc")
_KNOWN: Final = _ONCE | {
    "comments", "content-description", "content-disposition", "content-id", "content-language", "content-location",
    "content-transfer-encoding", "importance", "in-reply-to", "keywords", "organization", "priority", "references",
    "sensitivity", "thread-index", "thread-topic", "user-agent", "x-mailer", "x-priority",
}  # fmt: skip
"""The only fields that pass. Every other one is some server's command: sending services take recipients, blind copies
and hooks from fields of their own (X-SMTPAPI, X-MC-BccAddress, X-MSYS-API), and nobody can list them all."""


def same_mailbox(address: str) -> str:
    """The form in which addresses are compared: the domain's case does not matter, the local part's does."""
    local, _, domain = address.rpartition("@")
    return f"{local}@{domain.lower()}"


def prepared(
    lines: Sequence[bytes], *, sender: str, recipients: Iterable[str], message_id: str, now: datetime | None = None
) -> bytes:
    """The message, checked and complete, dot-stuffed, with its final dot. `lines` have no line ends.

    Raises Denied (`egress.message`).
    """
    header, body = _split(lines)
    fields = _fields(header)
    _check(fields, same_mailbox(sender), {same_mailbox(item) for item in recipients})
    kept = [line for name, raw in fields if name != "message-id" for line in raw]
    ours = [f"Message-ID: {message_id}".encode()]
    if all(name != "date" for name, _ in fields):
        ours.append(f"Date: {format_datetime(now or datetime.now(UTC))}".encode())
    out = [*ours, *kept, b"", *body]
    return b"\r\n".join(b"." + line if line.startswith(b".") else line for line in out) + b"\r\n.\r\n"


def message_id(key: str, sender: str) -> str:
    """The same for the same key, so that a server or reader that sees it twice can know."""
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{sender.rpartition('@')[2]}>"


_Field = tuple[str, list[bytes]]


def _split(lines: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    for number, line in enumerate(lines):
        if not line:
            return lines[:number], lines[number + 1 :]
    return lines, ()


def _fields(header: Sequence[bytes]) -> list[_Field]:
    if sum(map(len, header)) > MAX_HEADERS:
        raise _refused("its header is too long")
    fields: list[_Field] = []
    for line in header:
        if line[:1] in (b" ", b"\t"):
            if not fields or not line.strip() or not re.fullmatch(rb"[ -~\t]*", line):
                raise _refused("its header cannot be read with certainty")
            fields[-1][1].append(line)
            continue
        found = _FIELD.fullmatch(line)
        if found is None:
            raise _refused("its header cannot be read with certainty")
        fields.append((found[1].decode("ascii").lower(), [line]))
    if len(fields) > MOST_FIELDS:
        raise _refused("its header has too many fields")
    return fields


def _check(fields: Sequence[_Field], sender: str, recipients: set[str]) -> None:
    names = [name for name, _ in fields]
    for name in names:
        if name not in _KNOWN:
            raise _refused(f"the field {name} does not pass this portal")
        if name in _ONCE and names.count(name) > 1:
            raise _refused(f"the field {name} stands twice")
    if "from" not in names:
        raise _refused("it has no From")
    for name, raw in fields:
        if name in _SENDERS and [same_mailbox(item) for item in _addresses(name, raw)] != [sender]:
            raise _refused(f"{name} is not the mailbox's own address")
        if name in _RECEIVERS and not {same_mailbox(item) for item in _addresses(name, raw)} <= recipients:
            raise _refused(f"{name} names somebody whom the message does not go to")


def _addresses(name: str, raw: Sequence[bytes]) -> list[str]:
    value = b"".join(raw).decode("ascii").partition(":")[2].strip(" \t")
    found, at = [], 0
    while at < len(value):
        match = _MAILBOX.match(value, at)
        if match is None:
            raise _refused(f"{name} cannot be read with certainty; write `Name <address>` or the address alone")
        found.append(match[1] or match[2])
        at = match.end()
    if not found or value.endswith(","):
        raise _refused(f"{name} names nobody, or ends in a comma")
    return found


def _refused(why: str) -> Denied:
    return Denied("egress.message", f"the message was not sent: {why}")
