"""`toolcage doctor --resources`: every resource is tried at a real server, and no secret is shown."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from servers import dovecot as imap_server
from servers import postgres as postgres_server
from servers import radicale as dav_server
from servers.dovecot import DovecotServer
from servers.mediawiki import MediaWiki
from servers.postgres import PostgresServer
from servers.radicale import RadicaleServer
from servers.smtp import SmtpServer
from toolcage.cli.main import app

SECRETS = (postgres_server.PASSWORD, imap_server.PASSWORD, dav_server.PASSWORD, "api-key-canary-77")


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(("T_PG", "T_MAIL", "T_DAV", "T_KEY"), SECRETS, strict=True):
        monkeypatch.setenv(name, value)


def doctor(folder: Path, text: str) -> tuple[int, dict[str, list[tuple[str, str]]]]:
    """Exit code, and (verdict, found) by resource. No secret may be in either form of the report."""
    path = folder / "resources.yaml"
    path.write_text(f"version: 1\n{text}", encoding="utf-8")
    plain = CliRunner().invoke(app, ["doctor", "--resources", str(path)])
    machine = CliRunner().invoke(app, ["doctor", "--resources", str(path), "--json"])
    assert [secret for secret in SECRETS if secret in plain.output + machine.output] == []
    assert plain.exit_code == machine.exit_code
    found: dict[str, list[tuple[str, str]]] = {}
    report: Mapping[str, Any] = json.loads(machine.stdout)
    for item in report["findings"]:
        found.setdefault(item["check"], []).append((item["verdict"], item["found"]))
    return machine.exit_code, found


def database(postgres: PostgresServer, user: str) -> str:
    return (
        f"databases:\n  shop: {{kind: postgresql, host: 127.0.0.1, port: {postgres.port}, database: shop, user: {user},"
        f" password: {{env: T_PG}}, ca: {postgres.ca}}}\n"
    )


def test_resources_that_work_are_said_to(
    tmp_path: Path, postgres: PostgresServer, smtp: SmtpServer, dovecot: DovecotServer, radicale: RadicaleServer,
    mediawiki: Mapping[str, MediaWiki],
) -> None:  # fmt: skip
    with closing(sqlite3.connect(tmp_path / "local.sqlite")) as connection:
        connection.execute("CREATE TABLE t (x)")
    (tmp_path / "scratch").mkdir()
    code, found = doctor(tmp_path, database(postgres, "reader") + f"""
  local: {{kind: sqlite, path: local.sqlite}}
  changed: {{kind: sqlite, path: local.sqlite, access: rw}}
endpoints:
  wiki: {{url: "{mediawiki["en"].url}", key: {{secret: {{env: T_KEY}}}}}}
mailboxes:
  team:
    address: bot@example.com
    user: bot
    password: {{env: T_MAIL}}
    smtp: {{host: 127.0.0.1, port: {smtp.starttls}, tls: starttls, ca: {smtp.ca}}}
    imap: {{host: 127.0.0.1, port: {dovecot.implicit}, tls: implicit, ca: {dovecot.ca}}}
    folders: [INBOX, Отчёты]
calendars:
  team: {{url: "{radicale.url}", user: bot, password: {{env: T_DAV}}, ca: {radicale.ca}}}
workspaces:
  scratch: {{folder: scratch, access: rw}}
