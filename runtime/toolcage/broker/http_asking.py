"""Sends a request of a cage to its endpoint's server, again where it may be sent again, up to the head of the answer.

A request without side effects is sent over the connection that is there, and anew where its server had given that up;
any other gets a new one, and its idempotency key where the resource has one. What is sent again counts at the
resource's pace like any request. How often and when is `http_repeat`.
"""

from __future__ import annotations

import asyncio
from typing import TypeAlias

import h11

from toolcage.broker.http_config import HttpConfig
from toolcage.broker.http_headers import all_of, value_of
from toolcage.broker.http_repeat import MOST_KEPT, SAFE, SLOW_DOWN, Sends, left_s, wait_s
from toolcage.broker.http_request import ClientRequest
from toolcage.broker.http_server_end import ServerEnd
from toolcage.broker.pace import Pace
from toolcage.broker.stream import Connection, Denied, PortalTerms

Outcome: TypeAlias = h11.Response | ConnectionError | h11.RemoteProtocolError
"""What came of sending a request once: the head of an answer, or how the connection broke."""


class Asking:
    """One client's way to `server`. `sends` gives keys to what may change something; None = it has none."""

    def __init__(
        self, server: ServerEnd, config: HttpConfig, pace: Pace, terms: PortalTerms, note: Connection,
        sends: Sends | None,
    ) -> None:  # fmt: skip
        self._server = server
        self._config = config
        self._pace = pace
        self._terms = terms
        self._note = note
        self._sends = sends

    async def ask(self, request: ClientRequest, asked: h11.Request, *, anew: bool) -> h11.Response:
        """The head of the answer: of the first, or of a later one where the request may be sent again. `anew`: over a
        connection that has carried nothing else.

        Raises Denied, and ConnectionError or h11.RemoteProtocolError where the connection broke.
        """
        self._pace.ask(self._config.resource, self._config.rate)
        safe = request.head.method in SAFE
        if not safe:
            asked = await self._with_key(request, asked)
        outcome = await self._send(request, asked, anew=anew or not safe)
        attempt = 1
        while (wait := self._wait(request, attempt, outcome)) is not None:
            self._server.hang_up()
            await asyncio.sleep(wait)
            attempt += 1
            self._note.mark_target("sent again")
            try:
                self._pace.ask(self._config.resource, self._config.rate)
                outcome = await self._send(request, asked, anew=True)
            except Denied:
                if isinstance(outcome, h11.Response):
                    raise
                break  # that the connection broke is what has to be known: the server may have done it
        if not isinstance(outcome, h11.Response):
            raise outcome
        return outcome

    async def _with_key(self, request: ClientRequest, asked: h11.Request) -> h11.Request:
        """The request with the key by which its server knows it again."""
        if self._sends is None:
            return asked
        await request.read_ahead(MOST_KEPT)
        key = self._sends.key(request.head.method, bytes(asked.target).decode("ascii"), request.kept)
        return h11.Request(method=asked.method, target=asked.target, headers=[*asked.headers, key])

    async def _send(self, request: ClientRequest, asked: h11.Request, *, anew: bool) -> Outcome:
        """Once; and once more where a kept connection had been given up by its server. Raises Denied."""
        fresh = await self._server.connect(anew=anew)
        try:
            return await self._send_once(request, asked)
        except (ConnectionError, h11.RemoteProtocolError) as error:
            if fresh or request.head.has_body:
                return error
        await self._server.connect(anew=True)
        try:
            return await self._send_once(request, asked)
        except (ConnectionError, h11.RemoteProtocolError) as error:
            return error

    async def _send_once(self, request: ClientRequest, asked: h11.Request) -> h11.Response:
        request.begin()
        await self._server.send(asked, request.piece)
        answered = await self._server.begin_answer()
        after = value_of(all_of(answered), "retry-after")
        if answered.status_code in SLOW_DOWN and after is not None:
            self._pace.hold(self._config.resource, after)
        return answered

    def _wait(self, request: ClientRequest, attempt: int, outcome: Outcome) -> float | None:
        """How long until the request is sent again; None where it is not."""
        if request.head.method in SAFE:
            repeatable = not request.head.has_body
        else:
            repeatable = self._sends is not None and request.whole
        if not repeatable or attempt > self._config.retries:
            return None
        left = left_s(self._terms, self._note)
        if not isinstance(outcome, h11.Response):
            return None if self._server.arrived else wait_s(attempt, left)
        after = value_of(all_of(outcome), "retry-after")
        slow = outcome.status_code in SLOW_DOWN
        return wait_s(attempt, left, after) if slow and after is not None else None
