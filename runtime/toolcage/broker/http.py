"""The `http` portal: a cage speaks plain HTTP/1.1, and one endpoint is asked over verified TLS, with its key.

Each request is read strictly (`request_head`), its method and path compared with what the endpoint grants (`target`),
and then written anew: the broker's Host, the client's harmless headers, the endpoint's key. Answers come back with
their hop's and cookies' headers gone and the key masked. Requests on one connection are served one after the other and
each is judged like the first, so nothing can be smuggled behind another. Redirects are never followed: one that stays
within the grant is passed back as a path, any other is refused. What the broker itself refuses is an answer with a JSON
body that names the code, so that the tool and the model can see why.

It reaches one origin, that of its configuration. It keeps no cookies, no cache and no connection beyond the client's.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urljoin

import h11

from toolcage.broker.answers import answer, status_of
from toolcage.broker.buffered import CHUNK, BufferedReader, Ended
from toolcage.broker.http_headers import Headers, coming_down, going_up
from toolcage.broker.pace import Pace
from toolcage.broker.request_head import MAX_HEAD, RequestHead, bad, read_head
from toolcage.broker.stream import MIB, ClientStream, Connection, Denied, PortalTerms
from toolcage.broker.target import check_path, split_target
from toolcage.facts.secret_stream import SecretRemover
from toolcage.facts.url import read_url

_REDIRECTS: Final = frozenset((300, 301, 302, 303, 305, 307, 308))
MOST_INTERIM: Final = 16
FRAMED: Final = 2
"""So many times the most that an answer may be may come from its server, with all that frames it."""
SHOWN_PATH: Final = 300
_SLOW_DOWN: Final = frozenset((429, 503))
_REPEATABLE: Final = frozenset(("GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "PUT", "DELETE"))


class Server(Protocol):
    """The endpoint's end of a connection."""

    address: str

    async def read(self, n: int) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...

    def abort(self) -> None: ...


