"""Sandbox images: built here, recorded in images.lock, and trusted by content digest only.

A cage's image is never named by a tag and never pulled. `build` makes it from a recipe, loads it into the engine and
records what the engine must show again; `resolve` and `verify` compare and raise, with the one command that mends it.
Trusts the state directory, provided that nobody else may write there, and the engine's answer about an id it holds.
It does not decide what is in an image (`recipe`, `archive`) nor how it is fetched (`rootfs`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcage.cage.archive import Layer, write_archive, write_layer
from toolcage.cage.recipe import Recipe, known_images, load_recipe
from toolcage.cage.rootfs import fetch_tree, fetch_tree_by_engine, fetch_wheels
from toolcage.errors import ImageError

LOCK_NAME: Final = "images.lock"
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

Method = Literal["mmdebstrap", "dockerfile"]
OnStep = Callable[[str, str], None]
"""Called with the image's name and what is being done now."""

_Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class ImageStore(Protocol):
    """What this module needs of an engine."""

    def load_image(self, archive: BinaryIO) -> None: ...
    def image_id(self, reference: str) -> str | None: ...
    def image_inspect(self, reference: str) -> Mapping[str, Any] | None: ...


class _Image(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    image_id: _Digest
    accepted_ids: Annotated[list[_Digest], Field(min_length=1)]
    diff_ids: Annotated[list[_Digest], Field(min_length=1)]
    recipe_digest: _Digest
    architecture: str
    packages: dict[str, str]
    wheels: dict[str, str]


class _LockFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: Literal[1]
    images: dict[str, _Image]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedImage:
    """One image as it was built. Run it by `image_id`, which is what the engine called it when it was loaded.

    `accepted_ids` holds the other form too: engines with a containerd store report a manifest digest, others the config
    digest.
    """

    name: str
    image_id: str
    accepted_ids: tuple[str, ...]
    recipe_digest: str
    diff_ids: tuple[str, ...]
    architecture: str
    packages: Mapping[str, str]
    wheels: Mapping[str, str]


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

    def resolve(self, name: str) -> LockedImage:
        """The image `name`. Raises ImageError when it was never built, or was built from another recipe."""
        recipe = load_recipe(name)
        locked = self.images.get(name)
        if locked is None:
            raise ImageError(f"sandbox image {name!r} is not built; run `{_mend(name)}`")
        if locked.recipe_digest != recipe.digest:
            raise ImageError(f"sandbox image {name!r} was built from another recipe; run `{_mend(name)}`")
        return locked


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
    """Build, load and record the images `names` (all known ones when empty); those that are right already are kept.

    One build at a time per state directory: a second one waits. Raises ImageError.
    """
    recipes = [load_recipe(name) for name in names or known_images()]
    with _build_lock(state_dir, on_step, recipes):
        return [_ensure(recipe, engine, state_dir, on_step, force, method) for recipe in recipes]


def _ensure(
    recipe: Recipe, engine: ImageStore, state_dir: Path, on_step: OnStep, force: bool, method: Method
) -> LockedImage:
    if not force:
        with contextlib.suppress(ImageError):
            locked = ImageLock.load(state_dir).resolve(recipe.name)
            verify(engine, locked)
            on_step(recipe.name, "already built")
            return locked
    locked = _build_one(recipe, engine, lambda step: on_step(recipe.name, step), method)
    _record(state_dir, locked)
    on_step(recipe.name, "recorded in images.lock")
    return locked


def _build_one(recipe: Recipe, engine: ImageStore, on_step: Callable[[str], None], method: Method) -> LockedImage:
    fetch = fetch_tree if method == "mmdebstrap" else fetch_tree_by_engine
    with tempfile.TemporaryDirectory(prefix="toolcage-image-") as folder:
        work = Path(folder)
        wheels = fetch_wheels(recipe, work, on_step)
        tree = fetch(recipe, wheels, work, on_step)
        on_step("packing the layer")
        layer = write_layer(recipe, tree, work / "layer.tar")
        config_id, reference = write_archive(recipe, layer.diff_id, work / "layer.tar", work / "image.tar")
        on_step("loading into the engine")
        with (work / "image.tar").open("rb") as archive:
            engine.load_image(archive)
        return _locked(recipe, engine, layer, config_id, reference, _wheel_versions(wheels))


def _locked(
    recipe: Recipe, engine: ImageStore, layer: Layer, config_id: str, reference: str, wheels: Mapping[str, str]
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
        packages=layer.packages,
        wheels=wheels,
    )


def _record(state_dir: Path, locked: LockedImage) -> None:
    """Add `locked` to images.lock: a whole new file, renamed over the old one. A lock that cannot be read is replaced,
    because building is the command that mends it."""
    try:
        images = dict(ImageLock.load(state_dir).images)
    except ImageError:
        images = {}
    images[locked.name] = locked
    model = _LockFile(version=1, images={name: _to_model(image) for name, image in sorted(images.items())})
    descriptor, temporary = tempfile.mkstemp(dir=state_dir, prefix=f".{LOCK_NAME}.")  # created 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(model.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(state_dir / LOCK_NAME)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _build_lock(state_dir: Path, on_step: OnStep, recipes: Sequence[Recipe]) -> Iterator[None]:
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
            for recipe in recipes:
                on_step(recipe.name, "waiting for another build")
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


def _wheel_versions(wheels: Path) -> dict[str, str]:
    stems = (path.name.removesuffix(".dist-info") for path in sorted(wheels.glob("*.dist-info")))
    return dict(stem.rsplit("-", 1) for stem in stems)


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
    )
