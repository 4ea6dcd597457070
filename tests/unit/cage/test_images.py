"""Recipes, packing and the lock: what is kept, what is refused, what is the same twice."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from typer.testing import CliRunner

from toolcage.cage import images
from toolcage.cage.archive import keeps, write_archive, write_layer
from toolcage.cage.images import ImageLock, LockedImage, verify
from toolcage.cage.recipe import Recipe, known_images, load_recipe
from toolcage.cage.rootfs import mmdebstrap_command, resolve_command, wheels_command
from toolcage.cli.images import app
from toolcage.errors import ImageError
from toolcage.shipped import shipped_dir

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
LAYER = "sha256:" + "c" * 64


class FakeStore:
    """An engine that holds some images by id."""

    def __init__(self, held: Mapping[str, Mapping[str, Any]]) -> None:
        self.held = held

    def load_image(self, archive: BinaryIO) -> None:
        raise AssertionError("nothing is loaded here")

    def image_id(self, reference: str) -> str | None:
        found = self.image_inspect(reference)
        return None if found is None else str(found["Id"])

    def image_inspect(self, reference: str) -> Mapping[str, Any] | None:
        return self.held.get(reference)


def locked(**changes: Any) -> LockedImage:
    base = LockedImage(
        name="python",
        image_id=DIGEST,
        accepted_ids=(DIGEST, OTHER),
        recipe_digest=load_recipe("python").digest,
        diff_ids=(LAYER,),
        architecture="amd64",
        packages={"libc6": "2.41-12"},
        wheels={"pydantic": "2.14.4"},
    )
    return replace(base, **changes)


def shown(image_id: str, layer: str = LAYER) -> dict[str, Any]:
    return {"Id": image_id, "RootFS": {"Type": "layers", "Layers": [layer]}}


def make_tree(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as out:
        for info, content in members:
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return path


def member(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(f"./{name}")
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


PACKAGES = f"""Package: zlib1g
Version: 1:1.3
Architecture: amd64
SHA256: {"1" * 64}

Package: libc6
Version: 2.41-12
Architecture: amd64
Source: glibc
SHA256: {"2" * 64}

""".encode()
COPYRIGHT = b"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
License: LGPL-2.1+
 text
"""
RAW = [
    member("packages", PACKAGES),
    member("usr/bin/python3.13", b"elf", mode=0o4755),
    member("usr/bin/sh", b"elf", mode=0o755),
    member("usr/sbin/ldconfig", b"elf", mode=0o755),
    member("usr/local/bin/pip", b"elf", mode=0o755),
    member("usr/lib/python3.13/os.py", b"code", mode=0o600, uid=1000, gid=1000, mtime=12345, uname="builder"),
    member("usr/lib/x86_64-linux-gnu/gconv/UTF-7.so", b"elf"),
    member("usr/lib/gconverter.so", b"elf"),
    member("usr/share/doc/libc6/copyright", COPYRIGHT),
    member("usr/share/doc/zlib1g", type=tarfile.SYMTYPE, linkname="libc6"),
    member("usr/local/lib/python3.13/dist-packages/evil.pth", b"import os"),
    member("usr/local/lib/python3.13/dist-packages/sitecustomize.py", b"import os"),
    member("usr/local/lib/python3.13/dist-packages/usercustomize/__init__.py", b"import os"),
    member("usr/local/lib/python3.13/dist-packages/bin/a", b"#!", mode=0o755),
    member("usr/local/lib/python3.13/dist-packages/a/sitecustomize.py", b"only a module"),
    member("etc/mime.types", b"text"),
    member("etc/hostname", b"the-build-machine"),
    member("etc/shadow", b"root:hash"),
    member(".dockerenv"),
    member("var/lib/dpkg/status", b"text"),
    member("dev/mem", type=tarfile.CHRTYPE, devmajor=1, devminor=1),
    member("usr/lib/pipe", type=tarfile.FIFOTYPE),
    member("usr/lib/caps", b"x", pax_headers={"SCHILY.xattr.security.capability": "\x01\x00"}),
    member("usr/lib/zz-hard", type=tarfile.LNKTYPE, linkname="./usr/lib/python3.13/os.py"),
    member("usr/local/lib/python3.13/dist-packages/a-1.dist-info/RECORD", b"which pip ran"),
    member("usr/local/lib/python3.13/dist-packages/a-1.dist-info/METADATA", b"text"),
    member("lib", type=tarfile.SYMTYPE, linkname="usr/lib"),
]


