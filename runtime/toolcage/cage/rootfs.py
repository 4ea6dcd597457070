"""Fetch the raw root file system of a recipe: Debian's signed packages and hash-pinned wheels, as one tar file.

`mmdebstrap_command` and `wheels_command` describe what will run, as argument lists; the `fetch_…` functions run it.
Programs are looked up in the system's folders only, never through the caller's PATH or working directory. Authenticity
is apt's (archive signatures) and pip's (`--require-hashes`). Nothing here decides what stays in the image: the tree
comes out whole and `archive` prunes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcage.cage.archive import PACKAGE_LIST, SOURCE_DATE_EPOCH, keeps
from toolcage.cage.debian import CONTROL_FIELDS
from toolcage.cage.pins import ReportedWheel, pinned_versions, read_report
from toolcage.cage.recipe import Recipe, SourceArchive
from toolcage.errors import ImageError

PROGRAM_FOLDERS: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STEP_TIMEOUT_S: Final = 900
COMPILE_OPTIONS: Final = "-I -S -B -m compileall -f -q --invalidation-mode unchecked-hash"
"""-S: nothing that a wheel brought may run here, as root and outside a cage. -B and -f: compileall's own imports must
not leave timestamp byte code behind, which it would then skip."""

_TAIL_LINES: Final = 12
_GLIBC_TAGS: Final = (*(f"manylinux_2_{minor}" for minor in range(41, 4, -1)), "manylinux2014", "manylinux2010")
"""trixie has glibc 2.41; pip takes a platform that is named to it by the letter and infers no older one."""
_WHEEL_MACHINES: Final[Mapping[str, str]] = {"amd64": "x86_64", "arm64": "aarch64"}
_NOTE_PACKAGES: Final = (
    'for archive in "$1"/var/cache/apt/archives/*.deb; do '
    f'dpkg-deb --field "$archive" {" ".join(CONTROL_FIELDS)}; '
    """printf 'SHA256: %s\\n\\n' "$(sha256sum < "$archive" | cut -d ' ' -f 1)"; """
    f'done > "$1/{PACKAGE_LIST}"'
)
_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def has_mmdebstrap() -> bool:
    """Whether this machine can build without an image registry."""
    return shutil.which("mmdebstrap", path=PROGRAM_FOLDERS) is not None


def mmdebstrap_command(recipe: Recipe, *, program: str, wheels: Path, tree: Path) -> list[str]:
    """The argument list that writes the raw tree to `tree`.

    The hooks are run by mmdebstrap with the new root as `$1`; the only text in them that is not constant is the Python
    version and a path of our own making, both quoted.
    """
    links = 'for name in bin lib lib64 sbin; do ln -s "usr/$name" "$1/$name"; done'
    site = shlex.quote(f"/{recipe.site_packages}")
    library = shlex.quote(f"/usr/lib/python{recipe.python}")
    python = shlex.quote(f"/usr/bin/python{recipe.python}")
    return [
        program,
        "--quiet",
        "--variant=extract",
        "--format=tar",
        f"--include={','.join(recipe.packages)}",
        # `extract` brings no base-files, and the loader's path /lib64 is a link that only base-files would make
        f'--setup-hook=mkdir -p "$1"{site}; {links}',
        f"--extract-hook={_NOTE_PACKAGES}",
        f"--extract-hook=sync-in {shlex.quote(str(wheels))} {site}",
        f'--extract-hook=chroot "$1" {python} {COMPILE_OPTIONS} {library} {site}',
        recipe.suite,
        str(tree),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    """Unpacked wheels: their folder, and the SHA-256 of each wheel by its normalised name (`python-dateutil`)."""

    folder: Path
    hashes: Mapping[str, str]


def wheels_command(
    recipe: Recipe, *, pip: Sequence[str], target: Path, report: Path, pinned: Sequence[Path]
) -> list[str]:
    """The argument list that unpacks the wheels of the requirement files `pinned` for the image's Python into `target`
    and notes in `report` what they were."""
    return [
        *pip_command(recipe, pip=pip, target=target, report=report),
        "--require-hashes",
        "--no-deps",
        "--no-compile",
        *(f"--requirement={path}" for path in pinned),
    ]


def resolve_command(
    recipe: Recipe, *, pip: Sequence[str], work: Path, requested: Sequence[str], constraints: Path
) -> list[str]:
    """The argument list that finds the wheels which `requested` (`NAME==VERSION`) need beside those of the image, and
    installs nothing. `constraints` holds the image's own versions, which stay."""
    return [
        *pip_command(recipe, pip=pip, target=work / "nothing", report=work / "resolved.json"),
        "--dry-run",
        "--ignore-installed",
        f"--constraint={constraints}",
        "--",
        *requested,
    ]


