"""Cleaning while a program runs.

Danger: everything of the other modules, split over two chunks. Protects: whoever watches output live.

Text is held back up to the last newline, at most 8 KiB; a line that announces a password (`password:`, `Bearer`) or
begins a known value of several lines is held until the next one. Where a line is longer than 8 KiB (or than a known
value may be written), it is cut at a place that no key, sequence, tag or frame word crosses. A private key block is
held until its end; of one that is longer, the rest is dropped as it comes. `html: clean` and `escape` are shown as
`inert` and `escape`: a sanitiser needs the whole document. Injection is judged on the whole result, not here. Memory
is flat: the held text and one slice of a chunk; bytes beyond `terms.max_bytes` are only counted.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from toolcage.cleaning.decode import Utf8Decoder
from toolcage.cleaning.marks import views
from toolcage.cleaning.pipeline import neutralise
from toolcage.cleaning.secret_shapes import NAMED
from toolcage.cleaning.secrets import find_secrets
from toolcage.facts.known_values import known_values
from toolcage.types import OutputTerms

_MOST_HELD = 8 * 1024
_KEPT_BACK = 4 * 1024
_SLICE_BYTES = 32 * 1024
_OPEN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?!(?:[^-]|-(?!----))*+-----END)")
_KEY_GOES_ON = re.compile(  # the rest of a line, more lines, the end
    r"[A-Za-z0-9+/=]*+(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+"
    r"(?P<end>(?:\s|\\[nr])*+[A-Za-z0-9+/=]{0,76}(?:\s|\\[nr])*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
_MAY_GO_ON = re.compile(r"(?:\s|\\[nr]?)*+[A-Za-z0-9+/=]{0,76}(?:\s|\\[nr]?)*+(?:-[-A-Z0-9 ]{0,70})?\Z")
# The next line may be the secret, or the address, that this one announces.
_ANNOUNCES = re.compile(
    rf"(?:{NAMED}|token|key|secret|bearer|basic|Private-Lines:|A(?:KI|SI)A[A-Z0-9]{{16}})[\w .-]{{0,20}}"
    r"[\"'\\\s,;|/]{0,8}(?:[:=>]{1,2}[\"'\\\s]{0,8})?\Z|\][:(]\s{0,8}\Z",
    re.IGNORECASE,
)
# What could be the beginning of something that must be seen whole: brackets, escapes, a carriage return, a backslash.
_BEGINS_SOMETHING = re.compile("[<\\[\\](!\r\x1b\x9b\\\\\uff1c\uff3b]")
_NEAR = 160
_MOST_ANNOUNCEMENTS = 3


class StreamCleaner:
    """Feeds clean text to `on_text` as bytes arrive. `findings` and `dropped` are complete after `close`."""

    def __init__(self, terms: OutputTerms, on_text: Callable[[str], None], exact_secrets: Sequence[str] = ()) -> None:
        self._terms = dataclasses.replace(terms, html="inert") if terms.html == "clean" else terms
        self._on_text = on_text
        self._exact = tuple(exact_secrets)
        self._decoder = Utf8Decoder(max_bytes=terms.max_bytes)
        self._held = ""
        self._closed = False
        self._inside_key = False
        self._beginnings = tuple(_beginnings(self._exact))
        # A cut sees whole what begins before it: the longest form of a known value must fit behind it.
        self._kept_back = max(_KEPT_BACK, *(known_values(secret).longest for secret in self._exact), 0)
        self.findings: Counter[str] = Counter()

    @property
    def dropped(self) -> int:
        """Bytes beyond the cap."""
        return self._decoder.dropped

    def feed(self, chunk: bytes) -> None:
        """Takes bytes; emits what is complete.

        Raises:
            ValueError: the stream was closed.
        """
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
        if self._inside_key:
            self._drop_rest_of_key(last=True)
        self._emit(len(self._held))
        if self._decoder.replaced:
            self.findings["encoding_replaced"] = self._decoder.replaced
        if self._decoder.dropped:
            self.findings["truncated"] = 1
            self._on_text(f"\n[… {self._decoder.dropped} bytes dropped …]\n")

    def _take(self, text: str) -> None:
        self._held += text
        if self._inside_key:
            self._drop_rest_of_key(last=False)
            if self._inside_key:
                return
        newline = self._held.rfind("\n", max(0, len(self._held) - len(text)))
        if newline >= 0:
            self._emit(self._before_open_key(self._before_announcement(newline + 1)))
        if len(self._held) > self._kept_back + _MOST_HELD - _KEPT_BACK:
            self._emit(self._uncrossed(len(self._held) - self._kept_back))

    def _before_announcement(self, position: int) -> int:
        """The place before a last line whose next line may be a secret, or the second line of a known one."""
        for _ in range(_MOST_ANNOUNCEMENTS):
            if position <= 0 or _ANNOUNCES.search(self._held[max(0, position - _NEAR) : position]) is None:
                break
            position = self._held.rfind("\n", 0, len(self._held[:position].rstrip())) + 1
        if self._beginnings:
            last = [*views(self._held[max(0, position - 2 * _MOST_HELD) : position])][-1]
            for beginning in self._beginnings:
                if last.text.endswith(beginning):
                    start = last.origin(len(last.text) - len(beginning), len(last.text))[0]
                    return max(0, position - 2 * _MOST_HELD) + start
        return position

    def _drop_rest_of_key(self, *, last: bool) -> None:
        match = _KEY_GOES_ON.match(self._held)
        assert match is not None, "the pattern matches the empty text"
        self._held = self._held[match.end() :]
        may_go_on = match["end"] is None and len(self._held) < _MOST_HELD and _MAY_GO_ON.match(self._held) is not None
        if may_go_on and last:
            self._held = ""
        self._inside_key = may_go_on and not last

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
        for start, end, name in find_secrets(self._held, self._exact, shapes="secrets" in self._terms.redact):
            if start < position < end:
                self._inside_key = (
                    start == 0 and name == "private_key" and _MAY_GO_ON.match(self._held[end:]) is not None
                )
                return start or end
        return position

    def _emit(self, position: int) -> None:
        if position <= 0:
            return
        ready, self._held = self._held[:position], self._held[position:]
        text, findings = neutralise(ready, self._terms, self._exact)
        self.findings += findings
        self._on_text(text)


def _beginnings(exact: Sequence[str]) -> Iterator[str]:
    """What a known value of several lines has up to the end of each of its lines but the last."""
    for secret in exact:
        yield from (secret[: match.end()] for match in re.finditer("\n", secret) if match.end() < len(secret))
