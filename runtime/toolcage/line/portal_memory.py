"""What the portals of one runtime's calls know of earlier calls; it ends with the runtime.

Each part bounds itself and is thread-safe. None of it holds a secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolcage.broker.kept_answers import KeptAnswers
from toolcage.broker.pace import Pace
from toolcage.line.mail_portals import Outbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How fast each resource was asked, which messages were sent, which answers are kept."""

    pace: Pace = field(default_factory=Pace)
    outbox: Outbox = field(default_factory=Outbox)
    answers: KeptAnswers = field(default_factory=KeptAnswers)
