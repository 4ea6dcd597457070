"""Asks a PostgreSQL server what the configured role may do that a tool's role should not.

The role is the boundary of a database tool: a statement that the screen misreads can still do only what the role may.
Rights are counted with everything that the role can become (`SET ROLE`). Source: PostgreSQL's documentation on
predefined roles and privileges. It asks the catalog only, and finds no fault in what the operator's own functions do.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.broker import postgres_wire as wire
from toolcage.broker.buffered import Ended
from toolcage.broker.dial import Resolve, system_resolve
from toolcage.broker.postgres_login import Login, PostgresConfig, log_in, refusal
from toolcage.broker.stream import Denied

Weight = Literal["problem", "advice"]
MOST_ROWS: Final = 200
_QUESTION: Final = """
WITH me AS (SELECT r.* FROM pg_catalog.pg_roles r WHERE pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER')),
 theirs AS (SELECT n.oid, n.nspname, n.nspowner FROM pg_catalog.pg_namespace n
  WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')
SELECT 'problem', 'is or can become the superuser ' || rolname FROM me WHERE rolsuper
UNION ALL SELECT 'problem', 'bypasses row security (' || rolname || ')' FROM me WHERE rolbypassrls AND NOT rolsuper
UNION ALL SELECT 'problem', 'may replicate (' || rolname || ')' FROM me WHERE rolreplication AND NOT rolsuper
UNION ALL SELECT 'problem', 'may make roles (' || rolname || ')' FROM me WHERE rolcreaterole AND NOT rolsuper
UNION ALL SELECT 'problem', 'may make databases (' || rolname || ')' FROM me WHERE rolcreatedb AND NOT rolsuper
UNION ALL SELECT 'problem', 'is a member of ' || rolname FROM me WHERE rolname IN ('pg_read_server_files',
  'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend', 'pg_write_all_data', 'pg_checkpoint',
  'pg_maintain', 'pg_create_subscription')
UNION ALL SELECT 'advice', 'is a member of ' || rolname || ', so it reads more than it was granted' FROM me
  WHERE rolname IN ('pg_read_all_data', 'pg_read_all_settings', 'pg_read_all_stats', 'pg_monitor')
UNION ALL SELECT 'problem', 'owns the database' FROM pg_catalog.pg_database d JOIN me ON me.oid = d.datdba
  WHERE d.datname = pg_catalog.current_database()
UNION ALL SELECT 'problem', 'owns the schema ' || nspname FROM theirs JOIN me ON me.oid = nspowner
UNION ALL SELECT 'problem', 'owns ' || nspname || '.' || relname FROM pg_catalog.pg_class c
  JOIN theirs ON theirs.oid = c.relnamespace JOIN me ON me.oid = c.relowner WHERE c.relkind IN ('r','p','v','m','f','S')
UNION ALL SELECT 'problem', 'may make schemas in the database'
  WHERE pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
UNION ALL SELECT 'problem', 'may create in the schema ' || nspname FROM theirs
  WHERE pg_catalog.has_schema_privilege(theirs.oid, 'CREATE')
UNION ALL SELECT 'advice', 'may make temporary tables'
  WHERE pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP')
UNION ALL SELECT 'problem', 'may call ' || p.proname || ' of ' || e.extname || ', which reaches outside the database'
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
  WHERE e.extname IN ('dblink', 'adminpack', 'file_fdw', 'http', 'pg_net')
  AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
UNION ALL SELECT 'problem', 'may write functions in ' || l.lanname FROM pg_catalog.pg_language l
  WHERE NOT l.lanpltrusted AND l.lanname NOT IN ('internal', 'c')
  AND pg_catalog.has_language_privilege(l.oid, 'USAGE')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One right too many."""

    weight: Weight
    text: str


async def examine(
    config: PostgresConfig, *, connect_s: float, resolve: Resolve = system_resolve
) -> tuple[Finding, ...]:
    """What the role may do that it should not; empty when it is narrow. Raises Denied when it cannot be asked."""
    login = await log_in(config, connect_s=connect_s, count=lambda _: None, resolve=resolve)
    try:
        rows = await _ask(login, _QUESTION)
        await login.stream.close()
    except (Ended, ConnectionError):
        raise Denied("egress.protocol", "the database server ended the session", config.place) from None
    finally:
        login.stream.abort()
    return tuple(Finding(weight="advice" if row[0] == "advice" else "problem", text=row[-1]) for row in rows)


async def _ask(login: Login, sql: str) -> list[list[str]]:
    """The rows of one statement, values as text. Raises Denied, Ended."""
    await login.stream.write(wire.message(b"Q", wire.text(sql)))
    rows: list[list[str]] = []
    while True:
        kind, content = await wire.read_small(login.reader)
        match kind:
            case b"Z":
                return rows
            case b"E":
                raise refusal(content)
            case b"D" if len(rows) < MOST_ROWS:
                rows.append(_row(content))
            case _:
                continue


def _row(content: bytes) -> list[str]:
    (count,) = struct.unpack_from("!h", content)
    values, at = [], 2
    for _ in range(max(0, count)):
        (length,) = struct.unpack_from("!i", content, at)
        at += 4
        values.append(content[at : at + max(0, length)].decode("utf-8", "replace"))
        at += max(0, length)
    return values or [""]
