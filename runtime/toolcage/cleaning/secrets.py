"""Keys, tokens and passwords replaced by a mark that names what stood there.

Danger: a key in output reaches the model, its provider, the transcript and every log after it. Protects: all of them.

Two sources. *Shapes*: formats whose issuers gave them a recognisable form, and passwords where the text itself calls
them that. Hashes, UUIDs, ids and base64 data have no such form and stay. *Exact values* that the caller knows, as they
are and in base64 (at every alignment), hex, URL and JSON encoding; always redacted, from four characters up.

The searches see the text without hidden characters and terminal sequences (`marks.views`), so neither hides a key. A
program that wants to smuggle a key out can encode it in a way of its own: redaction limits accidents, and what a cage
cannot reach it cannot print.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, quote_plus

from toolcage.cleaning.marks import views

Span = tuple[int, int, str]

_SHORTEST_EXACT = 4
_SHORTEST_ENCODED = 6
_PASSES = 4


def _always(_value: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Shape:
    """`hints`: literals (lower case if `folded`), one of which is in every match: most texts are done after these.
    The group `value`, where there is one, is what gets redacted."""

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = _always
    folded: bool = False


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_jwt(value: str) -> bool:
    header = value.split(".", 1)[0]
    try:
        decoded = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(decoded, dict) and ("alg" in decoded or "enc" in decoded)


_PLACEHOLDER = re.compile(
    r"(?:[*x.•_#-]+|<[\w -]*>?|\$[{(].*|\$[A-Za-z_]+|%\(?[A-Za-z_]*\)?[sd%]?|\{.*\}?|\[redacted.*"
    r"|(?:your|my|the|some)[-_ ].*|(?:none|null|true|false|undefined|example|changeme|password|passwd|secret|redacted"
    r"|required|optional|string|str))\Z",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_][\w.]*(?:[(\[].*)?\Z")


def _is_password(value: str) -> bool:
    """A value after `password=`: not a placeholder, not an expression, not a plain word of prose."""
    if _PLACEHOLDER.match(value):
        return False
    if _CODE.match(value):  # an identifier, an attribute or a call, unless it mixes in digits as passwords do
        return _mixed(value) and "(" not in value and "[" not in value and "." not in value
    return any(c.isdigit() for c in value) or (any(not c.isalnum() for c in value.strip(".,:;!?)")) and len(value) >= 8)


def _is_url_password(value: str) -> bool:
    return _PLACEHOLDER.match(value) is None or value.lower() in ("password", "secret", "changeme", "example")


_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)


def _is_bearer(value: str) -> bool:
    return _mixed(value) and _UUID.match(value) is None


_NAMED = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|apikey|access[_-]?key|access[_-]?token|auth[_-]?token"
    r"|client[_-]?secret|secret[_-]?key|private[_-]?key|account[_-]?key|signing[_-]?key|encryption[_-]?key)"
)
_NAMED_HINTS = ("pass", "pwd", "secret", "api", "key", "auth", "access")
# Most prefixes are so distinctive that they count in the middle of a word too: a colour code or a label may stand
# directly before the key. The others (`task-…` holds `sk-…`) need a beginning.
_START = r"(?<![A-Za-z0-9])"
_WORD_START = r"(?<![A-Za-z0-9_-])"

_SHAPES = (
    _Shape(
        "private_key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+)"
        ),
    ),
    _Shape(
        "private_key",
        ("PRIVATE KEY",),
        re.compile(  # the end of one whose beginning was cut off
            r"\A\s{0,4}(?:[A-Za-z0-9+/=]{1,76}+\n)++-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"
        ),
    ),
    _Shape(
        "aws_access_key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        re.compile(r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ),
    _Shape(
        "aws_secret_key",
        ("aws",),
        re.compile(
            r"(?i:aws)[\w .-]{0,20}(?i:secret|key)[\w .-]{0,20}[\"']?\s{0,3}[:=>]{1,2}\s{0,3}[\"']?"
            r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        folded=True,
    ),
    _Shape(
        "aws_secret_key",
        ("secretaccesskey",),
        re.compile(
            r"(?i:secretaccesskey)[\"'>]{0,2}\s{0,3}[:=]?\s{0,3}[\"']?(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        folded=True,
    ),
    _Shape("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"gh[pousr]_[A-Za-z0-9]{30,}+")),
    _Shape("github_token", ("github_pat_",), re.compile(r"github_pat_[A-Za-z0-9_]{22,}+")),
    _Shape(
        "gitlab_token",
        ("gl",),
        re.compile(r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas|imt|ffct)-[A-Za-z0-9_.=-]{20,}+"),
    ),
    _Shape(
        "slack_token",
        ("xox", "xapp-"),
        re.compile(r"(?:xox[a-z](?:\.xox[a-z])?-|xapp-)[A-Za-z0-9-]{10,}+"),
        _mixed,
    ),
    _Shape(
        "slack_webhook",
        ("hooks.slack.com",),
        re.compile(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9/_-]{20,}+)"),
    ),
    _Shape(
        "stripe_key",
        ("sk_", "rk_", "whsec_"),
        re.compile(r"(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/]{24,}+=*)"),
    ),
    _Shape(
        "api_key",
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"),
        re.compile(r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}+"),
    ),
    _Shape("anthropic_key", ("sk-ant-",), re.compile(r"sk-ant-[A-Za-z0-9_-]{16,}+")),
    _Shape("api_key", ("sk-",), re.compile(_WORD_START + r"sk-[A-Za-z0-9_-]{20,}+"), _mixed),
    _Shape("google_key", ("AIza",), re.compile(r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    _Shape(
        "google_token",
        ("ya29.", "GOCSPX-"),
        re.compile(r"(?:ya29\.[A-Za-z0-9_-]{20,}+|GOCSPX-[A-Za-z0-9_-]{20,}+)"),
    ),
    _Shape("huggingface_token", ("hf_",), re.compile(_START + r"hf_[A-Za-z]{30,}+")),
    _Shape("npm_token", ("npm_",), re.compile(r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])")),
    _Shape("pypi_token", ("pypi-AgE",), re.compile(r"pypi-AgE[A-Za-z0-9_-]{40,}+")),
    _Shape(
        "sendgrid_key",
        ("SG.",),
        re.compile(_START + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}(?![A-Za-z0-9_-])"),
    ),
    _Shape("telegram_token", (":AA",), re.compile(r"(?<![A-Za-z0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")),
    _Shape(
        "jwt",
        ("eyJ",),
        re.compile(
            _WORD_START + r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{2,}+\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++){0,2}"
        ),
        _is_jwt,
    ),
    _Shape(
        "url_password",
        ("://",),
        re.compile(r"://[^\s:/@?#\"'<>]{0,64}:(?P<value>[^\s@/\"'<>]{1,256})@"),
        _is_url_password,
    ),
    _Shape(
        "authorization",
        ("bearer", "basic"),
        re.compile(
            r"(?i:bearer|authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?basic)\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{16,}+=*+)"
        ),
        _is_bearer,
        folded=True,
    ),
    _Shape(
        "password",
        _NAMED_HINTS,
        re.compile(
            rf"(?i:{_NAMED})(?:\\?[\"'])?\s{{0,4}}(?:=>|:=|[:=])\s{{0,4}}(?:"
            r"\\?\"(?P<quoted>(?!\[redacted:)[^\"\\\n]{4,256})\\?\"|'(?P<single>(?!\[redacted:)[^'\\\n]{4,256})'"
            r"|(?P<value>[^\s\"'\\,;&<>`]{6,256}))"
        ),
        _is_password,
        folded=True,
    ),
    _Shape(
        "token",
        ("token",),
        re.compile(
            r"(?i:token)(?:\\?[\"'])?\s{0,4}(?:=>|:=|[:=])\s{0,4}\\?[\"']?(?P<value>[A-Za-z0-9_~+/-]{20,256}=*+)"
        ),
        _is_bearer,
        folded=True,
    ),
)
"""Each pattern begins at a literal or is bounded, and repeats possessively: linear on any text."""


def redact_secrets(text: str, exact: Sequence[str] = (), *, shapes: bool = True) -> tuple[str, int]:
    """The text without secrets, and how many there were."""
    total = 0
    for _ in range(_PASSES):  # what stood next to a redacted value may be recognisable only now
        spans = find_secrets(text, exact, shapes=shapes)
        if not spans:
            break
        total += len(spans)
        pieces, position = [], 0
        for start, end, name in spans:
            pieces += [text[position:start], f"[redacted:{name}]"]
            position = end
        text = "".join([*pieces, text[position:]])
    return text, total


def find_secrets(text: str, exact: Sequence[str] = (), *, shapes: bool = True) -> list[Span]:
    """Where secrets stand, in order and without overlap: start, end, kind."""
    found: list[Span] = []
    for view in views(text):
        found += [(*view.origin(start, end), name) for start, end, name in _search(view.text, exact, shapes)]
    return _merged(found)


def named_secret(key: str, value: str) -> bool:
    """Whether the value under this key of an object is a password by the key's own word. Prose about one is not."""
    if len(value) < _SHORTEST_EXACT or any(map(str.isspace, value)):
        return False
    return _SECRET_KEY.fullmatch(key.strip()) is not None and _PLACEHOLDER.match(value) is None