Dial: TypeAlias = Callable[[], Awaitable[Server]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """One endpoint. `origin` is `scheme://host[:port]` and `authority` its host with the port where that is not the
    scheme's. `key` is the header and its whole value; `secrets` are what is masked in answers. `rate` is (count,
    seconds). `max_answer` bounds one answer in bytes, head and all."""

    resource: str
    origin: str
    authority: str
    methods: frozenset[str]
    path_prefixes: tuple[str, ...]
    key: tuple[str, str] | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    rate: tuple[int, int] | None = None
    max_answer: int = 64 * MIB


async def serve(
    client: ClientStream, *, config: HttpConfig, dial: Dial, pace: Pace, terms: PortalTerms, note: Connection
) -> None:
    """Serves one connection. Raises Denied for the first thing refused, when the client has been told."""
    served = _Served(client, config, dial, pace, terms, note)
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
        self, client: ClientStream, config: HttpConfig, dial: Dial, pace: Pace, terms: PortalTerms, note: Connection
    ) -> None:
        self._client = client
        self._config = config
        self._dial = dial
        self._pace = pace
        self._terms = terms
        self._note = note
        self._reader = BufferedReader(client, count=lambda size: note.count_up(size, terms), idle_s=terms.idle_s)
        self._server: Server | None = None
        self._upstream: h11.Connection | None = None
        self._answering, self._answered, self._arrived = False, 0, 0

    async def run(self) -> None:
        while True:
            self._answering, self._answered, self._arrived = False, 0, 0
            head = await self._next_head()
            if head is None:
                return
            path = self._judge(head)
            if not await self._exchange(head, path):
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
        self._pace.ask(self._config.resource, self._config.rate)
        return path + query

    async def _exchange(self, head: RequestHead, target: str) -> bool:
        """One request and its answer. Whether another may follow on the client's connection."""
        inside = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        inside.receive_data(head.raw)
        try:
            if not isinstance(_next_from_client(inside), h11.Request):
                raise bad("is not one")
            fresh = await self._connect(anew=head.method not in _REPEATABLE)
            asked = h11.Request(method=head.method, target=target, headers=self._headers_up(head))
            try:
                await self._send(asked)
                await self._pass_body(inside)
                answered = await self._begin_answer()
            except (ConnectionError, h11.RemoteProtocolError):
                if fresh or head.has_body:
                    raise
                self.hang_up()  # a kept connection that its server had given up
                await self._connect(anew=True)
                await self._send(asked)
                await self._pass_body(inside)
                answered = await self._begin_answer()
            return await self._answer(head, inside, answered)
        except h11.LocalProtocolError as error:
            raise bad(f"cannot be carried ({error})") from None
        except (h11.RemoteProtocolError, ConnectionError) as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> Denied:
        text = "the server of this resource broke off or did not speak HTTP"
        return Denied("egress.broken", text, f"{self._config.origin}: {type(error).__name__}: {error}")

    async def _connect(self, *, anew: bool) -> bool:
        """Whether the connection to the server is a new one. What must not be asked twice never meets a kept one: where
        that breaks, nobody knows whether the server has read the request."""
        over = None if self._upstream is None else self._upstream.states
        if self._upstream is not None and not anew and over == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            self._upstream.start_next_cycle()
            return False
        self.hang_up()
        self._server = await self._dial()
        self._note.address = self._server.address
        self._upstream = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        return True

    # up

    async def _pass_body(self, inside: h11.Connection) -> None:
        if inside.their_state is h11.DONE:  # it was read before, and there was none
            await self._send(h11.EndOfMessage())
            return
        if inside.they_are_waiting_for_100_continue:
            await self._tell_client(inside.send(h11.InformationalResponse(status_code=100, headers=[])))
        while True:
            event = _next_from_client(inside)
            if event is h11.NEED_DATA:
                inside.receive_data(await self._body_piece())
            elif isinstance(event, h11.Data):
                await self._send(h11.Data(data=bytes(event.data)))
            elif isinstance(event, h11.EndOfMessage):  # its trailers stay here
                await self._send(h11.EndOfMessage())
                self._reader.put_back(inside.trailing_data[0])  # the next request, to be judged like any
                return
            else:
                raise Ended

    def _headers_up(self, head: RequestHead) -> Headers:
        key = self._config.key
        passed = going_up(head.headers, None if key is None else key[0])
        headers = [("host", self._config.authority), *passed, ("accept-encoding", "identity")]
        if key is not None:
            headers.append((key[0].lower(), key[1]))
        length = head.value("content-length")
        if length is not None:
            headers.append(("content-length", length))
        elif head.value("transfer-encoding") is not None:
            headers.append(("transfer-encoding", "chunked"))
        return headers

    async def _body_piece(self) -> bytes:
        piece = await self._reader.some()
        if not piece:
            raise Ended
        return piece

    async def _send(self, event: Any) -> None:
        assert self._upstream is not None
        assert self._server is not None
        encoded = self._upstream.send(event)
        if encoded:
            async with asyncio.timeout(self._terms.idle_s):
                await self._server.write(encoded)

    # down

    async def _begin_answer(self) -> h11.Response:
        for _ in range(MOST_INTERIM):
            event = await self._next_from_server()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                break
        raise h11.RemoteProtocolError("no answer to the request")

    async def _next_from_server(self) -> Any:
        assert self._upstream is not None
        assert self._server is not None
        await asyncio.sleep(0)  # what has come may hold thousands of tiny events: other calls' connections get a turn
        while (event := self._upstream.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(self._terms.idle_s):
                piece = await self._server.read(CHUNK)
            self._count_arrived(len(piece))
            self._upstream.receive_data(piece)
        return event

    def _count_arrived(self, size: int) -> None:
        """An answer counts as it comes too, with frames, extensions and interim answers. Raises Denied."""
        self._arrived += size
        if self._arrived > FRAMED * self._config.max_answer + MAX_HEAD:
            raise Denied("egress.bytes_down", f"the answer is larger than {self._config.max_answer} bytes")

    async def _answer(self, head: RequestHead, inside: h11.Connection, response: h11.Response) -> bool:
        secrets = SecretRemover(self._config.secrets, same_length=True)  # lengths stay as they are announced
        received = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
        self._hold_back(response.status_code, received)
        headers = self._headers_down(head, response.status_code, received)
        last = self._note.is_full  # one more request would stand in no record
        if last:
            headers.append(("connection", "close"))
        masked = [(name.encode("ascii"), secrets.remove(value.encode("latin-1"))) for name, value in headers]
        self._answering = True
        await self._tell_client(inside.send(h11.Response(status_code=response.status_code, headers=masked)))
        while not isinstance(event := await self._next_from_server(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise h11.RemoteProtocolError("the answer ended early")
            await self._tell_client(inside.send(h11.Data(data=secrets.feed(bytes(event.data)))))
        if rest := secrets.close():
            await self._tell_client(inside.send(h11.Data(data=rest)))
        await self._tell_client(inside.send(h11.EndOfMessage()))
        if secrets.removed:
            self._note.detail = f"the server sent the resource's secret back; masked {secrets.removed} times"
        return not last and inside.our_state is h11.DONE and inside.their_state is h11.DONE

    def _headers_down(self, head: RequestHead, status: int, received: Headers) -> Headers:
        coding = next((value for name, value in received if name == "content-encoding"), "identity")
        if self._config.secrets and coding.strip().lower() not in ("identity", ""):
            raise Denied("egress.encoded", "the server sent its answer compressed although it was asked not to",
                         f"{self._config.origin}: content-encoding {coding[:40]}")  # fmt: skip
        headers = coming_down(received)
        if status in _REDIRECTS:
            headers = [(name, self._inside(head, value) if name == "location" else value) for name, value in headers]
        length = next((value for name, value in received if name == "content-length"), None)
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

    def _hold_back(self, status: int, received: Headers) -> None:
        after = next((value for name, value in received if name == "retry-after"), None)
        if status in _SLOW_DOWN and after is not None:
            self._pace.hold(self._config.resource, after)

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
        server, self._server, self._upstream = self._server, None, None
        if server is not None:
            server.abort()


def _shown(path: str) -> str:
    """For the record: a long path by its beginning and its digest, so that no two look alike there."""
    if len(path) <= SHOWN_PATH:
        return path
    return f"{path[:SHOWN_PATH]}… (sha256 {hashlib.sha256(path.encode()).hexdigest()[:16]}, {len(path)} bytes)"


def _next_from_client(inside: h11.Connection) -> Any:
    """Raises Denied where the client is not understood, so that it is not taken for the server's fault."""
    try:
        return inside.next_event()
    except h11.RemoteProtocolError as error:
        raise bad(f"cannot be read ({error})") from None
