"""The JSON Schema of role files, for editors: completion and red underlines while a file is written.

Generated from the same models that the loader uses. It is a help, not the check: what depends on several keys or on the
tools' own schemas is decided by `load` alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from toolcage.policy.file_format import FACETS, RoleFile, SqlFacetFile, entry_words
from toolcage.types import ToolDeclaration, thaw

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def role_schema(declarations: Mapping[str, ToolDeclaration] | None = None) -> dict[str, Any]:
    """The schema of a role file. With `declarations` it knows the tools' names and arguments too."""
    schema = RoleFile.model_json_schema()
    _drop_noise(schema)
    grant = schema["$defs"]["GrantFile"]
    grant["anyOf"] = [{"required": ["allow"]}, {"required": ["ask"]}]
    schema["$defs"]["FlowFile"]["oneOf"] = [{"required": ["ask"]}, {"required": ["deny"]}]
    if declarations is not None:
        _name_tools(schema, declarations)
    return {"$schema": SCHEMA_DIALECT, **schema}


def _drop_noise(node: Any) -> None:
    """Removes generated titles and defaults: an absent key means the tool's declaration, never null."""
    if isinstance(node, list):
        for item in node:
            _drop_noise(item)
    elif isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        node.pop("default", None)
        for item in node.values():
            _drop_noise(item)


def _name_tools(schema: dict[str, Any], declarations: Mapping[str, ToolDeclaration]) -> None:
    grant = schema["$defs"]["GrantFile"]
    tools = {name: _grant_of(grant, declaration) for name, declaration in sorted(declarations.items())}
    schema["properties"]["tools"] = {"type": "object", "properties": tools, "additionalProperties": False}
    schema["$defs"]["DenyFile"]["properties"]["tool"] = {
        "anyOf": [{"enum": sorted(declarations)}, {"type": "string", "pattern": "[*]"}]
    }


def _grant_of(grant: dict[str, Any], declaration: ToolDeclaration) -> dict[str, Any]:
    made = copy.deepcopy(grant)
    made["description"] = declaration.description
    arguments = _arguments_of(declaration)
    words_of_entry = entry_words()
    _drop_noise(words_of_entry)
    words_of_entry["arguments"] |= {"properties": arguments, "additionalProperties": False}
    entry = {"type": "object", "properties": arguments | words_of_entry, "additionalProperties": False}
    for words in ("allow", "ask", "deny"):
        made["properties"][words]["items"] = entry
    names = made["properties"]["resources"].pop("additionalProperties")
    made["properties"]["resources"]["properties"] = dict.fromkeys(declaration.resources, names)
    made["properties"]["resources"]["additionalProperties"] = False
    return made


def _arguments_of(declaration: ToolDeclaration) -> dict[str, Any]:
    """Each argument with what may be said of it: a fragment, a host fact, and the facet of its kind, stated or not."""
    bounds = SqlFacetFile.model_json_schema()
    _drop_noise(bounds)
    fragment = {"$ref": SCHEMA_DIALECT}
    fact = _only("fact", {"type": "string"})
    facets = {kind: _only(word, model.model_json_schema()) for word, (kind, model) in FACETS.items()}
    _drop_noise(facets)
    made = {}
    for argument in thaw(declaration.parameters).get("properties", {}):
        kind = declaration.kinds.get(argument, "text")
        fitting = list(facets.values()) if kind == "text" else [facets[kind]] if kind in facets else []
        made[argument] = {"anyOf": [*([bounds] if kind == "sql" else []), *fitting, fact, fragment]}
    return made


def _only(word: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {word: schema}, "required": [word], "additionalProperties": False}