_SECRET_KEY = re.compile(rf"(?:\w{{1,40}}[_-])?{_NAMED}", re.IGNORECASE)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end, name in sorted(spans):
        if merged and start < merged[-1][1]:
            first = merged[-1]
            merged[-1] = (first[0], max(end, first[1]), first[2])
        else:
            merged.append((start, end, name))
    return merged


def _search(text: str, exact: Sequence[str], shapes: bool) -> Iterator[Span]:
    for secret in exact:
        for form in _forms(secret):
            start = text.find(form)
            while start >= 0:
                yield start, start + len(form), "secret"
                start = text.find(form, start + len(form))
    if not shapes or _ANY_SHAPE.search(text) is None:
        return
    folded = text.lower()
    for shape in _SHAPES:
        if any(hint in (folded if shape.folded else text) for hint in shape.hints):
            yield from _matches(shape, text)


# Every shape has a long word, an assignment or the frame of a key: short texts are mostly done after this.
_ANY_SHAPE = re.compile(r"[:=>]|\S{14}|-----")


def _matches(shape: _Shape, text: str) -> Iterator[Span]:
    for match in shape.pattern.finditer(text):
        group = next((name for name, value in match.groupdict().items() if value is not None), 0)
        value = match[group]
        if "[redacted:" in value and shape.name != "private_key":
            continue
        if group in ("quoted", "single"):
            if _PLACEHOLDER.match(value):
                continue
        elif not shape.accept(value):
            continue
        yield match.start(group), match.end(group), shape.name


@lru_cache(maxsize=256)
def _forms(secret: str) -> tuple[str, ...]:
    """The ways one value may be written, longest first."""
    if len(secret) < _SHORTEST_EXACT:
        return ()
    raw = secret.encode("utf-8", "surrogatepass")
    written = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    encoded = {raw.hex(), raw.hex().upper(), *quoted, *(re.sub("%..", lambda m: m[0].lower(), q) for q in quoted)}
    for shift in range(3):
        code = base64.b64encode(b"\0" * shift + raw).decode()
        # The first and last characters also carry bits of the neighbours: only what is the secret's alone is compared.
        core = code[(0, 2, 3)[shift] : len(code) - (0, 3, 2)[(shift + len(raw)) % 3]]
        encoded |= {core, core.replace("+", "-").replace("/", "_")}
    encoded.add(base64.b32encode(raw).decode().rstrip("="))
    return tuple(sorted(written | {form for form in encoded if len(form) >= _SHORTEST_ENCODED}, key=len, reverse=True))
