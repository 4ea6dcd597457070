"""One operation of a described HTTP interface, as a tool of its own. Runs in a cage, through an endpoint's portal.

What it asks is fixed by a declaration (`declared_api` reads those): method, a path with places for values, and where
each argument goes. The arguments were checked against the declaration's schema by the line. A value in a path is
percent-encoded whole, so it fills one segment and cannot reach another; headers are those that the declaration names,
and the broker drops those that could act as a credential or another host.
"""

import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from toolcage.tools import endpoint_client
from toolcage.tools.api_answer import told
from toolcage.tools.base import Tool, ToolFailure

MAX_WAIT_S: Final = 60.0
IMAGE: Final = "web"
_RESOURCES: Final = {"endpoint": "endpoint"}


def effects_of(method: str) -> frozenset[str]:
    """What a request of that method may do, as far as its method tells."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return frozenset({"reads_untrusted"})
    return frozenset({"reads_untrusted", "sends", "writes"})


class ApiOperation(Tool):
    """The operation that `spec` declares: plain JSON data, as `declared_api.Operation` holds it."""

    resources = _RESOURCES
    image = IMAGE
    isolation = "namespace"
    wall_s = 30.0
    ships = ("toolcage.tools.api_answer", "toolcage.tools.endpoint_client")

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self.name = spec["name"]
        self.description = spec["description"]
        self.parameters = spec["parameters"]
        self.effects = effects_of(spec["method"])
        self.idempotent = spec["method"] in ("GET", "HEAD", "OPTIONS")

    def execute(self, **arguments: Any) -> dict[str, Any]:
        """The answer. Raises ToolFailure with an `endpoint.*` code, for every status that is no success too."""
        placed = _Placed(self._spec["places"], arguments)
        body = placed.body
        answer = endpoint_client.ask(
            endpoint_client.portal_of(self.context) + placed.path(self._spec["path"]),
            self._spec["method"],
            "",
            query=placed.query,
            headers={**(endpoint_client.JSON_HEADERS if body is not None else endpoint_client.ACCEPT_JSON),
                     **placed.headers},
            body=None if body is None else endpoint_client.as_json(body),
            timeout_s=endpoint_client.time_left(self.context, MAX_WAIT_S),
        )  # fmt: skip
        return told(endpoint_client.check(answer), self.context)


class _Placed:
    """Arguments put where the declaration says. `places` has, per value of the operation: the way to it in the
    arguments (`at`), where it goes (`in`) and its name there."""

    def __init__(self, places: list[Mapping[str, Any]], arguments: Mapping[str, Any]) -> None:
        self.query: dict[str, Any] = {}
        self.headers: dict[str, str] = {}
        self.body: Any = None
        self._path: dict[str, str] = {}
        for place in places:
            value = _found(arguments, place["at"])
            if value is not None:
                self._put(place, value)

    def _put(self, place: Mapping[str, Any], value: Any) -> None:
        if place["in"] == "path":
            self._path[place["name"]] = _segment(value)
        elif place["in"] == "query":
            self.query[place["name"]] = _joined(value) if place.get("joined") else value
        elif place["in"] == "header":
            self.headers[place["name"]] = _header(place["name"], value)
        else:
            self.body = value

    def path(self, template: str) -> str:
        """Each `{name}` filled in, everything else as the declaration has it."""
        pieces = template.split("{")
        made = urllib.parse.quote(pieces[0], safe="/!$&'()*+,;=:@~")
        for piece in pieces[1:]:
            name, _, rest = piece.partition("}")
            if name not in self._path:
                raise ToolFailure("endpoint.path", f"The value {name} of the path is missing.", "Give it.")
            made += self._path[name] + urllib.parse.quote(rest, safe="/!$&'()*+,;=:@~")
        return made


def _found(arguments: Mapping[str, Any], way: list[str]) -> Any:
    value: Any = arguments
    for name in way:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    return value if isinstance(value, str) else endpoint_client.as_json(value).decode("utf-8")


def _joined(value: Any) -> Any:
    return _text(value) if isinstance(value, list) else value


def _segment(value: Any) -> str:
    text = _text(value)
    if not text or text.partition(";")[0].strip() in (".", "..") or not text.isprintable() or set(text) & set("/\\%"):
        hint = "Give a plain value without slashes, backslashes and percent signs."
        raise ToolFailure("endpoint.path", "A value cannot be part of a path.", hint)
    return urllib.parse.quote(text, safe="")


def _header(name: str, value: Any) -> str:
    text = _text(value)
    if not text.isascii() or not text.isprintable() or len(text) > 1000:
        raise ToolFailure("endpoint.header", f"The value of {name} cannot be sent.", "Give a short, plain text.")
    return text
