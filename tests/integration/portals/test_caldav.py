"""The CalDAV client of the calendar tools, through the `http` portal, before a real server that others use too."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from servers.portal import TERMS, Portal, Serve
from servers.radicale import CALENDAR, PASSWORD, USER, RadicaleServer
from toolcage.broker import http
from toolcage.broker.dial import Upstream, open_stream
from toolcage.broker.pace import Pace
from toolcage.tools.base import ToolFailure
from toolcage.tools.caldav import Collection


@pytest.fixture
def collection(portal: Callable[[Serve], Portal], radicale: RadicaleServer) -> Collection:
    token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    upstream = Upstream(host="127.0.0.1", port=radicale.port, ca=radicale.ca)
    config = http.HttpConfig(
        resource="calendar team", origin=f"https://127.0.0.1:{radicale.port}",
        authority=f"127.0.0.1:{radicale.port}", methods=frozenset(("GET", "PUT", "DELETE", "REPORT")),
        path_prefixes=(CALENDAR,), key=("Authorization", f"Basic {token}"), secrets=(PASSWORD, token),
    )  # fmt: skip

    async def dial() -> http.Server:
        return await open_stream(upstream, connect_s=10)

    pace = Pace()
    opened = portal(
        lambda client, note: http.serve(client, config=config, dial=dial, pace=pace, terms=TERMS, note=note)
    )
    told = {"kind": "http", "host": "127.0.0.1", "port": opened.port, "base": f"http://127.0.0.1:1{CALENDAR}"}
    return Collection({"portals": {"team": told}})


def ics(title: str) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//t//EN", "BEGIN:VEVENT", "UID:one", "DTSTAMP:20260401T000000Z",
             "DTSTART:20260504T100000Z", f"SUMMARY:{title}", "END:VEVENT", "END:VCALENDAR", ""]  # fmt: skip
    return "\r\n".join(lines)


def test_what_somebody_changed_after_it_was_read_is_neither_replaced_nor_deleted(
    collection: Collection, radicale: RadicaleServer
) -> None:
    assert collection.create("a.ics", ics("Mine"))
    assert collection.create("a.ics", ics("Again")) is None
    found = collection.get("a.ics")
    radicale.request("PUT", f"{CALENDAR}a.ics", ics("Theirs"))
    for change in (lambda: collection.replace(found, ics("Lost")), lambda: collection.delete(found)):
        with pytest.raises(ToolFailure) as caught:
            change()
        assert caught.value.code == "calendar.conflict"
    now = collection.get("a.ics")
    assert "SUMMARY:Theirs" in now.text
    collection.replace(now, ics("Changed"))
    collection.delete(collection.get("a.ics"))
    with pytest.raises(ToolFailure) as caught:
        collection.get("a.ics")
    assert caught.value.code == "calendar.no_event"


def test_objects_are_found_by_time_with_their_versions(collection: Collection) -> None:
    etag = collection.create("a.ics", ics("Lunch"))
    (found,) = collection.query("20260504T000000Z", "20260505T000000Z")
    assert (found.name, found.etag) == ("a.ics", etag)
    assert "SUMMARY:Lunch" in found.text
    assert collection.query("20260601T000000Z", "20260602T000000Z") == []
