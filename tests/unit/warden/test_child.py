"""The program of one call, run for real: its own process, plain pipes, loaded from text as a cage loads it."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location("one_call", Path(__file__).parents[2] / "fixtures" / "one_call.py")
assert _spec is not None
assert _spec.loader is not None
one_call = importlib.util.module_from_spec(_spec)
sys.modules["one_call"] = one_call  # dataclasses look their module up
_spec.loader.exec_module(one_call)
call, describe = one_call.call, one_call.describe


def returned(expression: str, before: str = "") -> Any:
    return call(f"{textwrap.dedent(before)}\ndef body():\n    return {expression}\n").data


# --- calling -------------------------------------------------------------------------------------------------------


def test_a_function_is_called_with_its_arguments_and_its_value_comes_back() -> None:
    ended = call("def body(a, b):\n    print('adding')\n    return a + b\n", {"a": 2, "b": 40})
    assert (ended.code, ended.answer, ended.stdout, ended.stderr) == (0, {"success": True, "data": 42}, "adding\n", "")


@pytest.mark.parametrize("preloaded", [(), tuple(one_call.TOOL_MODULES)], ids=["nothing", "our modules"])
def test_what_was_loaded_before_the_fork_is_used_as_it_is(preloaded: tuple[str, ...]) -> None:
    source = """
        import toolcage.tools.annotations, toolcage.tools.base
        def body():
            same = toolcage.tools.base.Tool is toolcage.Tool is toolcage.tools.annotations.Tool
            return [same, hasattr(toolcage.tools.base, "LOADED_BEFORE")]
    """
    assert call(source, preloaded=preloaded).data == [True, bool(preloaded)]


def test_a_module_that_was_loaded_from_other_text_is_loaded_again() -> None:
    others = {"toolcage.tools.base": one_call.TOOL_MODULES["toolcage.tools.base"] + "NEWER = 1\n"}
    source = """
        import toolcage.tools.annotations, toolcage.tools.base
        def body():
            same = toolcage.tools.base.Tool is toolcage.Tool is toolcage.tools.annotations.Tool
            return [same, toolcage.tools.base.NEWER]
    """
    assert call(source, others=others).data == [True, 1]


def test_modules_that_were_loaded_before_need_not_come_again() -> None:
    modules = {"their_tools": "from toolcage import tool\n@tool\ndef body():\n    'D.'\n    return 7\n"}
    tool = {"module": "their_tools", "attribute": "body", "how": "attribute", "init": None, "modules": modules}
    assert one_call.start({"action": "call", "tool": tool, "arguments": {}, "context": {}}).data == 7


def test_a_class_is_built_from_its_recorded_arguments() -> None:
    source = """
        from toolcage import Tool
        class Scale(Tool):
            name, description, parameters = "scale_number", "Scales.", {"x": {"type": "number"}}
            def __init__(self, by, *, plus=0): self.by, self.plus = by, plus
            def execute(self, x): return x * self.by + self.plus
    """
    ended = call(source, {"x": 4}, attribute="Scale", how="class", init={"args": [10], "kwargs": {"plus": 2}})
    assert ended.data == 42


def test_an_instance_in_a_nested_place_is_found() -> None:
    source = """
        from toolcage import StandardTool
        class Kit:
            count = StandardTool("count_words", "Counts.", lambda text: len(text.split())).param("text", "string")
    """
    assert call(source, {"text": "a b c"}, attribute="Kit.count", how="attribute").data == 3


def test_a_decorated_function_gets_what_its_annotations_promise() -> None:
    source = """
        from __future__ import annotations
        import dataclasses, datetime, enum
        from toolcage import tool
        class Unit(enum.Enum):
            metre = "m"
        @dataclasses.dataclass
        class Point:
            x: int
        @tool
        def body(unit: Unit, day: datetime.date, points: list[Point], tags: set[str], maybe: Point | None = None):
            "Checks."
            return [unit is Unit.metre, day.year, [p.x for p in points], sorted(tags), maybe.x]
    """
    arguments = {"unit": "m", "day": "2024-02-29", "points": [{"x": 1}], "tags": ["b", "a"], "maybe": {"x": 5}}
    assert call(source, arguments, how="attribute").data == [True, 2024, [1], ["a", "b"], 5]


def test_a_model_of_arguments_is_validated_where_its_code_may_run() -> None:
    source = """
        from pydantic import BaseModel, field_validator
        from toolcage import tool
        class Order(BaseModel):
            item: str
            amount: int = 1
            @field_validator("item")
            def known(cls, value):
                if value != "tea": raise ValueError("only tea")
                return value
        @tool("order_item", args_schema=Order)
        def body(item, amount):
            "Orders."
            return [item, amount]
    """
    assert call(source, {"item": "tea"}, how="attribute").data == ["tea", 1]
    refused = call(source, {"item": "gin"}, how="attribute")
    assert (refused.code, refused.answer["code"]) == (1, "tool.arguments")
    assert "only tea" in refused.answer["error"]


def test_an_async_body_is_awaited() -> None:
    source = "import asyncio\nasync def body(x):\n    await asyncio.sleep(0)\n    return x\n"
    assert call(source, {"x": "done"}).data == "done"


def test_arguments_named_like_ours_do_no_harm() -> None:
    arguments = {"self": 1, "tool": 2, "arguments": 3, "name": 4, "payload": 5}
    assert call("def body(**given): return given\n", arguments).data == arguments


def test_the_context_reaches_the_body_and_is_read_only() -> None:
    source = """
        from toolcage import Tool
        class T(Tool):
            name, description = "t", "d"
            def execute(self):
                try:
                    self.context["rows"] = 9
                except TypeError:
                    return self.context["rows"]
    """
    assert call(source, attribute="T", how="class", context={"rows": 5}).data == 5


def test_super_and_other_tools_run_their_bodies_in_the_cage() -> None:
    source = """
        from toolcage import Tool, tool
        @tool
        def double(x: int) -> int:
            "Doubles."
            return 2 * x
        class A(Tool):
            name, description = "a", "d"
            def execute(self, x): return double(x) + double.execute({"x": 1})
        class B(A):
            def execute(self, x): return super().execute(x) + 1
    """
    assert call(source, {"x": 5}, attribute="B", how="class").data == 13


@pytest.mark.parametrize(
    ("returning", "success", "error"),
    [("ToolResult(True, [1])", True, None), ("ToolResult(False, [1], 'no tea')", False, "no tea")],
)
def test_of_a_tool_result_only_the_three_fields_leave(returning: str, success: bool, error: str | None) -> None:
    ended = call(f"from toolcage import ToolResult\ndef body():\n    return {returning}\n")
    assert ended.answer["success"] is success
    if success:
        assert ended.answer == {"success": True, "data": [1]}
    else:
        assert ended.answer == {"success": False, "error": error, "code": None, "hint": None}
        assert ended.code == 1


def test_a_tool_failure_carries_its_code_and_hint_and_no_traceback() -> None:
    ended = call("from toolcage import ToolFailure\ndef body(): raise ToolFailure('sql.denied', 'no', 'ask less')\n")
    assert ended.answer == {"success": False, "error": "no", "code": "sql.denied", "hint": "ask less"}
    assert (ended.code, ended.stderr) == (1, "")


# --- importing -----------------------------------------------------------------------------------------------------


def test_a_tool_is_imported_under_its_own_name_and_never_as_main() -> None:
    ended = call("if __name__ == '__main__': raise SystemExit(9)\ndef body(): return __name__\n")
    assert ended.data == "their_tools"


def test_a_package_is_put_together_with_relative_imports() -> None:
    others = {"shop.prices": "TEA = 3\n", "shop.deep.more": "from ..prices import TEA\nTWICE = 2 * TEA\n"}
    source = "from . import prices\nfrom .deep.more import TWICE\ndef body(): return [prices.TEA, TWICE, __package__]\n"
    assert call(source, module="shop.tools", others=others).data == [3, 6, "shop"]


def test_a_shipped_module_stands_before_an_installed_one_but_an_installed_package_keeps_its_rest() -> None:
    assert call("import bleach\ndef body(): return bleach.HERE\n", others={"bleach": "HERE = 1\n"}).data == 1
    source = "import json.extra, json.decoder\ndef body(): return json.extra.X + len(json.dumps([]))\n"
    assert call(source, others={"json.extra": "X = 1\n"}).data == 3


def test_a_tool_finds_the_declaration_names_and_not_the_warden() -> None:
    source = """
        import toolcage
        def body():
            import importlib, inspect
            gone = []
            for name in ("toolcage.warden.child", "toolcage.warden", "toolcage.runtime", "toolcage.cage.wire"):
                try:
                    importlib.import_module(name)
                except ImportError:
                    gone.append(name)
            import toolcage.tools.base
            return [sorted(toolcage.__all__), len(gone), toolcage.tools.base.Tool is toolcage.Tool]
    """
    assert call(source).data == [["StandardTool", "Tool", "ToolFailure", "ToolResult", "tool"], 4, True]


def test_source_of_a_shipped_module_can_be_inspected() -> None:
    assert "fourty" in call("import inspect\ndef body(): return inspect.getsource(body)  # fourty\n").data


@pytest.mark.parametrize("how", ["attribute", "class", "function"])
def test_what_is_not_the_tool_that_the_host_means_is_a_failure(how: str) -> None:
    ended = call("body = 5\n", how=how)
    assert (ended.code, ended.answer["code"]) == (1, "tool.not_found")


def test_a_module_that_raises_at_import_is_a_failure_that_says_so() -> None:
    ended = call("raise RuntimeError('at import')\n")
    assert (ended.code, ended.answer["code"]) == (1, "tool.import_failed")
    assert "RuntimeError: at import" in ended.answer["error"]


def test_a_module_that_is_no_python_is_a_failure_that_shows_the_line() -> None:
    ended = call("def body(:\n")
    assert ended.answer["code"] == "tool.import_failed"
    assert "def body(:" in ended.stderr


# --- failing -------------------------------------------------------------------------------------------------------


def test_an_uncaught_exception_is_named_and_its_traceback_shows_the_tool_only() -> None:
    ended = call("def body():\n    return inner()\ndef inner():\n    raise KeyError('tea')\n")
    assert ended.answer == {"success": False, "error": "KeyError: 'tea'", "code": "tool.exception", "hint": None}
    assert ended.code == 1
    assert "return inner()" in ended.stderr
    assert "raise KeyError('tea')" in ended.stderr
    assert "child" not in ended.stderr
    assert "warden" not in ended.stderr


def test_an_exception_that_cannot_print_itself_is_still_an_answer() -> None:
    ended = call("class Odd(Exception):\n    def __str__(self): raise ValueError\ndef body(): raise Odd\n")
    assert (ended.code, ended.answer["error"]) == (1, "Odd")


def test_a_huge_message_is_cut() -> None:
    ended = call("def body(): raise ValueError('x' * 5_000_000)\n")
    assert len(ended.answer["error"]) == 2_000
    assert len(ended.stderr) <= 64 * 1024


@pytest.mark.parametrize(
    ("leaving", "code", "said"),
    [("sys.exit()", 0, ""), ("sys.exit(7)", 7, ""), ("sys.exit('bye')", 1, "bye\n"), ("raise SystemExit(256)", 0, "")],
)
def test_a_tool_that_ends_its_program_is_taken_at_its_word(leaving: str, code: int, said: str) -> None:
    ended = call(f"import sys\ndef body():\n    print('before')\n    {leaving}\n")
    assert (ended.code, ended.answer, ended.stdout, ended.stderr) == (code, None, "before\n", said)


def test_a_thread_left_running_does_not_hold_the_answer() -> None:
    source = (
        "import threading\ndef body():\n    threading.Thread(target=threading.Event().wait).start()\n    return 1\n"
    )
    assert call(source).data == 1


def test_what_was_printed_before_a_kill_has_left_already() -> None:
    ended = call("import os, signal\ndef body():\n    print('no newline', end='')\n    os.kill(os.getpid(), 9)\n")
    assert (ended.code, ended.answer, ended.stdout) == (-9, None, "no newline")


def test_output_that_is_no_text_and_closed_streams_do_not_cost_the_answer() -> None:
    ended = call(
        "import sys\ndef body():\n    print('\\ud800')\n    sys.stdout.close()\n    sys.stderr = None\n    return 1\n"
    )
    assert (ended.data, ended.stdout) == (1, "\\ud800\n")


# --- the document --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[None, True, 1, 1.5, 'é\\n\"', {'a': ()}]", [None, True, 1, 1.5, 'é\n"', {"a": []}]),
        ("[float('nan'), float('inf'), -0.0]", [None, None, -0.0]),
        ("[2**53, 2**53 + 1, -2**64]", [2**53, "9007199254740993", "-18446744073709551616"]),
        ("'a\\ud800b'", "a�b"),
        ("{'\\ud800': 1, '\\udfff': 2}", {"�": 1, "� (2)": 2}),
        ("{1: 'a', '1': 'b', None: 'c', True and (1, 2): 'd'}", {"1": "a", "1 (2)": "b", "null": "c", "(1, 2)": "d"}),
        ("{3, 1, 2}", [1, 2, 3]),
        ("(n * n for n in range(4))", [0, 1, 4, 9]),
        ("range(3)", [0, 1, 2]),
        ("b'text'", "text"),
        ("b'\\xff\\x00'", {"base64": "/wA="}),
        ("datetime.datetime(2024, 2, 29, 1, 2, 3)", "2024-02-29T01:02:03"),
        ("decimal.Decimal('1.10')", "1.10"),
        ("pathlib.PurePosixPath('/a/b')", "/a/b"),
        ("Point(1, {2})", {"x": 1, "y": [2]}),
        ("Pair(1, [2])", {"left": 1, "right": [2]}),
        ("[Colour.red, Level.low]", ["r", 1]),
        ("Model(x=3)", {"x": 3}),
        ("ValueError('no')", "ValueError: no"),
        ("Plain()", "<plain>"),
        ("Broken()", "<Broken>"),
        ("Text('t')", "t"),
        ("[bool, 1j]", ["<class 'bool'>", "1j"]),
    ],
)  # fmt: skip
def test_values_become_the_json_that_a_reader_would_expect(expression: str, value: Any) -> None:
    before = """
        import collections, dataclasses, datetime, decimal, enum, pathlib
        from pydantic import BaseModel
        @dataclasses.dataclass
        class Point:
            x: int
            y: set
        Pair = collections.namedtuple("Pair", "left right")
        class Colour(enum.Enum):
            red = "r"
        class Level(enum.IntEnum):
            low = 1
        class Model(BaseModel):
            x: int
        class Plain:
            def __repr__(self): return "<plain>"
        class Broken:
            def __repr__(self): raise RuntimeError
        class Text(str): pass
    """
    assert returned(expression, before) == value


def test_scalars_and_arrays_of_numpy_are_plain_numbers() -> None:
    # Stands in for numpy: what the document looks at is the module's name and these methods.
    numpy = "class int64:\n    ndim = 0\n    size = 1\n    def tolist(self): return 5\n"
    source = "import numpy\ndef body(): return {'n': numpy.int64()}\n"
    assert call(source, others={"numpy": numpy}).data == {"n": 5}


@pytest.mark.parametrize(
    "expression",
    ["'x' * 10**8", "['x' * 10**6] * 10**6", "itertools.count()", "b'x' * 10**8", "{str(n): n for n in range(10**6)}"],
)
def test_a_huge_value_is_refused_where_the_cap_is(expression: str) -> None:
    ended = call(f"import itertools\ndef body(): return {expression}\n")
    assert (ended.code, ended.answer["code"]) == (1, "result.too_large")
    assert ended.answer["hint"]


def test_a_value_below_the_cap_passes() -> None:
    assert len(returned("'x' * (8 * 1024 * 1024 - 100)")) == 8 * 1024 * 1024 - 100


@pytest.mark.parametrize(("levels", "code"), [(50, None), (200, "result.too_deep"), (-1, "result.too_deep")])
def test_a_deep_value_and_one_that_contains_itself_are_refused(levels: int, code: str | None) -> None:
    source = f"""
        def body():
            value = top = []
            for _ in range({levels}):
                value.append([])
                value = value[0]
            if {levels} < 0:
                top.append(top)
            return top
    """
    assert call(source).answer.get("code") == code


def test_a_value_that_raises_while_it_is_read_is_the_tools_exception() -> None:
    ended = call("def body():\n    yield 1\n    raise OSError('late')\n")
    assert (ended.code, ended.answer["error"]) == (1, "OSError: late")


# --- describing ----------------------------------------------------------------------------------------------------


def test_describe_finds_every_kind_of_tool_once() -> None:
    source = """
        from toolcage import Tool, tool, StandardTool
        class First(Tool):
            name, description, parameters = "first_tool", "One.", {"x": "an x"}
            def execute(self, x): ...
        class Second(Tool):
            name, description = "second_tool", "Two."
            def _run(self, s: str) -> str: ...
        second = Second()
        @tool
        def third_tool(n: int):
            "Three."
        fourth = StandardTool("fourth_tool", "Four.", lambda a: a).param("a", "string")
        alias = fourth
        _hidden = StandardTool("hidden_tool", "No.", lambda: 1)
        class Needs(Tool):
            name, description = "needs_tool", "Needs."
            def __init__(self, it): ...
            def execute(self): ...
        class Nameless(Tool):
            def execute(self): ...
    """
    data = describe(source).data
    found = {entry["declaration"]["name"]: (entry["attribute"], entry["how"]) for entry in data["tools"]}
    assert found == {
        "first_tool": ("First", "class"),
        "second_tool": ("second", "attribute"),
        "third_tool": ("third_tool", "attribute"),
        "fourth_tool": ("fourth", "attribute"),
    }
    assert data["tools"][0]["declaration"]["parameters"]["additionalProperties"] is False
    assert [problem.split()[0] for problem in data["problems"]] == ["Needs", "Nameless:"]


def test_describe_of_a_module_that_raises_or_leaves_says_so() -> None:
    assert describe("1 / 0\n").answer["code"] == "tool.import_failed"
    left = describe("raise SystemExit(3)\n")
    assert (left.code, left.answer) == (3, None)


def test_a_module_that_was_not_shipped_is_hinted_at_and_frames_are_files_of_the_tools_modules() -> None:
    ended = call("def body():\n    import beside_it\n")
    assert "ships=" in ended.answer["hint"]
    assert 'File "' in ended.stderr
    assert "<" not in ended.stderr
    assert "ships=" in call("import beside_it\ndef body(): pass\n").answer["hint"]
    assert call("def body(): 1 / 0\n").answer["hint"] is None
