"""What the host is told about the built-in tools, and what a cage needs to run them."""

import ast
import subprocess
import sys

import pytest

from toolcage import tools
from toolcage.tools import ImageGenerationTool, WebSearchTool, WikipediaTool
from toolcage.tools.analyze_file import AnalyzeFile
from toolcage.tools.base import Tool, declaration_of
from toolcage.tools.calculate_expression import CalculateExpression
from toolcage.tools.call_api import CallApi
from toolcage.tools.change_database import ChangeDatabase
from toolcage.tools.create_event import CreateEvent
from toolcage.tools.delete_event import DeleteEvent
from toolcage.tools.describe_database import DescribeDatabase
from toolcage.tools.execute_python import ExecutePython
from toolcage.tools.generate_image import GenerateImage
from toolcage.tools.list_events import ListEvents
from toolcage.tools.list_files import ListFiles
from toolcage.tools.query_database import QueryDatabase
from toolcage.tools.read_email import ReadEmail
from toolcage.tools.read_file import ReadFile
from toolcage.tools.registry import ALIAS_ARGUMENTS, ALIASES, builtin_tools
from toolcage.tools.search_web import SearchWeb
from toolcage.tools.search_wikipedia import SearchWikipedia
from toolcage.tools.send_email import SendEmail
from toolcage.tools.shipping import ship
from toolcage.tools.update_event import UpdateEvent
from toolcage.tools.write_file import WriteFile

CALENDAR = [ListEvents, CreateEvent, UpdateEvent, DeleteEvent]
WEB = [SearchWeb, SearchWikipedia, CallApi, GenerateImage]
FILES = [ReadFile, WriteFile, ListFiles, AnalyzeFile]
DATA = [CalculateExpression, ChangeDatabase, DescribeDatabase, ExecutePython, QueryDatabase]
TOOLS = [*DATA, SendEmail, ReadEmail, *CALENDAR, *WEB, *FILES]
WEB_WHEELS = {"bs4", "dateutil", "icalendar", "requests", "tavily", "wikipedia"}
IN_IMAGE = {"RestrictedPython", "openpyxl", "polars", "pydantic", *WEB_WHEELS}
STANDARD = sys.stdlib_module_names | {"annotationlib"}  # the latter from Python 3.14 on


@pytest.mark.parametrize("tool", TOOLS)
def test_everything_a_body_imports_is_shipped_or_in_the_standard_library(tool: type[Tool]) -> None:
    modules = ship(tool()).modules
    for source in modules.values():
        for node in ast.walk(ast.parse(source)):
            names = []
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                named = [f"{node.module}.{name.name}" for name in node.names]
                names = named if node.module == "toolcage.tools" else [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                assert name in modules or top in STANDARD or top in IN_IMAGE


@pytest.mark.parametrize("tool", TOOLS)
def test_descriptions_say_what_when_when_not_input_and_output(tool: type[Tool]) -> None:
    declared = declaration_of(tool())
    for part in ("Use it", "Do not use it", "Input:", "Output:"):
        assert part in declared["description"]
    assert declared["parameters"]["additionalProperties"] is False
    assert len(declared["parameters"]["properties"]) <= 5
    assert all("description" in schema for schema in declared["parameters"]["properties"].values())


def test_isolation_effects_and_kinds_are_the_closed_ones() -> None:
    declared = {tool.name: declaration_of(tool()) for tool in TOOLS}
    assert declared["execute_python"]["isolation"] == "container"
    assert declared["query_database"]["effects"] == ["reads_private"]
    assert declared["describe_database"]["effects"] == ["reads_private"]
    assert declared["change_database"]["effects"] == ["reads_private", "writes"]
    assert declared["change_database"]["idempotent"] is False
    assert declared["query_database"]["kinds"] == {"sql": "sql"}
    assert declared["query_database"]["resources"] == {"database": "database"}
    assert declared["execute_python"]["kinds"] == {"code": "python"}
    assert declared["send_email"]["effects"] == ["sends"]
    assert declared["send_email"]["kinds"] == {"to": "address", "cc": "address", "html": "html"}
    assert declared["read_email"]["effects"] == ["reads_private", "reads_untrusted"]
    assert declared["list_events"]["effects"] == ["reads_private", "reads_untrusted"]
    for tool in (CreateEvent, UpdateEvent, DeleteEvent):
        assert declared[tool.name]["effects"] == ["sends", "writes"]
        assert declared[tool.name]["kinds"] == {"attendees": "address"}


@pytest.mark.parametrize("tool", WEB)
def test_what_reads_the_web_says_so_and_works_with_one_endpoint(tool: type[Tool]) -> None:
    declared = declaration_of(tool())
    assert "reads_untrusted" in declared["effects"]
    assert list(declared["resources"].values()) == ["endpoint"]
    assert declared["image"] == "web"


def test_effects_beyond_reading_are_declared() -> None:
    assert CallApi.effects >= {"sends", "writes"}
    assert "spends" in GenerateImage.effects


def test_the_tutorials_classes_are_the_same_tools_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "set")
    for made, kind in ((WebSearchTool(), SearchWeb), (WikipediaTool(), SearchWikipedia)):
        assert isinstance(made, kind)
        assert ALIASES[made.name] == kind.name
    assert ImageGenerationTool().name == "generate_image"
    properties = declaration_of(WebSearchTool())["parameters"]["properties"]
    assert properties["num_results"]["default"] == ALIAS_ARGUMENTS["web_search"]["num_results"] == 3


def test_every_class_name_of_tutorials_is_a_built_in_tool_by_its_name_or_its_alias(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "set")
    assert tools.__all__ == [
        "CalculatorTool", "CalendarTool", "CodeExecutionTool", "DatabaseTool", "EmailTool", "FileAnalysisTool",
        "ImageGenerationTool", "WebSearchTool", "WikipediaTool",
    ]  # fmt: skip
    called = {name: getattr(tools, name)().name for name in tools.__all__}
    assert {ALIASES.get(name, name) for name in called.values()} == {
        "calculate_expression", "list_events", "execute_python", "query_database", "send_email", "analyze_file",
        "generate_image", "search_web", "search_wikipedia",
    }  # fmt: skip
    for name, made in called.items():
        built_in = builtin_tools()[ALIASES.get(made, made)].declaration
        declared = declaration_of(getattr(tools, name)())
        assert declared["effects"] == sorted(built_in.effects), name
        assert declared["parameters"]["properties"].keys() == built_in.parameters["properties"].keys(), name  # type: ignore[index,call-overload,union-attr]


def test_no_other_name_is_found_among_the_tools_and_none_is_loaded_ahead() -> None:
    with pytest.raises(AttributeError):
        tools.ShellTool  # noqa: B018
    program = "import sys, toolcage.tools; assert 'toolcage.tools.tutorial_classes' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_web_search_without_a_key_in_the_environment_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        monkeypatch.delenv("TAVILY_API_KEY", raising=False)
        if value is not None:
            monkeypatch.setenv("TAVILY_API_KEY", value)
        with pytest.raises(ValueError, match="TAVILY_API_KEY"):
            WebSearchTool()
