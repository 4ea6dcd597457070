"""Whether the key of an object says that its value is a secret.

In parsed JSON a string stands alone: what a text says in front of it is its key. A key that ends in a word for a
password (`dbPassword`, `client_secret`, `X-API-Key`) makes any value one that is no placeholder and no prose; one that
ends in `token`, `authorization` or a word for an application's key, only what looks random. Tokens that page through
a list, and UUIDs, stay.
"""

from __future__ import annotations

import re

from toolcage.cleaning.secret_values import (
    PLACEHOLDER,
    is_authorization,
    is_basic,
    is_bearer,
    is_mixed_case,
    is_opaque,
    names_a_place,
)
from toolcage.cleaning.shape import NAMED, PAGING

_SHORTEST = 4
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PASSWORDS = re.compile(rf"(?:[\w-]{{1,40}}[_-])?{NAMED}", re.IGNORECASE)
_PAGES = "|".join(PAGING)
_TOKENS = re.compile(rf"(?!(?:[\w-]{{0,40}}[_-])?(?:{_PAGES})[_-])(?:[\w-]{{1,40}}[_-])?token", re.IGNORECASE)
_APPLICATION_KEYS = re.compile(
    r"(?:[\w-]{1,40}[_-])?(?:app(?:lication)?|auth|admin|master|subscription|shared|license|hmac|webhook)[_-]?key",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"(?:proxy-)?authorization", re.IGNORECASE)
_SCHEME = re.compile(r"(?:[A-Za-z]{3,12}\s{1,3})?([A-Za-z0-9._~+/=-]{8,})\Z")
_RANDOM = re.compile(r"[A-Za-z0-9_.~+/=-]{20,}\Z")


# What all of them end in.
_ENDS = ("password", "passwd", "passphrase", "pwd", "secret", "key", "token", "authorization")
_WHOLE = ("auth", "d", "k")


def names_secret(key: str) -> bool:
    """Whether the key may say that its value is a secret."""
    if key in _WHOLE:
        return True
    if key.isascii() and not key.strip().lower().endswith(_ENDS):
        return False
    name = _separated(key)
    return any(pattern.fullmatch(name) for pattern in (_PASSWORDS, _TOKENS, _APPLICATION_KEYS, _HEADERS))


def named_secret(key: str, value: str) -> bool:
    """Whether the value under this key of an object is a secret by the key's own word. Prose about one is not.

    A placeholder in angle brackets is one after `html: inert` too."""
    value = value.replace("&lt;", "<")
    if len(value) < _SHORTEST or PLACEHOLDER.match(value) is not None:
        return False
    name = _separated(key)
    if _PASSWORDS.fullmatch(name):
        return not any(map(str.isspace, value)) and not names_a_place(key.strip(), value)
    if _HEADERS.fullmatch(name):
        said = _SCHEME.match(value)
        return said is not None and is_authorization(said[1])
    if _TOKENS.fullmatch(name):
        return _RANDOM.match(value) is not None and is_bearer(value)
    if _APPLICATION_KEYS.fullmatch(name):
        return len(value) >= 16 and _RANDOM.match(value) is not None and is_opaque(value)
    if key == "auth":
        return is_basic(value)
    return key in _WHOLE and len(value) >= 40 and _RANDOM.match(value) is not None and is_mixed_case(value)


def _separated(key: str) -> str:
    """`dbPassword` as `db_Password`."""
    return _HUMP.sub("_", key.strip())
