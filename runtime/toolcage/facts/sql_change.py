"""What a change of rows says about itself, beyond names: its table, the columns it writes, and every plain value in it.

Of a SQLite statement the host must know this much without running it: the statement itself runs in a cage, on a copy,
and what the cage then proposes is held against what is read here. A *plain* value stands in the call, as a literal or
as a parameter; a plain condition is one of those that AND joins at the top of the WHERE, and compares columns of the
table with plain values and nothing else, in whatever way AND, OR and NOT join that. What is not plain (an expression,
a function, a subquery) is left out here and is the cage's word.

Refuses what would make these uncertain: parameters of a style that the engine and the parser count differently. Trusts
the tree that `sql` has walked. Source: sqlite.org/lang_expr.html#varparam.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from toolcage.facts.sql_text import unreadable

if TYPE_CHECKING:
    from sqlglot import exp

Operation: TypeAlias = Literal["insert", "update", "delete"]
Comparison: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT", "IN", "BETWEEN"]
AT: Final = "at"
"""Where the parser of `sql` notes a `?`'s place in the text."""
NUMBERED: Final = "numbered"
"""Where it notes that a number followed."""
_COMPARISONS: Final[dict[str, Comparison]] = {
    "EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "IS", "Is": "IS",
}  # fmt: skip
_MANY_TABLES: Final = frozenset({"Select", "From", "Join", "Subquery", "Union", "Intersect", "Except", "Exists"})
_CHOOSING: Final = frozenset({"Order", "Limit", "Offset"})
"""Of an UPDATE or DELETE: which rows it is about depends on the others."""
_LARGEST: Final = 2**63 - 1
_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_REPAIR: Final = "Write ? for values and pass them in order, or :name and pass them by name."


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A value that the call itself holds: `literal`, or the parameter of that place (0 is the first) or name."""

    literal: int | str | None = None
    parameter: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One plain condition. `values` has one, for IN any number, for BETWEEN two."""

    column: str
    comparison: Comparison
    values: tuple[Plain, ...]

    def columns(self) -> Iterator[str]:
        """The columns that it looks at."""
        yield self.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Plain conditions that a word joins: one for NOT, two for AND and OR."""

    word: Literal["AND", "OR", "NOT"]
    parts: tuple[Condition | Joined, ...]

    def columns(self) -> Iterator[str]:
        """The columns that it looks at."""
        for part in self.parts:
            yield from part.columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlChange:
    """One INSERT, UPDATE or DELETE of one table. Names are lower case (ASCII), as SQLite compares them.

    `columns` are written, in the statement's order; None = an INSERT that names none, so all of them. `values` has a
    tuple for each row of VALUES, in an UPDATE one for SET; None stands for what is not plain, and for all of an INSERT
    from a query. `names` are all columns that the statement names, where it has no other table. `returning` are columns
    of RETURNING, `*` for all; `returns_more`: it returns something else than columns. `reads_others`: what changes may
    depend on more than the rows that change; `tables` are all that the statement names.
    """

    operation: Operation
    table: str
    columns: tuple[str, ...] | None = ()
    values: tuple[tuple[Plain | None, ...], ...] | None = ()
    conditions: tuple[Condition | Joined, ...] = ()
    names: frozenset[str] = frozenset()
    returning: tuple[str, ...] = ()
    returns_more: bool = False
    reads_others: bool = False
    tables: frozenset[str] = frozenset()

    @property
    def computes(self) -> bool:
        """Whether it writes a value that is not plain."""
        return self.values is None or any(value is None for row in self.values for value in row)


def read_change(tree: exp.Expr, places: Sequence[int], tables: frozenset[str]) -> SqlChange | None:
    """The change that `tree` is, None for any other statement. `places` are those of each `?`, `tables` all tables of
    the statement. Raises Refused (blocked)."""
    operation = type(tree).__name__.lower()
    if operation not in ("insert", "update", "delete"):
        return None
    return _Reader(tree, places, tables).read(operation)  # type: ignore[arg-type]


class _Reader:
    def __init__(self, tree: exp.Expr, places: Sequence[int], tables: frozenset[str]) -> None:
        self._tree = tree
        self._nodes = list(tree.walk())
        self._tables = tables
        self._order = {place: number for number, place in enumerate(sorted(places))}
        target = tree.this.this if type(tree.this).__name__ == "Schema" else tree.this
        self._table = _fold(target.this.name)
        alias = target.args.get("alias")
        self._known_as = _fold(alias.this.name) if alias is not None and alias.this is not None else self._table
        kinds = {type(node).__name__ for node in self._nodes}
        self._alone = tables <= {self._table} and not kinds & _MANY_TABLES
        self._chooses = bool(kinds & _CHOOSING)
        self._beside = any(tree.args.get(key) for key in ("from_", "using", "joins", "laterals"))

    def read(self, operation: Operation) -> SqlChange:
        self._check_parameters()
        columns, values = {"insert": self._inserted, "update": self._updated, "delete": self._deleted}[operation]()
        returned = self._tree.args.get("returning")
        returning = [] if returned is None else [self._returned(item) for item in returned.expressions]
        return SqlChange(
            operation=operation, table=self._table, columns=columns, values=values,
            conditions=tuple(self._conditions()),
            names=frozenset(self._names()) if self._alone else frozenset(),
            returning=tuple(name for name in returning if name), returns_more=None in returning,
            reads_others=not self._alone or self._chooses, tables=self._tables,
        )  # fmt: skip

    def _check_parameters(self) -> None:
        """SQLite takes `$x` and `@x` for parameters, the parser for something else; and Python binds by place what has
        a name. Each style alone is certain."""
        marks = [node for node in self._nodes if type(node).__name__ == "Placeholder"]
        named = [node for node in marks if node.args.get("this") is not None]
        odd = [node for node in self._nodes if type(node).__name__ in ("Parameter", "SessionParameter")]
        odd += [node for node in self._nodes if type(node).__name__ == "Identifier" and node.name.startswith("$")]
        odd += [node for node in marks if node.meta.get(NUMBERED)]
        if odd or (named and len(named) < len(marks)) or any(not isinstance(node.this, str) for node in named):
            unreadable("its parameters can be counted in two ways", hint=_REPAIR)
        if len(self._order) != len(marks) - len(named) or any(
            node.meta.get(AT) not in self._order for node in marks if node not in named
        ):
            unreadable("its parameters can be counted in two ways", hint=_REPAIR)

    # -- what is written

    def _inserted(self) -> tuple[tuple[str, ...] | None, tuple[tuple[Plain | None, ...], ...] | None]:
        target, rows = self._tree.this, self._tree.args.get("expression")
        named = type(target).__name__ == "Schema"
        columns = tuple(_fold(column.name) for column in target.expressions) if named else None
        if self._tree.args.get("default") or rows is None:
            return (), ((),)
        if type(rows).__name__ != "Values":
            return columns, None
        return columns, tuple(tuple(self._plain(item) for item in _items(row)) for row in rows.expressions)

    def _updated(self) -> tuple[tuple[str, ...], tuple[tuple[Plain | None, ...], ...]]:
        columns: list[str] = []
        values: list[Plain | None] = []
        for item in self._tree.expressions:
            left, right = item.this, item.args.get("expression")
            names = left.expressions if type(left).__name__ == "Tuple" else [left]
            if type(item).__name__ != "EQ" or any(type(name).__name__ != "Column" for name in names):
                unreadable("what SET writes is not understood")
            columns += [_fold(name.name) for name in names]
            if len(names) == 1 and type(left).__name__ == "Column":
                values.append(self._plain(right))
            else:
                rights = right.expressions if type(right).__name__ == "Tuple" else []
                matched = len(rights) == len(names)
                values += [self._plain(one) for one in rights] if matched else [None] * len(names)
        return tuple(columns), (tuple(values),)

    def _deleted(self) -> tuple[tuple[str, ...], tuple[tuple[Plain | None, ...], ...]]:
        return (), ()

    # -- conditions

    def _conditions(self) -> Iterator[Condition | Joined]:
        where = self._tree.args.get("where")
        waiting = [] if where is None else [where.this]
        while waiting:
            node = waiting.pop()
            kind = type(node).__name__
            if kind == "And":
                waiting += [node.this, node.args["expression"]]
            elif kind == "Paren":
                waiting.append(node.this)
            elif (found := self._condition(node)) is not None:
                yield found

    def _condition(self, node: Any) -> Condition | Joined | None:
        kind = type(node).__name__
        if kind == "Paren":
            return self._condition(node.this)
        if kind == "Not":
            inner = node.this
            if type(inner).__name__ == "Is" and type(inner.args["expression"]).__name__ == "Null":
                return self._made(inner.this, "IS NOT", [inner.args["expression"]])
            return self._joined("NOT", [inner])
        if kind in ("And", "Or"):
            return self._joined("AND" if kind == "And" else "OR", [node.this, node.args["expression"]])
        return self._compared(node, kind)

    def _joined(self, word: Literal["AND", "OR", "NOT"], nodes: Sequence[Any]) -> Joined | None:
        found = [self._condition(node) for node in nodes]
        parts = tuple(part for part in found if part is not None)
        return Joined(word=word, parts=parts) if len(parts) == len(nodes) else None

    def _compared(self, node: Any, kind: str) -> Condition | None:
        if kind == "In":
            others = [key for key, value in node.args.items() if value and key not in ("this", "expressions")]
            return None if others else self._made(node.this, "IN", node.expressions)
        if kind == "Between":
            both = [node.args.get("low"), node.args.get("high")]
            return None if node.args.get("symmetric") else self._made(node.this, "BETWEEN", both)
        if kind in ("Is", "NullSafeEQ") and type(node.args.get("expression")).__name__ == "Boolean":
            return None  # asks whether it is true, not whether it is 1
        if kind in _COMPARISONS:
            return self._made(node.this, _COMPARISONS[kind], [node.args.get("expression")])
        return None

    def _made(self, left: Any, comparison: Comparison, right: Sequence[Any]) -> Condition | None:
        plain = [self._plain(item) for item in right]
        values = tuple(value for value in plain if value is not None)
        column = self._column(left)
        return None if column is None or len(values) < len(plain) else Condition(
            column=column, comparison=comparison, values=values
        )  # fmt: skip

    # -- parts

    def _column(self, node: Any, *, alone: bool = False) -> str | None:
        """The name of a column of the table; a bare one may be another table's, unless it is `alone`."""
        if type(node).__name__ != "Column" or type(node.this).__name__ != "Identifier" or node.args.get("db"):
            return None
        table = node.args.get("table")
        ours = alone or not self._beside if table is None else _fold(table.name) == self._known_as
        return _fold(node.name) if ours else None

    def _names(self) -> Iterator[str]:
        for node in self._nodes:
            if (name := self._column(node)) is not None:
                yield name

    def _returned(self, node: Any) -> str | None:
        if type(node).__name__ == "Star" and not any(node.args.values()):
            return "*"
        return self._column(node, alone=True)  # other tables have no part in RETURNING

    def _plain(self, node: Any) -> Plain | None:
        kind = type(node).__name__
        if kind == "Placeholder":
            name = node.args.get("this")
            return Plain(parameter=self._order[node.meta[AT]] if name is None else name)
        if kind == "Null":
            return Plain()
        if kind == "Boolean":
            return Plain(literal=int(node.this))
        if kind == "Literal" and node.args.get("is_string"):
            return Plain(literal=node.this)
        sign = -1 if kind == "Neg" else 1
        number = node.this if kind == "Neg" else node
        # A fraction is left to the engine: it reads the last bits of one in its own way.
        if type(number).__name__ == "Literal" and not number.args.get("is_string"):
            written = str(number.this)
            if written.isascii() and written.isdigit() and len(written) < 20 and int(written) <= _LARGEST:
                return Plain(literal=sign * int(written))
        return None


def _items(row: Any) -> list[Any]:
    return list(row.expressions) if type(row).__name__ == "Tuple" else [row]


def _fold(name: str) -> str:
    return name.translate(_ASCII_LOWER)
