"""Where a secret is kept, never the secret: what resources.yaml may say instead of a password.

A reference names an environment variable or a file. It is read when a connection needs it and no earlier, so a rotated
secret is used at once, and nothing that holds references (configurations, errors, logs, reports) can show a value. A
file that others than its owner may read is refused: whoever can read it does not need toolcage to leak it. Trusts the
operator for where the secret is, and nothing about what stands there: a value with a line end or another control
would become a second header or command.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from toolcage.errors import ResourceError

SHORTEST: Final = 6
"""In characters. A shorter value would be found everywhere when results are searched for it."""
LONGEST: Final = 8192
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # a named pipe must not hang the reader


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """One secret by its place: the name of a variable, or the absolute path of a file."""

    source: Literal["env", "file"]
    place: str

    def read(self) -> str:
        """The value as it is now. Raises ResourceError, which never holds any part of the value."""
        raw = os.environb.get(self.place.encode()) if self.source == "env" else self._content()
        if raw is None:
            raise ResourceError(f"{self}: the variable is not set; set it where toolcage runs")
        return self._checked(raw)

    def __str__(self) -> str:
        return f"the secret in the environment variable {self.place}" if self.source == "env" else (
            f"the secret in the file {self.place}"
        )  # fmt: skip

    def _content(self) -> bytes:
        try:
            descriptor = os.open(self.place, _OPEN)
        except (OSError, ValueError) as cause:
            text = getattr(cause, "strerror", None) or "is no path"
            raise ResourceError(f"{self}: {text}; make it or correct its path") from None
        try:
            self._check_file(os.fstat(descriptor))
            return os.read(descriptor, LONGEST + 3)
        finally:
            os.close(descriptor)

    def _check_file(self, found: os.stat_result) -> None:
        """Of the open file, so that what is checked is what is read. Links are followed: secret stores use them."""
        if not stat.S_ISREG(found.st_mode):
            raise ResourceError(f"{self}: is not a regular file; correct its path")
        if found.st_mode & 0o077:
            name = Path(self.place).name
            raise ResourceError(f"{self}: others than its owner have access; chmod 600 {name}")
        if found.st_uid not in (0, os.geteuid()):
            raise ResourceError(f"{self}: belongs to another user, who can change it; make it this user's own")

    def _checked(self, raw: bytes) -> str:
        value = self._text(raw)
        if len(value) < SHORTEST or len(raw) > LONGEST:
            raise ResourceError(f"{self}: its length is not from {SHORTEST} characters to {LONGEST} bytes; correct it")
        if not value.isprintable() or value != value.strip():
            what = "holds a line end, a control or a space at an end"
            raise ResourceError(f"{self}: {what}; keep exactly one line there, the secret alone")
        return value

    def _text(self, raw: bytes) -> str:
        if self.source == "file":  # an editor's or echo's own line end, one and no more
            raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ResourceError(f"{self}: is not UTF-8; correct it") from None