@pytest.fixture
def recipe() -> Recipe:
    return load_recipe("python")


@pytest.fixture
def packed(recipe: Recipe, tmp_path: Path) -> dict[str, tarfile.TarInfo]:
    write_layer(recipe, make_tree(tmp_path / "tree.tar", RAW), tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as layer:
        return {item.name: item for item in layer}


@pytest.mark.parametrize(
    ("kept", "left_out"),
    [
        ("usr/bin/python3.13", "usr/bin/sh"),
        ("usr/bin/python3", "usr/sbin/ldconfig"),
        ("usr/bin", "usr/local/bin/pip"),
        ("usr/lib/gconverter.so", "usr/lib/x86_64-linux-gnu/gconv/UTF-7.so"),
        ("usr/lib/python3.13/os.py", "usr/share/doc/libc6/copyright"),
        ("etc/mime.types", "etc/hostname"),
        ("etc/passwd", "etc/shadow"),
        ("dev", "dev/mem"),
        ("usr/lib/caps", "usr/lib/pipe"),
        (
            "usr/local/lib/python3.13/dist-packages/a-1.dist-info/METADATA",
            "usr/local/lib/python3.13/dist-packages/a-1.dist-info/RECORD",
        ),
        ("workspace", "var/lib/dpkg/status"),
        (
            "usr/local/lib/python3.13/dist-packages/a/sitecustomize.py",
            "usr/local/lib/python3.13/dist-packages/sitecustomize.py",
        ),
        ("usr/lib", "usr/local/lib/python3.13/dist-packages/evil.pth"),
        ("usr/lib/zz-hard", "usr/local/lib/python3.13/dist-packages/usercustomize/__init__.py"),
        ("usr/local/lib", "usr/local/lib/python3.13/dist-packages/bin/a"),
        ("data", "packages"),
        ("tmp", ".dockerenv"),
    ],
)
def test_the_layer_keeps_what_the_recipe_allows_and_nothing_beside_it(
    kept: str, left_out: str, packed: dict[str, tarfile.TarInfo]
) -> None:
    assert kept in packed
    assert left_out not in packed


@pytest.mark.threat("P06")
def test_no_setuid_bit_capability_owner_or_time_of_the_tree_survives(packed: dict[str, tarfile.TarInfo]) -> None:
    for item in packed.values():
        assert item.mode & 0o6000 == 0, item.name
        assert (item.uid, item.gid, item.uname, item.gname) == (0, 0, "", "")
        assert not any("xattr" in key for key in item.pax_headers)
    assert len({item.mtime for item in packed.values()}) == 1
    assert {name for name, item in packed.items() if item.mode & 0o022 and not item.issym()} == {"tmp"}


def test_hard_links_become_files_and_links_stay_links(packed: dict[str, tarfile.TarInfo]) -> None:
    assert packed["usr/lib/zz-hard"].isfile()
    assert packed["usr/lib/zz-hard"].size == 4
    assert packed["lib"].linkname == "usr/lib"
    assert packed["usr/bin/python3"].linkname == "python3.13"


@pytest.mark.threat("P27")
def test_no_account_has_a_password_or_a_shell(recipe: Recipe, tmp_path: Path) -> None:
    write_layer(recipe, make_tree(tmp_path / "tree.tar", RAW), tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as layer:
        passwd = layer.extractfile("etc/passwd")
        assert passwd is not None
        for line in passwd.read().decode().splitlines():
            assert line.split(":")[1] == "x"
            assert line.endswith("/nonexistent")


def test_the_order_and_times_of_the_tree_do_not_change_the_image(recipe: Recipe, tmp_path: Path) -> None:
    ids = []
    for number, members in enumerate((RAW, [RAW[5], *RAW[::-1]])):
        tree = make_tree(tmp_path / f"{number}.tar", members)
        layer = write_layer(recipe, tree, tmp_path / f"{number}.layer")
        ids.append(write_archive(recipe, layer.diff_id, tmp_path / f"{number}.layer", tmp_path / f"{number}.image"))
    assert ids[0] == ids[1]
    assert (tmp_path / "0.image").read_bytes() == (tmp_path / "1.image").read_bytes()


def test_one_changed_byte_changes_the_image(recipe: Recipe, tmp_path: Path) -> None:
    layers = [
        write_layer(
            recipe, make_tree(tmp_path / f"{byte}.tar", [*RAW, member("usr/lib/x", byte.encode())]), tmp_path / "l"
        )
        for byte in "ab"
    ]
    assert layers[0].diff_id != layers[1].diff_id


def test_the_archives_digests_are_those_of_its_content(recipe: Recipe, tmp_path: Path) -> None:
    layer = write_layer(recipe, make_tree(tmp_path / "tree.tar", RAW), tmp_path / "layer.tar")
    image_id, reference = write_archive(recipe, layer.diff_id, tmp_path / "layer.tar", tmp_path / "image.tar")
    content = {}
    with tarfile.open(tmp_path / "image.tar") as archive:
        for item in archive:
            file = archive.extractfile(item)
            assert file is not None
            content[item.name] = file.read()
    [manifest] = json.loads(content["manifest.json"])
    config = json.loads(content[manifest["Config"]])
    assert image_id == "sha256:" + hashlib.sha256(content[manifest["Config"]]).hexdigest()
    assert layer.diff_id == "sha256:" + hashlib.sha256(content[manifest["Layers"][0]]).hexdigest()
    assert config["rootfs"]["diff_ids"] == [layer.diff_id]
    assert manifest["RepoTags"] == [reference]
    assert config["config"]["User"].split(":")[0] not in ("", "0", "root")
    assert not config["config"].keys() & {"Cmd", "Entrypoint", "Volumes", "ExposedPorts"}
    assert [(package.name, package.version, package.licences) for package in layer.packages] == [
        ("libc6", "2.41-12", ("LGPL-2.1+",)),
        ("zlib1g", "1:1.3", ("LGPL-2.1+",)),  # its documents are libc6's
    ]
    assert layer.size_bytes == (tmp_path / "layer.tar").stat().st_size


def test_a_program_that_no_package_brings_is_an_error_that_names_it(recipe: Recipe, tmp_path: Path) -> None:
    wider = replace(recipe, executables=recipe.executables | {"usr/bin/nothing"})
    with pytest.raises(ImageError, match="no package brings usr/bin/nothing"):
        write_layer(wider, make_tree(tmp_path / "tree.tar", RAW), tmp_path / "layer.tar")


def test_links_and_files_of_the_recipe_are_in_the_layer(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"fonts")
    wider = replace(recipe, links={"usr/bin/py": "python3"}, files={"usr/share/toolcage/list": tmp_path / "list"})
    write_layer(wider, make_tree(tmp_path / "tree.tar", RAW), tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as layer:
        assert layer.getmember("usr/bin/py").linkname == "python3"
        content = layer.extractfile("usr/share/toolcage/list")
        assert content is not None
        assert content.read() == b"fonts"


@pytest.mark.parametrize(
    ("pattern", "removed", "kept"),
    [
        ("usr/lib/*/gconv", "usr/lib/x/gconv/a.so", "usr/lib/x/y/gconv"),
        ("usr/lib/libx.so*", "usr/lib/libx.so.26", "usr/lib/libxy.so"),
        ("usr/lib/*_test", "usr/lib/a_test/x", "usr/lib/a_tests/x"),
        ("usr/l.b", "usr/l.b/x", "usr/lib"),
    ],
)
def test_a_star_stands_for_text_within_one_part_of_a_path(
    pattern: str, removed: str, kept: str, recipe: Recipe
) -> None:
    narrow = replace(recipe, remove=frozenset({pattern}))
    assert not keeps(narrow, removed)
    assert keeps(narrow, kept)


def test_a_tree_that_is_not_a_tar_is_an_image_error(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "tree.tar").write_bytes(b"not a tar" * 1000)
    with pytest.raises(ImageError, match="not a readable tar"):
        write_layer(recipe, tmp_path / "tree.tar", tmp_path / "layer.tar")


# --- recipes -------------------------------------------------------------------------------------------------------


def recipe_folder(
    tmp_path: Path, edit: Callable[[str], str] = lambda text: text, requirements: str = "# none\n"
) -> Path:
    source = shipped_dir("sandbox_images") / "python" / "image.yaml"
    folder = tmp_path / "python"
    folder.mkdir(parents=True)
    (folder / "image.yaml").write_text(edit(source.read_text()))
    (folder / "requirements.txt").write_text(requirements)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  - libc-bin ", "  - --variant=apt "),
        ("  - libc-bin ", "  - libc-bin,sudo "),
        ("  - libc-bin ", "  - $(id) "),
        ("suite: trixie", "suite: trixie;id"),
        ('python: "3.13"', 'python: "3.13$(id)"'),
        ('python: "3.13"', "python: 3.13"),
        ("wheels: requirements.txt", "wheels: ../../etc/passwd"),
        ("  - usr/bin/python3.13", "  - ../usr/bin/python3.13"),
        ("  - etc/services", "  - /etc/services"),
        ("version: 1", "version: 2"),
        ("version: 1", "version: 1\nhooks: [id]"),
    ],
)
def test_a_recipe_that_could_reach_beyond_its_meaning_is_refused_with_its_line(
    old: str, new: str, tmp_path: Path
) -> None:
    folder = recipe_folder(tmp_path, lambda text: text.replace(old, new, 1))
    with pytest.raises(ImageError, match=r"image\.yaml:\d+: "):
        load_recipe("python", folder)


def test_every_part_of_a_recipe_is_in_its_digest(tmp_path: Path) -> None:
    plain = load_recipe("python", recipe_folder(tmp_path / "1"))
    other_list = load_recipe("python", recipe_folder(tmp_path / "2", lambda text: text + "  - opt\n"))
    other_wheel = load_recipe("python", recipe_folder(tmp_path / "3", requirements="a==1\n"))
    same = load_recipe("python", recipe_folder(tmp_path / "4"))
    assert len({plain.digest, other_list.digest, other_wheel.digest}) == 3
    assert plain.digest == same.digest


def test_what_is_imported_ahead_is_no_part_of_the_image_and_so_not_of_its_digest(tmp_path: Path) -> None:
    plain = load_recipe("python", recipe_folder(tmp_path / "1"))
    ahead = load_recipe("python", recipe_folder(tmp_path / "2", lambda text: "preload: [sqlite3, json]\n" + text))
    assert (ahead.preload, plain.preload) == (("sqlite3", "json"), ())
    assert ahead.digest == plain.digest
    more = load_recipe("python", recipe_folder(tmp_path / "3", lambda text: f"preload: [json]\n{text}  - opt\n"))
    assert more.digest != plain.digest


def test_an_unknown_image_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ImageError, match=r"known ones are: .*python"):
        load_recipe("../python")


