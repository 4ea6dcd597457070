"""A tool for tests that declares a resource of every kind that has portals."""

from __future__ import annotations

from toolcage import Tool


class UseEverything(Tool):
    """Uses one resource of each kind, and two endpoints."""

    name = "use_everything"
    description = "Uses everything. For tests. Not for anything else. Input: none. Output: none."
    parameters = {"first": {"type": "string"}, "second": {"type": "string"}}  # noqa: RUF012
    effects = frozenset({"sends", "reads_private", "writes"})
    resources = {  # noqa: RUF012
        "first": "endpoint", "second": "endpoint", "calendar": "calendar", "database": "database", "mailbox": "mailbox",
    }  # fmt: skip

    def execute(self, first: str, second: str) -> None:
        """Nothing."""
