"""Events as a model reads and writes them, from and to iCalendar (RFC 5545), by the icalendar library in the cage.

What a calendar holds was partly written by strangers, since anybody can send an invitation: what cannot be read is
passed over and counted, texts are cut, rules expand within bounds (`recurrence`). What is written goes through the
library's own escaping, so that no text can become another property. Whoever takes part in an event is told by many
servers when it changes or goes: `people` says who that would be, and a change must name them all.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from toolcage.tools.base import ToolFailure
from toolcage.tools.recurrence import Budget, Unfinished, occurrences

MAX_NOTES: Final = 2_000
MAX_LINE: Final = 300
MAX_PEOPLE: Final = 100
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
UNREADABLE: Final = "somebody whose address cannot be read"
_FORMS: Final = "Write times as 2026-05-04T10:00, with +02:00 or Z behind it or with a timezone; days as 2026-05-04."


# --- times ---------------------------------------------------------------------------------------------------------


def moment(text: str, zone: str | None = None) -> date:
    """A day, or an instant with a zone. Raises ToolFailure (`calendar.time`)."""
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(zone or "UTC"))
    except (ValueError, KeyError, OSError):
        raise ToolFailure(
            "calendar.time", f"{text[:60]!r} (zone {(zone or 'UTC')[:60]!r}) is no time.", _FORMS
        ) from None


def instant(at: date) -> datetime:
    """The instant in UTC; a day begins at midnight UTC."""
    if isinstance(at, datetime):
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    return datetime(at.year, at.month, at.day, tzinfo=UTC)


def checked_span(start: date, end: date) -> None:
    """Raises ToolFailure unless both are days or both are times, and the end is later."""
    if isinstance(start, datetime) != isinstance(end, datetime):
        raise ToolFailure("calendar.time", "One of start and end is a day and the other a time.", _FORMS)
    if instant(end) <= instant(start):
        raise ToolFailure("calendar.time", "The end is not after the start.", "A whole day ends on the day after it.")


# --- reading -------------------------------------------------------------------------------------------------------


class Listing:
    """Collects the occurrences of many objects within one range."""

    def __init__(self, start: datetime, end: datetime) -> None:
        self._start = start
        self._end = end
        self._budget = Budget()
        self._found: list[tuple[datetime, dict[str, Any]]] = []
        self.notes: dict[str, int] = {}

    def add(self, name: str, etag: str, text: str) -> None:
        """Adds what one object holds. Never raises: what cannot be read is counted."""
        try:
            events = parsed(text).walk("VEVENT")
            moved = {_key(event.get("RECURRENCE-ID").dt) for event in events if event.get("RECURRENCE-ID") is not None}
            for event in events:
                self._add_event(name, etag, event, moved)
        except Unfinished:
            self._note("events repeat more often than is worked out here; some occurrences are missing")
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            IndexError,
            OverflowError,
            RecursionError,
            ToolFailure,
        ):
            self._note("events that cannot be read were left out")

    def events(self) -> list[dict[str, Any]]:
        """In order of their starts."""
        return [event for _, event in sorted(self._found, key=lambda item: (item[0], item[1]["id"]))]

    def _add_event(self, name: str, etag: str, event: Any, moved: set[datetime]) -> None:
        start, length = _span(event)
        if event.get("RECURRENCE-ID") is not None or not (event.get("RRULE") or event.get("RDATE")):
            self._keep(name, etag, event, start, length)
            return
        left_out = moved | {_key(item.dt) for value in _several(event, "EXDATE") for item in value.dts}
        starts = [start] if instant(start) + length > self._start else []
        starts += [item.dt for value in _several(event, "RDATE") for item in value.dts if isinstance(item.dt, date)]
        for rule in _several(event, "RRULE"):
            text = rule.to_ical().decode("ascii", "replace")
            starts += occurrences(text, start, self._end, self._start - length, self._budget)
        for at in {_key(item): item for item in starts if _key(item) not in left_out}.values():
            self._keep(name, etag, event, at, length)

    def _keep(self, name: str, etag: str, event: Any, start: date, length: timedelta) -> None:
        begins = instant(start)
        if begins < self._end and begins + max(length, timedelta(seconds=1)) > self._start:
            self._found.append((begins, {"id": name, "version": etag, **described(event, start, length)}))

    def _note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1


def parsed(text: str) -> Any:
    """The calendar object. Raises ToolFailure (`calendar.unreadable`)."""
    import icalendar  # a third of a second, which other tools' cages need not pay

    try:
        return icalendar.Calendar.from_ical(text)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise ToolFailure("calendar.unreadable", "The event as it stands in the calendar cannot be read.") from None


def master(calendar: Any) -> Any:
    """The event that the others of an object are exceptions of. Raises ToolFailure."""
    events = calendar.walk("VEVENT")
    found = next((event for event in events if event.get("RECURRENCE-ID") is None), None)
    if found is None:
        raise ToolFailure("calendar.unreadable", "The event as it stands in the calendar cannot be read.")
    return found


def described(event: Any, start: date, length: timedelta) -> dict[str, Any]:
    """One occurrence, in the event's own time zone."""
    end = start + length
    shown: dict[str, Any] = {
        "title": _line(event.get("SUMMARY")),
        "start": start.isoformat(),
        "end": end.isoformat(),
        "all_day": not isinstance(start, datetime),
        "repeats": repeats(event),
    }
    for name, field, most in (("location", "LOCATION", MAX_LINE), ("notes", "DESCRIPTION", MAX_NOTES)):
        if text := _line(event.get(field), most):
            shown[name] = text
    if organizer := _address(event.get("ORGANIZER")):
        shown["organizer"] = organizer
    if attendees := [found for item in _several(event, "ATTENDEE")[:MAX_PEOPLE] for found in _reached(item)]:
        shown["attendees"] = attendees
    if str(event.get("STATUS", "")).upper() == "CANCELLED":
        shown["cancelled"] = True
    return shown


