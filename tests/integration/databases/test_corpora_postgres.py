"""The public SQL corpora on a real PostgreSQL: bound values come back verbatim, pasted ones read at most.

Skipped where `../shared/corpora` (or TOOLCAGE_CORPORA) is not there. Pasted values go to the session twice: those that
pass the screen, and all of them with the screen absent, as a role that could write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Installation
from servers.postgres import PASSWORD_IN, PostgresServer, resources_text
from toolcage import PoolTerms
from toolcage.errors import Refused
from toolcage.facts.sql import read
from toolcage.screens.sql import screen
from toolcage.tools.base import ToolFailure
from toolcage.tools.query_database import QueryDatabase

FOLDER = Path(os.environ.get("TOOLCAGE_CORPORA", Path(__file__).resolve().parents[4] / "shared" / "corpora"))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no ../shared/corpora; set TOOLCAGE_CORPORA")
IN_A_CALL = 60
VALUES = ("sql_injection_fragments", "sql_lookalike_benign")
ANALYST = """
version: 1
role: analyst
tools:
  query_database:
    resources: {database: [shop]}
    allow:
      - sql: {tables: [orders], max_rows: 50}
    output: {max_bytes: 8MiB}
"""


def corpus(name: str) -> list[str]:
    content = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["text"] for line in content.split("\n") if line.strip()]


def state(postgres: PostgresServer) -> str:
    return postgres.query(
        "SELECT array_agg(o ORDER BY id) FROM orders o; SELECT array_agg(relname ORDER BY oid) FROM pg_class WHERE"
        " relnamespace <> 'pg_toast'::regnamespace; SELECT array_agg(proname ORDER BY oid) FROM pg_proc", "shop"
    )  # fmt: skip


@pytest.mark.docker
@pytest.mark.parametrize("name", VALUES)
def test_every_value_that_is_bound_comes_back_verbatim(
    installation: Installation, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(PASSWORD_IN, postgres.password)
    resources = installation.folder / "resources.yaml"
    resources.write_text(resources_text(postgres, "writer"))
    session = installation.runtime(ANALYST, resources=resources, pool=PoolTerms(min_idle=1)).session()
    values, before = corpus(name), state(postgres)
    for start in range(0, len(values), IN_A_CALL):
        part = values[start : start + IN_A_CALL]
        places = ", ".join(f"${number}" for number in range(1, len(part) + 1))
        sql = f"SELECT {places} FROM orders WHERE id = 1 OR customer = $1"
        result = session.call("query_database", {"database": "shop", "sql": sql, "parameters": part})
        assert result.status == "ok", result
        assert result.raw.data["rows"] == [part]
    assert state(postgres) == before


def pasted(text: str) -> str:
    return f"SELECT id, customer, total FROM orders WHERE customer = '{text}'"


def passes(text: str) -> bool:
    try:
        facts = read(pasted(text), "postgres")
        screen(facts)
    except Refused:
        return False
    return facts.tables <= {"orders"}


@pytest.mark.parametrize("name", VALUES)
def test_a_pasted_value_that_passes_the_gate_reads_the_granted_table_at_most(
    body: Callable[..., Any], postgres: PostgresServer, name: str
) -> None:
    before, answered = state(postgres), 0
    for text in filter(passes, corpus(name)):
        try:
            answer = body(QueryDatabase(), sql=pasted(text), user="reader", wall_s=2.0)
        except ToolFailure:
            continue
        answered += 1
        assert len(answer["columns"]) == 3
        assert 99 not in [cell for row in answer["rows"] for cell in row]
    assert answered > 0
    assert state(postgres) == before


@pytest.mark.long
@pytest.mark.parametrize("name", VALUES)
def test_a_pasted_value_writes_nothing_and_runs_as_one_statement_with_the_gate_absent(
    body: Callable[..., Any], postgres: PostgresServer, name: str
) -> None:
    before, answered = state(postgres), 0
    codes = {"sql"}
    for text in corpus(name):
        try:
            answer = body(QueryDatabase(), sql=pasted(text), user="writer", wall_s=1.5)
        except ToolFailure as failure:
            codes.add(failure.code.split(".")[0])
            continue
        answered += 1
        assert len(answer["columns"]) == 3
        assert "root:" not in json.dumps(answer["rows"])
    assert (answered > 0, codes) == (True, {"sql"})
    assert state(postgres) == before
