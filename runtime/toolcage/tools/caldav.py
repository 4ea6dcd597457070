"""CalDAV (RFC 4791) on one collection, through its portal: find, get, put and delete, each change guarded by an ETag.

The cage speaks plain HTTP to its portal; the broker does TLS and the login and lets only this collection's paths and
the resource's methods pass. What a server answers is a stranger's: bounded, parsed without external entities, and its
names used only as the last part of a path below the collection. Standard library only; shipped into cages.
"""

import http.client
import json
import re
import xml.etree.ElementTree as ET  # expat bounds entity expansion; what it holds is the cage's memory alone
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from toolcage.tools.base import ToolFailure
from toolcage.tools.portal_end import portal_end

TIMEOUT_S: Final = 20.0
MAX_ANSWER: Final = 16 * 1024 * 1024
MAX_OBJECTS: Final = 2_000
NAME: Final = r"[A-Za-z0-9_~!$&'()*+,;=:@%-][A-Za-z0-9._~!$&'()*+,;=:@%-]{0,250}"
_NAME: Final = re.compile(NAME)
_QUERY: Final = """<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:getetag/><C:calendar-data/></D:prop>
<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="{start}" end="{end}"/>
</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"""
_DAV: Final = "{DAV:}"
_DATA: Final = "{urn:ietf:params:xml:ns:caldav}calendar-data"
_CONFLICT: Final = "The event was changed by somebody else in the meantime."
_READ_AGAIN: Final = "List the events again and decide anew with what is there now."


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarObject:
    """One resource of the collection: `name` is the last part of its path, `etag` its version with its quotes."""

    name: str
    etag: str
    text: str


class Collection:
    """The calendar of this call."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        end = portal_end(context, "http")
        self._host, self._port = str(end["host"]), int(end["port"])
        self._path = urlsplit(str(end["base"])).path.rstrip("/") + "/"
        self.address = str(end.get("address") or "")

    def query(self, start: str, end: str) -> list[CalendarObject]:
        """Objects with an event between two instants (`20260501T000000Z`). Raises ToolFailure."""
        body = _QUERY.format(start=start, end=end)
        status, _, answer = self._ask("REPORT", self._path, body, {"Depth": "1", "Content-Type": "application/xml"})
        if status != 207:
            _fail(status, answer)
        try:
            tree = ET.fromstring(answer)  # noqa: S314 - see the import
        except (ET.ParseError, ValueError, RecursionError):
            raise ToolFailure("calendar.unreadable", "The calendar server's answer cannot be read.") from None
        found = [_object(item) for item in tree.findall(f"{_DAV}response")[:MAX_OBJECTS]]
        return [item for item in found if item is not None]

    def get(self, name: str) -> CalendarObject:
        """One object. Raises ToolFailure (`calendar.no_event`)."""
        status, headers, answer = self._ask("GET", self._path + checked_name(name))
        if status != 200:
            _fail(status, answer)
        return CalendarObject(name=name, etag=headers.get("etag", ""), text=answer.decode("utf-8", "replace"))

    def create(self, name: str, text: str) -> str | None:
        """Its etag; None where an object of that name is there already, which is left as it is. Raises ToolFailure."""
        headers = {"If-None-Match": "*", "Content-Type": "text/calendar; charset=utf-8"}
        status, answered, answer = self._ask("PUT", self._path + checked_name(name), text, headers)
        if status == 412:
            return None
        if status not in (200, 201, 204):
            _fail(status, answer)
        return answered.get("etag", "")

    def replace(self, found: CalendarObject, text: str) -> str:
        """Puts `text` where `found` still stands; its new etag. Raises ToolFailure (`calendar.conflict`)."""
        headers = {"If-Match": _version(found), "Content-Type": "text/calendar; charset=utf-8"}
        status, answered, answer = self._ask("PUT", self._path + checked_name(found.name), text, headers)
        if status not in (200, 201, 204):
            _fail(status, answer)
        return answered.get("etag", "")

    def delete(self, found: CalendarObject) -> None:
        """Removes `found` if it is still that. Raises ToolFailure (`calendar.conflict`)."""
        headers = {"If-Match": _version(found)}
        status, _, answer = self._ask("DELETE", self._path + checked_name(found.name), None, headers)
        if status not in (200, 202, 204):
            _fail(status, answer)

    def _ask(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            encoded = None if body is None else body.encode("utf-8", "replace")
            connection.request(method, path, encoded, {"Connection": "close", **(headers or {})})
            response = connection.getresponse()
            answer = response.read(MAX_ANSWER + 1)
            received = {name.lower(): value for name, value in response.getheaders()}
        except (OSError, http.client.HTTPException) as error:
            text = f"The calendar server could not be reached, or broke off ({type(error).__name__})."
            raise ToolFailure("calendar.unreachable", text, "Try again later.") from None
        finally:
            connection.close()
        if len(answer) > MAX_ANSWER:
            raise ToolFailure("calendar.too_much", "The calendar's answer is too large.", "Ask for fewer days.")
        return response.status, received, answer


def checked_name(name: str) -> str:
    """The same name, if it is one part of a path and no more. Raises ToolFailure (`calendar.no_event`)."""
    if not _NAME.fullmatch(name) or re.search(r"%(?:2e|2f|5c|25|0)", name, re.IGNORECASE):
        raise ToolFailure("calendar.no_event", "This is no event's id.", "Take `id` from a list of events.")
    return name


def _version(found: CalendarObject) -> str:
    """Without one a change could undo somebody else's, so there is none."""
    if not found.etag or found.etag.startswith("W/"):
        text = "The calendar server gives no versions, so events cannot be changed without undoing somebody's change."
        raise ToolFailure("calendar.no_version", text)
    return found.etag


def _object(item: ET.Element) -> CalendarObject | None:
    name = urlsplit((item.findtext(f"{_DAV}href") or "").strip()).path.rstrip("/").rpartition("/")[2]
    for found in item.findall(f"{_DAV}propstat"):
        text = found.findtext(f"{_DAV}prop/{_DATA}")
        if text and " 200 " in f"{found.findtext(f'{_DAV}status') or ''} " and _NAME.fullmatch(name):
            etag = (found.findtext(f"{_DAV}prop/{_DAV}getetag") or "").strip()
            return CalendarObject(name=name, etag=etag, text=text)
    return None


def _fail(status: int, answer: bytes) -> NoReturn:
    """What the server, or the broker in its place, said no with."""
    if status == 412:
        raise ToolFailure("calendar.conflict", _CONFLICT, _READ_AGAIN)
    if status in (404, 410):
        raise ToolFailure("calendar.no_event", "There is no such event any more.", "List the events again.")
    refused = _from_broker(answer)
    if refused is not None:
        raise ToolFailure("calendar.refused", f"The calendar cannot be used so: {refused}.", None)
    if status in (429, 502, 503, 504):
        raise ToolFailure("calendar.unreachable", f"The calendar server is busy (HTTP {status}).", "Try again later.")
    raise ToolFailure("calendar.refused", f"The calendar server refused this (HTTP {status}).")


def _from_broker(answer: bytes) -> str | None:
    try:
        told = json.loads(answer[:4096])["error"]
        return str(told["message"])[:300] if str(told["code"]).startswith("egress.") else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
