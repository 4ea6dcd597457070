"""`delete_event`: removes one event from the calendar that the grant names, if it is still what the caller saw.

With If-Match, so that nobody's change is thrown away unseen. A repeating event goes as a whole, and only where the call
says so. Many servers tell everybody who takes part, so they all must be named in `attendees`, where the grant judges
them.
"""

from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.caldav import Collection
from toolcage.tools.calendar_events import master, parsed, repeats
from toolcage.tools.update_event import ATTENDEES, ID, VERSION, current, named

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "id": ID,
        "version": VERSION,
        "whole_series": {
            "type": "boolean",
            "default": False,
            "description": "Whether a repeating event may go with all its occurrences.",
        },
        "attendees": {**ATTENDEES, "description": "Everybody who takes part, as told by list_events."},
    },
    "required": ["id"],
    "additionalProperties": False,
}
_KINDS: Final = {"attendees": "address"}
_RESOURCES: Final = {"calendar": "calendar"}
_EFFECTS_NEED: Final = {"sends": ("attendees",)}  # others are told only of a change that names them


class DeleteEvent(Tool):
    """Deletes one event."""

    name = "delete_event"
    description = (
        "Deletes one event from the calendar that this role works with. Use it to cancel an appointment, to remove a "
        "deadline that is met, or to take back an event that was made by mistake. Do not use it to move or rename an "
        "event (use update_event), or when it is not clear which one the user means (use list_events first): it cannot "
        "be brought back. Input: `id` and `version` from list_events; `whole_series` true for a repeating event; for "
        "an event with other people `attendees` must name them all, since the server may write to them. Output: "
        "status `deleted`, id and title."
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
        "toolcage.tools.recurrence", "toolcage.tools.update_event",
    )  # fmt: skip

    def execute(
        self,
        id: str,
        version: str | None = None,
        whole_series: bool = False,
        attendees: list[str] | None = None,
    ) -> dict[str, Any]:
        """What came of it. Raises ToolFailure with a `calendar.*` code."""
        collection = Collection(self.context)
        guests = [str(item) for item in (self.context.get("addresses") or {}).get("attendees") or ()]
        found = current(collection, id, version)
        calendar = parsed(found.text)
        event = master(calendar)
        if repeats(event) and not whole_series:
            text = "This event repeats; deleting it would delete every occurrence."
            raise ToolFailure("calendar.repeats", text, "If the user wants that, set `whole_series` to true.")
        named(calendar, collection.address, guests)
        collection.delete(found)
        return {"status": "deleted", "id": id, "title": str(event.get("SUMMARY", ""))[:300]}
