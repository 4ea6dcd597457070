"""The key is found in every usual spelling wherever a chunk ends, and nothing else of an answer changes."""

from __future__ import annotations

import base64
import html
import itertools
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.facts.secret_stream import SecretRemover

SECRET = 'sk-ab/c+D9_xyz"q%'
MARKUP = "sk-<a>&b'c\"d e&f"
RAW = SECRET.encode()
SPELLINGS = {
    "plain": RAW,
    "url": quote(SECRET, safe="").encode(),
    "url, lower case": quote(SECRET, safe="").lower().encode().replace(b"sk-ab%2fc%2bd9", b"sk-ab%2fc%2bD9"),
    "every character in percent": "".join(f"%{byte:02x}" for byte in RAW).encode(),
    "form": quote_plus(SECRET).encode(),
    "json": json.dumps(SECRET)[1:-1].encode(),
    "json with escapes": "".join(f"\\u00{byte:02x}" for byte in RAW).encode(),
    "html": html.escape(SECRET).encode(),
    "html by number": html.escape(SECRET).replace("&quot;", "&#034;").encode(),
    "escaped as in programs": "".join(f"\\x{byte:02x}" for byte in RAW).encode(),
    "UTF-16": SECRET.encode("utf-16"),
    "UTF-16, the other way round": SECRET.encode("utf-16-be"),
    "hex": RAW.hex().encode(),
    "HEX": RAW.hex().upper().encode(),
    "base64": base64.b64encode(RAW),
    "base64 behind a user's name": base64.b64encode(b"user:" + RAW),
    "base64 in the middle": base64.b64encode(b"xy" + RAW + b"tail"),
    "base64 for URLs": base64.urlsafe_b64encode(b"u" + RAW),
}


def passed(pieces: list[bytes], secret: str = SECRET) -> tuple[bytes, int]:
    remover = SecretRemover((secret,), same_length=True)
    out = b"".join(remover.feed(piece) for piece in pieces) + remover.close()
    return out, remover.removed


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_secret_is_masked_wherever_the_stream_is_cut(name: str) -> None:
    text = b"before " + SPELLINGS[name] + b" after"
    for cut in range(len(text) + 1):
        out, count = passed([text[:cut], text[cut:]])
        assert (len(out), count) == (len(text), 1)
    out, _ = passed([text[at : at + 1] for at in range(len(text))])
    assert RAW not in out
    assert out.count(b"*") >= len(RAW)


@pytest.mark.parametrize(
    "spelled",
    [
        html.escape(MARKUP),
        html.escape(MARKUP).replace("&#x27;", "&#039;"),
        html.escape(MARKUP).replace("&#x27;", "&apos;").replace(" ", "&nbsp;"),
        quote_plus(MARKUP),
        json.dumps(MARKUP)[1:-1],
        repr(MARKUP)[1:-1],
    ],
)
def test_a_secret_of_special_characters_is_masked_as_forms_and_pages_write_it(spelled: str) -> None:
    for cut in range(len(spelled) + 1):
        out, count = passed([spelled[:cut].encode(), spelled[cut:].encode()], MARKUP)
        assert (out, count) == (b"*" * len(spelled), 1)


UMLAUTS = "p\u00e4ssw\u00f6rd-\u00c3/7+x"
BY_NUMBER = UMLAUTS.encode("ascii", "xmlcharrefreplace")


@pytest.mark.parametrize(
    "spelled",
    [
        UMLAUTS.encode(),
        UMLAUTS.encode("latin-1"),
        BY_NUMBER,
        "".join(one if one.isascii() else f"&#x{ord(one):X};" for one in UMLAUTS).encode(),
        UMLAUTS.replace("\u00e4", "&auml;").replace("\u00f6", "&ouml;").replace("\u00c3", "&Atilde;").encode(),
        BY_NUMBER.replace(b"/", b"%2F").replace(b"+", b"&#43;"),
        json.dumps(UMLAUTS)[1:-1].replace("+", "\\u002B").replace("/", "\\/").encode(),
        repr(UMLAUTS.encode())[2:-1].encode(),
        repr(UMLAUTS.encode("latin-1"))[2:-1].encode(),
        quote(UMLAUTS, safe="").encode(),
        quote(quote(UMLAUTS, safe=""), safe="").encode(),
        quote(UMLAUTS.encode("latin-1"), safe="").lower().encode(),
        UMLAUTS.encode("latin-1").hex().upper().encode(),
        b"\\u00e4".join(part.encode() for part in UMLAUTS.split("\u00e4")),
    ],
    ids=range(14),
)
def test_a_secret_beyond_ascii_is_masked_in_every_charset_and_escape_of_its_letters(spelled: bytes) -> None:
    for cut in range(len(spelled) + 1):
        assert passed([spelled[:cut], spelled[cut:]], UMLAUTS) == (b"*" * len(spelled), 1)