def test_every_file_beside_a_recipe_is_in_its_digest(tmp_path: Path) -> None:
    digests = set()
    for number, content in enumerate((b"a", b"b")):
        folder = recipe_folder(tmp_path / str(number), lambda text: f"{text}files: {{usr/share/x: data.json}}\n")
        (folder / "python" / "data.json").write_bytes(content)
        digests.add(load_recipe("python", folder).digest)
    assert len(digests) == 2


@pytest.mark.parametrize(
    "more",
    [
        "links: {usr/bin/sh: ../../etc/passwd}",
        "files: {../x: data.json}",
        "files: {usr/share/x: ../../secret}",
        "preload: ['os; import x']",
        "sources: [{archive: a.tar.gz, sha256: '', folder: a, package: a}]",
    ],
)
def test_an_addition_that_could_reach_beyond_its_meaning_is_refused(more: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"image\.yaml:\d+: "):
        load_recipe("python", recipe_folder(tmp_path, lambda text: f"{text}{more}\n"))


@pytest.mark.parametrize("name", known_images())
def test_the_dockerfile_has_the_recipes_packages_suite_and_python(name: str) -> None:
    recipe = load_recipe(name)
    text = (recipe.folder / "Dockerfile").read_text()
    packages = re.search(r'^ARG PACKAGES="(.*)"$', text, re.MULTILINE)
    assert packages is not None
    assert tuple(packages[1].split()) == recipe.packages
    assert f"FROM debian:{recipe.suite}-slim AS build" in text
    assert f"ARG PYTHON={recipe.python}\n" in text


