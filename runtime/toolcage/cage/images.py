"""Sandbox images: built here, recorded in images.lock, and trusted by content digest only.

A cage's image is never named by a tag and never pulled. `build` makes it from a recipe, loads it into the engine and
records what the engine must show again; `resolve` and `verify` compare and raise, with the one command that mends it.
Trusts the state directory, provided that nobody else may write there, and the engine's answer about an id it holds.
A variant is an image with more wheels: its record holds what was asked for and the pins that this came to, so it is
rebuilt from the same bytes until its base changes. It does not decide what is in an image (`recipe`, `archive`) nor how
it is fetched (`rootfs`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcage.cage.archive import Layer, image_reference, write_archive, write_layer
from toolcage.cage.pins import PIN_PATTERN, REQUEST_PATTERN, check_request
from toolcage.cage.recipe import Recipe, known_images, load_recipe, variant_recipe
from toolcage.cage.rootfs import fetch_tree, fetch_tree_by_engine, fetch_wheels, resolve_wheels
from toolcage.cage.sbom import WheelComponent, read_wheels, write_sbom
from toolcage.errors import ImageError

LOCK_NAME: Final = "images.lock"
SBOM_FOLDER: Final = "sbom"
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

Method = Literal["mmdebstrap", "dockerfile"]
OnStep = Callable[[str, str], None]
"""Called with the image's name and what is being done now."""

VARIANT_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,62}$"
_VariantName = Annotated[str, Field(pattern=VARIANT_PATTERN)]
_Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class ImageStore(Protocol):
    """What this module needs of an engine."""

    def load_image(self, archive: BinaryIO) -> None: ...
    def image_id(self, reference: str) -> str | None: ...
    def image_inspect(self, reference: str) -> Mapping[str, Any] | None: ...


class RemovingStore(Protocol):
    """What `remove` needs of an engine."""

    def remove_image(self, reference: str) -> None: ...


