"""resources.yaml: what exists outside that a role may be granted by name. First size: SQLite files and workspaces.

The operator's file, shared by all roles; a role only names what stands here. Strict like a policy file: an unknown key
or a value that this version does not enforce is an error with file and line. Relative paths are relative to the file,
never to where the program was started. Loading looks at no database and no folder; `check` does, when one is about to
be used. Neither host paths nor secrets of this file are for a model: its errors are for the operator.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from toolcage.errors import ResourceError
from toolcage.strict_yaml import Document, KeyPath, read_document, visible

Access: TypeAlias = Literal["ro", "rw"]

_NAME: Final = r"^[a-z][a-z0-9_-]{0,63}$"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteDatabase:
    """One SQLite file. `path` is absolute."""

    name: str
    path: Path

    def check(self) -> None:
        """Raises ResourceError unless the file is there, is a regular file and can be read."""
        mode = _mode_of("database", self.name, self.path)
        if not stat.S_ISREG(mode):
            raise ResourceError(f"the database `{self.name}`: {self.path} is not a regular file; correct its path")
        if not os.access(self.path, os.R_OK):
            raise ResourceError(f"the database `{self.name}`: {self.path} may not be read; give this user read access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One host folder. `folder` is absolute; `access` is what a cage may get at most."""

    name: str
    folder: Path
    access: Access

    def check(self) -> None:
        """Raises ResourceError unless the folder is there and can be used as `access` says."""
        mode = _mode_of("workspace", self.name, self.folder)
        if not stat.S_ISDIR(mode):
            raise ResourceError(f"the workspace `{self.name}`: {self.folder} is not a folder; correct its path")
        wanted = os.R_OK | os.X_OK | (os.W_OK if self.access == "rw" else 0)
        if not os.access(self.folder, wanted):
            text = f"the workspace `{self.name}`: {self.folder} cannot be used as {self.access} by this user"
            raise ResourceError(f"{text}; mend its permissions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Everything that resources.yaml names, by kind and name. The zero value has nothing."""

    databases: Mapping[str, SqliteDatabase] = field(default_factory=lambda: MappingProxyType({}))
    workspaces: Mapping[str, Workspace] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def empty() -> Resources:
        """Nothing outside can be reached."""
        return Resources()

    def database(self, name: str) -> SqliteDatabase:
        """The database of that name. Raises ResourceError when there is none."""
        return _named("database", self.databases, name)

    def workspace(self, name: str) -> Workspace:
        """The workspace of that name. Raises ResourceError when there is none."""
        return _named("workspace", self.workspaces, name)

    def dialect(self, name: str) -> Literal["sqlite"]:
        """The SQL dialect of the database of that name. Raises ResourceError when there is none."""
        self.database(name)
        return "sqlite"

    def check(self) -> None:
        """Raises ResourceError for the first resource that cannot be used as it stands."""
        for database in self.databases.values():
            database.check()
        for workspace in self.workspaces.values():
            workspace.check()


def load_resources(path: Path) -> Resources:
    """The resources in the file at `path`. Raises ResourceError with every fault of the file, one a line."""
    document = read_document(path, ResourceError)
    try:
        file = _ResourcesFile.model_validate(document.data)
    except ValidationError as cause:
        raise ResourceError(_faults(document, cause)) from None
    base = path.absolute().parent
    databases = {
        name: SqliteDatabase(name=name, path=_absolute(base, item.path)) for name, item in file.databases.items()
    }
    workspaces = {
        name: Workspace(name=name, folder=_absolute(base, item.folder), access=item.access)
        for name, item in file.workspaces.items()
    }
    return Resources(databases=MappingProxyType(databases), workspaces=MappingProxyType(workspaces))


# --- the file's shape ----------------------------------------------------------------------------------------------


def _word(*known: str, refused: Mapping[str, str] | None = None) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value in known:
            return value
        reason = (refused or {}).get(value, "is not known here") if isinstance(value, str) else "is not known here"
        raise ValueError(f"`{str(value)[:40]}` {reason}; write {' or '.join(known)}")

    return check


def _path_text(value: Any) -> Any:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("write a path")
    if os.path.normpath(value) in ("/", "//"):
        raise ValueError("`/` is the whole machine; name the folder or file that is meant")
    if value.startswith("~") or "$" in value:
        raise ValueError(f"`{value[:80]}`: neither ~ nor variables are filled in; write the path out")
    return value


def _version(value: Any) -> Any:
    if value != 1 or isinstance(value, bool | float):
        raise ValueError("this version of toolcage reads `version: 1`; write that")
    return value


_Name: TypeAlias = Annotated[str, Field(pattern=_NAME)]
_PathText: TypeAlias = Annotated[str, BeforeValidator(_path_text)]
_Attach: TypeAlias = Annotated[
    str, BeforeValidator(_word("door", refused={"mount": "is not enforced by this version"}))
]
_KindWord: TypeAlias = Annotated[
    str, BeforeValidator(_word("sqlite", refused={"postgresql": "is not reached by this version"}))
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _DatabaseFile(_Strict):
    kind: _KindWord
    path: _PathText
    attach: _Attach = "door"


class _WorkspaceFile(_Strict):
    folder: _PathText
    access: Annotated[Access, BeforeValidator(_word("ro", "rw"))]


class _ResourcesFile(_Strict):
    version: Annotated[int, BeforeValidator(_version)]
    databases: dict[_Name, _DatabaseFile] = {}
    workspaces: dict[_Name, _WorkspaceFile] = {}


def _faults(document: Document, cause: ValidationError) -> str:
    found = []
    for fault in cause.errors(include_url=False):
        path = tuple(part for part in fault["loc"] if part != "[key]")
        text = _fault_text(fault["type"], path, fault["msg"])
        found.append((document.line(path), f"{'.'.join(map(str, path))}: {text}" if path else text))
    return "\n".join(f"{document.name}:{line}: {visible(text)}" for line, text in sorted(found))


def _fault_text(kind: str, path: KeyPath, message: str) -> str:
    match kind:
        case "extra_forbidden":
            return f"the key `{path[-1]}` is not known here; known are: {', '.join(_keys_beside(path))}"
        case "missing":
            return f"missing; write `{path[-1]}: …`"
        case "string_pattern_mismatch":
            return f"write a name that matches {_NAME}"
        case "dict_type" | "model_type":
            return "write a mapping of keys"
        case _:
            return message.removeprefix("Value error, ")


def _keys_beside(path: KeyPath) -> list[str]:
    if len(path) == 1:
        return list(_ResourcesFile.model_fields)
    return list((_DatabaseFile if path[0] == "databases" else _WorkspaceFile).model_fields)


# --- from text to things -------------------------------------------------------------------------------------------

_T = TypeVar("_T")


def _named(kind: str, known: Mapping[str, _T], name: str) -> _T:
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise ResourceError(f"there is no {kind} `{name}` in resources.yaml; named there: {listed}")
    return known[name]


def _absolute(base: Path, text: str) -> Path:
    return Path(os.path.normpath(base / text))


def _mode_of(kind: str, name: str, path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as cause:
        text = f"the {kind} `{name}`: {path}: {cause.strerror or cause}; make it or correct its path"
        raise ResourceError(text) from cause
