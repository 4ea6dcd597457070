"""A danger is caught wherever a chunk ends, and a long output needs no more memory than a short one."""

import os
import tracemalloc

import pytest

from toolcage.cleaning import StreamCleaner, neutralise
from toolcage.types import OutputTerms

KEY = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
LINES = "first-line-of-it\nsecond-line-of-it"
TERMS = OutputTerms(max_bytes=10**8, redact=("secrets", "email", "iban", "card", "phone"))
# What is fed, and what must not be seen afterwards.
DANGERS = {
    "key": (KEY, KEY[8:16]),
    "key split by a colour": (KEY[:20] + "\x1b[31m" + KEY[20:], KEY[8:16]),
    "key split by zero-width": (KEY[:20] + "\u200b" + KEY[20:], KEY[8:16]),
    "password": ("password: hunter2x", "hunter2x"),
    "password on the next line": ("password:\n  hunter2x", "hunter2x"),
    "bearer on the next line": ("Authorization: Bearer\n  abcdef0123456789abcdef", "abcdef0123"),
    "aws pair": ("AKIAQ7ZX3WPLM4TNB6VD\nwJalrXUtnFEMIxK7MDENGxbPxRfiCYzzzzzzKEY1", "wJalrXUt"),
    "known value": ("hunter2!", "hunter2!"),
    "known value of two lines": (LINES, "second-line-of-it"),
    "known value in hexadecimal": (b"hunter2!".hex(), b"hunter2!".hex()),
    "private key": ("-----BEGIN PRIVATE KEY-----\n" + "MIIE" * 16 + "\n-----END PRIVATE KEY-----", "MIIEMIIE"),
    "url": ("postgres://app:pa55word@db.example/x", "pa55word"),
    "tag": ("<script>", "<script"),
    "frame": ("<|im_start|>", "<|im_start|>"),
    "bracket": ("[/INST]", "[/INST]"),
    "image": ("![x](http://e/a)", "](http"),
    "definition": ("[x]: http://e/a", "]: http"),
    "escape": ("\x1b]8;;http://e\x07text\x1b]8;;\x07", "\x1b"),
    "carriage return": ("shown\rhidden", "\r"),
    "bidi": ("a\u202eb", "\u202e"),
    "tags": ("a\U000e0041\U000e0042b", "\U000e0041"),
    "mail": ("maria@example.com", "aria@example"),
    "account": ("DE89 3704 0044 0532 0130 00", "0044 0532"),
    "card": ("4111 1111 1111 1111", "1111 1111"),
    "telephone": ("+49 30 1234567", "1234567"),
}  # fmt: skip


def shown(chunks: list[bytes], terms: OutputTerms = TERMS) -> str:
    pieces: list[str] = []
    cleaner = StreamCleaner(terms, pieces.append, ("hunter2!", LINES))
    for chunk in chunks:
        cleaner.feed(chunk)
    cleaner.close()
    return "".join(pieces)


@pytest.mark.parametrize(("danger", "hidden"), DANGERS.values(), ids=DANGERS.keys())
@pytest.mark.parametrize("before", ["", "a line\n", "words "])
def test_a_danger_split_at_any_byte_is_caught_as_if_it_had_come_whole(danger: str, hidden: str, before: str) -> None:
    raw = f"{before}{danger} \nend\n".encode()
    whole = neutralise(raw.decode(), TERMS, ("hunter2!", LINES))[0]
    for place in range(1, len(raw)):
        text = shown([raw[:place], raw[place:]])
        assert hidden not in text
        assert text == whole


@pytest.mark.parametrize("size", [1, 50, 4096, 100_000])
@pytest.mark.parametrize("newline", ["\n", "\\n"])
def test_a_private_key_longer_than_what_is_held_leaves_nothing(size: int, newline: str) -> None:
    body = newline.join(f"MIIEowIBAAKCAQEA{i:04}" + "x" * 44 for i in range(300))
    raw = f"-----BEGIN PRIVATE KEY-----{newline}{body}{newline}-----END PRIVATE KEY-----\nafter it\n".encode()
    assert shown([raw[i : i + size] for i in range(0, len(raw), size)]) == "[redacted:private_key]\nafter it\n"


@pytest.mark.parametrize("size", [700, 4096, 100_000])
@pytest.mark.parametrize("lead", [0, 3900, 6000])
def test_a_known_value_longer_than_what_is_held_is_redacted_in_a_long_line(size: int, lead: int) -> None:
    secret = "".join(f"{i:x}-" for i in range(1500))
    raw = b"w" * lead + b"= " + secret.encode().hex().encode() + b" =" + b"e" * 20_000
    pieces: list[str] = []
    cleaner = StreamCleaner(TERMS, pieces.append, (secret,))
    for start in range(0, len(raw), size):
        cleaner.feed(raw[start : start + size])
    cleaner.close()
    assert "".join(pieces) == "w" * lead + "= [redacted:secret] =" + "e" * 20_000


def test_text_after_a_private_key_without_an_end_is_shown() -> None:
    raw = ("-----BEGIN PRIVATE KEY-----\n" + ("M" * 64 + "\n") * 300 + "and then, some prose.\n").encode()
    text = shown([raw[i : i + 1000] for i in range(0, len(raw), 1000)])
    assert text.endswith("and then, some prose.\n")
    assert "MMMM" not in text


def peak(size: int) -> int:
    line = b"2026-01-17 09:30:00 INFO worker-3 user=1042 path=/api/v1/orders status=200\n"
    chunk = line * (64 * 1024 // len(line))
    cleaner = StreamCleaner(OutputTerms(max_bytes=2 * size), lambda text: None, ("hunter2!",))
    tracemalloc.start()
    try:
        for _ in range(size // len(chunk)):
            cleaner.feed(chunk)
        cleaner.close()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LONG_MB = int(os.environ.get("TOOLCAGE_STREAM_MB", "24"))


def test_memory_is_flat_however_long_the_output() -> None:
    # TOOLCAGE_STREAM_MB=1000 for the long run; `python -m benchmarks cleaning` pours a gigabyte too.
    short = peak(2_000_000)
    assert peak(LONG_MB * 1_000_000) <= short + 64 * 1024
    assert short <= 2 * 1024 * 1024