@pytest.mark.parametrize("name", known_images())
def test_every_wheel_is_pinned_by_version_and_hash(name: str) -> None:
    text = load_recipe(name).requirements.read_text().replace("\\\n", " ")
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*( +--hash=sha256:[0-9a-f]{64})+", line), line


def test_the_commands_check_hashes_and_take_no_source_packages(recipe: Recipe, tmp_path: Path) -> None:
    pinned = [recipe.requirements, tmp_path / "extra.txt"]
    command = wheels_command(recipe, pip=["/usr/bin/pip3"], target=tmp_path, report=tmp_path / "r", pinned=pinned)
    assert {"--require-hashes", "--only-binary=:all:", "--no-deps", "--no-compile"} <= set(command)
    assert {f"--requirement={path}" for path in pinned} <= set(command)


def test_finding_wheels_installs_nothing_and_takes_no_source_packages(recipe: Recipe, tmp_path: Path) -> None:
    command = resolve_command(
        recipe, pip=["/usr/bin/pip3"], work=tmp_path, requested=["a==1"], constraints=tmp_path / "c.txt"
    )
    assert {"--dry-run", "--only-binary=:all:", f"--constraint={tmp_path / 'c.txt'}"} <= set(command)
    assert command[-2:] == ["--", "a==1"]


