"""The floor for SQL without the engine's own guards: this layer alone stops every attack, and lets analysts work."""

import json
import os
import pathlib

import pytest

from toolcage.errors import Refused
from toolcage.facts.sql import read
from toolcage.screens import screen_facts

CORPORA = pathlib.Path(os.environ.get("TOOLCAGE_CORPORA") or pathlib.Path(__file__).parents[4] / "shared" / "corpora")


def screen(text: str, dialect: str = "sqlite") -> None:
    screen_facts(read(text, dialect))


def code_of(text: str, dialect: str = "sqlite") -> str:
    with pytest.raises(Refused) as caught:
        screen(text, dialect)
    assert caught.value.refusal.status == "blocked"
    assert caught.value.refusal.hint
    return caught.value.refusal.code


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "sql.empty"),
        ("-- nothing", "sql.empty"),
        ("SELECT 1; SELECT 2", "sql.multiple_statements"),
        ("SELECT 1; DROP TABLE t", "sql.multiple_statements"),
        ("ATTACH 'x' AS y", "sql.attach"),
        ("DETACH y", "sql.attach"),
        ("PRAGMA writable_schema = 1", "sql.pragma"),
        ("SELECT * FROM pragma_table_info('t')", "sql.pragma"),
        ("SELECT * FROM pragma_database_list", "sql.pragma"),
        ("SELECT 1 WHERE 1 IN pragma_table_list", "sql.pragma"),
        ("INSERT INTO t VALUES (1)", "sql.writes"),
        ("REPLACE INTO t VALUES (1)", "sql.writes"),
        ("UPDATE t SET a = 1", "sql.writes"),
        ("DELETE FROM t", "sql.writes"),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "sql.writes"),
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "sql.writes"),
        ("WITH x AS (SELECT 1) DELETE FROM t", "sql.writes"),
        ("SELECT * INTO x FROM t", "sql.writes"),
        ("SELECT * FROM t FOR UPDATE", "sql.writes"),
        ("CREATE TABLE x AS SELECT 1", "sql.defines"),
        ("CREATE VIEW v AS SELECT 1", "sql.defines"),
        ("CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END", "sql.multiple_statements"),
        ("DROP TABLE t", "sql.defines"),
        ("ALTER TABLE t RENAME TO u", "sql.defines"),
        ("BEGIN", "sql.transaction"),
        ("COMMIT", "sql.transaction"),
        ("SAVEPOINT x", "sql.transaction"),
        ("RELEASE x", "sql.transaction"),
        ("EXPLAIN SELECT 1", "sql.command"),
        ("EXPLAIN QUERY PLAN SELECT 1", "sql.command"),
        ("VACUUM", "sql.command"),
        ("VACUUM INTO '/tmp/x'", "sql.command"),
        ("REINDEX", "sql.command"),
        ("ANALYZE", "sql.command"),
        ("1 + 1", "sql.not_select"),
        ("DEALLOCATE_ALL x", "sql.not_select"),
        ("SELECT load_extension('x')", "sql.load_extension"),
        ("SELECT LOAD_EXTENSION('x', 'y') FROM t", "sql.load_extension"),
        ("SELECT readfile('/etc/passwd')", "sql.function_not_allowed"),
        ("SELECT writefile('x', 'y')", "sql.function_not_allowed"),
        ("SELECT edit('x')", "sql.function_not_allowed"),
        ("SELECT fts3_tokenizer('x')", "sql.function_not_allowed"),
        ("SELECT sqlite_source_id()", "sql.function_not_allowed"),
        ("SELECT zeroblob(1000000000)", "sql.function_not_allowed"),
        ("SELECT randomblob(9)", "sql.function_not_allowed"),
        ("SELECT * FROM fsdir('.')", "sql.function_not_allowed"),
        ("SELECT * FROM generate_series(1, 1000000000)", "sql.function_not_allowed"),
        ("SELECT 1; AS", "sql.multiple_statements"),
        ("SELECT optimize(docs) FROM docs WHERE docs MATCH 'x'", "sql.function_not_allowed"),
        ("SELECT * FROM docs('x')", "sql.function_not_allowed"),
        ("SELECT a REGEXP 'x' FROM t", "sql.node_not_allowed"),
        ("SELECT sql FROM sqlite_master", "sql.system_table"),
        ("SELECT sql FROM SQLITE_SCHEMA", "sql.system_table"),
        ('SELECT sql FROM main."sqlite_master"', "sql.system_table"),
        ("SELECT * FROM temp.x", "sql.system_table"),
        ("SELECT * FROM other.orders", "sql.system_table"),
        ("SELECT * FROM dbstat", "sql.system_table"),
        ("SELECT 1 WHERE 1 IN sqlite_master", "sql.system_table"),
        ("SELECT (SELECT group_concat(sql) FROM sqlite_master)", "sql.system_table"),
    ],
)
def test_everything_but_one_reading_query_is_refused_with_its_own_code(text: str, code: str) -> None:
    assert code_of(text) == code


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("WITH x AS (UPDATE t SET a = 1 RETURNING a) SELECT a FROM x", "sql.writes"),
        ("SELECT a INTO x FROM t", "sql.writes"),
        ("SELECT a FROM t FOR SHARE", "sql.writes"),
        ("COPY t TO PROGRAM 'sh'", "sql.writes"),
        ("GRANT SELECT ON t TO u", "sql.defines"),
        ("DO $$ BEGIN END $$", "sql.command"),
        ("CALL f()", "sql.command"),
        ("LISTEN c", "sql.command"),
        ("SET ROLE x", "sql.command"),
        ("SHOW all", "sql.command"),
        ("LOCK TABLE t", "sql.command"),
        ("EXPLAIN ANALYZE DELETE FROM t", "sql.command"),
        ("START TRANSACTION", "sql.transaction"),
        *(
            (f"SELECT {call}", "sql.function_not_allowed")
            for call in (
                "pg_read_file('x')", "\"pg_read_file\"('x')", "pg_catalog.pg_read_file('x')", "lo_import('x')",
                "set_config('a', 'b', false)", "current_setting('a')", "query_to_xml('delete from t', true, true, '')",
                "dblink('x', 'y')", "nextval('s')", "pg_terminate_backend(1)", "pg_sleep(9)", "pg_notify('a', 'b')",
                "pg_advisory_lock(1)", "txid_current()", "evil.lower('x')", "table_to_xml('t', true, true, '')",
            )
        ),
        ("SELECT * FROM pg_ls_dir('.')", "sql.function_not_allowed"),
        ("SELECT * FROM t, LATERAL pg_read_file('x')", "sql.function_not_allowed"),
        ("SELECT * FROM ROWS FROM (pg_ls_dir('.'))", "sql.function_not_allowed"),
        ("SELECT current_user", "sql.node_not_allowed"),
        *(
            (f"SELECT {cast}", "sql.node_not_allowed")
            for cast in (
                "'pg_shadow'::regclass", "1260::regclass::text", "'a'::pg_catalog.regclass", "'a'::\"regclass\"",
                "'{a}'::_regclass", "'{a}'::pg_catalog.\"_regclass\"", "CAST('a' AS regrole)", "regnamespace 'a'",
                "'u=r/u'::aclitem", "aclitem 'u=r/u'", "'{u=r/u}'::_aclitem", "json_value(j, '$' RETURNING regclass)",
                "xmlserialize(CONTENT a AS pg_catalog.regclass)",
            )
        ),
        ("SELECT * FROM json_to_record('{}') AS x(a pg_catalog.regproc)", "sql.node_not_allowed"),
        ("SELECT * FROM json_table('{}', '$' COLUMNS (a _regtype PATH '$.a'))", "sql.node_not_allowed"),
        ("SELECT xpath('count(//a[count(//a) > 0])', x) FROM t", "sql.function_not_allowed"),
        ("SELECT system_user", "sql.function_not_allowed"),
        ("SELECT * FROM system_user", "sql.function_not_allowed"),
        ("SELECT o.pg_column_compression FROM o", "sql.function_not_allowed"),
        ("SELECT (o).pg_restore_relation_stats FROM o", "sql.function_not_allowed"),
        ('SELECT o."pg_restore_relation_stats" FROM o', "sql.function_not_allowed"),
        ("SELECT * FROM pg_shadow", "sql.system_table"),
        ("SELECT * FROM pg_catalog.pg_class", "sql.system_table"),
        ('SELECT * FROM "pg_catalog"."pg_class"', "sql.system_table"),
        ("SELECT * FROM information_schema.tables", "sql.system_table"),
    ],
)  # fmt: skip
def test_postgres_calls_that_do_more_than_compute_are_refused(text: str, code: str) -> None:
    assert code_of(text, "postgres") == code


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT 1;",
        "VALUES (1, 2), (3, 4)",
        "SELECT * FROM orders -- a comment; with 'quotes'",
        "WITH r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n) FROM r",
        "SELECT rank() OVER w FROM t WINDOW w AS (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SELECT count(*) FILTER (WHERE b > ?) FROM t GROUP BY a HAVING c > :n ORDER BY 1 NULLS LAST LIMIT 5 OFFSET 2",
        "SELECT strftime('%Y-%m', day), json_extract(j, '$.a.b'), j ->> '$.c' FROM t",
        "SELECT value FROM orders, json_each(orders.tags)",
        "SELECT CASE WHEN a IS NOT NULL THEN 'x' || b END FROM t WHERE c IN (SELECT d FROM u) AND e BETWEEN 1 AND 2",
        "SELECT a FROM t WHERE b LIKE '%x!_%' ESCAPE '!' OR b GLOB 'x*' UNION ALL SELECT c FROM u",
        "SELECT * FROM t ORDER BY random() LIMIT 5",
        "SELECT a AS \"delete\", 'DROP TABLE t' FROM t WHERE note = 'insert into x; --'",
        "SELECT update_count, created FROM inserts",
        "SELECT * FROM a NATURAL LEFT JOIN b JOIN c USING (id)",
        "SELECT round(avg(x), 2), median(x), printf('%.2f', x) FROM t",
        "SELECT title, snippet(docs, 1, '[', ']', '…', 8) FROM docs WHERE docs MATCH 'fox NOT dog' ORDER BY bm25(docs)",
        "SELECT d.title, highlight(docs, 0, '<b>', '</b>') FROM docs AS d WHERE d.body MATCH ? ORDER BY rank LIMIT 5",
    ],
)  # fmt: skip
def test_ordinary_queries_pass(text: str) -> None:
    screen(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT ON (a) a, b::numeric(10, 2) FROM t ORDER BY a, b DESC",
        "SELECT date_trunc('month', d), percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t GROUP BY 1",
        "SELECT now() - interval '7 days', extract(year FROM d), d AT TIME ZONE 'utc' FROM t",
        "SELECT x.* FROM t CROSS JOIN LATERAL (SELECT t.a) x",
        "SELECT u FROM unnest(ARRAY[1, 2]) AS u, generate_series(1, 3) g",
        "SELECT string_agg(a, ', ' ORDER BY a), array_agg(b) FROM t GROUP BY GROUPING SETS ((c), ())",
        "SELECT a ~* 'x', b ->> 'k', c @> '{}', d ILIKE '%z%' FROM t",
        "SELECT count(*) FROM t WHERE a = ANY (ARRAY[1, 2]) FETCH FIRST 3 ROWS ONLY",
        "SELECT coalesce(a, $1), nullif(b, 0), greatest(c, d) FROM public.t",
        "SELECT jsonb_array_length(j -> 'a' -> 'b'), max(j ->> 'a'), make_interval(days => 3) FROM t",
        "SELECT a FROM t WHERE b <> ALL (ARRAY[1, 2]) AND c = SOME ('{1}'::int[]) AND d > ALL (SELECT e FROM u)",
        "SELECT a @@ to_tsquery('x'), j @? '$.a', j @@ '$.a > 1', j #- '{a}', p <-> point(1, 2), r -|- s, r &< s",
        "SELECT * FROM jsonb_to_recordset('[]') AS x(a int, b text), ROWS FROM (json_to_record('{}') AS (c date))",
        "SELECT * FROM t TABLESAMPLE BERNOULLI (5) REPEATABLE (1)",
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a FROM r) SEARCH DEPTH FIRST BY a SET o SELECT * FROM r",
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a FROM r) CYCLE a SET c USING p SELECT * FROM r",
        "SELECT string_agg(a, E'\\n'), split_part(b, E'\\t', 2), c ~ E'\\\\d+' FROM t WHERE d >= DATE'2024-01-01'",
        "SELECT pg_typeof(a), pg_size_pretty(b), host(ip), gen_random_uuid(), j IS JSON OBJECT FROM t",
        "SELECT straße, größe, 年 FROM maße",
        "SELECT $$it's$$, $a$b$$c$a$, E'it\\'s', e'\\x41' FROM t",
        "SELECT a <#> b, a <=> '[1,2]', a ^@ 'x', a ~~* 'b', a !~~ 'c', a %> 'd', ip <<= '10.0.0.0/8'::cidr FROM t",
        "SELECT @ -5, |/ 4, ||/ 8, !! 'a'::tsquery, # path '((0,0),(1,1))', @-@ p, a OPERATOR(pg_catalog.+) 1 FROM t",
        "SELECT box '((0,0),(1,1))' @> point '(0,0)', lseg '((0,0),(1,1))' ?# l, money '1.50', a::mine.kind, b::region",
        "SELECT json_object('a': 1, 'b' VALUE c ABSENT ON NULL WITH UNIQUE KEYS RETURNING jsonb), json_array(1, NULL)",
        "SELECT json_objectagg(k : v), json_arrayagg(v ORDER BY k NULL ON NULL RETURNING text) FILTER (WHERE v > 1)",
        "SELECT json_array(SELECT a FROM u ORDER BY a), json('{}'), json_scalar(1), json_serialize(j RETURNING text)",
        "SELECT json_value(j, '$.a' RETURNING int DEFAULT 0 ON EMPTY NULL ON ERROR), json_exists(j, '$.b') FROM t",
        "SELECT json_query(j, '$.b' PASSING 1 AS x WITH CONDITIONAL WRAPPER KEEP QUOTES EMPTY ARRAY ON ERROR) FROM t",
        "SELECT x.* FROM t, json_table(t.j, '$[*]' AS r COLUMNS (n FOR ORDINALITY, a text PATH '$.a' DEFAULT 'b' ON"
        " EMPTY, e boolean EXISTS PATH '$.e', NESTED PATH '$.c[*]' COLUMNS (d numeric(3, 1))) ERROR ON ERROR) AS x",
        "SELECT xmlagg(xmlelement(NAME r, xmlattributes(a AS id), xmlforest(b, c AS d)) ORDER BY a) FROM t",
        "SELECT xmlserialize(DOCUMENT x AS text INDENT), xmlparse(CONTENT '<a/>') FROM t",
        "SELECT x IS DOCUMENT, xml_is_well_formed(y) FROM t ORDER BY x USING >, lower(y) USING <",
        "SELECT enum_range(NULL::mood), st_distance(a, st_makepoint(1, 2)), time_bucket('5 minutes', b), hashtext(c)",
        "SELECT to_tsvector('english'::regconfig, a), 5::oid, b AT LOCAL FROM t WHERE EXISTS (TABLE u) LIMIT 2 - 5 % 3",
    ],
)
def test_ordinary_postgres_queries_pass(text: str) -> None:
    screen(text, "postgres")


