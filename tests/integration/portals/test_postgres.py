"""The `postgres` portal before a real PostgreSQL server: who logs in, as whom, and what passes."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pg8000.dbapi
import pytest

from servers.portal import TERMS, Portal, Serve
from servers.postgres import PostgresServer
from toolcage.broker.dial import Upstream
from toolcage.broker.postgres import serve
from toolcage.broker.postgres_login import PostgresConfig
from toolcage.broker.stream import PortalTerms
from toolcage.secret_reference import SecretRef

Open = Callable[[Serve], Portal]
SECRET = SecretRef(source="env", place="TOOLCAGE_TEST_PG")


@pytest.fixture
def config(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresConfig:
    monkeypatch.setenv(SECRET.place, postgres.password)
    server = Upstream(host="127.0.0.1", port=postgres.port, ca=postgres.ca)
    return PostgresConfig(database="shop", user="reader", password=SECRET, server=server)


def through(portal: Open, config: PostgresConfig, terms: PortalTerms = TERMS) -> Portal:
    return portal(lambda client, note: serve(client, config=config, terms=terms, note=note))


def connect(opened: Portal, **options: Any) -> Any:
    """A client that knows nothing: whatever it says of itself is ignored."""
    named = {"user": "anybody", "database": "anything", "password": "nothing", **options}
    return closing(pg8000.dbapi.connect(host="127.0.0.1", port=opened.port, **named))


def ask(opened: Portal, sql: str, values: tuple[object, ...] = (), **options: Any) -> list[Any]:
    with connect(opened, **options) as connection:
        cursor = connection.cursor()
        cursor.execute(sql, values)
        return [list(row) for row in cursor.fetchall()]


@pytest.mark.parametrize("user", ["reader", "md5_reader", "clear_reader"])
def test_each_way_to_log_in_gives_a_client_without_password_the_configured_role(
    portal: Open, config: PostgresConfig, user: str
) -> None:
    opened = through(portal, replace(config, user=user))
    assert ask(opened, "SELECT current_user::text, current_database()::text, ssl FROM pg_stat_ssl WHERE pid ="
               " pg_backend_pid()") == [[user, "shop", True]]  # fmt: skip
    assert opened.notes[0].target == f"127.0.0.1:{config.server.port}/shop" if config.server else ""


def test_scram_is_bound_to_the_certificate(
    portal: Open, config: PostgresConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolcage.broker import postgres_login

    chosen: list[str] = []
    real = postgres_login._Login._begin_scram

    async def note(self: Any, data: bytes) -> None:
        await real(self, data)
        chosen.append(self._scram.mechanism_name)

    monkeypatch.setattr(postgres_login._Login, "_begin_scram", note)
    assert ask(through(portal, config), "SELECT 1") == [[1]]
    assert chosen == ["SCRAM-SHA-256-PLUS"]


def test_rows_values_and_text_of_any_script_come_back(portal: Open, config: PostgresConfig) -> None:
    opened = through(portal, config)
    found = ask(opened, "SELECT id, customer FROM orders WHERE id > %s ORDER BY id", (1,))
    assert found == [[2, "Bo"], [3, "王芳"]]
    assert (opened.notes[0].bytes_up > 0, opened.notes[0].bytes_down > 0) == (True, True)


def test_a_large_answer_passes_whole_and_one_above_the_terms_is_cut_off(portal: Open, config: PostgresConfig) -> None:
    sql = "SELECT repeat('x', 1000) FROM generate_series(1, 3000)"
    assert len(ask(through(portal, config), sql)) == 3000
    small = through(portal, config, replace(TERMS, max_bytes_down=1_000_000))
    with pytest.raises(pg8000.dbapi.Error):
        ask(small, sql)
    assert small.codes() == ["egress.bytes_down"]


def test_the_session_cannot_write_and_cannot_run_long_unless_configured(
    portal: Open, config: PostgresConfig, postgres: PostgresServer
) -> None:
    writer = replace(config, user="writer")
    with pytest.raises(pg8000.dbapi.DatabaseError, match="read-only transaction"):
        ask(through(portal, writer), "INSERT INTO orders VALUES (9, 'x', 1, NULL) RETURNING id")
    with connect(through(portal, replace(writer, read_only=False))) as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE orders SET total = total + 0 WHERE id = 1 RETURNING id")
        assert [list(row) for row in cursor.fetchall()] == [[1]]
        connection.commit()
    with pytest.raises(pg8000.dbapi.DatabaseError, match="statement timeout"):
        ask(through(portal, replace(config, statement_s=0.2)), "SELECT pg_sleep(20)")


@pytest.mark.parametrize("asked", [{"user": "mighty"}, {"database": "postgres"}, {"application_name": "evil"}])
def test_what_the_client_says_of_itself_changes_nothing(
    portal: Open, config: PostgresConfig, asked: dict[str, str]
) -> None:
    found = ask(
        through(portal, config), "SELECT current_user::text, current_database()::text,"
        " current_setting('application_name'), current_setting('default_transaction_read_only')", **asked
    )  # fmt: skip
    assert found == [["reader", "shop", "toolcage", "on"]]


def test_nothing_that_the_client_sees_tells_the_role_or_a_way_to_cancel(portal: Open, config: PostgresConfig) -> None:
    with Raw(through(portal, config)) as raw:
        raw.start()
        seen = raw.until(b"Z")
    assert [kind for kind, _ in seen if kind == b"K"] == [b"K"]
    assert [content for kind, content in seen if kind == b"K"] == [bytes(8)]
    everything = b"".join(content for _, content in seen)
    for word in (b"reader", b"session_authorization", b"is_superuser", b"application_name", b"pg-canary"):
        assert word not in everything


# --- what is refused -------------------------------------------------------------------------------------------------


class Raw:
    """A client that speaks bytes."""

    def __init__(self, opened: Portal) -> None:
        self._socket = socket.create_connection(("127.0.0.1", opened.port), timeout=20)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def start(self, *pairs: bytes, code: int = 3 << 16) -> None:
        content = struct.pack("!I", code) + b"".join(item + b"\0" for item in (b"user", b"x", *pairs)) + b"\0"
        self.send(struct.pack("!i", len(content) + 4) + content)

    def message(self, kind: bytes, content: bytes = b"") -> None:
        self.send(kind + struct.pack("!i", len(content) + 4) + content)

    def read(self) -> tuple[bytes, bytes]:
        kind = self._file.read(1)
        if not kind:
            return b"", b""
        (length,) = struct.unpack("!i", self._file.read(4))
        return kind, self._file.read(length - 4)

    def until(self, last: bytes) -> list[tuple[bytes, bytes]]:
        seen = []
        while True:
            seen.append(self.read())
            if seen[-1][0] in (last, b"", b"E"):
                return seen

    def byte(self) -> bytes:
        return self._file.read(1)


def test_encryption_inside_the_cage_is_declined_and_the_connection_goes_on(
    portal: Open, config: PostgresConfig
) -> None:
    with Raw(through(portal, config)) as raw:
        for code in (80877103, 80877104):
            raw.send(struct.pack("!iI", 8, code))
            assert raw.byte() == b"N"
        raw.start()
        assert raw.until(b"Z")[-1][0] == b"Z"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (struct.pack("!iIii", 16, 80877102, 1, 1), "egress.command"),  # CancelRequest
        (struct.pack("!iI", 8, 2 << 16), "egress.protocol"),
        (struct.pack("!iI", 0x7FFFFFFF, 3 << 16), "egress.protocol"),
        (struct.pack("!iI", -5, 3 << 16), "egress.protocol"),
        (struct.pack("!iI", 8, 80877103) * 4, "egress.protocol"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "egress.protocol"),
        (struct.pack("!iI", 12, 3 << 16) + b"user", "egress.protocol"),
    ],
)
def test_a_first_message_that_is_no_plain_session_is_refused_without_asking_the_server(
    portal: Open, config: PostgresConfig, first: bytes, code: str
) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.send(first)
        while raw.byte():
            pass
    assert opened.codes() == [code]
    assert opened.notes[0].address == ""


@pytest.mark.parametrize("value", [b"true", b"database", b"on", b"1", b"yes"])
def test_replication_is_refused(portal: Open, config: PostgresConfig, value: bytes) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.start(b"replication", value)
        assert raw.until(b"Z")[-1][0] == b"E"
    assert opened.codes() == ["egress.command"]


@pytest.mark.parametrize("kind", [bytes([item]) for item in b"FdcfpgJKRZAt\x00\x01\x80\xff"])
def test_every_message_besides_queries_is_refused_before_the_server_sees_it(
    portal: Open, config: PostgresConfig, kind: bytes, postgres: PostgresServer
) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.start()
        raw.until(b"Z")
        raw.message(kind, b"canary")
        assert raw.until(b"E")[-1][0] == b"E"
        assert raw.byte() == b""
    assert opened.codes() == ["egress.command"]


def test_copy_cannot_carry_data_in(portal: Open, config: PostgresConfig, postgres: PostgresServer) -> None:
    opened = through(portal, replace(config, user="writer", read_only=False))
    with Raw(opened) as raw:
        raw.start()
        raw.until(b"Z")
        raw.message(b"Q", b"COPY orders FROM STDIN\0")
        assert raw.read()[0] == b"E"
    assert opened.codes() == ["egress.command"]
    assert postgres.query("SELECT count(*) FROM orders", "shop") == "3"


def test_a_session_that_becomes_a_superuser_ends(
    portal: Open, config: PostgresConfig, postgres: PostgresServer
) -> None:
    postgres.query("GRANT mighty TO writer")
    try:
        opened = through(portal, replace(config, user="writer"))
        with pytest.raises(pg8000.dbapi.Error):
            ask(opened, "SET ROLE mighty")
        assert opened.codes() == ["egress.role"]
    finally:
        postgres.query("REVOKE mighty FROM writer")


def test_a_session_for_reading_that_is_set_to_write_ends(portal: Open, config: PostgresConfig) -> None:
    opened = through(portal, replace(config, user="writer"))
    with pytest.raises(pg8000.dbapi.Error):
        ask(opened, "SET default_transaction_read_only = off")
    assert opened.codes() == ["egress.role"]


def test_a_superuser_gets_no_session_at_all(portal: Open, config: PostgresConfig) -> None:
    opened = through(portal, replace(config, user="mighty"))
    with pytest.raises(pg8000.dbapi.Error, match="may do anything"):
        ask(opened, "SELECT 1")
    assert opened.codes() == ["egress.role"]


def test_a_wrong_password_a_missing_secret_and_an_unverified_server_say_no_more_than_that(
    portal: Open, config: PostgresConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert config.server is not None
    wrong = [
        (replace(config, user="nobody_here"), "egress.login"),
        (replace(config, password=SecretRef(source="env", place="TOOLCAGE_TEST_ABSENT")), "egress.secret"),
        (replace(config, server=replace(config.server, ca=None)), "egress.tls"),
        (replace(config, server=replace(config.server, port=9)), "egress.unreachable"),
        (replace(config, database="absent"), "egress.login"),
    ]
    for item, code in wrong:
        opened = through(portal, item)
        with pytest.raises(pg8000.dbapi.Error) as caught:
            ask(opened, "SELECT 1")
        assert opened.codes() == [code]
        for inside in ("127.0.0.1", "nobody_here", "absent", "pg-canary", "TOOLCAGE_TEST"):
            assert inside not in str(caught.value).replace("host=127.0.0.1", "")
        assert "pg-canary" not in opened.denied[0].operator


def test_on_a_unix_socket_a_broker_that_is_root_must_prove_itself(
    portal: Open, config: PostgresConfig, postgres: PostgresServer
) -> None:
    by_socket = replace(config, server=None, socket=postgres.socket)
    assert ask(through(portal, by_socket), "SELECT current_user::text") == [["reader"]]
    trusted = replace(by_socket, user="clear_reader", password=None)
    opened = through(portal, trusted)
    if os.geteuid() == 0:
        with pytest.raises(pg8000.dbapi.Error):
            ask(opened, "SELECT 1")
        assert opened.codes() == ["egress.login"]
    else:
        assert ask(opened, "SELECT 1") == [[1]]


def test_silence_and_a_vanished_client_end_the_server_s_session(
    portal: Open, config: PostgresConfig, postgres: PostgresServer, eventually: Callable[..., bool]
) -> None:
    count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'"
    opened = through(portal, config, replace(TERMS, idle_s=0.2))
    with Raw(opened) as raw:
        raw.start()
        raw.until(b"Z")
        assert raw.until(b"E")[-1][0] == b"E"
    assert opened.codes() == ["egress.idle"]
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.start()
        raw.until(b"Z")
        assert postgres.query(count) == "1"
    assert eventually(lambda: postgres.query(count) == "0")
    assert eventually(opened.settled)


def test_a_statement_ends_soon_after_its_call_was_given_up(
    portal: Open, config: PostgresConfig, postgres: PostgresServer, eventually: Callable[..., bool]
) -> None:
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(300)%'"
    opened = through(portal, replace(config, statement_s=600))
    with Raw(opened) as raw:
        raw.start()
        raw.until(b"Z")
        raw.message(b"Q", b"SELECT pg_sleep(300)\0")
        assert eventually(lambda: postgres.query(running) == "1")
        opened.give_up()
    assert eventually(lambda: postgres.query(running) == "0")


def test_many_connections_leave_nothing_open(
    portal: Open, config: PostgresConfig, eventually: Callable[..., bool]
) -> None:
    opened = through(portal, config)
    ask(opened, "SELECT 1")
    assert eventually(opened.settled)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(25):
        assert ask(opened, "SELECT 1") == [[1]]
    assert eventually(opened.settled)
    assert eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)
