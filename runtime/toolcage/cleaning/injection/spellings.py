"""The spellings that hide words from a search, undone: each reading is the text as a model could understand it.

Hidden characters, markup between letters, entities and JSON escapes, look-alike letters, digits for letters, letters
spaced apart, words reversed, Caesar's cipher in every shift, binary, decimal codes, hexadecimal, base64, base32 and
percent-encoding. A model reads all of these; so a search must. What is decoded is decoded once more at most.

Each reading is only made where the text shows signs of it. Everything is linear, and bounded for texts of megabytes:
past `_MOST_DECODED` characters the ciphers are not looked for.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final
from urllib.parse import unquote

from toolcage.cleaning.injection.concepts import concept
from toolcage.cleaning.injection.signals import Reading
from toolcage.cleaning.marks import views
from toolcage.facts.confusables import skeleton

_MOST_DECODED: Final = 128 * 1024
_MOST_PIECES: Final = 64

_TAG: Final = re.compile(r"</?[a-z][^<>]{0,400}>", re.IGNORECASE)
_JSON_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\([nrt\"/])")
# One class first, which the engine scans for fast, then a look back at what stood before it.
_BASE64: Final = re.compile(
    r"[A-Za-z0-9+/_-](?<![A-Za-z0-9+/_-]{2})[A-Za-z0-9+/_-]{19,}(?:[ \t]?\r?\n[A-Za-z0-9+/_-]{20,})*={0,2}"
)
_HEX: Final = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :,]?|(?:\\x|0x)[0-9A-Fa-f]{2},? ?){10,}")
_BINARY: Final = re.compile(r"(?<![0-9])(?:[01]{8}[ ,]?){6,}|(?<![0-9])(?:[01]{7}[ ,]){6,}[01]{7}")
_CODE_POINT: Final = "(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6])"
_DECIMAL: Final = re.compile(rf"(?<![0-9.])(?:{_CODE_POINT}[ ,]{{1,2}}){{9,}}{_CODE_POINT}(?![0-9.])")
_IN_URL: Final = r"[\w.~!*'(),-]"
_PERCENT: Final = re.compile(
    rf"(?<![\w.~!*'(),+%-])(?:{_IN_URL}{{0,40}}+(?:%[0-9A-Fa-f]{{2}}|\+)){{3,}}+{_IN_URL}{{0,40}}+"
)
# An address writes letters as they are: whoever encodes them hides them.
_NEEDLESS: Final = re.compile(r"(?:%(?:4[1-9A-Fa-f]|5[0-9Aa]|6[1-9A-Fa-f]|7[0-9Aa])){3}")
_BASE32: Final = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z2-7]{8}){3,}(?:[A-Z2-7]{2,7}={1,6})?(?![A-Za-z0-9])")
_MORSE: Final = re.compile(r"(?:[.\-·–]{1,6}[ /|]{1,3}){10,}[.\-·–]{1,6}")
_SPACED: Final = re.compile(r"(?:(?<!\w)[^\W_][ ._*\-|~]{1,6}){7,}[^\W_](?!\w)")
_LEET_RUN: Final = re.compile(r"[a-z0-9@$!|+]{4,}")
_LEET: Final = re.compile(r"(?=[a-z]{0,19}[013457@$!|+])(?=[0-9@$!|+]{0,19}[a-z])[a-z013457@$!|+]{4,20}")
_LEET_TABLES: Final = (str.maketrans("013457@$!|+", "oieastasilt"), str.maketrans("013457@$!|+", "oleastasllt"))
_WORDS: Final = re.compile(r"[a-z]{3,16}")
_READABLE: Final = re.compile(r"[^\W\d_]{2,}")

# Words that an attack can hardly do without and that a cipher leaves whole.
_TELLING_WORDS: Final = """
    ignore ignoring disregard instructions instruction previous password system prompt assistant override forget
    reveal secret commands directives overlook
"""
# The commonest words: three of them in one shift are no chance.
_COMMON_WORDS: Final = ("the", "and", "that", "this", "with", "say", "tell", "write", "state", "answer", "only", "you")
_FEWEST_COMMON: Final = 3
_TELLING: Final = tuple(_TELLING_WORDS.split())
_REVERSED: Final = frozenset(word[::-1] for word in _TELLING if len(word) > 5)


def _shifted(word: str, shift: int) -> str:
    return "".join(chr((ord(c) - 97 + shift) % 26 + 97) for c in word)


_SHIFTED: Final = {_shifted(word, shift): shift for shift in range(1, 26) for word in _TELLING if len(word) > 5}
_SHIFTED_COMMON: Final = {_shifted(word, shift): shift for shift in range(1, 26) for word in _COMMON_WORDS}
_ATBASH: Final = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA"
)
_ATBASHED: Final = frozenset(word.translate(_ATBASH) for word in _TELLING if len(word) > 5)
_MORSE_CODE: Final = """
    .- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --..