def test_a_limit_may_be_divided_and_values_go_by_number_in_sqlite_too() -> None:
    screen("SELECT avg(a) FROM (SELECT a FROM t ORDER BY a LIMIT 2 - (SELECT count(*) FROM t) % 2 OFFSET 1)")
    screen("SELECT a FROM t WHERE a = ?1 AND b = ?2 OR c = ?")


def test_a_json_field_may_be_an_argument_in_sqlite_too() -> None:
    screen("SELECT json_array_length(j -> '$.tags'), max(j ->> '$.a', 1) FROM t")


@pytest.mark.threat("R10")
@pytest.mark.parametrize("first", ["interval E'1'", "interval e'1'", "E'a'", "'a'", "B'1'"])
@pytest.mark.parametrize("blank", ["\n", " \r\n ", " -- then\n", "\n-- then\n", " "])
def test_a_text_that_goes_on_in_the_next_line_hides_no_call(first: str, blank: str) -> None:
    """PostgreSQL joins texts across a line end and keeps the escapes of the first: what looks quoted here is a call."""
    assert code_of(f"SELECT {first}{blank}'\\' || ' , pg_sleep(1) -- '", "postgres") == "sql.unreadable"


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT U&'\\0027'",
        'SELECT U&"pg\\005fsleep"(1)',
        "SELECT N'a'",
        "SELECT a FROM t WHERE a LıKE 'x'",
        "SELECT a FROM t CROß JOıN u",
        "SELECT sum(a) ﬁlter (WHERE b) FROM t",
        "SELECT ran\u212a() OVER () FROM t",
        "SELECT * FROM t TABLESAMPLE SYSTEM (pg_sleep(1))",
    ],
)
def test_what_the_parser_and_postgres_could_read_differently_is_refused(text: str) -> None:
    assert code_of(text, "postgres") == "sql.unreadable"


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "text",
    [
        'SELECT "all"(a) FROM t',
        'SELECT a = "some"(ARRAY[1]) FROM t',
        'SELECT "Lower"(a) FROM t',
        'SELECT pg_catalog."LOWER"(a) FROM t',
        'SELECT "PG_CATALOG".lower(a) FROM t',
        'SELECT * FROM "Generate_Series"(1, 2)',
        'SELECT "Max"(a) FILTER (WHERE true) FROM t',
    ],
)
def test_a_quoted_word_before_parentheses_is_a_function_of_somebody(text: str) -> None:
    assert code_of(text, "postgres") == "sql.function_not_allowed"


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT jsonb_array_length(pg_read_file('x')::jsonb -> 'a')",
        "SELECT a FROM t WHERE a <> ALL (ARRAY[pg_sleep(1)])",
        "SELECT * FROM evil(1) AS x(a int)",
        "SELECT * FROM ROWS FROM (evil(1) AS (a int))",
        "SELECT a @@ pg_read_file('x') FROM t",
        "SELECT concat(VARIADIC pg_ls_dir('x')) FROM t",
        "SELECT pg_catalog.max(pg_sleep(1)::text) FILTER (WHERE true) FROM t",
        "SELECT pg_catalog.percentile_disc(0.5) WITHIN GROUP (ORDER BY pg_sleep(1)::text) FROM t",
        "SELECT evil.f(1) FILTER (WHERE true) FROM t",
        "SELECT evil.lower('a') FILTER (WHERE true) FROM t",
        "SELECT a.evil.f(1) WITHIN GROUP (ORDER BY b) FROM t",
        "SELECT json_object('a' VALUE pg_read_file('x'))",
        "SELECT json_object(pg_read_file('x') : 1)",
        "SELECT json_query(j, '$' PASSING pg_sleep(1) AS x) FROM t",
        "SELECT json_value(j, '$.a' DEFAULT pg_sleep(1) ON ERROR) FROM t",
        "SELECT json_object('a' VALUE value(1))",
        "SELECT xmlelement(NAME a, xmlattributes(pg_read_file('x') AS b))",
        "SELECT xmlserialize(DOCUMENT query_to_xml('SELECT 1', true, true, '') AS text)",
        "SELECT * FROM json_table(pg_read_file('x'), '$' COLUMNS (a int))",
        "SELECT 1 @- pg_sleep(1)::text::int",
        "SELECT |/ pg_sleep(1)::text::int",
        "SELECT ts_rewrite('a', 'SELECT 1')",
        "SELECT * FROM crosstab('SELECT 1') AS x(a int)",
    ],
)
def test_a_call_is_seen_wherever_it_stands(text: str) -> None:
    assert code_of(text, "postgres") == "sql.function_not_allowed"


