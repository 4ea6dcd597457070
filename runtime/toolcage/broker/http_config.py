"""What the `http` portal of one endpoint is configured with: where it leads, and what may be asked there. Data alone.

From resources.yaml it comes through the line, for one call; what a call adds of its own (where answers are kept, the
keys of what it sends) is not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolcage.broker.stream import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """One endpoint. `origin` is `scheme://host[:port]` and `authority` its host with the port where that is not the
    scheme's. `key` is the header and its whole value; `secrets` are what is masked in answers. `rate` is (count,
    seconds). `max_answer` bounds one answer in bytes, head and all. `retries`: so often is sent again what may be."""

    resource: str
    origin: str
    authority: str
    methods: frozenset[str]
    path_prefixes: tuple[str, ...]
    key: tuple[str, str] | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    rate: tuple[int, int] | None = None
    max_answer: int = 64 * MIB
    retries: int = 0