def pip_command(recipe: Recipe, *, pip: Sequence[str], target: Path, report: Path) -> list[str]:
    """What every use of pip has in common: wheels only, for the image's Python and processor, never this machine's."""
    machine = _WHEEL_MACHINES[recipe.architecture]
    platforms = [argument for tag in _GLIBC_TAGS for argument in ("--platform", f"{tag}_{machine}")]
    return [
        *pip,
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--only-binary=:all:",
        "--implementation=cp",
        f"--python-version={recipe.python}",
        *platforms,
        f"--target={target}",
        f"--report={report}",
    ]


def fetch_wheels(recipe: Recipe, work: Path, on_step: Callable[[str], None]) -> Wheels:
    """Unpack the wheels and source archives of `recipe` below `work`. Raises ImageError."""
    on_step("fetching wheels by hash")
    target, report, extra = work / "wheels", work / "wheels.json", work / "extra.txt"
    target.mkdir()
    extra.write_text("".join(f"{line}\n" for line in recipe.extra_wheels), encoding="ascii")
    pinned = [recipe.requirements, *([extra] if recipe.extra_wheels else [])]
    _run(wheels_command(recipe, pip=_pip(), target=target, report=report, pinned=pinned), work, "fetch the wheels")
    hashes = {item.name: item.sha256 for item in read_report(report)}
    for source in recipe.sources:
        unpack_source(source, target)
        hashes[source.package] = source.sha256
    _prune(recipe, target)
    return Wheels(folder=target, hashes=hashes)


def resolve_wheels(recipe: Recipe, requested: Sequence[str], work: Path) -> list[ReportedWheel]:
    """The wheels that `requested` add to those of `recipe`, by name, with versions and hashes. Raises ImageError, also
    when they would need another version of something that the image has."""
    constraints = work / "constraints.txt"
    own = pinned_versions(recipe.requirements.read_text(encoding="utf-8"))
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in own.items()), encoding="ascii")
    command = resolve_command(recipe, pip=_pip(), work=work, requested=requested, constraints=constraints)
    _run(command, work, f"find wheels for {', '.join(requested)}")
    found = read_report(work / "resolved.json")
    return sorted((item for item in found if item.name not in own), key=lambda item: item.name)


def unpack_source(source: SourceArchive, target: Path) -> None:
    """Take the package out of a source archive, with a `.dist-info` that says what it is. Raises ImageError."""
    content = source.path.read_bytes()
    if hashlib.sha256(content).hexdigest() != source.sha256:
        raise ImageError(f"{source.path.name} is not the file that its recipe names; restore the shipped file")
    wanted = f"{source.folder}/{source.package}/"
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            inside = member.name.removeprefix(f"{source.folder}/")
            if member.name == f"{source.folder}/PKG-INFO":
                inside = f"{source.folder}.dist-info/METADATA"
            elif member.name == f"{source.folder}/LICENSE":
                inside = f"{source.folder}.dist-info/licenses/LICENSE"
            elif not member.name.startswith(wanted):
                continue
            if member.isfile() and ".." not in inside.split("/"):
                file = archive.extractfile(member)
                assert file is not None
                (target / inside).parent.mkdir(parents=True, exist_ok=True)
                (target / inside).write_bytes(file.read())