def repeats(event: Any) -> bool:
    """Whether it takes place more than once."""
    return bool(event.get("RRULE") or event.get("RDATE"))


def people(calendar: Any, own: str) -> list[str]:
    """Whoever a change of this object would tell, besides the calendar's own user, as addresses in lower case.

    Also those whom an alarm writes to. Somebody whose address cannot be read stands there as UNREADABLE, which no call
    can name: who that is only the server knows.
    """
    found = {
        address.lower()
        for part in calendar.walk()
        for field in ("ATTENDEE", "ORGANIZER")
        for item in _several(part, field)
        for address in _reached(item)
    }
    return sorted(found - {own.lower()})


def _reached(value: Any) -> list[str]:
    """All addresses that a server could find in one participant."""
    params = getattr(value, "params", {})
    email, uri = _address(params.get("EMAIL")), str(value).strip().lower()
    if address := _address(value):
        return [address, *([email] if email else [])]
    return [email] if email and not uri.startswith("mailto:") else [UNREADABLE]


def _span(event: Any) -> tuple[date, timedelta]:
    start = event["DTSTART"].dt
    if isinstance(start, datetime) and start.tzinfo is None:
        start = start.replace(tzinfo=UTC)
    if event.get("DTEND") is not None:
        end = event["DTEND"].dt
        end = end.replace(tzinfo=UTC) if isinstance(end, datetime) and end.tzinfo is None else end
        return start, max(instant(end) - instant(start), timedelta())
    if event.get("DURATION") is not None:
        return start, max(event["DURATION"].dt, timedelta())
    return start, timedelta() if isinstance(start, datetime) else timedelta(days=1)


def _several(event: Any, field: str) -> list[Any]:
    value = event.get(field)
    return [] if value is None else value if isinstance(value, list) else [value]


def _key(at: Any) -> datetime:
    return instant(at) if isinstance(at, date) else datetime.max.replace(tzinfo=UTC)


def _line(value: Any, most: int = MAX_LINE) -> str:
    text = "" if value is None else str(value).strip()
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def _address(value: Any) -> str:
    """A plain mail address, '' for anything else that may stand there."""
    text = re.sub(r"^mailto:", "", "" if value is None else str(value).strip(), flags=re.IGNORECASE)
    return text if re.fullmatch(r"[^\s@<>\"',;:%?!]{1,64}@[^\s@<>\"',;:%?!]{1,253}", text) else ""


# --- writing -------------------------------------------------------------------------------------------------------


def new_event(uid: str, values: Mapping[str, Any], own: str, attendees: Iterable[str]) -> str:
    """A calendar object with one event. `values` has title, start, end and maybe location and notes."""
    import icalendar

    calendar, event = icalendar.Calendar(), icalendar.Event()
    calendar.add("PRODID", "-//toolcage//calendar//EN")
    calendar.add("VERSION", "2.0")
    event.add("UID", uid)
    event.add("DTSTAMP", datetime.now(UTC))
    write(event, values)
    invite(event, own, attendees)
    calendar.add_component(event)
    calendar.add_missing_timezones()
    return str(calendar.to_ical().decode("utf-8"))


def changed(calendar: Any, event: Any) -> str:
    """The object as text, marked as another version of itself."""
    now = datetime.now(UTC)
    _put(event, "DTSTAMP", now)
    _put(event, "LAST-MODIFIED", now)
    _put(event, "SEQUENCE", int(event.get("SEQUENCE", 0)) + 1)
    calendar.add_missing_timezones()
    return str(calendar.to_ical().decode("utf-8"))


def write(event: Any, values: Mapping[str, Any]) -> None:
    """Sets what `values` names. An empty text takes a property away."""
    for name, field in (("title", "SUMMARY"), ("location", "LOCATION"), ("notes", "DESCRIPTION")):
        if name in values:
            _put(event, field, _visible(values[name]) or None)
    if "start" in values:
        _put(event, "DURATION", None)
        for name, field in (("start", "DTSTART"), ("end", "DTEND")):
            _put(event, field, _with_known_zone(values[name]))


def _with_known_zone(at: date) -> date:
    """A named zone is kept, so that ten o'clock is told as ten o'clock; an offset alone becomes UTC."""
    if not isinstance(at, datetime) or isinstance(at.tzinfo, ZoneInfo):
        return at
    return at.astimezone(UTC)


def invite(event: Any, own: str, attendees: Iterable[str]) -> None:
    """Adds those who are not there yet. Raises ToolFailure (`calendar.no_address`) where nobody can be the inviter."""
    import icalendar

    there = {_address(item).lower() for item in _several(event, "ATTENDEE")}
    added = [item for item in dict.fromkeys(attendees) if item.lower() not in there]
    if not added:
        return
    if not own:
        text = "Nobody can be invited to events of this calendar."
        raise ToolFailure("calendar.no_address", text, "The operator has to give the calendar an address of its own.")
    if event.get("ORGANIZER") is None:
        event.add("ORGANIZER", icalendar.vCalAddress(f"mailto:{own}"))
    for item in added:
        guest = icalendar.vCalAddress(f"mailto:{item}")
        guest.params.update({"ROLE": "REQ-PARTICIPANT", "PARTSTAT": "NEEDS-ACTION", "RSVP": "TRUE"})
        event.add("ATTENDEE", guest)


def _put(event: Any, field: str, value: Any) -> None:
    event.pop(field, None)
    if value is not None:
        event.add(field, value)


def _visible(text: str) -> str:
    """Line ends stay; other controls would be no part of any text."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode("utf-8")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", " ", plain)
