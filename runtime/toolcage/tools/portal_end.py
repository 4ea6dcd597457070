"""The cage's end of a portal: where a tool's body finds the way out that its grant opened.

The host tells the body a port of the cage's own loopback and what it may know of the resource behind it; address,
credentials and the decision what may pass are the broker's, outside. Standard library only; shipped with the tools that
use it.
"""

from collections.abc import Mapping
from typing import Any

from toolcage.tools.base import ToolFailure


def portal_end(context: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The one portal of that kind that this call has. Raises ToolFailure (`tool.no_portal`) where there is none."""
    found = [told for told in (context.get("portals") or {}).values() if told.get("kind") == kind]
    if len(found) != 1:
        message = "This call has no way out to the resource that it needs."
        raise ToolFailure("tool.no_portal", message, "The operator has to name the resource in the grant.")
    end: Mapping[str, Any] = found[0]
    return end
