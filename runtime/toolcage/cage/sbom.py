"""What is in an image, as a CycloneDX 1.6 document: every Debian package and every wheel, with hash and licence.

Written by us from what the build already holds (`debian`, the wheels' own metadata), so that it needs no scanner and is
the same text for the same image. Licences are what the packages declare, and are left out where they declare nothing
that a program can read. It judges nothing; `toolcage images sbom NAME` prints it for the tools that do.
"""

from __future__ import annotations

import email.parser
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from toolcage.cage.debian import DebianPackage
from toolcage.cage.pins import normalised
from toolcage.cage.recipe import Recipe

_CLASSIFIER: Final = "License :: "
_SHORT: Final = 80
"""A License field longer than this, or of several lines, is a whole licence text and no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelComponent:
    """One Python package of an image. `expression` is its SPDX licence expression where it has one; otherwise `licence`
    is a name."""

    name: str
    version: str
    sha256: str | None
    expression: str | None = None
    licence: str | None = None


def read_wheels(folder: Path, hashes: Mapping[str, str]) -> tuple[WheelComponent, ...]:
    """The Python packages unpacked in `folder`, sorted by name, with the hash of each by normalised name."""
    found = (_wheel(path.read_text(encoding="utf-8"), hashes) for path in folder.glob("*.dist-info/METADATA"))
    return tuple(sorted(found, key=lambda wheel: wheel.name))


def write_sbom(
    recipe: Recipe, image_id: str, packages: Sequence[DebianPackage], wheels: Sequence[WheelComponent]
) -> bytes:
    """The document for the image with the config digest `image_id`; the same bytes for the same arguments."""
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'toolcage:{recipe.name}:{image_id}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": "image",
                "name": f"toolcage/{recipe.name}",
                "version": image_id,
                "description": recipe.description,
            }
        },
        "components": [
            *(_debian(package, recipe.suite) for package in packages),
            *(_pypi(wheel) for wheel in wheels),
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=False).encode() + b"\n"


def _wheel(metadata: str, hashes: Mapping[str, str]) -> WheelComponent:
    fields = email.parser.HeaderParser().parsestr(metadata)
    name = normalised(str(fields["Name"]))
    expression = fields["License-Expression"]
    return WheelComponent(
        name=name,
        version=str(fields["Version"]),
        sha256=hashes.get(name),
        expression=None if expression is None else str(expression).strip(),
        licence=_licence(str(fields["License"] or ""), [str(item) for item in fields.get_all("Classifier", [])]),
    )


def _licence(text: str, classifiers: Sequence[str]) -> str | None:
    """A short name: what the field says if it is one, else the last part of the trove classifiers, else the title of
    the licence text that some put there."""
    lines = text.strip().splitlines() or [""]
    if len(lines) == 1 and 0 < len(lines[0]) <= _SHORT and lines[0] != "UNKNOWN":
        return lines[0]
    names = [item.rsplit(" :: ", 1)[-1] for item in classifiers if item.startswith(_CLASSIFIER)]
    title = lines[0] if lines[0].endswith("License") else None
    return "; ".join(names) or title


def _debian(package: DebianPackage, suite: str) -> dict[str, Any]:
    purl = (
        f"pkg:deb/debian/{quote(package.name)}@{quote(package.version, safe='.~-')}"
        f"?arch={package.architecture}&distro={suite}"
    )
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
    }
    if package.licences:
        component["licenses"] = [{"license": {"name": name}} for name in package.licences]
    if package.homepage:
        component["externalReferences"] = [{"type": "website", "url": package.homepage}]
    if package.source:
        component["properties"] = [{"name": "toolcage:debian:source", "value": package.source}]
    return component


def _pypi(wheel: WheelComponent) -> dict[str, Any]:
    purl = f"pkg:pypi/{quote(wheel.name)}@{quote(wheel.version, safe='.')}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": wheel.name,
        "version": wheel.version,
        "purl": purl,
    }
    if wheel.sha256:
        component["hashes"] = [{"alg": "SHA-256", "content": wheel.sha256}]
    if wheel.expression:
        component["licenses"] = [{"expression": wheel.expression}]
    elif wheel.licence:
        component["licenses"] = [{"license": {"name": wheel.licence}}]
    return component