def test_a_secret_beyond_ascii_is_masked_in_the_base64_of_a_narrow_charset() -> None:
    for before in (b"", b"u", b"u:"):
        text = base64.b64encode(before + UMLAUTS.encode("latin-1") + b"tail")
        assert passed([text], UMLAUTS)[1] == 1


@pytest.mark.parametrize(
    "spelled",
    [
        html.escape(json.dumps(MARKUP)[1:-1]),
        html.escape(json.dumps(MARKUP)[1:-1]).replace("&quot;", "&#34;"),
        html.escape(repr(MARKUP)[1:-1]),
        MARKUP.replace("'", "''"),
        MARKUP.replace('"', '""'),
        MARKUP.replace("'", "'\\''"),
        quote(quote(MARKUP, safe=""), safe=""),
    ],
)
def test_a_secret_quoted_in_a_statement_or_in_a_page_s_program_is_masked(spelled: str) -> None:
    for cut in range(len(spelled) + 1):
        out, count = passed([spelled[:cut].encode(), spelled[cut:].encode()], MARKUP)
        assert (out, count) == (b"*" * len(spelled), 1)


def test_ordinary_text_passes_unchanged_and_without_delay() -> None:
    remover = SecretRemover((SECRET,), same_length=True)
    text = b"An ordinary answer, which ends with no part of it.\n" * 100
    assert remover.feed(text) == text
    assert (remover.close(), remover.removed) == (b"", 0)


def test_what_may_be_the_beginning_is_held_back_until_it_is_decided() -> None:
    remover = SecretRemover((SECRET,), same_length=True)
    assert remover.feed(b"x " + RAW[:8]) == b"x "
    assert remover.feed(b"!") == RAW[:8] + b"!"
    assert remover.feed(RAW[:8]) == b""
    assert remover.close() == RAW[:8]


def test_without_a_secret_everything_passes() -> None:
    assert SecretRemover((), same_length=True).feed(RAW) == RAW


def test_a_header_s_value_is_masked_whole() -> None:
    assert SecretRemover((SECRET,), same_length=True).remove(b"Bearer " + RAW) == b"Bearer " + b"*" * len(RAW)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_bytes_that_hold_no_secret_come_out_as_they_went_in(content: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    pieces = [content[start:end] for start, end in itertools.pairwise(edges)]
    out, count = passed(pieces, "a-secret-of-some-length")
    assert (out, count) == (content, 0)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=6, max_size=40), st.integers(0, 200))
def test_any_secret_is_found_in_plain_and_in_base64(secret: str, cut: int) -> None:
    for spelled in (secret.encode(), base64.b64encode(b"ab" + secret.encode() + b"z")):
        text = b"<" + spelled + b">"
        out, count = passed([text[:cut], text[cut:]], secret)
        assert count >= 1
        assert secret.encode() not in out


@pytest.mark.parametrize(
    "written",
    [
        lambda raw: raw,
        lambda raw: raw.hex().encode(),
        lambda raw: raw.hex().upper().encode(),
        base64.b64encode,
        lambda raw: raw.decode().encode("utf-16-le"),
        lambda raw: "".join(f"%{byte:02x}" for byte in raw).encode(),
        lambda raw: "".join(f"\\u00{byte:02x}" for byte in raw).encode(),
        lambda raw: "".join(f"&#{byte};" for byte in raw).encode(),
    ],
)
def test_a_text_that_ends_within_a_long_secret_is_judged_in_one_pass(written: Callable[[bytes], bytes]) -> None:
    """With two equal ways to read one digit the search would double at each and never end."""
    raw = b"sk-canary-0123456789abcdef" * 4
    whole = written(raw)
    for missing in range(1, 4):
        remover = SecretRemover((raw.decode(),), same_length=True)
        kept = b"".join((remover.feed(b"it is " + whole[:-missing]), remover.feed(b"!"), remover.close()))
        assert len(kept) == len(whole) + 7 - missing


def test_a_secret_whose_characters_begin_their_own_escapes_is_judged_in_one_pass() -> None:
    r"""`\` may be written `\\`: two ways to read each would double the search at each."""
    secret = "key" + "\\" * 40 + "%&" * 10 + "end"
    remover = SecretRemover((secret,), same_length=True)
    for told in (secret, secret.replace("\\", "\\\\"), secret.replace("%", "%25").replace("&", "&amp;")):
        assert remover.remove(told.encode()) == b"*" * len(told)
    for apart in ("key" + "\\" * 79, "key" + "\\" * 60 + "%&" * 10, secret[:-1], secret[1:]):
        assert remover.remove(apart.encode()) == apart.encode()
