"""The parser that `sql` reads with: sqlglot's, made to cut and name things as the engine does.

It leaves every ordinary call as it is written (the parser's translation table is emptied), knows only the parameters
that the engine knows, demands parentheses where the engine does, and in PostgreSQL cuts operators by that engine's own
rule: a run of operator signs is one word, so `1*@x` is no parameter and `a<#>b` no comparison. What an operator means
is no matter here; that nothing beside it is lost is.

Calls with a syntax of their own (`sql_clauses`) become ordinary calls of the parts that can compute. Decides nothing
about permission. Imports sqlglot when first used. Source: PostgreSQL's documentation, "Lexical Structure".
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from toolcage.facts import sql_change
from toolcage.facts.sql_clauses import CLAUSE_FUNCTIONS
from toolcage.facts.sql_text import Dialect, unreadable

if TYPE_CHECKING:
    from sqlglot import Token, exp
    from sqlglot.dialects.dialect import Dialect as Grammar
    from sqlglot.parser import Parser

reading: ContextVar[bool] = ContextVar("toolcage_reading_sql", default=False)
"""Set while a text is parsed: the parser's warnings quote it and are dropped."""
_SIGNS: Final = frozenset("+-*/<>=~!@#%^&|`?")
# Only with one of these in it may an operator of several signs end in + or -.
_ODD_SIGNS: Final = frozenset("~!@#%^&|`?")
_LONGEST_RUN: Final = 64
# The parser knows these by its own pair of words, and takes those for something that is no operator.
_SHIFTS: Final = frozenset({"<<", ">>"})
_MISTAKEN: Final = frozenset({"@", "!", "|>", "??"})


@functools.cache
def grammar(dialect: Dialect) -> tuple[Grammar, type[Parser]]:
    """The dialect and its parser."""
    import sqlglot
    from sqlglot import TokenType
    from sqlglot.parsers.postgres import PostgresParser
    from sqlglot.parsers.sqlite import SQLiteParser

    # Leave the host's own use of sqlglot alone.
    logging.getLogger("sqlglot").addFilter(lambda record: not reading.get())
    of_engine: dict[str, Any]
    base: type[Parser]
    if dialect == "sqlite":
        base, kept = SQLiteParser, {"CAST"}
        marks = {**base.PLACEHOLDER_PARSERS, TokenType.PLACEHOLDER: _placed}
        of_engine = {"LAMBDAS": {}, "PLACEHOLDER_PARSERS": marks}
    else:
        base, kept = PostgresParser, {"CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY"}
        of_engine = _of_postgres(base)
    parsers = {name: parse for name, parse in base.FUNCTION_PARSERS.items() if name in kept}
    changed = {
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {**parsers, **(CLAUSE_FUNCTIONS if dialect == "postgres" else {})},
        "_parse_value": _row_in_parentheses(base),
        "_parse_term": lambda parser, parse_mod=True: base._parse_term(parser),  # LIMIT 5 PERCENT is of neither
        **of_engine,
    }
    made = type("ReadingParser", (base,), changed)
    return _tokenizing(sqlglot.Dialect.get_or_raise(dialect)), made


def words(text: str, dialect: Dialect) -> list[Token]:
    """The words of `text`, cut as the engine cuts them. Raises sqlglot's errors."""
    engine, parser = grammar(dialect)
    found: list[Token] = engine.tokenize(text)
    if dialect == "sqlite":
        return found
    _demand_plain_names(found, frozenset(parser.FUNCTION_PARSERS))
    return list(_with_operators(found))


def placeholders(tokens: list[Token]) -> list[int]:
    """Where each `?` stands."""
    from sqlglot import TokenType

    return [token.start for token in tokens if token.token_type is TokenType.PLACEHOLDER]


# --- one engine's ----------------------------------------------------------------------------------------------------


def _of_postgres(base: Any) -> dict[str, Any]:
    from sqlglot import TokenType

    # `f(a -> 'x')` hands over a JSON field; `f(a => 1)` is PostgreSQL's own.
    named = {kind: parse for kind, parse in base.LAMBDAS.items() if kind is not TokenType.ARROW}
    prefixes = (TokenType.CARET_AT, TokenType.HASH, TokenType.DAT, TokenType.QMARK_PIPE, TokenType.PIPE_SLASH,
                TokenType.DPIPE_SLASH)  # fmt: skip
    return {
        "LAMBDAS": named,
        # $1 alone: elsewhere `?`, `:x` and `%s` are operators, slices, or nothing.
        "PLACEHOLDER_PARSERS": {TokenType.PARAMETER: base.PLACEHOLDER_PARSERS[TokenType.PARAMETER]},
        "JSON_OPERATORS": {**base.JSON_OPERATORS, TokenType.CARET_AT: _operated},
        "UNARY_PARSERS": {**base.UNARY_PARSERS, **dict.fromkeys(prefixes, _prefixed)},
        "_parse_unary": _unary(base),
        "_parse_at_time_zone": _at_time_zone(base),
        "_parse_ordered": _ordered(base),
        "SUBQUERY_TOKENS": {*base.SUBQUERY_TOKENS, TokenType.TABLE},
    }


def _operated(parser: Any, left: Any, right: Any) -> exp.Expr:
    from sqlglot import exp

    if right is None:
        parser.raise_error("Expected an operand")
    return parser.expression(exp.Operator(this=left, operator="other", expression=right))  # type: ignore[no-any-return]


