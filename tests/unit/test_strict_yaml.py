"""The strict YAML subset: what is read, what is refused, and that every refusal names its line."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor

from toolcage.errors import PolicyError
from toolcage.strict_yaml import MAX_BYTES, Document, parse_document


def parse(text: str | bytes) -> Document:
    return parse_document(text if isinstance(text, bytes) else text.encode(), "f.yaml", PolicyError)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{}", {}),
        ("a: 1", {"a": 1}),
        ("a: -3\nb: 1.5\nc: true\nd: false", {"a": -3, "b": 1.5, "c": True, "d": False}),
        ("e: null\nf: ~\ng:", {"e": None, "f": None, "g": None}),
        ("a: 'yes'\nb: \"012\"\nc: '1'", {"a": "yes", "b": "012", "c": "1"}),
        ("a: 5s\nb: 256MiB\nc: 2024-01-01", {"a": "5s", "b": "256MiB", "c": "2024-01-01"}),
        ("d: 127.0.0.1\ne: 60/minute", {"d": "127.0.0.1", "e": "60/minute"}),
        ("a: [1, {b: c}]  # note\n", {"a": [1, {"b": "c"}]}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ('a: "tab\\there \\u202e"', {"a": "tab\there \u202e"}),
        ("'<<': 1", {"<<": 1}),
        ("y: 1\nn: 2", {"y": 1, "n": 2}),
    ],
)
def test_the_plain_subset_is_read_as_written(text: str, data: Any) -> None:
    assert parse(text).data == data


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("# only a note\n", 1, "empty"),
        ("a: 1\nb: [", 2, "not YAML"),
        ("a: 1\nb: 2\na: 3", 3, "stands twice, first in line 1"),
        ("a:\n  b: 1\n  'b': 2", 3, "stands twice, first in line 2"),
        ("x:\n - {k: 1, k: 2}", 2, "stands twice"),
        ("a: 1\nb: &x 2", 2, "anchor `&x`"),
        ("a: 1\n&k b: 2", 2, "anchor `&k`"),
        ("a: &x [1]\nb: *x", 1, "anchor"),
        ("a: *x", 1, "alias `*x`"),
        ("*x : 1", 1, "alias `*x`"),
        ("a: 1\n<<: {b: 1}", 2, "merge key"),
        ("a: !!str 1", 1, "tag"),
        ("a: !!python/object/apply:os.system [id]", 1, "tag"),
        ("a: ! x", 1, "tag"),
        ("!!str a: 1", 1, "tag"),
        ("%YAML 1.1\n---\na: 1", 1, "directive"),
        ("%TAG ! tag:x,2000:\n---\na: 1", 1, "directive"),
        ("a: 1\n---\nb: 2", 2, "second document"),
        ("a: 1\n...\nb: 2", 3, "second document"),
        ("? [a]\n: 1", 1, "a list or a mapping"),
        ("1: a", 1, "not text"),
        ("true: a", 1, "not text"),
        ("null: a", 1, "not text"),
        ("a: yes", 1, "different things"),
        ("a: Off", 1, "different things"),
        ("on: 1", 1, "different things"),
        ("a: TRUE", 1, "different things"),
        ("a: 012", 1, "different things"),
        ("a: 0x1F", 1, "different things"),
        ("a: 0o17", 1, "different things"),
        ("a: 1_000", 1, "different things"),
        ("a: 1:30", 1, "different things"),
        ("a: 1e5", 1, "different things"),
        ("a: +1", 1, "different things"),
        ("a: .5", 1, "different things"),
        ("a: .inf", 1, "different things"),
        ("a: -.INF", 1, "different things"),
        ("a: .NaN", 1, "different things"),
        ("a: 9007199254740992", 1, "beyond 2^53-1"),
        ("a: 1\nb: \u202ex", 2, "U+202E"),
        ("a: 1\n# \u2066", 2, "U+2066"),
        ("a: x\u200by", 1, "U+200B"),
        ("\ufeffa: 1", 1, "U+FEFF"),
        ("a: \x00", 1, "U+0000"),
        ("a: x\x85deny: []", 1, "U+0085"),
        ("a: x\u2028deny: []", 1, "U+2028"),
        ("# x\rdeny: []", 1, "U+000D"),
        ('a: "\\ud800"', 1, "half a character"),
        ("a: " + "[" * 40 + "]" * 40, 1, "nested deeper"),
        ("a: " + "[" * 5000 + "]" * 5000, 1, "nested deeper"),
        ("a: [" + "1," * 20_001 + "]", 1, "more than 20000 values"),
    ],
)
def test_anything_outside_the_subset_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"f.yaml:{line}: ")
    assert said in str(caught.value)


def test_bytes_that_are_not_utf_8_are_refused_with_their_line() -> None:
    with pytest.raises(PolicyError, match=r"f\.yaml:2: not UTF-8"):
        parse(b"a: 1\nb: \xff\n")
    with pytest.raises(PolicyError, match="not UTF-8"):
        parse("a: 1".encode("utf-16"))


def test_a_file_above_the_size_cap_is_refused_and_one_below_is_read() -> None:
    fitting = "a: 1\n#" + "x" * (MAX_BYTES - 6)
    assert parse(fitting).data == {"a": 1}
    with pytest.raises(PolicyError, match="larger than 256 KiB"):
        parse(fitting + "x")


def test_every_value_knows_its_line_and_an_unknown_path_falls_back_to_the_nearest_part() -> None:
    document = parse("a: 1\nb:\n  c:\n    - x\n    - y: 2\n")
    assert document.line(("b",)) == 2
    assert document.line(("b", "c", 1, "y")) == 5
    assert document.line(("b", "c", 7, "z")) == 3
    assert document.line(("nothing",)) == 1
    assert document.line(()) == 1


class Words(SafeConstructor):
    """`=` alone has a type in YAML 1.1 that this reader still knows and makes nothing of; in 1.2 it is a word."""


Words.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)


@given(st.text(max_size=60))
@example("=")
def test_any_text_is_either_refused_or_read_as_a_yaml_1_2_reader_reads_it(text: str) -> None:
    try:
        data = parse(text.encode("utf-8", "surrogatepass")).data
    except PolicyError:
        return
    reader = YAML(typ="safe", pure=True)
    reader.Constructor = Words
    assert data == reader.load(text) or "-" in text  # dates are text here


def test_an_equals_sign_is_a_word_as_in_yaml_1_2() -> None:
    assert parse("a: =\n").data == {"a": "="}


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_the_callers_error(raw: bytes) -> None:
    with contextlib.suppress(PolicyError):
        parse(raw)


def test_a_tab_that_indents_is_told_as_what_it_is() -> None:
    with pytest.raises(PolicyError, match=r"x\.yaml:2: not YAML: a line begins with a tab; indent with spaces"):
        parse_document(b"a:\n\tb: 1\n", "x.yaml", PolicyError)
