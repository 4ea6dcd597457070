"""Calendar objects that strangers wrote, read within bounds; what the client alone holds of a path."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from toolcage.tools.base import ToolFailure
from toolcage.tools.caldav import checked_name
from toolcage.tools.calendar_events import UNREADABLE, Listing, invite, master, moment, new_event, parsed, people
from toolcage.tools.recurrence import Budget, Unfinished, occurrences

START, END = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


def ics(*lines: str) -> str:
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:one", "DTSTAMP:20260401T000000Z"]
    return "\r\n".join([*head, *lines, "END:VEVENT", "END:VCALENDAR", ""])


def listed(*texts: str) -> Listing:
    listing = Listing(START, END)
    for number, text in enumerate(texts):
        listing.add(f"{number}.ics", '"e"', text)
    return listing


@pytest.mark.parametrize(
    "rule", ["FREQ=SECONDLY", "FREQ=MINUTELY", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;INTERVAL=0"]
)
def test_a_rule_without_end_is_given_up_and_said_and_the_others_are_told(rule: str) -> None:
    bomb = ics("SUMMARY:Bomb", "DTSTART:19700101T000000Z", "DURATION:PT1S", f"RRULE:{rule}")
    fine = ics("SUMMARY:Fine", "DTSTART:20260504T100000Z", "DURATION:PT1H")
    listing = listed(bomb, bomb, fine)
    assert [event["title"] for event in listing.events()] == ["Fine"]
    assert sum(listing.notes.values()) == 2


def test_time_that_is_used_up_stays_used_up() -> None:
    budget = Budget(seconds=0.05)
    for _ in range(2):
        with pytest.raises(Unfinished):
            occurrences("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", START, END, START, budget)
    assert occurrences("FREQ=DAILY", START, END, START, Budget())[:2] == [START, datetime(2026, 5, 2, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("rule", "count"),
    [("FREQ=DAILY;UNTIL=20260503", 3), ("FREQ=DAILY;UNTIL=20260503T000000Z", 3), ("FREQ=DAILY;COUNT=4", 4),
     ("FREQ=DAILY", 31), ("FREQ=WEEKLY;BYDAY=MO", 4)],
)  # fmt: skip
def test_until_counts_its_own_day(rule: str, count: int) -> None:
    assert len(occurrences(rule, START, END, START, Budget())) == count


@pytest.mark.parametrize(
    "text",
    ["", "no calendar", ics("DTSTART:never"), ics("SUMMARY:no start"), ics("DTSTART:20260504T100000Z", "RRULE:FREQ=X"),
     ics("DTSTART:20260504T100000Z", "DURATION:P9999999999D"), ics("DTSTART;TZID=Mars/Base:20260504T100000")[:80]],
)  # fmt: skip
def test_what_cannot_be_read_is_left_out_and_counted(text: str) -> None:
    listing = listed(text, ics("SUMMARY:Fine", "DTSTART:20260504T100000Z"))
    assert "Fine" in [event["title"] for event in listing.events()]


def test_an_object_is_told_once_with_bounded_texts() -> None:
    listing = listed(ics(f"SUMMARY:{'s' * 9000}", f"DESCRIPTION:{'d' * 90000}", "DTSTART;VALUE=DATE:20260504"))
    (event,) = listing.events()
    assert (event["start"], event["end"], event["all_day"]) == ("2026-05-04", "2026-05-05", True)
    assert len(event["title"]) < 400
    assert len(event["notes"]) < 2100


def test_who_would_be_told_is_everybody_but_the_calendars_own_user() -> None:
    calendar = parsed(ics("ORGANIZER:mailto:Bot@example.com", "ATTENDEE;CN=Ada:MAILTO:Ada@Example.com",
                          "ATTENDEE:urn:uuid:1"))  # fmt: skip
    assert people(calendar, "bot@example.com") == ["ada@example.com", UNREADABLE]
    assert people(calendar, "") == ["ada@example.com", "bot@example.com", UNREADABLE]
    own = parsed(ics("ORGANIZER;EMAIL=bot@example.com:/1234/principal/", "ATTENDEE:mailto:bot@example.com"))
    assert people(own, "bot@example.com") == []


def test_guests_need_an_inviter_and_are_invited_once() -> None:
    values = {"title": "x", "start": moment("2026-05-04T10:00"), "end": moment("2026-05-04T11:00")}
    with pytest.raises(ToolFailure) as caught:
        new_event("u", values, "", ["ada@example.com"])
    assert caught.value.code == "calendar.no_address"
    event: Any = master(parsed(new_event("u", values, "bot@example.com", ["ada@example.com", "ada@example.com"])))
    invite(event, "bot@example.com", ["ADA@example.com"])
    assert str(event["ATTENDEE"]) == "mailto:ada@example.com"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "%2e%2e", "a%2Fb", "..%2fa", "a\\b", "a%00", "a\r\nb", ".a", "é"]
)
def test_a_name_is_one_part_of_a_path(name: str) -> None:
    with pytest.raises(ToolFailure):
        checked_name(name)
    assert checked_name("A-b_c.@1%40x.ics") == "A-b_c.@1%40x.ics"
