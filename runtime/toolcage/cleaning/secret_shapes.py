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

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from toolcage.cleaning.issuers import CASED, ISSUED
from toolcage.cleaning.secret_contexts import CONTEXTS
from toolcage.cleaning.secret_structures import STRUCTURES
from toolcage.cleaning.secret_values import (
    NEXT_ASSIGNMENT,
    PLACEHOLDER,
    checksum,
    is_bearer,
    is_checked,
    is_jwt,
    is_mixed_case,
    is_password,
    is_random,
    is_scattered,
    is_url_password,
    mixed,
    names_a_place,
)
from toolcage.cleaning.shape import (
    ALONE,
    ANY_ASSIGNED,
    ASSIGNED,
    NAMED,
    PAGING,
    QUOTE,
    SPACE,
    START,
    WORD_START,
    Shape,
    shape,
)
from toolcage.facts.sieve import Sieve

__all__ = [
    "ANCHORED",
    "CUT_KEY",
    "LONGEST_ANCHORED",
    "LONGEST_NAME",
    "NAMED",
    "NAMES",
    "NAME_ENDS",
    "NEXT_ASSIGNMENT",
    "PASSWORD",
    "PLACEHOLDER",
    "SHAPES",
    "Shape",
    "checksum",
    "is_password",
    "names_a_place",
    "sieve_of",
]

_NO_PAGING = "(?i:" + "".join(f"(?<!{word}{sign})" for word in PAGING for sign in ("", "_", "-")) + ")"

_PEM_LINE = r"(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)"

