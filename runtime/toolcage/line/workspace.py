"""What a call takes out of its workspace, and the one file that it brings back. Host side; it decides nothing.

A tool works on copies: what its declaration's `file_uses` say of the paths that the call names is read beneath the
workspace and goes through the door with the call; from what the cage sends back exactly the file of that name is
taken, and no other file of the workspace can be reached in any way. Paths are those that validate read and screen
let pass.

A file comes back in two steps. `stage` has it ready beside its place while the call is still undecided; `commit`
puts it there once the call ended well and its closing record is durable; `discard`, on every other path, leaves
everything as it was. A file that the tool read and changed is put back only over what was read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from toolcage.cage.report import CollectedFile
from toolcage.errors import Refused
from toolcage.facts.path import PathFacts
from toolcage.policy.model import Role
from toolcage.resources import Resources
from toolcage.types import (
    SESSION_WORKSPACE,
    WRITING_USES,
    AuthorizedCall,
    FileUse,
    InputFile,
    Refusal,
    ValidCall,
)
from toolcage.workspaces import FolderStore, Listing, Quota, Seen, SessionStores, Staged, Store, check_names, seen

_APPEND: Final = "append"


class Workspaces:
    """Every workspace of a runtime, by name."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._sessions = SessionStores()

    def store(self, name: str, session: str) -> Store:
        """The workspace of that name. Raises ResourceError when there is none."""
        if name == SESSION_WORKSPACE:
            return self._sessions.of(session)
        found = self._resources.workspace(name)
        return FolderStore(found.folder, Quota(size=found.quota, files=found.files))

    def may_write(self, name: str) -> bool:
        """Whether its files may be changed at all."""
        return name == SESSION_WORKSPACE or self._resources.workspace(name).access == "rw"

    def end(self, session: str) -> None:
        """Forgets the session's own files. Safe in a finalizer."""
        self._sessions.end(session)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Returning:
    """A file that the call may put in place. `before` None: whatever is there."""

    names: tuple[str, ...]
    before: Seen | None


class Exchange:
    """One call's. Made before the call; `discard` must be called at its end, whatever that was."""

    def __init__(self, workspaces: Workspaces, session: str) -> None:
        self._workspaces = workspaces
        self._session = session
        self._store: Store | None = None
        self._returning: list[_Returning] = []
        self._staged: list[Staged] = []
        self._lock = threading.Lock()
        self._over = False
        self.files: tuple[InputFile, ...] = ()
        self.context: Mapping[str, Any] = {}

    def fetch(self, authorized: AuthorizedCall) -> None:
        """Reads what the call takes along, into `files` and `context`. Raises Refused, ResourceError."""
        declaration = authorized.valid.declaration
        if not declaration.file_uses:
            return
        name = next(
            (authorized.resources[one] for one, kind in declaration.resources.items()
             if kind == "workspace" and one in authorized.resources), None,
        )  # fmt: skip
        if name is None:
            raise Refused(_NO_WORKSPACE)
        if declaration.writes_files and not self._workspaces.may_write(name):
            raise Refused(_READ_ONLY)
        self._store = self._workspaces.store(name, self._session)
        files: dict[str, InputFile] = {}
        context: dict[str, Any] = {}
        for argument, use in declaration.file_uses.items():
            if argument in authorized.valid.arguments:
                names = _names_of(authorized.valid, argument)
                context[argument] = self._fetch_one(names, _use_of(use, authorized.valid), files)
        self.files, self.context = tuple(files.values()), context

    def _fetch_one(self, names: tuple[str, ...], use: FileUse, files: dict[str, InputFile]) -> dict[str, Any]:
        assert self._store is not None
        path = "/".join(names)
        if use == "list":
            return {"path": path, **_listed(self._store.listing(names))}
        if not names:
            raise Refused(_NOT_A_FILE)
        check_names(names)
        content = self._store.read(names)
        if use == "read" and content is None:
            raise Refused(_NOT_FOUND)
        if use in WRITING_USES:
            self._returning.append(_Returning(names=names, before=seen(content) if use == "update" else None))
        if content is not None and use != "write":
            files[path] = InputFile(name=path, content=content)
        return {"path": path, "exists": content is not None}

    def stage(self, files: Sequence[CollectedFile]) -> Refusal | None:
        """Has the files ready that the call brings back. What is wrong with them, or None."""
        try:
            for returning in self._returning:
                staged = self._stage_one(returning, files)
                with self._lock:
                    if not self._over:
                        self._staged.append(staged)
                        continue
                staged.discard()
        except Refused as caught:
            return caught.refusal
        return None

    def _stage_one(self, returning: _Returning, files: Sequence[CollectedFile]) -> Staged:
        assert self._store is not None
        name = os.fsencode("/".join(returning.names))
        found = [item.content for item in files if item.name == name]
        if len(found) != 1:
            raise Refused(_NOT_LEFT)
        return self._store.stage(returning.names, found[0], returning.before)

    def brought_back(self, file: CollectedFile) -> bool:
        """Whether it goes to the workspace, and not to the caller."""
        return any(file.name == os.fsencode("/".join(item.names)) for item in self._returning)

    @property
    def is_pending(self) -> bool:
        """Whether something waits to be put in place."""
        return bool(self._staged)

    def commit(self) -> Refusal | None:
        """Puts the files in place. What went wrong, or None; what was put before that stays."""
        with self._lock:
            staged, self._staged = self._staged, []
        try:
            for place, one in enumerate(staged):
                try:
                    one.commit()
                except Refused as caught:
                    for later in staged[place + 1 :]:
                        later.discard()
                    return caught.refusal
        finally:
            self.discard()
        return None

    def discard(self) -> None:
        """Leaves everything as it was. Never raises; what is staged later is discarded too."""
        with self._lock:
            staged, self._staged, self._over = self._staged, [], True
        for one in staged:
            one.discard()


