"""What the cleaners cost: milliseconds for 1 MB of each kind of text, per call at the usual cap, and a long stream.

`text` is every cleaner over 1,000,000 bytes of one kind; the detector of text that speaks to the model is a judge and
not a cleaner, so it is measured apart (`detector`). `call` is one whole `clean_bytes` of the same output at the
default cap, detector included: what a call pays. `hostile` texts are built to be slow. All are processor time of one
thread, the best of several runs, because other work on the machine only ever adds.
"""

# ruff: noqa: E501 (the texts are as long as they are)

from __future__ import annotations

import html
import json
import os
import random
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from toolcage.cleaning import StreamCleaner, clean_bytes, clean_json, structured
from toolcage.cleaning.injection import Suspicion, suspect
from toolcage.cleaning.pipeline import neutralise
from toolcage.types import JSON, OutputTerms, freeze

SIZE = 1_000_000
_STREAM_BYTES = 1_000_000_000
_RUNS = 5
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
_TERMS = OutputTerms()
_ALL = OutputTerms(redact=("secrets", "email", "iban", "card", "phone"))
_WIDE = OutputTerms(max_bytes=16 * 1024 * 1024)
_EXACT = ("hunter2-of-the-shop", "canary-5f2c9a7be1", "pq8-Zt55-mail-password")

_WORDS = {
    "prose": "The committee met on Tuesday to discuss the budget for 2026; it was agreed (by 7 to 2) that the key points "
    "- staffing, rent, and travel - should be passed to the board. See https://example.com/minutes?id=42 for details.\n",
    "csv": "1042,2026-01-17T09:30:00Z,Maria Lopez,maria@example.com,EUR,1249.90,paid,\"Calle Mayor 5, Madrid\"\n"
    "1043,2026-01-18T11:02:13Z,John Smith,john@example.org,USD,88.00,open,12 High Street\n",
    "code": "def total(self, items: list[Item], *, rate: float = 0.19) -> dict[str, float]:\n"
    "    token = self.tokens[0]\n    for index, item in enumerate(items):\n"
    "        if item.price < 0 or item['key'] is None:  # never\n            raise ValueError(f\"item {index}: {item!r}\")\n"
    "    return {item.name: item.price * (1 + rate) for item in items}\n\n",
    "log": "2026-01-17 09:30:00,123 INFO  [worker-3] app.orders: user=1042 session=9f8e7d6c5b4a path=/api/v1/orders "
    "status=200 took=12ms auth=ok token_count=512\n",
    "diff": "diff --git a/src/app.py b/src/app.py\nindex 3f2a1bc..9d8e7f6 100644\n--- a/src/app.py\n+++ b/src/app.py\n"
    "@@ -10,7 +10,7 @@ class App:\n-    password = None\n+    password: str | None = None\n     def run(self) -> None:\n",
    "chinese": "委员会于星期二召开会议，讨论2026年的预算；会议以七比二通过决议。人员、租金和差旅等要点应提交董事会审议。\n",
    "persian": "کمیته روز سه\u200cشنبه تشکیل جلسه داد و درباره\u200cی بودجه\u200cی سال ۲۰۲۶ گفت\u200cوگو کرد. نتیجه را می\u200cخواهیم.\n",
    "russian": "Комитет собрался во вторник, чтобы обсудить бюджет на 2026 год; решение принято семью голосами против двух.\n",
    "hindi": "समिति ने मंगलवार को बैठक की और 2026 के बजट पर चर्चा की; निर्णय सात के मुकाबले दो मतों से हुआ।\n",
    "emoji": "Release 2.4 👩‍💻 is out 🎉🎉 thanks to ❤️ the team 🇩🇪🇫🇷 1️⃣ faster 2️⃣ smaller 👍🏽 enjoy\n",
    "html": '<div class="row"><a href="/orders/1042">Order &amp; more</a> <b>EUR 12</b><br/><!-- end --></div>\n',
    "markdown": "## Orders\n\n| id | name |\n| -- | ---- |\n| 1 | [Maria](https://example.com/1) |\n"
    "See ![chart](https://example.com/c.png) and *more* [ ] todo `x[i](a)`\n",
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL\n",
    "hashes": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  src/app.py\n",
    "ansi": "\x1b[32m✓\x1b[0m \x1b[1mtests/test_app.py\x1b[0m \x1b[90m(12 ms)\x1b[0m\r\n",
}  # fmt: skip

_HOSTILE = {
    "escapes": "\x1b[31m", "controls": "\x00\x07", "zero-width": "a\u200b", "tags": "\U000e0041", "angle": "<",
    "frames": "<untrusted ", "tokens": "<|im_start|>", "links": "](http://e)", "mixed brackets": "[<(<[",
    "lookalikes": "＜ｔool ", "jwt": "eyJhbGciOiJub.", "jwts in a row": "eyJhbGciOiJub.eyJhbGciOiJub.abcdefgh ",
    "key beginnings": "ghp_ AKIA sk- xox eyJ ", "private keys": "-----BEGIN PRIVATE KEY-----\n",
    "real keys": "AKIAQ7ZX3WPLM4TNB6VD ", "passwords": "password=hunter2x ", "password words": "passwordtokenkey",
    "assignments": "token:=", "at signs": "@a.b", "colons": "://a:", "marks": "[U+200B]", "osc": "\x1b]0;",
    "digits": "4111 1111 ", "split keys": "gh\u200bp_", "bearers": "bearer bearer ", "aws": "aws key aws secret ",
    "carriage returns": "progress 10%\r", "base64 line": "QUJD", "begin": "-----BEGIN ",
}  # fmt: skip


