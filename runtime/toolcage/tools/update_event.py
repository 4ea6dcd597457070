"""`update_event`: changes one event of the calendar that the grant names, if it is still what the caller saw.

The body reads the event, compares its version, changes what is named and puts it back with If-Match: nobody's change is
undone unseen. Many servers tell everybody who takes part of every change, so a change of such an event must name them
all in `attendees`, where the grant judges them; without a word nobody is written to. Of a repeating event only title,
location and notes change, for the whole series.
"""

from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.caldav import NAME, CalendarObject, Collection
from toolcage.tools.calendar_events import (
    UNREADABLE,
    changed,
    checked_span,
    instant,
    invite,
    master,
    moment,
    parsed,
    people,
    repeats,
    write,
)

MAX_ATTENDEES: Final = 50
_TIME: Final = {"type": "string", "minLength": 8, "maxLength": 40}
ID: Final = {"type": "string", "pattern": f"^{NAME}$", "description": "The event's id, from list_events."}
VERSION: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "The version that was seen; where it is another one by now, nothing happens.",
}
ATTENDEES: Final = {
    "type": "array",
    "items": {"type": "string", "minLength": 3, "maxLength": 400},
    "minItems": 1,
    "maxItems": MAX_ATTENDEES,
}
PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "id": ID,
        "changes": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1, "maxLength": 200, "description": "What it is called."},
                "start": {**_TIME, "description": "As 2026-05-04T10:00, or a day; only together with end."},
                "end": {**_TIME, "description": "In the same form; only together with start."},
                "location": {"type": "string", "maxLength": 300, "description": "Where; empty to take it away."},
                "notes": {"type": "string", "maxLength": 10_000, "description": "Empty to take them away."},
                "timezone": {
                    "type": "string",
                    "pattern": "^[A-Za-z][A-Za-z0-9_+/-]{0,63}$",
                    "description": "Of times without one, as Europe/Berlin; UTC when absent.",
                },
            },
            "additionalProperties": False,
            "minProperties": 1,
            "description": "What is to be different: title, start and end, location, notes.",
        },
        "version": VERSION,
        "attendees": {
            **ATTENDEES,
            "description": "Everybody who takes part, as told by list_events, and whoever is to be invited too.",
        },
    },
    "required": ["id", "changes"],
    "additionalProperties": False,
}
_KINDS: Final = {"attendees": "address"}
_RESOURCES: Final = {"calendar": "calendar"}
_EFFECTS_NEED: Final = {"sends": ("attendees",)}  # others are told only of a change that names them


class UpdateEvent(Tool):
    """Changes one event."""

    name = "update_event"
    description = (
        "Changes one event of the calendar that this role works with. Use it to move an event, to rename it, or to "
        "change its location, notes or guests. Do not use it to make an event (use create_event), to delete one (use "
        "delete_event), or to move a repeating event (change that by hand). Input: `id` and `version` from "
        "list_events, `changes` with what is to be different; for an event with other people `attendees` must name "
        "them all, since the server may write to them. Output: status `updated`, id, the new version, whether a whole "
        "series changed. "
        "An event that somebody else has changed meanwhile is left alone: list it again."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"writes", "sends"})
    effects_need = _EFFECTS_NEED
    resources = _RESOURCES
    image = "web"
    isolation = "namespace"
    wall_s = 30.0
    ships = (
        "toolcage.tools.caldav", "toolcage.tools.calendar_events", "toolcage.tools.portal_end",
        "toolcage.tools.recurrence",
    )  # fmt: skip

    def execute(
        self, id: str, changes: dict[str, str], version: str | None = None, attendees: list[str] | None = None
    ) -> dict[str, Any]:
        """What came of it. Raises ToolFailure with a `calendar.*` code."""
        collection = Collection(self.context)
        guests = [str(item) for item in (self.context.get("addresses") or {}).get("attendees") or ()]
        found = current(collection, id, version)
        calendar = parsed(found.text)
        event = master(calendar)
        told = named(calendar, collection.address, guests)
        write(event, _values(event, changes))
        invite(event, collection.address, [item for item in guests if item.lower() not in told])
        etag = collection.replace(found, changed(calendar, event))
        return {"status": "updated", "id": id, "version": etag or collection.get(id).etag, "series": repeats(event)}


def current(collection: Collection, name: str, version: str | None) -> CalendarObject:
    """The event, if it is still the version that was seen. Raises ToolFailure (`calendar.conflict`)."""
    found = collection.get(name)
    if version is not None and found.etag != version:
        text = "The event was changed by somebody else in the meantime."
        raise ToolFailure("calendar.conflict", text, "List the events again and decide anew with what is there now.")
    return found


def named(calendar: Any, own: str, guests: list[str]) -> set[str]:
    """Who would be told, all of them named by the call. Raises ToolFailure (`calendar.attendees`) otherwise."""
    told = set(people(calendar, own))
    unnamed = sorted(told - {item.lower() for item in guests})
    if unnamed:
        text = f"Other people take part in this event and may be told: {', '.join(unnamed)[:500]}."
        hint = "If the user wants that, name all of them in `attendees`."
        if UNREADABLE in unnamed:
            hint = "The user has to change this event by hand."
        raise ToolFailure("calendar.attendees", text, hint)
    return told


def _values(event: Any, changes: dict[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {name: changes[name] for name in ("title", "location", "notes") if name in changes}
    if "start" not in changes and "end" not in changes:
        return values
    if repeats(event):
        raise ToolFailure(
            "calendar.repeats", "A repeating event is not moved here.", "Ask the user to move it by hand."
        )
    if "start" not in changes or "end" not in changes:
        raise ToolFailure("calendar.time", "Start and end go together.", "Give both.")
    zone = changes.get("timezone")
    values["start"], values["end"] = moment(changes["start"], zone), moment(changes["end"], zone)
    checked_span(values["start"], values["end"])
    instant(values["start"])
    return values
