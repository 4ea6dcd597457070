"""What a value must be to count as a secret: checksums, structures, randomness, and what is a placeholder or code.

Predicates of `secret_shapes` and its neighbours, each over the value alone. A predicate says whether it is one, never
where it stands.

Sources: https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/ (CRC-32 in base 62);
https://en.bitcoin.it/wiki/Base58Check_encoding
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from typing import Final

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHECKSUM_LENGTH: Final = 6


def always(_value: str) -> bool:
    """Whether the form alone is enough: yes."""
    return True


def checksum(payload: str) -> str:
    """The six characters that GitHub and npm put behind `payload`: its CRC-32 in base 62."""
    number, digits = zlib.crc32(payload.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def is_checked(value: str) -> bool:
    """A token whose checksum is right, or one as mixed as real ones: a wrong checksum may be a cut or a new form.

    A name of lower-case letters and digits behind the same prefix is neither.
    """
    payload = value.split("_", 2 if value.startswith("github_pat_") else 1)[-1]
    right = any(
        checksum(payload[: end - _CHECKSUM_LENGTH]) == payload[end - _CHECKSUM_LENGTH : end]
        for end in {36, 82, len(payload)}
        if _CHECKSUM_LENGTH < end <= len(payload)
    )
    return right or is_mixed_case(payload)


def mixed(value: str) -> bool:
    """Whether digits and letters both occur."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def is_random(value: str) -> bool:
    """Both cases and digits, or one long mixed part: words with hyphens and a number, as in a style sheet, are not."""
    parts = re.split("[-_]", value)
    return mixed(value) and (is_mixed_case(value) or any(len(part) >= 16 and mixed(part) for part in parts))


def is_mixed_case(value: str) -> bool:
    """Upper case, lower case and digits, as random characters have and hexadecimal digests and names have not."""
    return mixed(value) and value.lower() != value and value.upper() != value


def is_jwt(value: str) -> bool:
    header = value.split(".", 1)[0]
    try:
        decoded = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(decoded, dict) and ("alg" in decoded or "enc" in decoded)


PLACEHOLDER = re.compile(
    r"(?:[:*x.•_#-]+|<[\w -]*>?|\$[{(].*|\$[A-Za-z_]+|%\(?[A-Za-z_]*\)?[sd%]?|\{.*\}?|\[redacted.*"
    r"|(?:your|my|the|some)[-_ ].*|(?:none|null|true|false|undefined|example|changeme|password|passwd|secret|redacted"
    r"|required|optional|string|str)"
    r"|[A-Za-z_]+=|:[A-Za-z_(].*|\$[A-Za-z_]+/.*|\(\w+\)\..*|\"\{.*|(?:[A-Za-z][A-Za-z_.-]*/)+[A-Za-z][A-Za-z_.-]*"
    r"|v?[0-9]+(?:\.[0-9]+)+(?:-[0-9]+(?:\.[0-9]+)*)?"  # the next name, a version
    # What an interface says about a password: a sentence or a word without digits, in whatever language
    r"|(?=[^:.…?!。：՝]*[:.…?!。：՝]+\Z)[^0-9@#$%^&*+=_|~\\/]*|(?=.{0,200}?[^\W\d_a-z])[^0-9@#$%^*+=_|~]*"
    r"|(?-i:[A-Z])(?=\S*\s)(?=[^\n]*?\s(?-i:[a-z]))[^0-9]*|(?=[^{<]*(?:\{\{|</)).*"
    r"|(?=\S{1,40}(?:\s\S{1,40}){3}).*[.。?!…]"
    r")\Z",
    re.IGNORECASE,
)
# The shell's own variables, and where a file lies. A random key may begin with a slash too, but not in plain words.
_FOLDER = re.compile(r"(?:[/~.]|[A-Za-z]:[/\\])[^\n:;]*\Z|[A-Za-z]:\Z")
_PATH = re.compile(r"(?:[~.]{1,2}|/[a-z][a-z._-]*[0-9]{0,3})(?:/[a-z._-]+[0-9]{0,3})+/?\Z")
NEXT_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*[=:]")
"""What stands on the line behind a name that was given nothing: `PASSWORD=`, and then `DEBUG=1`."""
_CODE = re.compile(r"\(*\$?[A-Za-z_][\w.]*(?:(?:::|->?)[\w.]*)*(?:[(\[].*|[)\]};:,]*)\Z")
_PART_OF_CODE = re.compile(r"[(\[.]|::|->")