SHAPES: Final = (
    shape(
        "private_key",
        "-----BEGIN (?=[A-Z0-9 ]{0,40}PRIVATE KEY)",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"|{_PEM_LINE}*+)",
    ),
    shape(
        "private_key",
        "Private-Lines: (?=[0-9])",
        r"Private-Lines: [0-9]{1,4}(?P<value>(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)",
    ),
    shape(
        "aws_access_key",
        ("AKIA(?=[A-Z0-9]{16})", "ASIA(?=[A-Z0-9]{16})", "ABIA(?=[A-Z0-9]{16})", "ACCA(?=[A-Z0-9]{16})"),
        r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    shape(  # the secret that stands beside its id, as in the file that the console gives
        "aws_secret_key",
        ("AKIA(?=[A-Z0-9]{16})", "ASIA(?=[A-Z0-9]{16})"),
        r"A(?:KI|SI)A[A-Z0-9]{16}[\"'\s,;|:/]{1,8}(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        is_mixed_case,
    ),
    shape(
        "aws_secret_key",
        rf"aws(?=[a-z0-9_ .?-]{{0,20}}(?:secret|key)[a-z0-9_ .?-]{{0,20}}[\"']?{SPACE}{{0,3}}[:=>])",
        r"(?i:aws)[\w .-]{0,20}(?i:secret|key)[\w .-]{0,20}[\"']?\s{0,3}[:=>]{1,2}\s{0,3}[\"']?"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        folded=True,
    ),
    shape(
        "aws_secret_key",
        rf"secretaccesskey(?=[\"'>]{{0,2}}{SPACE}{{0,3}}[:=]?{SPACE}{{0,3}}[\"']?[a-z0-9/+]{{40}})",
        r"(?i:secretaccesskey)[\"'>]{0,2}\s{0,3}[:=]?\s{0,3}[\"']?(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        folded=True,
    ),
    shape("github_token", "gh(?=[pousr]_[A-Za-z0-9]{30})", r"gh[pousr]_[A-Za-z0-9]{30,}+", is_checked),
    shape("github_token", "ghs_(?=[A-Za-z0-9]{1,20}_eyJ)", r"ghs_[A-Za-z0-9]{1,20}_eyJ[A-Za-z0-9_.-]{20,}+"),
    shape("github_token", "github_pat_(?=[A-Za-z0-9_]{22})", r"github_pat_[A-Za-z0-9_]{22,}+", is_checked),
    shape(
        "gitlab_token",
        "gl(?=[a-z]{2,5}-[A-Za-z0-9_.=-]{20})",
        r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas|imt|ffct|rtr)-[A-Za-z0-9_.=-]{20,}+",
    ),
    shape(
        "slack_token",
        (r"xox(?=[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10})", "xapp-(?=[A-Za-z0-9-]{10})"),
        r"(?:xox[a-z](?:\.xox[a-z])?-|xapp-)[A-Za-z0-9-]{10,}+",
        mixed,
    ),
    shape(
        "slack_webhook",
        r"hooks\.slack\.com/(?=[swt])",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9/_-]{20,}+)",
    ),
    shape("stripe_key", "k_(?=(?:live|test)_[A-Za-z0-9]{16})", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+", back=(1,)),
    shape("stripe_key", "whsec_(?=[A-Za-z0-9+/]{24})", r"whsec_[A-Za-z0-9+/]{24,}+=*"),
    shape(
        "api_key",
        "sk-(?=(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20})",
        r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}+",
    ),
    shape("anthropic_key", "sk-ant-(?=[A-Za-z0-9_-]{16})", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    shape("api_key", "sk-(?=[A-Za-z0-9_-]{20})", WORD_START + r"sk-[A-Za-z0-9_-]{20,}+", is_random),
    shape("google_key", "AIza(?=[A-Za-z0-9_-]{35})", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    shape("google_token", r"ya29\.(?=[A-Za-z0-9_-]{20})", r"ya29\.[A-Za-z0-9_-]{20,}+"),
    shape("google_token", "GOCSPX-(?=[A-Za-z0-9_-]{20})", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    shape(
        "huggingface_token",
        ("hf_(?=[A-Za-z]{30})", "api_org_(?=[A-Za-z]{30})"),
        START + r"(?:hf|api_org)_[A-Za-z]{30,}+",
    ),
    shape("npm_token", "npm_(?=[A-Za-z0-9]{36})", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])", is_checked),
    shape("pypi_token", "pypi-AgE(?=[A-Za-z0-9_-]{40})", r"pypi-AgE[A-Za-z0-9_-]{40,}+"),
    shape(
        "sendgrid_key",
        r"SG\.(?=[A-Za-z0-9_-]{16,32}\.)",
        START + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}(?![A-Za-z0-9_-])",
    ),
    shape(
        "telegram_token",
        ":AA(?=[A-Za-z0-9_-]{33})",
        r"(?<![A-Za-z0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
        back=(10, 9, 8),
    ),
    shape(
        "azure_secret",
        "Q~(?=[A-Za-z0-9_~.-]{31})",
        r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?!\w)",
        back=(4,),
    ),
    shape(
        "azure_key",
        r"\+A(?=(?:St|Mb|Ba|CR|IE|zF)[A-Za-z0-9+/]{6}==)",
        r"[A-Za-z0-9+/]{76}\+A(?:St|Mb|Ba|CR|IE|zF)[A-Za-z0-9+/]{6}==",
        back=(76,),
    ),
    shape("azure_token", "AZDO(?=[A-Za-z0-9]{4})", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", back=(76,)),
    shape(
        "service_token",  # issuers whose prefix is enough
        (
            "d(?=o[por]_v1_[a-f0-9]{64})",
            "dckr_(?=[po]at_)",
            "dapi(?=[a-f0-9]{32})",
            "shp(?=(?:at|ss|ca|pa|ua)_[a-fA-F0-9]{32})",
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
        START + r"(?:do[por]_v1_[a-f0-9]{64}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}+|dapi[a-f0-9]{32}(?:-[0-9])?"
        r"|shp(?:at|ss|ca|pa|ua)_[a-fA-F0-9]{32}"
        r"|sbp_[a-f0-9]{40}|sntry[su]_[A-Za-z0-9+/=_-]{40,}+|gsk_[A-Za-z0-9]{40,}+|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"
        r"|xai-[A-Za-z0-9]{60,}+|pplx-[A-Za-z0-9]{40,}+|hvs\.[A-Za-z0-9_-]{24,}+|PMAK-[a-f0-9]{24}-[a-f0-9]{34}"
        r"|NRAK-[A-Z0-9]{27}|ATATT3[A-Za-z0-9_=-]{100,}+|lin_api_[A-Za-z0-9]{32,}+|ntn_[A-Za-z0-9]{40,}+"
        r"|nfp_[A-Za-z0-9]{36}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}+|rubygems_[a-f0-9]{48}|r8_[A-Za-z0-9]{37})"
        r"(?![A-Za-z0-9])",
        mixed,
    ),
    shape(
        "service_token",
        tuple(f"{prefix}(?={tail})" for prefix, tail, _ in ISSUED),
        ALONE + "(?:" + "|".join(f"{prefix}{whole}" for prefix, _, whole in ISSUED) + r")(?![A-Za-z0-9])",
        mixed,
    ),
    shape(
        "service_token",
        tuple(f"{prefix}(?={tail})" for prefix, tail, _ in CASED),
        ALONE + "(?:" + "|".join(f"{prefix}{whole}" for prefix, _, whole in CASED) + r")(?![A-Za-z0-9_-])",
        lambda value: is_scattered(re.split("[_-]", value, maxsplit=1)[-1]),
    ),
    shape("service_token", "-us(?=[0-9])", ALONE + r"[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])", mixed, back=(32,)),
    shape(
        "service_token",
        r"\.atlasv1\.(?=[A-Za-z0-9_=-]{40})",
        ALONE + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}+",
        back=(14,),
    ),
    shape(
        "discord_token",
        r"\.(?=[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27})",
        ALONE + r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])",
        is_mixed_case,
        back=(26, 25, 24),
        apart=True,
    ),
    shape(
        "webhook",
        ("/api/webhooks/(?=[0-9]{17})", r"office\.com/webhookb2/(?=[A-Za-z0-9_@/.-]{60})"),
        r"(?:/api/webhooks/[0-9]{17,20}/|office\.com/webhookb2/)(?P<value>[A-Za-z0-9_@/.-]{60,}+)",
    ),
    shape(  # a private key in base64, as Kubernetes keeps it
        "private_key",
        "LS0tLS1CRUdJTi(?=B[A-Za-z0-9+/]{16})",
        r"LS0tLS1CRUdJTiB(?:QUklWQVRF|SU0EgUFJJV|FQyBQUklWQ|EU0EgUFJJV|PUEVOU1NI|FTkNSWVBURUQ)[A-Za-z0-9+/]{16,}+=*+",
    ),
    shape(  # the line of a .netrc
        "password",
        r"login(?=[ \t]{1,4}[!-~]{1,128}[ \t]{1,4}password[ \t]{1,4}[!-~]{4})",
        r"login[ \t]{1,4}[!-~]{1,128}[ \t]{1,4}password[ \t]{1,4}(?P<value>[!-~]{4,256})",
        is_password,
    ),
    shape(
        "jwt",
        "eyJ(?=[A-Za-z0-9_-]{8})",
        WORD_START + r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{2,}+\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++){0,2}",
        is_jwt,
    ),
    shape(
        "url_password",
        r"://(?=[\x00-\x08\x0e-\x1b!$-.0-9;=?A-\x7f]{0,64}:[\x00-\x08\x0e-\x1b!#-&(-.0-;=?A-\x7f]{1,256}@)",
        r"://[^\s:/@?#\"'<>]{0,64}:(?P<value>[^\s@/\"'<>]{1,256})@",
        is_url_password,
    ),
    shape(
        "azure_key",
        "sig=(?=[A-Za-z0-9+/%_-]{43})",
        r"sig=(?P<value>[A-Za-z0-9+/_-]{43}=?|(?:[A-Za-z0-9]|%(?:2[BbFf]|3[Dd])){43,}+)(?![A-Za-z0-9_-])",
    ),
    shape(
        "token",
        rf"token(?={ANY_ASSIGNED}{QUOTE}?(?:[srb]\.)?[a-z0-9_~+/-]{{20}})",
        rf"{_NO_PAGING}(?i:token){ASSIGNED}{QUOTE}?(?P<value>(?:[srb]\.)?[A-Za-z0-9_~+/-]{{20,256}}=*+)",
        is_bearer,
        folded=True,
    ),
    *CONTEXTS,
    *STRUCTURES,
)

