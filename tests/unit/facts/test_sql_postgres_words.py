"""PostgreSQL cuts texts, comments and operators by rules of its own, and has calls with words between their arguments.

What it would read must be in the facts however it is spelled: each of these hid something from the parser once.
"""

import pytest

from toolcage.errors import Refused
from toolcage.facts.sql import read


@pytest.mark.threat("R17")
@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT E'a\\', (SELECT b FROM secret) -- '", set()),
        ("SELECT E'a\\\\', (SELECT b FROM secret) -- '", {"secret"}),
        ("SELECT e'a\\\\\\', (SELECT b FROM secret) -- '", set()),
        ("SELECT E'a\\''', (SELECT b FROM secret) -- '", set()),
        ("SELECT 'a\\', (SELECT b FROM secret) -- '", {"secret"}),
        ("SELECT xE 'a\\', (SELECT b FROM secret) -- '", {"secret"}),
        ("SELECT xE'a\\', (SELECT b FROM secret) -- '", {"secret"}),
        ("SELECT $$ ', (SELECT b FROM secret) -- $$", set()),
        ("SELECT $$ $a$ $$, (SELECT b FROM secret) -- $a$", {"secret"}),
        ("SELECT $a$ $$ $a$, (SELECT b FROM secret) -- $$", {"secret"}),
        ("SELECT $a$ $$ ', (SELECT b FROM secret) -- $$ $a$", set()),
        ("SELECT $日$ $$ $日$, (SELECT b FROM secret) -- $$", {"secret"}),
        ("SELECT '$$', (SELECT b FROM secret) -- $$", {"secret"}),
        ("SELECT $1,$a$ FROM secret --$a$", set()),
        ("SELECT $1, '$a$' FROM secret --$a$", {"secret"}),
    ],
)
def test_texts_with_escapes_and_in_dollars_end_where_postgres_ends_them(text: str, tables: set[str]) -> None:
    assert read(text, "postgres").tables == tables


@pytest.mark.threat("R17")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 #--/*\n (SELECT b FROM secret) --*/ 1",
        "SELECT r -|--/*\n (SELECT b FROM secret) --*/ s FROM t",
        "SELECT 1 ||/* -- */ (SELECT b FROM secret)\n",
    ],
)
def test_a_comment_that_begins_within_signs_hides_no_table(text: str) -> None:
    """PostgreSQL ends an operator before `--` and `/*`; a parser that knows a longer one reads on, or stops reading."""
    with pytest.raises(Refused) as caught:
        read(text, "postgres")
    assert caught.value.refusal.code == "sql.unreadable"


@pytest.mark.threat("R17")
@pytest.mark.parametrize("sign", ["@", "#-", "<->", "%", "*"])
def test_a_comment_behind_an_operator_ends_where_postgres_ends_it(sign: str) -> None:
    assert read(f"SELECT 1 {sign}/* -- */ (SELECT b FROM secret)\n", "postgres").tables == {"secret"}
    assert read(f"SELECT 1 {sign} --/*\n (SELECT b FROM secret) --*/ 1", "postgres").tables == {"secret"}


@pytest.mark.threat("R17")
@pytest.mark.parametrize(
    "expression",
    [
        "1 *@secret", "@secret", "1 #?secret", "r ?#secret", "a <#>secret", "a %>secret", "|/secret", "||/ secret",
        "# secret", "@-@secret", "!!secret", "tags[1:secret]", "tags[secret:]", "a <->@secret", "1 - -secret",
        "a OPERATOR(pg_catalog.+) secret", "lseg 'a' ?-| secret", "a AT TIME ZONE secret", "a BETWEEN 1 AND @secret",
        "json_object('a': secret)", "json_value(j, '$.a' DEFAULT secret ON EMPTY)", "xmlforest(1, secret AS b)",
        "json_exists(j, '$.a' PASSING secret AS b)", "json_arrayagg(a ORDER BY secret)", "xmlparse(CONTENT secret)",
        "xmlelement(NAME a, xmlattributes(secret AS b))", "pg_catalog.max(secret) FILTER (WHERE true)",
        "pg_catalog.mode() WITHIN GROUP (ORDER BY secret)", "pg_catalog.max(a) FILTER (WHERE secret)",
        "pg_catalog.rank(1) WITHIN GROUP (ORDER BY a) FILTER (WHERE secret)",
    ],
)  # fmt: skip
def test_a_column_is_seen_behind_every_operator_and_clause(expression: str) -> None:
    facts = read(f"SELECT {expression} FROM t", "postgres")
    assert ("t", "secret") in facts.columns
    assert facts.tables == {"t"}


@pytest.mark.threat("R17")
@pytest.mark.parametrize(
    "source",
    [
        "json_table(t.secret, '$' COLUMNS (a int PATH '$'))",
        "json_table(j, '$' PASSING t.secret AS x COLUMNS (a int PATH '$', NESTED PATH '$.b' COLUMNS (c int)))",
        "json_table(j, '$' COLUMNS (NESTED '$.b' AS n COLUMNS (c int DEFAULT t.secret ON EMPTY)))",
    ],
)
def test_a_column_is_seen_in_tables_made_of_json(source: str) -> None:
    facts = read(f"SELECT * FROM t, {source} AS made", "postgres")
    assert ("t", "secret") in facts.columns
    assert facts.table_functions == {"json_table"}


@pytest.mark.threat("R17")
@pytest.mark.parametrize(
    "field", ["max", "any_value", "json_build_array", "jsonb_agg_strict", "record_send", "hash_record"]
)
def test_a_field_that_is_a_call_reads_the_whole_row(field: str) -> None:
    assert read(f"SELECT o.{field} FROM orders o", "postgres").star_tables == {"orders"}
    assert not read(f"SELECT o.{field} FROM orders o", "sqlite").star_tables


@pytest.mark.threat("R17")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM values orders",
        "SELECT * FROM (VALUES 1, 2) AS v",
        "SELECT * FROM update (1, 3) WITH ORDINALITY",
        "SELECT * FROM a, rollup (b)",
        "SELECT json_object('a' VALUE 1 UNLESS b)",
        "SELECT json_table('{}', '$')",
        "SELECT xmlparse(a)",
        "SELECT xmlelement(a)",
        "SELECT * FROM json_table(j, '$' COLUMNS a int)",
        "SELECT * FROM json_table(j, '$' COLUMNS (a int WHERE b)) AS x",
        "SELECT a = ? FROM t",
        "SELECT " + "+" * 19_000 + "1",
        "SELECT a = :b FROM t",
        "SELECT a = %s FROM t",
        "SELECT a OPERATOR(public.+) b FROM t",
        'SELECT a OPERATOR("PG_CATALOG".+) b FROM t',
    ],
)
def test_what_is_no_sql_of_postgres_or_reaches_an_operator_of_somebody_is_not_read(text: str) -> None:
    with pytest.raises(Refused) as caught:
        read(text, "postgres")
    assert caught.value.refusal.code == "sql.unreadable"
