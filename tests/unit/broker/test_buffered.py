"""Lines and counted bytes with caps, from pieces of any size; and what is carried both ways."""

from __future__ import annotations

import asyncio

import pytest

from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.splice import splice
from toolcage.broker.stream import Connection, Denied, PortalTerms


class Pieces:
    """A stream that gives what it was given, piece by piece, then ends, or stays silent."""

    def __init__(self, *pieces: bytes, silent: bool = False) -> None:
        self._pieces = list(pieces)
        self._silent = silent
        self.written = bytearray()
        self.ended = False
        self.asked: list[int] = []

    async def read(self, n: int) -> bytes:
        self.asked.append(n)
        if self._pieces:
            piece = self._pieces.pop(0)
            if len(piece) > n:
                self._pieces.insert(0, piece[n:])
            return piece[:n]
        if self._silent:
            await asyncio.Event().wait()
        return b""

    async def write(self, data: bytes) -> None:
        self.written += data

    async def end(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.ended = True


def reader(*pieces: bytes, silent: bool = False, idle_s: float = 5) -> tuple[BufferedReader, list[int]]:
    counted: list[int] = []
    return BufferedReader(Pieces(*pieces, silent=silent), count=counted.append, idle_s=idle_s), counted


def test_lines_come_whole_however_they_were_cut() -> None:
    async def run(*pieces: bytes) -> list[bytes]:
        made, counted = reader(*pieces)
        lines = [await made.line(20), await made.line(20), await made.exactly(3), await made.line(20)]
        assert sum(counted) == sum(map(len, pieces))
        return lines

    text = b"one\r\ntwo\nabc"
    for size in range(1, len(text) + 1):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert asyncio.run(run(*pieces)) == [b"one\r\n", b"two\n", b"abc", b""]


def test_a_line_at_the_cap_comes_and_one_byte_more_is_refused_before_it_is_held() -> None:
    async def run(*pieces: bytes) -> bytes:
        made, _ = reader(*pieces)
        return await made.line(8)

    assert asyncio.run(run(b"1234567\n")) == b"1234567\n"
    for pieces in ([b"12345678\n"], [b"1234567", b"89\n"], [b"x" * 100_000]):
        with pytest.raises(Denied) as caught:
            asyncio.run(run(*pieces))
        assert caught.value.code == "egress.line"


def test_a_stream_that_ends_inside_a_line_or_a_count_says_so() -> None:
    async def run() -> None:
        made, _ = reader(b"half")
        with pytest.raises(Ended):
            await made.line(20)
        made, _ = reader(b"half")
        with pytest.raises(Ended):
            await made.exactly(5)
        assert await made.some() == b"half"
        assert await made.some() == b""

    asyncio.run(run())


def test_silence_is_refused() -> None:
    async def run() -> str:
        made, _ = reader(b"EHLO", silent=True, idle_s=0.05)
        with pytest.raises(Denied) as caught:
            await made.line(100)
        return caught.value.code

    assert asyncio.run(run()) == "egress.idle"


def carried(client: Pieces, upstream: Pieces, **terms: float) -> Connection:
    note = Connection(portal="p", kind="connect")
    asyncio.run(splice(client, upstream, terms=PortalTerms(**terms), note=note))  # type: ignore[arg-type]
    return note


def test_both_directions_are_carried_counted_and_ended() -> None:
    client, upstream = Pieces(b"question", b"!"), Pieces(b"answer")
    note = carried(client, upstream)
    assert (bytes(client.written), bytes(upstream.written)) == (b"answer", b"question!")
    assert (note.bytes_up, note.bytes_down, client.ended, upstream.ended) == (9, 6, True, True)


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"max_bytes_up": 7}, "egress.bytes_up"),
        ({"max_bytes_down": 5}, "egress.bytes_down"),
        ({"idle_s": 0.05}, "egress.idle"),
    ],
)
def test_what_is_over_a_bound_ends_both_directions(terms: dict[str, float], code: str) -> None:
    client, upstream = Pieces(b"question", silent=True), Pieces(b"answer", silent=True)
    with pytest.raises(Denied) as caught:
        carried(client, upstream, **terms)
    assert caught.value.code == code