CUT_KEY: Final = Shape(  # the end of a private key whose beginning was cut off; tried at the start of the text alone
    "private_key",
    (),
    re.compile(r"\s{0,4}(?:[A-Za-z0-9+/=]{1,76}+\n)++-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"),
)

# A password is anchored at the end of its name: all the names end in one of these, and few of them are assigned to.
# What was redacted before is passed over.
_MAY_BE_VALUE = (
    r"(?:(?:\\{0,7}\"|&quot;|&#(?:34|x22);)[\x00-\t\x0b-!#-\[\]-\x7f]{4}"
    r"|(?:\\{0,7}'|&#(?:39|x27);)[\x00-\t\x0b-&(-\[\]-\x7f]{4}"
    r"|[\x00-\x08\x0e-\x1b!#$%(-+\--:=?-\[\]-_a-\x7f]{6})"
)
NAME_ENDS: Final = tuple(
    re.compile(rf"{word}(?={ANY_ASSIGNED}(?!{QUOTE}?\[redacted:){_MAY_BE_VALUE})".encode())
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
    rf"{ASSIGNED}(?:"
    r"\\{0,7}\"(?P<quoted>(?!\[redacted:)[^\"\\\n]{4,256})\\{0,7}\""
    r"|\\{0,7}'(?P<single>(?!\[redacted:)[^'\\\n]{4,256})\\{0,7}'"
    r"|&(?:quot|#(?:34|39|x2[27]));(?P<entity>(?!\[redacted:)[^\s\"'\\<>&]{4,256})&(?:quot|#(?:34|39|x2[27]));"
    r"|(?P<value>[^\s\"'\\,;&<>`]{6,256}))"
)


