"""What a message says, from bytes that a stranger wrote: header values, the text a person would read, its attachments.

Every promise of MIME may be broken here: charsets that do not exist, parts nested without end, lengths that lie,
encodings that are none. Nothing of it raises; what cannot be read is replaced and noted. Bounded in parts, in depth and
in characters. Nothing is fetched, nothing runs. Standard library only; shipped into cages.
"""

import codecs
import contextlib
import email
import email.errors
import email.header
import email.utils
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.policy import compat32
from typing import Final

from toolcage.tools.html_text import html_text

MAX_PARTS: Final = 200
MAX_DEPTH: Final = 12
MAX_TEXT: Final = 400_000
MAX_VALUE: Final = 1_000
MAX_NAMES: Final = 100
_BOUNDARY: Final = re.compile(rb"^content-type:[ \t]*multipart/", re.IGNORECASE | re.MULTILINE)
_BREAKS: Final = re.compile(r"[\r\n]+[ \t]*")


@dataclass(slots=True, kw_only=True)
class Attachment:
    """One file of a message. `content` is decoded."""

    number: int
    name: str
    type: str
    content: bytes


@dataclass(slots=True, kw_only=True)
class Reading:
    """What was found in one message."""

    text: str = ""
    attachments: list[Attachment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def parsed(content: bytes) -> Message:
    """The message. One that is nested beyond reason comes as a header with the rest as plain text."""
    if len(_BOUNDARY.findall(content[: 8 * 1024 * 1024])) <= MAX_DEPTH * 4:
        try:
            return email.message_from_bytes(content, policy=compat32)
        except (RecursionError, ValueError, LookupError, AssertionError):
            pass  # what the parser itself stumbles over is read as what it looks like
    head, _, body = content.partition(b"\r\n\r\n")
    message = email.message_from_bytes(head + b"\r\n\r\n", policy=compat32)
    for name in ("Content-Type", "Content-Transfer-Encoding"):
        del message[name]
    message.set_payload(body[:MAX_TEXT].decode("utf-8", "replace"))
    message["X-Unreadable"] = "nested"
    return message


def read_message(message: Message) -> Reading:
    """Text and attachments. The plain text is preferred; where there is only HTML, its text."""
    reading = Reading()
    if message.get("X-Unreadable") == "nested":
        reading.note("its parts are nested too deeply to be read; its source follows as text")
    plain: list[str] = []
    rich: list[str] = []
    for part in _leaves(message, reading):
        kind, name = part.get_content_type(), _filename(part)
        if kind in ("text/plain", "text/html") and not name and part.get_content_disposition() != "attachment":
            (plain if kind == "text/plain" else rich).append(_text(part, reading))
        else:
            number = len(reading.attachments) + 1
            reading.attachments.append(
                Attachment(number=number, name=name or f"part-{number}", type=kind, content=_bytes(part))
            )
    if not any(text.strip() for text in plain) and rich:
        reading.text = "\n".join(html_text(text) for text in rich)
        reading.note("the text was taken from HTML")
    else:
        reading.text = "\n".join(plain)
    reading.text = reading.text.replace("\r\n", "\n").replace("\r", "\n")
    if len(reading.text) > MAX_TEXT:
        reading.text = reading.text[:MAX_TEXT]
        reading.note(f"the text is longer than {MAX_TEXT} characters; the rest cannot be read here")
    return reading


def header_text(message: Message, name: str) -> str:
    """One header's value in one line, encoded words decoded; '' where there is none."""
    raw = message.get(name)
    if raw is None:
        return ""
    value = _BREAKS.sub(" ", str(raw))[: MAX_VALUE * 8]
    try:
        pieces = email.header.decode_header(value)
        value = "".join(_decoded(piece, charset) for piece, charset in pieces)
    except (ValueError, LookupError, email.errors.HeaderParseError):
        pass  # shown as it came
    return _BREAKS.sub(" ", value).strip()[:MAX_VALUE]


def addresses(message: Message, name: str) -> list[tuple[str, str]]:
    """(display name, address) of each mailbox in a header, at most MAX_NAMES. The address alone identifies anybody: a
    display name is whatever its sender liked."""
    values = [_BREAKS.sub(" ", str(value))[: MAX_VALUE * 16] for value in message.get_all(name) or ()]
    found = email.utils.getaddresses(values)[:MAX_NAMES]
    return [(_word(shown), address.strip()[:320]) for shown, address in found if "@" in address]


def date_of(message: Message) -> str | None:
    """The message's own date in UTC as ISO 8601; None where it says none that can be read."""
    try:
        found = email.utils.parsedate_to_datetime(str(message.get("Date")))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:
        aware = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return datetime.fromtimestamp(aware.timestamp(), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


# --- parts ---------------------------------------------------------------------------------------------------------


def _leaves(message: Message, reading: Reading) -> Iterator[Message]:
    """Every part that is no container, in order. A forwarded message is an attachment, not more of this text."""
    waiting: list[tuple[Message, int]] = [(message, 0)]
    seen = 0
    while waiting:
        part, depth = waiting.pop(0)
        seen += 1
        if seen > MAX_PARTS or depth > MAX_DEPTH:
            reading.note(f"it has more than {MAX_PARTS} parts or {MAX_DEPTH} levels; the rest was left out")
            return
        payload = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(payload, list):
            waiting[:0] = [(inner, depth + 1) for inner in payload if isinstance(inner, Message)]
        else:
            yield part


def _bytes(part: Message) -> bytes:
    payload = part.get_payload()
    if isinstance(payload, list):  # message/rfc822, or a container that only says it is another type
        return b"\n".join(bytes(str(item), "utf-8", "replace") for item in payload[:1])
    try:
        decoded = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        decoded = None
    return decoded if isinstance(decoded, bytes) else str(payload or "").encode("utf-8", "replace")


def _text(part: Message, reading: Reading) -> str:
    content = _bytes(part)[: MAX_TEXT * 4]
    charset = _charset(part)
    text = content.decode(charset or "utf-8", "replace")
    if charset is None or "\ufffd" in text:
        reading.note("some characters could not be decoded")
    return text


def _charset(part: Message) -> str | None:
    """A codec for text that the part names and Python has; None otherwise."""
    try:
        named = part.get_content_charset("ascii")
        found = codecs.lookup(str(named))
    except (LookupError, ValueError, TypeError, UnicodeError):
        return None
    if not getattr(found, "_is_text_encoding", True) or found.name in ("idna", "punycode", "undefined"):
        return None
    return "utf-8" if found.name == "ascii" else found.name


def _filename(part: Message) -> str:
    try:
        name = part.get_filename()
    except (ValueError, LookupError, TypeError, AssertionError):
        name = None
    if not name:
        return ""
    return re.sub(r"[\x00-\x1f\x7f/\\]+", "_", _word(str(name)))[:120].strip(". ") or "unnamed"


def _word(text: str) -> str:
    with contextlib.suppress(ValueError, LookupError, email.errors.HeaderParseError):  # shown as it came
        text = "".join(_decoded(piece, charset) for piece, charset in email.header.decode_header(text))
    return _BREAKS.sub(" ", text).strip()[:MAX_VALUE]


def _decoded(piece: bytes | str, charset: str | None) -> str:
    if isinstance(piece, str):
        return piece
    try:
        return piece.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return piece.decode("utf-8", "replace")
