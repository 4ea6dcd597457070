"""One HTTP request from inside a cage to the portal of its one endpoint, and what a failed one means.

The portal is plain HTTP on the cage's own loopback; TLS, the key, and which methods and paths may be asked are the
broker's, outside. So this holds no secret and decides nothing. It bounds what is read, follows no redirect, keeps no
cookie and no connection, and turns every way in which a request can fail into one ToolFailure with an `endpoint.*` code
that a model can act on. What a server says in an error is foreign text: it is shortened, and never becomes a code.

Standard library only; sent into the cage beside the tools that use it.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from toolcage.tools.base import ToolFailure

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_DETAIL_CHARACTERS: Final = 300
EXACT_INTEGER: Final = 2**53
REFUSED_HEADER: Final = "X-Toolcage-Refused"
USER_AGENT: Final = "toolcage (tool runtime for AI agents)"
ACCEPT_JSON: Final[Mapping[str, str]] = {"Accept": "application/json, */*;q=0.5"}
JSON_HEADERS: Final[Mapping[str, str]] = {**ACCEPT_JSON, "Content-Type": "application/json"}
_PATH_SAFE: Final = "/!$&'()*+,;=:@~"
_LEFT_FOR_ENDING_S: Final = 1.0
_CHUNK: Final = 64 * 1024


class Answer:
    """What a server answered. `cut` says that the body went on beyond the bytes that were asked for."""

    __slots__ = ("body", "cut", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, cut: bool) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.cut = cut

    @property
    def media_type(self) -> str:
        """In lower case, without its parameters; empty where the server named none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def text(self) -> str:
        """The body in the charset that the server named, or UTF-8; what does not fit is replaced."""
        named = self.headers.get("content-type", "").lower().partition("charset=")[2].partition(";")[0].strip("\"' ")
        try:
            return self.body.decode(named or "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON, integers beyond 2^53 as text. Raises ToolFailure for anything else."""
        try:
            return json.loads(self.body, parse_int=_whole, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise bad_answer("its answer is not JSON") from None


def portal_of(context: Mapping[str, Any]) -> str:
    """Where the call's one endpoint is, without a final slash. Raises ToolFailure where the call has none."""
    portals = context.get("portals") or {}
    bases = [str(told["base"]) for told in portals.values() if told.get("kind") == "http" and told.get("base")]
    if len(bases) != 1:
        raise ToolFailure(
            "endpoint.none", "The call has no endpoint.", "The operator must grant this tool one endpoint."
        )
    return bases[0].rstrip("/")


def time_left(context: Mapping[str, Any], most_s: float) -> float:
    """Seconds to wait for a server, so that the tool itself can still say what happened."""
    wall_s = float((context.get("limits") or {}).get("wall_s") or most_s)
    return max(0.5, min(most_s, wall_s - _LEFT_FOR_ENDING_S))


def ask(
    base: str,
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float,
    max_bytes: int = MAX_BYTES,
) -> Answer:
    """The answer to one request of `path` (not encoded yet, beneath `base`). Whatever its status is.

    Raises ToolFailure where there was none.
    """
    parts = urllib.parse.urlsplit(base)
    target = parts.path + encoded_path(path) + encoded_query(query or {})
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request(method, target or "/", body, {"User-Agent": USER_AGENT, **(headers or {})})
        response = connection.getresponse()
        received = _read(response, max_bytes)
    except TimeoutError:
        raise too_slow(timeout_s) from None
    except (http.client.HTTPException, OSError) as error:
        raise broken(error) from None
    finally:
        connection.close()
    named = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, named, received[:max_bytes], len(received) > max_bytes)


def encoded_path(path: str) -> str:
    """`path` as a request's target has it. Raises ToolFailure for one that could be read in two ways."""
    if path and not path.startswith("/"):
        raise ToolFailure("endpoint.path", "The path does not begin with a slash.", "Write it as /name/of/thing.")
    dotted = any(segment.partition(";")[0].strip() in (".", "..") for segment in path.split("/"))
    if dotted or "//" in path or not path.isprintable() or any(character in path for character in "\\?#%"):
        hint = "Write plain names between slashes; values after ? belong into `query`."
        raise ToolFailure("endpoint.path", "The path is not a plain one.", hint)
    return urllib.parse.quote(path, safe=_PATH_SAFE)


def encoded_query(query: Mapping[str, Any]) -> str:
    """With its `?`, or empty. A list repeats its name; null leaves it out."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                pairs.append((name, _as_text(item)))
    return f"?{urllib.parse.urlencode(pairs)}" if pairs else ""


def as_json(value: Any) -> bytes:
    """A request's body."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _read(response: http.client.HTTPResponse, max_bytes: int) -> bytes:
    """Up to one byte more than asked for, so that a cut can be told."""
    received = bytearray()
    while len(received) <= max_bytes and (piece := response.read(min(_CHUNK, max_bytes + 1 - len(received)))):
        received += piece
    return bytes(received)


def _whole(digits: str) -> int | str:
    if len(digits) > 17:
        return digits
    value = int(digits)
    return value if abs(value) <= EXACT_INTEGER else digits


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


# --- what went wrong -----------------------------------------------------------------------------------------------


def check(answer: Answer) -> Answer:
    """The answer, where its status is one of success. Raises ToolFailure."""
    if 200 <= answer.status < 300:
        return answer
    raise failure(answer.status, answer.headers, answer.body)


def failure(status: int, headers: Mapping[str, str], body: bytes) -> ToolFailure:
    """What a status that is no success means, and what can be done about it. `headers` in lower case."""
    detail = _detail(body)
    if REFUSED_HEADER.lower() in headers:
        return _refused(status, headers, detail)
    if status in (401, 403):
        hint = "Trying again does not help: the operator must look at the key and its rights. Tell the user so."
        return ToolFailure("endpoint.unauthorized", f"The service refused the key ({status}){detail}.", hint)
    if status == 404:
        hint = "Check the names and identifiers in the request."
        return ToolFailure("endpoint.not_found", f"The service has no such thing (404){detail}.", hint)
    if status == 429:
        return ToolFailure("endpoint.rate_limited", f"The service was asked too often (429){detail}.", _later(headers))
    if status >= 500:
        return ToolFailure("endpoint.failed", f"The service failed ({status}){detail}.", _later(headers))
    if 300 <= status < 400:
        hint = "Redirects are not followed; ask for the final place."
        return ToolFailure("endpoint.redirected", f"The service redirects elsewhere ({status}).", hint)
    hint = "Correct the request as the service says."
    return ToolFailure("endpoint.bad_request", f"The service did not accept the request ({status}){detail}.", hint)


def too_slow(seconds: float) -> ToolFailure:
    message = f"The service did not answer within {seconds:g} seconds."
    return ToolFailure("endpoint.timeout", message, "Try again later, or ask for less.")


def broken(error: BaseException) -> ToolFailure:
    message = f"The connection to the service broke ({type(error).__name__})."
    return ToolFailure("endpoint.broken", message, "Try again later; if it stays so, tell the user.")


def bad_answer(what: str) -> ToolFailure:
    """`what` goes on after a colon."""
    message = f"The service did not answer as its interface says: {what}."
    return ToolFailure("endpoint.bad_answer", message, "Try again once; if it stays so, tell the user.")


def _refused(status: int, headers: Mapping[str, str], detail: str) -> ToolFailure:
    """The broker's own answer, which names its reason."""
    if status == 429:
        return ToolFailure("endpoint.rate_limited", f"This endpoint may not be asked now{detail}.", _later(headers))
    if status >= 500:
        later = _later(headers, otherwise="Try again later; if it stays so, tell the user.")
        return ToolFailure("endpoint.failed", f"The service could not be reached{detail}.", later)
    hint = "Only what the operator granted for this endpoint can be asked; trying again does not help."
    return ToolFailure("endpoint.refused", f"The request is not granted{detail}.", hint)


def _later(headers: Mapping[str, str], otherwise: str = "Wait before the next request, and ask less often.") -> str:
    after = headers.get("retry-after", "").strip()
    if after.isascii() and after.isdigit() and len(after) < 7:
        return f"Wait {int(after)} seconds before the next request."
    return otherwise


def _detail(body: bytes) -> str:
    """What the server says about it, after a colon; empty where it says nothing that can be read."""
    try:
        found = _said(json.loads(body[:64 * 1024]))
    except (ValueError, RecursionError):
        found = ""
    text = " ".join(found.split())
    return f": {text[:MAX_DETAIL_CHARACTERS]}" if text else ""


def _said(document: Any) -> str:
    """The text under the names that services use for it."""
    for name in ("error", "message", "detail", "title", "error_description", "info"):
        value = document.get(name) if isinstance(document, dict) else None
        if isinstance(value, str):
            return value
        if isinstance(value, dict) and (text := _said(value)):
            return text
    return ""
