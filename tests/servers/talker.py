"""A tool that says whatever it is told to its portals and looks for what it should not have. Runs in cages."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from typing import Any

from toolcage import Tool

_ENDS = {
    "smtp": re.compile(rb"(?:\A|\n)[0-9]{3} [^\n]*\r\n\Z"),
    "imap": re.compile(rb"(?:\A|\n)(?:a[0-9]+ (?:OK|NO|BAD)|\* BYE|\* PREAUTH|\+)[^\n]*\r\n\Z"),
}


_SECRET = re.compile(rb"-canary-[0-9a-f]{2}")
"""How every password of the test servers goes on; the pattern itself does not."""


class TalkToPortal(Tool):
    """`script` is sent piece by piece, each after the answer to the one before; the answers come back."""

    name = "talk_to_portal"
    description = "Sends raw text to a portal."
    parameters = {  # noqa: RUF012
        "type": "object",
        "properties": {
            "kind": {"type": "string"},
            "script": {"type": "array", "items": {"type": "string"}},
            "to": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["kind", "script"],
        "additionalProperties": False,
    }
    kinds = {"to": "address"}  # noqa: RUF012
    effects = frozenset({"sends", "reads_private"})
    resources = {"mailbox": "mailbox", "calendar": "calendar"}  # noqa: RUF012
    image = "web"
    isolation = "namespace"

    def execute(self, kind: str, script: list[str], to: list[str] | None = None) -> list[str]:
        end = next(told for told in self.context["portals"].values() if told["kind"] == kind)
        with socket.create_connection((end["host"], end["port"]), timeout=20) as made:
            answers = [] if kind == "http" else [_answer(made, kind)]
            for piece in script:
                with contextlib.suppress(ConnectionError):
                    made.sendall(piece.encode("utf-8"))
                answers.append(_answer(made, kind))
            return answers


def _answer(made: socket.socket, kind: str) -> str:
    """Up to where the protocol's answer ends, or the connection."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while kind == "http" or not _ENDS[kind].search(said):
            piece = made.recv(65536)
            if not piece:
                break
            said += piece
    return said.decode("utf-8", "replace")


class LookForSecrets(Tool):
    """Counts what looks like a test's secret in all that a body can read; `planted` proves that the look works."""

    name = "look_for_secrets"
    description = "Looks for secrets."
    parameters = {"type": "object", "properties": {}, "additionalProperties": False}  # noqa: RUF012
    effects = frozenset({"sends", "reads_private"})
    resources = {"mailbox": "mailbox", "calendar": "calendar"}  # noqa: RUF012
    image = "web"
    isolation = "namespace"

    def execute(self) -> dict[str, int]:
        seen = {"context": repr(self.context).encode(), "environment": repr(dict(os.environ)).encode()}
        counts = {name: len(_SECRET.findall(text)) for name, text in seen.items()}
        counts["files"] = sum(len(_SECRET.findall(content)) for content in _files())
        counts["memory"] = _in_memory()
        planted = bytes(_SECRET.pattern[:8]) + b"0a"
        counts["planted"] = _in_memory() - counts["memory"] if planted else 0
        return counts


def _files() -> Any:
    for top in ("/tmp", "/workspace", "/data", "/run", "/etc", "/dev/shm", "/proc"):
        for folder, folders, names in os.walk(top):
            if top == "/proc" and folder.count("/") > 2:
                folders.clear()
            for name in names:
                with contextlib.suppress(OSError):
                    if os.path.getsize(os.path.join(folder, name)) < 2**22 and name not in ("kmsg", "kcore", "mem"):
                        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NONBLOCK)
                        try:
                            yield os.read(descriptor, 2**20)
                        finally:
                            os.close(descriptor)


def _in_memory() -> int:
    """How often one stands in this process's memory."""
    found = 0
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.read().splitlines():
            place, rights = line.split()[:2]
            if "r" in rights and "[v" not in line:
                start, end = (int(part, 16) for part in place.split("-"))
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    memory.seek(start)
                    found += len(_SECRET.findall(memory.read(min(end - start, 2**25))))
    return found
