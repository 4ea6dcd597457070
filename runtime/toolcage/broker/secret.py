"""Reads a secret at the moment when a login needs it."""

from __future__ import annotations

from toolcage.broker.stream import Denied
from toolcage.errors import ResourceError
from toolcage.secret_reference import SecretRef


def read_secret(reference: SecretRef) -> str:
    """The value of `reference`, now. Raises Denied (`egress.secret`), which never holds it."""
    try:
        return reference.read()
    except ResourceError as cause:
        raise Denied("egress.secret", "the secret of this resource cannot be read", str(cause)) from None
