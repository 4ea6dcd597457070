"""Cleaning while a program runs.

Danger: everything of the other modules, split over two chunks. Protects: whoever watches output live.

Text is held back up to the last newline, at most 8 KiB. Where a line is longer than that, it is cut at a place that no
key, sequence, tag or frame word crosses. A private key block is held until its end. `html: clean` and `escape` are
shown as `inert` and `escape`: a sanitiser needs the whole document. Injection is judged on the whole result, not here.
Memory is flat: the held text, one slice of a chunk and nothing else; bytes beyond `terms.max_bytes` are only counted.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Sequence

from toolcage.cleaning.decode import Utf8Decoder
from toolcage.cleaning.pipeline import neutralise
from toolcage.cleaning.secrets import find_secrets
from toolcage.types import OutputTerms

_MOST_HELD = 8 * 1024
_KEPT_BACK = 4 * 1024
_SLICE_BYTES = 32 * 1024
_OPEN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?!(?:[^-]|-(?!----))*+-----END)")
# What could be the beginning of something that must be seen whole: brackets, escapes, a carriage return, a backslash.
_BEGINS_SOMETHING = re.compile("[<\\[\\](!\r\x1b\x9b\\\\\uff1c\uff3b]")
_NEAR = 160


class StreamCleaner:
    """Feeds clean text to `on_text` as bytes arrive. `findings` and `dropped` are complete after `close`."""

    def __init__(self, terms: OutputTerms, on_text: Callable[[str], None], exact_secrets: Sequence[str] = ()) -> None:
        self._terms = dataclasses.replace(terms, html="inert") if terms.html == "clean" else terms
        self._on_text = on_text
        self._exact = tuple(exact_secrets)
        self._decoder = Utf8Decoder(max_bytes=terms.max_bytes)
        self._held = ""
        self._closed = False
        self.findings: Counter[str] = Counter()

    @property
    def dropped(self) -> int:
        """Bytes beyond the cap."""
        return self._decoder.dropped

    def feed(self, chunk: bytes) -> None:
        """Takes bytes; emits what is complete."""
        if self._closed:
            raise ValueError("the stream was closed")
        for start in range(0, len(chunk), _SLICE_BYTES):
            self._take(self._decoder.feed(chunk[start : start + _SLICE_BYTES]))

    def close(self) -> None:
        """Emits the rest and, where the cap dropped bytes, a mark that says how many. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self._held += self._decoder.close()
        self._emit(len(self._held))
        if self._decoder.replaced:
            self.findings["encoding_replaced"] = self._decoder.replaced
        if self._decoder.dropped:
            self.findings["truncated"] = 1
            self._on_text(f"\n[… {self._decoder.dropped} bytes dropped …]\n")

    def _take(self, text: str) -> None:
        self._held += text
        newline = text.rfind("\n")
        if newline >= 0:
            self._emit(self._before_open_key(len(self._held) - len(text) + newline + 1))
        if len(self._held) > _MOST_HELD:
            self._emit(self._uncrossed(len(self._held) - _KEPT_BACK))

    def _before_open_key(self, position: int) -> int:
        if "-----BEGIN " not in self._held:
            return position
        match = _OPEN_KEY.search(self._held, 0, position)
        return min(position, match.start()) if match else position

    def _uncrossed(self, position: int) -> int:
        """The nearest place before `position` where a line may be cut."""
        near = self._held[max(0, position - _NEAR) : position]
        begins = _BEGINS_SOMETHING.search(near)
        if begins is not None and begins.start() > 0:
            position -= len(near) - begins.start()
        for start, end, _ in find_secrets(self._held, self._exact, shapes="secrets" in self._terms.redact):
            if start < position < end:
                return start or end
        return position

    def _emit(self, position: int) -> None:
        if position <= 0:
            return
        ready, self._held = self._held[:position], self._held[position:]
        text, findings = neutralise(ready, self._terms, self._exact)
        self.findings += findings
        self._on_text(text)
