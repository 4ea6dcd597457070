"""An OpenAPI document as declarations of tools, one per operation. Host side; the document is a stranger's data.

`document` reads it strictly, `schemas` turns its schemas into JSON Schema, `naming` finds names, `operations` puts the
declarations together, `hints` says what the operator still has to write. Nothing of it is ever executed or fetched.
"""

from toolcage.tools.openapi.document import OpenApiDocument, read_openapi
from toolcage.tools.openapi.hints import endpoint_hint, grant_hint
from toolcage.tools.openapi.operations import Declared, declare_operations

__all__ = ["Declared", "OpenApiDocument", "declare_operations", "endpoint_hint", "grant_hint", "read_openapi"]
