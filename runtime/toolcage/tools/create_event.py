"""`create_event`: one new event in the calendar that the grant names, and invitations to those whom the call names.

The body runs in a cage and speaks CalDAV to its portal; the broker has the login, and lets writing pass only where the
resource says `rw`. The event's name is made from the session and the call, so that the same call tried again finds its
event there and makes no second one; If-None-Match lets it replace nothing. Many servers mail the invitations
themselves: `attendees` is a sink like a mail's recipients, judged by the grant, and a calendar without an address of
its own invites nobody. Not here: rules of repetition, alarms, rooms.
"""

from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.caldav import Collection
from toolcage.tools.calendar_events import checked_span, moment, new_event

MAX_ATTENDEES: Final = 50
TIME: Final = {"type": "string", "minLength": 8, "maxLength": 40}
PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 200, "description": "What the event is called."},
        "start": {
            **TIME,
            "description": "As 2026-05-04T10:00, with +02:00 or Z or a timezone; a whole day as 2026-05-04.",
        },
        "end": {**TIME, "description": "In the same form; a whole day's event ends on the day after it."},
        "details": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "maxLength": 300, "description": "Where."},
                "notes": {"type": "string", "maxLength": 10_000, "description": "What it is about."},
                "timezone": {
                    "type": "string",
                    "pattern": "^[A-Za-z][A-Za-z0-9_+/-]{0,63}$",
                    "description": "Of times without one, as Europe/Berlin; UTC when absent.",
                },
            },
            "additionalProperties": False,
            "description": "location, notes, timezone: each may be absent.",
        },
        "attendees": {
            "type": "array",
            "items": {"type": "string", "minLength": 3, "maxLength": 400},
            "minItems": 1,
            "maxItems": MAX_ATTENDEES,
            "description": "Mail addresses of those to invite; the server may write to them.",
        },
    },
    "required": ["title", "start", "end"],
    "additionalProperties": False,
}
_KINDS: Final = {"attendees": "address"}
_RESOURCES: Final = {"calendar": "calendar"}
_EFFECTS_NEED: Final = {"sends": ("attendees",)}  # others are told only of a change that names them


class CreateEvent(Tool):
    """Makes one event."""

    name = "create_event"
    description = (
        "Makes one event in the calendar that this role works with. Use it to put an appointment, a deadline or a "
        "whole day off into the calendar, or to invite people to a meeting. Do not use it to change an event that is "
        "there (use update_event), to look for a free time (use list_events first), or to write to people without a "
        "meeting (use send_email). Input: `title`, `start` and `end`; `details` for location, notes and time zone; "
        "`attendees` only for people whom the user wants to invite. Output: status `created`, or `already_there` where "
        "the same call has made it before; id, version, start, end and attendees."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"writes", "sends"})
    effects_need = _EFFECTS_NEED
    resources = _RESOURCES
    image = "web"
    isolation = "namespace"
    wall_s = 30.0
    idempotent = True
    ships = (
        "toolcage.tools.caldav", "toolcage.tools.calendar_events", "toolcage.tools.portal_end",
        "toolcage.tools.recurrence",
    )  # fmt: skip

    def execute(
        self,
        title: str,
        start: str,
        end: str,
        details: dict[str, str] | None = None,
        attendees: list[str] | None = None,
    ) -> dict[str, Any]:
        """What was made. Raises ToolFailure with a `calendar.*` code."""
        key = str(self.context.get("key") or "")
        if not key:
            raise ToolFailure("calendar.no_key", "This call cannot be told from another one.")
        more = dict(details or {})
        zone = more.pop("timezone", None)
        begins, ends = moment(start, zone), moment(end, zone)
        checked_span(begins, ends)
        values = {"title": title, **more, "start": begins, "end": ends}
        guests = invited(self.context)
        collection = Collection(self.context)
        uid = f"{key}@toolcage"
        name = f"{key}.ics"
        etag = collection.create(name, new_event(uid, values, collection.address, guests))
        return {
            "status": "already_there" if etag is None else "created",
            "id": name,
            "version": etag if etag is not None else collection.get(name).etag,
            "start": begins.isoformat(),
            "end": ends.isoformat(),
            "attendees": guests,
        }


def invited(context: Any) -> list[str]:
    """The addresses of `attendees` as the host has read them."""
    return [str(item) for item in (context.get("addresses") or {}).get("attendees") or ()]
