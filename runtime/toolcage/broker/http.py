"""The `http` portal: a cage speaks plain HTTP/1.1, and one endpoint is asked over verified TLS, with its key.

Each request is read strictly (`request_head`), its method and path compared with what the endpoint grants (`target`),
and then written anew: the broker's Host, the client's harmless headers, the endpoint's key. Answers come back with
their hop's and cookies' headers gone and the key masked. Requests on one connection are served one after the other and
each is judged like the first, so nothing can be smuggled behind another. Redirects are never followed: one that stays
within the grant is passed back as a path, any other is refused. What the broker itself refuses is an answer with a JSON
body that names the code, so that the tool and the model can see why.

It reaches one origin, that of its configuration. It keeps no cookies and no connection beyond the client's. Where the
resource says so, answers are kept for a while (`kept_answers`), and what may be sent again is (`http_repeat`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin

import h11

from toolcage.broker.answers import answer, status_of
from toolcage.broker.buffered import CHUNK, BufferedReader, Ended
from toolcage.broker.http_asking import Asking
from toolcage.broker.http_config import HttpConfig
from toolcage.broker.http_freshness import freshness, wants_anew
from toolcage.broker.http_headers import Headers, all_of, as_bytes, coming_down, going_up, value_of
from toolcage.broker.http_repeat import SAFE, Sends
from toolcage.broker.http_request import ClientRequest
from toolcage.broker.http_server_end import Dial, Server, ServerEnd
from toolcage.broker.kept_answers import Copy, Keeping, KeptAnswer, Place
from toolcage.broker.pace import Pace
from toolcage.broker.request_head import RequestHead, bad, read_head
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms
from toolcage.broker.target import check_path, split_target
from toolcage.facts.secret_stream import SecretRemover
from toolcage.facts.url import read_url

__all__ = ["Dial", "HttpConfig", "Server", "serve"]

_REDIRECTS: Final = frozenset((300, 301, 302, 303, 305, 307, 308))
SHOWN_PATH: Final = 300


async def serve(
    client: ClientStream,
    *,
    config: HttpConfig,
    dial: Dial,
    pace: Pace,
    terms: PortalTerms,
    note: Connection,
    keeping: Keeping | None = None,
    sends: Sends | None = None,
) -> None:
    """Serves one connection. Raises Denied for the first thing refused, when the client has been told. `keeping`: where
    answers are kept, None = nowhere; `sends`: what gives keys to what may change something, None = it has none."""
    served = _Served(client, config, dial, pace, terms, note, keeping, sends)
    try:
        await served.run()
    except Denied as denied:
        await served.tell(denied)
        raise
    except TimeoutError:
        late = Denied("egress.idle", f"nothing came from the other side for {terms.idle_s:g} s")
        await served.tell(late)
        raise late from None
    except Ended:
        return
    finally:
        served.hang_up()


class _Served:
    """One client's connection and the one behind it."""

    def __init__(
        self, client: ClientStream, config: HttpConfig, dial: Dial, pace: Pace, terms: PortalTerms, note: Connection,
        keeping: Keeping | None, sends: Sends | None,
    ) -> None:  # fmt: skip
        self._client = client
        self._config = config
        self._terms = terms
        self._note = note
        self._keeping = keeping
        self._sends = sends
        self._reader = BufferedReader(client, count=lambda size: note.count_up(size, terms), idle_s=terms.idle_s)
        self._server = ServerEnd(dial, note, idle_s=terms.idle_s, max_answer=config.max_answer)
        self._asking = Asking(self._server, config, pace, terms, note, sends)
        self._answering, self._answered = False, 0

    async def run(self) -> None:
        while True:
            self._answering, self._answered = False, 0
            head = await self._next_head()
            if head is None:
                return
            target = self._judge(head)
            if not await self._exchange(head, target):
                return

    async def _next_head(self) -> RequestHead | None:
        """None where the client wants nothing more. An idle connection ends without a word: nobody waits for one."""
        try:
            async with asyncio.timeout(self._terms.idle_s):  # the whole head: a byte now and then is no progress
                return await read_head(self._reader)
        except (TimeoutError, Denied) as error:
            silent = isinstance(error, TimeoutError) or error.code == "egress.idle"
            if silent and self._reader.pending == 0:
                return None
            raise

    def _judge(self, head: RequestHead) -> str:
        """The target to ask for. Raises Denied."""
        path, query = split_target(head.target)
        self._note.add_target(f"{head.method} {self._config.origin}{_shown(path)}")
        if head.method not in self._config.methods:
            text = f"the method {head.method} is not granted for this resource"
            raise Denied("egress.method_not_granted", text, f"{head.method} {path[:300]}")
        check_path(path, self._config.path_prefixes)
        return path + query

    async def _exchange(self, head: RequestHead, target: str) -> bool:
        """One request and its answer. Whether another may follow on the client's connection."""
        try:
            request = ClientRequest(head, self._reader, self._tell_client)
            asked = h11.Request(method=head.method, target=target, headers=as_bytes(self._headers_up(head)))
            place = self._place(request, asked)
            found = None if place is None else place.find()
            if found is not None and self._keeping is not None:
                return await self._answer_again(request, found, self._keeping)
            with self._changing(head.method):
                # What is kept came first over its connection: nothing that an earlier exchange left there, whoever
                # miscounted, can be taken for it.
                answered = await self._asking.ask(request, asked, anew=place is not None)
                return await self._answer(request, answered, place)
        except h11.LocalProtocolError as error:
            raise bad(f"cannot be carried ({error})") from None
        except (h11.RemoteProtocolError, ConnectionError) as error:
            text = "the server of this resource broke off or did not speak HTTP"
            operator = f"{self._config.origin}: {type(error).__name__}: {error}"
            raise Denied("egress.broken", text, operator) from None

    # what is kept

    def _place(self, request: ClientRequest, asked: h11.Request) -> Place | None:
        """Where its answer may stand: by all that the server would see of the request."""
        if self._keeping is None or wants_anew(request.head):
            return None
        seen = [asked.method, asked.target, *(part for header in asked.headers for part in header)]
        return self._keeping.place(b"".join(b"%d:%b" % (len(part), part) for part in map(bytes, seen)))

    @contextlib.contextmanager
    def _changing(self, method: str) -> Iterator[None]:
        """What may change the resource ends what was kept of it, and what is asked for meanwhile."""
        keeping = None if method in SAFE else self._keeping
        if keeping is not None:
            keeping.changed()
        try:
            yield
        finally:
            if keeping is not None:
                keeping.changed()

    # up

    def _headers_up(self, head: RequestHead) -> Headers:
        key = self._config.key
        own = [*([] if key is None else [key[0]]), *([] if self._sends is None else [self._sends.header])]
        headers = [
            ("host", self._config.authority), *going_up(head.headers, own), ("accept-encoding", "identity")
        ]  # fmt: skip
        if key is not None:
            headers.append((key[0].lower(), key[1]))
        length = head.value("content-length")
        if length is not None:
            headers.append(("content-length", length))
        elif head.value("transfer-encoding") is not None:
            headers.append(("transfer-encoding", "chunked"))
        return headers

    # down

    async def _answer(self, request: ClientRequest, response: h11.Response, place: Place | None) -> bool:
        secrets = SecretRemover(self._config.secrets, same_length=True)  # lengths stay as they are announced
        received = all_of(response)
        headers = [
            (name, secrets.remove(value.encode("latin-1")).decode("latin-1"))
            for name, value in self._headers_down(request.head, response.status_code, received)
        ]
        copy = self._copy(place, response.status_code, received, headers)
        await self._tell_head(request, response.status_code, headers)
        while piece := await self._server.content():
            await self._tell_piece(request, secrets.feed(piece), copy)
        await self._tell_piece(request, secrets.close(), copy)
        if copy is not None:
            copy.whole()
        await self._tell_client(request.http.send(h11.EndOfMessage()))
        if secrets.removed:
            self._note.detail = f"the server sent the resource's secret back; masked {secrets.removed} times"
        return request.another_may_follow and not self._note.is_full

    def _copy(self, place: Place | None, status: int, received: Headers, headers: Headers) -> Copy | None:
        """Where the answer goes besides to the client. Only one whose end can be told goes anywhere."""
        length = _length(received)
        if place is None or (length is None and value_of(received, "transfer-encoding") is None):
            return None
        fresh = freshness(status, received, most_s=place.terms.seconds, now=time.time())
        return None if fresh is None else Copy(place, fresh, headers, None if length is None else int(length))

    async def _answer_again(self, request: ClientRequest, found: KeptAnswer, keeping: Keeping) -> bool:
        """What was answered before, through the same bounds and masks as then."""
        self._note.cached += 1
        self._note.mark_target("cached")
        await request.read_ahead(0)  # to its end: it has no body
        secrets = SecretRemover(self._config.secrets, same_length=True)
        await self._tell_head(request, 200, keeping.told(found))
        for start in range(0, len(found.body), CHUNK):
            await self._tell_piece(request, secrets.feed(found.body[start : start + CHUNK]))
        await self._tell_piece(request, secrets.close())
        await self._tell_client(request.http.send(h11.EndOfMessage()))
        return request.another_may_follow and not self._note.is_full

    async def _tell_head(self, request: ClientRequest, status: int, headers: Headers) -> None:
        """One more request would stand in no record where the note is full: then the client is told to end."""
        told = [*headers, ("connection", "close")] if self._note.is_full else headers
        self._answering = True
        await self._tell_client(request.http.send(h11.Response(status_code=status, headers=as_bytes(told))))

    async def _tell_piece(self, request: ClientRequest, piece: bytes, copy: Copy | None = None) -> None:
        if piece:
            if copy is not None:
                copy.add(piece)
            await self._tell_client(request.http.send(h11.Data(data=piece)))

    def _headers_down(self, head: RequestHead, status: int, received: Headers) -> Headers:
        coding = value_of(received, "content-encoding") or "identity"
        if self._config.secrets and coding.strip().lower() not in ("identity", ""):
            raise Denied("egress.encoded", "the server sent its answer compressed although it was asked not to",
                         f"{self._config.origin}: content-encoding {coding[:40]}")  # fmt: skip
        headers = coming_down(received)
        if status in _REDIRECTS:
            headers = [(name, self._inside(head, value) if name == "location" else value) for name, value in headers]
        length = _length(received)
        return headers if length is None else [*headers, ("content-length", length)]

    def _inside(self, head: RequestHead, location: str) -> str:
        """The redirect as a path of the same origin. Raises Denied for one that leads out of the grant."""
        there = read_url(urljoin(self._config.origin + head.target, location))
        here = read_url(self._config.origin)
        same = there.host is not None and here.host is not None and there.host.name == here.host.name
        if not same or there.scheme != here.scheme or there.port != here.port or there.has_userinfo:
            raise Denied("egress.redirect", "the server redirects to another place, which is not granted",
                         f"{head.target[:200]} → {location[:300]}")  # fmt: skip
        path, query = split_target((there.path or "/") + (f"?{there.query}" if there.query else ""))
        check_path(path, self._config.path_prefixes)
        return path + query

    async def _tell_client(self, encoded: bytes | None) -> None:
        if encoded:
            self._note.count_down(len(encoded), self._terms)
            self._answered += len(encoded)
            if self._answered > self._config.max_answer:
                raise Denied("egress.bytes_down", f"the answer is larger than {self._config.max_answer} bytes")
            async with asyncio.timeout(self._terms.idle_s):
                try:
                    await self._client.write(encoded)
                except ConnectionError:
                    raise Ended from None

    # the end

    async def tell(self, denied: Denied) -> None:
        """The refusal as an answer; where one has begun already, a break."""
        if self._answering:
            self._client.abort()
            return
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(self._terms.idle_s):
                await self._client.write(answer(denied, status_of(denied)))
                await self._client.end()

    def hang_up(self) -> None:
        """Ends the connection to the server, if there is one."""
        self._server.hang_up()


def _length(received: Headers) -> str | None:
    """The length that an answer has by its head: what comes in pieces ends with the last of them, whatever else its
    head says."""
    coded = value_of(received, "transfer-encoding") is not None
    return None if coded else value_of(received, "content-length")


def _shown(path: str) -> str:
    """For the record: a long path by its beginning and its digest, so that no two look alike there."""
    if len(path) <= SHOWN_PATH:
        return path
    return f"{path[:SHOWN_PATH]}… (sha256 {hashlib.sha256(path.encode()).hexdigest()[:16]}, {len(path)} bytes)"