def _prefixed(parser: Any) -> exp.Expr:
    from sqlglot import exp

    return _operated(parser, exp.Null(), parser._parse_unary())


def _row_in_parentheses(base: Any) -> Callable[..., Any]:
    """A row of VALUES. Without parentheses, PostgreSQL reads `FROM values a` as a table of that name."""
    from sqlglot import TokenType

    def parse_value(parser: Any, values: bool = True) -> Any:
        if not parser._match(TokenType.L_PAREN, advance=False):
            parser.raise_error("Expected (")
        return base._parse_value(parser, values)

    return parse_value


def _unary(base: Any) -> Callable[[Any], Any]:
    """`lseg '((1,0),(1,1))'` is a text of that type, whatever type it is."""
    from sqlglot import TokenType, exp

    def parse_unary(parser: Any) -> Any:
        named = parser._curr
        if named.token_type is not TokenType.VAR or parser._next.token_type is not TokenType.STRING:
            return base._parse_unary(parser)
        parser._advance()
        kind = exp.DataType(this=exp.DType.USERDEFINED, kind=exp.to_identifier(named.text))
        return parser._parse_column_ops(parser.expression(exp.Cast(this=parser._parse_primary(), to=kind)))

    return parse_unary


def _at_time_zone(base: Any) -> Callable[[Any, Any], Any]:
    """AT LOCAL beside AT TIME ZONE."""

    def parse_at_time_zone(parser: Any, this: Any) -> Any:
        if parser._match_text_seq("AT", "LOCAL"):
            return this
        return base._parse_at_time_zone(parser, this)

    return parse_at_time_zone


def _ordered(base: Any) -> Callable[..., Any]:
    """ORDER BY a USING > beside ASC and DESC."""
    from sqlglot import TokenType

    def parse_ordered(parser: Any, parse_method: Any = None) -> Any:
        found = base._parse_ordered(parser, parse_method)
        if found is not None:
            parser._match_pair(TokenType.USING, TokenType.LT) or parser._match_pair(TokenType.USING, TokenType.GT)
        return found

    return parse_ordered


def _placed(parser: Any) -> exp.Expr:
    """A `?` or `?1`, with its place in the text."""
    from sqlglot import TokenType, exp

    made = exp.Placeholder()
    made.meta[sql_change.AT] = parser._prev.start
    if parser._curr and parser._curr.token_type is TokenType.NUMBER and parser._curr.start == parser._prev.end + 1:
        parser._advance()
        made.meta[sql_change.NUMBERED] = True
    return made


def _tokenizing(engine: Grammar) -> Grammar:
    """The grammar without `$tag$ … $tag$`, which `sql_text` blanks or refuses: its tokenizer takes `$1,$2` for the
    beginning of one."""
    from sqlglot import TokenType

    kind = type(engine)
    base = kind.tokenizer_class
    changed = {name: TokenType.PARAMETER if token is TokenType.HEREDOC_STRING else token
               for name, token in base.SINGLE_TOKENS.items()}  # fmt: skip
    tokenizer = type("Tokenizer", (base,), {"HEREDOC_STRINGS": [], "SINGLE_TOKENS": changed})
    made: Grammar = type(f"Reading{kind.__name__}", (kind,), {"Tokenizer": tokenizer})()
    return made


# --- PostgreSQL's operators ------------------------------------------------------------------------------------------


def _demand_plain_names(tokens: list[Token], names: frozenset[str]) -> None:
    """`"TRIM"(a)` is a function of somebody's; the parser would read the engine's own."""
    from sqlglot import TokenType

    for token, behind in itertools.pairwise(tokens):
        quoted = token.token_type is TokenType.IDENTIFIER and behind.token_type is TokenType.L_PAREN
        if quoted and token.text.upper() in names:
            unreadable("a function is named in quotes", hint="Write the function's name without quotes.")


def _with_operators(tokens: list[Token]) -> Iterator[Token]:
    """The words again, with each operator as one."""
    run: list[Token] = []
    for token in tokens:
        signs = _SIGNS.issuperset(token.text) and token.end - token.start + 1 == len(token.text)
        if run and not (signs and run[-1].end + 1 == token.start):
            yield from _cut(run)
            run = []
        if signs:
            run.append(token)
        else:
            yield token
    yield from _cut(run)


def _cut(run: list[Token]) -> Iterator[Token]:
    from sqlglot import TokenType

    text = "".join(token.text for token in run)
    if len(text) > _LONGEST_RUN:
        unreadable("it has too many signs side by side")
    begun = {token.start - run[0].start: token for token in run}
    at = 0
    while at < len(text):
        operator = _operator(text[at:])
        parts = [begun[place] for place in range(at, at + len(operator)) if place in begun]
        if "".join(part.text for part in parts) == operator and (
            operator in _SHIFTS or (len(parts) == 1 and operator not in _MISTAKEN)
        ):
            yield from parts
        else:
            start = run[0].start + at
            yield type(run[0])(
                TokenType.CARET_AT, text=operator, line=run[0].line, col=run[0].col, start=start,
                end=start + len(operator) - 1,
            )  # fmt: skip
        at += len(operator)


def _operator(signs: str) -> str:
    """The first operator of a run of signs."""
    if "--" in signs or "/*" in signs:
        unreadable("its comments can be read in two ways", hint="Leave comments out.")
    if not _ODD_SIGNS.isdisjoint(signs):
        return signs
    end = len(signs)
    while end > 1 and signs[end - 1] in "+-":
        end -= 1
    return signs[:end]