@pytest.mark.threat("R10")
@pytest.mark.parametrize("name", ["TRIM", "Substring", "EXTRACT", "JSON_OBJECT", "Json_Table", "XMLFOREST"])
def test_a_quoted_name_is_not_taken_for_the_engines_own_syntax(name: str) -> None:
    assert code_of(f'SELECT "{name}"(a) FROM t', "postgres") == "sql.unreadable"
    assert code_of(f'SELECT * FROM "{name}"(1) AS x', "postgres") == "sql.unreadable"


def test_a_builtin_function_may_be_quoted_as_it_is_spelled() -> None:
    screen('SELECT "lower"(a), "pg_catalog"."upper"(b) FROM t', "postgres")
    screen('SELECT "LOWER"(a) FROM t', "sqlite")


def test_a_refusal_names_the_offending_part() -> None:
    with pytest.raises(Refused) as caught:
        screen("SELECT readfile(a) FROM t")
    assert "`readfile`" in caught.value.refusal.message
    with pytest.raises(Refused) as caught:
        screen("SELECT a REGEXP 'x' FROM t")
    assert "RegexpLike" in caught.value.refusal.message
    assert "GLOB" in str(caught.value.refusal.hint)


# --- public sets ---------------------------------------------------------------------------------------------------


def corpus(name: str) -> list[str]:
    path = CORPORA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"the corpus {name} is not here; set TOOLCAGE_CORPORA to its folder")
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


