"""What a role is granted and the resources file does not give: told when a runtime starts, and by `policy check`.

Compares names and access alone. That a file is there is seen when it is used, that a server answers when it is
connected (`toolcage doctor --resources`).
"""

from __future__ import annotations

from toolcage.line.changing import unchangeable_grants
from toolcage.line.workspace import read_only_grants
from toolcage.policy.model import Role
from toolcage.resources import Resources


def unserved_grants(role: Role, resources: Resources) -> list[str]:
    """A line for each grant that names what is not configured, what cannot be written, or what no version starts."""
    found = [*read_only_grants(role, resources), *unchangeable_grants(role, resources)]
    for kind, name in sorted(role.resource_names()):
        known = resources.names(kind)
        if name not in known:
            found.append(
                f"{role.source}: role {role.name} names the {kind} {name}, which the resources file does not have"
                f" (it has: {', '.join(sorted(known)) or 'none'}); add it there and pass that file as `resources`"
            )
        elif kind == "mcp_server":
            found.append(
                f"{role.source}: role {role.name} names the MCP server {name}, and this version starts none; take it"
                " out of the grant"
            )
    return found
