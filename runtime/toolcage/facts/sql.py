"""Reads one SQL text into facts: what it would read, call and change, in the engine's own sense of names.

Decides nothing about permission. It refuses only what it cannot read with certainty: a text that the parser rejects,
that is too large or too deep, or that the parser and the engine's lexical rules (`sql_text`) would cut differently.

Trusts sqlglot to build the tree but not to classify it: every node class met is listed in `node_types`, so that the
screen can allow by name, and function names are kept as written (the parser's translation table is emptied). Names are
resolved per scope: a CTE hides a table only where the engine says so. Where a bare column could belong to several
tables it is listed once for each of them; `(None, column)` means that no table could be named at all.

Deliberately knows no schema. A view, a synonym or a generated column is what the engine's own guard is for.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from toolcage.errors import Refused
from toolcage.facts import sql_change, sql_grammar, sql_text
from toolcage.facts.sql_change import SqlChange
from toolcage.facts.sql_text import Dialect, unreadable
from toolcage.types import Facts

if TYPE_CHECKING:
    from sqlglot import Token, exp

MAX_NODES: Final = 4000
MAX_DEPTH: Final = 120
MAX_TOKENS: Final = 6000

Purpose = Literal["read", "change"]
CHANGE_ROOTS: Final = frozenset({"insert", "update", "delete"})
QUERY_ROOTS: Final = frozenset({"select", "union", "intersect", "except", "values"})
# Stands in `node_types` for INDEXED BY and NOT INDEXED, of which the parser makes no node.
INDEX_CHOICE: Final = "IndexChoice"
# The same for INSERT OR REPLACE, INSERT OVERWRITE, DELETE of several tables and their like.
CHANGE_OPTION: Final = "ChangeOption"
_QUERY_WORDS: Final = frozenset({"select", "with", "values", "table", ""})
_WRITING: Final = frozenset(
    {"Insert", "Update", "Delete", "Merge", "Into", "Lock", "Copy", "LoadData", "TruncateTable"}
)
# Syntax of their own rather than a call that the parser leaves anonymous: the name that the engine will look up.
_SYNTAX_FUNCTIONS: Final = {
    "CurrentDate": "current_date", "CurrentTime": "current_time", "CurrentTimestamp": "current_timestamp",
    "Localtime": "localtime", "Localtimestamp": "localtimestamp", "CurrentUser": "current_user",
    "CurrentRole": "current_role", "CurrentCatalog": "current_catalog", "CurrentSchema": "current_schema",
    "SessionUser": "session_user", "Substring": "substring", "Trim": "trim", "StrPosition": "position",
    "Overlay": "overlay", "Extract": "extract", "Unnest": "unnest", "Overlaps": "overlaps", "Glob": "glob",
    "Like": "like", "Match": "match", "JSONExtract": "->", "JSONExtractScalar": "->>",
}  # fmt: skip
# The operators among these; each dialect's screen judges the operator by its node, PostgreSQL has no such functions.
_SQLITE_ONLY: Final = frozenset({"glob", "like", "match", "->", "->>"})
# In PostgreSQL `c.to_json` may be the call to_json(c), which reads the whole row: the functions of one row that tell of
# more than its type. Those of its own that do more than compute all begin with `pg_`.
_ROW_READERS: Final = frozenset(
    {"any_value", "array_agg", "concat", "hash_record", "hash_record_extended", "hstore", "json_agg", "json_agg_strict",
     "json_build_array", "json_build_object", "jsonb_agg", "jsonb_agg_strict", "jsonb_build_array",
     "jsonb_build_object", "max", "min", "mode", "num_nonnulls", "num_nulls", "quote_literal", "quote_nullable",
     "record_out", "record_send", "row_to_json", "to_json", "to_jsonb"}
)  # fmt: skip
_ENGINE_PREFIX: Final = "pg_"

# `a <> ALL (array)`, a call to the parser. Words that PostgreSQL reserves: unquoted they are no function's name.
_COMPARED_WITH_EACH: Final = frozenset({"all", "some"})

# `'x'::regclass` and its kin, arrays of them too, say what there is, granted or not; text search is configured openly.
_LOOKING_UP: Final = re.compile(
    r"_?(?:reg(?:class|collation|database|namespace|oper|operator|proc|procedure|role|type)|aclitem)"
)
_NUMBERS_AND_CONFIGURATIONS: Final = frozenset({"oid", "regconfig", "regdictionary"})
_OPERATOR: Final = re.compile(r"other|(?:pg_catalog\.)?[+\-*/<>=~!@#%^&|`?]+")
_ALWAYS_REFUSED: Final = frozenset({INDEX_CHOICE, CHANGE_OPTION})
# Parts of a larger part, which is looked at as a whole.
_NAMES: Final = frozenset({"Identifier", "Star", "With"})
# What may stand behind a call and belongs to it.
_CALL_CLAUSES: Final = frozenset({"Filter", "WithinGroup", "RespectNulls", "IgnoreNulls", "Window"})
_INSERT_OPTIONS: Final = ("overwrite", "alternative", "ignore", "exists", "partition", "by_name", "stored", "source",
                          "settings", "is_function", "where")  # fmt: skip
_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFacts(Facts):
    """What one SQL text would do.

    `statements` counts statements. `word` is the first word of the text, `root` the class of the first statement's
    tree, lower case (`select`, `insert`, `attach`, `pragma`, `command` …). `tables` are real tables, lower case, with
    their schema where one was written and it is not `main`; a name quoted with upper case in PostgreSQL keeps it, since
    it is another table there. `columns` are (table, column) pairs of real tables, always lower case. `star_tables` are
    tables of which every column is read. `functions` are names as the engine looks them up, `table_functions` those
    that stand where a table does. `writes` is true when any part changes or locks rows or tables.

    Of a text that is meant to change (`purpose`): `changes` counts the places that change a table, `columns` holds
    those that are written too, `written` are these alone (`*`: whole rows), spelled as `tables` are, and `narrowed`
    says that a WHERE of an UPDATE or DELETE looks at a column. `change` is the whole of it, for SQLite.
    """

    kind: Literal["sql"] = "sql"
    dialect: Dialect = "sqlite"
    statements: int = 0
    word: str = ""
    root: str = ""
    tables: frozenset[str] = frozenset()
    columns: frozenset[tuple[str | None, str]] = frozenset()
    star_tables: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    table_functions: frozenset[str] = frozenset()
    node_types: frozenset[str] = frozenset()
    writes: bool = False
    purpose: Purpose = "read"
    changes: int = 0
    written: frozenset[tuple[str, str]] = frozenset()
    narrowed: bool = False
    change: SqlChange | None = None


def read(text: str, dialect: Dialect = "sqlite", purpose: Purpose = "read") -> SqlFacts:
    """The facts of `text`, which is meant to read or to change. Raises Refused (blocked) with code `sql.unreadable`,
    `sql.too_long`, `sql.too_deep`, `sql.too_large`, `sql.nul` or `sql.multiple_statements` when it cannot be read with
    certainty."""
    spans = sql_text.scan(text, dialect)
    word = _first_word(text)
    try:
        tokens, trees = _parse(spans.plain, dialect)
    except Refused:
        # A statement that is no query is named for what it is, even where the parser does not know all of its syntax.
        if word in _QUERY_WORDS or (purpose == "change" and word in CHANGE_ROOTS):
            raise
        return SqlFacts(
            dialect=dialect, statements=1, word=word, root="command", node_types=frozenset({"Command"}), purpose=purpose
        )
    reader = _Reader(dialect, purpose)
    reader.read_all(trees)
    begun = SqlFacts(dialect=dialect, purpose=purpose, statements=len(trees), word=word, root=_root(trees))
    facts = reader.facts(begun)
    may_run = QUERY_ROOTS | CHANGE_ROOTS if purpose == "change" else QUERY_ROOTS
    if facts.root in may_run and facts.statements == 1:
        _demand_agreement(spans, tokens)
    if purpose == "change" and dialect == "sqlite" and facts.statements == 1:
        return replace(facts, change=sql_change.read_change(trees[0], sql_grammar.placeholders(tokens), facts.tables))
    return facts


# --- parsing -------------------------------------------------------------------------------------------------------


def _first_word(text: str) -> str:
    rest = text.lstrip(" \t\r\n(;")
    while rest.startswith(("--", "/*")):
        _, _, rest = rest.partition("\n" if rest.startswith("--") else "*/")
        rest = rest.lstrip(" \t\r\n(;")
    end = 0
    while end < len(rest) and end < 32 and (rest[end].isalnum() or rest[end] == "_"):
        end += 1
    return rest[:end].lower()


def _parse(text: str, dialect: Dialect) -> tuple[list[Token], list[exp.Expr]]:
    engine, parser = sql_grammar.grammar(dialect)
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel, SqlglotError

    token = sql_grammar.reading.set(True)
    try:
        tokens = sql_grammar.words(text, dialect)
        if len(tokens) > MAX_TOKENS:
            unreadable("it has too many words", code="sql.too_large")
        parsed = parser(dialect=engine, error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except RecursionError:
        unreadable("it is nested too deeply", code="sql.too_deep")
    except (SqlglotError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # The parser's own slips on odd input arrive as these; each is a statement that it cannot read.
        unreadable(_parser_reason(error))
    finally:
        sql_grammar.reading.reset(token)
    return tokens, [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]


def _parser_reason(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if details and (line := details[0].get("line")):
        return f"the parser stopped at line {line}, column {details[0].get('col')}"
    return "the parser does not understand it"


def _root(trees: list[exp.Expr]) -> str:
    from sqlglot import exp

    if not trees:
        return ""
    tree = trees[0]
    while isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        tree = tree.this
    return type(tree).__name__.lower()


def _demand_agreement(spans: sql_text.Spans, tokens: list[Token]) -> None:
    """The parser must have seen exactly the quoted spans and semicolons that the engine will see, and its words must
    cover all that is no comment there, and nothing of a comment: PostgreSQL ends `#--` before the comment, and a
    parser that knows `#-` reads the comment's text, or takes the next line for one."""
    from sqlglot import TokenType

    text = spans.plain
    theirs: list[tuple[int, int]] = []
    semicolons = end = 0
    ended = False
    for token in tokens:
        if ended and token.token_type is not TokenType.SEMICOLON:
            unreadable("something follows the statement", code="sql.multiple_statements")
        ended = ended or (end > 0 and token.token_type is TokenType.SEMICOLON)
        covered = slice(token.start, token.end + 1)
        if spans.bare[end : token.start].strip() or spans.bare[covered] != text[covered]:
            unreadable("its comments can be read in two ways", hint="Leave comments out.")
        end = token.end + 1
        if token.token_type is TokenType.SEMICOLON:
            semicolons += 1
        last = text[token.end]
        if last in "'\"`]" and token.token_type not in (TokenType.R_BRACKET, TokenType.L_BRACKET):
            start = token.start + (text[token.start] in "xXbBeE" and text[token.start + 1] == "'")
            theirs.append((start, token.end))
    if tuple(theirs) != spans.quoted or semicolons != spans.semicolons or spans.bare[end:].strip():
        unreadable("its quotes or comments can be read in two ways")


