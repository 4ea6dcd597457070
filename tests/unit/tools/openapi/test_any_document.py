"""Whatever stands under OpenAPI's own keys: the tools that come out pass every check, or an error says why not."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcage.errors import DeclarationError
from toolcage.tools.admission import admit
from toolcage.tools.base import declaration_of
from toolcage.tools.declared_api import read_file, write_file
from toolcage.tools.openapi import declare_operations, endpoint_hint, grant_hint
from toolcage.tools.openapi.document import parse_openapi

WORDS = [
    "type", "properties", "items", "required", "enum", "const", "default", "pattern", "format", "nullable", "allOf",
    "anyOf", "oneOf", "additionalProperties", "minimum", "maximum", "exclusiveMinimum", "maxLength", "minItems",
    "uniqueItems", "multipleOf", "description", "title", "readOnly", "$ref", "name", "in", "schema", "content",
    "application/json", "explode", "style", "parameters", "requestBody", "operationId", "summary", "tags",
]  # fmt: skip
VALUES = [
    "object", "string", "integer", "number", "array", "null", "boolean", "query", "path", "header", "body", "id",
    "form", "simple", "date", "uuid", "^a+$", "(a+)+$", "(?=a)", "#/components/schemas/s", "#/paths", "x", "",
    "\u202e", "\n",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(VALUES), st.text(max_size=5),
)  # fmt: skip
KEYS = st.one_of(st.sampled_from(WORDS), st.sampled_from(VALUES), st.text(max_size=4))
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=25,
)  # fmt: skip
PARAMETER = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["id", "q", "r", "body", "X-A", "a b", ""]),
        "in": st.sampled_from(["query", "path", "header"]),
    },
    optional=dict.fromkeys(("schema", "required", "style", "explode", "description"), ANYTHING),
)
OPERATION = st.fixed_dictionaries(
    {},
    optional={
        "operationId": SCALARS, "summary": SCALARS, "tags": ANYTHING, "parameters": st.lists(PARAMETER, max_size=8),
        "requestBody": st.one_of(
            ANYTHING, ANYTHING.map(lambda made: {"content": {"application/json": {"schema": made}}})
        ),
    },
)  # fmt: skip
PATHS = st.dictionaries(
    st.sampled_from(["/a", "/a/{id}", "/{id}/{q}", "/a?b", "a", "/{id", "/a//b"]),
    st.dictionaries(st.sampled_from(["get", "post", "delete", "x-y", "parameters"]), OPERATION, max_size=3), max_size=3,
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(paths=PATHS, shared=ANYTHING, servers=ANYTHING, schemes=ANYTHING)
def test_what_comes_out_of_any_document_passes_every_check(
    paths: Any, shared: Any, servers: Any, schemes: Any
) -> None:
    components = {"schemas": {"s": shared}, "securitySchemes": schemes}
    whole = {"openapi": "3.1.0", "paths": paths, "components": components, "servers": servers}
    specs: list[Any] = []
    try:
        document = parse_openapi(json.dumps(whole).encode(), "api.json")
        made, _ = declare_operations(document, suspect=lambda text: False)
        specs = [item.spec for item in made]
        hints = endpoint_hint(document, "api", specs)
    except DeclarationError as error:
        said = str(error)
    else:
        said = hints.replace("\n", "")
    assert said.isprintable()
    for tool in read_file(write_file(specs), "api.json") if specs else ():
        declared = admit(declaration_of(tool))
        assert len(declared.parameters["properties"]) <= 5  # type: ignore[arg-type]
        assert f"  {declared.name}:" in grant_hint("api", specs)