def read_only_grants(role: Role, resources: Resources) -> list[str]:
    """A line for each grant of a tool that writes, on a workspace that is read-only."""
    found = []
    for tool, grant in role.grants.items():
        for argument, names in grant.resources.items():
            if grant.declaration.resources[argument] != "workspace" or not grant.declaration.writes_files:
                continue
            found += [
                f"{role.source}:{grant.line}: tools.{tool}: it writes, and the workspace {name} is `ro` in the"
                " resources file; take it out of the grant, or write `access: rw` there"
                for name in sorted(names & resources.workspaces.keys())
                if resources.workspaces[name].access == "ro"
            ]
    return found


def _use_of(use: FileUse, valid: ValidCall) -> FileUse:
    if use != "by_mode":
        return use
    return "update" if valid.arguments.get("mode") == _APPEND else "write"


def _names_of(valid: ValidCall, argument: str) -> tuple[str, ...]:
    facts = valid.facts.get(argument)
    if not isinstance(facts, PathFacts) or len(facts.paths) != 1:
        raise TypeError(f"{argument} is to be one path")
    return facts.paths[0].names


def _listed(listing: Listing) -> dict[str, Any]:
    entries = [
        {
            "path": "/".join(entry.names),
            "type": entry.kind,
            "size": entry.size,
            "modified": _time(entry.modified),
        }
        for entry in listing.entries
    ]
    return {"entries": entries, "complete": listing.complete, "skipped": listing.skipped}


def _time(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # anybody may set a file's time to anything
        return None


_NO_WORKSPACE: Final = Refusal(
    status="denied", code="resource.not_granted", message="the call names no workspace, and none is granted",
    hint="Name one of the workspaces that the tool lists.",
)  # fmt: skip
_READ_ONLY: Final = Refusal(
    status="denied", code="workspace.read_only", message="the workspace is read-only",
    hint="Write to another workspace, or give the text to the user.",
)  # fmt: skip
_NOT_FOUND: Final = Refusal(
    status="tool_error", code="workspace.not_found", message="there is no such file in the workspace",
    hint="List the files first.",
)  # fmt: skip
_NOT_A_FILE: Final = Refusal(
    status="tool_error", code="workspace.not_a_file", message="the path names the workspace itself, which is no file",
    hint="List the files first.",
)  # fmt: skip
_NOT_LEFT: Final = Refusal(
status="tool_error", code="workspace.no_file", message="the tool left no file of that name, so nothing was written",
hint=None, )  # fmt: skip
