r"""The forms by which issuers made their keys recognisable, and passwords that the text itself calls so.

Decides what counts as a secret without knowing any. Trusts nothing. Where an issuer put a checksum or a structure into
its keys (GitHub and npm a CRC-32, JSON Web Tokens a header), a word that only looks like one is told apart by it; where
a form alone says too little (an AWS secret, 40 random characters), the words around it must say what it is. Hashes,
UUIDs, ids and base64 data have no such form and are deliberately not guessed at by their entropy.

A shape is searched for by its `anchors`, patterns over the text as ASCII (every other character a question mark), each
literal characters, which the engine scans for fast, and what surely follows them. `ANCHORED` is the sieve of all of
them: most of a text has no anchor and is searched no further. Only at an anchor is the whole pattern tried. Every
pattern is bounded or repeats possessively: linear on any text.

Sources: the issuers' documentation of their formats; https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from toolcage.cleaning.issuers import ISSUED
from toolcage.facts.sieve import Sieve

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHECKSUM_LENGTH: Final = 6


def always(_value: str) -> bool:
    """Whether the form alone is enough: yes."""
    return True


@dataclass(frozen=True, slots=True)
class Shape:
    """One form. The group `value`, where there is one, is what gets redacted.

    `pattern` is tried at each anchor and `back` characters before it. `folded`: the anchors are lower case.
    """

    name: str
    anchors: tuple[re.Pattern[bytes], ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = always
    folded: bool = False
    back: tuple[int, ...] = (0,)


def checksum(payload: str) -> str:
    """The six characters that GitHub and npm put behind `payload`: its CRC-32 in base 62."""
    number, digits = zlib.crc32(payload.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def _is_checked(value: str) -> bool:
    """A token whose checksum is right, or one as mixed as real ones: a wrong checksum may be a cut or a new form.

    A name of lower-case letters and digits behind the same prefix is neither.
    """
    payload = value.split("_", 2 if value.startswith("github_pat_") else 1)[-1]
    right = any(
        checksum(payload[: end - _CHECKSUM_LENGTH]) == payload[end - _CHECKSUM_LENGTH : end]
        for end in {36, 82, len(payload)}
        if _CHECKSUM_LENGTH < end <= len(payload)
    )
    return right or _is_mixed_case(payload)


def mixed(value: str) -> bool:
    """Whether digits and letters both occur."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_random(value: str) -> bool:
    """Both cases and digits, or one long mixed part: words with hyphens and a number, as in a style sheet, are not."""
    parts = re.split("[-_]", value)
    return mixed(value) and (_is_mixed_case(value) or any(len(part) >= 16 and mixed(part) for part in parts))


def _is_mixed_case(value: str) -> bool:
    """Upper case, lower case and digits, as random characters have and hexadecimal digests and names have not."""
    return mixed(value) and value.lower() != value and value.upper() != value


def _is_jwt(value: str) -> bool:
    header = value.split(".", 1)[0]
    try:
        decoded = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(decoded, dict) and ("alg" in decoded or "enc" in decoded)


PLACEHOLDER = re.compile(
    r"(?:[*x.•_#-]+|<[\w -]*>?|\$[{(].*|\$[A-Za-z_]+|%\(?[A-Za-z_]*\)?[sd%]?|\{.*\}?|\[redacted.*"
    r"|(?:your|my|the|some)[-_ ].*|(?:none|null|true|false|undefined|example|changeme|password|passwd|secret|redacted"
    r"|required|optional|string|str))\Z",
    re.IGNORECASE,
)
# The shell's own variables, and where a file lies. A random key may begin with a slash too, but not in plain words.
_FOLDER = re.compile(r"(?:[/~.]|[A-Za-z]:[/\\])[^\n:;]*\Z|[A-Za-z]:\Z")
_PATH = re.compile(r"(?:[~.]{1,2}|/[a-z][a-z._-]*[0-9]{0,3})(?:/[a-z._-]+[0-9]{0,3})+/?\Z")
NEXT_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*[=:]")
"""What stands on the line behind a name that was given nothing: `PASSWORD=`, and then `DEBUG=1`."""
_CODE = re.compile(r"[A-Za-z_][\w.]*(?:[(\[].*)?\Z")


