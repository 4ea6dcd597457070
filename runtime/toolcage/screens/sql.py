"""The floor for SQL: one statement that only reads. No grant lifts it.

Everything is an allowlist: the root of the statement, every node of its tree, every function by name, the schemas a
table may be in. What is not listed is refused, whatever the parser calls it: sqlglot labels a data-modifying CTE,
SELECT INTO and a call of pg_read_file all as a SELECT. The more specific codes (`sql.writes`, `sql.attach` …) only
say the same refusal better.

Trusts the facts. It is one of two independent layers: for SQLite the engine's own guard in the cage holds the same
lines without this one, for PostgreSQL the role's rights do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

from toolcage.errors import Refused
from toolcage.facts.sql import INDEX_CHOICE, QUERY_ROOTS, SqlFacts
from toolcage.facts.sql_functions import POSTGRES_FUNCTIONS, SQLITE_FUNCTIONS, SQLITE_TABLE_FUNCTIONS
from toolcage.types import Refusal

_QUERY_NODES: Final = """
    Select From Join Where Group Having Order Ordered Limit Offset Union Intersect Except Subquery With CTE Values
    Tuple Table TableAlias Alias Column Identifier Star Distinct Window WindowSpec Filter
"""
_VALUE_NODES: Final = """
    Literal Null Boolean HexString Placeholder Parameter Var
    JSONPath JSONPathRoot JSONPathKey JSONPathSubscript JSONPathWildcard JSONPathSlice JSONPathRecursive JSONPathUnion
"""
_EXPRESSION_NODES: Final = """
    Anonymous Cast DataType DataTypeParam Case If And Or Not Paren EQ NEQ GT GTE LT LTE Is In Between Like Escape
    Exists Neg Add Sub Mul Div IntDiv Mod DPipe BitwiseAnd BitwiseOr BitwiseNot BitwiseLeftShift BitwiseRightShift
    Collate CurrentDate CurrentTime CurrentTimestamp JSONExtract JSONExtractScalar NullSafeEQ NullSafeNEQ
"""
_POSTGRES_NODES: Final = """
    Array ArrayContainsAll ArrayContainedBy ArrayOverlaps Bracket Slice Dot Lateral Unnest WithinGroup GroupingSets
    Rollup Cube Fetch LimitOptions All Any ILike SimilarTo RegexpLike RegexpILike BitwiseXor Pow Interval IntervalSpan
    AtTimeZone Extract Substring Trim StrPosition Overlay Overlaps Localtime Localtimestamp JSONBExtract
    JSONBExtractScalar JSONBContains JSONBContainsTopKey JSONBContainsAllTopKeys JSONBContainsAnyTopKeys BitString
    ByteString RespectNulls IgnoreNulls Kwarg PropertyEQ Variadic MatchAgainst Distance JSON JSONBPathExists
    JSONBDeleteAtPath Operator Adjacent ExtendsLeft ExtendsRight ColumnDef TableSample RecursiveWithSearch
