"""What an auditor keeps outside the log's folder: the key of its macs, and an exported head.

Decides only how the two are read and written. Both are worth something as long as whoever can write the folder cannot
read the key or change the head. A key is the bytes of a file less one trailing newline; text in an environment
variable serves as well, and is seen by every process of the same user.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcage.audit.chain import MIN_KEY_BYTES, Head
from toolcage.errors import AuditError


class _HeadFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    runtime: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    seq: int = Field(ge=0)
    hash: str = Field(pattern=r"^[0-9a-f]{64}$")


def load_key(path: Path) -> bytes:
    """The key in a file.

    Raises:
        AuditError: the file cannot be read, or holds fewer than 16 bytes.
    """
    try:
        return _checked(path.read_bytes().removesuffix(b"\n"), f"file {path}")
    except OSError as error:
        raise AuditError(f"audit key cannot be read from {path}: {error.strerror or error}") from error


def key_from_environment(name: str) -> bytes:
    """The key in an environment variable, as UTF-8.

    Raises:
        AuditError: the variable is not set, or holds fewer than 16 bytes.
    """
    value = os.environb.get(name.encode())
    if value is None:
        raise AuditError(f"audit key cannot be read: the environment variable {name} is not set")
    return _checked(value, f"environment variable {name}")


def write_head(path: Path, head: Head) -> None:
    """The head as a small JSON file, replaced in one step and durable.

    Raises:
        AuditError: the file cannot be written.
    """
    text = _HeadFile(runtime=head.runtime, seq=head.seq, hash=head.hash).model_dump_json() + "\n"
    scratch = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise AuditError(f"audit head cannot be written to {path}: {error.strerror or error}") from error


def read_head(path: Path) -> Head:
    """The head that `write_head` wrote.

    Raises:
        AuditError: the file cannot be read or is not a head.
    """
    try:
        found = _HeadFile.model_validate_json(path.read_bytes())
    except OSError as error:
        raise AuditError(f"audit head cannot be read from {path}: {error.strerror or error}") from error
    except ValidationError as error:
        raise AuditError(f"{path} is not an exported head: {error.errors()[0]['msg']}") from None
    return Head(runtime=found.runtime, seq=found.seq, hash=found.hash)


def _checked(key: bytes, source: str) -> bytes:
    if len(key) < MIN_KEY_BYTES:
        raise AuditError(f"audit key in {source} is too short: {len(key)} bytes, at least {MIN_KEY_BYTES} are needed")
    return key
