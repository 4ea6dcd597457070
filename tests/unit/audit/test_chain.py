"""One line, one form: what is hashed, what is written, and what a reader refuses."""

from __future__ import annotations

import hashlib
import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from toolcage.audit.chain import GENESIS, Head, MalformedLine, canonical, extend, mac_of, parse_line
from toolcage.audit.record import INTEGER_FIELDS, LARGEST_INTEGER, PAYLOAD_FIELDS

TIME = "2026-01-02T03:04:05.000006Z"
WORDS = sorted(PAYLOAD_FIELDS - INTEGER_FIELDS)

texts = st.text(st.characters(exclude_categories=("Cs",)))
payloads = st.dictionaries(st.sampled_from(WORDS), texts, max_size=8)


def line_of(**payload: str | int) -> bytes:
    """A genuine line without its newline."""
    _, line = extend(Head(runtime="run"), "note", TIME, payload, None)
    return line[:-1]


@given(st.dictionaries(texts, texts | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)))
def test_the_fast_canonical_form_is_that_of_the_rfc8785_library_for_flat_records(fields: dict[str, str | int]) -> None:
    ascii_names = {name.encode("unicode_escape").decode(): value for name, value in fields.items()}
    assert canonical(ascii_names) == rfc8785.dumps(ascii_names)


@given(payloads)
def test_a_line_is_printable_ascii_and_reads_back_exactly(payload: dict[str, str]) -> None:
    line = line_of(**payload)
    assert all(0x20 <= byte <= 0x7E for byte in line)
    parsed = parse_line(line)
    assert parsed.digest == parsed.hash
    assert {name: parsed.fields[name] for name in payload} == payload
    assert json.loads(line) == {**parsed.fields, "hash": parsed.hash}


@given(payloads)
def test_the_hash_can_be_recomputed_with_nothing_but_a_json_parser_and_rfc8785(payload: dict[str, str]) -> None:
    record = json.loads(line_of(**payload))
    claimed = record.pop("hash")
    assert hashlib.sha256(rfc8785.dumps(record)).hexdigest() == claimed


def test_a_record_follows_its_head_and_the_first_follows_zeros() -> None:
    one, first = extend(Head(runtime="run"), "note", TIME, {}, None)
    two, second = extend(one, "note", TIME, {}, None)
    assert parse_line(first[:-1]).fields["prev"] == GENESIS
    assert parse_line(second[:-1]).fields["prev"] == one.hash
    assert (one.seq, two.seq) == (1, 2)


def test_the_mac_needs_the_key() -> None:
    key = b"k" * 32
    _, line = extend(Head(runtime="run"), "note", TIME, {"note": "x"}, key)
    parsed = parse_line(line[:-1])
    assert parsed.mac == mac_of(parsed.hash, key)
    assert parsed.mac != mac_of(parsed.hash, b"l" * 32)


def rehashed(content: bytes) -> bytes:
    """What a forger writes: any bytes as content, under the hash of just these bytes."""
    return b'{"hash":"' + hashlib.sha256(content).hexdigest().encode() + b'",' + content[1:]


def test_the_forgers_tool_itself_makes_a_line_that_reads() -> None:
    parsed = parse_line(rehashed(content_of(line_of(note="x"))))
    assert parsed.digest == parsed.hash


def content_of(line: bytes) -> bytes:
    return b"{" + line[75:]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":"x","note":"y"'), "form", id="key twice"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":"y","note":"x"'), "form", id="key twice, other order"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":NaN'), "not JSON", id="NaN"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":Infinity'), "not JSON", id="Infinity"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":1.0'), "number", id="float"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":1e0'), "number", id="exponent"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":-1'), "number", id="negative"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":"1"'), "number", id="text for a number"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":true'), "number", id="boolean"),
        pytest.param(lambda c: c.replace(b'"seq":1', b'"seq":99999999999999999999'), "2\\^53", id="huge number"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":null'), "text", id="null"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":{"a":1}'), "text", id="nested"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note": "x"'), "form", id="white space"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":"\\u0078"'), "form", id="another escape"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":"\xc3\xa9"'), "form", id="raw UTF-8"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":"\x7f"'), "form", id="raw DEL"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":"\x1b[2J"'), "not JSON", id="raw escape"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"note":"\\ud800"'), "not JSON", id="lone surrogate"),
        pytest.param(lambda c: c.replace(b'"note":"x"', b'"nope":"x"'), "unknown field", id="unknown field"),
        pytest.param(lambda c: c.replace(b'"note":"x",', b'"hash":"x",'), "unknown field", id="a second hash"),
        pytest.param(lambda c: c.replace(b'"v":1', b'"v":2'), "version", id="another version"),
        pytest.param(lambda c: c.replace(b'"type":"note"', b'"type":"nope"'), "type", id="unknown type"),
        pytest.param(lambda c: c.replace(b',"v":1', b""), "lacks", id="a field missing"),
        pytest.param(lambda c: c.replace(b'"note":"x",', b"")[:-1] + b',"note":"x"}', "order", id="out of order"),
        pytest.param(lambda c: c + b"x", "not JSON", id="something behind it"),
        pytest.param(lambda c: b"{" + b'"a":[' * 100_000, "not JSON", id="very deep"),
    ],
)  # fmt: skip
def test_a_line_in_any_other_form_is_refused_even_where_its_hash_fits(change, reason) -> None:  # type: ignore[no-untyped-def]
    content = content_of(line_of(note="x"))
    changed = change(content)
    assert changed != content
    with pytest.raises(MalformedLine, match=reason):
        parse_line(rehashed(changed))


@pytest.mark.parametrize("line", [b"", b"{}", b"null", b"[1]", b'{"hash":"', b'{"hash":"' + b"0" * 64, b"\x00" * 100])
def test_bytes_that_are_no_record_are_refused(line: bytes) -> None:
    with pytest.raises(MalformedLine):
        parse_line(line)


@pytest.mark.parametrize("digits", [b"A" * 64, b"\x1b" * 64, b"\xff" * 64])
def test_a_hash_or_mac_that_is_not_lower_case_hexadecimal_is_refused(digits: bytes) -> None:
    line = line_of(note="x")
    with pytest.raises(MalformedLine, match="hash"):
        parse_line(line[:9] + digits + line[73:])
    with pytest.raises(MalformedLine, match="mac"):
        parse_line(line[:75] + b'"mac":"' + digits + b'",' + line[75:])