""")  # fmt: skip
    assert code == 0, found
    assert {name: [verdict for verdict, _ in items] for name, items in found.items()} == {
        "database shop": ["ok"], "database local": ["ok"], "database changed": ["ok"],
        "endpoint wiki": ["ok"], "mailbox team": ["ok"],
        "calendar team": ["ok"], "workspace scratch": ["ok"],
    }  # fmt: skip
    assert [found[f"database {name}"][0][1] for name in ("local", "changed")] == [
        "a SQLite file with 1 tables", "a SQLite file with 1 tables, which may be changed",
    ]  # fmt: skip
    assert smtp.keeper.delivered == []


def test_a_database_that_is_to_be_changed_and_is_locked_is_a_problem(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "local.sqlite", isolation_level=None)) as connection:
        connection.executescript("CREATE TABLE t (x); BEGIN IMMEDIATE")
        text = "databases:\n  {}: {{kind: sqlite, path: local.sqlite, access: {}}}"
        assert doctor(tmp_path, text.format("read", "ro"))[0] == 0
        code, found = doctor(tmp_path, text.format("changed", "rw"))
    assert (code, found["database changed"][0]) == (3, ("problem", "database is locked"))


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("mighty", "superuser mighty"),
        ("owner", "owns public.orders"),
        ("bypass", "bypasses row security"),
        ("files", "member of pg_read_server_files"),
        ("creator", "may create in the schema public"),
    ],
)
def test_a_role_that_may_do_too_much_is_a_problem(
    tmp_path: Path, postgres: PostgresServer, user: str, said: str
) -> None:
    code, found = doctor(tmp_path, database(postgres, user))
    assert code == 3
    assert [text for verdict, text in found["database shop"] if verdict == "problem" and said in text], found


def test_what_a_role_can_become_counts_as_its_own(tmp_path: Path, postgres: PostgresServer) -> None:
    postgres.query(f"CREATE ROLE climber LOGIN NOINHERIT PASSWORD '{postgres.password}' IN ROLE mighty")
    postgres.query("GRANT CONNECT ON DATABASE shop TO climber")
    try:
        code, found = doctor(tmp_path, database(postgres, "climber"))
    finally:
        postgres.query("REVOKE ALL ON DATABASE shop FROM climber; DROP ROLE climber")
    assert code == 3
    assert any("superuser mighty" in text for _, text in found["database shop"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("databases:\n  d: {kind: sqlite, path: absent.sqlite}", "absent.sqlite"),
        ("databases:\n  d: {kind: postgresql, host: 127.0.0.1, port: 9, database: d, user: u, password: {env: T_PG}}",
         "127.0.0.1:9"),
        ("endpoints:\n  d: {url: 'https://127.0.0.1:9', key: {secret: {env: T_ABSENT}}}", "T_ABSENT is not set"[:8]),
        ("workspaces:\n  d: {folder: absent, access: ro}", "absent"),
        ("databases:\n  d: {kind: postgresql, host: h}", "missing"),
    ],
)  # fmt: skip
def test_a_resource_that_cannot_be_used_is_a_problem_that_says_where(tmp_path: Path, text: str, said: str) -> None:
    code, found = doctor(tmp_path, text)
    assert code == 3
    ((verdict, words), *_) = next(iter(found.values()))
    assert verdict == "problem"
    assert said in words


def test_accounts_that_are_refused_are_problems(
    tmp_path: Path, smtp: SmtpServer, dovecot: DovecotServer, radicale: RadicaleServer, postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in ("T_PG", "T_MAIL", "T_DAV"):
        monkeypatch.setenv(name, "wrong-canary")
    code, found = doctor(tmp_path, database(postgres, "reader") + f"""
mailboxes:
  out: {{address: a@b.example, user: bot, password: {{env: T_MAIL}},
        smtp: {{host: 127.0.0.1, port: {smtp.implicit}, tls: implicit, ca: {smtp.ca}}}}}
  in: {{address: a@b.example, user: bot, password: {{env: T_MAIL}},
       imap: {{host: 127.0.0.1, port: {dovecot.starttls}, tls: starttls, ca: {dovecot.ca}}}}}
calendars:
  team: {{url: "{radicale.url}", user: bot, password: {{env: T_DAV}}, ca: {radicale.ca}}}
""")  # fmt: skip
    assert code == 3
    assert [[verdict for verdict, _ in items] for items in found.values()] == [["problem"]] * 4
    assert "wrong-canary" not in str(found)
    assert "401" in found["calendar team"][0][1]


def test_a_folder_that_is_not_there_is_a_problem(tmp_path: Path, dovecot: DovecotServer) -> None:
    code, found = doctor(tmp_path, f"""
mailboxes:
  in: {{address: a@b.example, user: bot, password: {{env: T_MAIL}}, folders: [INBOX, Absent],
       imap: {{host: 127.0.0.1, port: {dovecot.starttls}, tls: starttls, ca: {dovecot.ca}}}}}
""")  # fmt: skip
    assert code == 3
    assert "Absent" in found["mailbox in"][0][1]