"""
_MORSE_LETTERS: Final = dict(zip(_MORSE_CODE.split(), "abcdefghijklmnopqrstuvwxyz", strict=True))


@dataclass(frozen=True, slots=True)
class _Code:
    """`runs` finds, in a text translated by `signs`, where `enough` characters of the code stand in a row."""

    name: str
    decode: Callable[[str], str]
    pattern: re.Pattern[str]
    signs: bytes
    enough: bytes
    runs: re.Pattern[bytes]
    goes_on: bool


def readings(text: str) -> Iterator[Reading]:
    """The plain text first, then what it spells otherwise; only readings that differ from those before them."""
    seen: set[str] = set()
    for view in views(text):
        plain = view.text
        for name, reading in _spelled(plain):
            lowered = reading.lower()
            if lowered not in seen:
                seen.add(lowered)
                yield Reading(name=name, text=lowered)
        for name, decoded in _decoded(plain):
            for inner_name, reading in ((name, decoded), *_decoded(decoded)):
                lowered = reading.lower()
                if lowered not in seen:
                    seen.add(lowered)
                    yield Reading(name=inner_name, text=lowered)


def _spelled(text: str) -> Iterator[tuple[str, str]]:
    """Whole texts with one habit of writing undone."""
    yield "plain", text
    current = text
    if "\\" in current:
        current = _JSON_ESCAPE.sub(_escaped, current)
    if "&" in current:
        current = unescape(unescape(current))
    if current != text:
        yield "escapes", current
    if "<" in current and _TAG.search(current):
        # Twice: words stand apart between blocks, and letters stand together around inline tags.
        yield "markup", _TAG.sub(" ", current)
        yield "markup", _TAG.sub("", current)
    if not current.isascii():
        lines = current.split("\n")
        looks = {line: skeleton(line) for line in set(lines)}
        yield "look_alikes", "\n".join(map(looks.__getitem__, lines))
    if len(current) > _MOST_DECODED:
        return
    lowered = current.lower()
    leet = _leet(lowered)
    if leet:
        for table in _LEET_TABLES:
            read = {run: match[0].translate(table) + run[match.end() :] for run, match in leet.items()}
            yield "leet", _LEET_RUN.sub(lambda match, read=read: read.get(match[0], match[0]), lowered)  # type: ignore[misc]
    spaced = _SPACED.findall(current) if _may_be_spaced(current) else []
    if spaced:
        yield "spaced", " ".join(_joined(run) for run in spaced[:_MOST_PIECES])


def _leet(lowered: str) -> dict[str, re.Match[str]]:
    """The runs that can be words in leetspeak, if at least two of them are words that mean something here: e-mail
    addresses, names with a number and words with an exclamation mark are read as they are."""
    runs = set(_LEET_RUN.findall(lowered))
    found = {run: match for run in runs if not run.isalpha() and (match := _LEET.match(run))}
    telling = {run for run, match in found.items() if any(concept(match[0].translate(t)) for t in _LEET_TABLES)}
    return found if len(telling) > 1 else {}


def _may_be_spaced(text: str) -> bool:
    """Whether letters stand alone in a row, as in `_SPACED`, whose first and last may have other signs beside them."""
    words = text.encode("ascii", "replace").translate(_LETTERS).split()
    return b" a a a a a a " in b" %b " % b" ".join(words)


def _escaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else {"n": "\n", "r": "\n", "t": " "}.get(match[3], match[3])


def _joined(run: str) -> str:
    """Letters spaced apart, put together; where the gaps differ, the wide ones are between words."""
    words = re.split(r"[ ._*\-|~]{2,6}", run) if re.search(r"\w[ ._*\-|~]\w", run) else [run]
    return " ".join("".join(c for c in word if c.isalnum()) for word in words)


def _decoded(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of the text that are another text in code, each kind's pieces together."""
    if len(text) > _MOST_DECODED:
        text = text[: _MOST_DECODED // 2] + "\n" + text[-_MOST_DECODED // 2 :]
    image = text.encode("ascii", "replace")
    for code in _CODES:
        pieces = map(code.decode, _written(text, image, code))
        found = [piece for piece in pieces if _READABLE.search(piece)]
        if found:
            yield code.name, "\n".join(found[:_MOST_PIECES])
    if "%" in text or "+" in text:
        signs = [match[0] for match in _PERCENT.finditer(_with_signs(text))]
        for name, encoded in (("percent_letters", [*filter(_NEEDLESS.search, signs)]), ("percent", signs)):
            found = [decoded for piece in encoded if _READABLE.search(decoded := _from_percent(piece))]
            if found:
                yield name, "\n".join(found[:_MOST_PIECES])
    lowered = text.lower()
    words = set(_WORDS.findall(lowered))
    for shift in _shifts(words):
        yield "caesar", _unshifted(lowered, shift)
    if words & _REVERSED:
        yield "reversed", lowered[::-1]
    if words & _ATBASHED:
        yield "atbash", lowered.translate(_ATBASH)


def _shifts(words: set[str]) -> set[int]:
    """By how many letters some of these words seem to be moved."""
    common = Counter(_SHIFTED_COMMON[word] for word in words & _SHIFTED_COMMON.keys())
    shifts = {_SHIFTED[word] for word in words & _SHIFTED.keys()}
    return shifts | {shift for shift, count in common.items() if count >= _FEWEST_COMMON}


def _written(text: str, image: bytes, code: _Code) -> Iterator[str]:
    """What looks like the code. It is sought only where enough of its characters stand in a row."""
    signs = image.translate(code.signs)
    if code.enough not in signs:  # told far sooner than by a search for runs
        return
    end = 0
    for run in code.runs.finditer(signs):
        # Base64 goes on behind a line end, which is no character of it.
        for match in code.pattern.finditer(text, max(end, run.start()), len(text) if code.goes_on else run.end()):
            if code.goes_on and match.start() >= run.end():
                break
            end = match.end()
            yield match[0]


def _with_signs(text: str) -> str:
    """The pieces between white space in which something can be percent-encoded."""
    return " ".join([piece for piece in text.split() if "%" in piece or "+" in piece])


def _text_of(raw: bytes) -> str:
    """The bytes as text, or '' where they are none: most of a picture's are not."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    letters = sum(c.isalpha() or c in " .,:;!?'\"\n-" for c in text)
    return text if letters > 0.8 * len(text) else ""


def _from_base64(piece: str) -> str:
    compact = "".join(piece.split()).rstrip("=")
    compact = compact[: len(compact) // 4 * 4] if len(compact) % 4 == 1 else compact
    try:
        raw = base64.urlsafe_b64decode(compact.replace("+", "-").replace("/", "_") + "=" * (-len(compact) % 4))
    except (binascii.Error, ValueError):
        return ""
    return _text_of(raw)


def _from_base32(piece: str) -> str:
    try:
        return _text_of(base64.b32decode(piece))
    except (binascii.Error, ValueError):
        return ""


def _from_percent(piece: str) -> str:
    return unquote(piece).replace("+", " ")


def _from_hex(piece: str) -> str:
    digits = re.sub(r"\\x|0x|[ :,]", "", piece)
    return _text_of(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _from_binary(piece: str) -> str:
    groups = re.findall(r"[01]{8}", piece) if re.match(r"[01]{8}", piece) else re.findall(r"[01]{7}", piece)
    return _text_of(bytes(int(group, 2) for group in groups))


def _from_decimal(piece: str) -> str:
    return _text_of(bytes(map(int, re.findall(r"[0-9]+", piece))))


def _from_morse(piece: str) -> str:
    words = re.split(r" ?/ ?|\||   ", piece.replace("·", ".").replace("–", "-"))
    return " ".join("".join(_MORSE_LETTERS.get(letter, "") for letter in word.split()) for word in words)


def _unshifted(lowered: str, shift: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return lowered.translate(str.maketrans(letters[shift:] + letters[:shift], letters))


def _signs(characters: str) -> bytes:
    """The table that makes each of these characters a 1 and any other a 0. A question mark is all beyond ASCII."""
    return bytes(chr(code) in characters for code in range(256))


_ALPHANUMERIC: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BASE32_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567="
# Letters and digits are an `a`, what may part spaced letters is a space, the rest is something else.
_LETTERS: Final = bytes(
    ord("a" if chr(code) in _ALPHANUMERIC + "?" else " " if chr(code) in " ._*-|~" else "#") for code in range(256)
)
_CODES: Final = tuple(
    _Code(name, decode, pattern, _signs(characters), b"\1" * least, re.compile(b"\1{%d,}" % least), name == "base64")
    for name, decode, pattern, characters, least in (
        ("base64", _from_base64, _BASE64, _ALPHANUMERIC + "+/_-", 20),
        ("base32", _from_base32, _BASE32, _BASE32_LETTERS, 24),
        ("hexadecimal", _from_hex, _HEX, "0123456789abcdefABCDEF\\x :,", 20),
        ("binary", _from_binary, _BINARY, "01 ,", 48),
        ("decimal", _from_decimal, _DECIMAL, "0123456789 ,", 29),
        ("morse", _from_morse, _MORSE, ".-? /|", 21),
    )
)
