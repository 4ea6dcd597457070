"""What a sandbox image is made of: `sandbox_images/NAME/image.yaml` as checked, frozen data.

Decides only whether a recipe is well formed and what its digest is. Trusts the files as the operator's own, and still
holds every value to a narrow alphabet, because package names and paths end up as arguments of programs that run as
root. It builds nothing: `rootfs` runs the programs, `archive` packs the tree, `images` records the result.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcage.errors import ImageError
from toolcage.shipped import shipped_dir
from toolcage.strict_yaml import read_document

BUILD_FORMAT: Final = 1
"""Part of every recipe digest. Raise it when the builder itself starts to produce other bytes from the same recipe."""

ARCHITECTURES: Final = MappingProxyType({"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"})
"""From `platform.machine()` to the name that Debian and the engine both use."""

_RelativePath = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*$")]
_RemovedPath = Annotated[str, Field(pattern=r"^[a-z]+(/[A-Za-z0-9_*][A-Za-z0-9._+*-]*)*$")]
_FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]*$")]
_ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$")]
_PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    archive: _FileName
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    folder: _FileName
    package: _FileName


class _ImageFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: Literal[1]
    description: str
    suite: Annotated[str, Field(pattern=r"^[a-z]+$")]
    python: Annotated[str, Field(pattern=r"^3\.[0-9]{1,2}$")]
    wheels: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*\.txt$")]
    packages: Annotated[list[_PackageName], Field(min_length=1)]
    executables: list[_RelativePath]
    settings: list[_RelativePath]
    remove: list[_RemovedPath]
    links: dict[_RelativePath, _FileName] = {}
    files: dict[_RelativePath, _FileName] = {}
    sources: list[_Source] = []
    preload: list[_ModuleName] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceArchive:
    """A pure-Python package that its authors publish as a source archive only. `package` is taken out of its folder
    `folder` as it is; the archive lies beside the recipe and nothing of it is run, its set-up program least of all."""

    path: Path
    sha256: str
    folder: str
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One image's recipe. Paths inside the image are relative to its root; `digest` changes with anything that could
    change the image (`sha256:…`, the architecture included).

    `links` are made beside what the packages bring (alternatives, which only maintainer scripts would make), `files`
    are data from the recipe's folder. `preload` names modules that are worth importing ahead of a call. `extra_wheels`
    are the pinned requirement lines of a variant.
    """

    name: str
    folder: Path
    description: str
    suite: str
    python: str
    architecture: str
    packages: tuple[str, ...]
    requirements: Path
    executables: frozenset[str]
    settings: frozenset[str]
    remove: frozenset[str]
    links: Mapping[str, str]
    files: Mapping[str, Path]
    sources: tuple[SourceArchive, ...]
    preload: tuple[str, ...]
    digest: str
    extra_wheels: tuple[str, ...] = ()

    @property
    def site_packages(self) -> str:
        """Where wheels go, relative to the image's root; on `sys.path` of Debian's Python even under `-I`."""
        return f"usr/local/lib/python{self.python}/dist-packages"


def known_images(folder: Path | None = None) -> tuple[str, ...]:
    """The names of the images that have a recipe, sorted."""
    root = folder or shipped_dir("sandbox_images")
    return tuple(sorted(path.parent.name for path in root.glob("*/image.yaml")))


def load_recipe(name: str, folder: Path | None = None) -> Recipe:
    """The recipe of image `name`. Raises ImageError when there is none or it is not well formed."""
    root = folder or shipped_dir("sandbox_images")
    if name not in known_images(root):
        raise ImageError(f"sandbox image {name!r} is unknown; the known ones are: {', '.join(known_images(root))}")
    path = root / name / "image.yaml"
    model = _read(path)
    requirements = path.parent / model.wheels
    files = {target: path.parent / source for target, source in sorted(model.files.items())}
    sources = tuple(
        SourceArchive(path=path.parent / item.archive, sha256=item.sha256, folder=item.folder, package=item.package)
        for item in model.sources
    )
    architecture = _architecture()
    return Recipe(
        name=name,
        folder=path.parent,
        description=model.description,
        suite=model.suite,
        python=model.python,
        architecture=architecture,
        packages=tuple(sorted(set(model.packages))),
        requirements=requirements,
        executables=frozenset(model.executables),
        settings=frozenset(model.settings),
        remove=frozenset(model.remove),
        links=MappingProxyType(dict(model.links)),
        files=MappingProxyType(files),
        sources=sources,
        preload=tuple(model.preload),
        digest=_digest(architecture, path, requirements, *files.values(), *(source.path for source in sources)),
    )


def variant_recipe(base: Recipe, name: str, pins: tuple[str, ...]) -> Recipe:
    """The recipe of a variant: `base` and, beside its wheels, those of `pins` (requirement lines with hashes). The C++
    library comes along, because wheels count on the system for it and for little else."""
    total = hashlib.sha256("\0".join((base.digest, *pins)).encode())
    packages = tuple(sorted({*base.packages, "libstdc++6"}))
    return replace(base, name=name, packages=packages, extra_wheels=pins, digest=f"sha256:{total.hexdigest()}")


def _read(path: Path) -> _ImageFile:
    document = read_document(path, ImageError)
    try:
        return _ImageFile.model_validate(document.data)
    except ValidationError as cause:
        first = cause.errors()[0]
        place = tuple(part for part in first["loc"])
        raise ImageError(f"{path}:{document.line(place)}: {'.'.join(map(str, place))}: {first['msg']}") from None


_PRELOAD_LINE: Final = re.compile(rb"^preload:.*\n", re.MULTILINE)


def _digest(architecture: str, *files: Path) -> str:
    """Over everything that could change the image; `preload`, which stands on one line, only says what to import."""
    total = hashlib.sha256(f"{BUILD_FORMAT}\0{architecture}\0".encode())
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as cause:
            raise ImageError(f"{path}: cannot be read: {cause.strerror}; reinstall toolcage") from cause
        content = _PRELOAD_LINE.sub(b"", content) if path.name == "image.yaml" else content
        total.update(f"{path.name}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    return f"sha256:{total.hexdigest()}"


def _architecture() -> str:
    machine = platform.machine().lower()
    if machine not in ARCHITECTURES:
        raise ImageError(f"sandbox images are built for x86_64 and aarch64 only, not for {machine}; use such a machine")
    return ARCHITECTURES[machine]
