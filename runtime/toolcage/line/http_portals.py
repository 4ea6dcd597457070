"""The `http` portals of endpoints and calendars: from an entry of resources.yaml to what one call may ask of it.

The key is read here, for this call. What an endpoint keeps of its answers is for the same endpoint as it is written
now, the same role under the same policy and, unless its operator shares more, the same session; another key is another
request (`kept_answers`). What a call sends is known by the call and its number in it. Decides nothing that authorize
has not decided.
"""

from __future__ import annotations

from typing import Final

from toolcage.broker import http
from toolcage.broker.broker import Serve
from toolcage.broker.dial import Resolve, open_stream
from toolcage.broker.http_repeat import Sends
from toolcage.broker.kept_answers import Keeping, KeepTerms
from toolcage.broker.pace import Pace
from toolcage.broker.stream import ClientStream, Connection, PortalTerms
from toolcage.line.portal_memory import Memory
from toolcage.line.upstreams import upstream
from toolcage.resources import Calendar, Endpoint, Server
from toolcage.types import AuthorizedCall

_READS: Final = frozenset(("GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT"))
_WRITES: Final = frozenset(("PUT", "DELETE"))
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


def asking(
    endpoint: Endpoint, authorized: AuthorizedCall, memory: Memory, session: str, resolve: Resolve, terms: PortalTerms
) -> Serve:
    """What serves the portal of an endpoint for this call. Reads its key. Raises ResourceError."""
    key, secrets = (None, ()) if endpoint.key is None else endpoint.key.read()
    config = http.HttpConfig(
        resource=f"endpoint {endpoint.name}",
        methods=endpoint.methods,
        path_prefixes=endpoint.path_prefixes,
        key=key,
        secrets=secrets,
        rate=None if endpoint.rate is None else (endpoint.rate.count, endpoint.rate.seconds),
        origin=_origin(endpoint.server),
        authority=_authority(endpoint.server),
        max_answer=endpoint.max_bytes,
        retries=endpoint.retries,
    )
    keeping = _keeping(endpoint, authorized, memory, session)
    return _serve(config, endpoint.server, memory.pace, resolve, terms, keeping, _sends(endpoint, authorized))


def keeping_dates(calendar: Calendar, pace: Pace, resolve: Resolve, terms: PortalTerms, *, writes: bool) -> Serve:
    """What serves the portal of a calendar. CalDAV is HTTP: the collection and what lies below it, to be changed only
    where the resource says so and by a tool that declares it: what reads invitations of strangers cannot be talked into
    changing anything. Reads its password. Raises ResourceError."""
    secrets = calendar.secrets()
    config = http.HttpConfig(
        resource=f"calendar {calendar.name}",
        methods=_READS | _WRITES if writes and calendar.access == "rw" else _READS,
        path_prefixes=(calendar.path, calendar.path.rstrip("/") or "/"),
        key=("Authorization", f"Basic {secrets[1]}") if secrets else None,
        secrets=secrets,
        origin=_origin(calendar.server),
        authority=_authority(calendar.server),
        max_answer=calendar.max_bytes,
    )
    return _serve(config, calendar.server, pace, resolve, terms)


def _keeping(endpoint: Endpoint, authorized: AuthorizedCall, memory: Memory, session: str) -> Keeping | None:
    cache = endpoint.cache
    if cache is None:
        return None
    alone = session if cache.share == "session" else None
    terms = KeepTerms(
        resource=endpoint.name,
        seconds=cache.seconds,
        max_bytes=cache.max_bytes,
        scope=(endpoint, authorized.role, authorized.policy_digest, alone),
        session=alone,
    )
    return Keeping(answers=memory.answers, terms=terms)


def _sends(endpoint: Endpoint, authorized: AuthorizedCall) -> Sends | None:
    written = endpoint.idempotency
    if written is None:
        return None
    return Sends(authorized.valid.call.call_id, endpoint.name, written.header, quoted=written.quoted)


def _serve(
    config: http.HttpConfig, server: Server, pace: Pace, resolve: Resolve, terms: PortalTerms,
    keeping: Keeping | None = None, sends: Sends | None = None,
) -> Serve:  # fmt: skip
    where = upstream(server)

    async def dial() -> http.Server:
        return await open_stream(where, connect_s=terms.connect_s, resolve=resolve)

    async def serve(client: ClientStream, note: Connection) -> None:
        await http.serve(
            client, config=config, dial=dial, pace=pace, terms=terms, note=note, keeping=keeping, sends=sends
        )

    return serve


def _origin(server: Server) -> str:
    return f"{_scheme(server)}://{_authority(server)}"


def _authority(server: Server) -> str:
    """What the Host header says."""
    host = f"[{server.host}]" if ":" in server.host else server.host
    return host if server.port == _DEFAULT_PORTS[_scheme(server)] else f"{host}:{server.port}"


def _scheme(server: Server) -> str:
    return "https" if server.tls else "http"
