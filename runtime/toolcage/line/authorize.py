"""May this role do this, with these facts, now? The policy's decision, turned into terms that later stages carry out.

`deny` beats `ask` beats `allow`; nothing matched is deny; an error while deciding is deny (`policy.decide` promises all
three). It decides nothing itself and looks at no text.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolcage.errors import Refused
from toolcage.policy.decide import decide
from toolcage.policy.model import NOTHING_KNOWN, Grant, Role
from toolcage.types import AuthorizedCall, Decision, Refusal, SessionFacts, ValidCall, claim_seal, require

_mint = claim_seal(AuthorizedCall)


def authorize(valid: ValidCall, *, role: Role, known: SessionFacts = NOTHING_KNOWN) -> AuthorizedCall:
    """An `AuthorizedCall` whose decision is `allow` or `ask`. `known` is what the session knows; without it the session
    has heard and used nothing. Raises Refused with status `denied`, or `limit_exceeded` for a limit that is used up."""
    require(valid, ValidCall)
    declaration = valid.declaration
    decision = decide(role, declaration, valid.arguments, valid.facts, known)
    grant = role.grants.get(declaration.name)
    if decision.effect == "deny" or grant is None:
        raise Refused(_refusal(decision))
    return _mint(
        valid=valid,
        role=role.name,
        policy_digest=role.digest,
        decision=decision,
        resources=_named_resources(valid, grant),
        egress=grant.egress,
        sandbox=grant.sandbox,
        output=grant.output,
    )


def _refusal(decision: Decision) -> Refusal:
    return Refusal(
        status=decision.status,
        code=decision.code,
        message=decision.message,
        hint=decision.hint,
        operator=decision.rule,
        retryable=decision.retryable,
    )


def _named_resources(valid: ValidCall, grant: Grant) -> Mapping[str, str]:
    """argument → the resource that it names, for the arguments that name one; what the tool always works with from its
    grant."""
    fixed = valid.declaration.fixed_resources
    named = {
        name: next(iter(grant.resources.get(name, ())), None) if name in fixed else valid.arguments.get(name)
        for name in valid.declaration.resources
    }
    return MappingProxyType({name: value for name, value in named.items() if isinstance(value, str)})