# --- names ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """One item of a FROM clause: the name it goes by, and the real table it stands for (None = a derived table)."""

    name: str
    table: str | None


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names mean at one place: CTEs in view, and the FROM items of this query and of those around it."""

    ctes: frozenset[str] = frozenset()
    levels: tuple[tuple[_Source, ...], ...] = ()

    def within(self, *sources: _Source) -> _Scope:
        return replace(self, levels=(sources, *self.levels))


_DERIVED: Final = _Source("", None)


@dataclass(slots=True)
class _Reader:
    """Walks the trees once. Its sets only grow, so that nothing met can be forgotten."""

    dialect: Dialect
    purpose: Purpose = "read"
    nodes: int = 0
    depth: int = 0
    tables: set[str] = field(default_factory=set)
    columns: set[tuple[str | None, str]] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    table_functions: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    changes: int = 0
    written: set[tuple[str, str]] = field(default_factory=set)
    narrowed: bool = False

    def read_all(self, trees: list[exp.Expr]) -> None:
        try:
            for tree in trees:
                self.visit(tree, _Scope())
                self._demand_all_seen(tree)
        except RecursionError:
            unreadable("it is nested too deeply", code="sql.too_deep")

    def facts(self, begun: SqlFacts) -> SqlFacts:
        return replace(
            begun,
            tables=frozenset(self.tables),
            columns=frozenset(self.columns),
            star_tables=frozenset(self.stars),
            functions=frozenset(self.functions),
            table_functions=frozenset(self.table_functions),
            node_types=frozenset(self.types),
            writes=bool(self.types & _WRITING),
            changes=self.changes,
            written=frozenset(self.written),
            narrowed=self.narrowed,
        )

    # -- the walk

    def _demand_all_seen(self, tree: exp.Expr) -> None:
        """No handler may have passed over a part of what could run: what it did not look at would be in no fact."""
        if type(tree).__name__.lower() not in QUERY_ROOTS | CHANGE_ROOTS | {"subquery"} or self.types & _ALWAYS_REFUSED:
            return
        if any(id(node) not in self.seen and type(node).__name__ not in _NAMES for node in tree.walk()):
            unreadable("the parser built a part that is not understood")

    def visit(self, node: exp.Expr, scope: _Scope) -> None:
        self.seen.add(id(node))
        name = type(node).__name__
        if name == "ObjectIdentifier" and str(node.this).lower() in _NUMBERS_AND_CONFIGURATIONS:
            name = "DataType"
        self._met(name)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            unreadable("it is nested too deeply", code="sql.too_deep")
        handler = _HANDLERS.get(name) or (_CHANGE_HANDLERS.get(name) if self.purpose == "change" else None)
        if handler is None:
            self.children(node, scope)
        else:
            handler(self, node, scope)
        self.depth -= 1

    def children(self, node: exp.Expr, scope: _Scope, *, skip: tuple[str, ...] = ()) -> None:
        for key, value in node.args.items():
            if key not in skip:
                for child in _expressions(value):
                    self.visit(child, scope)

    def _met(self, name: str) -> None:
        self.types.add(name)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            unreadable("it has too many parts", code="sql.too_large")
        function = _SYNTAX_FUNCTIONS.get(name)
        if function is not None and (self.dialect == "sqlite" or function not in _SQLITE_ONLY):
            self.functions.add(function)

    # -- queries

    def _select(self, node: exp.Expr, scope: _Scope) -> None:
        scope = self._with(node, scope)
        sources = tuple(source for item in _from_items(node) for source in self._sources_of(item, scope))
        inner = scope.within(*sources)
        for item in _from_items(node):
            self._from_item(item, inner, scope)
        for projection in node.args.get("expressions") or ():
            if type(projection).__name__ == "Star":
                self._star(sources)
            self.visit(projection, inner)
        self.children(node, inner, skip=("with_", "from_", "joins", "laterals", "expressions"))

    def _set_operation(self, node: exp.Expr, scope: _Scope) -> None:
        scope = self._with(node, scope)
        for side in ("this", "expression"):
            self.visit(node.args[side], scope)
        # ORDER BY here names output columns only
        self.children(node, scope.within(_DERIVED), skip=("with_", "this", "expression"))

    def _subquery(self, node: exp.Expr, scope: _Scope) -> None:
        if type(node.this).__name__ == "Table":  # a parenthesised join, met outside of a FROM clause
            self.visit(node.this, scope)
        scope = self._with(node, scope)
        if type(node.this).__name__ != "Table":
            self.visit(node.this, scope)
        self.children(node, scope.within(_DERIVED), skip=("with_", "this"))

    def _with(self, node: exp.Expr, scope: _Scope) -> _Scope:
        """Visits the CTEs of `node` and returns the scope in which their names stand for them."""
        clause = node.args.get("with_")
        if clause is None:
            return scope
        self._met("With")
        named = [(self._fold(cte.args["alias"].this), cte) for cte in clause.expressions]
        after = replace(scope, ctes=scope.ctes | {name for name, _ in named})
        # SQLite sees all names of one WITH from everywhere in it; PostgreSQL so only after RECURSIVE.
        everywhere = self.dialect == "sqlite" or bool(clause.args.get("recursive"))
        before = scope
        for name, cte in named:
            self.visit(cte, after if everywhere else before)
            before = replace(before, ctes=before.ctes | {name})
        self.children(clause, after, skip=("expressions",))
        return after

    # -- FROM

    def _sources_of(self, item: exp.Expr, scope: _Scope) -> Iterator[_Source]:
        """The names that `item`, and what is joined inside it, add to a FROM clause."""
        kind = type(item).__name__
        if kind in ("From", "Join"):
            yield from self._sources_of(item.this, scope)
            return
        alias = item.args.get("alias")
        name = self._fold(alias.this) if alias is not None and alias.this is not None else ""
        if kind == "Table" and type(item.this).__name__ == "Identifier":
            table = None if self._is_cte(item, scope) else self._table_name(item)
            yield _Source(name or self._fold(item.this), table)
        elif kind == "Subquery" and _is_join(item):
            inner = list(self._sources_of(item.this, scope))
            yield from (_Source(name, source.table) for source in inner) if name else inner
        else:
            yield _Source(name, None)
        for join in item.args.get("joins") or ():
            yield from self._sources_of(join, scope)

    def _is_cte(self, table: exp.Expr, scope: _Scope) -> bool:
        return not table.args.get("db") and self._fold(table.this) in scope.ctes

    def _from_item(self, item: exp.Expr, inner: _Scope, outer: _Scope) -> None:
        """`inner` sees the FROM clause itself, which only join conditions, LATERAL and function arguments may."""
        kind = type(item).__name__
        self.seen.add(id(item))
        if kind in ("From", "Join"):
            self._met(kind)
            self._from_item(item.this, inner, outer)
            self._join_columns(item, inner)
            self.children(item, inner, skip=("this", "using"))
        elif kind == "Subquery":
            self._met(kind)
            if _is_join(item):
                self._from_item(item.this, inner, outer)
            else:
                self.visit(item.this, self._with(item, outer))
            self._nested_joins(item, inner, outer)
            self.children(item, inner, skip=("this", "joins", "with_"))
        elif kind == "Table":
            self._met(kind)
            self._table(item, inner)
            self._nested_joins(item, inner, outer)
        else:
            self.visit(item, inner)

    def _nested_joins(self, item: exp.Expr, inner: _Scope, outer: _Scope) -> None:
        for join in item.args.get("joins") or ():
            self._from_item(join, inner, outer)

    def _join_columns(self, join: exp.Expr, inner: _Scope) -> None:
        for name in join.args.get("using") or ():
            self._met(type(name).__name__)
            self._bare_column(name.name.lower(), inner.levels[:1])
        if join.args.get("method") == "NATURAL":
            self._star(inner.levels[0])

    def _table(self, node: exp.Expr, scope: _Scope) -> None:
        this = node.this
        alias = node.args.get("alias")
        nameless = alias is not None and alias.this is None
        if type(this).__name__ == "Identifier" and (nameless or node.args.get("ordinality")):
            # FROM rollup (a) and FROM update (1) WITH ORDINALITY are calls.
            unreadable("a table is named in a way that is not understood")
        self.seen.add(id(node))
        if type(this).__name__ == "Identifier":
            self._met("Identifier")
            self._called_without_parentheses(this)
            if not self._is_cte(node, scope):
                self.tables.add(self._table_name(node))
                if alias is not None and alias.args.get("columns"):
                    self.stars.add(self._table_name(node).lower())  # its columns go by other names from here on
        elif this is not None and type(this).__name__ == "Anonymous":
            self.table_functions.add(self._function_name(this, node.args.get("db")))
            self.visit(this, scope)
        elif not node.args.get("rows_from"):
            unreadable("a table is named in a way that is not understood")
        if node.args.get("indexed") is not None:  # False stands for NOT INDEXED
            self.types.add(INDEX_CHOICE)
        self.children(node, scope, skip=("this", "db", "catalog", "joins", "indexed"))

    def _table_anywhere(self, node: exp.Expr, scope: _Scope) -> None:
        """A table met outside of a FROM clause: the target of a change, or part of a statement of another kind."""
        self._table(node, scope)
        self._nested_joins(node, scope.within(*self._sources_of(node, scope)), scope)

    def _table_name(self, node: exp.Expr) -> str:
        parts = [self._fold(part) for key in ("catalog", "db", "this") if (part := node.args.get(key))]
        # Where a name without a schema is looked up: the session that runs the statement sees to that.
        if len(parts) == 2 and parts[0] == ("main" if self.dialect == "sqlite" else "public"):
            parts = parts[1:]
        return ".".join(parts)

    # -- changes

    def _insert(self, node: exp.Expr, scope: _Scope) -> None:
        scope = self._with(node, scope)
        target = node.this
        columns = None
        if type(target).__name__ == "Schema":
            self._met("Schema")
            self.seen.add(id(target))
            target, columns = target.this, target.expressions
        inner = scope.within(self._target(target, scope))
        name = self._table_name(target).lower()
        for column in columns or ():
            if type(column).__name__ != "Identifier":
                unreadable("a column is named in a way that is not understood")
            self._met("Identifier")
            self.columns.add((name, column.name.lower()))
            self.written.add((self._table_name(target), self._fold(column)))
        if not columns:
            self.stars.add(name)
        if not columns or node.args.get("conflict"):
            self.written.add((self._table_name(target), "*"))
        if any(node.args.get(option) for option in _INSERT_OPTIONS):
            self.types.add(CHANGE_OPTION)
        if (rows := node.args.get("expression")) is not None:
            self.visit(rows, scope)
        self._rest_of_change(node, inner, skip=("this", "expression", "with_"))

    def _update(self, node: exp.Expr, scope: _Scope) -> None:
        scope = self._with(node, scope)
        self._change(node, scope, _from_items(node), skip=("this", "with_", "from_", "joins", "laterals"))
        name = self._table_name(node.this)
        self.written |= {(name, column) for item in node.expressions for column in self._set_by(item.this)}

    def _set_by(self, left: Any) -> Iterator[str]:
        """The columns that the left side of SET names; a part of a composite column counts, and so does the column."""
        kind = type(left).__name__
        if kind == "Tuple":
            for item in left.expressions:
                yield from self._set_by(item)
        elif kind == "Bracket":
            yield from self._set_by(left.this)
        elif kind == "Column":
            yield from (self._fold(part) for key in ("this", "table", "db", "catalog") if (part := left.args.get(key)))
        else:
            yield "*"

    def _delete(self, node: exp.Expr, scope: _Scope) -> None:
        scope = self._with(node, scope)
        if node.args.get("tables"):
            self.types.add(CHANGE_OPTION)
        self._change(node, scope, node.args.get("using") or [], skip=("this", "with_", "using", "tables"))
        self.written.add((self._table_name(node.this), "*"))

    def _change(self, node: exp.Expr, scope: _Scope, items: list[exp.Expr], *, skip: tuple[str, ...]) -> None:
        target = self._target(node.this, scope)
        inner = scope.within(target, *(source for item in items for source in self._sources_of(item, scope)))
        for item in items:
            self._from_item(item, inner, scope)
        where = node.args.get("where")
        if where is not None and any(type(part).__name__ == "Column" for part in where.walk()):
            self.narrowed = True
        self._rest_of_change(node, inner, skip=skip)

    def _target(self, table: Any, scope: _Scope) -> _Source:
        self.changes += 1
        if type(table).__name__ != "Table" or type(table.this).__name__ != "Identifier":
            unreadable("the table that is to be changed is not understood")
        if table.args.get("joins"):
            self.types.add(CHANGE_OPTION)
        self._met("Table")
        self._table(table, replace(scope, ctes=frozenset()))  # no CTE can be changed: the name is a real table's
        alias = table.args.get("alias")
        name = self._fold(alias.this) if alias is not None and alias.this is not None else self._fold(table.this)
        return _Source(name, self._table_name(table))

    def _rest_of_change(self, node: exp.Expr, inner: _Scope, *, skip: tuple[str, ...]) -> None:
        returning = node.args.get("returning")
        if returning is not None and any(type(item).__name__ == "Star" for item in returning.expressions):
            self._star(inner.levels[0])
        self.children(node, inner, skip=skip)

    # -- columns

    def _column(self, node: exp.Expr, scope: _Scope) -> None:
        for key in ("this", "table", "db", "catalog"):
            if part := node.args.get(key):
                self._met(type(part).__name__)
                self.seen.add(id(part))
        table = node.args.get("table")
        if type(node.this).__name__ in _CALL_CLAUSES:
            self._qualified_call(node, scope)
        elif type(node.this).__name__ not in ("Identifier", "Star") and not self._is_text_for_a_name(node.this):
            unreadable("a column is named in a way that is not understood")
        elif type(node.this).__name__ == "Star":
            self._star(self._named(self._fold(table), scope) if table else scope.levels[0])
        elif table is None:
            self._called_without_parentheses(node.this)
            self._bare_column(node.name.lower(), scope.levels)
            self._whole_row(self._fold(node.this), scope)
        else:
            self._qualified_column(self._fold(table), node.name.lower(), scope)

    def _is_text_for_a_name(self, node: exp.Expr) -> bool:
        return self.dialect == "sqlite" and type(node).__name__ == "Literal" and bool(node.args.get("is_string"))

    def _qualified_call(self, node: exp.Expr, scope: _Scope) -> None:
        """`schema.f(…) FILTER (…)`, which the parser calls a column."""
        call: Any = node.this
        while type(call).__name__ in _CALL_CLAUSES:
            call = call.this
        if type(call).__name__ != "Anonymous":
            unreadable("a function is named in a way that is not understood")
        self.functions.add("?" if node.args.get("db") else self._function_name(call, node.args["table"]))
        self.visit(node.this, scope)

    def _bare_column(self, column: str, levels: tuple[tuple[_Source, ...], ...]) -> None:
        """Every real table in view may be the one meant: without the schema nobody can tell."""
        sources = [source for level in levels for source in level]
        found = {(source.table.lower(), column) for source in sources if source.table is not None}
        self.columns |= found or (set() if sources else {(None, column)})

    def _qualified_column(self, qualifier: str, column: str, scope: _Scope) -> None:
        # Of every query around this one too: SQLite looks further out when the inner table lacks the column.
        found = [source for level in scope.levels for source in level if source.name == qualifier]
        if not found:
            self.columns.add((None, column))
        self._called_by_name(column)
        for source in found:
            if source.table is not None:
                self.columns.add((source.table.lower(), column))
                if self.dialect == "postgres" and column in _ROW_READERS:
                    self.stars.add(source.table.lower())

    def _called_by_name(self, field: str) -> None:
        """`c.pg_typeof` and `(c).pg_typeof` may be calls in PostgreSQL."""
        if self.dialect == "postgres" and field.startswith(_ENGINE_PREFIX):
            self.functions.add(field)

    def _called_without_parentheses(self, name: exp.Expr) -> None:
        """A word that PostgreSQL reserves since version 16 and that is new to the parser."""
        if self.dialect == "postgres" and not name.args.get("quoted") and name.name.lower() == "system_user":
            self.functions.add("system_user")

    def _whole_row(self, name: str, scope: _Scope) -> None:
        """A bare name that is also the name of a FROM item may mean its whole row."""
        self._star(self._named(name, scope))

    def _named(self, name: str, scope: _Scope) -> list[_Source]:
        for level in scope.levels:
            if found := [source for source in level if source.name == name]:
                return found
        return []

    def _star(self, sources: Iterable[_Source]) -> None:
        self.stars |= {source.table.lower() for source in sources if source.table is not None}

    # -- types

    def _type(self, node: exp.Expr, scope: _Scope) -> None:
        """A type by a name of its own. Those that look names up in the catalog tell what is there."""
        kind: Any = node.args.get("kind")
        names = [part.name for part in kind.walk() if type(part).__name__ == "Identifier"] if _is_node(kind) else [kind]
        for name in names:
            if isinstance(name, str) and _LOOKING_UP.fullmatch(name.lower()):
                self.types.add("ObjectIdentifier")
        self.children(node, scope)

    # -- the rest

    def _operator(self, node: exp.Expr, scope: _Scope) -> None:
        """An operator that the parser has no name for. One of another schema is a function of somebody's."""
        if not _OPERATOR.fullmatch(str(node.args.get("operator"))):
            unreadable("an operator is named in a way that is not understood", hint="Write the operator alone.")
        self.children(node, scope)

    def _membership(self, node: exp.Expr, scope: _Scope) -> None:
        """`x IN t`, without parentheses, reads the table t in SQLite; the parser calls it a column, and 't' a text."""
        target = node.args.get("field")
        if target is not None and type(target).__name__ == "Literal" and target.args.get("is_string"):
            self._whole_table("main", self._fold(target))
        elif target is not None and type(target).__name__ == "Anonymous":
            self.table_functions.add(self._function_name(target, None))
        elif target is not None and type(target).__name__ != "Column":
            unreadable("what stands after IN is not understood", hint="Write IN (...) with parentheses.")
        elif target is not None:
            table = target.args.get("table")
            name = self._fold(target.this)
            if table is not None or name not in scope.ctes:
                self._whole_table(self._fold(table) if table is not None else "main", name)
        self.children(node, scope)

    def _whole_table(self, schema: str, name: str) -> None:
        full = name if schema == "main" else f"{schema}.{name}"
        self.tables.add(full)
        self.stars.add(full.lower())

    def _call(self, node: exp.Expr, scope: _Scope) -> None:
        if self.dialect == "postgres" and isinstance(node.this, str) and node.name.lower() in _COMPARED_WITH_EACH:
            self._met("All")
        else:
            self.functions.add(self._function_name(node, None))
        self.children(node, scope)

    def _dot(self, node: exp.Expr, scope: _Scope) -> None:
        """`schema.function(...)`, or a field of a row value."""
        call = node.args.get("expression")
        if call is not None and type(call).__name__ == "Anonymous":
            self.functions.add(self._function_name(call, node.this))
            self._met("Anonymous")
            self.seen.add(id(call))
            self.children(call, scope)
            self.visit(node.this, scope)
        else:
            if call is not None and type(call).__name__ == "Identifier":
                self._called_by_name(call.name.lower())
            self.children(node, scope)

    def _function_name(self, call: exp.Expr, schema: exp.Expr | None) -> str:
        """`pg_catalog` is where built-in functions live; any other schema stays part of the name."""
        name = self._called(call)
        if schema is None:
            return name
        prefix = self._fold(schema) if type(schema).__name__ == "Identifier" else "?"
        return name if self.dialect == "postgres" and prefix == "pg_catalog" else f"{prefix}.{name}"

    def _called(self, call: exp.Expr) -> str:
        """A function's name as the engine compares it: in quotes, PostgreSQL keeps its case."""
        return self._fold(call.this) if type(call.this).__name__ == "Identifier" else call.name.lower()

    def _fold(self, identifier: exp.Expr) -> str:
        """A name as the engine compares it: ASCII case is folded, in PostgreSQL not inside quotes."""
        if self.dialect == "postgres" and identifier.args.get("quoted"):
            return identifier.name
        return identifier.name.translate(_ASCII_LOWER)


