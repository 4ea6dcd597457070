"""PostgreSQL's calls with words between their arguments: SQL/JSON's and XML's, JSON_TABLE among them.

`JSON_VALUE(a, '$.b' RETURNING int DEFAULT c ON EMPTY)` is read as the call of `json_value` with the parts `a`, `'$.b'`,
`int` and `c`: everything that can compute, read or name a type, and no clause's meaning. A word is only skipped behind
an argument, where PostgreSQL has no use for a name, or where its grammar demands it; whatever else stands there is
refused. Source: PostgreSQL's documentation, "JSON Functions and Operators", "XML Functions".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from sqlglot import exp

# Behind an argument, without one of their own.
_BEHIND: Final = """
    VALUE VALUES NULL ABSENT ON WITH WITHOUT UNIQUE KEY KEYS FORMAT JSON ENCODING UTF8 PASSING CONDITIONAL UNCONDITIONAL
    ARRAY WRAPPER KEEP OMIT QUOTES SCALAR STRING ERROR EMPTY OBJECT DEFAULT TRUE FALSE UNKNOWN INDENT NO PRESERVE
    STRIP WHITESPACE NOT
"""
_BETWEEN: Final = frozenset(_BEHIND.split())
_QUERY: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
_After = Literal["name", "type"]
_CALLS: Final[Mapping[str, _After]] = {
    **dict.fromkeys(
        ("JSON_OBJECT", "JSON_OBJECTAGG", "JSON_ARRAY", "JSON_ARRAYAGG", "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS",
         "JSON_SCALAR", "JSON_SERIALIZE", "JSON", "XMLFOREST", "XMLATTRIBUTES"), "name"
    ),
    **dict.fromkeys(("XMLPARSE", "XMLSERIALIZE"), "type"),
}  # fmt: skip


def _call(parser: Any, name: str, after_as: _After) -> exp.Expr:
    """The call, without its last parenthesis."""
    if name in ("XMLPARSE", "XMLSERIALIZE") and not parser._match_texts(("DOCUMENT", "CONTENT")):
        parser.raise_error("Expected DOCUMENT or CONTENT")
    return _made(parser, name, _arguments(parser, after_as))


def _element(parser: Any) -> exp.Expr:
    """XMLELEMENT(NAME a, XMLATTRIBUTES(…), …)"""
    if not parser._match_text_seq("NAME") or parser._parse_id_var(any_token=True) is None:
        parser.raise_error("Expected NAME")
    parser._match_set((_kinds().COMMA,))
    return _made(parser, "XMLELEMENT", _arguments(parser, "name"))


def _json_table(parser: Any) -> exp.Expr:
    parts = _arguments(parser, "name", until="COLUMNS")
    parts += _columns_in_parentheses(parser)
    return _made(parser, "JSON_TABLE", parts + _arguments(parser, "name"))


def _made(parser: Any, name: str, parts: list[exp.Expr]) -> exp.Expr:
    from sqlglot import exp

    return parser.expression(exp.Anonymous(this=name, expressions=parts))  # type: ignore[no-any-return]


def _arguments(parser: Any, after_as: _After, until: str = "") -> list[exp.Expr]:
    """The parts up to the closing parenthesis, which stays, or behind the word `until`."""
    parts: list[exp.Expr] = []
    behind = False
    while not parser._match(_kinds().R_PAREN, advance=False):
        if until and behind and _match_word(parser, frozenset({until})):
            return parts
        if parser._match_set((_kinds().COMMA, _kinds().COLON)):
            behind = False
        elif behind and _match_word(parser, frozenset({"AS"})):
            _append(parser, parts, parser._parse_types() if after_as == "type" else None, named=after_as == "name")
        elif behind and _match_word(parser, frozenset({"RETURNING"})):
            _append(parser, parts, parser._parse_types())
        elif behind and _match_word(parser, _BETWEEN):
            # The word DEFAULT, VALUE or PASSING may have an argument behind it, which is then the next part.
            parts += _argument(parser, behind=True)
        elif behind and (order := parser._parse_order()) is not None:
            parts.append(order)
        else:
            found = _argument(parser, behind=False)
            if behind or not found:
                parser.raise_error("Expected an argument")
            parts += found
            behind = True
    if until:
        parser.raise_error(f"Expected {until}")
    return parts


def _argument(parser: Any, *, behind: bool) -> list[exp.Expr]:
    """One argument, if there is one: a word that may stand behind another is none there, unless it is called."""
    if not behind and _is_word(parser, _QUERY):
        found = parser._parse_select()
        return [found] if found is not None else []
    called = parser._next is not None and parser._next.token_type is _kinds().L_PAREN
    if behind and not called and _is_word(parser, _BETWEEN | {"RETURNING", "AS", "COLUMNS"}):
        return []
    found = parser._parse_disjunction()
    return [found] if found is not None else []


def _columns_in_parentheses(parser: Any) -> list[exp.Expr]:
    if not parser._match(_kinds().L_PAREN):
        parser.raise_error("Expected (")
    parts = _columns(parser)
    parser._match_r_paren()
    return parts


def _columns(parser: Any) -> list[exp.Expr]:
    """Definitions of columns, separated by commas: of their parts, the types and what is computed."""
    return [part for column in parser._parse_csv(lambda: _column(parser)) for part in column]


def _column(parser: Any) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    if _match_word(parser, frozenset({"NESTED"})):
        _match_word(parser, frozenset({"PATH"}))
        _append(parser, parts, parser._parse_string())
        if _match_word(parser, frozenset({"AS"})):
            _append(parser, parts, None, named=True)
        if not _match_word(parser, frozenset({"COLUMNS"})):
            parser.raise_error("Expected COLUMNS")
        return parts + _columns_in_parentheses(parser)
    _append(parser, parts, None, named=True)
    if parser._match_text_seq("FOR", "ORDINALITY"):
        return parts
    _append(parser, parts, parser._parse_types())
    while not parser._match_set((_kinds().COMMA, _kinds().R_PAREN), advance=False):
        if _match_word(parser, frozenset({"PATH", "DEFAULT"})):
            _append(parser, parts, parser._parse_bitwise())
        elif not _match_word(parser, _BETWEEN | {"EXISTS"}):
            parser.raise_error("Expected a clause of a column")
    return parts


def _append(parser: Any, parts: list[exp.Expr], part: exp.Expr | None, *, named: bool = False) -> None:
    """Adds a part that must be there; a name is read and dropped."""
    if (parser._parse_id_var(any_token=True) if named else part) is None:
        parser.raise_error("Expected a part")
    if part is not None:
        parts.append(part)


def _is_word(parser: Any, among: frozenset[str]) -> bool:
    token = parser._curr
    plain = token and token.token_type not in (_kinds().STRING, _kinds().IDENTIFIER)
    return bool(plain and token.text.upper() in among)


def _match_word(parser: Any, among: frozenset[str]) -> bool:
    """Whether the next word, unquoted, is one of these; it is read then."""
    if not _is_word(parser, among):
        return False
    parser._advance()
    return True


@functools.cache
def _kinds() -> Any:
    from sqlglot import TokenType

    return TokenType


def _reader_of(name: str, after_as: _After) -> Callable[[Any], exp.Expr]:
    return lambda parser: _call(parser, name, after_as)


CLAUSE_FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **{name: _reader_of(name, after_as) for name, after_as in _CALLS.items()},
    "XMLELEMENT": _element,
    "JSON_TABLE": _json_table,
}
"""How each is read behind its opening parenthesis, as the parser's own table of such has it."""
