"""What passes of the commands of IMAP, and the one form in which it passes."""

from __future__ import annotations

import pytest

from toolcage.broker.imap_command import Unreadable, fetch, quoted, search, words
from toolcage.facts.mail_folder import encode_folder


def test_a_line_is_taken_apart_into_words_strings_and_parentheses() -> None:
    assert words(b'UID SEARCH (FROM "a \\"b\\" \\\\c") ALL') == [
        "UID", "SEARCH", "(", "FROM", b'a "b" \\c', ")", "ALL",
    ]  # fmt: skip
    for line in (b'"open', b'"a\rb"', b"a{3}", b"\xff", b'"\\n"', b"a\tb", b'"' + b"x" * 2000 + b'"'):
        with pytest.raises(Unreadable):
            words(line)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (b"all", ["ALL"]),
        (b"since 1-May-2026 unseen", ["SINCE", "1-May-2026", "UNSEEN"]),
        (b"from ada", ["FROM", b"ada"]),
        (b'not (subject "x" larger 9)', ["NOT", "(", "SUBJECT", b"x", "LARGER", "9", ")"]),
        (b"or seen uid 1:*", ["OR", "SEEN", "UID", "1:*"]),
        (b"header list-id x", ["HEADER", "list-id", b"x"]),
        (b"charset utf-8 text y", ["CHARSET", "UTF-8", "TEXT", b"y"]),
    ],
)
def test_a_search_is_written_anew(line: bytes, written: list[object]) -> None:
    assert search(words(line)) == written


def test_text_beyond_ascii_says_its_charset() -> None:
    assert search(["TEXT", "王".encode()]) == ["CHARSET", "UTF-8", "TEXT", "王".encode()]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (b"1 FLAGS", "1 (FLAGS)"),
        (b"1:9,12 (uid body.peek[header])", "1:9,12 (UID body.peek[header])"),
        (b"4 (BODY.PEEK[1.2.MIME]<0.100>)", "4 (BODY.PEEK[1.2.MIME]<0.100>)"),
        (b"4 (BODY.PEEK[HEADER.FIELDS (From To)] UID)", "4 (BODY.PEEK[HEADER.FIELDS (From To)] UID)"),
    ],
)
def test_a_fetch_is_written_anew(text: bytes, written: str) -> None:
    assert fetch(text) == written


@pytest.mark.parametrize(
    "text",
    [
        b"", b"1", b"1 ()", b"1 (BODY[])", b"1 (BODY.PEEK[])\r\nT1 X", b"1 (BODY.PEEK[]) x", b"1 RFC822",
        b"1 (BODY.PEEK[HEADER.FIELDS ()])", b"1 (BODY.PEEK[\x00])", b"a (FLAGS)", b"1 (FLAGS) (X)",
        b"1 (" + b"BODY.PEEK[" * 500 + b")",
    ],
)  # fmt: skip
def test_a_fetch_of_another_kind_is_unreadable(text: bytes) -> None:
    with pytest.raises(Unreadable):
        fetch(text)


def test_folders_are_written_in_modified_utf_7() -> None:
    assert encode_folder("Reports & more") == b"Reports &- more"
    assert encode_folder("台北") == b"&U,BTFw-"  # the example of RFC 3501
    assert encode_folder("Отчёты") == b"&BB4EQgRHBFEEQgRL-"


def test_only_printable_ascii_is_quoted() -> None:
    assert quoted(b'a"\\b') == b'"a\\"\\\\b"'
    assert [quoted(value) for value in ("é".encode(), b"a\r\nb", b"\0", b"\x7f")] == [None] * 4
