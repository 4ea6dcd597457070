"""The audit rail: an intent before every run, one closing on every path, chained so that changes show."""

from toolcage.audit.log import AuditLog, Ticket
from toolcage.audit.record import Closing, Event, Intent, facts_text

__all__ = ["AuditLog", "Closing", "Event", "Intent", "Ticket", "facts_text"]
