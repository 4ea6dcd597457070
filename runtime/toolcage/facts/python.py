"""Facts of a Python program: whether it parses, what it imports, how long it is.

For advice and labels only. Nothing here is a boundary: a program that looks harmless may not be, and the cage treats
all alike. A program that does not parse is no refusal either; Python itself says so best, in the cage.

The parser is not given everything: CPython's may overflow on deep nesting, and the text is hostile. Beyond the bounds
below `parses` is None, which means not looked at.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.types import Facts

MAX_PARSED_CHARACTERS: Final = 64_000
MAX_BRACKETS: Final = 60
MAX_SIGNS: Final = 60

_BRACKET: Final = re.compile(r"[()\[\]{}]")
# A run of prefix operators nests like brackets do.
_SIGNS: Final = re.compile(rf"(?:[-+~]\s*|\bnot\s+|\blambda\s*:\s*){{{MAX_SIGNS}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFacts(Facts):
    """`parses` is None when the program was too large or too nested to look at. `imports` are the top-level names of
    the modules that import statements anywhere in the program name."""

    kind: Literal["python"] = "python"
    parses: bool | None = None
    imports: frozenset[str] = frozenset()
    lines: int = 1
    utf8_bytes: int = 0
    has_nul: bool = False


def read(text: str) -> PythonFacts:
    """The facts of `text`. Never refuses."""
    tree = _parse(text) if may_parse(text) else None
    return PythonFacts(
        parses=None if tree is None else isinstance(tree, ast.Module),
        imports=frozenset(_imports(tree)) if isinstance(tree, ast.Module) else frozenset(),
        lines=text.count("\n") + 1,
        utf8_bytes=len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")),
        has_nul="\x00" in text,
    )


def may_parse(text: str) -> bool:
    """Whether the text is short and flat enough to be given to the parser."""
    if len(text) > MAX_PARSED_CHARACTERS or _SIGNS.search(text):
        return False
    depth = 0
    # Brackets in strings and comments count too: this bounds the parser's work and need not be exact.
    for match in _BRACKET.finditer(text):
        depth += 1 if match.group() in "([{" else -1
        if depth > MAX_BRACKETS:
            return False
    return True


def _parse(text: str) -> ast.Module | Literal[False] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the program's own, such as for an invalid escape
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            return False
        except (RecursionError, MemoryError):
            return None


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found