class _Variant(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    base: _VariantName
    base_digest: _Digest
    requested: Annotated[list[Annotated[str, Field(pattern=REQUEST_PATTERN)]], Field(min_length=1)]
    pins: list[Annotated[str, Field(pattern=PIN_PATTERN)]]


class _Image(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    image_id: _Digest
    accepted_ids: Annotated[list[_Digest], Field(min_length=1)]
    diff_ids: Annotated[list[_Digest], Field(min_length=1)]
    recipe_digest: _Digest
    architecture: str
    packages: dict[str, str]
    wheels: dict[str, str]
    sbom: _Digest | None = None
    size_bytes: int | None = None
    variant: _Variant | None = None


class _LockFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: Literal[1]
    images: dict[str, _Image]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How a variant came about: the image `base` (its recipe then: `base_digest`), the requests (`NAME==VERSION`), and
    the requirement lines with hashes that they came to."""

    base: str
    base_digest: str
    requested: tuple[str, ...]
    pins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedImage:
    """One image as it was built. Run it by `image_id`, which is what the engine called it when it was loaded.

    `accepted_ids` holds the other form too: engines with a containerd store report a manifest digest, others the config
    digest. `sbom` is the digest of the list of contents that `read_sbom` returns; it and `size_bytes` are None for what
    an older version built.
    """

    name: str
    image_id: str
    accepted_ids: tuple[str, ...]
    recipe_digest: str
    diff_ids: tuple[str, ...]
    architecture: str
    packages: Mapping[str, str]
    wheels: Mapping[str, str]
    sbom: str | None = None
    size_bytes: int | None = None
    variant: Variant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLock:
    """The content of images.lock."""

    images: Mapping[str, LockedImage]

    @classmethod
    def load(cls, state_dir: Path) -> ImageLock:
        """The lock in `state_dir`; empty when there is none. Raises ImageError when it cannot be trusted or read."""
        path = state_dir / LOCK_NAME
        try:
            with path.open("rb") as file:
                _check_owner(path, os.fstat(file.fileno()))
                content = file.read()
        except FileNotFoundError:
            return cls(images={})
        except OSError as cause:
            raise ImageError(f"{path}: cannot be read: {cause.strerror}; run `toolcage images build`") from cause
        try:
            model = _LockFile.model_validate_json(content)
        except ValidationError as cause:
            raise ImageError(f"{path}: not a lock file of this version; run `toolcage images build`") from cause
        return cls(images={name: _from_model(name, image) for name, image in model.images.items()})

    def names(self) -> tuple[str, ...]:
        """The images that can be named: those that are shipped, then the variants that were built here."""
        return (*known_images(), *sorted(name for name, image in self.images.items() if image.variant is not None))

    def recipe(self, name: str) -> Recipe:
        """The recipe of an image or of a variant that was built here. Raises ImageError."""
        locked = self.images.get(name)
        if name in known_images() or locked is None or locked.variant is None:
            if name not in known_images():
                raise ImageError(
                    f"sandbox image {name!r} is unknown; the known ones are: {', '.join(self.names())}; `toolcage "
                    "images build IMAGE --with NAME==VERSION --as VARIANT` makes another"
                )
            return load_recipe(name)
        return variant_recipe(load_recipe(locked.variant.base), name, locked.variant.pins)

    def resolve(self, name: str) -> LockedImage:
        """The image `name`. Raises ImageError when it was never built, or was built from another recipe."""
        recipe = self.recipe(name)
        locked = self.images.get(name)
        if locked is None:
            raise ImageError(f"sandbox image {name!r} is not built; run `{_mend(name)}`")
        if locked.recipe_digest != recipe.digest:
            raise ImageError(f"sandbox image {name!r} was built from another recipe; run `{_mend(name)}`")
        return locked


def read_sbom(state_dir: Path, locked: LockedImage) -> str:
    """The list of what is in the image, as CycloneDX JSON. Raises ImageError when it is not the one that was recorded
    with the image."""
    try:
        content = _sbom_path(state_dir, locked.name).read_bytes()
    except OSError:
        content = b""
    if locked.sbom is None or f"sha256:{hashlib.sha256(content).hexdigest()}" != locked.sbom:
        raise ImageError(f"sandbox image {locked.name!r} has no list of contents; run `{_mend(locked.name)}`")
    return content.decode()


def verify(engine: ImageStore, locked: LockedImage) -> str:
    """The id under which `engine` holds exactly this image. Raises ImageError when it is missing or different."""
    for image_id in locked.accepted_ids:
        details = engine.image_inspect(image_id)
        if details is None:
            continue
        if str(details.get("Id")) not in locked.accepted_ids:
            raise ImageError(
                f"sandbox image {locked.name!r}: the engine answers with another id; run `{_mend(locked.name)}`"
            )
        if _layers(details) != locked.diff_ids:
            raise ImageError(f"sandbox image {locked.name!r} has other layers than built; run `{_mend(locked.name)}`")
        return str(details["Id"])
    raise ImageError(f"sandbox image {locked.name!r} is not in this engine; run `{_mend(locked.name)}`")


def build(
    names: Sequence[str],
    engine: ImageStore,
    state_dir: Path,
    *,
    on_step: OnStep = lambda name, step: None,
    force: bool = False,
    method: Method = "mmdebstrap",
) -> list[LockedImage]:
    """Build, load and record the images and variants `names` (all when empty); those that are right already are kept.

    One build at a time per state directory: a second one waits. Raises ImageError.
    """
    lock = _lock_or_none(state_dir)
    wanted = tuple(names) or lock.names()
    for name in wanted:
        lock.recipe(name)  # an unknown name is told before anything is built
    with _build_lock(state_dir, on_step, wanted):
        return [_ensure(name, engine, state_dir, on_step, force, method) for name in wanted]


def build_variant(
    base: str,
    name: str,
    requested: Sequence[str],
    engine: ImageStore,
    state_dir: Path,
    *,
    on_step: OnStep = lambda name, step: None,
    method: Method = "mmdebstrap",
) -> LockedImage:
    """Build the image `base` with the wheels `requested` (`NAME==VERSION` each) and what they need, and record it as
    `name`, with every hash. A variant of that name is replaced. Raises ImageError."""
    asked = tuple(check_request(text) for text in requested)
    if not asked:
        raise ImageError("a variant needs at least one wheel: --with NAME==VERSION")
    if not re.fullmatch(VARIANT_PATTERN, name):
        raise ImageError(f"{name!r} cannot name a variant; use lower-case letters, digits, - and _")
    if name in known_images():
        raise ImageError(f"{name!r} is the name of a shipped image; choose another with --as")
    recipe = load_recipe(base)
    with _build_lock(state_dir, on_step, (name,)):
        variant = _resolved(recipe, asked, lambda step: on_step(name, step))
        return _build_and_record(variant, name, engine, state_dir, on_step, method)


def remove(
    name: str, engine: RemovingStore, state_dir: Path, *, on_step: OnStep = lambda name, step: None
) -> LockedImage:
    """Take the image or variant `name` out of images.lock, with its list of contents, and its name out of the engine,
    which then drops what has no other name. The lock goes first: what is not in it is never run. Raises ImageError when
    it was never built, EngineError when the engine keeps it, because a container still uses it for one."""
    with _build_lock(state_dir, on_step, (name,)):
        images = dict(ImageLock.load(state_dir).images)
        gone = images.pop(name, None)
        if gone is None:
            known = ", ".join(sorted(images)) or "none"
            raise ImageError(f"sandbox image {name!r} is not built here; those that are: {known}")
        _write_lock(state_dir, images)
        _sbom_path(state_dir, name).unlink(missing_ok=True)
        for digest in gone.accepted_ids:
            engine.remove_image(image_reference(name, digest))
    return gone


def _resolved(base: Recipe, requested: tuple[str, ...], on_step: Callable[[str], None]) -> Variant:
    on_step("finding wheels")
    with tempfile.TemporaryDirectory(prefix="toolcage-wheels-") as folder:
        found = resolve_wheels(base, requested, Path(folder))
    return Variant(
        base=base.name, base_digest=base.digest, requested=requested, pins=tuple(wheel.pin for wheel in found)
    )


def _ensure(
    name: str, engine: ImageStore, state_dir: Path, on_step: OnStep, force: bool, method: Method
) -> LockedImage:
    lock = _lock_or_none(state_dir)
    if not force:
        with contextlib.suppress(ImageError):
            locked = lock.resolve(name)
            verify(engine, locked)
            read_sbom(state_dir, locked)
            on_step(name, "already built")
            return locked
    variant = None if name in known_images() else lock.images[name].variant
    if variant is not None and load_recipe(variant.base).digest != variant.base_digest:
        variant = _resolved(load_recipe(variant.base), variant.requested, lambda step: on_step(name, step))
    return _build_and_record(variant, name, engine, state_dir, on_step, method)


def _build_and_record(
    variant: Variant | None, name: str, engine: ImageStore, state_dir: Path, on_step: OnStep, method: Method
) -> LockedImage:
    recipe = load_recipe(name) if variant is None else variant_recipe(load_recipe(variant.base), name, variant.pins)
    locked, contents = _build_one(recipe, engine, lambda step: on_step(name, step), method)
    _record(state_dir, replace(locked, variant=variant), contents)
    on_step(name, "recorded in images.lock")
    return locked if variant is None else replace(locked, variant=variant)


def _build_one(
    recipe: Recipe, engine: ImageStore, on_step: Callable[[str], None], method: Method
) -> tuple[LockedImage, bytes]:
    """The image as the engine has it now, and its SBOM."""
    fetch = fetch_tree if method == "mmdebstrap" else fetch_tree_by_engine
    with tempfile.TemporaryDirectory(prefix="toolcage-image-") as folder:
        work = Path(folder)
        wheels = fetch_wheels(recipe, work, on_step)
        components = read_wheels(wheels.folder, wheels.hashes)
        tree = fetch(recipe, wheels, work, on_step)
        on_step("packing the layer")
        layer = write_layer(recipe, tree, work / "layer.tar")
        tree.unlink()
        config_id, reference = write_archive(recipe, layer.diff_id, work / "layer.tar", work / "image.tar")
        (work / "layer.tar").unlink()
        on_step("loading into the engine")
        with (work / "image.tar").open("rb") as archive:
            engine.load_image(archive)
        contents = write_sbom(recipe, config_id, layer.packages, components)
        return _locked(recipe, engine, layer, config_id, reference, components, contents), contents


def _locked(
    recipe: Recipe,
    engine: ImageStore,
    layer: Layer,
    config_id: str,
    reference: str,
    wheels: Sequence[WheelComponent],
    contents: bytes,
) -> LockedImage:
    details = engine.image_inspect(reference)
    if details is None or _layers(details) != (layer.diff_id,):
        raise ImageError(
            f"sandbox image {recipe.name!r}: the engine did not keep what was loaded; try again with --force"
        )
    reported = str(details["Id"])
    return LockedImage(
        name=recipe.name,
        image_id=reported,
        accepted_ids=tuple(dict.fromkeys((reported, config_id))),
        recipe_digest=recipe.digest,
        diff_ids=(layer.diff_id,),
        architecture=recipe.architecture,
        packages={package.name: package.version for package in layer.packages},
        wheels={wheel.name: wheel.version for wheel in wheels},
        sbom=f"sha256:{hashlib.sha256(contents).hexdigest()}",
        size_bytes=layer.size_bytes,
    )


def _record(state_dir: Path, locked: LockedImage, contents: bytes = b"") -> None:
    """Keep the SBOM `contents`, and add `locked` to images.lock: a whole new file, renamed over the old one.

    A lock that cannot be read is replaced, because building is the command that mends it.
    """
    if contents:
        path = _sbom_path(state_dir, locked.name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _replace_file(path, contents)
    images = dict(_lock_or_none(state_dir).images)
    images[locked.name] = locked
    _write_lock(state_dir, images)


def _write_lock(state_dir: Path, images: Mapping[str, LockedImage]) -> None:
    model = _LockFile(version=1, images={name: _to_model(image) for name, image in sorted(images.items())})
    _replace_file(state_dir / LOCK_NAME, model.model_dump_json(indent=2, exclude_none=True).encode() + b"\n")


def _sbom_path(state_dir: Path, name: str) -> Path:
    return state_dir / SBOM_FOLDER / f"{name}.cdx.json"


def _lock_or_none(state_dir: Path) -> ImageLock:
    try:
        return ImageLock.load(state_dir)
    except ImageError:
        return ImageLock(images={})


def _replace_file(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # created 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _build_lock(state_dir: Path, on_step: OnStep, names: Sequence[str]) -> Iterator[None]:
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(state_dir / "images.build", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as cause:
        raise ImageError(
            f"{state_dir}: cannot be written: {cause.strerror}; choose another by TOOLCAGE_STATE_DIR"
        ) from cause
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            for name in names:
                on_step(name, "waiting for another build")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_owner(path: Path, status: os.stat_result) -> None:
    """Whoever may write this file chooses what runs in every cage."""
    if status.st_uid not in (os.geteuid(), 0) or status.st_mode & _WRITABLE_BY_OTHERS:
        raise ImageError(f"{path}: writable by another user, so it cannot be trusted; run `toolcage images build`")


def _layers(details: Mapping[str, Any]) -> tuple[str, ...]:
    root = details.get("RootFS") or {}
    return tuple(str(layer) for layer in root.get("Layers") or ())


def _mend(name: str) -> str:
    return f"toolcage images build {name}"


def _from_model(name: str, image: _Image) -> LockedImage:
    return LockedImage(
        name=name,
        image_id=image.image_id,
        accepted_ids=tuple(image.accepted_ids),
        recipe_digest=image.recipe_digest,
        diff_ids=tuple(image.diff_ids),
        architecture=image.architecture,
        packages=image.packages,
        wheels=image.wheels,
        sbom=image.sbom,
        size_bytes=image.size_bytes,
        variant=None if image.variant is None else _variant(image.variant),
    )


def _variant(model: _Variant) -> Variant:
    return Variant(
        base=model.base,
        base_digest=model.base_digest,
        requested=tuple(model.requested),
        pins=tuple(model.pins),
    )


def _to_model(image: LockedImage) -> _Image:
    return _Image(
        image_id=image.image_id,
        accepted_ids=list(image.accepted_ids),
        diff_ids=list(image.diff_ids),
        recipe_digest=image.recipe_digest,
        architecture=image.architecture,
        packages=dict(image.packages),
        wheels=dict(image.wheels),
        sbom=image.sbom,
        size_bytes=image.size_bytes,
        variant=None
        if image.variant is None
        else _Variant(
            base=image.variant.base,
            base_digest=image.variant.base_digest,
            requested=list(image.variant.requested),
            pins=list(image.variant.pins),
        ),
    )