def is_password(value: str) -> bool:
    """A value after `password=`: not a placeholder, not an expression, not a plain word of prose."""
    if PLACEHOLDER.match(value):
        return False
    if _CODE.match(value):  # an identifier, an attribute or a call, unless it mixes in digits as passwords do
        return mixed(value) and "(" not in value and "[" not in value and "." not in value
    return any(c.isdigit() for c in value) or (any(not c.isalnum() for c in value.strip(".,:;!?)")) and len(value) >= 8)


def names_a_place(name: str, value: str) -> bool:
    """Whether what a name like a password's says is a folder or a file: `PWD=/workspace`, `secret: /run/secrets/db`."""
    if name in ("PWD", "OLDPWD") and _FOLDER.match(value):
        return True
    return _PATH.match(value) is not None


def _is_url_password(value: str) -> bool:
    return PLACEHOLDER.match(value) is None or value.lower() in ("password", "secret", "changeme", "example")


_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)


def _is_bearer(value: str) -> bool:
    return mixed(value) and _UUID.match(value) is None


NAMED = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|apikey|access[_-]?key|access[_-]?token|auth[_-]?token"
    r"|client[_-]?secret|secret[_-]?key|private[_-]?key|account[_-]?key|signing[_-]?key|encryption[_-]?key)"
)
_ASSIGNED = r"(?:\\?[\"'])?\s{0,4}(?:=>|:=|[:=])\s{0,4}"
# What may stand in the ASCII image of a text for the white space and the letters of other scripts.
_SPACE = r"[\s\x1c-\x1f?]"
_ANY_ASSIGNED = rf"(?:\\?[\"'])?{_SPACE}{{0,4}}(?:=>|:=|[:=]){_SPACE}{{0,4}}"
# Most prefixes are so distinctive that they count in the middle of a word too: a colour code or a label may stand
# directly before the key. The others (`task-…` holds `sk-…`) need a beginning.
_START = r"(?<![A-Za-z0-9])"
_WORD_START = r"(?<![A-Za-z0-9_-])"


def _shape(
    name: str,
    anchors: str | tuple[str, ...],
    pattern: str,
    accept: Callable[[str], bool] = always,
    *,
    folded: bool = False,
    back: tuple[int, ...] = (0,),
) -> Shape:
    written = (anchors,) if isinstance(anchors, str) else anchors
    return Shape(name, tuple(re.compile(one.encode()) for one in written), re.compile(pattern), accept, folded, back)


_ALONE = r"(?<![A-Za-z0-9+/_-])"

_PEM_LINE = r"(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)"