def run() -> dict[str, Any]:
    """The figures, in milliseconds unless their name says otherwise."""
    return {
        "text": {name: _text(piece, _TERMS) for name, piece in _WORDS.items()},
        "everything redacted": {name: _text(_WORDS[name], _ALL) for name in ("prose", "csv", "log", "code")},
        "json": {name: _json_alone(value) for name, value in _tables().items()},
        "json with detector": {name: _json(value, _WIDE) for name, value in _tables().items()},
        "json call": {name: _json(value, _TERMS) for name, value in _tables().items()},
        "hostile": {name: _text(piece, _TERMS) for name, piece in _HOSTILE.items()},
        "plain Python, for comparison": {name: _plain_python(_WORDS[name]) for name in ("prose", "csv", "log", "html")},
        "call": {name: _call(piece) for name, piece in _WORDS.items()},
        "detector": {name: _detector(_WORDS[name]) for name in ("prose", "csv", "chinese", "html")},
        "stream": stream(_STREAM_BYTES),
    }


def stream(size_bytes: int) -> dict[str, Any]:
    """A long output through `StreamCleaner`: its rate, the memory of the process on the way, and the most that Python
    held for it (measured on a tenth)."""
    began = time.thread_time()
    resident = _pour(size_bytes)
    seconds = time.thread_time() - began
    tracemalloc.start()
    _pour(size_bytes // 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"MB": size_bytes / 1e6, "seconds": round(seconds, 1), "MB per second": round(size_bytes / seconds / 1e6, 1),
            "peak KiB": peak // 1024, "resident KiB after each fifth": ", ".join(map(str, resident))}  # fmt: skip


def _pour(size_bytes: int) -> list[int]:
    """The process's resident KiB after each fifth of the stream."""
    chunk = (_WORDS["log"] * 450)[: 64 * 1024].encode()
    cleaner = StreamCleaner(OutputTerms(max_bytes=2 * size_bytes), lambda _: None, _EXACT)
    resident: list[int] = []
    for _ in range(5):
        for _ in range(size_bytes // len(chunk) // 5):
            cleaner.feed(chunk)
        resident.append(int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KIB)
    cleaner.close()
    return resident


def _of(piece: str) -> str:
    return piece * (SIZE // len(piece.encode("utf-8", "surrogatepass")))


def _text(piece: str, terms: OutputTerms) -> float:
    text = _of(piece)
    return _best(lambda: neutralise(text, terms, _EXACT))


def _plain_python(piece: str) -> dict[str, float]:
    """What other ways to look at the same megabyte cost: none of them cleans it."""
    text = _of(piece)
    key = re.compile(r"(?:AKIA|ghp_|sk-|xox[bp]-|eyJ)[A-Za-z0-9_.-]{16,}")
    return {
        "html.escape": _best(lambda: html.escape(text)),
        "one regular expression for five kinds of key": _best(lambda: key.sub("[redacted]", text)),
        "a loop over its characters": _best(lambda: [one for one in text if one.isprintable() or one in "\n\t"], runs=2),
        "json.dumps": _best(lambda: json.dumps(text)),
    }


def _call(piece: str) -> float:
    raw = _of(piece).encode()
    return _best(lambda: clean_bytes(raw, _TERMS, _EXACT))


def _json(value: JSON, terms: OutputTerms) -> float:
    return _best(lambda: clean_json(value, terms, _EXACT))


def _json_alone(value: JSON) -> float:
    with mock.patch.object(structured, "suspect", return_value=Suspicion(score=0.0, signals=())):
        return _json(value, _WIDE)


def _detector(piece: str) -> float:
    text = _of(piece)
    return _best(lambda: suspect(text), runs=1)


def _best(work: Callable[[], object], runs: int = _RUNS) -> float:
    return round(min(_times(work, runs)) * 1000, 2)


def _times(work: Callable[[], object], runs: int) -> Iterator[float]:
    for _ in range(runs):
        began = time.thread_time()
        work()
        yield time.thread_time() - began


def _tables() -> dict[str, JSON]:
    """Rows as a database gives them: 10,000 of five columns; and other shapes of about 1 MB as JSON."""
    draw = random.Random(7)
    names = ("Maria Lopez", "John Smith", "Zoë Müller", "Nguyễn Văn A", "O'Brien, Pat", "Anna-Lena Graf")
    plain = [
        {"id": number, "name": draw.choice(names), "created": f"2026-01-{number % 28 + 1:02}T09:30:00Z",
         "email": f"user{number}@example.com", "total": number * 1.25}
        for number in range(10_000)
    ]  # fmt: skip
    marked = [
        {**row, "name": f"<b>{row['name']}</b>", "note": f"see [it](https://example.com/{row['id']})"} for row in plain
    ]
    ids = [{"id": f"{draw.getrandbits(128):032x}", "sha256": f"{draw.getrandbits(256):064x}"} for _ in range(8_000)]
    return {
        "table": freeze(plain),
        "table with markup": freeze(marked),
        "words": freeze(_WORDS["prose"].split() * 4000),
        "numbers": freeze([[draw.random(), number, None, True] for number in range(25_000)]),
        "lines of a log": freeze([_WORDS["log"].replace("1042", str(number)) for number in range(6_800)]),
        "hexadecimal ids": freeze(ids),
        "an object of 20,000 keys": freeze({f"{draw.choice(names)} {n}": "paid, not shipped yet" for n in range(20_000)}),
        "deep": freeze([_nested(draw.choice(names)) for _ in range(400)]),
        "few long strings": freeze([_of(_WORDS["prose"])[start : start + 100_000] for start in range(0, SIZE, 100_000)]),
    }


def _nested(text: str) -> dict[str, Any]:
    value: dict[str, Any] = {"leaf": text}
    for depth in range(50):
        value = {"child": value, "name": f"{text} {depth}", "n": depth}
    return value