def _prune(recipe: Recipe, target: Path) -> None:
    """Delete what would not be kept before anything is compiled: half of the files of the large wheels are tests."""
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.rmdir()
        elif not keeps(recipe, f"{recipe.site_packages}/{path.relative_to(target)}"):
            path.unlink()


def fetch_tree(recipe: Recipe, wheels: Wheels, work: Path, on_step: Callable[[str], None]) -> Path:
    """The raw tree, made by mmdebstrap. Raises ImageError."""
    on_step("extracting Debian packages")
    if not _KEYRING.exists():
        raise ImageError(
            f"{_KEYRING} is missing, so Debian's signatures cannot be checked; install debian-archive-keyring"
        )
    tree = work / "tree.tar"
    program = _program("mmdebstrap", "install it (`apt-get install mmdebstrap`), or build with --dockerfile")
    command = mmdebstrap_command(recipe, program=program, wheels=wheels.folder, tree=tree)
    _run(command, work, "extract the Debian packages")
    return tree


def fetch_tree_by_engine(recipe: Recipe, wheels: Wheels, work: Path, on_step: Callable[[str], None]) -> Path:
    """The raw tree, made by the engine from the recipe's Dockerfile; needs an image registry. Raises ImageError."""
    docker = _program("docker", "install the Docker command line, or mmdebstrap")
    on_step("building the Dockerfile")
    tag = f"toolcage/{recipe.name}:raw"
    context = work / "context"
    shutil.copytree(wheels.folder, context / "wheels")
    shutil.copy(recipe.folder / "Dockerfile", context / "Dockerfile")
    build_args = {"PYTHON": recipe.python, "PACKAGES": " ".join(recipe.packages)}
    arguments = [argument for name, value in build_args.items() for argument in ("--build-arg", f"{name}={value}")]
    _run([docker, "build", "--quiet", *arguments, "--tag", tag, str(context)], work, "build the Dockerfile")
    on_step("exporting the root file system")
    tree, container = work / "tree.tar", f"toolcage-raw-{work.name}"
    _run([docker, "create", "--name", container, "--network", "none", tag, "never-started"], work, "create a container")
    try:
        _run([docker, "export", "--output", str(tree), container], work, "export the root file system")
    finally:
        _run([docker, "rm", container], work, "remove the container")
        _run([docker, "rmi", tag], work, "remove the raw image")
    return tree


def _pip() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    return [_program("pip3", f"add pip to this environment (`{sys.executable} -m ensurepip`)")]


def _program(name: str, mend: str) -> str:
    found = shutil.which(name, path=PROGRAM_FOLDERS)
    if found is None:
        raise ImageError(f"the program {name} is not installed; {mend}")
    return found


def _environment() -> dict[str, str]:
    """The caller's settings (proxies, pip's index), without what would change which code runs or what it produces."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_", "APT_"))}
    return kept | {"PATH": PROGRAM_FOLDERS, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH)}


def _run(command: Sequence[str], work: Path, what: str) -> None:
    with tempfile.TemporaryFile(dir=work) as log:
        try:
            process = subprocess.Popen(  # noqa: S603 - an argument list, the program by absolute path, no shell
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                cwd=work,
            )
        except OSError as cause:
            raise ImageError(f"could not {what}: {command[0]}: {cause.strerror}") from cause
        code = _wait(process, what)
        if code != 0:
            log.seek(0)
            tail = log.read().decode(errors="replace").strip().splitlines()[-_TAIL_LINES:]
            raise ImageError("\n  ".join([f"could not {what}: {Path(command[0]).name} ended with {code}", *tail]))


def _wait(process: subprocess.Popen[bytes], what: str) -> int:
    """The exit code. SIGTERM before SIGKILL when we give up or are interrupted: mmdebstrap takes its mounts down."""
    try:
        return process.wait(STEP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise ImageError(f"could not {what} within {STEP_TIMEOUT_S} s; check the network and try again") from None
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        if process.poll() is None:
            process.kill()
            process.wait()
