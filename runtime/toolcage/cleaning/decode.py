"""Bytes to text, whatever the bytes are.

Danger: output that is not UTF-8, characters split over two chunks, overlong forms and surrogates that another decoder
would read differently. Protects: every sink, since nothing after this module sees bytes.

Invalid bytes become U+FFFD and are counted; bytes beyond the cap are dropped and counted, never buffered.
"""

from __future__ import annotations

import codecs

_REPLACEMENT = "\ufffd".encode()


class Utf8Decoder:
    """Decodes chunks as they come, at most `max_bytes` of them. Memory is flat."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._room = max_bytes
        self.replaced = 0
        self.dropped = 0

    def feed(self, chunk: bytes) -> str:
        """The text that is complete so far."""
        if self._room is not None:
            self.dropped += max(0, len(chunk) - self._room)
            chunk = chunk[: self._room]
            self._room -= len(chunk)
        return self._decode(chunk, final=False)

    def close(self) -> str:
        """What was left of an unfinished character, as a replacement. The decoder then starts afresh."""
        text = self._decode(b"", final=True)
        self._decoder.reset()
        return text

    def _decode(self, chunk: bytes, *, final: bool) -> str:
        pending = self._decoder.getstate()[0]
        text = self._decoder.decode(chunk, final)
        found = text.count("\ufffd")
        if found:
            # A U+FFFD that the bytes really contained is not damage. EF always starts a character: the count is exact.
            seen = pending + chunk
            left = len(self._decoder.getstate()[0])
            self.replaced += found - seen[: len(seen) - left].count(_REPLACEMENT)
        return text


def decode(raw: bytes, max_bytes: int | None = None) -> tuple[str, int, int]:
    """The text, the number of replacements, the number of dropped bytes. Never raises."""
    decoder = Utf8Decoder(max_bytes)
    text = decoder.feed(raw) + decoder.close()
    return text, decoder.replaced, decoder.dropped
