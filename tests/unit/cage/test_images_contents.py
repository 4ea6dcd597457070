"""Pins, variants and the list of contents: what may be asked for, what is recorded, what is told."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from toolcage.cage import images
from toolcage.cage.debian import DebianPackage, licence_names, read_packages
from toolcage.cage.images import ImageLock, LockedImage, Variant, build_variant, read_sbom
from toolcage.cage.pins import check_request, pinned_versions, read_report
from toolcage.cage.recipe import SourceArchive, load_recipe, variant_recipe
from toolcage.cage.rootfs import unpack_source
from toolcage.cage.sbom import read_wheels, write_sbom
from toolcage.errors import ImageError

DIGEST = "sha256:" + "a" * 64
HASH = "b" * 64
PIN = f"seaborn==0.13.2 --hash=sha256:{HASH}"
LIBC = DebianPackage(
    name="libc6", version="1:2.41+x", architecture="amd64", sha256="c" * 64, source="glibc", licences=("LGPL-2.1+",)
)


class NoEngine:
    """Fails the test when anything is asked of it."""

    def load_image(self, archive: BinaryIO) -> None:
        raise AssertionError("nothing is loaded here")

    def image_id(self, reference: str) -> str | None:
        raise AssertionError("nothing is asked here")

    def image_inspect(self, reference: str) -> Mapping[str, Any] | None:
        raise AssertionError("nothing is asked here")


def plots(**changes: Any) -> LockedImage:
    base = load_recipe("python")
    made = Variant(base="python", base_digest=base.digest, requested=("seaborn==0.13.2",), pins=(PIN,))
    locked = LockedImage(
        name="plots",
        image_id=DIGEST,
        accepted_ids=(DIGEST,),
        recipe_digest=variant_recipe(base, "plots", (PIN,)).digest,
        diff_ids=(DIGEST,),
        architecture="amd64",
        packages={},
        wheels={},
        variant=made,
    )
    return replace(locked, **changes)


# --- requests and pins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["seaborn==0.13.2", "zope.interface==7.0", "httpx[http2]==0.28.1", "x==1!2.0+local"])
def test_an_exact_version_may_be_asked_for(text: str) -> None:
    assert check_request(text) == text


@pytest.mark.threat("P59")
@pytest.mark.parametrize(
    "text",
    [
        "seaborn",
        "seaborn>=0.13",
        "seaborn==*",
        "--index-url=http://evil.example==1",
        "-r==1",
        "a==1 --hash=sha256:00",
        "a==1\n--index-url http://evil.example",
        "a @ file:///etc/passwd",
        "./a==1",
        "a==1; python_version>'3'",
        "a==1\n",
    ],
)
def test_nothing_but_an_exact_version_reaches_pip(text: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="NAME==VERSION"):
        build_variant("python", "plots", [text], NoEngine(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_pinned_lines_are_read_by_normalised_name() -> None:
    text = f"# a comment==1\nA_b.c==1.0 \\\n    --hash=sha256:{HASH}\nd==2 --hash=sha256:{HASH}\n"
    assert pinned_versions(text) == {"a-b-c": "1.0", "d": "2"}


def test_what_pip_took_is_read_with_its_hash(tmp_path: Path) -> None:
    item = {"metadata": {"name": "Sea_Born", "version": "1.0"}, "download_info": {"archive_info": {"hashes": {}}}}
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"install": [item]}))
    with pytest.raises(ImageError, match="did not say which wheels"):
        read_report(path)  # a wheel without a hash is no pin
    item["download_info"]["archive_info"]["hashes"] = {"sha256": HASH}  # type: ignore[index]
    path.write_text(json.dumps({"install": [item]}))
    assert [wheel.pin for wheel in read_report(path)] == [f"sea-born==1.0 --hash=sha256:{HASH}"]


# --- variants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"), [("data", "name of a shipped image"), ("../x", "cannot name"), ("X", "cannot name")]
)
def test_a_variant_cannot_take_a_shipped_images_name_or_leave_the_folder(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=why):
        build_variant("python", name, ["a==1"], NoEngine(), tmp_path)


def test_a_variant_without_wheels_is_no_variant(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="at least one wheel"):
        build_variant("python", "plots", [], NoEngine(), tmp_path)


def test_a_recorded_variant_resolves_and_is_listed_after_the_shipped_images(tmp_path: Path) -> None:
    images._record(tmp_path, plots())
    lock = ImageLock.load(tmp_path)
    assert lock.resolve("plots") == plots()
    assert lock.names()[-1] == "plots"
    assert lock.recipe("plots").extra_wheels == (PIN,)


def test_a_variant_that_nobody_built_is_an_error_that_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"known ones are: .*python.*--with NAME==VERSION --as VARIANT"):
        ImageLock.load(tmp_path).resolve("plots")


def test_a_variant_is_outdated_when_its_base_changed(tmp_path: Path) -> None:
    images._record(tmp_path, plots(recipe_digest=DIGEST))
    with pytest.raises(ImageError, match="another recipe; run `toolcage images build plots`"):
        ImageLock.load(tmp_path).resolve("plots")


def test_other_pins_are_another_recipe_and_the_base_is_another_again() -> None:
    base = load_recipe("python")
    other = f"seaborn==0.13.3 --hash=sha256:{HASH}"
    digests = {base.digest, *(variant_recipe(base, "plots", pins).digest for pins in ((), (PIN,), (other,)))}
    assert len(digests) == 4


@pytest.mark.threat("P59")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PIN, "seaborn==0.13.2"),
        (PIN, f"{PIN} --index-url=http://evil.example"),
        (PIN, f"-r /etc/passwd --hash=sha256:{HASH}"),
        ('"seaborn==0.13.2"', '"--pre"'),
        ('"base": "python"', '"base": "../python"'),
    ],
)
def test_a_record_that_would_carry_more_than_a_pin_to_pip_is_refused(old: str, new: str, tmp_path: Path) -> None:
    images._record(tmp_path, plots())
    path = tmp_path / "images.lock"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ImageError, match="not a lock file of this version"):
        ImageLock.load(tmp_path)


# --- source archives -----------------------------------------------------------------------------------------------


def source(tmp_path: Path, names: list[str]) -> SourceArchive:
    path = tmp_path / "a-1.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 4
            out.addfile(info, io.BytesIO(b"text"))
    return SourceArchive(path=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), folder="a-1", package="a")


def test_of_a_source_archive_only_the_package_and_what_describes_it_are_taken(tmp_path: Path) -> None:
    target = tmp_path / "out"
    names = ["a-1/setup.py", "a-1/PKG-INFO", "a-1/LICENSE", "a-1/a/x.py", "a-1/a/../../up.py", "/etc/x", "a-1/ab/x"]
    unpack_source(source(tmp_path, names), target)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"a-1.tar.gz", "out/a-1.dist-info/METADATA", "out/a-1.dist-info/licenses/LICENSE", "out/a/x.py"}


def test_a_source_archive_of_other_bytes_is_refused(tmp_path: Path) -> None:
    made = source(tmp_path, ["a-1/a/x.py"])
    made.path.write_bytes(made.path.read_bytes() + b"\0")
    with pytest.raises(ImageError, match="is not the file that its recipe names"):
        unpack_source(made, tmp_path / "out")


# --- the list of contents ------------------------------------------------------------------------------------------


def test_licences_are_read_from_machine_readable_copyright_files_only() -> None:
    header = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
    text = f"{header}\nFiles: *\nLicense: GPL-3+ or  MIT\n the text\n\nFiles: b\nLicense: MIT\n"
    assert licence_names(text) == ("GPL-3+ or MIT", "MIT")
    assert licence_names("License: MIT\n") == ()


@pytest.mark.parametrize("gone", ["Package", "Version", "Architecture", "SHA256"])
def test_a_package_that_does_not_say_what_it_is_is_an_error(gone: str) -> None:
    lines = {"Package": "a", "Version": "1", "Architecture": "all", "SHA256": HASH}
    paragraph = "".join(f"{name}: {value}\n" for name, value in lines.items() if name != gone)
    with pytest.raises(ValueError, match=gone):
        read_packages(paragraph, {})


def test_the_document_names_every_package_with_address_hash_and_licence(tmp_path: Path) -> None:
    for name, fields in {
        "a_b-1": "Name: A_b\nVersion: 1.0+x\nLicense-Expression: MIT\n",
        "c-2": "Name: c\nVersion: 2\nLicense: Copyright\n and more\nClassifier: License :: OSI Approved :: BSD\n",
        "d-3": "Name: d\nVersion: 3\n",
        "e-4": "Name: e\nVersion: 4\nLicense: MIT License\n and more\n",
    }.items():
        (tmp_path / f"{name}.dist-info").mkdir()
        (tmp_path / f"{name}.dist-info" / "METADATA").write_text(f"{fields}\nLicense: in the text\n")
    recipe = load_recipe("python")
    wheels = read_wheels(tmp_path, {"a-b": HASH})
    document = json.loads(write_sbom(recipe, DIGEST, [LIBC], wheels))
    libc, a, c, d, e = document["components"]
    assert libc["purl"] == "pkg:deb/debian/libc6@1%3A2.41%2Bx?arch=amd64&distro=trixie"
    assert libc["hashes"] == [{"alg": "SHA-256", "content": "c" * 64}]
    assert libc["licenses"] == [{"license": {"name": "LGPL-2.1+"}}]
    assert (a["purl"], a["licenses"]) == ("pkg:pypi/a-b@1.0%2Bx", [{"expression": "MIT"}])
    assert a["hashes"][0]["content"] == HASH
    assert c["licenses"] == [{"license": {"name": "BSD"}}]
    assert "licenses" not in d
    assert e["licenses"] == [{"license": {"name": "MIT License"}}]
    assert document["metadata"]["component"]["version"] == DIGEST
    assert write_sbom(recipe, DIGEST, [LIBC], wheels) == write_sbom(recipe, DIGEST, [LIBC], wheels)


def test_the_list_is_printed_only_when_it_is_the_one_that_was_recorded(tmp_path: Path) -> None:
    content = b'{"bomFormat": "CycloneDX"}'
    locked = plots(sbom=f"sha256:{hashlib.sha256(content).hexdigest()}")
    images._record(tmp_path, locked, content)
    assert read_sbom(tmp_path, locked) == content.decode()
    (tmp_path / "sbom" / "plots.cdx.json").write_bytes(content + b" ")
    with pytest.raises(ImageError, match="no list of contents; run `toolcage images build plots`"):
        read_sbom(tmp_path, locked)
    with pytest.raises(ImageError, match="no list of contents"):
        read_sbom(tmp_path, plots())
