r"""Secrets that are known by how they are built, whoever made them, and known secrets in base64 or percent-encoded.

Hashes of passwords in the crypt and related formats, private keys in DER, JSON Web Keys, keys of wallets by their
checksum, tokens of AWS sessions, addresses whose user is a key, and a few keys with a mark in their middle. Digests of
files have none of these forms.

Of keys in two parts those are found whose checksum says where they end (GitHub, npm). Not found: others that are split,
a secret in an encoding within an encoding, or in base64 behind something else.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from toolcage.cleaning.secret_values import (
    PLACEHOLDER,
    checksum,
    is_base58_checked,
    is_mixed_case,
    is_password,
    is_random,
    mixed,
)
from toolcage.cleaning.shape import ALONE, NAMED, QUOTE, SPACE, START, Shape, shape

_HASHES: Final = (
    shape(
        "password_hash",
        (
            r"\$(?=(?:2[abxy]|5|6|1|y|7|gy|apr1|argon2(?:id|i|d)|scrypt)\$[A-Za-z0-9./$=,+]{16})",
            r"pbkdf2[_:-]sha(?=[0-9]{1,3}[$:][0-9]{3,8}[$:][A-Za-z0-9./+]{8})",
            r"SCRAM-SHA-(?=(?:1|256|512)\$[0-9]{3,7}:[A-Za-z0-9+/=]{8})",
        ),
        r"(?:\$2[abxy]\$[0-9]{2}\$[A-Za-z0-9./]{53}|\$(?:1|apr1)\$[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22}"
        r"|\$(?:5|6)\$(?:rounds=[0-9]{1,9}\$)?[A-Za-z0-9./]{1,16}\$(?:[A-Za-z0-9./]{86}|[A-Za-z0-9./]{43})"
        r"|\$(?:y|gy|7)\$[A-Za-z0-9./]{1,12}\$[A-Za-z0-9./]{1,86}\$[A-Za-z0-9./]{43}"
        r"|\$(?:argon2(?:id|i|d)|scrypt)\$[a-z0-9=,$]{3,60}\$[A-Za-z0-9+/]{11,88}\$[A-Za-z0-9+/]{22,172}"
        r"|pbkdf2[_:-]sha[0-9]{1,3}[$:][0-9]{3,8}[$:][A-Za-z0-9./+]{8,64}=*[$:][A-Za-z0-9./+]{27,128}=*"
        r"|SCRAM-SHA-(?:1|256|512)\$[0-9]{3,7}:[A-Za-z0-9+/=]{8,64}\$[A-Za-z0-9+/=]{24,96}:[A-Za-z0-9+/=]{24,96})"
        r"(?![A-Za-z0-9./])",
    ),
    shape(  # of Windows
        "password_hash",
        r":[0-9]{3,5}:(?=[a-f0-9]{32}:[a-f0-9]{32}:::)",
        r":[0-9]{3,5}:(?P<value>[A-Fa-f0-9]{32}:[A-Fa-f0-9]{32}):::",
        folded=True,
    ),
)

# The version and what kind of key it is: RSA in PKCS 8 and PKCS 1, three curves, and Ed25519 and its like.
_DER: Final = (
    "MII[A-Za-z0-9+/]{4}(?:BADANBgkqhkiG9w0BAQEFAASC|BAAKC)",
    "MI(?:GHAgEAMBM|G2AgEAMBA|GEAgEAMBA)GByqGSM49AgEG",
    "M(?:HcCAQEEI|C4CAQAwBQYDK2V[wuv])",
)
_BASE58: Final = "[1-9A-HJ-NP-Za-km-z]"
_KEYS: Final = (
    shape(
        "private_key",
        _DER,
        ALONE + rf"(?:{'|'.join(_DER)})(?:(?:\s|\\[nr])?[A-Za-z0-9+/]{{16,}}+)*+[A-Za-z0-9+/]*=*+",
    ),
    shape(
        "private_key",
        "-----BEGIN OpenVPN Static key V1-----",
        r"-----BEGIN OpenVPN Static key V1-----(?:[^-]|-(?!----))*+(?:-----END OpenVPN Static key V1-----)?",
    ),
    shape(
        "private_key",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
        r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:[^-]|-(?!---))*+(?:---- END SSH2 ENCRYPTED PRIVATE KEY ----)?",
    ),
    shape(  # the private part of a JSON Web Key
        "private_key",
        rf"[\"'][dk](?={QUOTE}{SPACE}?:{SPACE}?{QUOTE}[A-Za-z0-9_-]{{40}})",
        rf"[\"'][dk]{QUOTE}\s?:\s?{QUOTE}(?P<value>[A-Za-z0-9_-]{{40,2048}})",
        is_mixed_case,
    ),
    shape(
        "wallet_key",
        (f"5[HJK](?={_BASE58}{{49}})", f"[KL](?={_BASE58}{{51}})", f"[xyzt]prv(?={_BASE58}{{107}})"),
        START + f"(?:5[HJK]{_BASE58}{{49}}|[KL]{_BASE58}{{51}}|[xyzt]prv{_BASE58}{{107}})(?![A-Za-z0-9])",
        is_base58_checked,
        apart=True,
    ),
    shape(
        "aws_session_token",
        "(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz)(?=[A-Za-z0-9+/%]{100})",
        r"(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz)[A-Za-z0-9+/%]{100,}+=*+",
    ),
    shape(  # an address whose user is the key: DSNs of Sentry, clones with a token
        "url_password",
        "://(?=[A-Za-z0-9_-]{20,128}@)",
        r"://(?P<value>[A-Za-z0-9_-]{20,128})@",
        is_random,
    ),
    shape(
        "webhook",
        r"hooks\.zapier\.com/hooks/catch/(?=[0-9]{4,10}/[a-z0-9]{5})",
        r"hooks\.zapier\.com/hooks/catch/(?P<value>[0-9]{4,10}/[a-z0-9]{5,12})",
    ),
    shape("webhook", r"\.make\.com/(?=[a-z0-9]{28})", r"\.make\.com/(?P<value>[a-z0-9]{28,40})", mixed),
    shape(  # of Mailgun
        "service_token",
        "-(?=[a-f0-9]{8}-[a-f0-9]{8})",
        ALONE + r"[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![\w-])",
        mixed,
        back=(32,),
    ),
    shape(  # of New Relic
        "service_token",
        "FFFFNRAL",
        ALONE + "(?:eu01xx[a-f0-9]{26}|[a-f0-9]{32})FFFFNRAL(?![A-Za-z0-9])",
        back=(32,),
    ),
    shape(
        "azure_key",
        "JQQJ99(?=[A-Za-z0-9]{18})",
        ALONE + "[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{18,26}(?![A-Za-z0-9])",
        back=(52,),
    ),
    shape(
        "azure_key",
        r"\+ACR(?=[A-Za-z0-9]{6})",
        ALONE + r"[A-Za-z0-9+/]{42}\+ACR[A-Za-z0-9]{6}(?![A-Za-z0-9])",
        back=(42,),
    ),
)

_PREFIXES: Final = (
    "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "ASIA",
    "sk-ant-", "sk-proj-", "sk_live_", "rk_live_", "AIza", "npm_", "pypi-", "hvs.", "dop_v1_", "dckr_pat_", "SG.",
    "eyJh", "postgres://", "postgresql://", "mysql://", "mongodb://", "mongodb+srv://", "redis://", "rediss://",
    "amqp://", "amqps://",
)  # fmt: skip
_IN_BASE64: Final = tuple(  # as many characters as the prefix decides
    base64.b64encode(prefix.encode()).decode()[: len(prefix) * 8 // 6] for prefix in _PREFIXES
)
_HOLDS_KEY: Final = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|xox[bp]-|xapp-|A[KS]IA|sk-|[sr]k_live_|AIza|npm_|pypi-|hvs\.|dop_v1_|dckr_pat_"
    r"|SG\.)[A-Za-z0-9_.-]{12}|eyJ[\w-]{8,}\.eyJ[\w-]+\.|[a-z+]{5,14}://[^\s:/@]{0,64}:[^\s@]{1,256}@"
)


def _encodes_key(value: str) -> bool:
    """Whether the value is base64 of a text that begins with a key of a known form or an address with a password."""
    piece = value[:1024].rstrip("=")
    padded = piece[: len(piece) - (len(piece) % 4 == 1)] + "=" * (-len(piece) % 4)
    try:
        decoded = base64.b64decode(padded, altchars=b"-_" if "_" in piece or "-" in piece else None)
    except ValueError:
        return False
    return _HOLDS_KEY.match(decoded.decode("utf-8", "replace")) is not None


# Where a line was wrapped, quoted-printable or not, or a string was written in two parts.
_BREAK: Final = r"(?:=?\r?\n[ \t>|]{0,12}|\\n|[\"'][ \t]{0,3}[+.]?[ \t]{0,3}\\?(?:\r?\n)?[ \t]{0,12}[\"'])"
_IS_BREAK: Final = re.compile(_BREAK)


def _is_checked_in_parts(value: str) -> bool:
    """Whether the parts together are a token whose checksum is right: nothing else tells where it ends."""
    prefix, _, payload = _IS_BREAK.sub("", value).partition("_")
    return len(payload) == 36 and checksum(payload[:30]) == payload[30:] and prefix != ""


def _is_password_in_percents(value: str) -> bool:
    return mixed(value) and is_password(value)


_SIGN: Final = r"(?:%5c)?(?:%2[27])?(?:%20|\+)?%3[ad]"
_ENCODED: Final = (
    shape(
        "encoded_secret",
        tuple(f"{prefix}(?=[A-Za-z0-9+/_-]{{16}})" for prefix in _IN_BASE64),
        ALONE + rf"(?:{'|'.join(_IN_BASE64)})[A-Za-z0-9+/_-]{{16,}}+=*+",
        _encodes_key,
    ),
    shape(
        "password",
        rf"(?:{NAMED}|token)(?={_SIGN})",
        rf"(?i:{NAMED}|token)(?i:{_SIGN}(?:%20|\+)?(?:%5c)?(?:%2[27])?)"
        r"(?P<value>(?:[A-Za-z0-9._~!*()-]|%(?!2[0267cC]|3[bB]|5[cC]|0|7[dD])[0-9A-Fa-f]{2}){6,256})",
        _is_password_in_percents,
        folded=True,
    ),
    shape(
        "url_password",
        r"%3a%2f%2f(?=[a-z0-9._~%-]{0,190}%3a[a-z0-9._~!*%-]{1,190}%40)",
        r"(?i:%3a%2f%2f)(?:[A-Za-z0-9._~-]|%(?!40|3[aA])[0-9A-Fa-f]{2}){0,60}(?i:%3a)"
        r"(?P<value>(?:[A-Za-z0-9._~!*-]|%(?!40|2[fF])[0-9A-Fa-f]{2}){1,60})%40",
        lambda value: PLACEHOLDER.match(value) is None,
        folded=True,
    ),
    shape(
        "private_key",
        r"-----BEGIN(?=(?:%20|\+)(?:[A-Z0-9]{1,12}(?:%20|\+)){0,4}PRIVATE(?:%20|\+)KEY)",
        r"-----BEGIN(?:%20|\+)(?:[A-Z0-9]{1,12}(?:%20|\+)){0,4}?PRIVATE(?:%20|\+)KEY(?:(?:%20|\+)BLOCK)?-----"
        r"(?:[A-Za-z0-9%+/=.:_]++|-(?!----))*+(?:-----END[A-Z0-9%+]{1,80}-----)?",
    ),
)

_IN_PARTS: Final = (
    shape(
        "github_token",
        rf"gh(?=[pousr]_[A-Za-z0-9]{{0,35}}{_BREAK}[A-Za-z0-9])",
        rf"gh[pousr]_[A-Za-z0-9]{{0,35}}(?:{_BREAK}[A-Za-z0-9]{{1,36}}){{1,3}}(?![A-Za-z0-9])",
        _is_checked_in_parts,
    ),
    shape(
        "npm_token",
        rf"npm_(?=[A-Za-z0-9]{{0,35}}{_BREAK}[A-Za-z0-9])",
        rf"npm_[A-Za-z0-9]{{0,35}}(?:{_BREAK}[A-Za-z0-9]{{1,36}}){{1,3}}(?![A-Za-z0-9])",
        _is_checked_in_parts,
    ),
)

STRUCTURES: Final[tuple[Shape, ...]] = (*_HASHES, *_KEYS, *_ENCODED, *_IN_PARTS)
