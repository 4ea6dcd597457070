"""The source text behind tools: of a module, of the modules that it brings along, of one function alone.

Host side, and only for what the host already imported. Refuses, with DeclarationError, source that would not mean the
same in a cage: a script that acts when imported, an import of names that a cage does not have, a function that leans on
names from outside itself. Text only: nothing here imports or runs any of it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.abc
import importlib.util
import inspect
import pathlib
import re
import symtable
import sys
import textwrap
import types
from collections.abc import Iterator
from importlib import resources
from typing import Final

from toolcage.errors import DeclarationError

SOURCE_BYTES: Final = 1024 * 1024
# What every cage gets, in the order in which it can execute them one by one.
BASE_MODULES: Final = tuple(f"toolcage.tools.{name}" for name in ("base", "annotations", "docstring", "describe"))
SEGMENT: Final = "segment"  # what a function that ships alone is called in the cage
_IN_CAGE: Final = ("StandardTool", "Tool", "ToolFailure", "ToolResult", "tool")


def has_source(module: types.ModuleType) -> bool:
    """Whether a Python file stands behind the module."""
    return str(getattr(module, "__file__", None) or "").endswith(".py")


def source_of(module: types.ModuleType) -> str:
    """The module's text, as its file has it now. Raises: DeclarationError where there is none."""
    loader = getattr(module, "__loader__", None)
    try:
        if module.__name__ != "__main__" and isinstance(loader, importlib.abc.InspectLoader):
            source = loader.get_source(module.__name__)
        else:
            source = inspect.getsource(module)
    except (ImportError, OSError, TypeError):
        source = None
    if source is None:
        raise DeclarationError(f"the source of module {module.__name__} cannot be read; define the tool in a .py file")
    return source


def own_source(name: str) -> str:
    """The text of one of our own modules, without importing it."""
    package, *folders, leaf = name.split(".")
    return resources.files(package).joinpath(*folders, f"{leaf}.py").read_text(encoding="utf-8")


def sources_named(ships: tuple[str, ...]) -> dict[str, str]:
    """The text of the modules that a tool names in `ships`. Raises: DeclarationError for one without source."""
    found = {}
    for name in ships:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        source = spec.loader.get_source(name) if spec and isinstance(spec.loader, importlib.abc.InspectLoader) else None
        if source is None:
            raise DeclarationError(f"module {name}, named in ships, has no Python source that can be found")
        found[name] = source
    return found


def check_script(module: types.ModuleType, source: str) -> None:
    """A script is imported in the cage: what acts at its top level would act there again."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            raise DeclarationError(
                f"{pathlib.PurePath(module.__file__ or 'the script').name}, line {node.lineno}, acts when the file is "
                "imported, and a cage imports it to find the tool; put what the script does under "
                '`if __name__ == "__main__":`, or move the tool to a module of its own'
            )


def check_names(name: str, source: str) -> None:
    """In a cage `toolcage` has the declaration names only; an import of more at the top would fail there."""
    for node in ast.parse(source).body:
        wanted: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == "toolcage" and not node.level:
            wanted = [alias.name for alias in node.names if alias.name not in _IN_CAGE]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("toolcage."):
            wanted = [] if node.module in BASE_MODULES else [str(node.module)]
        if wanted:
            raise DeclarationError(
                f"module {name}, line {node.lineno}, imports {', '.join(wanted)} from toolcage, and a cage has only "
                f"{', '.join(_IN_CAGE)}; import the rest where it is used, or move the tool to a module of its own"
            )


def take_siblings(home: types.ModuleType, name: str, source: str, modules: dict[str, str]) -> None:
    """Adds the modules that `source` imports from its own package or folder, and theirs, to `modules`."""
    pending = [(home.__name__, source)]
    while pending:
        for wanted in _imported(*pending.pop()):
            module = sys.modules.get(wanted)
            if module is None or module is home or wanted in modules or not _is_sibling(module, home, name):
                continue
            modules[wanted] = source_of(module)
            pending.append((wanted, modules[wanted]))
            if sum(map(len, modules.values())) > SOURCE_BYTES:
                return  # refused where the whole is counted


def _is_sibling(module: types.ModuleType, home: types.ModuleType, name: str) -> bool:
    if not has_source(module):
        return False
    top = module.__name__.partition(".")[0]
    if top in ("toolcage", "__main__") or top in sys.stdlib_module_names:
        return False
    if top == name.partition(".")[0]:
        return True
    # A module that is in no package: its siblings are the files and packages in its folder.
    folder = pathlib.Path(home.__file__ or "").resolve().parent
    file = pathlib.Path(module.__file__ or "").resolve()
    installed = {"site-packages", "dist-packages"} & set(folder.parts)
    return "." not in name and not installed and folder in file.parents and not (
        {"site-packages", "dist-packages"} & set(file.parts)
    )  # fmt: skip


def _imported(importer: str, source: str) -> Iterator[str]:
    """The modules that `source` names in its imports, also inside functions."""
    package = str(getattr(sys.modules.get(importer), "__package__", None) or "")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in sys.modules else base


def segment_of(tool_name: str, function: types.FunctionType) -> str:
    """The source of one function that no module holds by name: a lambda, or one typed at a prompt."""
    try:
        text = textwrap.dedent(inspect.getsource(function)).strip()
    except (OSError, TypeError) as error:
        raise DeclarationError(f"tool {tool_name}: the source of its body cannot be read; put it in a file") from error
    nodes = [node for node in _functions_in(text) if _is_source_of(node, function)]
    if not nodes:
        raise DeclarationError(f"tool {tool_name}: its body cannot be told apart in its source; write it with def")
    node = nodes[0]  # several are only possible where they are the same
    if isinstance(node, ast.Lambda):
        source = f"{SEGMENT} = {ast.unparse(node)}\n"
    else:
        node.decorator_list = []
        source = f"{ast.unparse(node)}\n{SEGMENT} = {node.name}\n"
    missing = _names_from_outside(source)
    if missing:
        raise DeclarationError(
            f"tool {tool_name}: its body uses {', '.join(missing)} from outside itself, and it ships alone; "
            "import what it needs inside it, or define it at the top of a module"
        )
    return source


def _functions_in(text: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    """`inspect` gives whole lines: a lambda may come with half a statement around it."""
    trees: list[ast.AST] = []
    try:
        trees = [ast.parse(text)]
    except SyntaxError:
        for found in re.finditer(r"\blambda\b", text):
            for end in range(len(text), found.start(), -1):
                with contextlib.suppress(SyntaxError):
                    trees.append(ast.parse(f"({text[found.start() : end]})"))
                    break
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)]


def _is_source_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, function: types.FunctionType) -> bool:
    """Two lambdas may share a line: compiled alone, the right one gives the function's own code."""
    if not isinstance(node, ast.Lambda):
        return node.name == function.__name__
    theirs = function.__code__
    return function.__name__ == "<lambda>" and any(
        (code.co_code, code.co_names, code.co_varnames) == (theirs.co_code, theirs.co_names, theirs.co_varnames)
        and _constants(code) == _constants(theirs)
        for code in compile(ast.unparse(node), "<segment>", "eval").co_consts
        if isinstance(code, types.CodeType)
    )


def _constants(code: types.CodeType) -> list[str]:
    return [repr(item) for item in code.co_consts if not isinstance(item, types.CodeType)]


def _names_from_outside(source: str) -> list[str]:
    top = symtable.symtable(source, "<segment>", "exec")
    own = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned()}
    used = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    pending = list(top.get_children())
    while pending:
        table = pending.pop()
        used |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        pending += table.get_children()
    return sorted(used - own - vars(builtins).keys())
