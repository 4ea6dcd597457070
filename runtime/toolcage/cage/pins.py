"""Wheels by exact version and hash: requirement lines, what a variant may ask for, and what pip says it took.

Pure but for reading one report. Every line that ends up in a requirement file or on pip's command line matches a
pattern here, so that neither an argument nor images.lock can carry an option, a path or an address into it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, Field, ValidationError

from toolcage.errors import ImageError

_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION: Final = r"[0-9][A-Za-z0-9.!+_-]*"
_EXTRAS: Final = r"(?:\[[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*\])?"
PIN_PATTERN: Final = rf"^{_NAME}=={_VERSION}(?: --hash=sha256:[0-9a-f]{{64}})+$"
REQUEST_PATTERN: Final = rf"^{_NAME}{_EXTRAS}=={_VERSION}$"

_PINNED: Final = re.compile(rf"^({_NAME})==({_VERSION})\s", re.MULTILINE)


class ReportedWheel(BaseModel, frozen=True):
    """One wheel that pip took or would take."""

    name: str
    version: Annotated[str, Field(pattern=rf"^{_VERSION}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def pin(self) -> str:
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def normalised(name: str) -> str:
    """A project's name in the one form that compares (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_request(text: str) -> str:
    """`text` when it is exactly NAME==VERSION (extras allowed). Raises ImageError."""
    if not re.fullmatch(REQUEST_PATTERN, text):
        raise ImageError(f"{text!r} is not NAME==VERSION; name one exact version, like seaborn==0.13.2")
    return text


def pinned_versions(requirements: str) -> dict[str, str]:
    """Normalised name → version of a requirement file's pinned lines."""
    return {normalised(name): version for name, version in _PINNED.findall(requirements)}


class _Archive(BaseModel):
    hashes: dict[str, str]


class _Download(BaseModel):
    archive_info: _Archive


class _Metadata(BaseModel):
    name: str
    version: str


class _Item(BaseModel):
    metadata: _Metadata
    download_info: _Download


class _Report(BaseModel):
    install: list[_Item]


def read_report(path: Path) -> list[ReportedWheel]:
    """The wheels of pip's installation report. Raises ImageError when it cannot be read as one."""
    try:
        report = _Report.model_validate_json(path.read_bytes())
        return [
            ReportedWheel(
                name=normalised(item.metadata.name),
                version=item.metadata.version,
                sha256=item.download_info.archive_info.hashes.get("sha256", ""),
            )
            for item in report.install
        ]
    except (OSError, ValidationError) as cause:
        raise ImageError("pip did not say which wheels it took; use pip 23 or newer") from cause
