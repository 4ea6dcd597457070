"""The files of a log, found and opened for reading: which belong to one chain, in which order, line by line.

Trusts neither the folder nor a file in it: a link is not followed, a pipe does not hold the reader, a line without end
does not fill the memory. What a line says is `chain`'s business.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from toolcage.audit.chain import MAX_LINE_BYTES
from toolcage.errors import AuditError

NAME: Final = re.compile(r"(?P<runtime>.+)\.\d{6,}\.jsonl")


def chains_in(path: Path) -> dict[str, list[Path]]:
    """Each runtime's files in order. A single file is a chain of its own.

    Raises:
        AuditError: the folder holds no log.
    """
    if not path.is_dir():
        return {path.name: [path]}
    chains: dict[str, list[Path]] = {}
    for file in sorted(path.glob("*.jsonl")):
        named = NAME.fullmatch(file.name)
        chains.setdefault(named["runtime"] if named else file.name, []).append(file)
    if not chains:
        raise AuditError(f"no audit log in {path}: it holds no *.jsonl file")
    return chains


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """A file's lines, numbered from 1, each with its newline where it has one and cut after `MAX_LINE_BYTES`.

    Raises:
        AuditError: it cannot be read, or is no regular file.
    """
    try:
        with _open(path) as file:
            yield from enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1)
    except OSError as error:
        raise AuditError(f"audit log cannot be read: {path}: {error.strerror or error}") from error


def _open(path: Path) -> BinaryIO:
    # Non-blocking, so that a pipe laid in the folder cannot hold the reader.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise AuditError(f"audit log refused: {path} is not a regular file")
    return os.fdopen(fd, "rb")
