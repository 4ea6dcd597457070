"""Containers that a dead host process left behind, and how they are told from those of a living one.

A runtime holds a lock on its own file in the state directory for as long as it lives; the kernel releases it however
the process ends. A container is an orphan when it carries this host's label and its runtime's lock is free, or when its
lease is over by a margin, whoever made it. A second runtime on the same engine is never touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from toolcage.cage.engine import Engine
from toolcage.cage.live import Owner
from toolcage.cage.spec import LABEL_HOST, LABEL_LEASE, LABEL_RUNTIME

LEASE_MARGIN_S: Final = 60
_ID: Final = re.compile(r"[0-9a-f]{32}")


def host_id(state_dir: Path) -> str:
    """A random name for this installation, made once and kept in the state directory."""
    path = state_dir / "host-id"
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(secrets.token_hex(16))
    found = path.read_text(encoding="ascii").strip()
    return found if _ID.fullmatch(found) else _replace_broken(path)


def _replace_broken(path: Path) -> str:
    """A torn write of the first start: nobody can have labelled anything with it."""
    made = secrets.token_hex(16)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(made, encoding="ascii")
    temporary.replace(path)
    return made


@contextlib.contextmanager
def alive(state_dir: Path, runtime_id: str) -> Iterator[None]:
    """Holds the runtime's lock: as long as the block runs, its containers are nobody's orphans."""
    folder = state_dir / "alive"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / runtime_id
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def sweep(engine: Engine, state_dir: Path, owner: Owner) -> list[str]:
    """Removes every orphan and returns their container ids. Raises EngineError."""
    orphans = [
        str(item["Id"]) for item in engine.list_labelled(LABEL_RUNTIME) if is_orphan(item["Labels"], state_dir, owner)
    ]
    for container in orphans:
        engine.remove(container)
    return orphans


def is_orphan(labels: Mapping[str, Any], state_dir: Path, owner: Owner) -> bool:
    """Whether nobody alive owns a container with these labels."""
    runtime, lease = str(labels.get(LABEL_RUNTIME, "")), str(labels.get(LABEL_LEASE, ""))
    if lease.isdigit() and int(lease) + LEASE_MARGIN_S < time.time():
        return True
    if labels.get(LABEL_HOST) != owner.host or runtime == owner.runtime or not _ID.fullmatch(runtime):
        return False
    return not _is_alive(state_dir / "alive" / runtime)


def _is_alive(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)  # of a process that died: its lock was free
        return False
    finally:
        os.close(descriptor)