"""
_COMMON_NODES: Final = frozenset(
    node for group in (_QUERY_NODES, _VALUE_NODES, _EXPRESSION_NODES) for node in group.split()
)
NODES: Final = {"sqlite": _COMMON_NODES | {"Glob", "Match"}, "postgres": _COMMON_NODES.union(_POSTGRES_NODES.split())}
_FUNCTIONS: Final = {"sqlite": SQLITE_FUNCTIONS, "postgres": POSTGRES_FUNCTIONS}
_TABLE_FUNCTIONS: Final = {"sqlite": SQLITE_TABLE_FUNCTIONS, "postgres": POSTGRES_FUNCTIONS}

_WRITING_NODES: Final = frozenset(
    {"Insert", "Update", "Delete", "Merge", "Into", "Lock", "Copy", "LoadData", "TruncateTable", "Returning"}
)
_DEFINING_NODES: Final = frozenset(
    {
        "Create",
        "Drop",
        "Alter",
        "Comment",
        "Refresh",
        "Cache",
        "Uncache",
        "Grant",
        "Revoke",
        "Clone",
        "Attach",
        "Detach",
    }
)
_COMMAND_NODES: Final = frozenset({"Command", "Describe", "Set", "Use", "Kill", "Show", "Analyze", "Pragma", "Execute"})

# By the statement's first word: these say what it is even where the parser takes it for something else.
WORDS: Final = {
    **dict.fromkeys(("attach", "detach"), "sql.attach"),
    "pragma": "sql.pragma",
    **dict.fromkeys(
        ("insert", "update", "delete", "replace", "merge", "truncate", "copy", "upsert", "load", "import"), "sql.writes"
    ),
    **dict.fromkeys(("create", "drop", "alter", "comment", "grant", "revoke", "refresh", "rename"), "sql.defines"),
    **dict.fromkeys(
        ("begin", "start", "commit", "rollback", "end", "abort", "savepoint", "release", "prepare"), "sql.transaction"
    ),
    **dict.fromkeys(
        ("explain", "vacuum", "reindex", "analyze", "describe", "desc", "show", "set", "reset", "use", "call", "do",
         "execute", "exec", "deallocate", "declare", "fetch", "close", "listen", "notify", "unlisten", "lock",
         "cluster", "checkpoint", "discard", "kill", "security", "cache", "uncache", "install"), "sql.command"
    ),
}  # fmt: skip
_MESSAGES: Final = {
    "sql.attach": ("ATTACH and DETACH are not possible here.", "Query the database that the call names."),
    "sql.pragma": (
        "PRAGMA is not possible, as a statement or as a table.",
        "Use describe_database for the schema.",
    ),
    "sql.writes": ("The statement changes or locks data; only reading is possible.", "Send a plain SELECT."),
    "sql.defines": (
        "The statement changes the database's definition; only reading is possible.",
        "Send a plain SELECT.",
    ),
    "sql.transaction": ("Transactions cannot be controlled here.", "Send the SELECT alone."),
    "sql.command": ("The statement is a command of the database, not a query.", "Send a plain SELECT."),
}

_SQLITE_ENGINE_TABLES: Final = frozenset(
    {"dbstat", "bytecode", "tables_used", "completion", "fsdir", "zipfile", "memstat"}
)
_POSTGRES_SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "pg_catalog", "pg_toast", "pg_temp"})


def screen(facts: SqlFacts) -> None:
    """Returns nothing for one statement that only reads. Raises Refused (blocked) that names what stands against it."""
    _one_statement(facts)
    _root(facts)
    _nodes(facts)
    screen_names(facts)


def screen_names(facts: SqlFacts) -> None:
    """The functions and tables of a statement, whatever it is for. Raises Refused (blocked)."""
    _functions(facts)
    _tables(facts)


def _one_statement(facts: SqlFacts) -> None:
    if facts.statements == 0:
        refuse("sql.empty", "The SQL holds no statement.", "Send one SELECT statement.")
    if facts.statements > 1:
        refuse(
            "sql.multiple_statements",
            f"The SQL holds {facts.statements} statements; one at a time is possible.",
            "Send one SELECT per call.",
        )


def _root(facts: SqlFacts) -> None:
    if facts.root in QUERY_ROOTS:
        return
    if code := WORDS.get(facts.word):
        refuse(code, *_MESSAGES[code])
    _classes(facts.node_types)
    refuse(
        "sql.not_select",
        f"The SQL is not a query: it begins with `{facts.word or facts.root}`.",
        "Send one SELECT statement.",
    )


def _nodes(facts: SqlFacts) -> None:
    _classes(facts.node_types)
    if INDEX_CHOICE in facts.node_types:
        refuse(
            "sql.index_choice",
            "The SQL chooses an index, and its order would tell what the index is over.",
            "Leave INDEXED BY and NOT INDEXED out.",
        )
    if outside := sorted(facts.node_types - NODES[facts.dialect]):
        refuse(
            "sql.node_not_allowed",
            f"The SQL uses syntax that is not allowed: {listed(outside)}.",
            "SQLite has no REGEXP: use LIKE or GLOB."
            if "RegexpLike" in outside
            else "Write the query with plain SELECT syntax.",
        )


def _classes(nodes: frozenset[str]) -> None:
    """The common classes of what is not allowed, with a code of their own."""
    for names, code in (
        (frozenset({"Attach", "Detach"}), "sql.attach"),
        (frozenset({"Pragma"}), "sql.pragma"),
        (_WRITING_NODES, "sql.writes"),
        (_DEFINING_NODES, "sql.defines"),
        (frozenset({"Transaction", "Commit", "Rollback"}), "sql.transaction"),
        (_COMMAND_NODES, "sql.command"),
    ):
        if nodes & names:
            refuse(code, *_MESSAGES[code])


def _functions(facts: SqlFacts) -> None:
    if "load_extension" in facts.functions:
        refuse("sql.load_extension", "load_extension would load code into the database.", "Leave it out.")
    if any(name.startswith("pragma_") for name in facts.functions | facts.table_functions):
        refuse("sql.pragma", *_MESSAGES["sql.pragma"])
    allowed = _FUNCTIONS[facts.dialect]
    if outside := sorted(facts.functions - allowed - (facts.table_functions & _TABLE_FUNCTIONS[facts.dialect])):
        refuse(
            "sql.function_not_allowed",
            f"The SQL calls a function that is not allowed: {listed(outside)}.",
            "Use the database's built-in functions that only compute.",
        )
    if outside := sorted(facts.table_functions - _TABLE_FUNCTIONS[facts.dialect]):
        refuse(
            "sql.function_not_allowed",
            f"The SQL reads from a function that is not allowed: {listed(outside)}.",
            "Read from tables.",
        )


def _tables(facts: SqlFacts) -> None:
    system = _sqlite_system if facts.dialect == "sqlite" else _postgres_system
    if any(name.rpartition(".")[2].startswith("pragma_") for name in facts.tables):
        refuse("sql.pragma", *_MESSAGES["sql.pragma"])
    if outside := sorted(name for name in facts.tables if system(name.lower())):
        refuse(
            "sql.system_table",
            f"The SQL reads the database's own tables, which is not allowed: {listed(outside)}.",
            "Use describe_database for the schema.",
        )


def _sqlite_system(name: str) -> bool:
    """`main` was dropped when the name was read, so a schema that is left is another file, or `temp`."""
    schema, _, table = name.rpartition(".")
    return bool(schema) or table.startswith("sqlite_") or table in _SQLITE_ENGINE_TABLES


def _postgres_system(name: str) -> bool:
    *schemas, table = name.split(".")
    return table.startswith("pg_") or any(
        schema in _POSTGRES_SYSTEM_SCHEMAS or schema.startswith("pg_") for schema in schemas
    )


def listed(names: Iterable[str]) -> str:
    """A few names, each cut to a readable length."""
    found = [f"`{name[:64]}`" for name in names]
    return ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")


def refuse(code: str, message: str, hint: str) -> NoReturn:
    """Raises the refusal."""
    raise Refused(Refusal(status="blocked", code=code, message=message, hint=hint))
