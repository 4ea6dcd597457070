"""The floor that no grant can lift: each argument's facts against the rules of its kind.

The rules stand in `screens/`, one module per kind. This stage applies every one and lets nothing past an error.
"""

from __future__ import annotations

from toolcage.screens import screen_facts
from toolcage.types import AuthorizedCall, ScreenedCall, claim_seal, require

_mint = claim_seal(ScreenedCall)


def screen(authorized: AuthorizedCall) -> ScreenedCall:
    """A `ScreenedCall`. Raises Refused with status `blocked`."""
    require(authorized, AuthorizedCall)
    for facts in authorized.valid.facts.values():
        screen_facts(facts)
    return _mint(authorized=authorized)
