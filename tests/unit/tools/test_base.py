"""Declaring a tool: what is read from it, and that its body stays off the host."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import datetime
import enum
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field, create_model

from toolcage.tools import base
from toolcage.tools.base import (
    StandardTool,
    Tool,
    ToolDefinitionError,
    ToolFailure,
    ToolResult,
    body_of,
    declaration_of,
    tool,
)

ran: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    ran.clear()
    yield
    assert ran == []  # no body ever ran on the host


class Shout(Tool):
    name = "shout_text"
    description = "Upper-cases a text."
    parameters = MappingProxyType({"text": "what to shout"})

    def execute(self, text: str) -> str:
        ran.append(text)
        return text.upper()


class Later(Tool):
    name = "wait_there"
    description = "Waits."

    async def _run(self, seconds: float) -> None:
        ran.append(seconds)


@tool
def add_numbers(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    ran.append(a)
    return a + b


@tool
async def add_later(a: int) -> int:
    """Adds later."""
    ran.append(a)
    return a


def properties(made: Tool) -> dict[str, Any]:
    schema = declaration_of(made)["parameters"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    found: dict[str, Any] = schema["properties"]
    return found


# --- the body stays off the host -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda: Shout().execute(text="a"),
        lambda: Shout().execute({"text": "a"}),
        lambda: Shout()._run(text="a"),
        lambda: add_numbers(1, 2),
        lambda: add_numbers.execute(a=1),
        lambda: asyncio.run(Later().execute(seconds=1)),
        lambda: asyncio.run(Later()._run(seconds=1)),
        lambda: asyncio.run(add_later.execute({"a": 1})),
        lambda: asyncio.run(add_later(1)),
        lambda: StandardTool("note_it", "Notes.", ran.append).execute(),
        lambda: Tool.execute(Shout(), text="a") if Tool.execute is Shout.execute else Shout.execute(Shout(), text="a"),
    ],
)  # fmt: skip
def test_a_call_outside_a_session_is_denied_with_a_hint_and_runs_nothing(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_call_through", None)  # as in a program that made no runtime yet
    result = answer()
    assert result.success is False
    assert result["data"] is None
    assert "denied" in result["error"]
    assert "session" in result["error"]


def test_a_call_goes_through_the_line_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, dict[str, Any], bool]] = []

    def line(made: Tool, arguments: Any, is_async: bool) -> Any:
        seen.append((made.name, dict(arguments), is_async))

        async def answer() -> ToolResult:
            return ToolResult(True, "awaited")

        return answer() if is_async else ToolResult(True, "direct")

    monkeypatch.setattr(base, "_call_through", line)
    assert Shout().execute({"text": "a"}).data == "direct"
    assert add_numbers(1, b=3).data == "direct"
    assert asyncio.run(Later().execute(seconds=2)).data == "awaited"
    assert asyncio.run(add_later.execute(a=4)).data == "awaited"
    assert seen == [
        ("shout_text", {"text": "a"}, False),
        ("add_numbers", {"a": 1, "b": 3}, False),
        ("wait_there", {"seconds": 2}, True),
        ("add_later", {"a": 4}, True),
    ]


def test_arguments_named_like_ours_stay_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_call_through", lambda _, arguments, __: arguments)
    names = {"self": 1, "tool": 2, "name": 3, "positional": 4, "arguments": 5}
    assert Shout().execute(**names) == names
    assert Shout().execute(names) == names


def test_two_positional_arguments_are_a_mistake_that_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="as keywords, or as one mapping"):
        Shout().execute("a", "b")


def test_an_inherited_body_is_guarded_and_a_second_one_refused() -> None:
    class Louder(Shout):
        name = "shout_louder"

    assert Louder().execute(text="a").success is False
    with pytest.raises(ToolDefinitionError, match="both execute and _run"):
        type("Both", (Tool,), {"execute": lambda self: 1, "_run": lambda self: 2})


def test_the_body_is_found_bound_and_ready() -> None:
    assert inspect.signature(body_of(Shout())).parameters.keys() == {"text"}
    assert inspect.signature(body_of(add_numbers)).parameters.keys() == {"a", "b"}
    with pytest.raises(ToolDefinitionError, match="has no body"):
        body_of(StandardTool("no_body", "None."))
    with pytest.raises(ToolDefinitionError, match="has no body"):
        declaration_of(type("Empty", (Tool,), {"name": "empty", "description": "d"})())


def test_on_the_host_the_context_is_empty() -> None:
    assert dict(Shout().context) == {}


def test_a_failure_carries_code_message_and_hint() -> None:
    failed = ToolFailure("sql.denied", "no", "ask less")
    assert (failed.code, str(failed), failed.hint) == ("sql.denied", "no", "ask less")


# --- the file that is shipped --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["base", "annotations", "docstring", "describe"])
def test_what_is_shipped_imports_the_standard_library_only(name: str) -> None:
    source = (Path(base.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    allowed = {f"toolcage.tools.{other}" for other in ("base", "annotations", "docstring")}
    for node in ast.parse(source).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        for imported in names:
            assert imported.partition(".")[0] in sys.stdlib_module_names or imported in allowed, imported


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, toolcage.tools.base as b; print(sorted({'pydantic', 'asyncio', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- declarations --------------------------------------------------------------------------------------------------


def test_a_declaration_is_complete_plain_data() -> None:
    assert declaration_of(Shout()) == {
        "name": "shout_text",
        "description": "Upper-cases a text.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": ["string", "number", "boolean"], "description": "what to shout"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "kinds": {},
        "effects": [],
        "resources": {},
        "image": "python",
        "isolation": "container",
        "wall_s": 10.0,
        "idempotent": False,
        "accepts_files": False,
        "file_uses": {},
        "effects_need": {},
    }


def test_name_and_description_may_be_properties() -> None:
    class Named(Tool):
        def __init__(self, suffix: str) -> None:
            self.suffix = suffix

        @property
        def name(self) -> str:  # type: ignore[override]
            return f"named_{self.suffix}"

        @property
        def description(self) -> str:  # type: ignore[override]
            return f"Ends in {self.suffix}."

        def _run(self) -> None: ...

    assert declaration_of(Named("a"))["name"] == "named_a"


@pytest.mark.parametrize("name", ["a", "query_database", "x" * 64, "t2"])
def test_a_name_of_lower_case_words_is_accepted(name: str) -> None:
    assert declaration_of(StandardTool(name, "d", lambda: 1))["name"] == name


@pytest.mark.parametrize("name", ["", "A", "2t", "_t", "a-b", "a b", "x" * 65, "tööl", "t\n", "١a", None, 5])
def test_any_other_name_is_refused(name: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="is no name for a tool"):
        declaration_of(StandardTool(name, "d", lambda: 1))


def test_a_tool_without_any_description_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="no description"):
        declaration_of(StandardTool("t", "", lambda: 1))


@pytest.mark.parametrize("wall_s", [0, -1, float("nan"), float("inf"), True, "10"])
def test_a_time_that_is_none_is_refused(wall_s: Any) -> None:
    made = StandardTool("t", "d", lambda: 1)
    made.wall_s = wall_s
    with pytest.raises(ToolDefinitionError, match="wall_s"):
        declaration_of(made)


def test_parameters_as_fragments_are_required_unless_they_have_a_default_or_say_so() -> None:
    made = tool("t", description="d", parameters={
        "a": {"type": "integer"}, "b": {"type": "integer", "default": 1}, "c": {"type": "string", "required": False},
    })(lambda a, b=1, c=None: 1)  # fmt: skip
    assert declaration_of(made)["parameters"]["required"] == ["a"]
    assert properties(made)["c"] == {"type": "string"}


def test_a_full_schema_is_kept_and_a_parameter_called_type_is_no_schema() -> None:
    full = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 1}}, "title": "X"}
    assert properties(tool("t", description="d", parameters=full)(lambda x=0: x)) == {
        "x": {"type": "integer", "minimum": 1}
    }
    mapping = {"type": "what sort", "properties": "which ones"}
    made = tool("t", description="d", parameters=mapping)(lambda **given: given)
    assert list(properties(made)) == ["type", "properties"]


def test_standard_tool_is_put_together_step_by_step() -> None:
    made = (
        StandardTool("search_products", "Searches.")
        .param("query", str, "what")
        .param("limit", int, "how many", default=10)
        .param("sort", "string", enum=["price", "name"], required=False)
        .param("filters", {"type": "object", "properties": {"min": {"type": "number"}}}, required=False)
        .body(lambda query, limit, sort=None, filters=None: query)
    )
    schema = declaration_of(made)["parameters"]
    assert schema["required"] == ["query"]
    assert schema["properties"]["limit"] == {"type": "integer", "description": "how many", "default": 10}
    assert "default" not in schema["properties"]["sort"]
    assert schema["properties"]["filters"]["properties"] == {"min": {"type": "number"}}
    with pytest.raises(ToolDefinitionError, match="declared twice"):
        made.param("query", str)
    with pytest.raises(ToolDefinitionError, match="is no type"):
        made.param("other", "text")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Item(BaseModel):
    title: str
    amount: int = Field(1, ge=1, le=100, description="how many")


class Basket(BaseModel):
    items: list[Item]
    parent: Basket | None = None


@pytest.mark.parametrize(
    ("hint", "fragment"),
    [
        (str, {"type": "string"}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"type": ["integer", "null"]}),
        (list[str] | str, {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False,
                           "minItems": 2}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (datetime.date, {"type": "string", "format": "date"}),
        (Path, {"type": "string"}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Any, {}),
        (Point, {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                 "required": ["x"], "additionalProperties": False}),
    ],
)  # fmt: skip
def test_annotations_have_a_schema(hint: Any, fragment: dict[str, Any]) -> None:
    def body(value: Any) -> None: ...

    body.__annotations__["value"] = hint
    assert properties(tool("t", description="d")(body))["value"] == fragment


@pytest.mark.parametrize("hint", [object(), dict[int, str], complex, type])
def test_an_annotation_without_a_json_form_is_refused(hint: Any) -> None:
    def body(value: Any) -> None: ...

    body.__annotations__["value"] = hint
    with pytest.raises(ToolDefinitionError, match=r"parameter 'value'"):
        declaration_of(tool("t", description="d")(body))


def test_models_keep_their_bounds_and_bring_their_definitions_to_the_top() -> None:
    def body(basket: Basket, more: list[Item] | None = None) -> None: ...

    schema = declaration_of(tool("t", description="d")(body))["parameters"]
    assert schema["$defs"]["Item"]["properties"]["amount"] == {
        "type": "integer", "minimum": 1, "maximum": 100, "default": 1, "description": "how many",
    }  # fmt: skip
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"basket": {"items": [{"title": "a"}], "parent": {"items": []}}})
    assert not validator.is_valid({"basket": {"items": [{"title": "a", "amount": 101}]}})


def test_args_schema_may_be_a_model_that_was_made_at_run_time() -> None:
    model = create_model("Query", query=(str, ...), limit=(int, 10))
    made = tool("t", description="d", args_schema=model)(lambda query, limit: query)
    assert properties(made) == {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}}


def test_defaults_come_from_the_signature_and_none_means_absent() -> None:
    def body(a: int = 5, b: Colour = Colour.RED, c: str | None = None, d: Any = object) -> None: ...

    found = properties(tool("t", description="d")(body))
    assert [found[name].get("default", "-") for name in "abcd"] == [5, "red", "-", "-"]


HEAD = "Adds.\n\nWhen you must.\n\n"


@pytest.mark.parametrize(
    "docstring",
    [
        HEAD + "Args:\n    a: first\n        and more\n    b (int): second: last\n\nReturns:\n    c: no",
        HEAD + "Parameters\n----------\na : int\n    first\n    and more\nb\n    second: last\n\nReturns\n---",
        HEAD + ":param a: first\n    and more\n:param int b: second: last\n:returns: c",
    ],
    ids=["google", "numpy", "rest"],
)
def test_docstrings_describe_the_tool_and_its_parameters(docstring: str) -> None:
    def body(a: int, b: int) -> None: ...

    body.__doc__ = docstring
    made = tool("t")(body)
    assert declaration_of(made)["description"] == "Adds.\n\nWhen you must."
    assert [fragment["description"] for fragment in properties(made).values()] == ["first and more", "second: last"]


@pytest.mark.parametrize(
    ("body", "parameters", "says"),
    [
        (lambda a: a, {"b": "no"}, "its body does not take"),
        (lambda a, b: a, {"a": "yes"}, "its body needs"),
        (lambda a, b: a, {"a": "yes", "b": {"type": "string", "required": False}}, "not required"),
        (lambda **given: given, None, "cannot be passed by name"),
        (lambda a, /: a, None, "cannot be passed by name"),
        (lambda a: a, {"type": "object", "properties": {"a": {}}, "additionalProperties": True}, "without a name"),
        (lambda a: a, {"type": "object", "properties": {}, "patternProperties": {"a": {}}}, "without a name"),
        (lambda a: a, {"type": "object", "properties": {}, "required": ["a"]}, "does not have"),
        (lambda a: a, {"a": 5}, "neither a description nor"),
        (lambda a: a, {"a": {"default": {1, 2}}}, "not made of JSON"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused_when_it_is_made(body: Any, parameters: Any, says: str) -> None:
    with pytest.raises(ToolDefinitionError, match=says):
        declaration_of(tool("t", description="d", parameters=parameters)(body))