def test_compiling_runs_nothing_that_a_wheel_brought(recipe: Recipe, tmp_path: Path) -> None:
    command = mmdebstrap_command(recipe, program="/usr/bin/mmdebstrap", wheels=tmp_path, tree=tmp_path / "t.tar")
    [compiling] = [argument for argument in command if "compileall" in argument]
    assert " -I -S -B -m compileall " in compiling


def test_a_folder_name_with_shell_syntax_stays_one_word_of_the_hook(recipe: Recipe, tmp_path: Path) -> None:
    odd = tmp_path / "a b;$(id)"
    command = mmdebstrap_command(recipe, program="/usr/bin/mmdebstrap", wheels=odd, tree=tmp_path / "t.tar")
    assert f"--extract-hook=sync-in '{odd}' /{recipe.site_packages}" in command


# --- the lock ------------------------------------------------------------------------------------------------------


def test_what_was_recorded_is_what_is_loaded(tmp_path: Path) -> None:
    images._record(tmp_path, locked())
    assert ImageLock.load(tmp_path).resolve("python") == locked()
    assert (tmp_path / "images.lock").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["images.lock"]


def test_recording_one_image_keeps_the_others(tmp_path: Path) -> None:
    images._record(tmp_path, locked(name="other"))
    images._record(tmp_path, locked())
    assert set(ImageLock.load(tmp_path).images) == {"other", "python"}


def test_an_image_that_was_never_built_is_an_error_with_the_command_that_mends_it(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="`toolcage images build python`"):
        ImageLock.load(tmp_path).resolve("python")