def _readable(anchor: re.Pattern[bytes]) -> str:
    """The anchor in the syntax of a sieve, which has no look-around: what follows it is part of it."""
    return anchor.pattern.decode().replace("(?=", "(?:")


@cache
def sieve_of(anchor: re.Pattern[bytes]) -> Sieve:
    """The sieve of one anchor of a shape: of many anchors a stretch of text holds few."""
    return Sieve(f"(?-u){_readable(anchor)}")


def _anchors(shapes: Iterable[Shape]) -> str:
    return "(?-u)" + "|".join(
        f"(?i:{_readable(anchor)})" if shape.folded else _readable(anchor)
        for shape in shapes
        for anchor in shape.anchors
    )


def _apart(shapes: Sequence[Shape]) -> Iterator[str]:
    """The anchors in a few patterns: what is many words, what has no regard to case, and what begins everywhere are
    asked about apart. All in one would have more states than the engine keeps."""
    many = [shape for shape in shapes if len(shape.anchors) > _MANY]
    everywhere = [shape for shape in shapes if shape.apart]
    folded = [shape for shape in shapes if shape.folded and not shape.apart]
    rest = [shape for shape in shapes if shape not in (*many, *everywhere, *folded)]
    yield _anchors(folded) + rf"|(?i:{NAMED}{ANY_ASSIGNED}{_MAY_BE_VALUE})"
    yield from (_anchors([shape]) for shape in (*many, *everywhere))
    yield _anchors(rest)


_MANY: Final = 16
ANCHORED: Final = Sieve(*_apart(SHAPES), reach=LONGEST_ANCHORED)
"""Over the text as ASCII; what a pattern without regard to case takes for an ASCII letter must be one."""