SHAPES: Final = (
    _shape(
        "private_key",
        "-----BEGIN (?=[A-Z0-9 ]{0,40}PRIVATE KEY)",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"|{_PEM_LINE}*+)",
    ),
    _shape(
        "private_key",
        "Private-Lines: (?=[0-9])",
        r"Private-Lines: [0-9]{1,4}(?P<value>(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)",
    ),
    _shape(
        "aws_access_key",
        ("AKIA(?=[A-Z0-9]{16})", "ASIA(?=[A-Z0-9]{16})", "ABIA(?=[A-Z0-9]{16})", "ACCA(?=[A-Z0-9]{16})"),
        r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _shape(  # the secret that stands beside its id, as in the file that the console gives
        "aws_secret_key",
        ("AKIA(?=[A-Z0-9]{16})", "ASIA(?=[A-Z0-9]{16})"),
        r"A(?:KI|SI)A[A-Z0-9]{16}[\"'\s,;|:/]{1,8}(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _is_mixed_case,
    ),
    _shape(
        "aws_secret_key",
        rf"aws(?=[a-z0-9_ .?-]{{0,20}}(?:secret|key)[a-z0-9_ .?-]{{0,20}}[\"']?{_SPACE}{{0,3}}[:=>])",
        r"(?i:aws)[\w .-]{0,20}(?i:secret|key)[\w .-]{0,20}[\"']?\s{0,3}[:=>]{1,2}\s{0,3}[\"']?"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        folded=True,
    ),
    _shape(
        "aws_secret_key",
        rf"secretaccesskey(?=[\"'>]{{0,2}}{_SPACE}{{0,3}}[:=]?{_SPACE}{{0,3}}[\"']?[a-z0-9/+]{{40}})",
        r"(?i:secretaccesskey)[\"'>]{0,2}\s{0,3}[:=]?\s{0,3}[\"']?(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        folded=True,
    ),
    _shape("github_token", "gh(?=[pousr]_[A-Za-z0-9]{30})", r"gh[pousr]_[A-Za-z0-9]{30,}+", _is_checked),
    _shape("github_token", "ghs_(?=[A-Za-z0-9]{1,20}_eyJ)", r"ghs_[A-Za-z0-9]{1,20}_eyJ[A-Za-z0-9_.-]{20,}+"),
    _shape("github_token", "github_pat_(?=[A-Za-z0-9_]{22})", r"github_pat_[A-Za-z0-9_]{22,}+", _is_checked),
    _shape(
        "gitlab_token",
        "gl(?=[a-z]{2,5}-[A-Za-z0-9_.=-]{20})",
        r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas|imt|ffct|rtr)-[A-Za-z0-9_.=-]{20,}+",
    ),
    _shape(
        "slack_token",
        (r"xox(?=[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10})", "xapp-(?=[A-Za-z0-9-]{10})"),
        r"(?:xox[a-z](?:\.xox[a-z])?-|xapp-)[A-Za-z0-9-]{10,}+",
        mixed,
    ),
    _shape(
        "slack_webhook",
        r"hooks\.slack\.com/(?=[swt])",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9/_-]{20,}+)",
    ),
    _shape("stripe_key", "k_(?=(?:live|test)_[A-Za-z0-9]{16})", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+", back=(1,)),
    _shape("stripe_key", "whsec_(?=[A-Za-z0-9+/]{24})", r"whsec_[A-Za-z0-9+/]{24,}+=*"),
    _shape(
        "api_key",
        "sk-(?=(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20})",
        r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}+",
    ),
    _shape("anthropic_key", "sk-ant-(?=[A-Za-z0-9_-]{16})", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _shape("api_key", "sk-(?=[A-Za-z0-9_-]{20})", _WORD_START + r"sk-[A-Za-z0-9_-]{20,}+", _is_random),
    _shape("google_key", "AIza(?=[A-Za-z0-9_-]{35})", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _shape("google_token", r"ya29\.(?=[A-Za-z0-9_-]{20})", r"ya29\.[A-Za-z0-9_-]{20,}+"),
    _shape("google_token", "GOCSPX-(?=[A-Za-z0-9_-]{20})", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    _shape("huggingface_token", "hf_(?=[A-Za-z]{30})", _START + r"hf_[A-Za-z]{30,}+"),
    _shape("npm_token", "npm_(?=[A-Za-z0-9]{36})", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])", _is_checked),
    _shape("pypi_token", "pypi-AgE(?=[A-Za-z0-9_-]{40})", r"pypi-AgE[A-Za-z0-9_-]{40,}+"),
    _shape(
        "sendgrid_key",
        r"SG\.(?=[A-Za-z0-9_-]{16,32}\.)",
        _START + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}(?![A-Za-z0-9_-])",
    ),
    _shape(
        "telegram_token",
        ":AA(?=[A-Za-z0-9_-]{33})",
        r"(?<![A-Za-z0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
        back=(10, 9, 8),
    ),
    _shape(
        "azure_secret",
        "Q~(?=[A-Za-z0-9_~.-]{31})",
        r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?!\w)",
        back=(4,),
    ),
    _shape(
        "azure_key",
        r"\+A(?=(?:St|Mb|Ba|CR|IE|zF)[A-Za-z0-9+/]{6}==)",
        r"[A-Za-z0-9+/]{76}\+A(?:St|Mb|Ba|CR|IE|zF)[A-Za-z0-9+/]{6}==",
        back=(76,),
    ),
    _shape("azure_token", "AZDO(?=[A-Za-z0-9]{4})", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", back=(76,)),
    _shape(
        "service_token",  # issuers whose prefix is enough
        (
            "d(?=o[por]_v1_[a-f0-9]{64})",
            "dckr_(?=[po]at_)",
            "dapi(?=[a-f0-9]{32})",
            "shp(?=(?:at|ss|ca|pa)_[a-fA-F0-9]{32})",
            "sbp_(?=[a-f0-9]{40})",
            "sntry(?=[su]_[A-Za-z0-9+/=_-]{40})",
            "gsk_(?=[A-Za-z0-9]{40})",
            "glsa_(?=[A-Za-z0-9]{32}_)",
            "xai-(?=[A-Za-z0-9]{60})",
            "pplx-(?=[A-Za-z0-9]{40})",
            r"hvs\.(?=[A-Za-z0-9_-]{24})",
            "PMAK-(?=[a-f0-9]{24}-)",
            "NRAK-(?=[A-Z0-9]{27})",
            "ATATT3(?=[A-Za-z0-9_=-]{100})",
            "lin_api_(?=[A-Za-z0-9]{32})",
            "ntn_(?=[A-Za-z0-9]{40})",
            "nfp_(?=[A-Za-z0-9]{36})",
            "pscale_(?=(?:tkn|pw|oauth)_)",
            "rubygems_(?=[a-f0-9]{48})",
            "r8_(?=[A-Za-z0-9]{37})",
        ),
        _START + r"(?:do[por]_v1_[a-f0-9]{64}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}+|dapi[a-f0-9]{32}(?:-[0-9])?"
        r"|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}"
        r"|sbp_[a-f0-9]{40}|sntry[su]_[A-Za-z0-9+/=_-]{40,}+|gsk_[A-Za-z0-9]{40,}+|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"
        r"|xai-[A-Za-z0-9]{60,}+|pplx-[A-Za-z0-9]{40,}+|hvs\.[A-Za-z0-9_-]{24,}+|PMAK-[a-f0-9]{24}-[a-f0-9]{34}"
        r"|NRAK-[A-Z0-9]{27}|ATATT3[A-Za-z0-9_=-]{100,}+|lin_api_[A-Za-z0-9]{32,}+|ntn_[A-Za-z0-9]{40,}+"
        r"|nfp_[A-Za-z0-9]{36}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}+|rubygems_[a-f0-9]{48}|r8_[A-Za-z0-9]{37})"
        r"(?![A-Za-z0-9])",
        mixed,
    ),
    _shape(
        "service_token",
        tuple(f"{prefix}(?={tail})" for prefix, tail, _ in ISSUED),
        _ALONE + "(?:" + "|".join(f"{prefix}{whole}" for prefix, _, whole in ISSUED) + r")(?![A-Za-z0-9])",
        mixed,
    ),
    _shape("service_token", "-us(?=[0-9])", _ALONE + r"[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])", mixed, back=(32,)),
    _shape(
        "service_token",
        r"\.atlasv1\.(?=[A-Za-z0-9_=-]{40})",
        _ALONE + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}+",
        back=(14,),
    ),
    _shape(
        "discord_token",
        r"\.(?=[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27})",
        _ALONE + r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])",
        _is_mixed_case,
        back=(26, 25, 24),
    ),
    _shape(
        "webhook",
        ("/api/webhooks/(?=[0-9]{17})", r"office\.com/webhookb2/(?=[A-Za-z0-9_@/.-]{60})"),
        r"(?:/api/webhooks/[0-9]{17,20}/|office\.com/webhookb2/)(?P<value>[A-Za-z0-9_@/.-]{60,}+)",
    ),
    _shape(  # a private key in base64, as Kubernetes keeps it
        "private_key",
        "LS0tLS1CRUdJTi(?=B[A-Za-z0-9+/]{16})",
        r"LS0tLS1CRUdJTiB(?:QUklWQVRF|SU0EgUFJJV|FQyBQUklWQ|EU0EgUFJJV|PUEVOU1NI|FTkNSWVBURUQ)[A-Za-z0-9+/]{16,}+=*+",
    ),
    _shape(  # the line of a .netrc
        "password",
        r"login(?=[ \t]{1,4}[!-~]{1,128}[ \t]{1,4}password[ \t]{1,4}[!-~]{4})",
        r"login[ \t]{1,4}[!-~]{1,128}[ \t]{1,4}password[ \t]{1,4}(?P<value>[!-~]{4,256})",
        is_password,
    ),
    _shape(
        "jwt",
        "eyJ(?=[A-Za-z0-9_-]{8})",
        _WORD_START + r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{2,}+\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++){0,2}",
        _is_jwt,
    ),
    _shape(
        "url_password",
        r"://(?=[\x00-\x08\x0e-\x1b!$-.0-9;=?A-\x7f]{0,64}:[\x00-\x08\x0e-\x1b!#-&(-.0-;=?A-\x7f]{1,256}@)",
        r"://[^\s:/@?#\"'<>]{0,64}:(?P<value>[^\s@/\"'<>]{1,256})@",
        _is_url_password,
    ),
    _shape(
        "azure_key",
        "sig=(?=[A-Za-z0-9+/%]{43})",
        r"sig=(?P<value>[A-Za-z0-9+/]{43}=|(?:[A-Za-z0-9]|%(?:2[BbFf]|3[Dd])){43,}+)",
    ),
    _shape(
        "authorization",
        (
            rf"bearer(?={_SPACE}{{1,3}}[a-z0-9._~+/-]{{16}})",
            rf"authorization(?=[\"']?{_SPACE}{{0,3}}[:=]{_SPACE}{{0,3}}[\"']?basic{_SPACE}{{1,3}}[a-z0-9._~+/-]{{16}})",
        ),
        r"(?i:bearer|authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?basic)\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{16,}+=*+)",
        _is_bearer,
        folded=True,
    ),
    _shape(
        "token",
        rf"token(?={_ANY_ASSIGNED}\\?[\"']?[a-z0-9_~+/-]{{20}})",
        rf"(?i:token){_ASSIGNED}\\?[\"']?(?P<value>[A-Za-z0-9_~+/-]{{20,256}}=*+)",
        _is_bearer,
        folded=True,
    ),
)

