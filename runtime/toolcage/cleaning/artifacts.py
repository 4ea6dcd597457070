"""Names and media types of files that came out of a cage.

Danger: a name that leaves the folder it is written to, starts like an option or a hidden file, holds controls, bidi
overrides (`photo‮gnp.exe`) or a key; a media type that makes a browser run the content. Protects: file systems,
terminals, web pages that offer the file.

The content is never touched. Types come from a closed list, and only when name and first bytes agree. Active content
(HTML, SVG, XML, scripts) is `application/octet-stream` or `text/plain` on purpose: whoever shows it decides that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final

from toolcage.cleaning.marks import CONTROLS, INVISIBLES
from toolcage.cleaning.secrets import redact_secrets

_MOST_PARTS = 8
_LONGEST_PART_BYTES = 120
_SEPARATORS = re.compile(r"[/\\\u2044\u2215\uff0f\uff3c]+")
_UNUSUAL = re.compile(r"[^\w.()+=@, -]")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z)", re.IGNORECASE)

_MAGIC: Final = {
    "png": (b"\x89PNG\r\n\x1a\n", "image/png"),
    "jpg": (b"\xff\xd8\xff", "image/jpeg"),
    "jpeg": (b"\xff\xd8\xff", "image/jpeg"),
    "gif": (b"GIF8", "image/gif"),
    "webp": (b"RIFF", "image/webp"),
    "pdf": (b"%PDF-", "application/pdf"),
    "zip": (b"PK", "application/zip"),
    "gz": (b"\x1f\x8b", "application/gzip"),
    "parquet": (b"PAR1", "application/vnd.apache.parquet"),
    "xlsx": (b"PK", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "docx": (b"PK", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    "sqlite": (b"SQLite format 3\x00", "application/vnd.sqlite3"),
}
_TEXT: Final = {
    "txt": "text/plain", "log": "text/plain", "py": "text/plain", "sql": "text/plain", "yaml": "text/plain",
    "yml": "text/plain", "toml": "text/plain", "ini": "text/plain", "md": "text/markdown", "csv": "text/csv",
    "tsv": "text/tab-separated-values", "json": "application/json", "jsonl": "application/jsonl",
}  # fmt: skip
_UNKNOWN = "application/octet-stream"


def artifact_name(name: str, taken: Collection[str] = (), exact_secrets: Sequence[str] = ()) -> str:
    """A relative name with `/` between its parts, unlike every one in `taken` (letter case aside). Never raises."""
    name = redact_secrets(name, exact_secrets)[0].replace("[redacted:", "[redacted-")
    name = unicodedata.normalize("NFC", INVISIBLES.sub("", CONTROLS.sub("", name)))
    parts = [part for part in map(_part, _SEPARATORS.split(name)) if part]
    cleaned = "/".join(parts[-_MOST_PARTS:]) or "file"
    used = {one.casefold() for one in taken}
    unique, number = cleaned, 2
    while unique.casefold() in used:
        unique, number = _numbered(cleaned, number), number + 1
    return unique


def media_type(name: str, content: bytes) -> str:
    """One of the closed list, `application/octet-stream` where name and content do not agree on one."""
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    if extension in _MAGIC:
        magic, kind = _MAGIC[extension]
        return kind if content.startswith(magic) else _UNKNOWN
    if extension in _TEXT and _is_text(content[:4096]):
        return _TEXT[extension]
    return _UNKNOWN


def _part(part: str) -> str:
    part = _UNUSUAL.sub("_", part).strip(" ").lstrip(".-~ ").rstrip(". ")
    if _DEVICES.match(part):
        part = f"_{part}"
    encoded = part.encode("utf-8", "replace")
    if len(encoded) <= _LONGEST_PART_BYTES:
        return part
    stem, dot, extension = part.rpartition(".")
    ending = f"{dot}{extension}" if stem and len(extension.encode()) <= 12 else ""
    return encoded[: _LONGEST_PART_BYTES - len(ending.encode())].decode("utf-8", "ignore").rstrip(". ") + ending


def _numbered(name: str, number: int) -> str:
    stem, dot, extension = name.rpartition(".")
    return f"{stem}-{number}.{extension}" if dot and stem and "/" not in extension else f"{name}-{number}"


def _is_text(start: bytes) -> bool:
    if b"\0" in start:
        return False
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end >= len(start) and len(start) == 4096  # only the last character is cut
    return True
