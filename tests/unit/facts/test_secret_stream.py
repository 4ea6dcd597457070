"""A known value is taken out of bytes that pass through, whatever its form and wherever the chunks end."""

import base64
import json
import random
import tracemalloc
from collections.abc import Callable
from urllib.parse import quote

import pytest

from toolcage.facts import secret_stream
from toolcage.facts.secret_stream import SecretRemover

SECRET = "pq8/Zt55+mail pass?word~é"
FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "base64": lambda v: base64.b64encode(v.encode()),
    "base64 behind one byte": lambda v: base64.b64encode(b"u" + v.encode() + b"tail"),
    "base64 behind two bytes": lambda v: base64.b64encode(b"u:" + v.encode() + b"tail"),
    "base64 for addresses": lambda v: base64.urlsafe_b64encode(v.encode()),
    "base64 in an address": lambda v: quote(base64.b64encode(v.encode()), safe="").encode(),
    "hexadecimal": lambda v: v.encode().hex().encode(),
    "hexadecimal, upper case": lambda v: v.encode().hex().upper().encode(),
    "hexadecimal with colons": lambda v: v.encode().hex(":").upper().encode(),
    "hexadecimal of a literal": lambda v: "".join(f"\\x{b:02X}" for b in v.encode()).encode(),
    "every byte percent-encoded": lambda v: "".join(f"%{b:02X}" for b in v.encode()).encode(),
    "url": lambda v: quote(v, safe="").encode(),
    "url, lower case": lambda v: quote(v, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%3F", "%3f")
    .replace("%C3%A9", "%c3%a9").encode(),
    "encodeURIComponent": lambda v: quote(v, safe="!'()*~").encode(),
    "encodeURI": lambda v: quote(v, safe=";,/?:@&=+$#!'()*~").encode(),
    "json": lambda v: json.dumps(v)[1:-1].encode(),
    "json, slashes escaped": lambda v: json.dumps(v)[1:-1].replace("/", "\\/").encode(),
}  # fmt: skip


def through(remover: SecretRemover, chunks: list[bytes]) -> bytes:
    return b"".join(map(remover.feed, chunks)) + remover.close()


@pytest.mark.parametrize("write", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("same_length", [False, True])
def test_a_form_split_at_any_byte_is_removed_as_if_it_had_come_whole(
    write: Callable[[str], bytes], same_length: bool
) -> None:
    written = write(SECRET)
    raw = b"before " + written + b"\nafter"
    whole = SecretRemover([SECRET], same_length=same_length).remove(raw)
    assert written[4:-4] not in whole
    assert whole.startswith(b"before ")
    assert whole.endswith(b"\nafter")
    assert len(whole) == len(raw) or not same_length
    for place in range(len(raw) + 1):
        assert through(SecretRemover([SECRET], same_length=same_length), [raw[:place], raw[place:]]) == whole
    one_by_one = [raw[i : i + 1] for i in range(len(raw))]
    remover = SecretRemover([SECRET], same_length=same_length)
    assert through(remover, one_by_one) == whole
    assert remover.removed == 1


def test_what_is_no_secret_passes_at_once_and_unchanged() -> None:
    remover = SecretRemover([SECRET, "hunter2!"])
    for event in (b"data: {}\n\n", b"\x00\xff\xfe", b"hunter2 without its sign\n"):
        assert remover.feed(event) == event
    assert remover.removed == 0


def test_only_what_could_begin_a_secret_is_held_and_closing_gives_it_back() -> None:
    remover = SecretRemover(["hunter2!"])
    assert remover.feed(b"I like hunter") == b"I like "
    assert remover.feed(b"s, hunter2") == b"hunters, "
    assert remover.close() == b"hunter2"
    assert remover.close() == b""
    with pytest.raises(ValueError, match="closed"):
        remover.feed(b"x")


def test_a_secret_that_begins_with_another_is_removed_whole_wherever_it_is_split() -> None:
    raw = b"x token-1234-extended-5678 y token-1234 z"
    for place in range(len(raw)):
        text = through(SecretRemover(["token-1234", "token-1234-extended-5678"]), [raw[:place], raw[place:]])
        assert text == b"x [redacted:secret] y [redacted:secret] z"


@pytest.mark.parametrize("seed", range(40))
def test_chunks_of_any_size_leave_no_secret_and_lose_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    secrets = ["abcab", "hunter2!", "canary-5f2c9a7be1"]
    pieces = [b"abc", b"ab", b"hunter", b"2!", b"canary-5f2c", b"9a7be1", b"\n", b"x", *map(str.encode, secrets)]
    raw = b"".join(chance.choices(pieces, k=60))
    chunks, rest = [], raw
    while rest:
        size = chance.randint(1, 9)
        chunks.append(rest[:size])
        rest = rest[size:]
    text = through(SecretRemover(secrets, same_length=True), chunks)
    assert len(text) == len(raw)
    assert not [secret for secret in secrets if secret.encode() in text]
    assert all(new in (old, ord("*")) for new, old in zip(text, raw, strict=True))


def test_a_secret_too_short_to_be_looked_for_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 4"):
        SecretRemover(["long enough", "abc"])
    assert SecretRemover([]).feed(b"anything") == b"anything"


@pytest.mark.parametrize("chunk", [b"a" * 65536, b"ab" * 32768, b"abcdefgh\n" * 8192])
def test_memory_is_flat_whatever_passes(chunk: bytes) -> None:
    remover = SecretRemover(["a" * 12 + "b", "ab" * 40, "babab-babab"])
    remover.feed(chunk)
    tracemalloc.start()
    try:
        for _ in range(8):
            remover.feed(chunk)
        taken = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    its_own = taken.filter_traces([tracemalloc.Filter(True, secret_stream.__file__)])  # other threads allocate too
    assert sum(trace.size for trace in its_own.traces) < 16 * 1024
