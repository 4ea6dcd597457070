"""How the value of a program's last expression shows itself in a notebook, as files beside its text.

A table of pandas or polars, an image, a formula: objects that say `_repr_html_`, `_repr_png_` and the like. What they
say becomes `value.html`, `value.png`, … in the current folder and leaves the cage as every file does, under the same
caps; the value itself stays what it was. Calling these methods is calling the program again: one that raises, hangs or
answers nonsense costs that file, or the call its time, and nothing else.
"""

import base64
import binascii
import json
import os
import sys
from typing import Any, Final

MAX_BYTES: Final = 1024 * 1024
"""Of one representation."""

TEXTS: Final = {
    "text/html": ("_repr_html_", "html"),
    "text/markdown": ("_repr_markdown_", "md"),
    "image/svg+xml": ("_repr_svg_", "svg"),
    "text/latex": ("_repr_latex_", "tex"),
}
_PNG: Final = ("image/png", "_repr_png_", "png")
_JSON: Final = ("application/json", "_repr_json_", "json")
_PNG_BEGINS: Final = b"\x89PNG\r\n\x1a\n"
_BUNDLE: Final = "_repr_mimebundle_"


def save_displayed(value: Any) -> None:
    """Writes one file for each representation that `value` gives. Never raises."""
    try:
        if type(value).__module__ != "builtins":
            _save(value)
    except BaseException as error:  # noqa: BLE001 - the value's own code runs all the way
        _note("representation", error)


def _save(value: Any) -> None:
    bundle = _asked(value, _BUNDLE)
    bundle = bundle if type(bundle) is dict else {}
    for mime, (method, extension) in TEXTS.items():
        said = bundle[mime] if mime in bundle else _asked(value, method)
        if isinstance(said, str):
            _write(said.encode("utf-8", "backslashreplace"), extension)
    mime, method, extension = _PNG
    picture = _picture(bundle[mime] if mime in bundle else _asked(value, method))
    if picture is not None:
        _write(picture, extension)
    mime, method, extension = _JSON
    said = bundle[mime] if mime in bundle else _asked(value, method)
    if isinstance(said, dict | list):
        _write(json.dumps(said).encode(), extension)


def _asked(value: Any, method: str) -> Any:
    """What the method says, without the metadata that may come along; None where there is none or it fails. It is
    looked up on the class, as notebooks do: some objects answer to every name."""
    try:
        found = getattr(type(value), method, None)
        said = found(value) if callable(found) and not isinstance(value, type) else None
    except BaseException as error:  # noqa: BLE001 - as above
        _note(method, error)
        return None
    return said[0] if isinstance(said, tuple) and said else said


def _picture(said: Any) -> bytes | None:
    """Bytes of a PNG, from bytes or from base64 as bundles carry it."""
    if isinstance(said, str):
        try:
            said = base64.b64decode(said, validate=False)
        except (ValueError, binascii.Error):
            return None
    return bytes(said) if isinstance(said, bytes | bytearray) and said.startswith(_PNG_BEGINS) else None


def _write(content: bytes, extension: str) -> None:
    if len(content) > MAX_BYTES:
        print(f"the value's {extension} is larger than {MAX_BYTES // 1024} KiB and was left out", file=sys.stderr)
        return
    try:
        place = 1
        while os.path.lexists(name := f"value.{extension}" if place == 1 else f"value_{place}.{extension}"):
            place += 1
        with open(name, "xb") as handle:
            handle.write(content)
    except OSError as error:  # no room is left, or the program's folder is gone
        _note(extension, error)


def _note(what: str, error: BaseException) -> None:
    try:
        print(f"the value's {what} could not be had: {type(error).__name__}", file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the program may have replaced stderr
        return