CUT_KEY: Final = Shape(  # the end of a private key whose beginning was cut off; tried at the start of the text alone
    "private_key",
    (),
    re.compile(r"\s{0,4}(?:[A-Za-z0-9+/=]{1,76}+\n)++-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"),
)

# A password is anchored at the end of its name: all the names end in one of these, and few of them are assigned to.
# What was redacted before is passed over.
_MAY_BE_VALUE = (
    r"(?:\\?\"[\x00-\t\x0b-!#-\[\]-\x7f]{4}|'[\x00-\t\x0b-&(-\[\]-\x7f]{4}"
    r"|[\x00-\x08\x0e-\x1b!#$%(-+\--:=?-\[\]-_a-\x7f]{6})"
)
NAME_ENDS: Final = tuple(
    re.compile(rf"{word}(?={_ANY_ASSIGNED}(?!\\?[\"']?\[redacted:){_MAY_BE_VALUE})".encode())
    for word in ("password", "passwd", "passphrase", "pwd", "secret", "key", "token")
)
NAMES: Final = tuple(
    name.replace("-", sign).encode()
    for sign in ("", "_", "-")
    for name in (
        "password", "passwd", "passphrase", "pwd", "secret", "api-key", "access-key", "access-token", "auth-token",
        "client-secret", "secret-key", "private-key", "account-key", "signing-key", "encryption-key",
    )
)  # fmt: skip
LONGEST_NAME: Final = max(map(len, NAMES))
LONGEST_ANCHORED: Final = 400
"""No anchor has more characters, with what follows it and a password's name before it."""
PASSWORD: Final = re.compile(
    rf"{_ASSIGNED}(?:"
    r"\\?\"(?P<quoted>(?!\[redacted:)[^\"\\\n]{4,256})\\?\"|'(?P<single>(?!\[redacted:)[^'\\\n]{4,256})'"
    r"|(?P<value>[^\s\"'\\,;&<>`]{6,256}))"
)


def _readable(anchor: re.Pattern[bytes]) -> str:
    """The anchor in the syntax of a sieve, which has no look-around: what follows it is part of it."""
    return anchor.pattern.decode().replace("(?=", "(?:")


@cache
def sieve_of(anchor: re.Pattern[bytes]) -> Sieve:
    """The sieve of one anchor of a shape: of many anchors a stretch of text holds few."""
    return Sieve(f"(?-u){_readable(anchor)}")


_BY_A_DOT: Final = "discord_token"


def _anchors(shapes: Iterable[Shape]) -> str:
    return "(?-u)" + "|".join(
        f"(?i:{_readable(anchor)})" if shape.folded else _readable(anchor)
        for shape in shapes
        for anchor in shape.anchors
    )


ANCHORED: Final = Sieve(
    _anchors(shape for shape in SHAPES if shape.name != _BY_A_DOT) + rf"|(?i:{NAMED}{_ANY_ASSIGNED}{_MAY_BE_VALUE})",
    _anchors(shape for shape in SHAPES if shape.name == _BY_A_DOT),
    reach=LONGEST_ANCHORED,
)
"""Over the text as ASCII; what a pattern without regard to case takes for an ASCII letter must be one."""
