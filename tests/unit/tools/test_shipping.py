"""A tool's source arrives and runs elsewhere as the same tool, or is refused with what to do about it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcage.errors import DeclarationError
from toolcage.tools.base import StandardTool, Tool, tool
from toolcage.tools.shipping import Shipment, ship, ship_part, ship_source
from toolcage.tools.source import BASE_MODULES, SOURCE_BYTES

Arrive = Callable[..., Any]
OUTSIDE = 5


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes modules to a folder and imports the first of them, as a user's program would."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(name: str, source: str, **others: str) -> Any:
        for module, text in {name: source, **{key.replace("__", "."): item for key, item in others.items()}}.items():
            parts = module.split(".")
            file = tmp_path.joinpath(*parts[:-1], parts[-1] + ".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            for folder in file.relative_to(tmp_path).parents[:-1]:
                (tmp_path / folder / "__init__.py").touch()
            file.write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


CLASS = """
    from toolcage.tools.base import Tool
    class Scale(Tool):
        name, description, parameters = "scale_number", "Scales.", {"x": {"type": "number"}}
        def __init__(self, by=1, *, plus=0, more=None): self.by, self.plus = by, plus
        def execute(self, x): return x * self.by + self.plus
"""


# --- what arrives --------------------------------------------------------------------------------------------------


def test_an_instance_is_built_again_from_its_constructors_arguments(written: Any, arrive: Arrive) -> None:
    shipment = ship(written("their_scale", CLASS).Scale(10, plus=2))
    assert (shipment.module, shipment.attribute, shipment.how) == ("their_scale", "Scale", "class")
    assert arrive(shipment, x=4) == 42


def test_a_decorated_function_and_a_variable_at_the_top_are_found_by_their_name(written: Any, arrive: Arrive) -> None:
    module = written("their_kit", """
        from toolcage.tools.base import StandardTool, tool
        @tool("add_numbers")
        def add(a: int, b: int = 2):
            "Adds."
            return a + b
        class Kit:
            limit = 3
            count = StandardTool("count_words", "Counts.", lambda text: len(text.split()[:Kit.limit]))
            count.param("text", str)
    """)  # fmt: skip
    assert (ship(module.add).how, arrive(ship(module.add), a=1, b=2)) == ("attribute", 3)
    assert (ship(module.Kit.count).attribute, arrive(ship(module.Kit.count), text="a b c d")) == ("Kit.count", 3)


def test_a_function_at_the_top_is_shipped_with_its_module(written: Any, arrive: Arrive) -> None:
    module = written(
        "their_plain", "RATE = 3\ndef convert(amount: float):\n    'Converts.'\n    return amount * RATE\n"
    )
    assert arrive(ship(tool("convert_money")(module.convert)), amount=2) == 6


def test_modules_of_the_same_package_and_folder_come_along_and_no_others(written: Any, arrive: Arrive) -> None:
    module = written(
        "shop.deep.tools",
        """
        import json
        import pydantic
        from .. import prices
        from ..rates import RATE
        from toolcage.tools.base import tool
        @tool
        def total(amount: int):
            "Totals."
            from shop.late import EXTRA
            return amount * prices.TEA * RATE + EXTRA
        def elsewhere():
            import flat_neighbour
        """,
        shop__prices="from shop import rates\nTEA = 2 * rates.RATE\n",
        shop__rates="RATE = 10\n",
        shop__late="EXTRA = 1\n",
        shop__unused="raise RuntimeError\n",
        flat_neighbour="",
    )
    assert "shop.late" not in ship(module.total).modules  # not imported so far: nobody has its source
    importlib.import_module("shop.late")
    importlib.import_module("flat_neighbour")
    shipment = ship(module.total)
    assert set(shipment.modules) - set(BASE_MODULES) == {"shop.deep.tools", "shop.prices", "shop.rates", "shop.late"}
    assert arrive(shipment, amount=3) == 601


def test_a_module_outside_any_package_brings_its_neighbours_along(written: Any, arrive: Arrive) -> None:
    module = written(
        "flat_tools",
        """
        import flat_prices, json
        from toolcage.tools.base import tool
        @tool
        def price():
            "P."
            return flat_prices.TEA
        """,
        flat_prices="TEA = 4\n",
    )
    assert set(ship(module.price).modules) - set(BASE_MODULES) == {"flat_tools", "flat_prices"}
    assert arrive(ship(module.price)) == 4


def test_a_lambda_without_free_variables_ships_as_its_own_source(arrive: Arrive) -> None:
    pair = (StandardTool("first", "d", lambda x: x + 1).param("x", int), StandardTool("second", "d", lambda x: x + 2).param("x", int))  # noqa: E501  # fmt: skip
    shipments = [ship(made) for made in pair]
    assert [arrive(shipment, x=40) for shipment in shipments] == [41, 42]
    assert "StandardTool" not in shipments[0].modules["tool_segment"]


def test_a_function_inside_another_ships_alone_with_the_imports_it_makes(arrive: Arrive) -> None:
    @tool
    def count_letters(text: str) -> int:
        """Counts."""
        from collections import Counter

        return sum(Counter(text).values())

    assert arrive(ship(count_letters), text="abc") == 3


def test_modules_named_in_ships_come_along(written: Any, arrive: Arrive) -> None:
    written("far_away", "X = 9\n")
    module = written("near_by", """
        from toolcage.tools.base import tool
        @tool(ships=("far_away",))
        def answer():
            "A."
            import far_away
            return far_away.X
    """)  # fmt: skip
    assert ship(module.answer).modules["far_away"] == "X = 9\n"
    assert arrive(ship(module.answer)) == 9


def test_the_digest_is_of_everything_that_is_shipped(written: Any) -> None:
    scale = written("their_scale", CLASS).Scale
    assert ship(scale(1)).digest == ship(scale(1)).digest
    assert ship(scale(1)).digest != ship(scale(2)).digest
    assert ship_source("m", "a = 1").digest != ship_source("m", "a = 2").digest
    whole = ship_source("m", "a = 1")
    assert ship_part(whole, "a", "class").digest != ship_part(whole, "a", "attribute").digest


def test_a_shipment_cannot_be_changed(written: Any) -> None:
    shipment = ship(written("their_scale", CLASS).Scale({"a": [1]}))
    with pytest.raises(TypeError):
        shipment.modules["x"] = "y"  # type: ignore[index]
    assert shipment.payload()["init"] == {"args": [{"a": [1]}], "kwargs": {}}


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argument", [(1, 2), {1: "a"}, {1, 2}, float("nan"), object(), b"x", [lambda: 1]])
def test_an_instance_whose_arguments_are_not_json_is_refused(written: Any, argument: Any) -> None:
    with pytest.raises(DeclarationError, match="arguments that are not JSON"):
        ship(written("their_scale", CLASS).Scale(argument))


def test_but_the_same_instance_as_a_variable_at_the_top_is_shipped(written: Any, arrive: Arrive) -> None:
    module = written("their_scale", textwrap.dedent(CLASS) + "made = Scale(3, more=object())\n")
    assert arrive(ship(module.made), x=2) == 6


def test_a_closure_is_refused_and_names_what_it_holds() -> None:
    secret = 5
    with pytest.raises(DeclarationError, match="uses secret of the function around it"):
        ship(StandardTool("t", "d", lambda x: x + secret).param("x", int))


def test_a_function_that_leans_on_names_outside_itself_is_refused() -> None:
    with pytest.raises(DeclarationError, match="uses OUTSIDE from outside itself"):
        ship(StandardTool("t", "d", lambda x: x + OUTSIDE).param("x", int))

    def deep(x: int) -> Any:
        return [lambda: OUTSIDE for _ in range(x)]

    with pytest.raises(DeclarationError, match="OUTSIDE"):
        ship(tool("t", description="d")(deep))


def test_a_class_inside_a_function_is_refused() -> None:
    class Inner(Tool):
        name, description = "t", "d"

        def execute(self) -> int:
            return 1

    with pytest.raises(DeclarationError, match="not defined at the top"):
        ship(Inner())


def test_what_is_no_plain_function_is_refused() -> None:
    with pytest.raises(DeclarationError, match="no plain function"):
        ship(StandardTool("t", "d", len).param("obj", list))


def test_a_tool_that_only_an_expression_holds_is_refused_where_its_model_would_be_lost(written: Any) -> None:
    module = written("their_plain", "def body(x):\n    return x\n")
    from pydantic import create_model

    with pytest.raises(DeclarationError, match="args_schema"):
        ship(tool("t", description="d", args_schema=create_model("M", x=(int, 1)))(module.body))


def test_names_that_a_cage_does_not_have_are_refused_at_the_top_and_accepted_where_used(written: Any) -> None:
    body = "from toolcage.tools.base import tool\n@tool\ndef t():\n    'D.'\n    return 1\n"
    with pytest.raises(DeclarationError, match=r"line 1, imports toolcage\.errors from toolcage"):
        ship(written("their_top", "from toolcage.errors import ToolcageError\n" + body).t)
    inside = "def other():\n    from toolcage.errors import ToolcageError\n"
    assert ship(written("their_inside", inside + body).t).module == "their_inside"


def test_source_beyond_the_cap_is_refused_and_below_it_accepted(written: Any) -> None:
    body = "from toolcage.tools.base import tool\n@tool\ndef t():\n    'D.'\n    return 1\n#"
    assert ship(written("their_large", body + "x" * (SOURCE_BYTES - 200)).t).how == "attribute"
    with pytest.raises(DeclarationError, match="more than 1048576"):
        ship(written("their_larger", body + "x" * SOURCE_BYTES).t)


def test_a_module_in_ships_that_is_not_there_is_refused() -> None:
    made = StandardTool("t", "d", lambda: 1)
    made.ships = ("no_such_module",)
    with pytest.raises(DeclarationError, match="no_such_module"):
        ship(made)


# --- scripts and prompts -------------------------------------------------------------------------------------------

SCRIPT = """
    import json, sys
    from toolcage.tools.base import tool
    @tool
    def double(x: int):
        "Doubles."
        return 2 * x
    def main():
        from toolcage.tools.shipping import ship
        shipment = ship(double)
        print(json.dumps([shipment.module, shipment.attribute, shipment.how, sorted(shipment.modules)]))