def accepted(texts: list[str], dialect: str) -> list[str]:
    passed = []
    for text in texts:
        try:
            screen(text, dialect)
        except Refused:
            continue
        passed.append(text)
    return passed


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_at_least_99_percent_of_analysts_selects_pass(dialect: str) -> None:
    texts = corpus(f"sql_select_benign_{dialect}")
    assert len(accepted(texts, dialect)) >= 0.99 * len(texts)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_of_a_parsers_own_statements_only_queries_pass(dialect: str) -> None:
    passed = accepted(corpus("sql_statements_any"), dialect)
    assert passed
    assert [text for text in passed if not text.lstrip("( ").upper().startswith(("SELECT", "WITH", "VALUES"))] == []
    facts = [read(text, dialect) for text in passed]
    assert not any(fact.writes or fact.statements != 1 for fact in facts)
    assert not any(fact.node_types & {"Create", "Drop", "Alter", "Set", "Command", "Lock", "Into"} for fact in facts)


def test_injected_fragments_never_make_a_second_statement_or_a_write() -> None:
    for fragment in corpus("sql_injection_fragments"):
        pasted = [f"SELECT * FROM users WHERE name = '{fragment}'", f"SELECT * FROM users WHERE id = {fragment}"]
        for text in accepted(pasted, "sqlite"):
            facts = read(text)
            assert facts.statements == 1
            assert not facts.writes
