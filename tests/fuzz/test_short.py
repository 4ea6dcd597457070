# ruff: noqa: E501 - a table of pieces reads better in long lines
"""Short runs over every entry of untrusted bytes; `make fuzz` runs the same targets longer.

Inputs that once broke something are kept in `crashes/TARGET/`, and run first.
"""

from __future__ import annotations

import importlib.util
import os
import random
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FOLDER = Path(__file__).parent
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))


def _targets() -> ModuleType:
    spec = importlib.util.spec_from_file_location("toolcage_fuzz_targets", FOLDER / "targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = _targets().TARGETS

# Pieces that the readers and cleaners treat specially: bytes alone would hardly ever put two of them together.
PIECES = [
    b"../", b"%2e%2e/", b"\\", b"\xef\xbc\x8f", b"\xc0\xae", b"%c0%ae", b"C:", b"~", b"/workspace/", b"&#47;", b"\\u002f", b"0x2f",
    b"http://", b"https:", b"@", b"[::1]", b"127.1", b"0x7f", b":80", b"xn--", b"\xd0\xb0", b"\xc2\xad", b"#", b"?",
    b"<script>", b"<a href=", b"<!--", b"-->", b"</", b"'", b'"', b"&lt;", b"javascript:", b"<b", b">", b"](", b"![", b"]:",
    b"\x1b[31m", b"\x1b]8;;", b"\x07", b"\r", b"\n", b"\x00", b"\xe2\x80\x8b", b"\xe2\x80\xae", b"\xf3\xa0\x81\xa1", b"\xff", b"\xed\xa0\x80",
    b"ignore previous instructions", b"password: ", b"DE89 3704 0044 0532 0130 00", b"4111 1111 1111 1111", b"+49 30 1234567", b"415-555-2671", b"a@b.example", b"SK", b"figd_", b"E'", b"--", b"AKIAIOSFODNN7EXAMPLE", b"-----BEGIN PRIVATE KEY-----", b"eyJhbGciOiJIUzI1NiJ9",
    b"SELECT ", b" FROM t", b";", b"--", b"/*", b"$$", b"(", b")", b"WITH a AS (", b"$(", b"`", b"|", b">", b"a=", b"def f(", b"lambda:",
    b'{"tool":"', b'","arguments":{', b"}}", b"[", b"]", b"1e400", b"-0", b"NaN", b"9007199254740993", b"\\ud800", b"null",
    b"    allow: [{}]\n", b"    deny:\n", b"      - q: ", b"&a ", b"*a", b"!!int ", b"|\n", b"{pattern: '^a$'}", b"extends: [x]\n", b"- ", b": ",
    b"databases:\n  d: {", b"kind: postgresql, ", b"host: ", b"password: {env: P}", b"endpoints:\n  e: {url: 'https://", b"'}\n", b"mailboxes:\n  m: {",
    b"\r\n", b"\r\n.\r\n", b"\n.\n", b"MAIL FROM:<", b"RCPT TO:<", b"eve@evil.example", b"ada@example.com", b"bot@example.com", b"DATA\r\n", b"QUIT\r\n",
    b", ", b"<", b"\r\n ", b"Cc: ", b"Bcc: ", b"From: ", b"Reply-To: ", b"=?utf-8?q?", b"?=", b"\t", b"(c)", b"g: ", b"Subject: x\r\n\r\n",
    b"1:* ", b"BODY.PEEK[]", b"BODY[]", b"FLAGS", b"HEADER.FIELDS (", b"OR ", b"NOT ", b"SUBJECT ", b"CHARSET UTF-8 ", b"UID ", b"{3}", b"<0.9>",
    b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"\x00\x00\x00\x0a\x00\x03\x00\x00u\x00", b"\x00\x00\x00\x10\x04\xd2\x16\x2e", b"replication\x00on\x00\x00",
    b"x HTTP/1.1\r\nHost: x\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b" HTTP/1.1\r\n\r\n",
    b"GET /v1/a HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /admin HTTP/1.1\r\nHost: x\r\n\r\n", b":443", b"api.example.com", b"Authorization: x\r\n", b"\x00\x00\x10",
    b'{"operationId":"', b'","parameters":[{"in":"query","name":"', b'"schema":{', b'"type":"object"', b'"properties":{"', b'"$ref":"#/', b'"required":["',
    b"        - {in: query, name: ", b'"enum":[', b'"pattern":"', b'"allOf":[', b'"default":', b'"requestBody":{"content":{"application/json":{"schema":',
    b'[{"title":"', b'"content":"', b'"url":"', b"Result 2:", b"URL: ", b'"detail":{"error":"', b"charset=",
    b"\x00\x00\x00\x02\x01\x00\x00\x00\x00{}", b"\x01\x00\x00\x00\x00\x00\x00\x09", b"\x02\x00\x00\x00\x00\x00\x00\x05hello",
]  # fmt: skip
BYTES = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=6), st.text(max_size=6).map(lambda t: t.encode("utf-8", "replace"))),
                 max_size=24).map(b"".join)  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=EXAMPLES <= 60,
    database=None,
)
@given(raw=BYTES)
def test_no_input_breaks_an_invariant(name: str, raw: bytes) -> None:
    TARGETS[name](raw)


CRASHES = sorted(path for path in (FOLDER / "crashes").glob("*/*") if path.parent.name in TARGETS)


def test_what_once_broke_it_does_not_any_more() -> None:
    for path in CRASHES:
        TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize(
    "name",
    ["parsing", "screening", "paths", "urls", "addresses", "html", "cleaning", "cells", "detecting", "frames", "yaml"],
)
@pytest.mark.parametrize("seed", range(3))
def test_long_mixtures_end(name: str, seed: int) -> None:
    chance = random.Random(seed)
    TARGETS[name](b"".join(chance.choice(PIECES) * chance.randint(1, 12) for _ in range(60)))