"""


def run_script(tmp_path: Path, source: str, name: str = "my-script.py") -> subprocess.CompletedProcess[str]:
    file = tmp_path / name
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)


def test_a_script_with_a_main_guard_ships_under_its_files_name(tmp_path: Path) -> None:
    done = run_script(tmp_path, SCRIPT + '    if __name__ == "__main__":\n        main()\n')
    assert done.stdout.startswith('["my_script", "double", "attribute"'), done.stderr


def test_a_script_without_a_main_guard_is_refused_with_the_line(tmp_path: Path) -> None:
    done = run_script(tmp_path, SCRIPT + "    main()\n")
    assert done.returncode == 1
    assert "DeclarationError: my-script.py, line 12, acts when the file is imported" in done.stderr
    assert '`if __name__ == "__main__":`' in done.stderr


def test_a_script_named_like_a_standard_module_does_not_take_its_place(tmp_path: Path) -> None:
    done = run_script(tmp_path, SCRIPT + '    if __name__ == "__main__":\n        main()\n', name="queue_.py")
    assert '["queue_"' in done.stdout
    source = textwrap.dedent(SCRIPT) + 'if __name__ == "__main__":\n    main()\n'
    (tmp_path / "statistics.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", str(tmp_path / "statistics.py")], capture_output=True, text=True, check=False
    )
    assert '["tool_statistics"' in done.stdout, done.stderr


def test_a_function_typed_at_a_prompt_ships_as_its_own_source(arrive: Arrive) -> None:
    import linecache

    source = "def triple(x):\n    'Triples.'\n    return 3 * x\n"
    linecache.cache["<prompt-1>"] = (len(source), None, source.splitlines(keepends=True), "<prompt-1>")
    prompt = type(sys)("prompt_module")
    sys.modules["prompt_module"] = prompt
    try:
        exec(compile(source, "<prompt-1>", "exec"), prompt.__dict__)
        shipment = ship(tool(prompt.triple))
    finally:
        del sys.modules["prompt_module"]
    assert arrive(shipment, x=5) == 15


def test_a_function_whose_source_nobody_has_is_refused() -> None:
    space: dict[str, Any] = {"__name__": __name__}
    exec("def ghost(): return 1", space)
    with pytest.raises(DeclarationError, match="source of its body cannot be read"):
        ship(tool("t", description="d")(space["ghost"]))


# --- built-in tools ------------------------------------------------------------------------------------------------


def test_a_strangers_file_ships_as_one_module_with_the_declaration_names() -> None:
    shipment = ship_source("stranger", "x = 1\n")
    assert isinstance(shipment, Shipment)
    assert set(shipment.modules) == {"stranger", *BASE_MODULES}