def _from_items(node: exp.Expr) -> list[exp.Expr]:
    clause = node.args.get("from_")
    return [*([clause] if clause else ()), *(node.args.get("joins") or ()), *(node.args.get("laterals") or ())]


def _is_join(parentheses: exp.Expr) -> bool:
    """Whether they hold a table or a join, which may begin with a query in parentheses, rather than a query."""
    return type(parentheses.this).__name__ in ("Table", "Subquery") and not parentheses.args.get("with_")


def _is_node(value: Any) -> bool:
    return isinstance(getattr(value, "args", None), dict)


def _expressions(value: Any) -> list[exp.Expr]:
    """The tree nodes in one slot of a node. A slot of a shape that is not known here could hide some: refused."""
    if value is None or isinstance(value, bool | int | str | enum.Enum):
        return []
    if isinstance(value, list):
        return [child for item in value for child in _expressions(item)]
    if not _is_node(value):
        unreadable("the parser built a part that is not understood")
    return [value]


_HANDLERS: Final[Mapping[str, Any]] = {
    "Select": _Reader._select,
    "Union": _Reader._set_operation,
    "Intersect": _Reader._set_operation,
    "Except": _Reader._set_operation,
    "Subquery": _Reader._subquery,
    "Table": _Reader._table_anywhere,
    "Column": _Reader._column,
    "Anonymous": _Reader._call,
    "Dot": _Reader._dot,
    "In": _Reader._membership,
    "DataType": _Reader._type,
    "Operator": _Reader._operator,
}
_CHANGE_HANDLERS: Final[Mapping[str, Any]] = {
    "Insert": _Reader._insert,
    "Update": _Reader._update,
    "Delete": _Reader._delete,
}
