"""Facts of paths: their components, and every other way in which some program could read the same text.

A check that sees `..%2f` as a name is passed by a program that decodes it. So a path is read several times: as it is,
percent-decoded (to the end, `%u` and overlong forms included), with backslashes and look-alikes taken for separators.
`leaves` is true if any of these readings goes above the root, `rooted` if any begins at one. Comparison is by
component, never by prefix of text.

Nothing here touches a file system. What opens a file uses `names` and opens beneath a directory's descriptor
(`facts/beneath.py` says how); a link inside the tree is that opener's business.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.types import Facts

WORKSPACE: Final = "/workspace"
"""Where a cage keeps a call's files. A path that spells it out means the same as one relative to it."""

_MAX_READINGS: Final = 12
_MAX_READ: Final = 16 * 1024
_PERCENT: Final = re.compile(r"%(?:u([0-9A-Fa-f]{4})|([0-9A-Fa-f]{2}))")
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})|(?<![0-9A-Za-z])0x(2[5eEfF]|5[cC])(?=\W|0x|\Z)")
_HEX_SEPARATOR: Final = re.compile(r"0x(2[eEfF]|5[cC])")
_BARE_HEX: Final = re.compile(r"(?<=\.\.)(?:25){0,3}(?:2[fF]|5[cC])")  # whose percent sign a filter took away
_YEN: Final = re.compile("(?<=\\.\\.)[¥₩]")  # where a backslash stands in Japanese and Korean code pages
_STREAM: Final = re.compile(r":\$[A-Z]", re.IGNORECASE)
_ENTITY: Final = re.compile(r"&(?:#(x[0-9A-Fa-f]{1,6}|[0-9]{1,7})|(sol|bsol|period));?")
# `C:x` is relative to wherever Windows stands on that drive. To what opens files here it is a name, as `a:b.txt` is.
_DRIVE: Final = re.compile(r"[A-Za-z]:(?:[/\\]|\.{1,2}(?:[/\\]|\Z)|\Z)", re.ASCII)
# Without slashes only where what follows could be meant for a reader of URLs: `data: raw.csv` names a file.
_SCHEME: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.\-]{1,20}:){1,3}[/\\]{2}|https?:[/\\]|expect:(?! )|(?:file|data|php|jar|zip|phar):"
    r"(?:[.~]|[^/\\:,;|#]*[/\\:,;|#]|\Z)",
    re.IGNORECASE,
)
_HOME: Final = re.compile(r"~[A-Za-z_][A-Za-z0-9_.-]*\Z|~[+-]?\Z|\$[A-Z_]+\Z|\$\{[A-Za-z_]+\}\Z|%[A-Z_]+%\Z", re.ASCII)
_OWN_NAME: Final = re.compile(r"~[A-Za-z0-9_-]+\.[A-Za-z0-9]{2,5}\Z", re.ASCII)  # `~draft.txt`, alone: nobody's home
# `%04d` in the name of a series of pictures, and letters of the old 8-bit encodings (`caf%E9`).
_COUNTER: Final = re.compile("[\x01-\x09](?=[dioxX](?![0-9A-Fa-f]))")
_LETTERS: Final = re.compile(rb"(?!\xff\xfe|\xfe\xff)[\xaa\xb5\xba\xc2-\xd6\xd8-\xf6\xf8-\xff]+")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SEPARATORS: Final = str.maketrans(
    dict.fromkeys("⁄∕∖⧵⧸⧹﹨／＼╱╲⟋⟍\uefc8\uf025\\", "/")
    | {
        "\uff05": "%",
        "\u2024": ".",
        "\u2025": "..",
        "\u2026": "...",
        "\uff0e": ".",
        "\ufe52": ".",
        "\u3002": ".",
        "\uff61": ".",
    }
    # Some file systems and programs drop these: `..` with one in it is `..` to them.
    | dict.fromkeys(map(chr, (0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2060, 0x2070), 0xFEFF)), "")
)
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{name}{n}" for name in ("com", "lpt") for n in "123456789¹²³"]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One path. `names`: its components beneath the root, `.` and `..` resolved; meaningless if `leaves` or `rooted`.

    `readings` is how often it could be read anew. `device`: a component that Windows takes for a device; `trailing`:
    one that ends in a dot or space, which Windows drops; `stream`: `:$DATA` and its like. `folded`: `names` as a file
    system that ignores case and normalisation compares them.
    """

    text: str
    names: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    leaves: bool = False
    rooted: bool = False
    drive: bool = False
    home: bool = False
    scheme: bool = False
    backslash: bool = False
    control: bool = False
    dots: bool = False
    undecodable: bool = False
    encoded: bool = False
    device: bool = False
    trailing: bool = False
    stream: bool = False
    longest: int = 0
    utf8_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFacts(Facts):
    """One `Path` for each text of the argument."""

    kind: Literal["path"] = "path"
    paths: tuple[Path, ...] = ()
    has_nul: bool = False


def read(*texts: str) -> PathFacts:
    """The facts of one or several paths. Never refuses."""
    paths = tuple(map(read_path, texts))
    return PathFacts(paths=paths, has_nul=any("\x00" in text for text in texts))


def read_path(text: str) -> Path:
    """One path, in all its readings. Linear, never raises."""
    readings, undecodable = _readings(text[:_MAX_READ])
    flat = [reading.replace("\\", "/") for reading in readings]
    steps = [_beneath_workspace(reading) for reading in flat]
    names = _resolve(_beneath_workspace(text))
    parts = [part for reading in steps for part in reading.split("/") if part]
    return Path(
        text=text,
        names=names or (),
        folded=tuple(unicodedata.normalize("NFKC", name).casefold() for name in names or ()),
        leaves=any(_resolve(reading) is None for reading in steps),
        rooted=any(reading.startswith("/") for reading in steps),
        drive=any(_DRIVE.match(reading) for reading in flat),
        home=any(map(_is_home, flat)),
        scheme=any(_SCHEME.match(reading) for reading in readings),
        backslash="\\" in text,
        control=_CONTROL.search(text) is not None
        or any(_CONTROL.search(_COUNTER.sub("", reading)) for reading in readings[1:]),
        dots=any(_only_dots(part) for part in parts),
        undecodable=undecodable,
        encoded=len(readings) > 1,
        device=any(part.partition(".")[0].rstrip(" ").lower() in _DEVICES for part in parts),
        trailing=any(part.endswith((".", " ")) and part not in (".", "..") for part in parts),
        stream=_STREAM.search(text) is not None,
        longest=max((len(name.encode("utf-8", "surrogatepass")) for name in names or ()), default=0),
        utf8_bytes=len(text.encode("utf-8", "surrogatepass")),
    )


def _beneath_workspace(path: str) -> str:
    if path == WORKSPACE:
        return ""
    return path[len(WORKSPACE) + 1 :] if path.startswith(WORKSPACE + "/") else path


def _resolve(path: str) -> tuple[str, ...] | None:
    """The components with `.` and `..` resolved, or None when it goes above where it began, even for a moment."""
    names: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not names:
                return None
            names.pop()
        elif part not in ("", "."):
            names.append(part)
    return tuple(names)


def _is_home(path: str) -> bool:
    first, slash, _ = path.partition("/")
    return _HOME.match(first) is not None and (bool(slash) or _OWN_NAME.match(first) is None)


def _only_dots(part: str) -> bool:
    """`...`, `.. `, `. .`, `..;x`: names that are `..` or `.` to a program that trims or drops parameters."""
    return part not in (".", "..") and not part.partition(";")[0].strip(". \u00a0")


def _readings(text: str) -> tuple[list[str], bool]:
    """The text and everything that decoding can make of it, and whether some of it decodes to no text."""
    found = [text]
    undecodable = False
    for reading in found:  # grows while it is walked
        if len(found) >= _MAX_READINGS:
            return found, True  # wrapped more often than anybody does in good faith
        for other, failed in _decodings(reading):
            undecodable = undecodable or failed
            if other not in found:
                found.append(other)
    return found, undecodable


def _decodings(text: str) -> Iterator[tuple[str, bool]]:
    if "%" in text:
        decoded, failed = _percent_decoded(text)
        yield decoded, failed
        if not decoded.isascii():  # programs that drop what is no UTF-8
            yield _percent_decoded(text, drop=True)[0], False
    if ".." in text:
        yield _BARE_HEX.sub("/", text), False
    if "\\" in text or "0x" in text:
        yield _ESCAPE.sub(_character, _HEX_SEPARATOR.sub(lambda m: chr(int(m[1], 16)), text)), False
    if "&" in text:
        yield _ENTITY.sub(_entity, text), False
    yield _folded(text), False


def _folded(text: str) -> str:
    """With look-alikes of separators and dots taken for them, and without what nobody sees. The rest stays as it is."""
    return text if text.isascii() else _YEN.sub("/", text.translate(_SEPARATORS))


def _percent_decoded(text: str, *, drop: bool = False) -> tuple[str, bool]:
    """One level of percent-decoding, and whether its bytes are neither UTF-8 nor letters of an 8-bit encoding.
    Overlong forms of `.` and `/` are neither."""
    pieces: list[str] = []
    position, failed = 0, False
    run = bytearray()
    for match in _PERCENT.finditer(text):
        if match.start() > position or match[1]:
            failed = _flush(run, pieces, drop) or failed
            pieces.append(text[position : match.start()])
        if match[1]:
            pieces.append(chr(int(match[1], 16)))
        else:
            run.append(int(match[2], 16))
        position = match.end()
    failed = _flush(run, pieces, drop) or failed
    return "".join(pieces) + text[position:], failed


def _flush(run: bytearray, pieces: list[str], drop: bool) -> bool:
    raw = bytes(run)
    run.clear()
    try:
        pieces.append(raw.decode("utf-8"))
    except UnicodeDecodeError:
        pieces.append(raw.decode("utf-8", "ignore") if drop else raw.decode("latin-1"))
        return _LETTERS.fullmatch(raw) is None
    return False


def _character(match: re.Match[str]) -> str:
    return chr(int(next(group for group in match.groups() if group), 16))


def _entity(match: re.Match[str]) -> str:
    if match[2]:
        return {"sol": "/", "bsol": "\\", "period": "."}[match[2]]
    code = int(match[1][1:], 16) if match[1].startswith("x") else int(match[1])
    return chr(code) if code < 0x110000 else ""
