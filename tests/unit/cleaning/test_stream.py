"""Output that is cleaned while it arrives keeps the same promises at every chunk border, with flat memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.cleaning import StreamCleaner
from toolcage.types import OutputTerms

KEY = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
WIDE = OutputTerms(max_bytes=10**7)


def run(chunks: list[bytes], terms: OutputTerms = WIDE, exact: tuple[str, ...] = ()) -> tuple[str, StreamCleaner]:
    pieces: list[str] = []
    cleaner = StreamCleaner(terms, pieces.append, exact)
    for chunk in chunks:
        cleaner.feed(chunk)
    cleaner.close()
    return "".join(pieces), cleaner


def split(raw: bytes, size: int) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


@pytest.mark.parametrize("size", [1, 3, 7, 64])
def test_dangers_split_over_chunks_are_caught(size: int) -> None:
    raw = f"a \x1b[31m {KEY} <script> ![x](http://e) <|im_start|> ключ\r\nhunter2!\nend".encode()
    text, cleaner = run(split(raw, size), exact=("hunter2!",))
    assert text == (
        "a ␛[31m [redacted:github_token] &lt;script> ![x] (http://e) ‹|im_start|› ключ\n[redacted:secret]\nend"
    )
    assert cleaner.findings["secret_redacted"] == 2


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9000), st.sampled_from([1000, 4096, 8192, 100_000]), st.sampled_from(["x", "x ", "<", "]", "é"]))
def test_a_key_in_a_line_of_any_length_never_leaks(before: int, size: int, filler: str) -> None:
    raw = (filler * before + " " + KEY + " " + filler * 12_000).encode()
    text, _ = run(split(raw, size))
    assert KEY[4:14] not in text
    assert KEY[-10:] not in text


@pytest.mark.parametrize("danger", [KEY, "hunter2!", "<script>", "![x](http://e)", "<|im_start|>", "</tool_result>"])
def test_no_danger_survives_where_a_long_line_is_cut(danger: str) -> None:
    # Fed byte by byte, a line is cut when 8 KiB and one are held, 4 KiB before its end.
    for inside in range(1, len(danger)):
        raw = ("." * (4097 - inside) + danger + "." * 8200).encode()
        text, _ = run(split(raw, 1), exact=("hunter2!",))
        assert danger not in text
        assert danger.removesuffix(danger[-4:]) not in text


def test_a_private_key_over_many_lines_is_held_until_its_end() -> None:
    body = "\n".join(f"MIIEowIBAAKCAQEA{i:04}" + "x" * 44 for i in range(40))
    raw = f"before\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nafter\n".encode()
    text, _ = run(split(raw, 50))
    assert text == "before\n[redacted:private_key]\nafter\n"


def test_complete_lines_are_shown_at_once_and_unfinished_ones_are_not() -> None:
    pieces: list[str] = []
    cleaner = StreamCleaner(WIDE, pieces.append)
    cleaner.feed(b"one\ntw")
    assert pieces == ["one\n"]
    cleaner.feed(b"o\n")
    assert pieces == ["one\n", "two\n"]


def test_memory_stays_flat_on_a_line_without_end() -> None:
    held = 0
    cleaner = StreamCleaner(WIDE, lambda text: None)
    for _ in range(200):
        cleaner.feed(b"x" * 4096)
        held = max(held, len(cleaner._held))
    assert held <= 8 * 1024 + 4096


def test_bytes_beyond_the_cap_are_dropped_counted_and_marked() -> None:
    text, cleaner = run([b"x" * 50] * 100, OutputTerms(max_bytes=1000))
    assert cleaner.dropped == 4000
    assert text == "x" * 1000 + "\n[… 4000 bytes dropped …]\n"


def test_a_closed_stream_takes_nothing() -> None:
    _, cleaner = run([b"x"])
    with pytest.raises(ValueError, match="closed"):
        cleaner.feed(b"y")
