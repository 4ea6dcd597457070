"""Tables and columns of a PostgreSQL database, as far as the grant and the database's role both let them be read.

Asks the catalogs in fixed statements with bound values. A table of `public` goes by its bare name, one of another
schema by `schema.table`, as in the policy. Comments come along, cut: they are text of strangers, which the line cleans
like every other. Rows are counted where that is cheap; the server's estimate is given elsewhere, and none where row
security hides rows, for an estimate would count the hidden ones. Standard library only; runs in a cage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcage.tools.postgres_client import Client
from toolcage.tools.sql_answer import no_such_table

MAX_COMMENT_CHARACTERS = 300
COUNTED_BYTES = 32 * 1024 * 1024
_KINDS = {"r": "table", "p": "table", "v": "view", "m": "view", "f": "table"}
_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relrowsecurity, c.reltuples::bigint, pg_relation_size(c.oid),
 quote_ident(n.nspname) || '.' || quote_ident(c.relname), obj_description(c.oid, 'pg_class'), c.relispartition
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
 AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname <> 'public', n.nspname, c.relname LIMIT 5000
"""
_COLUMNS = """
SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
 EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)),
 col_description(a.attrelid, a.attnum)
FROM pg_attribute a WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
 AND has_column_privilege(a.attrelid, a.attnum, 'SELECT') ORDER BY a.attrelid, a.attnum LIMIT 20000
"""
_FOREIGN = """
SELECT k.conrelid, a.attname, k.confrelid, b.attname
FROM (SELECT oid, conrelid, confrelid, generate_subscripts(conkey, 1) AS at, conkey, confkey
 FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY ($1::oid[]) AND confrelid = ANY ($1::oid[])) k
JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[k.at]
JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[k.at]
ORDER BY k.oid, k.at LIMIT 5000
"""


@dataclass(frozen=True)
class _Table:
    oid: str
    name: str
    kind: str
    hides_rows: bool
    estimate: int
    size: int
    quoted: str
    comment: str | None
    is_part: bool


def described(
    client: Client, terms: Mapping[str, Any], table: str | None, max_tables: int, max_columns: int
) -> tuple[list[dict[str, Any]], int]:
    """The readable tables, or the one asked for, and how many there are. Raises ToolFailure, and as the client does."""
    readable = _readable(client, terms)
    chosen = readable if table is None else [item for item in readable if item.name == _plain_name(table)]
    if table is not None and not chosen:
        raise no_such_table()
    excepted = frozenset(str(pair) for pair in terms.get("columns_except") or ())
    columns = _columns(client, readable, excepted)
    foreign = _foreign_keys(client, readable, columns)
    budget = COUNTED_BYTES
    made = []
    for item in chosen[:max_tables]:
        one: dict[str, Any] = {
            "name": item.name,
            "kind": _KINDS[item.kind],
            "columns": [*columns[item.oid].values()][:max_columns],
            "foreign_keys": foreign[item.oid],
        }
        if item.kind in ("r", "p", "f"):
            countable = item.kind == "r" and item.size <= budget
            budget -= item.size if countable else 0
            count, estimated = _row_count(client, item, countable=countable)
            one |= {"row_count": count, "rows_estimated": estimated}
        made.append(one | _comment(item.comment))
    return made, len(chosen)


def _readable(client: Client, terms: Mapping[str, Any]) -> list[_Table]:
    found = [
        _Table(
            oid=str(oid), name=str(name) if schema == "public" else f"{schema}.{name}", kind=str(kind),
            hides_rows=secured == "t", estimate=int(rows or -1), size=int(size or 0), quoted=str(quoted),
            comment=comment, is_part=part == "t",
        )
        for oid, schema, name, kind, secured, rows, size, quoted, comment, part in client.ask(_TABLES)
    ]  # fmt: skip
    granted = terms.get("tables")
    if granted is None:
        return [item for item in found if not item.is_part]
    return [item for item in found if item.name in granted]


def _columns(
    client: Client, tables: Sequence[_Table], excepted: frozenset[str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """oid → column → what is told of it."""
    names = {item.oid: item.name for item in tables}
    found: dict[str, dict[str, dict[str, Any]]] = {oid: {} for oid in names}
    for oid, name, kind, required, key, comment in client.ask(_COLUMNS, _oids(tables)):
        if f"{names[str(oid)]}.{name}".lower() in excepted:
            continue
        found[str(oid)][str(name)] = {
            "name": name,
            "type": kind,
            "nullable": required != "t",
            "primary_key": key == "t",
            **_comment(comment),
        }
    return found


def _foreign_keys(
    client: Client, tables: Sequence[_Table], columns: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[dict[str, str]]]:
    """oid → keys whose both ends may be read."""
    names = {item.oid: item.name for item in tables}
    found: dict[str, list[dict[str, str]]] = {oid: [] for oid in names}
    for own, column, other, target in client.ask(_FOREIGN, _oids(tables)):
        if column in columns[str(own)] and target in columns[str(other)]:
            found[str(own)].append({"column": str(column), "references": f"{names[str(other)]}.{target}"})
    return found


def _row_count(client: Client, table: _Table, *, countable: bool) -> tuple[int | None, bool]:
    if countable:
        # the server's own quoting of its own name, never the caller's
        ((count,),) = client.ask(f"SELECT count(*) FROM {table.quoted}")  # noqa: S608
        return int(count or 0), False
    return (None if table.hides_rows or table.estimate < 0 else table.estimate), True


def _oids(tables: Sequence[_Table]) -> bytes:
    return ("{" + ",".join(item.oid for item in tables) + "}").encode()


def _comment(text: str | None) -> dict[str, str]:
    return {} if not text else {"comment": text[:MAX_COMMENT_CHARACTERS]}


def _plain_name(table: str) -> str:
    """The name as the policy has it: without case, and without the schema that is meant anyway."""
    lowered = table.translate({upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)})
    return lowered.removeprefix("public.")
