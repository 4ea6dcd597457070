"""What the Debian packages of an image are: name, version, archive hash and declared licences.

Reads two texts of the raw tree, both as data: the control fields that the build noted of every archive, and the
copyright files of the packages. Only licence names of machine-readable copyright files (Debian's copyright format 1.0)
are taken; of a free text nothing is guessed, and the package then has no licence here. Decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CONTROL_FIELDS: Final = ("Package", "Version", "Architecture", "Source", "Homepage")
"""Asked of every archive with `dpkg-deb --field`; the build adds SHA256 itself."""

_MACHINE_READABLE: Final = re.compile(
    r"^Format:\s*https?://www\.debian\.org/doc/packaging-manuals/copyright-format/1\.0"
)
_LICENCE: Final = re.compile(r"^Licen[cs]e:[ \t]*(\S[^\n]{0,200})", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianPackage:
    """One package that a tree was extracted from. `sha256` is that of its archive, in hex; `licences` are the names
    that its copyright file declares, sorted."""

    name: str
    version: str
    architecture: str
    sha256: str
    source: str | None = None
    homepage: str | None = None
    licences: tuple[str, ...] = ()


def read_packages(listing: str, copyrights: Mapping[str, str]) -> tuple[DebianPackage, ...]:
    """The packages of `listing`, sorted by name. `copyrights` maps a package's name to the text of its copyright file.

    Raises ValueError for a paragraph without name, version, architecture or hash.
    """
    found = [
        _package(_fields(paragraph), copyrights) for paragraph in re.split(r"\n\s*\n", listing) if paragraph.strip()
    ]
    return tuple(sorted(found, key=lambda package: package.name))


def licence_names(text: str) -> tuple[str, ...]:
    """The licences that a machine-readable copyright file names; none of any other text."""
    if not _MACHINE_READABLE.match(text):
        return ()
    return tuple(sorted({" ".join(match.split()) for match in _LICENCE.findall(text)}))


def _package(fields: Mapping[str, str], copyrights: Mapping[str, str]) -> DebianPackage:
    missing = [name for name in ("Package", "Version", "Architecture", "SHA256") if not fields.get(name)]
    if missing:
        raise ValueError(f"a package of the tree has no {', '.join(missing)}")
    return DebianPackage(
        name=fields["Package"],
        version=fields["Version"],
        architecture=fields["Architecture"],
        sha256=fields["SHA256"],
        source=fields.get("Source"),
        homepage=fields.get("Homepage"),
        licences=licence_names(copyrights.get(fields["Package"], "")),
    )


def _fields(paragraph: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in paragraph.splitlines() if not line.startswith((" ", "\t")))
    return {name: value.strip() for name, colon, value in pairs if colon}