def is_password(value: str) -> bool:
    """A value after `password=`: not a placeholder, not an expression, not a plain word of prose."""
    if PLACEHOLDER.match(value):
        return False
    if _CODE.match(value):  # an identifier, an attribute or a call, unless it mixes in digits as passwords do
        return mixed(value) and _PART_OF_CODE.search(value) is None
    return any(c.isdigit() for c in value) or (any(not c.isalnum() for c in value.strip(".,:;!?)")) and len(value) >= 8)


def names_a_place(name: str, value: str) -> bool:
    """Whether what a name like a password's says is a folder or a file: `PWD=/workspace`, `secret: /run/secrets/db`."""
    if name in ("PWD", "OLDPWD") and _FOLDER.match(value):
        return True
    return _PATH.match(value) is not None


_MARK = re.compile(r"[a-z_]+\]")  # the rest of what was put in the place of a user that was a key


def is_url_password(value: str) -> bool:
    if _MARK.fullmatch(value):
        return False
    return PLACEHOLDER.match(value) is None or value.lower() in ("password", "secret", "changeme", "example")


UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)


_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")


def is_bearer(value: str) -> bool:
    """Digits and letters, no UUID and no name of a constant."""
    return mixed(value) and UUID.match(value) is None and _CONSTANT.match(value) is None


_SYLLABLES = re.compile("[a-z]{3,}")


def is_scattered(value: str) -> bool:
    """Both cases and digits, and few small letters in a row, of which names are made (`SomeName2026`)."""
    return is_mixed_case(value) and sum(map(len, _SYLLABLES.findall(value))) < 0.45 * len(value)


def is_opaque(value: str) -> bool:
    """Scattered characters, or one long part of digits and letters of one case."""
    return is_scattered(value) or any(len(part) >= 16 and mixed(part) and not is_mixed_case(part)
                                      for part in re.split("[-_]", value))  # fmt: skip


def is_session(value: str) -> bool:
    """The value of a cookie that says who somebody is: long and random, no UUID, which only counts visits."""
    return is_random(value) and UUID.match(value) is None and len(set(value)) > 9


def is_spoken_password(value: str) -> bool:
    """A word of prose that nobody writes as a word: digits, and both cases or a sign within. No name of a method."""
    bare = value.rstrip(".,;:!?)\"'")
    signs = any(c in "!@#$%^&*+=?~" for c in bare)
    return mixed(bare) and len(bare) >= 8 and (is_mixed_case(bare) or signs) and _NO_WORD.match(bare) is None


_NO_WORD = re.compile(r"[!-]|base-?(?:16|32|58|64)|sha|md[245]|hmac|pbkdf|aes|rfc|utf|iso|https?:", re.IGNORECASE)


def is_given_password(value: str) -> bool:
    """A word behind an option such as `--password`: letters and digits, and neither a place nor another assignment."""
    return mixed(value) and value[0] not in "-/.~$<{[%\\\"'" and "=" not in value and is_password(value)


def is_basic(value: str) -> bool:
    """Base64 of a name, a colon and a password."""
    try:
        name, colon, password = base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
    except (ValueError, UnicodeDecodeError):
        return False
    return bool(colon) and len(password) >= 3 and (name + password).isprintable()


def is_authorization(value: str) -> bool:
    """What follows a scheme in a header: base64 of a name and a password, or something with digits and letters."""
    return is_basic(value) or (len(value) >= 16 and mixed(value))


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def is_base58_checked(value: str) -> bool:
    """Whether the last four bytes are the first of the double SHA-256 of the rest, as in a Bitcoin key."""
    number = 0
    for character in value:
        number = number * 58 + _BASE58.index(character)
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]
