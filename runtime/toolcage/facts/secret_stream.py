"""Known values taken out of bytes that pass through, as in a portal, wherever the chunks end.

A server may echo a key (an error page, a debug route, a mirror of the request's headers), and whoever reads the answer
must not learn it. Removed are all its `secret_spellings`. Nothing is decoded, a form split over any number of chunks is
removed, and only bytes that could be the beginning of one are held back. A caller that forwards a compressed body must
unpack it first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolcage.facts.secret_forms import SHORTEST_SECRET
from toolcage.facts.secret_spellings import spellings

_MARK: Final = b"[redacted:secret]"
_MOST_HELD_FORMS: Final = 4


class SecretRemover:
    """Takes known values out of bytes that pass through, in all their forms.

    Each is replaced by `[redacted:secret]`, or with `same_length` by as many asterisks, so that lengths announced
    before stay true. `removed` counts. Memory: at most a few times the longest form is held back.

    Raises:
        ValueError: a value is shorter than `SHORTEST_SECRET`; to ignore it would let it pass.
    """

    __slots__ = ("_closed", "_held", "_known", "_longest", "_same_length", "removed")

    def __init__(self, secrets: Iterable[str], *, same_length: bool = False) -> None:
        known = tuple(secrets)
        if any(len(secret) < SHORTEST_SECRET for secret in known):
            raise ValueError(f"a secret of fewer than {SHORTEST_SECRET} characters cannot be taken out of a stream")
        self._known = tuple(map(spellings, known))
        self._longest = max((one.longest for one in self._known), default=0)
        self._same_length = same_length
        self._held = b""
        self._closed = False
        self.removed = 0

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that are surely no part of a secret that goes on, without the secrets in them.

        Raises:
            ValueError: the stream was closed.
        """
        if self._closed:
            raise ValueError("the stream was closed")
        if not self._longest:
            return bytes(chunk)
        data = self._held + chunk
        spans = self._spans(data)
        cut = begins = self._begins(data)
        for start, end in reversed(spans):
            if start < cut < end:
                cut = start
        if len(data) - cut > _MOST_HELD_FORMS * self._longest:  # a chain of overlapping forms without an end
            cut = next((end for start, end in spans if start < begins < end), begins)
        self._held = data[cut:]
        return self._without([span for span in spans if span[1] <= cut], data[:cut])

    def close(self) -> bytes:
        """What was held back, without secrets. Closing twice gives nothing."""
        data, self._held, self._closed = self._held, b"", True
        return self._without(self._spans(data), data)

    def remove(self, data: bytes) -> bytes:
        """Whole bytes without secrets; independent of the stream, for headers and the like."""
        return self._without(self._spans(data), data)

    def _spans(self, data: bytes) -> list[tuple[int, int]]:
        found = [span for one in self._known for span in one.spans(data)]
        merged: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _begins(self, data: bytes) -> int:
        """Where the first form begins that the end of the data cuts off; the end itself if there is none."""
        first = len(data)
        for form in (run for one in self._known for run in one.runs):
            place = data.find(form[:1], max(0, len(data) - len(form) + 1), first)
            while place >= 0:
                if form.startswith(data[place : place + 8]) and form.startswith(data[place:]):
                    first = place
                    break
                place = data.find(form[:1], place + 1, first)
        for spelled in (form for one in self._known for form in one.spelled):
            may_begin = range(max(0, len(data) - spelled.longest + 1), first)
            first = next((place for place in may_begin if spelled.is_cut_off(data, place)), first)
        return first

    def _without(self, spans: list[tuple[int, int]], data: bytes) -> bytes:
        self.removed += len(spans)
        pieces, position = [], 0
        for start, end in spans:
            pieces += [data[position:start], b"*" * (end - start) if self._same_length else _MARK]
            position = end
        return b"".join([*pieces, data[position:]])
