"""Pack a raw root file system into an image whose id is a hash of its content alone.

Decides which files of a tree stay (a pure function of the recipe) and writes them in one fixed form: sorted, one
timestamp, owner 0:0, no setuid or setgid bit, no extended attribute (so no file capability), no device, hard links as
files. The docker-archive around the layer is as fixed. Trusts that the tree's packages and wheels were authenticated by
whoever fetched them; it reads the tree as data and runs nothing from it.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from toolcage.cage.debian import DebianPackage, read_packages
from toolcage.cage.recipe import Recipe
from toolcage.errors import ImageError

SOURCE_DATE_EPOCH: Final = 1_735_689_600  # 2025-01-01; any constant would do
PACKAGE_LIST: Final = "packages"
"""A file at the raw tree's root, one paragraph of control fields per Debian package; read for images.lock and the SBOM,
and left out of the image."""

IMAGE_USER: Final = "65532:65532"
"""Never root even when someone starts the image by hand. A cage always names its own uid:gid."""

_ACCOUNTS: Final = {
    "etc/passwd": b"root:x:0:0:root:/nonexistent:/nonexistent\nnobody:x:65534:65534:nobody:/nonexistent:/nonexistent\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
}
_MOUNT_POINTS: Final = ("data", "dev", "proc", "sys", "tmp", "workspace")
_DOCUMENTS: Final = "usr/share/doc/"
_PROGRAM_DIRS: Final = ("usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin", "bin", "sbin")
_STARTUP_FILES: Final = frozenset({"sitecustomize.py", "usercustomize.py"})
_INSTALLER_NOTES: Final = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A packed layer: its digest (`sha256:…` of the uncompressed tar), its size, and the Debian packages that it came
    from."""

    diff_id: str
    size_bytes: int
    packages: tuple[DebianPackage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    mode: int
    link: str | None = None
    directory: bool = False
    content: bytes | None = None
    member: tarfile.TarInfo | None = None


def keeps(recipe: Recipe, name: str) -> bool:
    """Whether the file `name` (relative to the root) belongs into the image of `recipe`."""
    if _removal(recipe.remove).match(name):
        return False
    folder = name.rpartition("/")[0]
    if name.startswith(f"{recipe.site_packages}/"):
        return _keeps_of_wheels(name.removeprefix(f"{recipe.site_packages}/"))
    if folder in _PROGRAM_DIRS:
        return name in recipe.executables
    if name.startswith("etc/"):
        return name in recipe.settings
    return not name.startswith((".dockerenv", "dev/", "proc/", "sys/", "run/", "tmp/", "root/", "home/", "boot/"))


def _keeps_of_wheels(name: str) -> bool:
    """Of a wheel: its packages and what describes it. Not its programs, and nothing that Python runs by itself at every
    start: that would be a stranger's code in the warden, before any call."""
    folder, _, base = name.rpartition("/")
    if folder.endswith(".dist-info"):
        return base not in _INSTALLER_NOTES  # they say which pip ran, which would make it part of the image's id
    if not folder and (base.endswith(".pth") or base in _STARTUP_FILES):
        return False
    return not name.startswith(("bin/", "sitecustomize/", "usercustomize/"))


@functools.lru_cache(maxsize=16)
def _removal(patterns: frozenset[str]) -> re.Pattern[str]:
    """Matches a name that is one of `patterns`, or below one. A `*` stands for any text within one part of a path."""
    each = ("[^/]*".join(map(re.escape, pattern.split("*"))) for pattern in sorted(patterns))
    return re.compile(f"(?:{'|'.join(each)})(?:/|$)" if patterns else "(?!)")


def write_layer(recipe: Recipe, tree: Path, layer: Path) -> Layer:
    """Write the layer of `recipe` from the raw tree (a tar file) to `layer`. Raises ImageError for a broken tree."""
    try:
        with tarfile.open(tree) as source, layer.open("wb") as target:
            entries, packages = _select(recipe, source)
            writer = _Hashing(target)
            with tarfile.open(fileobj=writer, mode="w", format=tarfile.PAX_FORMAT) as out:  # type: ignore[call-overload]
                for name in sorted(entries):
                    _put(out, name, entries[name], source)
    except tarfile.TarError as cause:
        raise ImageError(f"image {recipe.name}: the root file system is not a readable tar: {cause}") from cause
    return Layer(diff_id=f"sha256:{writer.digest.hexdigest()}", size_bytes=layer.stat().st_size, packages=packages)


def image_reference(name: str, image_id: str) -> str:
    """What an engine calls the image for people to read. Nothing is ever run by it."""
    return f"toolcage/{name}:{image_id.removeprefix('sha256:')[:12]}"


def write_archive(recipe: Recipe, diff_id: str, layer: Path, archive: Path) -> tuple[str, str]:
    """Write a docker-archive around `layer`; return the image's config digest (its id) and its reference."""
    config = _config(recipe, diff_id)
    digest = hashlib.sha256(config).hexdigest()
    reference = image_reference(recipe.name, f"sha256:{digest}")
    layer_name = f"{diff_id.removeprefix('sha256:')}/layer.tar"
    manifest = [{"Config": f"{digest}.json", "RepoTags": [reference], "Layers": [layer_name]}]
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as out:
        _add_bytes(out, f"{digest}.json", config)
        with layer.open("rb") as content:
            out.addfile(_info(layer_name, 0o644, size=layer.stat().st_size), content)
        _add_bytes(out, "manifest.json", _canonical(manifest))
    return f"sha256:{digest}", reference


def _config(recipe: Recipe, diff_id: str) -> bytes:
    created = datetime.fromtimestamp(SOURCE_DATE_EPOCH, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return _canonical(
        {
            "architecture": recipe.architecture,
            "config": {
                "Env": ["PATH=/usr/bin"],
                "Labels": {"toolcage.image": recipe.name},
                "User": IMAGE_USER,
                "WorkingDir": "/workspace",
            },
            "created": created,
            "history": [{"created": created, "created_by": "toolcage images build"}],
            "os": "linux",
            "rootfs": {"diff_ids": [diff_id], "type": "layers"},
        }
    )


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _select(recipe: Recipe, source: tarfile.TarFile) -> tuple[dict[str, _Entry], tuple[DebianPackage, ...]]:
    entries: dict[str, _Entry] = {}
    listed = b""
    copyrights: dict[str, bytes | str] = {}
    for member in source:
        name = member.name.removeprefix("./").strip("/")
        if name == PACKAGE_LIST:
            listed = _read(source, member)
        elif name.startswith(_DOCUMENTS):
            _note_copyright(copyrights, name.removeprefix(_DOCUMENTS), source, member)
        elif name and name != "." and not member.isdir() and keeps(recipe, name):
            entry = _entry(member)
            if entry is not None:
                entries[name] = entry
    entries |= _additions(recipe)
    absent = recipe.executables - entries.keys()
    if absent:
        raise ImageError(f"image {recipe.name}: no package brings {', '.join(sorted(absent))}; mend its image.yaml")
    return _with_parents(entries), _debian_packages(listed, copyrights)


def _entry(member: tarfile.TarInfo) -> _Entry | None:
    if member.issym():
        return _Entry(mode=0o777, link=member.linkname)
    if member.isfile() or member.islnk():
        return _Entry(mode=0o755 if member.mode & 0o111 else 0o644, member=member)
    return None  # devices, fifos: the engine brings its own /dev


def _additions(recipe: Recipe) -> dict[str, _Entry]:
    added = {name: _Entry(mode=0o644, content=content) for name, content in _ACCOUNTS.items()}
    added |= {name: _Entry(mode=0o755, directory=True) for name in _MOUNT_POINTS}
    added["tmp"] = _Entry(mode=0o1777, directory=True)
    added["usr/bin/python3"] = _Entry(mode=0o777, link=f"python{recipe.python}")
    added |= {name: _Entry(mode=0o777, link=target) for name, target in recipe.links.items()}
    added |= {name: _Entry(mode=0o644, content=path.read_bytes()) for name, path in recipe.files.items()}
    return added


def _with_parents(entries: dict[str, _Entry]) -> dict[str, _Entry]:
    """The entries and the folders above them. Folders are never taken from the tree: an empty one says nothing."""
    complete = dict(entries)
    for name in entries:
        for parent in Path(name).parents:
            if str(parent) != ".":
                complete.setdefault(str(parent), _Entry(mode=0o755, directory=True))
    return complete


def _put(out: tarfile.TarFile, name: str, entry: _Entry, source: tarfile.TarFile) -> None:
    info = _info(name, entry.mode)
    if entry.directory:
        info.type = tarfile.DIRTYPE
        out.addfile(info)
    elif entry.link is not None:
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
        out.addfile(info)
    elif entry.content is not None:
        _add_bytes(out, name, entry.content)
    elif entry.member is not None:
        content = _read(source, entry.member)
        info.size = len(content)
        out.addfile(info, io.BytesIO(content))


def _read(source: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = source.extractfile(member)  # follows a hard link to its first name
    if file is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    with file:
        return file.read()


def _add_bytes(out: tarfile.TarFile, name: str, content: bytes) -> None:
    out.addfile(_info(name, 0o644, size=len(content)), io.BytesIO(content))


def _info(name: str, mode: int, *, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.size, info.mtime = mode, size, SOURCE_DATE_EPOCH
    return info  # TarInfo's own defaults: uid 0, gid 0, no names


def _note_copyright(
    copyrights: dict[str, bytes | str], name: str, source: tarfile.TarFile, member: tarfile.TarInfo
) -> None:
    """Remember the copyright file of a package, or the package that it shares its documents with."""
    package, _, file = name.partition("/")
    if not file and member.issym():
        copyrights[package] = member.linkname.rsplit("/", 1)[-1]
    elif file == "copyright" and member.isfile():
        copyrights[package] = _read(source, member)


def _debian_packages(listing: bytes, copyrights: Mapping[str, bytes | str]) -> tuple[DebianPackage, ...]:
    def text(package: str) -> str:
        found = copyrights.get(package, b"")
        content = copyrights.get(found, b"") if isinstance(found, str) else found
        return content.decode("utf-8", "replace") if isinstance(content, bytes) else ""

    try:
        return read_packages(listing.decode(), {package: text(package) for package in copyrights})
    except ValueError as cause:
        raise ImageError(f"the root file system does not say what it was made of: {cause}") from cause


class _Hashing:
    """The write side of a file object, hashing what passes."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._target.write(data)

    def tell(self) -> int:
        return self._target.tell()