def test_an_image_of_an_older_recipe_is_an_error_with_the_command_that_mends_it(tmp_path: Path) -> None:
    images._record(tmp_path, locked(recipe_digest=OTHER))
    with pytest.raises(ImageError, match="another recipe; run `toolcage images build python`"):
        ImageLock.load(tmp_path).resolve("python")


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_lock_that_others_may_write_is_not_believed(mode: int, tmp_path: Path) -> None:
    images._record(tmp_path, locked())
    (tmp_path / "images.lock").chmod(mode)
    with pytest.raises(ImageError, match="writable by another user"):
        ImageLock.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":2,"images":{}}', b"\xff"])
def test_a_lock_that_is_not_readable_is_an_error_and_building_mends_it(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "images.lock").write_bytes(content)
    (tmp_path / "images.lock").chmod(0o600)
    with pytest.raises(ImageError, match="toolcage images build"):
        ImageLock.load(tmp_path)
    images._record(tmp_path, locked())
    assert ImageLock.load(tmp_path).resolve("python") == locked()


@pytest.mark.parametrize("name", ["latest", "toolcage/python", "sha256:abc", "../x"])
def test_a_lock_that_names_an_image_by_anything_but_a_digest_is_refused(name: str, tmp_path: Path) -> None:
    images._record(tmp_path, locked())
    path = tmp_path / "images.lock"
    path.write_text(path.read_text().replace(DIGEST, name))
    with pytest.raises(ImageError):
        ImageLock.load(tmp_path)


@pytest.mark.parametrize("held", [DIGEST, OTHER])
def test_either_form_of_the_id_verifies(held: str) -> None:
    assert verify(FakeStore({held: shown(held)}), locked()) == held


@pytest.mark.threat("P59")
@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({}, "is not in this engine"),
        ({"toolcage/python:aaaaaaaaaaaa": shown(DIGEST)}, "is not in this engine"),
        ({DIGEST: shown("sha256:" + "d" * 64)}, "another id"),
        ({DIGEST: shown(DIGEST, layer=OTHER)}, "other layers"),
        ({DIGEST: {"Id": DIGEST}}, "other layers"),
    ],
)
def test_a_missing_or_different_image_is_an_error_with_the_command_that_mends_it(
    held: dict[str, dict[str, Any]], why: str
) -> None:
    with pytest.raises(ImageError, match=f"{why}.*; run `toolcage images build python`"):
        verify(FakeStore(held), locked())


# --- removing ------------------------------------------------------------------------------------------------------


class EmptyingStore:
    """An engine that notes what it is told to remove."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def remove_image(self, reference: str) -> None:
        self.removed.append(reference)


def test_a_removed_image_is_not_in_the_lock_any_more_and_the_others_are(tmp_path: Path) -> None:
    images._record(tmp_path, locked(name="plots"), b"{}")
    images._record(tmp_path, locked())
    store = EmptyingStore()
    assert images.remove("plots", store, tmp_path).name == "plots"
    assert set(ImageLock.load(tmp_path).images) == {"python"}
    assert not list((tmp_path / "sbom").iterdir())
    assert store.removed == ["toolcage/plots:" + "a" * 12, "toolcage/plots:" + "b" * 12]


def test_an_image_that_was_never_built_is_not_removed_and_the_built_ones_are_named(tmp_path: Path) -> None:
    images._record(tmp_path, locked())
    store = EmptyingStore()
    with pytest.raises(ImageError, match="'plots' is not built here; those that are: python"):
        images.remove("plots", store, tmp_path)
    assert (set(ImageLock.load(tmp_path).images), store.removed) == ({"python"}, [])


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_a_shipped_image_is_not_removed_unless_that_is_confirmed(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images._record(tmp_path, locked())
    monkeypatch.setenv("TOOLCAGE_STATE_DIR", str(tmp_path))
    done = CliRunner().invoke(app, ["remove", "python"], input=answer)
    assert done.exit_code == 1
    assert "python: shipped; calls that need it are refused" in done.output
    assert set(ImageLock.load(tmp_path).images) == {"python"}
