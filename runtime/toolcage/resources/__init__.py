"""resources.yaml: what exists outside that a role may be granted by name.

The operator's file, shared by all roles; a role only names what stands here. `file_format` is the file's shape,
`model` what the rest of toolcage works with, `load` the way from one to the other. Nothing here opens a connection or
reads a secret: the broker does, late. Neither host paths nor places of secrets are for a model: errors here are for
the operator.
"""

from toolcage.resources.load import load_resources
from toolcage.resources.model import (
    Access,
    Cache,
    Calendar,
    Database,
    Endpoint,
    Idempotency,
    KeyPlacement,
    Mailbox,
    MailServer,
    McpServer,
    Method,
    PostgresDatabase,
    Rate,
    Resources,
    Server,
    SqliteDatabase,
    Workspace,
)
from toolcage.secret_reference import SecretRef

__all__ = [
    "Access",
    "Cache",
    "Calendar",
    "Database",
    "Endpoint",
    "Idempotency",
    "KeyPlacement",
    "MailServer",
    "Mailbox",
    "McpServer",
    "Method",
    "PostgresDatabase",
    "Rate",
    "Resources",
    "SecretRef",
    "Server",
    "SqliteDatabase",
    "Workspace",
    "load_resources",
]
